/* The context: allocator, threads, log, error record, stop flag. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CONTEXT_H
#define HALFTONE_CONTEXT_H
#include <stddef.h>
#include "halftone/status.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A context belongs to one thread at a time. Objects made with it keep a pointer to it and must be destroyed first. */
typedef struct ht_context ht_context;

typedef enum ht_log_level { HT_LOG_ERROR, HT_LOG_WARNING, HT_LOG_INFO, HT_LOG_DEBUG } ht_log_level;

/* allocate returns memory aligned for any type, or NULL; release gets what allocate returned. */
typedef struct ht_allocator {
  void *(*allocate)(void *user, size_t bytes);
  void (*release)(void *user, void *memory);
  void *user;
} ht_allocator;

typedef void (*ht_log_fn)(void *user, ht_log_level level, const char *message);

/* Create a context with the C library's allocator, the threads that OMP_NUM_THREADS asks for or else all cores this process may use, and
 * warnings to nowhere.
 * Errors: HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_context_create(ht_context **ctx);
/* The same with the caller's allocator (copied), used for everything the library allocates, the context included. */
HT_API HT_MUST_CHECK ht_status ht_context_create_with(const ht_allocator *allocator, ht_context **ctx);
HT_API void ht_context_destroy(ht_context *ctx); /* NULL is allowed */

/* Threads for the CPU backend, at most; 0 means what OMP_NUM_THREADS asks for (of a list the first number; what is no number is ignored),
 * or else every core this process may use; more are taken with a warning. A solver takes fewer for a system so small that they would wait
 * for each other most of the time, and reports how many. Results do not depend on it, to the bit. */
HT_API HT_MUST_CHECK ht_status ht_context_set_threads(ht_context *ctx, int threads);
HT_API int ht_context_threads(const ht_context *ctx);

/* Messages at or below `level` go to fn. The library itself never prints. */
HT_API void ht_context_set_log(ht_context *ctx, ht_log_fn fn, void *user, ht_log_level level);

/* The last error as one sentence ("" when there was none), and the calls it passed through, one a line. */
HT_API const char *ht_context_error(const ht_context *ctx);
HT_API const char *ht_context_trail(const ht_context *ctx);
HT_API void ht_context_clear_error(ht_context *ctx);

/* Ask running work to end cleanly at its next check; safe in a signal handler and from another thread. */
HT_API void ht_context_request_stop(ht_context *ctx);
HT_API void ht_context_clear_stop(ht_context *ctx);

/* The CUDA stream (a CUstream or cudaStream_t) that all work on the GPU goes to from now on, whatever solver asks for it; NULL: back to a
 * stream of the library's own, as at first, which takes turns with the legacy default stream.
 * With arrays in device memory a solve then needs no synchronisation before it: what the caller has enqueued on the stream, such as the
 * kernels that make b and x, is done first, and what the caller enqueues there afterwards sees the x of the solve. Work on other streams
 * is not waited for. The host waits inside ht_solver_prepare and ht_solver_solve, and in this call for what is under way on the stream
 * before. The caller keeps the stream until another one, or NULL, is given or the context is destroyed; it must not be captured into a
 * graph meanwhile. A context that has used no GPU takes the stream's; else both must be of one GPU and one CUDA context. The per-thread
 * default stream is that of the thread that calls, at each call; the legacy default stream is refused, as NULL does what it could.
 * Errors, upon which the stream stays as it was: HT_BAD_ARGUMENT (a stream of another GPU or CUDA context, or being captured),
 * HT_UNSUPPORTED (no CUDA backend, or no GPU that it can use), HT_DEVICE. */
HT_API HT_MUST_CHECK ht_status ht_context_set_cuda_stream(ht_context *ctx, void *stream);

#ifdef __cplusplus
}
#endif
#endif
