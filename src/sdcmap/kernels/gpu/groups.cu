// Groups of near records: MDAV (Domingo-Ferrer, Torra 2005) on numbers, or on numbers and codes with Gower's distance. One
// kernel makes group after group: each block looks at its own records, then all meet, and each works out for itself what all
// of them found. Distances are summed as kernels/grouping does, without fused products, so that the groups are the same.
struct Entry {
    double distance;
    int row;  // -1: none
};

__device__ __forceinline__ bool nearer(const Entry& a, const Entry& b) {
    if (a.row < 0 || b.row < 0) return a.row >= 0;
    return a.distance < b.distance || (a.distance == b.distance && a.row < b.row);
}
__device__ __forceinline__ bool farther(const Entry& a, const Entry& b) {
    if (a.row < 0 || b.row < 0) return a.row >= 0;
    return a.distance > b.distance || (a.distance == b.distance && a.row < b.row);
}

// The best entry of a block, for all its threads.
template <bool NEAR>
__device__ Entry best_of_block(Entry mine, Entry* scratch) {
    for (int step = 16; step; step /= 2) {
        const Entry other = {__shfl_xor_sync(~0u, mine.distance, step), __shfl_xor_sync(~0u, mine.row, step)};
        if (NEAR ? nearer(other, mine) : farther(other, mine)) mine = other;
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = scratch[0];
    for (int k = 1; k < MEMBERS / 32; k++)
        if (NEAR ? nearer(scratch[k], mine) : farther(scratch[k], mine)) mine = scratch[k];
    __syncthreads();
    return mine;
}

__device__ __forceinline__ void meet(unsigned* arrived, unsigned& round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        round += gridDim.x;
        while (*(volatile unsigned*)arrived < round) {}
        __threadfence();
    }
    __syncthreads();
}

__device__ __forceinline__ double distance_of(const double* x, int stride, int at, const double* q) {
    double total = 0.0;
#pragma unroll
    for (int j = 0; j < NUMBERS; j++) {
        const double gap = x[(size_t)j * stride + at] - q[j];
        total += MIXED ? fabs(gap) : gap * gap;
    }
#pragma unroll
    for (int j = NUMBERS; j < NUMBERS + CODES; j++) total += x[(size_t)j * stride + at] != q[j];
    return total;
}

