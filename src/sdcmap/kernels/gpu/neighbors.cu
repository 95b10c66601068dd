// Count the neighbors of each point: those with z < near, and those with near <= z < far. z is the distance divided by the
// point's unit. It is computed in double precision, in the order of kernels/neighbors/box_tree.py and without fused products.
extern "C" __global__ void __launch_bounds__(THREADS)
count_between(const double* __restrict__ rows, const double* __restrict__ columns, int count, int of, int chunk,
              const double* __restrict__ unit, const double* __restrict__ near, const double* __restrict__ far,
              unsigned long long* below, unsigned long long* between) {
    __shared__ double tile[TILE * FIELDS];
    const int row = blockIdx.x * THREADS + threadIdx.x, mine = min(row, count - 1);
    double y[FIELDS];
#pragma unroll
    for (int f = 0; f < FIELDS; f++) y[f] = rows[(size_t)f * count + mine];
    const double one = unit[mine], first = near[mine], second = far[mine];
    unsigned inner = 0, outer = 0;
    const int last = min(of, (int)(blockIdx.y + 1) * chunk);
    for (int from = blockIdx.y * chunk; from < last; from += TILE) {
        const int here = min(TILE, last - from);
        __syncthreads();
        for (int k = threadIdx.x; k < here * FIELDS; k += THREADS) tile[k] = columns[(size_t)from * FIELDS + k];
        __syncthreads();
        for (int j = 0; j < here; j++) {
            double total = 0.0;
#pragma unroll
            for (int f = 0; f < FIELDS; f++) {
                const double step = y[f] - tile[j * FIELDS + f];
                total += step * step;
            }
            const double z = sqrt(total) / one;
            inner += z < first;
            outer += z >= first && z < second;
        }
    }
    if (row < count) {
        if (inner) atomicAdd(below + row, (unsigned long long)inner);
        if (outer) atomicAdd(between + row, (unsigned long long)outer);
    }
}
