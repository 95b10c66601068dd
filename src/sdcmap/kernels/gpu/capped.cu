// The cost of a pair in single precision: the sum over fields of min(cap, |slope (a - b)|), or of (a - b)^2.
// Each field takes three instructions: a product or a difference, a minimum, a sum. Products are fused explicitly, so that the
// cost of a pair is the same to the last bit in every kernel.
typedef float Real;
__constant__ float cap[FIELDS];

struct Row {
    float x[FIELDS];  // slope times a
#if SLOPED
    float slope[FIELDS];
#endif
};

// rows: (field, record). Where each record has its own slopes, they follow the fields.
__device__ __forceinline__ void load_row(const Real* rows, int stride, int at, Row& row) {
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        row.x[f] = rows[(size_t)f * stride + at];
#if SLOPED
        row.slope[f] = rows[(size_t)(FIELDS + f) * stride + at];
#endif
    }
}

__device__ __forceinline__ void add_field(const Row& row, const Real* y, int f, float& cost) {
#if SLOPED
    cost += fminf(fabsf(fmaf(y[f], row.slope[f], -row.x[f])), cap[f]);
#elif SQUARED
    const float away = row.x[f] - y[f];
    cost = fmaf(away, away, cost);
#else
    cost += fminf(fabsf(row.x[f] - y[f]), cap[f]);
#endif
}

__device__ __forceinline__ void costs_of(const Row (&row)[ROWS], const Real* y, float (&cost)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) cost[r] = 0.0f;
#pragma unroll
    for (int f = 0; f < FIELDS; f++)
#pragma unroll
        for (int r = 0; r < ROWS; r++) add_field(row[r], y, f, cost[r]);
}
