// Count the agreement patterns of all pairs. A thread holds one known record and compares it with tiles of released
// records. Ranks are whole numbers, so the counts are those of risk/linkage/agreement_patterns.py.
extern "C" __global__ void __launch_bounds__(THREADS)
count_patterns(const unsigned* __restrict__ low, const unsigned* __restrict__ span, const unsigned* __restrict__ digit,
               const unsigned* __restrict__ ranks, const unsigned* __restrict__ missing, int count, int of, int chunk,
               unsigned long long* total) {
    __shared__ unsigned tile[TILE * FIELDS];
#if IN_SHARED
    __shared__ unsigned counter[PATTERNS];
    for (int k = threadIdx.x; k < PATTERNS; k += THREADS) counter[k] = 0;
#else
    unsigned long long* counter = total;
#endif
    const int row = blockIdx.x * THREADS + threadIdx.x, mine = min(row, count - 1);
    unsigned first[FIELDS], width[FIELDS], step[FIELDS], gap[FIELDS];
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        first[f] = low[(size_t)f * count + mine], width[f] = span[(size_t)f * count + mine];
        step[f] = digit[(size_t)f * count + mine], gap[f] = missing[f];
    }
    // Equal patterns often follow each other: they are added to the counter together.
    unsigned last = 0, run = 0;
    const int end = min(of, (int)(blockIdx.y + 1) * chunk);
    for (int from = blockIdx.y * chunk; from < end; from += TILE) {
        const int here = min(TILE, end - from);
        __syncthreads();
        for (int k = threadIdx.x; k < here * FIELDS; k += THREADS) tile[k] = ranks[(size_t)from * FIELDS + k];
        __syncthreads();
        for (int j = 0; row < count && j < here; j++) {
            unsigned number = 0;
#pragma unroll
            for (int f = 0; f < FIELDS; f++) {
                const unsigned rank = tile[j * FIELDS + f];
                number += rank - first[f] <= width[f] ? step[f] : 0;
#if HAS_MISSING
                number += rank != gap[f] ? step[f] : 0;
#endif
            }
            if (number != last) {
                if (run) atomicAdd(counter + last, run);
                last = number, run = 0;
            }
            run++;
        }
    }
    if (run) atomicAdd(counter + last, run);
#if IN_SHARED
    __syncthreads();
    for (int k = threadIdx.x; k < PATTERNS; k += THREADS)
        if (counter[k]) atomicAdd(total + k, (unsigned long long)counter[k]);
#endif
}
