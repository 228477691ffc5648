/* Many items as text, formatted (and packed) by all threads, written in order. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_IO_TEXT_WRITE_H
#define HT_IO_TEXT_WRITE_H
#include "io/output.h"

/* Write items [first, end) to `text` and return the bytes used. */
typedef size_t (*ht_format_fn)(const void *data, int64_t first, int64_t end, char *text);

/* header, then `count` items of at most `item_bytes` each. With gzip, every piece is a member of its own, so that they can
 * be packed side by side; the bytes do not depend on the number of threads. */
ht_status ht_text_write(ht_output *output, int gzip, const char *header, int64_t count, size_t item_bytes, ht_format_fn format,
                        const void *data);

#endif
