// The cheapest columns of each row, from all pairs of rows and columns; see pair_scan.py. A key holds the bits of the cost
// above the turn of the column. The keys of a row are all different, so its `keep` smallest keys are well defined, however many
// columns have the same cost.
#define BATCH 8
#define UNUSED 0x7f800000u  // the bits of an infinite cost mark an unused entry
typedef unsigned long long Key;

// The r-th row of this thread. Its rows are THREADS apart, so that neighboring threads read neighboring rows.
__device__ __forceinline__ int row_of(int r) { return blockIdx.x * THREADS * ROWS + r * THREADS + threadIdx.x; }

// Load TILE columns into shared memory, from column number `from` on; column numbers are `spacing` apart in the file.
__device__ __forceinline__ void load_tile(const Real* columns, int from, int last, int spacing, uint4* tile) {
    constexpr int words = WIDE * sizeof(Real) / 16;
    __syncthreads();
    for (int k = threadIdx.x; k < TILE * words; k += THREADS) {
        const int column = min(from + k / words, last - 1);
        tile[k] = reinterpret_cast<const uint4*>(columns)[(size_t)column * spacing * words + k % words];
    }
    __syncthreads();
}

__device__ __forceinline__ void load_column(const uint4* tile, int j, Real (&y)[WIDE]) {
    constexpr int words = WIDE * sizeof(Real) / 16;
#pragma unroll
    for (int w = 0; w < words; w++) reinterpret_cast<uint4*>(y)[w] = tile[j * words + w];
}

// Write the cost of every row and every `seen` column.
extern "C" __global__ void __launch_bounds__(THREADS)
all_costs(const Real* __restrict__ rows, const Real* __restrict__ columns, int stride, int count, int seen, int spacing, int chunk,
          float* out) {
    __shared__ uint4 tile[TILE * WIDE * sizeof(Real) / 16];
    Row row[ROWS];
    alignas(16) Real y[WIDE];
    float cost[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) load_row(rows, stride, min(row_of(r), count - 1), row[r]);
    const int last = min(seen, (int)(blockIdx.y + 1) * chunk);
    for (int from = blockIdx.y * chunk; from < last; from += TILE) {
        load_tile(columns, from, last, spacing, tile);
        for (int j = 0; j < min(TILE, last - from); j++) {
            load_column(tile, j, y);
            costs_of(row, y, cost);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (row_of(r) < count) out[(size_t)(from + j) * count + row_of(r)] = cost[r];
        }
    }
}

// An upper bound of the k-th smallest cost of each row, by bisection of its bits between the smallest and the largest cost.
extern "C" __global__ void kth_smallest(const float* costs, int count, int some, int k, float* limit) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    unsigned low = UNUSED, high = 0;
    for (int j = 0; j < some; j++) {
        const unsigned bits = __float_as_uint(costs[(size_t)j * count + row]);
        low = min(low, bits), high = max(high, bits);
    }
    if (k < some)
        for (int step = 0; step < BISECTION_STEPS; step++) {  // the k-th smallest is in [low, high]
            const unsigned middle = low + (high - low) / 2;
            int below = 0;
            for (int j = 0; j < some; j++) below += __float_as_uint(costs[(size_t)j * count + row]) <= middle;
            if (below >= k) high = middle; else low = middle;
        }
    limit[row] = __uint_as_float(high);
}

