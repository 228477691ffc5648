/* The CUDA backend's inside: one device, its memory, and the gate that every launch passes. Host code is C11 on the driver API, which
 * is loaded when a device is asked for; nothing of CUDA is linked. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_CUDA_H
#define HT_BACKEND_CUDA_CUDA_H
#include "backend/backend.h"
#include "backend/cuda/driver.h" /* CUstream, CUfunction, ... and the table of entry points */
#include "backend/cuda/reduce.h"

/* One row of kernels.def each. */
typedef enum ht_kernel {
#define HT_KERNEL(file, name) HT_KERNEL_##name,
#include "backend/cuda/kernels.def"
#undef HT_KERNEL
  HT_KERNELS
} ht_kernel;

enum { HT_CUDA_SPARES = 16 };

typedef struct ht_cuda {
  ht_context *ctx;
  const ht_cuda_driver *driver;         /* entry points */
  int ordinal, sms, capability;         /* capability: 10 * major + minor */
  int64_t l2_bytes, shared_block_bytes; /* shared_block_bytes: the most a block may ask for */
  char name[128];
  CUdevice device;
  CUcontext context;
  int primary;     /* the context is the device's primary one, which this holds; else it is the caller's */
  CUstream stream; /* that all work goes to: our own, or the caller's */
  CUstream own;
  CUstream copies; /* where the rows of a matrix travel while `stream` works on those before them; made when it is first needed */
  /* of each kernel, loaded at its first launch */
  CUfunction function[HT_KERNELS];
  unsigned shared_limit[HT_KERNELS]; /* dynamic shared bytes that it has been allowed */
  CUlibrary library[HT_KERNELS];     /* of its file; kept by the file's first kernel */
  double *sums;                      /* device: partial sums of the vector operations, and the counter of blocks behind them */
  double *host;                      /* pinned: scalars that come back */
  int64_t bytes_now, bytes_most;     /* of device memory in use, and held at once, spare blocks included */
  struct {                           /* blocks that were given back, for the next matrix of this size; memory.c */
    CUdeviceptr block;
    int64_t bytes; /* 0: a free place */
  } spare[HT_CUDA_SPARES];
  int64_t bytes_spare;
  int next_spare; /* the place that gives way next */
  struct {        /* two pinned buffers that host memory travels through */
    char *memory;
    int64_t half; /* bytes of each */
    CUevent passed[2];
    int turn; /* the one that is being filled */
  } staging;
  void *told;       /* pinned: what an engine gave back, for the next one, or NULL */
  ht_status status; /* of the first call that failed: later launches do nothing */
  char error[256];  /* and its sentence */
} ht_cuda;

/* The device of the context; the backend's `open` has been called. */
static inline ht_cuda *ht_cuda_of(ht_context *ctx) { return (ht_cuda *)ctx->device; }

typedef struct ht_launch {
  unsigned grid, block, shared_bytes; /* one-dimensional */
  int cooperative;
  int early; /* it may begin while the kernel before it ends, and waits for that by itself */
} ht_launch;

/* Make the device's context the current one of this thread, and put back what was: functions below do it by themselves; code that calls
 * the driver's entry points stands between these two. Cheap when it is current already. */
int ht_cuda_enter(ht_cuda *cuda);
void ht_cuda_leave(ht_cuda *cuda, int entered);

/* The gate: every kernel launch of the backend passes here. args: pointers to the arguments, as the driver wants them. Asynchronous, on
 * the device's stream. A failure is recorded once, in the context, with the kernel's name. */
ht_status ht_cuda_launch(ht_cuda *cuda, ht_kernel kernel, ht_launch launch, void **args);
#define HT_ARGS(...) ((void *[]){__VA_ARGS__})
/* The most blocks of this kernel that can run at once on the device (cooperative launches need no more than these). */
ht_status ht_cuda_resident_blocks(ht_cuda *cuda, ht_kernel kernel, unsigned block, unsigned shared_bytes, int *blocks);

/* A graph of what `enqueue` launches. Its kernels must have been loaded (ht_cuda_resident_blocks does it). */
ht_status ht_cuda_capture(ht_cuda *cuda, void (*enqueue)(void *user), void *user, const char *what, CUgraphExec *graph);
ht_status ht_cuda_replay(ht_cuda *cuda, CUgraphExec graph, const char *what);

