/* Options of the operators. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_OP_OPTIONS_H
#define HT_OP_OPTIONS_H
#include "base/option.h"

enum { HT_ORDERING_AUTO, HT_ORDERING_NATURAL, HT_ORDERING_RCM };
enum { HT_FORMAT_AUTO, HT_FORMAT_SPLIT, HT_FORMAT_CSR, HT_FORMAT_TILECSC };

#define HT_OPERATOR_OPTIONS(X)                                                                                                             \
  X(CHOICE, ordering, 0, 0, 2, AT_PREPARE, "auto|natural|rcm", "order of the unknowns inside the solver; auto: RCM where it pays",         \
    "format=auto|split|tilecsc")                                                                                                           \
  X(CHOICE, format, 0, 0, 3, AT_PREPARE, "auto|split|csr|tilecsc", "matrix storage")                                                       \
  X(INTEGER, tile_rows, 0, 0, 16384, AT_PREPARE, NULL, "rows a tile; 0 chooses", "format=auto|split|tilecsc")                              \
  X(FLAG, column_sums, 1, 0, 1, AT_PREPARE, NULL,                                                                                          \
    "below FP64: a number beside the diagonal makes up for what rounding takes from a column's sum",                                       \
    "format=tilecsc engine=paper & policy=auto|fixed:f32|fixed:bf16|rule|budget|learned*")                                                 \
  X(FLAG, exactness_flags, 1, 0, 1, AT_PREPARE, NULL, "read tiles that are exact in fewer bytes with fewer bytes", "format=auto|split")    \
  X(CHOICE, isa, 0, 0, 3, AT_PREPARE, "auto|avx512|avx2|portable", "instruction set of the CPU kernels", "format=auto|split")

HT_OPTION_STRUCT(ht_operator_options, HT_OPERATOR_OPTIONS);
#endif
