/* SIGINT and SIGTERM ask the running work to end; a second one does not wait. SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"
#include <signal.h>
#include <unistd.h>

static ht_context *watched;
static volatile sig_atomic_t received;

static void on_signal(int number) {
  (void)number;
  if (received++) _exit(CLI_KILLED);
  ht_context_request_stop(watched);
}

void signals_watch(ht_context *ctx) {
  struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: a read that waits for input returns, and sees the request */
  watched = ctx;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}
