/* Zip archives of NumPy arrays: any bytes are a sound matrix or a sentence. SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_matrix.h"

static uint32_t get32(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }

/* A change to a stored member breaks its checksum; mend it in the directory, or the arrays would never be reached. */
static void mend_checksums(uint8_t *bytes, size_t size) {
  for (size_t at = 0; at + 46 <= size; at++) {
    if (get32(bytes + at) != 0x02014b50u) continue;
    size_t offset = get32(bytes + at + 42), packed = get32(bytes + at + 20);
    if (offset + 32 > size) continue;
    size_t start = offset + 30 + (get32(bytes + offset + 26) & 0xffff) + (get32(bytes + offset + 28) & 0xffff);
    if (start > size || packed > size - start) continue;
    uint32_t crc = (uint32_t)crc32(0, bytes + start, (uInt)packed);
    for (int i = 0; i < 4; i++) bytes[at + 16 + i] = (uint8_t)(crc >> 8 * i);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_matrix(data, size);
  uint8_t *mended = malloc(size + 1);
  require(mended != NULL);
  memcpy(mended, data, size);
  mend_checksums(mended, size);
  fuzz_matrix(mended, size);
  free(mended);
  return 0;
}
