/* Names and sentences of status codes and outcomes. SPDX-License-Identifier: BSD-3-Clause */
#include "halftone/status.h"
#include <stddef.h>
#include "halftone/version.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
  const char *name, *text;
} statuses[] = {
#define HT_STATUS(name, text) {"HT_" #name, text},
#include "halftone/status.def"
#undef HT_STATUS
};

static const struct {
  const char *key, *text;
} outcomes[] = {
#define HT_OUTCOME(name, key, text) {key, text},
#include "halftone/outcome.def"
#undef HT_OUTCOME
};

const char *ht_status_name(ht_status s) { return (size_t)s < COUNT(statuses) ? statuses[s].name : "HT_UNKNOWN"; }
const char *ht_status_text(ht_status s) { return (size_t)s < COUNT(statuses) ? statuses[s].text : "unknown status"; }
const char *ht_outcome_name(ht_outcome o) { return (size_t)o < COUNT(outcomes) ? outcomes[o].key : "unknown"; }
const char *ht_outcome_text(ht_outcome o) { return (size_t)o < COUNT(outcomes) ? outcomes[o].text : "unknown outcome"; }

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
const char *ht_version(void) { return TEXT(HT_VERSION_MAJOR) "." TEXT(HT_VERSION_MINOR) "." TEXT(HT_VERSION_PATCH); }
