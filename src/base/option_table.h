/* Work on single option rows, for whoever assembles the tables (solver/options.c). SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_OPTION_TABLE_H
#define HT_BASE_OPTION_TABLE_H
#include "base/option.h"

/* One row of a component's list; define HT_OPTION_OWNER as the component's struct before expanding. */
#define HT_OPTION_ROW(type, field, def, low, high, when, choices, help)                                                                    \
  {{#field, HT_OPTION_##type, HT_##when, NULL, (low), (high), choices, help}, (def), offsetof(HT_OPTION_OWNER, field)},

ht_status ht_option_parse(ht_context *ctx, const ht_option_row *row, void *fields, const char *text);
void ht_option_print(const ht_option_row *row, const void *fields, char *text, size_t size);
void ht_option_set_default(const ht_option_row *row, void *fields);

#endif
