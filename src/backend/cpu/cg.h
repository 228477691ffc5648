/* Inside of the fused CG engine: its plan, and the vector kernels that come in one copy an instruction set.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CPU_CG_H
#define HT_BACKEND_CPU_CG_H
#include "base/barrier.h"
#include "backend/cpu/cpu.h"

/* A unit is a run of rows with the tiles that produce them: the grain of work and of the sums. */
typedef struct ht_cg_unit {
  int64_t row, rows, tile, tiles;
  int64_t ahead; /* last unit of the same part whose direction must be ready before this unit's product */
  int early;     /* another part's tiles read this unit's direction */
} ht_cg_unit;

/* Sums of one unit. */
typedef struct ht_cg_sums {
  double rz, rr, pap, rms, sms; /* r'M^-1 r, ||r||^2, p's, r'M^-1 s, s'M^-1 s */
} ht_cg_sums;

struct ht_cg_plan {
  ht_context *ctx;
  int64_t units, parts;
  ht_cg_unit *unit;
  int64_t *part;       /* parts + 1: first unit of each part */
  ht_cg_sums *sums[2]; /* of alternating sweeps: the old ones may be read while the new are written */
  double *work;        /* two vectors, for measuring errors */
  ht_barrier barrier;
};

/* Fill state->error2 for the current direction. */
void ht_cpu_cg_measure_error(const ht_cg_plan *plan, const ht_split_view *a, ht_cg_state *state);

/* What the vector kernels need to know of the scaling and the preconditioner. */
typedef struct ht_cg_diagonal {
  const double *inverse_diagonal; /* NULL: M = I in the caller's variables */
  const int16_t *scale_exponent;  /* NULL: one exponent for all */
  double uniform;                 /* s^2 where scale_exponent is NULL */
} ht_cg_diagonal;

typedef struct ht_cg_kernels {
  /* x += alpha p; r -= alpha s; p = M^-1 r + beta p; sums rz and rr. Rows [begin, end), multiples of HT_LANES. */
  void (*update)(const ht_cg_state *v, const ht_cg_diagonal *d, int64_t begin, int64_t end, double alpha, double beta, ht_cg_sums *sums);
  /* sums pap, rms, sms over the rows whose product s is ready. */
  void (*reduce)(const ht_cg_state *v, const ht_cg_diagonal *d, int64_t begin, int64_t end, ht_cg_sums *sums);
} ht_cg_kernels;

extern const ht_cg_kernels ht_cpu_cg_portable, ht_cpu_cg_avx2, ht_cpu_cg_avx512;

#endif
