/* Time of ht_matrix_read: one JSON object with the seconds of each repetition, processor time and peak memory.
 * usage: bench_read_mtx FILE [THREADS [REPETITIONS]]   SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "halftone/halftone.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A line of /proc/self/status, in bytes. (ru_maxrss would count the parent's memory.) */
static double memory(const char *key) {
  char line[256];
  double kilobytes = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key))) kilobytes = atof(line + strlen(key));
  if (f) fclose(f);
  return 1024 * kilobytes;
}

static double processor_time(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
  ht_context *ctx;
  if (argc < 2 || ht_context_create(&ctx) != HT_OK) return 2;
  int threads = argc > 2 ? atoi(argv[2]) : 0, repetitions = argc > 3 ? atoi(argv[3]) : 1;
  if (ht_context_set_threads(ctx, threads) != HT_OK) return 2;
  double before = memory("VmRSS:"), processor = processor_time();
  printf("{\"seconds\": [");
  long long n = 0, nnz = 0;
  for (int i = 0; i < repetitions; i++) {
    ht_matrix *a;
    double start = now();
    if (ht_matrix_read(ctx, argv[1], &a) != HT_OK) {
      fprintf(stderr, "%s\n", ht_context_error(ctx));
      return 1;
    }
    printf("%s%.4f", i ? ", " : "", now() - start);
    n = ht_matrix_rows(a);
    nnz = ht_matrix_nonzeros(a);
    ht_matrix_destroy(a);
  }
  double csr = 12.0 * (double)nnz + 8.0 * (double)n, peak = memory("VmHWM:") - before;
  printf("], \"n\": %lld, \"nnz\": %lld, \"csr_bytes\": %.0f, \"peak_bytes\": %.0f, \"cpu_seconds\": %.4f}\n", n, nnz, csr, peak,
         (processor_time() - processor) / repetitions);
  ht_context_destroy(ctx);
  return 0;
}
