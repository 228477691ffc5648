/* NumPy arrays: any bytes behind the magic are finite numbers or a sentence. SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_vector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *bytes = malloc(size + 6);
  require(bytes != NULL);
  memcpy(bytes, "\x93NUMPY", 6);
  memcpy(bytes + 6, data, size);
  fuzz_vector(bytes, size + 6, 3);
  free(bytes);
  return 0;
}
