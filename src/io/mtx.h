/* Matrix Market text: what matrices and vectors share. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_MTX_H
#define HT_IO_MTX_H
#include "data/matrix.h"
#include "io/text.h"

typedef enum ht_mtx_field { HT_MTX_REAL, HT_MTX_INTEGER, HT_MTX_PATTERN } ht_mtx_field;

typedef struct ht_mtx_header {
  int coordinate; /* else array */
  ht_mtx_field field;
  int symmetric; /* else general */
  int64_t rows, columns;
  int64_t entries;   /* numbers the file must hold; an array's are counted from its size */
  int64_t size_line; /* line of the sizes */
} ht_mtx_header;

/* The numbers of a file in its order, indices from 0; an array has no indices. All from ht_allocate. */
typedef struct ht_mtx_entries {
  int32_t *rows, *columns;
  double *values;
} ht_mtx_entries;

/* Banner, comments and size line; `vector`: advice is for a file that should hold one. Everything that cannot be read or cannot be true of
 * a file of this size is refused here, before memory is asked for. */
ht_status ht_mtx_read_header(ht_text *text, int vector, ht_mtx_header *header);
/* All numbers; on an error `entries` holds nothing. */
ht_status ht_mtx_read_entries(ht_text *text, const ht_mtx_header *header, ht_mtx_entries *entries);
void ht_mtx_release_entries(ht_context *ctx, ht_mtx_entries *entries);

/* A matrix, or an n x columns block of vectors (column-major, from ht_allocate), from an open input. */
ht_status ht_mtx_read_matrix(ht_input *input, ht_matrix **matrix);
ht_status ht_mtx_read_block(ht_input *input, int64_t n, int *columns, double **values);

#endif
