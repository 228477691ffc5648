/* Values of one tile, for any processor. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_values.tmpl.h"

static const ht_split_codec portable = {scale, encode_groups, measure};

const ht_split_codec *ht_split_codec_best(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &ht_split_codec_avx2;
#endif
  return &portable;
}
