/* A matrix as an environment reads it, by rows: what each entry is at each level. For devices that make the products of many solves at once
 * (ht_learner_system). SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_STORED_ROWS_H
#define HT_TRAIN_STORED_ROWS_H
#include "train/environment.h"

typedef struct ht_stored_rows {
  int64_t *row_start;
  int32_t *columns;
  double *values; /* HT_LEVELS an entry, in the caller's scale */
  /* of the split storage: tiles, of which each is read at one level; else 0 and NULL */
  int64_t parts;
  int32_t *part, *touched;
  int64_t *touch_start;
} ht_stored_rows;

ht_status ht_stored_rows_create(const ht_environment *environment, ht_stored_rows *rows);
void ht_stored_rows_release(ht_context *ctx, ht_stored_rows *rows);

#endif
