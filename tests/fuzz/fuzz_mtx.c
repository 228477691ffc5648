/* Matrix Market files, plain and gzip: any bytes are a sound matrix or a sentence. SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_matrix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_matrix(data, size); }
