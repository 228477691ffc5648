/* What a matrix would cost in each format, without building it. SPDX-License-Identifier: BSD-3-Clause */
#include "solver/facts_scan.h"

enum { TILECSC_WIDTH = 64, TILECSC_LEAST_ROWS = 32, TILECSC_MOST_ROWS = 16384 };

/* The largest allowed height that leaves two row blocks a thread. */
static int64_t tile_height(int64_t n, int threads) {
  int64_t height = TILECSC_MOST_ROWS;
  while (height > TILECSC_LEAST_ROWS && n / height < 2 * (int64_t)threads) height /= 2;
  return height;
}

/* Tiles that are not empty: for each row block, the column blocks it touches. mark: one entry a column block. */
static int64_t count_tiles(const ht_matrix *a, int64_t height, int64_t *mark, int64_t blocks) {
  int64_t tiles = 0;
  for (int64_t b = 0; b < blocks; b++) mark[b] = -1;
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t k = a->row_start[i]; k < a->row_start[i + 1]; k++) {
      int64_t *m = &mark[a->columns[k] / TILECSC_WIDTH];
      tiles += *m != i / height;
      *m = i / height;
    }
  return tiles;
}

/* Values of 8, 4 and 2 bytes and a row index of 2 an entry; a tile has a start and a scale for each column. */
static ht_status tilecsc_bytes(const ht_matrix *a, int64_t *bytes) {
  int64_t height = tile_height(a->n, a->ctx->threads), blocks = a->n / TILECSC_WIDTH + 1, *mark;
  HT_TRY(a->ctx, ht_allocate(a->ctx, blocks, sizeof *mark, &mark));
  int64_t tiles = count_tiles(a, height, mark, blocks);
  ht_release(a->ctx, mark);
  int64_t tile = (TILECSC_WIDTH + 1) * (int64_t)sizeof(uint32_t) + TILECSC_WIDTH * (int64_t)sizeof(double) + 12;
  *bytes = a->nnz * (8 + 4 + 2 + 2) + tiles * tile + (a->n / height + 2) * 8;
  return HT_OK;
}

/* Slices of HT_LANES rows as long as their longest row: 8 bytes of value and 2 of index a lane, an exponent a group. */
static int64_t split_bytes(const ht_matrix *a) {
  int64_t groups = 0, slices = 0;
  for (int64_t i = 0; i < a->n; i += HT_LANES, slices++) {
    int64_t longest = 0;
    for (int64_t r = i; r < a->n && r < i + HT_LANES; r++) {
      int64_t length = a->row_start[r + 1] - a->row_start[r];
      if (length > longest) longest = length;
    }
    groups += longest;
  }
  return groups * (HT_LANES * (8 + 2) + 1) + slices * (int64_t)sizeof(ht_slice);
}

ht_status ht_facts_storage(const ht_matrix *a, ht_facts *f) {
  int64_t rows = (a->n + 1) * (int64_t)sizeof(int64_t);
  f->bytes_csr_f64 = a->nnz * (8 + 4) + rows;
  f->bytes_csr_f32 = a->nnz * (4 + 4) + rows;
  f->bytes_split = split_bytes(a);
  HT_TRY(a->ctx, tilecsc_bytes(a, &f->bytes_tilecsc));
  return HT_OK;
}
