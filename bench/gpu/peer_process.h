/* Peers that are programs of their own, started once a matrix and asked for one solve after the other; bench/peers/problem_file.h is what
 * they are told and how they answer. SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_PEER_PROCESS_H
#define BENCH_GPU_PEER_PROCESS_H
#include <stdint.h>
#include "library_cg.h"

typedef struct peer_process peer_process;

/* 0, or -1 with the sentence in peer_process_error(). */
const char *peer_process_error(void);
/* A new file in $TMPDIR or /tmp, whose name goes to `path`. */
int problem_file_write(int64_t n, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values, const double *b,
                       char *path, int64_t path_size);
/* Comes back when the peer is ready: it has read the file. */
int peer_process_start(const char *command, const char *path, const char *precond, double rtol, int64_t max_iterations,
                       peer_process **peer);
int peer_process_solve(peer_process *peer, library_run *run);
void peer_process_stop(peer_process *peer); /* NULL is fine */
#endif
