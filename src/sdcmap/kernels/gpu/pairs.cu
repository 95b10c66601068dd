// All pairs of rows and columns: the cheapest columns of each row. See pairs.py. A cost's bits above a column's turn are its
// key; the keys of a row are all different, so that its `keep` smallest are one set, however many columns cost the same.
#define BATCH 8
#define NOTHING 0x7f800000u  // the bits of an infinite cost: an entry that is none
typedef unsigned long long Key;

// The rows of this thread: one in THREADS of those of the block.
__device__ __forceinline__ int row_of(int r) { return blockIdx.x * THREADS * ROWS + r * THREADS + threadIdx.x; }

// TILE columns from the one numbered `from`, `spacing` apart, as the block shares them.
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

// Every cost of some columns.
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

// A bound of the k-th smallest cost of each row: its bits, halved between the least and the largest.
extern "C" __global__ void kth_smallest(const float* costs, int count, int some, int k, float* limit) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    unsigned low = NOTHING, high = 0;
    for (int j = 0; j < some; j++) {
        const unsigned bits = __float_as_uint(costs[(size_t)j * count + row]);
        low = min(low, bits), high = max(high, bits);
    }
    if (k < some)
        for (int turn = 0; turn < TURNS; turn++) {  // the k-th smallest is in [low, high]
            const unsigned middle = low + (high - low) / 2;
            int below = 0;
            for (int j = 0; j < some; j++) below += __float_as_uint(costs[(size_t)j * count + row]) <= middle;
            if (below >= k) high = middle; else low = middle;
        }
    limit[row] = __uint_as_float(high);
}

// List what costs at most the limit. A thread takes places for BATCH entries of a row at once, and fills up at the end those it
// did not need.
extern "C" __global__ void __launch_bounds__(THREADS)
within(const Real* __restrict__ rows, const Real* __restrict__ columns, int stride, int count, int seen, int spacing, int chunk,
       const float* __restrict__ limit, unsigned room, unsigned* taken, uint2* list) {
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
                        if (next[r] % BATCH == 0) next[r] = atomicAdd(taken + row_of(r), BATCH);
                        if (next[r] < room)
                            list[(size_t)row_of(r) * room + next[r]] = make_uint2(__float_as_uint(cost[r]), (from + j) * spacing);
                        next[r]++;
                    }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        for (; next[r] % BATCH; next[r]++)
            if (next[r] < room) list[(size_t)row_of(r) * room + next[r]] = make_uint2(NOTHING, 0u);
}

// The digit of the `left`-th smallest among those counted in 256 bins, by a warp; what comes before it is taken off `left`.
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

// The keep-th smallest key of a list, by its digits, in a warp; `digits` of them, four for the cost alone.
__device__ Key kth_key(const uint2* list, unsigned held, unsigned keep, unsigned scatter, int digits, unsigned* bins) {
    const int lane = threadIdx.x % 32;
    Key prefix = 0, mask = 0;
    unsigned left = keep;
    for (int shift = 56; shift >= 64 - 8 * digits; shift -= 8) {
        for (int k = lane; k < 256; k += 32) bins[k] = 0;
        __syncwarp();
        for (unsigned k = lane; k < held; k += 32) {
            const Key key = key_of(list[k], scatter);
            if ((key & mask) == prefix) atomicAdd(&bins[(key >> shift) & 255], 1u);
        }
        __syncwarp();
        const unsigned digit = digit_of(bins, left);
        prefix |= (Key)digit << shift;
        mask |= (Key)255 << shift;
        __syncwarp();
        if (bins[digit] == left) return prefix | ~mask;  // all of them are wanted
    }
    return prefix | ~mask;
}

__device__ unsigned entries(const uint2* list, unsigned held) {
    unsigned real = 0;
    for (unsigned k = threadIdx.x % 32; k < held; k += 32) real += list[k].x < NOTHING;
    for (int step = 16; step; step /= 2) real += __shfl_xor_sync(~0u, real, step);
    return real;
}

// The keep-th smallest cost of each list is the next limit; a warp a list. A list that overflowed leaves it as it is.
extern "C" __global__ void __launch_bounds__(128)
tighten(int count, unsigned keep, unsigned room, const unsigned* taken, const uint2* list, float* limit) {
    __shared__ unsigned bins[4][256];
    const int warp = threadIdx.x / 32, row = blockIdx.x * 4 + warp;
    if (row >= count || taken[row] > room) return;
    const uint2* mine = list + (size_t)row * room;
    const unsigned held = taken[row];
    if (entries(mine, held) < keep) return;
    const Key key = kth_key(mine, held, keep, 0, 4, bins[warp]);
    if (threadIdx.x % 32 == 0) limit[row] = __uint_as_float(min((unsigned)(key >> 32), NOTHING));
}

// The `keep` smallest keys of each list, in order; a warp a row. Rows whose list overflowed, or holds too few, are told in `odd`.
extern "C" __global__ void __launch_bounds__(128)
settle(int count, unsigned keep, unsigned room, const unsigned* taken, const uint2* list, const unsigned* scatter, Key* keys,
       unsigned char* odd) {
    __shared__ unsigned bins[4][256];
    extern __shared__ Key sorted[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * 4 + warp;
    if (row >= count) return;
    const uint2* mine = list + (size_t)row * room;
    const unsigned held = min(taken[row], room);
    const bool fails = taken[row] > room || entries(mine, held) < keep;
    if (lane == 0) odd[row] = fails;
    if (fails) return;
    const Key most = kth_key(mine, held, keep, scatter[row], 8, bins[warp]);
    Key* best = sorted + warp * keep;
    unsigned kept = 0;
    for (unsigned start = 0; start < held; start += 32) {
        const unsigned k = start + lane;
        const Key key = k < held ? key_of(mine[k], scatter[row]) : ~(Key)0;
        const unsigned vote = __ballot_sync(~0u, key <= most);
        if (key <= most) best[kept + __popc(vote & ((1u << lane) - 1))] = key;
        kept += __popc(vote);
    }
    __syncwarp();
    for (unsigned k = lane; k < keep; k += 32) {
        unsigned rank = 0;
        for (unsigned j = 0; j < keep; j++) rank += best[j] < best[k];
        keys[(size_t)row * keep + rank] = best[k];
    }
}

// The same for single rows, from all columns and without a list, by the digits of their keys; a block a row.
extern "C" __global__ void __launch_bounds__(SEARCHERS)
search(const Real* __restrict__ rows, const Real* __restrict__ columns, int stride, int columns_count, const int* which,
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
    for (int shift = 56;; shift -= 8) {  // until the keep-th is known, and then once more, to write those up to it
        for (int k = threadIdx.x; k < 256; k += SEARCHERS) bins[k] = 0;
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        const bool known = most != ~(Key)0;
        for (int j = threadIdx.x; j < columns_count; j += SEARCHERS) {
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
