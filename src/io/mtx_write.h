/* Matrix Market text from matrices and blocks of vectors. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_MTX_WRITE_H
#define HT_IO_MTX_WRITE_H
#include "data/matrix.h"
#include "io/output.h"

/* A symmetric matrix as one triangle, a pattern that is not symmetric as general. */
ht_status ht_mtx_write_matrix(const ht_matrix *matrix, int gzip, ht_output *output);
/* n x columns, column-major; finite values. */
ht_status ht_mtx_write_block(int64_t n, int columns, const double *values, int gzip, ht_output *output);

#endif
