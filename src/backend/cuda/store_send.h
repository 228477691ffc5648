/* Rows of the CSR on their way into a store. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_BACKEND_CUDA_STORE_SEND_H
#define HT_BACKEND_CUDA_STORE_SEND_H
#include "backend/cuda/store.h"

/* Rows of some slices in solver order, and their place on the device. */
typedef struct ht_packet {
  int64_t first_slice, slices, row, rows, nnz; /* row: the first */
  ht_rows_view view;
} ht_packet;

enum { HT_WINDOWS = 2 };

/* Where the CSR lies; TWICE: there will be two passes, the first over the columns. */
typedef enum ht_source { HT_FROM_HOST, HT_FROM_HOST_TWICE, HT_FROM_DEVICE } ht_source;

/* What the device holds of the CSR while a store is built: 64 MiB at most, or the slice that is longer. Either all rows in one window, or
 * two windows in turn, one of which is filled by the copy engine while kernels work on the other, and all columns where these are few: they
 * are looked at twice when a pattern is new. */
typedef struct ht_traffic {
  ht_store *store;
  const ht_csr_view *a;
  ht_source source;
  int whole;        /* all rows fit into the first window, and lie there sorted once they were sent */
  int windows;      /* in use */
  int64_t room;     /* bytes of a window */
  int passes, sent; /* sent: this pass finds all rows in the window */
  int with_values;  /* what is sent */
  int64_t next;     /* slice of the packet that comes next */
  int turn;         /* the window of the packet that came last */
  int32_t *kept;    /* all columns as the caller has them, in solver order of the rows; or NULL */
  ht_rows_view window[HT_WINDOWS];
  CUevent arrived[HT_WINDOWS], done[HT_WINDOWS];
} ht_traffic;

ht_status ht_traffic_begin(ht_store *store, const ht_csr_view *a, ht_source source, ht_traffic *traffic);
/* Ahead of a pass over all slices. */
void ht_traffic_pass(ht_traffic *traffic, int with_values);
/* The pass's next packet: its rows are there, their columns in solver order and ascending, for what is launched from now on. packet->slices
 * is 0 when the pass is through. */
ht_status ht_traffic_next(ht_traffic *traffic, ht_packet *packet);
void ht_traffic_end(ht_traffic *traffic); /* when nothing works on it any more */

#endif
