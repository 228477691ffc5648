/* The storage formats. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_PRECISION_H
#define HALFTONE_PRECISION_H
#include <stddef.h>
#include "halftone/status.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum ht_precision {
#define HT_PRECISION(name, key, ctype, bytes, bits, emin, emax) HT_##name,
#include "halftone/precision.def"
#undef HT_PRECISION
  HT_PRECISION_COUNT
} ht_precision;

HT_API const char *ht_precision_name(ht_precision p);       /* "bf16" */
HT_API size_t ht_precision_bytes(ht_precision p);           /* 2 */
HT_API double ht_precision_unit_roundoff(ht_precision p);   /* 2^-bits */
HT_API double ht_precision_largest(ht_precision p);         /* largest finite value */
HT_API double ht_precision_smallest_normal(ht_precision p); /* 2^emin */
/* Round to nearest even; overflow gives infinity, as IEEE 754 asks; NaN stays NaN. */
HT_API double ht_precision_round(ht_precision p, double value);

#ifdef __cplusplus
}
#endif
#endif