// List the columns that cost at most the limit. A thread reserves BATCH entries of a row's list at a time, to keep atomic
// additions rare, and marks the entries that it did not need as unused at the end.
extern "C" __global__ void __launch_bounds__(THREADS)
list_within(const Real* __restrict__ rows, const Real* __restrict__ columns, int stride, int count, int seen, int spacing, int chunk,
            const float* __restrict__ limit, unsigned capacity, unsigned* lengths, uint2* list) {
    __shared__ uint4 tile[TILE * WIDE * sizeof(Real) / 16];
    Row row[ROWS];
    alignas(16) Real y[WIDE];
    float cost[ROWS], most[ROWS];
    unsigned next[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        load_row(rows, stride, min(row_of(r), count - 1), row[r]);
        most[r] = row_of(r) < count ? limit[row_of(r)] : -1.0f, next[r] = 0;
    }
    const int last = min(seen, (int)(blockIdx.y + 1) * chunk);
    for (int from = blockIdx.y * chunk; from < last; from += TILE) {
        load_tile(columns, from, last, spacing, tile);
        const int here = min(TILE, last - from);
#pragma unroll 2
        for (int j = 0; j < here; j++) {
            load_column(tile, j, y);
            costs_of(row, y, cost);
            bool any = false;
#pragma unroll
            for (int r = 0; r < ROWS; r++) any |= cost[r] <= most[r];
            if (any) {
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    if (cost[r] <= most[r]) {
                        if (next[r] % BATCH == 0) next[r] = atomicAdd(lengths + row_of(r), BATCH);
                        if (next[r] < capacity)
                            list[(size_t)row_of(r) * capacity + next[r]] = make_uint2(__float_as_uint(cost[r]), (from + j) * spacing);
                        next[r]++;
                    }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        for (; next[r] % BATCH; next[r]++)
            if (next[r] < capacity) list[(size_t)row_of(r) * capacity + next[r]] = make_uint2(UNUSED, 0u);
}

// The bin that holds the `left`-th smallest of the keys counted in 256 bins, found by one warp. The keys in the bins before it
// are subtracted from `left`.
__device__ unsigned digit_of(const unsigned* bins, unsigned& left) {
    const int lane = threadIdx.x % 32;
    unsigned mine = 0, digit = 0, before = 0;
    for (int k = 0; k < 8; k++) mine += bins[lane * 8 + k];
    unsigned upto = mine;
    for (int step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(~0u, upto, step);
        if (lane >= step) upto += other;
    }
    const int owner = __ffs(__ballot_sync(~0u, upto >= left)) - 1;
    if (lane == owner) {
        before = upto - mine;
        for (digit = lane * 8; before + bins[digit] < left; digit++) before += bins[digit];
    }
    left -= __shfl_sync(~0u, before, owner);
    return __shfl_sync(~0u, digit, owner);
}

__device__ __forceinline__ Key key_of(uint2 entry, unsigned scatter) { return (Key)entry.x << 32 | (entry.y ^ scatter); }

// The keep-th smallest key of a list, found by one warp with a radix selection over `digits` digits of 8 bits; four digits cover
// the cost.
__device__ Key kth_key(const uint2* list, unsigned length, unsigned keep, unsigned scatter, int digits, unsigned* bins) {
    const int lane = threadIdx.x % 32;
    Key prefix = 0, mask = 0;
    unsigned left = keep;
    for (int shift = 56; shift >= 64 - 8 * digits; shift -= 8) {
        for (int k = lane; k < 256; k += 32) bins[k] = 0;
        __syncwarp();
        for (unsigned k = lane; k < length; k += 32) {
            const Key key = key_of(list[k], scatter);
            if ((key & mask) == prefix) atomicAdd(&bins[(key >> shift) & 255], 1u);
        }
        __syncwarp();
        const unsigned digit = digit_of(bins, left);
        prefix |= (Key)digit << shift;
        mask |= (Key)255 << shift;
        __syncwarp();
        if (bins[digit] == left) return prefix | ~mask;  // all keys of this bin are among the smallest
    }
    return prefix | ~mask;
}

__device__ unsigned entries(const uint2* list, unsigned length) {
    unsigned real = 0;
    for (unsigned k = threadIdx.x % 32; k < length; k += 32) real += list[k].x < UNUSED;
    for (int step = 16; step; step /= 2) real += __shfl_xor_sync(~0u, real, step);
    return real;
}

// Make the keep-th smallest cost of each list the next limit; one warp per list. The limit of a list that overflowed stays.
extern "C" __global__ void __launch_bounds__(128)
tighten_limit(int count, unsigned keep, unsigned capacity, const unsigned* lengths, const uint2* list, float* limit) {
    __shared__ unsigned bins[4][256];
    const int warp = threadIdx.x / 32, row = blockIdx.x * 4 + warp;
    if (row >= count || lengths[row] > capacity) return;
    const uint2* mine = list + (size_t)row * capacity;
    const unsigned length = lengths[row];
    if (entries(mine, length) < keep) return;
    const Key key = kth_key(mine, length, keep, 0, 4, bins[warp]);
    if (threadIdx.x % 32 == 0) limit[row] = __uint_as_float(min((unsigned)(key >> 32), UNUSED));
}

// The `keep` smallest keys of each list, in order; one warp per row. Rows whose list overflowed or is too short are marked in
// `incomplete`.
extern "C" __global__ void __launch_bounds__(128)
select_keys(int count, unsigned keep, unsigned capacity, const unsigned* lengths, const uint2* list, const unsigned* scatter, Key* keys,
            unsigned char* incomplete) {
    __shared__ unsigned bins[4][256];
    extern __shared__ Key sorted[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * 4 + warp;
    if (row >= count) return;
    const uint2* mine = list + (size_t)row * capacity;
    const unsigned length = min(lengths[row], capacity);
    const bool fails = lengths[row] > capacity || entries(mine, length) < keep;
    if (lane == 0) incomplete[row] = fails;
    if (fails) return;
    const Key most = kth_key(mine, length, keep, scatter[row], 8, bins[warp]);
    Key* best = sorted + warp * keep;
    unsigned filled = 0;
    for (unsigned start = 0; start < length; start += 32) {
        const unsigned k = start + lane;
        const Key key = k < length ? key_of(mine[k], scatter[row]) : ~(Key)0;
        const unsigned vote = __ballot_sync(~0u, key <= most);
        if (key <= most) best[filled + __popc(vote & ((1u << lane) - 1))] = key;
        filled += __popc(vote);
    }
    __syncwarp();
    for (unsigned k = lane; k < keep; k += 32) {
        unsigned rank = 0;
        for (unsigned j = 0; j < keep; j++) rank += best[j] < best[k];
        keys[(size_t)row * keep + rank] = best[k];
    }
}

// The `keep` smallest keys of single rows, from all columns and without a list: a radix selection over the keys. One block per row.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS)
search_rows(const Real* __restrict__ rows, const Real* __restrict__ columns, int stride, int columns_count, const int* which,
            unsigned keep, const unsigned* scatter, Key* keys) {
    __shared__ unsigned bins[256], chosen[2], filled;
    const int at = which[blockIdx.x];
    Row row[ROWS];
    alignas(16) Real y[WIDE];
    float cost[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) load_row(rows, stride, at, row[r]);
    Key prefix = 0, mask = 0, most = ~(Key)0;
    unsigned left = keep;
    for (int shift = 56;; shift -= 8) {  // until the keep-th key is known; one more pass then writes the keys up to it
        for (int k = threadIdx.x; k < 256; k += SEARCH_THREADS) bins[k] = 0;
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        const bool known = most != ~(Key)0;
        for (int j = threadIdx.x; j < columns_count; j += SEARCH_THREADS) {
            load_column(reinterpret_cast<const uint4*>(columns), j, y);
            costs_of(row, y, cost);
            const Key key = key_of(make_uint2(__float_as_uint(cost[0]), j), scatter[at]);
            if (known) {
                if (key <= most) keys[(size_t)at * keep + atomicAdd(&filled, 1u)] = key;
            } else if ((key & mask) == prefix) {
                atomicAdd(&bins[(key >> shift) & 255], 1u);
            }
        }
        __syncthreads();
        if (known) return;
        if (threadIdx.x < 32) {
            const unsigned digit = digit_of(bins, left);
            if (threadIdx.x == 0) chosen[0] = digit, chosen[1] = left;
        }
        __syncthreads();
        left = chosen[1];
        prefix |= (Key)chosen[0] << shift;
        mask |= (Key)255 << shift;
        if (bins[chosen[0]] == left) most = prefix | ~mask;
        __syncthreads();
    }
}