/* `bytes` zeroed bytes of device memory. HT_NO_MEMORY tells how many were asked for and are free. */
ht_status ht_cuda_allocate(ht_cuda *cuda, int64_t bytes, void *memory);
/* NULL is allowed. Work that is on the device's stream may still use it, and no other. */
void ht_cuda_release(ht_cuda *cuda, void *memory);
void ht_cuda_release_spares(ht_cuda *cuda);
/* Several arrays in one allocation, which the first one's pointer releases; an empty one is NULL. to: where a pointer goes. An allocation
 * of its own costs each tens of microseconds, and as many when it is released. */
typedef struct ht_cuda_part {
  int64_t bytes;
  void *to;
} ht_cuda_part;
ht_status ht_cuda_allocate_parts(ht_cuda *cuda, int count, const ht_cuda_part *parts);
/* Pinned host memory that the device reads and writes at the same address. */
ht_status ht_cuda_allocate_host(ht_cuda *cuda, int64_t bytes, void *memory);
void ht_cuda_release_host(ht_cuda *cuda, void *memory);
/* On the device's stream; the second form returns when the copy is complete. */
ht_status ht_cuda_copy_async(ht_cuda *cuda, int64_t bytes, const void *from, void *to);
ht_status ht_cuda_copy_on(ht_cuda *cuda, CUstream stream, int64_t bytes, const void *from, void *to);
ht_status ht_cuda_copy(ht_cuda *cuda, int64_t bytes, const void *from, void *to);
ht_status ht_cuda_fill(ht_cuda *cuda, int64_t bytes, int byte, void *memory);
/* Host memory to the device at the bus's speed, packed by all threads into one pinned buffer while the other one is being copied.
 * `from` may change when it returns. staging.c */
ht_status ht_cuda_send(ht_cuda *cuda, int64_t bytes, const void *from, void *to);
/* The same by hand: a pinned buffer of so many bytes, to be filled and copied from; then `staged`, with the stream of the copies. It may be
 * written until then. */
enum { HT_STAGING_BYTES = 8 << 20 }; /* that are worth a copy */
ht_status ht_cuda_stage(ht_cuda *cuda, int64_t bytes, void *memory);
ht_status ht_cuda_staged(ht_cuda *cuda, CUstream stream);
void ht_cuda_copy_on_host(const ht_cuda *cuda, int64_t bytes, const void *from, void *to); /* by all threads */
void ht_cuda_release_staging(ht_cuda *cuda);
/* Order between two streams: an event behind what is on the one, and what comes to the other from now on waits for it. */
ht_status ht_cuda_mark(ht_cuda *cuda, CUstream stream, CUevent *event); /* *event is made where it is NULL */
ht_status ht_cuda_wait(ht_cuda *cuda, CUevent event, CUstream stream);  /* what comes to `stream` from now on, for the event */
ht_status ht_cuda_copies(ht_cuda *cuda);                                /* makes cuda->copies */
/* Wait for all that was launched; reports what failed. */
ht_status ht_cuda_synchronize(ht_cuda *cuda);
/* Turn a driver's result into a status and a sentence that begins with `what` ("copying 80 bytes"). The first failure is kept in
 * `status`: the device counts as lost from then on. */
ht_status ht_cuda_check(ht_cuda *cuda, CUresult result, const char *what);

