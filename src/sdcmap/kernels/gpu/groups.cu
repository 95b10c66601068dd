// Groups of similar records: MDAV (Domingo-Ferrer, Torra 2005) on numbers, or on numbers and codes with Gower's distance. One
// kernel forms group after group. Each block scans its own records and writes its nearest and farthest ones; then all blocks
// wait for each other, and each derives the same group from the results of all. Distances are summed in the order of the CPU
// kernels, without fused products, so that the groups are the same.
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
    for (int k = 1; k < GROUP_THREADS / 32; k++)
        if (NEAR ? nearer(scratch[k], mine) : farther(scratch[k], mine)) mine = scratch[k];
    __syncthreads();
    return mine;
}

// Wait until all blocks have arrived; `round` counts the arrivals to wait for.
__device__ __forceinline__ void wait_for_all_blocks(unsigned* arrived, unsigned& round) {
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

// x: (column, record), numbers before codes, in file order. group: the group of each record, -1 while it is free. sums,
// counts: the sums of the numbers and the frequencies of the codes over the free records; each block has its own copy of the
// frequencies. The kernel stops when at most `until` records are free.
extern "C" __global__ void __launch_bounds__(GROUP_THREADS, 1)
mdav(const double* __restrict__ x, int stride, int count, int size, int until, int left, int groups_done, int* group,
     const double* sums, int* counts, int codes, Entry* exchange, unsigned* arrived, int* done) {
    constexpr int width = NUMBERS + CODES;
    __shared__ double center[width], total[width];
    __shared__ Entry scratch[GROUP_THREADS / 32];
    __shared__ int chosen[LARGEST];  // records of the group being formed
    __shared__ int members[LARGEST];
    const int per_block = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * per_block;
    const int last = min(count, first + per_block);
    int* mine = counts + (size_t)blockIdx.x * CODES * codes;
    unsigned round = 0, turn = 0;
    for (int j = threadIdx.x; j < NUMBERS; j += GROUP_THREADS) total[j] = sums[j];
    Entry own_entry[PER_THREAD];  // distances of this thread's records, in registers
    __syncthreads();

    // Scan all free records: write the `wanted` nearest to `center` into chosen[at...], and return the farthest.
    auto scan = [&](int wanted, int at) -> int {
        Entry* slot = exchange + (size_t)(turn++ & 1) * gridDim.x * (LARGEST + 1);
        Entry far = {0.0, -1};
#pragma unroll
        for (int k = 0; k < PER_THREAD; k++) {
            const int i = first + k * GROUP_THREADS + threadIdx.x;
            own_entry[k].row = -1;
            if (i < last && group[i] < 0) {
                own_entry[k] = {distance_of(x, stride, i, center), i};
                if (farther(own_entry[k], far)) far = own_entry[k];
            }
        }
        for (int w = 0; w < wanted; w++) {
            Entry near = {0.0, -1};
#pragma unroll
            for (int k = 0; k < PER_THREAD; k++)
                if (nearer(own_entry[k], near)) near = own_entry[k];
            near = best_of_block<true>(near, scratch);
#pragma unroll
            for (int k = 0; k < PER_THREAD; k++)
                if (own_entry[k].row == near.row) own_entry[k].row = -1;
            if (threadIdx.x == 0) slot[(size_t)blockIdx.x * (LARGEST + 1) + w] = near;
        }
        far = best_of_block<false>(far, scratch);
        if (threadIdx.x == 0) slot[(size_t)blockIdx.x * (LARGEST + 1) + LARGEST] = far;
        wait_for_all_blocks(arrived, round);
        // Merge the results of all blocks: first the farthest record, then the nearest ones in order.
        Entry none = {0.0, -1};
        far = none;
        for (int b = threadIdx.x; b < gridDim.x; b += GROUP_THREADS) {
            const Entry other = slot[(size_t)b * (LARGEST + 1) + LARGEST];
            if (farther(other, far)) far = other;
        }
        far = best_of_block<false>(far, scratch);
        Entry before = none;  // the last one taken
        for (int w = 0; w < wanted; w++) {
            Entry near = none;
            for (int k = threadIdx.x; k < gridDim.x * wanted; k += GROUP_THREADS) {
                const Entry other = slot[(size_t)(k / wanted) * (LARGEST + 1) + k % wanted];
                if ((before.row < 0 || nearer(before, other)) && nearer(other, near)) near = other;
            }
            before = best_of_block<true>(near, scratch);
            if (threadIdx.x == 0) chosen[at + w] = before.row;
        }
        __syncthreads();
        return far.row;
    };
    auto move_center_to = [&](int i) {
        for (int j = threadIdx.x; j < width; j += GROUP_THREADS) center[j] = x[(size_t)j * stride + i];
        __syncthreads();
    };
    // Remove the chosen records from the free ones; every block updates the same sums and frequencies.
    auto remove_chosen = [&]() {
        for (int w = threadIdx.x; w < size; w += GROUP_THREADS) {
            members[w] = chosen[w];
            if (chosen[w] >= first && chosen[w] < last) group[chosen[w]] = groups_done;
        }
        __syncthreads();
        for (int j = threadIdx.x; j < width; j += GROUP_THREADS)
            for (int w = 0; w < size; w++) {
                if (j < NUMBERS) total[j] -= x[(size_t)j * stride + members[w]];
                else mine[(j - NUMBERS) * codes + (int)x[(size_t)j * stride + members[w]]]--;
            }
        groups_done++, left -= size;
        __syncthreads();
    };
    // Form the group of record r, and return the free record farthest from r.
    auto form_group = [&](int r) -> int {
        if (threadIdx.x == 0) chosen[0] = r;
        if (r >= first && r < last && threadIdx.x == 0) group[r] = groups_done;
        move_center_to(r);
        int far = scan(size - 1, 1);
        remove_chosen();
        bool gone = false;
        for (int w = 1; w < size; w++) gone |= members[w] == far;
        __syncthreads();
        if (gone && left > 0) far = scan(0, 0);  // the farthest record was tied with a member and went into the group
        return far;
    };

    while (left >= 2 * size && !(left <= until && left >= 3 * size)) {
        for (int j = threadIdx.x; j < width; j += GROUP_THREADS) {
            if (j < NUMBERS) {
                center[j] = total[j] / left;
            } else {
                int most = 0;
                for (int c = 1; c < codes; c++)
                    if (mine[(j - NUMBERS) * codes + c] > mine[(j - NUMBERS) * codes + most]) most = c;
                center[j] = most;
            }
        }
        __syncthreads();
        // The record farthest from the center starts a group; the record farthest from that one starts another.
        const int far = form_group(scan(0, 0));
        if (left >= 2 * size) form_group(far);
    }
    // The remaining records, fewer than 2 * size, are the last group.
    if (left < 2 * size && left > 0) {
        for (int i = first + threadIdx.x; i < last; i += GROUP_THREADS)
            if (group[i] < 0) group[i] = groups_done;
        groups_done++, left = 0;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) done[0] = groups_done, done[1] = left;
}
