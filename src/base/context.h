/* Inside of the context, and the macros every function uses: HT_CHECK, HT_TRY, allocation, logging.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BASE_CONTEXT_H
#define HT_BASE_CONTEXT_H
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include "base/phases.h"
#include "halftone/context.h"

enum { HT_ERROR_TEXT = 1024, HT_TRAIL_TEXT = 2048, HT_MOST_THREADS = 4096 };

/* What a thread should have to go over between two barriers: 5 us where it is in cache (45 GB/s a core), 25 us where it is not. A barrier
 * costs about a microsecond where all threads run, so that two pay from less than half of this on, but then they save microseconds; it
 * costs a time slice, milliseconds, where one of them waits for a core (docs/decisions/0003). */
enum { HT_BYTES_A_THREAD = 1 << 18 };

struct ht_context {
  ht_allocator allocator;
  int threads;            /* as many as a job may take */
  int64_t bytes_a_thread; /* HT_BYTES_A_THREAD; tests set less, so that small systems are shared too */
  ht_log_fn log;
  void *log_user;
  ht_log_level log_level;
  atomic_int stop;
  struct ht_context *above;             /* whose request to stop holds here too; NULL: nobody's */
  ht_stopwatch stopwatch;               /* of the set-up */
  double set_up_end;                    /* ht_seconds() at which what is being set up must be ready; 0: whenever it is */
  void *device;                         /* of the backend in use, or NULL */
  void (*device_release)(void *device); /* called once, when the context is destroyed; NULL: nothing to release */
  struct ht_kept *kept;                 /* base/kept.c: what is known of patterns met before, or NULL */
  ht_status status;
  char error[HT_ERROR_TEXT];
  char trail[HT_TRAIL_TEXT];
};

/* Record an error: the sentence says what was expected, what was found, where, and what to do. Returns `status`. */
ht_status ht_fail(ht_context *ctx, ht_status status, const char *function, const char *file, int line, const char *format, ...)
    HT_PRINTF(6, 7);
/* Add a frame to the trail and pass the status on. */
ht_status ht_trace(ht_context *ctx, ht_status status, const char *function, const char *file, int line);
void ht_log(ht_context *ctx, ht_log_level level, const char *format, ...) HT_PRINTF(3, 4);
/* The threads that a job is worth which goes over so many bytes between two barriers: 1 to ctx->threads. Results do not depend on it. */
int ht_threads_worth(const ht_context *ctx, double bytes);
/* What OMP_NUM_THREADS says, 0 where it says nothing or no number; and that, or all cores. */
int ht_threads_of_openmp(void);
int ht_threads_by_default(void);
/* Cores that this process may use: taskset and a container's quota are respected. */
int ht_available_cores(void);
/* Cores, rounded up, that a cgroup's cpu.max file grants; as many as there may be threads where it grants any number. */
int ht_quota_cores(const char *path);
double ht_seconds(void); /* monotonic clock; for reports and for choices that do not change results */
static inline int ht_stop_requested(ht_context *ctx) {
  return atomic_load_explicit(&ctx->stop, memory_order_relaxed) || (ctx->above && ht_stop_requested(ctx->above));
}

/* Set-up that may take long asks this now and then, and fails with HT_INTERRUPTED. */
static inline int ht_set_up_is_over(ht_context *ctx) {
  return ht_stop_requested(ctx) || (ctx->set_up_end > 0 && ht_seconds() > ctx->set_up_end);
}

/* HT_FAIL and HT_TRY return the status itself, not the call's value, so that the static analyser sees that it is not HT_OK. */
#define HT_FAIL(ctx, status, ...) return (ht_fail((ctx), (status), __func__, __FILE__, __LINE__, __VA_ARGS__), (status))
#define HT_CHECK(ctx, condition, status, ...)                                                                                              \
  do {                                                                                                                                     \
    if (!(condition)) HT_FAIL((ctx), (status), __VA_ARGS__);                                                                               \
  } while (0)
#define HT_TRY(ctx, call)                                                                                                                  \
  do {                                                                                                                                     \
    ht_status ht_status_ = (call);                                                                                                         \
    if (ht_status_ != HT_OK) return (ht_trace((ctx), ht_status_, __func__, __FILE__, __LINE__), ht_status_);                               \
  } while (0)
/* A pointer that a public function cannot do without. Without a context (NULL, or the object it would be in is) nothing is recorded. */
#define HT_NEED(ctx, pointer) HT_CHECK((ctx), (pointer), HT_BAD_ARGUMENT, #pointer " must not be NULL")
/* For functions that own memory: jump to `label` with `status_variable` set; one exit frees. */
#define HT_TRY_GOTO(ctx, status_variable, call, label)                                                                                     \
  do {                                                                                                                                     \
    (status_variable) = (call);                                                                                                            \
    if ((status_variable) != HT_OK) {                                                                                                      \
      ht_trace((ctx), (status_variable), __func__, __FILE__, __LINE__);                                                                    \
      goto label;                                                                                                                          \
    }                                                                                                                                      \
  } while (0)
#define HT_FAIL_GOTO(ctx, status_variable, label, status, ...)                                                                             \
  do {                                                                                                                                     \
    (status_variable) = ht_fail((ctx), (status), __func__, __FILE__, __LINE__, __VA_ARGS__);                                               \
    goto label;                                                                                                                            \
  } while (0)

/* count*size bytes from the context's allocator, 64-byte aligned, not cleared (first touch is the user's). count 0 gives a
 * valid pointer. Overflow and exhaustion both give HT_NO_MEMORY with the size in the sentence. *memory is NULL on error. */
ht_status ht_allocate(ht_context *ctx, int64_t count, size_t size, void *memory);
ht_status ht_allocate_zeroed(ht_context *ctx, int64_t count, size_t size, void *memory);
void ht_release(ht_context *ctx, void *memory); /* NULL is allowed */

#endif
