// Bids of an auction. All free records bid at the same prices, one warp for each; the highest bid for a target wins, and of
// equal bids that of the higher record. So the result does not depend on the order of the threads. A bid is a whole number
// below 2^40, packed with its record into one key. Prices only rise, so keys of earlier rounds never win again.
typedef unsigned long long Key;
#define ROW_BITS 24
#define ALL_LANES 0xffffffffu

struct Best {
    double first, second;
    int target;  // -1: no profit
};

// The two best profits of record i, at least 0; of equal profits the first edge wins.
__device__ Best two_best(const long long* start, const int* other, const double* weight, const double* price, int i) {
    Best mine = {0.0, 0.0, -1};
    int edge = 0x7fffffff;
    const long long from = start[i], to = start[i + 1];
    for (long long e = from + threadIdx.x % 32; e < to; e += 32) {
        const int j = other[e];
        const double profit = weight[e] - price[j];
        if (profit > mine.first) {
            mine.second = mine.first;
            mine.first = profit;
            mine.target = j;
            edge = (int)(e - from);
        } else if (profit > mine.second) {
            mine.second = profit;
        }
    }
    for (int step = 16; step; step /= 2) {
        const double first = __shfl_xor_sync(ALL_LANES, mine.first, step);
        const double second = __shfl_xor_sync(ALL_LANES, mine.second, step);
        const int target = __shfl_xor_sync(ALL_LANES, mine.target, step);
        const int at = __shfl_xor_sync(ALL_LANES, edge, step);
        if (first > mine.first || (first == mine.first && at < edge)) {
            mine.second = fmax(mine.first, second);
            mine.first = first;
            mine.target = target;
            edge = at;
        } else {
            mine.second = fmax(mine.second, first);
        }
    }
    return mine;
}

__device__ void make_bid(const long long* start, const int* other, const double* weight, const double* price, double step,
                         int i, Key* highest, Key* own, int* target) {
    const Best best = two_best(start, other, weight, price, i);
    if (threadIdx.x % 32) return;
    target[i] = best.target;
    if (best.target < 0) return;
    const double bid = price[best.target] + fmin(best.first, best.first - best.second + step);
    own[i] = ((Key)bid << ROW_BITS) | (Key)i;
    atomicMax(&highest[best.target], own[i]);
}

// Give the target to the record if its bid is the highest; the record that is left without a target joins the next queue.
__device__ void settle_bid(int i, const Key* highest, const Key* own, const int* target, double* price, int* partner,
                           int* owner, int* next, int* next_count) {
    const int j = target[i];
    if (j < 0) return;
    int loser = i;
    if (*(volatile const Key*)&highest[j] == own[i]) {
        loser = owner[j];
        owner[j] = i;
        partner[i] = j;
        price[j] = (double)(own[i] >> ROW_BITS);
        if (loser >= 0) partner[loser] = -1;
    }
    if (loser >= 0) next[atomicAdd(next_count, 1)] = loser;
}

extern "C" __global__ void bid_round(const long long* start, const int* other, const double* weight, const double* price,
                                     double step, const int* queue, int count, Key* highest, Key* own, int* target) {
    const int k = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (k < count) make_bid(start, other, weight, price, step, queue[k], highest, own, target);
}

extern "C" __global__ void settle_round(const int* queue, int count, const Key* highest, const Key* own, const int* target,
                                        double* price, int* partner, int* owner, int* next, int* next_count) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < count) settle_bid(queue[k], highest, own, target, price, partner, owner, next, next_count);
}

// Rounds of few records, by one block, until nobody bids or max_bids are made; `made` returns the number of bids.
extern "C" __global__ void bid_to_end(const long long* start, const int* other, const double* weight, double* price,
                                      double step, int* queue, int count, int* next, Key* highest, Key* own, int* target,
                                      int* partner, int* owner, long long max_bids, long long* made) {
    __shared__ int next_count;
    long long bids = 0;
    while (count > 0 && bids < max_bids) {
        if (threadIdx.x == 0) next_count = 0;
        for (int k = threadIdx.x / 32; k < count; k += blockDim.x / 32)
            make_bid(start, other, weight, price, step, queue[k], highest, own, target);
        __syncthreads();
        for (int k = threadIdx.x; k < count; k += blockDim.x)
            settle_bid(queue[k], highest, own, target, price, partner, owner, next, &next_count);
        __syncthreads();
        bids += count;
        count = next_count;
        int* const swap = queue;
        queue = next;
        next = swap;
        __syncthreads();
    }
    if (threadIdx.x == 0) *made = bids;
}

// u_i = max(0, max_j w_ij - v_j), one warp for each record.
extern "C" __global__ void best_profit(const long long* start, const int* other, const double* weight, const double* price,
                                       int n, double* profit) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (i >= n) return;
    const Best best = two_best(start, other, weight, price, i);
    if (threadIdx.x % 32 == 0) profit[i] = best.first;
}
