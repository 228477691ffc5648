/* Options: one row each, the same name in C, on the command line, in config files and in JSON.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_OPTIONS_H
#define HALFTONE_OPTIONS_H
#include <stddef.h>
#include "halftone/context.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Values for all options; it keeps a pointer to its context. */
typedef struct ht_options ht_options;

typedef enum ht_option_type { HT_OPTION_REAL, HT_OPTION_INTEGER, HT_OPTION_FLAG, HT_OPTION_CHOICE, HT_OPTION_TEXT } ht_option_type;
/* When a change takes effect: at the next ht_solver_prepare, or at the next ht_solver_solve. */
typedef enum ht_option_when { HT_AT_PREPARE, HT_AT_SOLVE } ht_option_when;

typedef struct ht_option_info {
  const char *name; /* "max-iterations": --max-iterations on the command line */
  ht_option_type type;
  ht_option_when when;
  const char *default_value; /* as text */
  double low, high;          /* allowed range of a number */
  const char *choices;       /* "none|jacobi|ic0" for HT_OPTION_CHOICE, else NULL */
  const char *help;          /* one line */
  /* "format=tilecsc|csr engine=paper": it has an effect where one of these holds; "... & ...": and one of those; NULL: always. */
  const char *needs;
} ht_option_info;

/* All at their defaults. Errors: HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_options_create(ht_context *ctx, ht_options **options);
HT_API void ht_options_destroy(ht_options *options); /* NULL is allowed */

/* Set by name from text. Errors: HT_BAD_OPTION with the nearest known name, or the allowed range or choices. */
HT_API HT_MUST_CHECK ht_status ht_options_set(ht_options *options, const char *name, const char *value);
HT_API HT_MUST_CHECK ht_status ht_options_set_real(ht_options *options, const char *name, double value);
HT_API HT_MUST_CHECK ht_status ht_options_set_integer(ht_options *options, const char *name, long long value);
/* The value as text, in a buffer of the caller's; numbers round-trip. */
HT_API HT_MUST_CHECK ht_status ht_options_get(const ht_options *options, const char *name, char *text, size_t size);
/* Whether the option can have an effect with the others as they are. Errors: HT_BAD_OPTION where it has none, with what it needs. A solver
 * does not ask: there it has no effect. */
HT_API HT_MUST_CHECK ht_status ht_options_check(const ht_options *options, const char *name);
/* Read `name = value` lines ('#' starts a comment). Errors name file and line. */
HT_API HT_MUST_CHECK ht_status ht_options_read_file(ht_options *options, const char *path);

/* Walk all options: index from 0 to ht_option_count()-1; NULL outside. */
HT_API int ht_option_count(void);
HT_API const ht_option_info *ht_option_at(int index);
/* An option's `needs` as the command line has it: "--format tilecsc|csr or --engine paper"; "" where it is NULL. */
HT_API void ht_option_needs_text(const ht_option_info *info, char *text, size_t size);
/* The candidate nearest to `name` by edit distance, or NULL when none is near: for "did you mean". */
HT_API const char *ht_nearest(const char *name, int count, const char *(*candidate)(void *user, int index), void *user);

#ifdef __cplusplus
}
#endif
#endif
