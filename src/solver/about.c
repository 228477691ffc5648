/* What this build and this machine offer. SPDX-License-Identifier: BSD-3-Clause */
#include "halftone/about.h"
#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "backend/backend.h"
#include "halftone/options.h"
#include "halftone/version.h"

static void about_version(ht_context *ctx, char *text, size_t size) {
  (void)ctx;
  snprintf(text, size, "%s", ht_version());
}

static void about_compiler(ht_context *ctx, char *text, size_t size) {
  (void)ctx;
#ifdef __clang__
  snprintf(text, size, "clang %s", __clang_version__);
#else
  snprintf(text, size, "gcc %s", __VERSION__);
#endif
}

static void about_cores(ht_context *ctx, char *text, size_t size) {
  (void)ctx;
  snprintf(text, size, "%ld online", sysconf(_SC_NPROCESSORS_ONLN));
}

static void about_threads(ht_context *ctx, char *text, size_t size) {
  int threads = ht_context_threads(ctx);
  snprintf(text, size, "%d%s", threads, threads == ht_threads_of_openmp() ? ", as OMP_NUM_THREADS says" : "");
}

static void about_memory(ht_context *ctx, char *text, size_t size) {
  (void)ctx;
  double page = (double)sysconf(_SC_PAGESIZE), pages = (double)sysconf(_SC_PHYS_PAGES);
  snprintf(text, size, "%.1f GiB", page * pages / 1073741824.0);
}

#ifdef _SC_LEVEL1_DCACHE_SIZE
static long kib_of(int name) { return sysconf(name) / 1024; }
#endif

/* The last level is the backend's figure, the one that `auto` decides by: the C library's can be a whole host's. */
static void about_caches(ht_context *ctx, char *text, size_t size) {
  const ht_backend *cpu;
  if (ht_backend_find(ctx, "cpu", &cpu) != HT_OK) return;
  long long last = (long long)(cpu->cache_bytes() / 1024);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  snprintf(text, size, "L1 data %ld KiB, L2 %ld KiB, last level %lld KiB", kib_of(_SC_LEVEL1_DCACHE_SIZE), kib_of(_SC_LEVEL2_CACHE_SIZE),
           last);
#else
  snprintf(text, size, "last level %lld KiB", last);
#endif
}

static const char *isa_choices(void) {
  for (int i = 0; i < ht_option_count(); i++)
    if (!strcmp(ht_option_at(i)->name, "isa")) return ht_option_at(i)->choices;
  return "";
}

/* Each one is tried; what was in use is put back. */
static void about_isa(ht_context *ctx, char *text, size_t size) {
  const ht_backend *cpu;
  if (ht_backend_find(ctx, "cpu", &cpu) != HT_OK) return;
  char in_use[32], name[32], usable[128] = "";
  snprintf(in_use, sizeof in_use, "%s", cpu->isa());
  for (const char *at = isa_choices(); *at;) {
    int n = (int)strcspn(at, "|");
    snprintf(name, sizeof name, "%.*s", n, at);
    size_t used = strlen(usable);
    if (strcmp(name, "auto") != 0 && cpu->set_isa(ctx, name) == HT_OK)
      snprintf(usable + used, sizeof usable - used, "%s%s", used ? ", " : "", name);
    at += n + (at[n] == '|');
  }
  if (cpu->set_isa(ctx, in_use) != HT_OK) snprintf(in_use, sizeof in_use, "not known");
  ht_context_clear_error(ctx);
  snprintf(text, size, "%s in use; usable here: %s", in_use, usable);
}

static void about_libraries(ht_context *ctx, char *text, size_t size) {
  (void)ctx;
  snprintf(text, size, "OpenMP %d (up to %d threads), zlib %s, jansson %s", _OPENMP, omp_get_thread_limit(), zlibVersion(),
           jansson_version_str());
}

static const struct {
  const char *name;
  void (*tell)(ht_context *ctx, char *text, size_t size);
} rows[] = {{"version", about_version}, {"compiler", about_compiler}, {"cuda", ht_backend_about_cuda},
            {"kernels", about_isa},     {"cores", about_cores},       {"threads", about_threads},
            {"caches", about_caches},   {"memory", about_memory},     {"libraries", about_libraries}};

int ht_about_count(void) { return (int)(sizeof rows / sizeof *rows); }

ht_status ht_about_at(ht_context *ctx, int index, const char **name, char *text, size_t size) {
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, name);
  HT_NEED(ctx, text);
  HT_CHECK(ctx, index >= 0 && index < ht_about_count() && size > 0, HT_BAD_ARGUMENT, "index must be 0 to %d, and is %d",
           ht_about_count() - 1, index);
  text[0] = 0;
  *name = rows[index].name;
  rows[index].tell(ctx, text, size);
  return HT_OK;
}
