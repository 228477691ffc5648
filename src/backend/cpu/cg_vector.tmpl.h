/* Vector passes of the fused CG engine, written once with eight lanes; each instruction set's file includes it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "backend/cpu/cg.h"

typedef double v8 __attribute__((vector_size(64)));
typedef int64_t i8 __attribute__((vector_size(64)));
typedef int16_t h8 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))

INLINE void load(v8 *out, const double *from) { memcpy(out, from, sizeof *out); }
INLINE void store(double *to, const v8 *from) { memcpy(to, from, sizeof *from); }

INLINE double sum(const v8 *v) {
  const v8 a = *v;
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* s_i^2 of eight rows: the exponent is doubled and put into the exponent field. */
INLINE void scale_squared(v8 *out, const ht_cg_diagonal *d, int64_t i) {
  if (!d->scale_exponent) {
    *out = (v8){0} + d->uniform;
    return;
  }
  h8 exponent;
  memcpy(&exponent, d->scale_exponent + i, sizeof exponent);
  i8 bits = ((__builtin_convertvector(exponent, i8) << 1) + 1023) << 52;
  memcpy(out, &bits, sizeof bits);
}

INLINE void inverse(v8 *out, const ht_cg_diagonal *d, int64_t i, const v8 *squared) {
  if (!d->inverse_diagonal) {
    *out = *squared;
    return;
  }
  load(out, d->inverse_diagonal + i);
}

static void update(const ht_cg_state *v, const ht_cg_diagonal *d, int64_t begin, int64_t end, double alpha, double beta, ht_cg_sums *sums) {
  v8 rz = {0}, rr = {0};
  for (int64_t i = begin; i < end; i += HT_LANES) {
    v8 x, r, p, s, m, w;
    load(&x, v->x + i);
    load(&r, v->r + i);
    load(&p, v->p + i);
    load(&s, v->s + i);
    scale_squared(&w, d, i);
    inverse(&m, d, i, &w);
    x += alpha * p;
    r -= alpha * s;
    v8 z = m * r;
    rz += r * z;
    rr += w * r * r;
    p = z + beta * p;
    store(v->x + i, &x);
    store(v->r + i, &r);
    store(v->p + i, &p);
  }
  sums->rz = sum(&rz);
  sums->rr = sum(&rr);
}

static void reduce(const ht_cg_state *v, const ht_cg_diagonal *d, int64_t begin, int64_t end, ht_cg_sums *sums) {
  v8 pap = {0}, rms = {0}, sms = {0};
  for (int64_t i = begin; i < end; i += HT_LANES) {
    v8 r, p, s, m, w;
    load(&r, v->r + i);
    load(&p, v->p + i);
    load(&s, v->s + i);
    scale_squared(&w, d, i);
    inverse(&m, d, i, &w);
    v8 ms = m * s;
    pap += p * s;
    rms += r * ms;
    sms += s * ms;
  }
  sums->pap = sum(&pap);
  sums->rms = sum(&rms);
  sums->sms = sum(&sms);
}
