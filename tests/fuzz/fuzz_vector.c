/* Vectors as text: any bytes are finite numbers or a sentence. SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_vector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_vector(data, size, 3);
  fuzz_vector(data, size, 1);
  return 0;
}
