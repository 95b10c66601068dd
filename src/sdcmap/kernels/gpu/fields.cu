// The cost of fields of any kind, in double precision. The operations have the order of risk/linkage/field_costs.py, and the
// file is compiled without fused products, so that both return the same number. A row is a record of one file, a column a
// record of the other.
typedef double Real;
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)
enum { NUMBER, CATEGORY, SQUARE, GAP, RELATIVE, SAME, WINDOW, BELOW, MIXTURE, CELL, LIKELIEST };
__device__ constexpr int kinds[FIELDS] = {KINDS};
__device__ constexpr int gaps[FIELDS] = {GAPS};  // whether the field has missing values
__constant__ double numbers[FIELDS * 4];  // scale, cap, cost if both are missing, cost if one is missing
__constant__ int offsets[FIELDS * 2];     // where the field's table begins, and its last pair or number of components
__constant__ const double* tables;

struct Row {
    double x[FIELDS];
};

__device__ __forceinline__ void load_row(const Real* rows, int stride, int at, Row& row) {
#pragma unroll
    for (int f = 0; f < FIELDS; f++) row.x[f] = rows[(size_t)f * stride + at];
}

// Interpolate in a table of (value, step to the next value). All shorter distances cost the first value, all longer ones the
// last. The exponent and the top three bits of the ratio are the cell (eight per octave); the rest interpolates in it.
__device__ __forceinline__ double by_distance(double ratio, const double* table, int last) {
    const long long bits = __double_as_longlong(ratio);
    const int cell = min(max((__double2hiint(ratio) >> 17) - 1023 * 8 + 1, 0), last);
    const double rest = __longlong_as_double(0x3ff0000000000000ll | ((bits & 0x1ffffffffffffll) << 3)) - 1.0;
    const double2 here = reinterpret_cast<const double2*>(table)[cell];
    return here.x + here.y * rest;
}

// -log of a mixture density. The largest term is factored out, so that exp cannot underflow.
__device__ double mixture(double away, const double* table, int components) {
    double top = -INFINITE, total = 0.0;
    for (int k = 0; k < 3 * components; k += 3) {
        const double off = away - table[k + 1];
        top = fmax(top, table[k] - table[k + 2] * (off * off));
    }
    for (int k = 0; k < 3 * components; k += 3) {
        const double off = away - table[k + 1];
        total += exp(table[k] - table[k + 2] * (off * off) - top);
    }
    return table[3 * components] - top - log(total);
}

// The cost by the likeliest component alone; each component is (cost, center, half precision).
__device__ __forceinline__ double likeliest(double away, double cap, const double* table, int components) {
    for (int k = 0; k < 3 * components; k += 3) {
        const double off = away - table[k + 1];
        cap = fmin(cap, table[k] + off * off * table[k + 2]);
    }
    return cap;
}

// The cost of a value in cell number b; each cell is (low end, high end, log of its largest probability). In either tail the
// probability is a difference of erfc, because that of erf would cancel.
__device__ double cell(double a, double b, const double* table) {
    const double* ends = table + 1 + 3 * (int)b;
    const double near = (ends[0] - a) * table[0], far = (ends[1] - a) * table[0];
    if (ends[0] == ends[1]) return near * near;
    const double chance = near > 0 ? 0.5 * (erfc(near) - erfc(far)) : far < 0 ? 0.5 * (erfc(-far) - erfc(-near)) : 0.5 * (erf(far) - erf(near));
    return chance > 0 ? ends[2] - log(chance) : INFINITE;
}

