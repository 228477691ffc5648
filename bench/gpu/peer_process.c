/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer_process.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LINE = 256, COMMAND = 4096 };
static char sentence[COMMAND + LINE];

struct peer_process {
  pid_t pid;
  FILE *to, *from;
};

const char *peer_process_error(void) { return sentence; }

static int fail(const char *what, const char *why) {
  snprintf(sentence, sizeof sentence, "%.3800s: %.200s", what, why);
  return -1;
}

/* ---- The file ---- */

static int write_indices(FILE *f, int64_t count, const int64_t *from) {
  int32_t some[4096];
  for (int64_t at = 0; at < count;) {
    int64_t few = count - at < 4096 ? count - at : 4096;
    for (int64_t k = 0; k < few; k++) some[k] = (int32_t)from[at + k];
    if (fwrite(some, sizeof *some, (size_t)few, f) != (size_t)few) return -1;
    at += few;
  }
  return 0;
}

static int write_all(FILE *f, int64_t n, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values,
                     const double *b) {
  const int64_t head[2] = {n, nnz};
  if (fwrite(head, sizeof *head, 2, f) != 2) return -1;
  if (fwrite(values, sizeof *values, (size_t)nnz, f) != (size_t)nnz || fwrite(b, sizeof *b, (size_t)n, f) != (size_t)n) return -1;
  if (write_indices(f, n + 1, row_start)) return -1;
  return fwrite(columns, sizeof *columns, (size_t)nnz, f) == (size_t)nnz ? 0 : -1;
}

int problem_file_write(int64_t n, int64_t nnz, const int64_t *row_start, const int32_t *columns, const double *values, const double *b,
                       char *path, int64_t path_size) {
  const char *folder = getenv("TMPDIR");
  if (nnz > INT32_MAX) return fail("the peers", "their indices have 32 bits, and there are more nonzeros");
  if (snprintf(path, (size_t)path_size, "%s/bench_gpu_cg.XXXXXX", folder ? folder : "/tmp") >= path_size)
    return fail("$TMPDIR", "it is too long");
  int file = mkstemp(path);
  FILE *f = file < 0 ? NULL : fdopen(file, "wb");
  if (!f) return fail(path, strerror(errno));
  int bad = write_all(f, n, nnz, row_start, columns, values, b);
  if (!fclose(f) && !bad) return 0;
  fail(path, strerror(errno));
  unlink(path);
  return -1;
}

/* ---- The program ---- */

/* Closed in every program that is started, but for the ends that become its input and output. */
static int make_pipe(int end[2]) {
  if (pipe(end)) return -1;
  for (int k = 0; k < 2; k++) fcntl(end[k], F_SETFD, FD_CLOEXEC);
  return 0;
}

static int spawn(const char *line, int input, int output, pid_t *pid) {
  char *const words[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)line, NULL};
  posix_spawn_file_actions_t ends;
  if (posix_spawn_file_actions_init(&ends)) return ENOMEM;
  int error = posix_spawn_file_actions_adddup2(&ends, input, STDIN_FILENO);
  if (!error) error = posix_spawn_file_actions_adddup2(&ends, output, STDOUT_FILENO);
  if (!error) error = posix_spawn(pid, "/bin/sh", &ends, NULL, words, environ);
  posix_spawn_file_actions_destroy(&ends);
  return error;
}

static int start(const char *line, peer_process *p) {
  int input[2], output[2];
  if (make_pipe(input)) return fail("a pipe", strerror(errno));
  if (make_pipe(output)) {
    close(input[0]);
    close(input[1]);
    return fail("a pipe", strerror(errno));
  }
  int error = spawn(line, input[0], output[1], &p->pid);
  close(input[0]);
  close(output[1]);
  p->to = fdopen(input[1], "w");
  p->from = fdopen(output[0], "r");
  return error ? fail(line, strerror(error)) : p->to && p->from ? 0 : fail("a pipe", strerror(errno));
}

/* One line, without its end. */
static int answer(peer_process *p, char *line) {
  if (!fgets(line, LINE, p->from)) return fail("the peer", "it ended without an answer");
  line[strcspn(line, "\n")] = 0;
  return 0;
}

int peer_process_start(const char *command, const char *path, const char *precond, double rtol, int64_t max_iterations,
                       peer_process **peer) {
  char line[COMMAND];
  *peer = NULL;
  if (snprintf(line, sizeof line, "exec %s '%s' %s %g %lld", command, path, precond, rtol, (long long)max_iterations) >= (int)sizeof line)
    return fail("the peer", "its command is too long");
  peer_process *p = calloc(1, sizeof *p);
  if (!p) return fail("the peer", "memory is exhausted");
  signal(SIGPIPE, SIG_IGN); /* a peer that ended is told by its answer */
  int bad = start(line, p) || answer(p, line);
  if (!bad && strcmp(line, "ready")) bad = fail("the peer", line);
  if (!bad)
    *peer = p;
  else
    peer_process_stop(p);
  return bad ? -1 : 0;
}

int peer_process_solve(peer_process *p, library_run *run) {
  char line[LINE];
  long long iterations;
  if (fputs("solve\n", p->to) < 0 || fflush(p->to)) return fail("the peer", "it ended");
  if (answer(p, line)) return -1;
  if (sscanf(line, "%lld %d %lf %lf", &iterations, &run->converged, &run->time_s, &run->residual_true) != 4) return fail("the peer", line);
  run->iterations = iterations;
  run->us_per_iteration = iterations > 0 ? 1e6 * run->time_s / (double)iterations : NAN;
  return 0;
}

void peer_process_stop(peer_process *p) {
  if (!p) return;
  if (p->to) fclose(p->to);
  if (p->from) fclose(p->from);
  if (p->pid > 0) waitpid(p->pid, NULL, 0);
  free(p);
}
