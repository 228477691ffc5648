/* Ctrl-C: the first ends the solve cleanly, the second the process. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_SIGNALS_H
#define HALFTONE_CLI_SIGNALS_H
#include "cli.h"
void signals_watch(ht_context *ctx);
#endif
