/* Ctrl-C: the first ends a solve cleanly and everything else at once, the second the process. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_SIGNALS_H
#define HALFTONE_CLI_SIGNALS_H
#include "cli.h"
void signals_watch(ht_context *ctx);
/* From here on, or no longer: work that looks at the context's request to stop, and has something to keep. */
void signals_ask(int on);
#endif
