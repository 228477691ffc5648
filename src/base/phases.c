/* The stopwatch of a set-up. SPDX-License-Identifier: BSD-3-Clause */
#include "base/phases.h"
#include <stdio.h>
#include "base/context.h"
#include "base/words.h"

static const char *const names[HT_PHASES] = {
#define HT_PHASE(name, what) #name,
#include "base/phases.def"
#undef HT_PHASE
};

void ht_laps_begin(ht_context *ctx) { ctx->stopwatch = (ht_stopwatch){.last = ht_seconds()}; }

void ht_lap(ht_context *ctx, ht_phase phase) {
  double now = ht_seconds();
  ctx->stopwatch.seconds[phase] += now - ctx->stopwatch.last;
  ctx->stopwatch.last = now;
}

void ht_laps_tell(ht_context *ctx) {
  char text[HT_ERROR_TEXT] = "";
  for (int k = 0; k < HT_PHASES; k++)
    if (ctx->stopwatch.seconds[k] > 0)
      ht_add_words(text, sizeof text, "%s%s %.3f", *text ? ", " : "", names[k], 1e3 * ctx->stopwatch.seconds[k]);
  ht_log(ctx, HT_LOG_DEBUG, "set-up: %s ms", text);
}
