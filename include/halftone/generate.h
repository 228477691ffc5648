/* Test problems by name. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_GENERATE_H
#define HALFTONE_GENERATE_H
#include "halftone/matrix.h"
#include "halftone/options.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A kind of test problem, as documentation and the command's help show it. */
typedef struct ht_generator_info {
  const char *name;    /* "stencil3d" */
  const char *summary; /* one line */
  const char *formula; /* what the entries are */
  const char *spd;     /* why the matrix is positive definite, or how far it is not */
  int parameters;      /* for ht_generator_parameter */
} ht_generator_info;

/* Walk all kinds: index from 0 to ht_generator_count()-1; NULL outside. */
HT_API int ht_generator_count(void);
HT_API const ht_generator_info *ht_generator_at(int index);
/* A kind's parameters: index from 0 to its `parameters`-1; NULL outside. `when` has no meaning here. */
HT_API const ht_option_info *ht_generator_parameter(int generator, int index);

/* Make the test problem `kind` with `count` parameters given by name, as text; the others keep their defaults. The same
 * parameters give the same bits on any number of threads, and a_ij and a_ji are the same bits. Memory: at most about
 * twice the matrix. Errors: HT_BAD_OPTION (the nearest known kind or parameter, the allowed range, or what a parameter
 * needs that has no effect with the others), HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_generate(ht_context *ctx, const char *kind, int count, const char *const names[],
                                           const char *const values[], ht_matrix **matrix);

#ifdef __cplusplus
}
#endif
#endif
