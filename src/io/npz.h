/* SciPy's sparse matrix files: a zip archive of NumPy arrays. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_NPZ_H
#define HT_IO_NPZ_H
#include "data/matrix.h"
#include "io/input.h"
#include "io/output.h"

/* CSR, CSC or COO, as scipy.sparse.save_npz writes them. */
ht_status ht_npz_read_matrix(ht_input *input, ht_matrix **matrix);
/* CSR, stored without packing; scipy.sparse.load_npz reads it. */
ht_status ht_npz_write_matrix(const ht_matrix *matrix, ht_output *output);

#endif
