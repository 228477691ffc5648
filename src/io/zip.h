/* Zip archives: members by name from bytes in memory, and stored members out. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_ZIP_H
#define HT_IO_ZIP_H
#include "io/output.h"

typedef struct ht_zip {
  ht_context *ctx;
  const char *name; /* for messages */
  const unsigned char *bytes;
  uint64_t size, directory, directory_end;
} ht_zip;

/* Find the directory of an archive; zip64 is understood, archives over several disks and encrypted ones are not. */
ht_status ht_zip_open(ht_context *ctx, const char *name, const unsigned char *bytes, size_t size, ht_zip *zip);
/* A member's bytes, checked against their CRC; HT_BAD_FORMAT when it is not there. *owned is NULL when they lie in the archive,
 * else the caller releases it. */
ht_status ht_zip_member(const ht_zip *zip, const char *member, const unsigned char **bytes, size_t *size, unsigned char **owned);

enum { HT_ZIP_MEMBERS = 8 };
typedef struct ht_zip_part {
  const void *bytes;
  size_t size;
} ht_zip_part;
typedef struct ht_zip_writer {
  ht_output *output;
  int members;
  struct {
    char name[24];
    int64_t offset, size;
    uint32_t crc;
  } member[HT_ZIP_MEMBERS];
} ht_zip_writer;

/* Write a member made of two parts, stored; then the directory. Always zip64, so that size does not matter. */
ht_status ht_zip_write(ht_zip_writer *writer, const char *member, const ht_zip_part parts[2]);
ht_status ht_zip_finish(ht_zip_writer *writer);

#endif