// x: (column, record), numbers before codes, in the order of the file; group: of each record, -1: free. sums, counts: of the
// free ones' numbers and codes, the counts once for each block. Groups are made until `until` records are left, or fewer.
extern "C" __global__ void __launch_bounds__(MEMBERS, 1)
mdav(const double* __restrict__ x, int stride, int count, int size, int until, int left, int made, int* group,
     const double* sums, int* counts, int codes, Entry* found, unsigned* arrived, int* done) {
    constexpr int width = NUMBERS + CODES;
    __shared__ double centre[width], total[width];
    __shared__ Entry scratch[MEMBERS / 32];
    __shared__ int chosen[LARGEST];  // records of the group that is made
    __shared__ int fresh[LARGEST];
    const int per_block = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * per_block;
    const int last = min(count, first + per_block);
    int* mine = counts + (size_t)blockIdx.x * CODES * codes;
    unsigned round = 0, turn = 0;
    for (int j = threadIdx.x; j < NUMBERS; j += MEMBERS) total[j] = sums[j];
    Entry held[HELD];  // distances of this thread's records, in registers
    __syncthreads();

    // Look at all free records from `centre`: the `wanted` nearest into chosen[at...], the farthest given back.
    auto look = [&](int wanted, int at) -> int {
        Entry* slot = found + (size_t)(turn++ & 1) * gridDim.x * (LARGEST + 1);
        Entry far = {0.0, -1};
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            const int i = first + k * MEMBERS + threadIdx.x;
            held[k].row = -1;
            if (i < last && group[i] < 0) {
                held[k] = {distance_of(x, stride, i, centre), i};
                if (farther(held[k], far)) far = held[k];
            }
        }
        for (int w = 0; w < wanted; w++) {
            Entry near = {0.0, -1};
#pragma unroll
            for (int k = 0; k < HELD; k++)
                if (nearer(held[k], near)) near = held[k];
            near = best_of_block<true>(near, scratch);
#pragma unroll
            for (int k = 0; k < HELD; k++)
                if (held[k].row == near.row) held[k].row = -1;
            if (threadIdx.x == 0) slot[(size_t)blockIdx.x * (LARGEST + 1) + w] = near;
        }
        far = best_of_block<false>(far, scratch);
        if (threadIdx.x == 0) slot[(size_t)blockIdx.x * (LARGEST + 1) + LARGEST] = far;
        meet(arrived, round);
        Entry none = {0.0, -1};
        far = none;
        for (int b = threadIdx.x; b < gridDim.x; b += MEMBERS) {
            const Entry other = slot[(size_t)b * (LARGEST + 1) + LARGEST];
            if (farther(other, far)) far = other;
        }
        far = best_of_block<false>(far, scratch);
        Entry before = none;  // the last one that was taken
        for (int w = 0; w < wanted; w++) {
            Entry near = none;
            for (int k = threadIdx.x; k < gridDim.x * wanted; k += MEMBERS) {
                const Entry other = slot[(size_t)(k / wanted) * (LARGEST + 1) + k % wanted];
                if ((before.row < 0 || nearer(before, other)) && nearer(other, near)) near = other;
            }
            before = best_of_block<true>(near, scratch);
            if (threadIdx.x == 0) chosen[at + w] = before.row;
        }
        __syncthreads();
        return far.row;
    };
    auto stand_at = [&](int i) {
        for (int j = threadIdx.x; j < width; j += MEMBERS) centre[j] = x[(size_t)j * stride + i];
        __syncthreads();
    };
    // The free records are fewer by those chosen; every block works out the same sums and frequencies.
    auto take = [&]() {
        for (int w = threadIdx.x; w < size; w += MEMBERS) {
            fresh[w] = chosen[w];
            if (chosen[w] >= first && chosen[w] < last) group[chosen[w]] = made;
        }
        __syncthreads();
        for (int j = threadIdx.x; j < width; j += MEMBERS)
            for (int w = 0; w < size; w++) {
                if (j < NUMBERS) total[j] -= x[(size_t)j * stride + fresh[w]];
                else mine[(j - NUMBERS) * codes + (int)x[(size_t)j * stride + fresh[w]]]--;
            }
        made++, left -= size;
        __syncthreads();
    };
    // The group of record r, which is made; gives back the free record farthest from it.
    auto group_of = [&](int r) -> int {
        if (threadIdx.x == 0) chosen[0] = r;
        if (r >= first && r < last && threadIdx.x == 0) group[r] = made;
        stand_at(r);
        int far = look(size - 1, 1);
        take();
        bool gone = false;
        for (int w = 1; w < size; w++) gone |= fresh[w] == far;
        __syncthreads();
        if (gone && left > 0) far = look(0, 0);  // all that are left are as far as those that were taken
        return far;
    };

    while (left >= 2 * size && !(left <= until && left >= 3 * size)) {
        for (int j = threadIdx.x; j < width; j += MEMBERS) {
            if (j < NUMBERS) {
                centre[j] = total[j] / left;
            } else {
                int most = 0;
                for (int c = 1; c < codes; c++)
                    if (mine[(j - NUMBERS) * codes + c] > mine[(j - NUMBERS) * codes + most]) most = c;
                centre[j] = most;
            }
        }
        __syncthreads();
        const int far = group_of(look(0, 0));
        if (left >= 2 * size) group_of(far);
    }
    if (left < 2 * size && left > 0) {
        for (int i = first + threadIdx.x; i < last; i += MEMBERS)
            if (group[i] < 0) group[i] = made;
        made++, left = 0;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) done[0] = made, done[1] = left;
}
