/* The precision table. SPDX-License-Identifier: BSD-3-Clause */
#include "halftone/precision.h"
#include <math.h>
#include "base/convert.h"

static const struct {
  const char *name;
  size_t bytes;
  int bits, emin, emax;
} formats[] = {
#define HT_PRECISION(name, key, ctype, bytes, bits, emin, emax) {key, bytes, bits, emin, emax},
#include "halftone/precision.def"
#undef HT_PRECISION
};

const char *ht_precision_name(ht_precision p) { return (size_t)p < HT_PRECISION_COUNT ? formats[p].name : "unknown"; }
size_t ht_precision_bytes(ht_precision p) { return (size_t)p < HT_PRECISION_COUNT ? formats[p].bytes : 0; }
double ht_precision_unit_roundoff(ht_precision p) { return (size_t)p < HT_PRECISION_COUNT ? ldexp(1.0, -formats[p].bits) : NAN; }
double ht_precision_smallest_normal(ht_precision p) { return (size_t)p < HT_PRECISION_COUNT ? ldexp(1.0, formats[p].emin) : NAN; }
double ht_precision_largest(ht_precision p) {
  return (size_t)p < HT_PRECISION_COUNT ? ldexp(2.0 - ldexp(1.0, 1 - formats[p].bits), formats[p].emax) : NAN;
}

double ht_precision_round(ht_precision p, double value) {
  switch (p) {
  case HT_F32: return ht_load_f32(ht_store_f32(value));
  case HT_F16: return ht_load_f16(ht_store_f16(value));
  case HT_BF16: return ht_load_bf16(ht_store_bf16(value));
  default: return value;
  }
}
