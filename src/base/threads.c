/* How many threads. SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include "base/context.h"

/* A whole number above 0, blanks around it; 0 for anything else. */
static int read_count(const char **at) {
  char *end;
  while (isspace((unsigned char)**at)) ++*at;
  if (!isdigit((unsigned char)**at)) return 0;
  errno = 0;
  long count = strtol(*at, &end, 10);
  while (isspace((unsigned char)*end)) end++;
  *at = end;
  return errno || count > HT_MOST_THREADS ? 0 : (int)count;
}

/* A list has a number for each level of nesting, and we are the first. */
int ht_threads_of_openmp(void) {
  const char *at = getenv("OMP_NUM_THREADS");
  int first = at ? read_count(&at) : 0, more = first;
  while (more && *at == ',') {
    at++;
    more = read_count(&at);
  }
  return at && more && !*at ? first : 0;
}

int ht_threads_by_default(void) {
  int wished = ht_threads_of_openmp();
  return wished ? wished : ht_available_cores();
}

int ht_threads_worth(const ht_context *ctx, double bytes) {
  double worth = bytes / (double)ctx->bytes_a_thread;
  return worth >= ctx->threads ? ctx->threads : worth > 1 ? (int)worth : 1;
}
