/* How a component declares its options: one list, expanded to a struct and to the rows all surfaces walk.
 *
 *   #define HT_FOO_OPTIONS(X) \
 *     X(REAL,    rtol,   1e-10, 0, 1, AT_SOLVE,   NULL,              "relative tolerance on the true residual") \
 *     X(CHOICE,  method, 0,     0, 0, AT_PREPARE, "none|jacobi",     "what it does") \
 *     X(INTEGER, block,  8,     1, 9, AT_PREPARE, NULL,              "unknowns a block", "method=jacobi")
 *   HT_OPTION_STRUCT(ht_foo_options, HT_FOO_OPTIONS);
 *
 * gives `struct ht_foo_options { double rtol; int method; }` (a CHOICE is the index of its word; TEXT is a char array whose
 * default stands in the `choices` column). Underscores in the C name are dashes in the option's name. What may follow the help says
 * with which other options this one has an effect: conditions with spaces between them of which one holds, each a name and the values
 * that it may have; one that ends in * stands for all that begin so. Where there is an & among them, this is so before and behind it. A
 * generator's parameter, or an option, given in vain is refused.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_OPTION_H
#define HT_BASE_OPTION_H
#include <stddef.h>
#include <stdint.h>
#include "halftone/options.h"

enum { HT_OPTION_TEXT_SIZE = 256 };

#define HT_OPTION_FIELD_REAL(name) double name;
#define HT_OPTION_FIELD_INTEGER(name) int64_t name;
#define HT_OPTION_FIELD_FLAG(name) int name;
#define HT_OPTION_FIELD_CHOICE(name) int name;
#define HT_OPTION_FIELD_TEXT(name) char name[HT_OPTION_TEXT_SIZE];
#define HT_OPTION_FIELD(type, name, ...) HT_OPTION_FIELD_##type(name)
#define HT_OPTION_STRUCT(struct_name, LIST)                                                                                                \
  typedef struct struct_name {                                                                                                             \
    LIST(HT_OPTION_FIELD)                                                                                                                  \
  } struct_name

typedef struct ht_option_row {
  ht_option_info info; /* info.name has underscores here; ht_option_at gives dashes */
  double default_number;
  size_t offset; /* in the component's struct */
} ht_option_row;

typedef struct ht_option_table {
  const ht_option_row *rows;
  int count;
  size_t offset; /* of the component's struct in ht_options */
} ht_option_table;

#endif
