/* The context, its error record and its log. SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/kept.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/number.h"
#include "base/words.h"

/* Large blocks ask for huge pages: first touch takes a fraction of the time, and gathers miss the TLB less. They begin with one, since
 * what stands before the first whole one is touched by small pages. */
static void *allocate_default(void *user, size_t bytes) {
  enum { HUGE_PAGE = 2 << 20 };
  void *block;
  (void)user;
  if (bytes < HUGE_PAGE) return malloc(bytes);
  if (posix_memalign(&block, HUGE_PAGE, bytes)) return NULL;
  madvise(block, bytes, MADV_HUGEPAGE); /* advice: a failure changes nothing */
  return block;
}

static void release_default(void *user, void *memory) {
  (void)user;
  free(memory);
}

int ht_quota_cores(const char *path) {
  double quota, period;
  FILE *file = fopen(path, "r");
  if (!file) return HT_MOST_THREADS;
  int read = fscanf(file, "%lf %lf", &quota, &period); /* "max" in the place of a quota: none */
  fclose(file);
  if (read != 2 || !(quota > 0 && period > 0) || quota / period >= HT_MOST_THREADS) return HT_MOST_THREADS;
  int whole = (int)(quota / period);
  return whole + (whole < quota / period);
}

int ht_available_cores(void) {
  cpu_set_t set;
  long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN); /* above 1024 cores */
  int quota = ht_quota_cores("/sys/fs/cgroup/cpu.max");
  return count > quota ? quota : count > 0 ? (int)count : 1;
}

ht_status ht_context_create_with(const ht_allocator *allocator, ht_context **ctx) {
  if (!ctx) return HT_BAD_ARGUMENT;
  *ctx = NULL;
  if (!allocator || !allocator->allocate || !allocator->release) return HT_BAD_ARGUMENT;
  ht_context *c = allocator->allocate(allocator->user, sizeof *c);
  if (!c) return HT_NO_MEMORY;
  memset(c, 0, sizeof *c);
  c->allocator = *allocator;
  c->threads = ht_threads_by_default();
  c->bytes_a_thread = HT_BYTES_A_THREAD;
  c->log_level = HT_LOG_WARNING;
  *ctx = c;
  return HT_OK;
}

ht_status ht_context_create(ht_context **ctx) {
  ht_allocator standard = {allocate_default, release_default, NULL};
  return ht_context_create_with(&standard, ctx);
}

void ht_context_destroy(ht_context *ctx) {
  if (!ctx) return;
  if (ctx->device_release) ctx->device_release(ctx->device);
  ht_kept_forget(ctx);
  ht_allocator allocator = ctx->allocator;
  allocator.release(allocator.user, ctx);
}

ht_status ht_context_set_threads(ht_context *ctx, int threads) {
  HT_NEED(NULL, ctx);
  HT_CHECK(ctx, threads >= 0 && threads <= HT_MOST_THREADS, HT_BAD_ARGUMENT, "threads must be 0 (the default) or 1 to %d, and is %d",
           HT_MOST_THREADS, threads);
  int cores = ht_available_cores();
  if (threads > cores && threads != ctx->threads)
    ht_log(ctx, HT_LOG_WARNING, "%d threads are asked for, and this process may use %s: more threads than cores are slower", threads,
           ht_number_of(cores, "core").text);
  ctx->threads = threads ? threads : ht_threads_by_default();
  return HT_OK;
}

int ht_context_threads(const ht_context *ctx) { return ctx ? ctx->threads : 0; }

void ht_context_set_log(ht_context *ctx, ht_log_fn fn, void *user, ht_log_level level) {
  if (!ctx) return;
  ctx->log = fn;
  ctx->log_user = user;
  ctx->log_level = level;
}

/* Texts quote files and names, which may hold any byte; a sentence stays one line. */
static void keep_one_line(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

void ht_log(ht_context *ctx, ht_log_level level, const char *format, ...) {
  if (!ctx->log || level > ctx->log_level) return;
  char message[HT_ERROR_TEXT];
  va_list args;
  va_start(args, format);
  *message = 0;
  ht_add_words_of(message, sizeof message, format, args);
  va_end(args);
  keep_one_line(message);
  ctx->log(ctx->log_user, level, message);
}

const char *ht_context_error(const ht_context *ctx) { return ctx ? ctx->error : ""; }
const char *ht_context_trail(const ht_context *ctx) { return ctx ? ctx->trail : ""; }

void ht_context_clear_error(ht_context *ctx) {
  if (!ctx) return;
  ctx->status = HT_OK;
  ctx->error[0] = ctx->trail[0] = 0;
}

double ht_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ht_context_request_stop(ht_context *ctx) {
  if (ctx) atomic_store_explicit(&ctx->stop, 1, memory_order_relaxed);
}

void ht_context_clear_stop(ht_context *ctx) {
  if (ctx) atomic_store_explicit(&ctx->stop, 0, memory_order_relaxed);
}

ht_status ht_trace(ht_context *ctx, ht_status status, const char *function, const char *file, int line) {
  if (!ctx) return status;
  size_t used = strlen(ctx->trail);
  const char *name = strrchr(file, '/');
  if (used < sizeof ctx->trail - 1)
    snprintf(ctx->trail + used, sizeof ctx->trail - used, "%s (%s:%d)\n", function, name ? name + 1 : file, line);
  return status;
}

ht_status ht_fail(ht_context *ctx, ht_status status, const char *function, const char *file, int line, const char *format, ...) {
  if (!ctx) return status;
  ctx->status = status;
  ctx->trail[0] = 0;
  va_list args;
  va_start(args, format);
  ctx->error[0] = 0;
  ht_add_words_of(ctx->error, sizeof ctx->error, format, args);
  va_end(args);
  keep_one_line(ctx->error);
  return ht_trace(ctx, status, function, file, line);
}
