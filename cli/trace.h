/* The trace of a solve in a report. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_TRACE_H
#define HALFTONE_CLI_TRACE_H
#include "cli.h"
#include "json.h"

/* A member "trace" where the solver has one, nothing elsewhere. */
void trace_write(cli_json *json, const ht_solver *solver);

#endif
