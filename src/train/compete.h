/* What was learned against policies that always do the same. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_COMPETE_H
#define HT_TRAIN_COMPETE_H
#include "train/window.h"

/* HT_CONTESTANT_LEARNED, and policies by name. */
enum { HT_CONTESTANT_LEARNED, HT_CONTESTANTS = 6 };

typedef struct ht_contest {
  double time[HT_CONTESTANTS]; /* by FP64's, geometric mean over the cases; infinite where one is not solved */
  int winner, measured;
} ht_contest;

const char *ht_contestant_name(int contestant);

/* By the model of time on the CPU, or measured on the backend: solves in turn, medians. */
ht_status ht_compete(ht_window *window, const ht_network *network, const char *backend, int measured, ht_contest *contest);
/* As a line of text. */
void ht_contest_print(const ht_contest *contest, const char *backend, char *text, size_t size);

#endif