// The cost of two values of which none is missing.
__device__ __forceinline__ double present_cost(double a, double b, int f) {
    const double scale = numbers[4 * f], cap = numbers[4 * f + 1];
    const double* table = tables + offsets[2 * f];
    const int last = offsets[2 * f + 1];
    const double away = b - a;
    switch (kinds[f]) {
        case NUMBER: return away == 0 ? table[3] : by_distance(fabs(away) * scale, table + 4, last);
        case SQUARE: return fmin(scale * away * away, cap);
        case GAP: return cap * fmin(fabs(away) / scale, 1.0);
        case RELATIVE: return cap * fmin(fabs(away) / fmax(scale * fmax(fabs(a), 0.1), 1e-100), 1.0);
        case SAME: return away == 0 ? 0.0 : cap;
        case WINDOW: return fabs(away) < scale ? 0.0 : cap;
        case BELOW: return away < scale ? 0.0 : cap;
        case MIXTURE: return fmin(fmax(mixture(away, table, last), 0.0), cap);
        case LIKELIEST: return likeliest(away, cap, table, last);
        default: return fmin(fmax(cell(a, b, table), 0.0), cap);
    }
}

__device__ __forceinline__ double field_cost(double a, double b, int f) {
    if (kinds[f] == CATEGORY) return tables[offsets[2 * f] + (int)(a + b)];  // a is its code times the number of codes of b
    if (gaps[f]) {
        const bool no_a = isnan(a), no_b = isnan(b);
        if (no_a || no_b) {
            if (kinds[f] == NUMBER) return tables[offsets[2 * f] + (!no_a ? 2 : no_b ? 0 : 1)];
            return no_a && no_b ? numbers[4 * f + 2] : numbers[4 * f + 3];
        }
    }
    return present_cost(a, b, f);
}

// The sum over fields, or the mean over the fields that both records have (1 if there is none).
__device__ __forceinline__ double exact_cost(const double* x, const double* y) {
    double total = 0.0;
    int count = 0;
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        const double a = KNOWN_ROWS ? x[f] : y[f], b = KNOWN_ROWS ? y[f] : x[f];
        if (!MEAN || !gaps[f] || !(isnan(a) || isnan(b))) total += field_cost(a, b, f), count++;
    }
    return MEAN ? (count ? total / count : 1.0) : total;
}

__device__ __forceinline__ void costs_of(const Row (&row)[ROWS], const Real* y, float (&cost)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) cost[r] = __double2float_rn(exact_cost(row[r].x, y));
}

// The costs of a list of pairs.
extern "C" __global__ void pair_costs(const double* rows, int stride, const double* columns, const int* row, const int* column,
                                      int pairs, double* cost) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= pairs) return;
    Row mine;
    load_row(rows, stride, row[k], mine);
    cost[k] = exact_cost(mine.x, columns + (size_t)column[k] * WIDE);
}

// The `keep` cheapest of the columns in each row's keys, with their costs. Among equal costs the lower turn wins. One warp per row.
extern "C" __global__ void __launch_bounds__(32)
rank_candidates(const double* rows, int stride, const double* columns, int enough, int keep, const unsigned* scatter,
                const unsigned long long* keys, int* index, double* costs) {
    extern __shared__ double cost[];
    unsigned* turn = reinterpret_cast<unsigned*>(cost + enough);
    const int row = blockIdx.x;
    Row mine;
    load_row(rows, stride, row, mine);
    for (int k = threadIdx.x; k < enough; k += 32) {
        turn[k] = (unsigned)keys[(size_t)row * enough + k];
        cost[k] = exact_cost(mine.x, columns + (size_t)(turn[k] ^ scatter[row]) * WIDE);
    }
    __syncwarp();
    for (int k = threadIdx.x; k < enough; k += 32) {
        int rank = 0;
        for (int j = 0; j < enough; j++) rank += cost[j] < cost[k] || (cost[j] == cost[k] && turn[j] < turn[k]);
        if (rank < keep) {
            index[(size_t)row * keep + rank] = (int)(turn[k] ^ scatter[row]);
            costs[(size_t)row * keep + rank] = cost[k];
        }
    }
}

