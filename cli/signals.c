/* SIGINT, SIGTERM and SIGHUP. A solve or a training that runs is asked to end, and keeps its best; anything else leaves nothing behind that
 * is worth waiting for, and the process ends in the handler, from whatever call it waits in. SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "signals.h"
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "io/output.h"

static ht_context *watched;
static volatile sig_atomic_t asks;
static atomic_llong first_ns; /* of the first signal; 0: none */

/* `timeout` signals its command and then the command's group, so that one signal arrives twice, maybe in two threads. */
enum { ECHO_NS = 100000000 };

static long long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void on_signal(int number) {
  static const char sentence[] = "halftone: interrupted\n";
  (void)number;
  long long first = 0, now = nanoseconds();
  int again = !atomic_compare_exchange_strong(&first_ns, &first, now);
  if (asks && again && now - first < ECHO_NS) return;
  if (asks && !again) {
    ht_context_request_stop(watched);
    return;
  }
  ht_output_unlink();
  if (!again) (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
  _exit(again ? CLI_KILLED : CLI_NOT_SOLVED);
}

void signals_watch(ht_context *ctx) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = on_signal}, before;
  watched = ctx;
  sigemptyset(&action.sa_mask);
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    int ignored = numbers[k] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN; /* nohup */
    if (!ignored) sigaction(numbers[k], &action, NULL);
  }
  signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit then fails, and says so */
}

void signals_ask(int on) { asks = on; }
