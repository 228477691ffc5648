/* Work on single option rows, for whoever assembles the tables (solver/options.c). SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_OPTION_TABLE_H
#define HT_BASE_OPTION_TABLE_H
#include "base/option.h"

/* One row of a component's list; define HT_OPTION_OWNER as the component's struct before expanding. */
#define HT_OPTION_HELP(help, ...) help
#define HT_OPTION_NEEDS(help, needs, ...) needs
#define HT_OPTION_ROW(type, field, def, low, high, when, choices, ...)                                                                     \
  {{#field, HT_OPTION_##type, HT_##when, NULL, (low), (high), choices, HT_OPTION_HELP(__VA_ARGS__, NULL),                                  \
    HT_OPTION_NEEDS(__VA_ARGS__, NULL, NULL)},                                                                                             \
   (def),                                                                                                                                  \
   offsetof(HT_OPTION_OWNER, field)},

ht_status ht_option_parse(ht_context *ctx, const ht_option_row *row, void *fields, const char *text);
void ht_option_print(const ht_option_row *row, const void *fields, char *text, size_t size);
void ht_option_set_default(const ht_option_row *row, void *fields);

/* Whether an option has an effect with the others as they are, those of `count` tables: HT_BAD_OPTION with the sentence where it has none.
 */
ht_status ht_option_check_needs(ht_context *ctx, const ht_option_info *info, int count, const ht_option_table *tables, const void *options);

#endif