// Mark the rows for which some column costs less than `low`, and count the columns that cost at most `high`. A thread stops
// working on its row as soon as the row is marked, by itself or by another block.
extern "C" __global__ void __launch_bounds__(THREADS)
find_cheaper(const double* __restrict__ rows, const double* __restrict__ columns, int stride, int count, int seen, int spacing,
             int chunk, const double* __restrict__ low, const double* __restrict__ high, unsigned* beaten, unsigned* ties) {
    __shared__ double tile[TILE * WIDE];
    const int row = blockIdx.x * THREADS + threadIdx.x;
    Row mine;
    load_row(rows, stride, min(row, count - 1), mine);
    const double less = row < count ? low[row] : -1.0, most = row < count ? high[row] : -1.0;
    bool done = row >= count;
    unsigned equal = 0;
    const int last = min(seen, (int)(blockIdx.y + 1) * chunk);
    for (int from = blockIdx.y * chunk; from < last; from += TILE) {
        if (!done) done = *(volatile unsigned*)(beaten + row);
        if (__syncthreads_and(done)) return;
        for (int k = threadIdx.x; k < TILE * WIDE; k += THREADS) {
            const int column = min(from + k / WIDE, last - 1);
            tile[k] = columns[(size_t)column * spacing * WIDE + k % WIDE];
        }
        __syncthreads();
        if (!done)
            for (int j = 0; j < min(TILE, last - from); j++) {
                const double cost = exact_cost(mine.x, tile + j * WIDE);
                equal += cost <= most;
                if (cost < less) {
                    done = true;
                    beaten[row] = 1;
                    break;
                }
            }
    }
    if (!done && equal) atomicAdd(ties + row, equal);
}

// Call see(column, cost) for each column of this block's part and the row of this thread.
template <typename See>
__device__ __forceinline__ void each_cost(const double* rows, const double* columns, int count, int of, int chunk, double* tile, See see) {
    Row mine;
    load_row(rows, count, min((int)(blockIdx.x * THREADS + threadIdx.x), count - 1), mine);
    const int last = min(of, (int)(blockIdx.y + 1) * chunk);
    for (int from = blockIdx.y * chunk; from < last; from += TILE) {
        const int here = min(TILE, last - from);
        __syncthreads();
        for (int k = threadIdx.x; k < here * WIDE; k += THREADS) tile[k] = columns[(size_t)from * WIDE + k];
        __syncthreads();
        for (int j = 0; j < here; j++) see(from + j, exact_cost(mine.x, tile + j * WIDE));
    }
}

// The least cost of each row. Costs are not negative, so their bits compare like the numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
least_costs(const double* __restrict__ rows, const double* __restrict__ columns, int count, int of, int chunk,
            unsigned long long* least) {
    __shared__ double tile[TILE * WIDE];
    double mine = INFINITE;
    each_cost(rows, columns, count, of, chunk, tile, [&](int, double cost) { mine = fmin(mine, cost); });
    const int row = blockIdx.x * THREADS + threadIdx.x;
    if (row < count) atomicMin(least + row, (unsigned long long)__double_as_longlong(mine));
}

// How many columns have the least cost, up to rounding, and how many of those guess the row's secret.
extern "C" __global__ void __launch_bounds__(THREADS)
right_guesses(const double* __restrict__ rows, const double* __restrict__ columns, int count, int of, int chunk,
              const double* __restrict__ least, double rounding, double tolerance, const double* __restrict__ secret,
              const double* __restrict__ guess, unsigned* ties, unsigned* hits) {
    __shared__ double tile[TILE * WIDE];
    const int row = blockIdx.x * THREADS + threadIdx.x;
    const double most = least[min(row, count - 1)] + rounding, wanted = secret[min(row, count - 1)];
    const double width = tolerance * fabs(wanted);
    unsigned equal = 0, right = 0;
    each_cost(rows, columns, count, of, chunk, tile, [&](int column, double cost) {
        if (cost <= most) equal++, right += fabs(guess[column] - wanted) <= width;
    });
    if (row < count && equal) atomicAdd(ties + row, equal), atomicAdd(hits + row, right);
}
