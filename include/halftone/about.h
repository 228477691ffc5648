/* What this build and this machine offer, for bug reports. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_ABOUT_H
#define HALFTONE_ABOUT_H
#include <stddef.h>
#include "halftone/context.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Named texts ("compiler", "gcc 12.2.0"): index from 0 to ht_about_count()-1. The text goes to the caller's buffer and is
 * cut to fit. Errors: HT_BAD_ARGUMENT for another index. */
HT_API int ht_about_count(void);
HT_API HT_MUST_CHECK ht_status ht_about_at(ht_context *ctx, int index, const char **name, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
