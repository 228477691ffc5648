/* Values of one tile, for AVX2. SPDX-License-Identifier: BSD-3-Clause */
#include "data/split_values.tmpl.h"

const ht_split_codec ht_split_codec_avx2 = {scale, encode_groups, measure};