/* Implementations of the table, by file. device.c */
ht_status ht_cuda_open(ht_context *ctx, const char *device);
ht_status ht_cuda_failed(ht_context *ctx);
void ht_cuda_about(ht_context *ctx, char *text, size_t size);
int64_t ht_cuda_cache_bytes(void);
ht_status ht_cuda_set_stream(ht_context *ctx, void *stream);
/* memory.c */
ht_status ht_cuda_memory_create(ht_context *ctx, int64_t bytes, void *memory);
void ht_cuda_memory_release(ht_context *ctx, void *memory);
ht_status ht_cuda_upload(ht_context *ctx, int64_t bytes, const void *from, void *to);
ht_status ht_cuda_download(ht_context *ctx, int64_t bytes, const void *from, void *to);
int ht_cuda_reaches(ht_context *ctx, const void *memory);
int64_t ht_cuda_memory_most(ht_context *ctx);
/* vectors.c */
double ht_cuda_dot(ht_context *ctx, int64_t n, const double *x, const double *y);
double ht_cuda_norm_inf(ht_context *ctx, int64_t n, const double *x);
void ht_cuda_reduce(ht_context *ctx, int64_t n, int count, ht_reduction *reductions);
void ht_cuda_axpy(ht_context *ctx, int64_t n, double a, const double *x, double *y);
void ht_cuda_xpby(ht_context *ctx, int64_t n, const double *x, double b, double *y);
void ht_cuda_scale_by(ht_context *ctx, int64_t n, const double *d, const double *x, double *y);
void ht_cuda_copy_vector(ht_context *ctx, int64_t n, const double *x, double *y);
void ht_cuda_shift(ht_context *ctx, int64_t n, int exponent, const double *x, double *y);
/* csr.c */
void ht_cuda_csr_multiply(ht_context *ctx, const ht_csr_view *a, const double *x, double *y);
void ht_cuda_csr_residual(ht_context *ctx, const ht_csr_view *a, const double *x, const double *b, double *r);
/* tilecsc.c */
void ht_cuda_tilecsc_multiply(ht_context *ctx, const ht_tilecsc_view *a, const uint8_t *level, const double *x, double *y);
/* the split storage and its engines */
void ht_cuda_store_plan(ht_context *ctx, const ht_csr_view *a, int64_t block, ht_store_engine asked, ht_store_plan *plan);
const char *ht_cuda_store_met(ht_context *ctx, const ht_store_options *options);
ht_status ht_cuda_store_create(ht_context *ctx, const ht_csr_view *a, const ht_store_options *options, ht_store **store);
ht_status ht_cuda_store_set_values(ht_store *store, const ht_csr_view *a, const double *diagonal);
ht_status ht_cuda_store_take(ht_store *store, const ht_csr_view *a, ht_csr_facts *facts);
void ht_cuda_store_info(const ht_store *store, ht_store_info *info);
void ht_cuda_store_multiply(ht_store *store, const uint8_t *block_level, const double *x, double *y);
void ht_cuda_store_residual(ht_store *store, const double *x, const double *b, double *r);
void ht_cuda_store_release(ht_store *store);
ht_status ht_cuda_engine_create(ht_store *store, const ht_engine_precond *precond, int64_t capacity, ht_engine **engine);
ht_status ht_cuda_engine_renew(ht_engine *engine, int *same);
ht_status ht_cuda_engine_create_on_tiles(ht_context *ctx, const ht_tilecsc_view *a, const float *const column_error[HT_LEVEL_64],
                                         const double *diagonal, int64_t capacity, ht_engine **engine);
ht_status ht_cuda_engine_set_network(ht_engine *engine, const float *weights, int inputs, int hidden, int actions, int64_t interval);
ht_cg_event ht_cuda_engine_run(ht_engine *engine, ht_cg_state *state);
void ht_cuda_engine_set_levels(ht_engine *engine, const uint8_t *block_level);
void ht_cuda_engine_set_iterate(ht_engine *engine, const double *x);
void ht_cuda_engine_get_iterate(ht_engine *engine, double *x);
void ht_cuda_engine_set_residual(ht_engine *engine, const double *r);
int ht_cuda_engine_set_right_side(ht_engine *engine, const double *b);
void ht_cuda_engine_get_best(ht_engine *engine, double *x);
void ht_cuda_engine_get_residual(ht_engine *engine, double *r);
void ht_cuda_engine_get_direction(ht_engine *engine, double *p);
double ht_cuda_engine_direction_square(ht_engine *engine);
void ht_cuda_engine_release(ht_engine *engine);
/* learner.c */
ht_status ht_cuda_learner_create(ht_context *ctx, const ht_learner_settings *settings, int matrices, const ht_learner_system *system,
                                 ht_learner **learner);
void ht_cuda_learner_set_limit(ht_learner *learner, int matrix, int64_t iterations);
ht_status ht_cuda_learner_set_saving(ht_learner *learner, int matrix, const ht_learner_side *side, int64_t interval);
ht_status ht_cuda_learner_set_network(ht_learner *learner, const float *weights, const float *first, const float *second, int64_t steps);
ht_status ht_cuda_learner_get_network(ht_learner *learner, float *weights, float *first, float *second, int64_t *steps);
ht_status ht_cuda_learner_set_lane(ht_learner *learner, int lane, const ht_learner_lane *from);
ht_status ht_cuda_learner_get_lane(ht_learner *learner, int lane, ht_learner_lane *to);
ht_status ht_cuda_learner_collect(ht_learner *learner, ht_episode *finished, int64_t *count);
ht_status ht_cuda_learner_update(ht_learner *learner, uint64_t seed, ht_ppo_loss *mean);
ht_status ht_cuda_learner_judge(ht_learner *learner, int matrix, const ht_learner_trial *trial, ht_learner_judgement *judgement);
void ht_cuda_learner_release(ht_learner *learner);

#endif
