/* Many items as text, formatted (and packed) by all threads. SPDX-License-Identifier: BSD-3-Clause */
#include "io/text_write.h"
#include <omp.h>
#include <string.h>
#include <zlib.h>

enum { PIECE_BYTES = 1 << 21 };

typedef struct worker {
  char *text, *packed;
  z_stream stream;
  int open;
} worker;

static voidpf zlib_allocate(voidpf ctx, uInt count, uInt size) {
  void *memory;
  return ht_allocate(ctx, (int64_t)count * size, 1, &memory) == HT_OK ? memory : Z_NULL;
}

static void zlib_release(voidpf ctx, voidpf memory) { ht_release(ctx, memory); }

static void close_workers(ht_context *ctx, worker *workers, int count) {
  for (int i = 0; workers && i < count; i++) {
    if (workers[i].open) deflateEnd(&workers[i].stream);
    ht_release(ctx, workers[i].text);
    ht_release(ctx, workers[i].packed);
  }
  ht_release(ctx, workers);
}

/* Everything is allocated here: the context's allocator need not be ready for many threads. */
static ht_status open_worker(ht_context *ctx, worker *w, int gzip, size_t bytes) {
  HT_TRY(ctx, ht_allocate(ctx, (int64_t)bytes, 1, &w->text));
  if (!gzip) return HT_OK;
  w->stream = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_release, .opaque = ctx};
  HT_CHECK(ctx, deflateInit2(&w->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, HT_NO_MEMORY,
           "memory is exhausted: gzip needs some for packing");
  w->open = 1;
  HT_TRY(ctx, ht_allocate(ctx, (int64_t)deflateBound(&w->stream, bytes), 1, &w->packed));
  return HT_OK;
}

/* The piece's bytes as they go to the file. */
static const char *pack(worker *w, size_t bound, size_t *size) {
  if (!w->open) return w->text;
  z_stream *z = &w->stream;
  deflateReset(z);
  z->next_in = (unsigned char *)w->text;
  z->avail_in = (uInt)*size;
  z->next_out = (unsigned char *)w->packed;
  z->avail_out = (uInt)deflateBound(z, bound);
  deflate(z, Z_FINISH); /* cannot fail: the bound is the room it needs */
  *size = z->total_out;
  return w->packed;
}

static ht_status write_pieces(ht_output *out, worker *workers, int threads, size_t bytes, const char *header, int64_t count, int64_t piece,
                              ht_format_fn format, const void *data) {
  int64_t pieces = count ? (count + piece - 1) / piece : 1;
  ht_status status = HT_OK;
#pragma omp parallel for ordered schedule(static, 1) num_threads(threads)
  for (int64_t p = 0; p < pieces; p++) {
    worker *w = &workers[omp_get_thread_num()];
    size_t size = p == 0 ? strlen(header) : 0;
    memcpy(w->text, header, size);
    size += format(data, p * piece, (p + 1) * piece < count ? (p + 1) * piece : count, w->text + size);
    const char *text = pack(w, bytes, &size);
#pragma omp ordered
    if (status == HT_OK) status = ht_output_write(out, text, size);
  }
  if (status != HT_OK) ht_trace(out->ctx, status, __func__, __FILE__, __LINE__);
  return status;
}

ht_status ht_text_write(ht_output *out, int gzip, const char *header, int64_t count, size_t item_bytes, ht_format_fn format,
                        const void *data) {
  ht_context *ctx = out->ctx;
  int64_t piece = PIECE_BYTES / (int64_t)item_bytes;
  int threads = count / piece + 1 < ctx->threads ? (int)(count / piece + 1) : ctx->threads;
  /* A short text needs little room. */
  size_t bytes = strlen(header) + (size_t)(count < piece ? count : piece) * item_bytes;
  worker *workers;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, threads, sizeof *workers, &workers));
  ht_status status = HT_OK;
  for (int i = 0; i < threads; i++) HT_TRY_GOTO(ctx, status, open_worker(ctx, &workers[i], gzip, bytes), done);
  status = write_pieces(out, workers, threads, bytes, header, count, piece, format, data);
done:
  close_workers(ctx, workers, threads);
  return status;
}
