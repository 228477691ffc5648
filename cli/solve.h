/* What solve shares with bench. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_SOLVE_H
#define HALFTONE_CLI_SOLVE_H
#include "args.h"
#include "json.h"

/* The report's fields, and an "options" object with every option's value, as members. */
void solve_write_report(cli_json *json, const ht_report *report);
void solve_write_options(cli_json *json, const ht_options *options);

#endif
