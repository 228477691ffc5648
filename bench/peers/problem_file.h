/* A problem on its way to a peer: one file in the machine's own byte order, with 32-bit indices, which peers want. Also for C++.
 *
 *     int64 n, nnz; double values[nnz]; double b[n]; int32 row_start[n + 1]; int32 columns[nnz]
 *
 * A peer is a program that is called with FILE none|jacobi RTOL MAX_ITERATIONS. It puts the problem on the device and prints `ready`. For
 * every line that it reads it solves once, from x = 0 to ||b - A x|| <= RTOL ||b||, and answers with one line of its own:
 * ITERATIONS CONVERGED(0|1) SECONDS ||b - A x||/||b||, the last computed after the time. Any other line says why it gives up.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PEERS_PROBLEM_FILE_H
#define BENCH_PEERS_PROBLEM_FILE_H
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct problem_file {
  int64_t n, nnz;
  double *values, *b;
  int32_t *row_start, *columns;
} problem_file;

static inline int64_t problem_file_bytes(int64_t n, int64_t nnz) { return 16 + 8 * (nnz + n) + 4 * (n + 1 + nnz); }

/* Pages are this process's own where it writes. 0: not such a file. */
static inline int problem_file_open(const char *path, problem_file *p) {
  struct stat about;
  int file = open(path, O_RDONLY);
  if (file < 0 || fstat(file, &about) || about.st_size < 16) return 0;
  void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return 0;
  const int64_t *head = (const int64_t *)memory;
  p->n = head[0];
  p->nnz = head[1];
  p->values = (double *)memory + 2;
  p->b = p->values + p->nnz;
  p->row_start = (int32_t *)(p->b + p->n);
  p->columns = p->row_start + p->n + 1;
  return about.st_size == problem_file_bytes(p->n, p->nnz);
}

#endif
