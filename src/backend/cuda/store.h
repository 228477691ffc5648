/* The store's host side. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_STORE_H
#define HT_BACKEND_CUDA_STORE_H
#include "backend/cuda/cuda.h"
#include "backend/cuda/view.h"

/* Warps of the persistent engine's blocks with one row a thread, and with several: these need more registers. */
enum { HT_NARROW_WARPS = 20, HT_WIDE_WARPS = 16 };

/* How the rows of a pattern are put in order, cut into slices and dealt to patches, and which units those take. Stores share it, and the
 * context keeps it for the next matrix with this pattern. */
typedef struct ht_arrangement {
  int users;
  const char *ordering;
  ht_store_plan plan; /* what became of the one that was asked for */
  ht_store_view view; /* its numbers; the pointers are each store's own */
  int32_t *order;     /* as in the view */
  int32_t *position;  /* n: the caller's order to the solver's */
  int sorted;         /* the order is the natural one, with padding perhaps: rows lie in the CSR as they are sent */
  int identity;       /* and without any padding but behind the last row */
  int64_t *start;     /* padded + 1: nonzeros before each row */
  ht_slice_info *slice;
  int32_t *patch_slice, *halo_start, *halo;
  int16_t *boundary; /* padded: whether another patch has the row in its halo; the device adds the scales */
  int64_t halo_most, patch_slices_most;
} ht_arrangement;

struct ht_store {
  ht_context *ctx;
  ht_cuda *cuda;
  ht_store_view view; /* the device's pointers */
  ht_store_plan plan;
  int64_t block; /* consecutive unknowns that stay together */
  int exactness_flags;
  /* what the host keeps, for new values */
  ht_arrangement *rows;
  int met;           /* another store had these rows before */
  int16_t *exponent; /* padded: as on the device, where it is known */
  int exponents_known, exponent_most;
  /* device */
  double *diagonal; /* of the scaled matrix, padded */
  double *x, *y;    /* in solver order, scaled */
  uint8_t *block_level;
  unsigned long long *counts; /* HT_COUNTS */
  int64_t bytes;
  ht_store_info info;
};

/* Rows of n unknowns in blocks that each lie within one column block. */
static inline int64_t ht_cuda_padded(int64_t n, int64_t block) {
  int64_t blocks = (n + block - 1) / block, fit = HT_COLUMN_BLOCK / block;
  return (blocks + fit - 1) / fit * HT_COLUMN_BLOCK;
}

/* Shared memory of the persistent engine's blocks: what its kernels declare, and what a unit takes decoded at a level. */
enum { HT_STATIC_SHARED = 4096 };
static inline int64_t ht_cuda_unit_shared(int level) { return ((4 << level) + 4) * HT_WARP + 8; }

/* Entries that there are places for. */
static inline int64_t ht_cuda_store_entries(const ht_store_view *v) { return v->units * HT_WARP * 2 + v->ragged_entries; }
/* Bytes of what tells of them, beside their values. */
static inline int64_t ht_cuda_store_bytes_beside(const ht_store_view *v) {
  int64_t indices = v->index_units * HT_WARP * 2 + v->ragged_entries, bases = v->patches ? 0 : v->index_units, ends = v->slices * v->ragged;
  return indices * 2 + bases * 4 + (v->units + ends) * (int64_t)sizeof *v->info + ends * (int64_t)sizeof *v->has;
}

/* store_rows.c: order, slices and halos on the host, into store->rows. */
ht_status ht_cuda_store_arrange(ht_store *store, const ht_csr_view *a, const int32_t *order);
void ht_cuda_arrangement_release(ht_context *ctx, void *arrangement); /* by one of its users */
/* store.c: store->exponent, fetched from the device. */
ht_status ht_cuda_store_fetch_exponents(ht_store *store);
/* store_build.c: the groups are counted and the arrays made, and values. */
ht_status ht_cuda_store_build(ht_store *store, const ht_csr_view *a, const double *diagonal);
ht_status ht_cuda_store_rebuild(ht_store *store, const ht_csr_view *a, const double *diagonal);
ht_status ht_cuda_store_refill(ht_store *store, const ht_csr_view *a); /* from the device; the diagonal is in store->x */
ht_status ht_cuda_store_tell(ht_store *store, int64_t nnz, const unsigned long long *counts); /* what came out: store->info */

/* One thread an element, but never more blocks than this. */
static inline ht_launch ht_cuda_over(int64_t count) {
  int64_t blocks = (count + 255) / 256;
  return (ht_launch){.grid = (unsigned)(blocks < 1 ? 1 : blocks > 8192 ? 8192 : blocks), .block = 256};
}

#endif
