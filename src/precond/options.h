/* Options of the preconditioners. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_PRECOND_OPTIONS_H
#define HT_PRECOND_OPTIONS_H
#include "base/option.h"

enum { HT_PRECOND_NONE, HT_PRECOND_JACOBI, HT_PRECOND_BLOCK_JACOBI, HT_PRECOND_IC0 };

#define HT_PRECOND_OPTIONS(X)                                                                                                              \
  X(CHOICE, precond, 1, 0, 3, AT_PREPARE, "none|jacobi|block-jacobi|ic0", "preconditioner")                                                \
  X(INTEGER, precond_block, 0, 0, 64, AT_PREPARE, NULL, "unknowns a block; 0 takes the unknowns a node, or 8", "precond=block-jacobi")     \
  X(REAL, ic_shift, 0, 0, 1e6, AT_PREPARE, NULL, "first diagonal shift, relative to the diagonal; grows on breakdown", "precond=ic0")

HT_OPTION_STRUCT(ht_precond_options, HT_PRECOND_OPTIONS);
#endif
