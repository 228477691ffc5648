/* Learned policies as safetensors files, which other programs read too. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_LEARNED_FILE_H
#define HT_POLICY_LEARNED_FILE_H
#include "policy/learned.h"

/* The metadata have as 'crc32' in 8 hexadecimal digits the CRC-32, as zlib's, of all weights, in the order of the tensors in the file that
 * this program writes, followed by the metadata kind, actions, interval, hidden, made_for and chosen with an end of line behind each, empty
 * where there is none. Files of older versions have no such entry. */

/* A policy from the bytes of a file; `name` is the file's, for the sentences. HT_BAD_FORMAT where the file is damaged, not a policy, or
 * one that this program cannot put to use; nothing is made then. */
ht_status ht_learned_parse(ht_context *ctx, const void *bytes, int64_t size, const char *name, ht_learned **learned);
/* The same from a file; HT_BAD_FILE where it cannot be read. */
ht_status ht_learned_read(ht_context *ctx, const char *path, ht_learned **learned);
/* The file's bytes, from ht_allocate. HT_BAD_ARGUMENT for a policy that could not be read back. */
ht_status ht_learned_serialize(ht_context *ctx, const ht_learned *learned, void **bytes, int64_t *size);

#endif
