/* What the context gives its caller: log, stop flag, allocator, words for values out of range.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/context.h"
#include "halftone/precision.h"
#include "support/failing.h"

typedef struct {
  int count;
  ht_log_level level;
  char message[2 * HT_ERROR_TEXT];
} record;

static void remember(void *user, ht_log_level level, const char *message) {
  record *r = user;
  r->count++;
  r->level = level;
  snprintf(r->message, sizeof r->message, "%s", message);
}

static void the_log_takes_its_level_and_above(void **state) {
  (void)state;
  ht_context *ctx;
  record r = {0};
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_log(ctx, HT_LOG_ERROR, "to nowhere"); /* no function set */
  ht_context_set_log(ctx, remember, &r, HT_LOG_WARNING);
  ht_log(ctx, HT_LOG_INFO, "not wanted");
  assert_int_equal(r.count, 0);
  ht_log(ctx, HT_LOG_WARNING, "row %d", 7);
  assert_int_equal(r.count, 1);
  assert_int_equal(r.level, HT_LOG_WARNING);
  assert_string_equal(r.message, "row 7");
  ht_context_set_log(ctx, remember, &r, HT_LOG_DEBUG);
  ht_log(ctx, HT_LOG_DEBUG, "%03000d", 1); /* cut, not overflown */
  assert_int_equal(r.count, 2);
  assert_int_equal(strlen(r.message), HT_ERROR_TEXT - 1);
  ht_context_set_log(ctx, NULL, NULL, HT_LOG_DEBUG);
  ht_log(ctx, HT_LOG_ERROR, "to nowhere");
  assert_int_equal(r.count, 2);
  ht_context_destroy(ctx);
}

/* Laps of a set-up: each part has the time since the lap before, and parts without any are not told. */
static void laps_add_up(void **state) {
  (void)state;
  ht_context *ctx;
  record r = {0};
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_context_set_log(ctx, remember, &r, HT_LOG_DEBUG);
  double begin = ht_seconds(), sum = 0;
  ht_laps_begin(ctx);
  for (int k = 0; k < 3; k++) {
    double wait = ht_seconds();
    while (ht_seconds() < wait + 1e-4) continue;
    ht_lap(ctx, HT_PHASE_ordering);
    ht_lap(ctx, HT_PHASE_packing);
  }
  double all = ht_seconds() - begin;
  for (int k = 0; k < HT_PHASES; k++) sum += ctx->stopwatch.seconds[k];
  assert_true(ctx->stopwatch.seconds[HT_PHASE_ordering] >= 3e-4 && sum <= all);
  ht_laps_tell(ctx);
  assert_non_null(strstr(r.message, "set-up: ordering "));
  assert_null(strstr(r.message, "scales"));
  ht_laps_begin(ctx);
  assert_true(ctx->stopwatch.seconds[HT_PHASE_ordering] == 0);
  ht_context_destroy(ctx);
}

/* Sentences quote files, which may hold any byte. */
static void a_sentence_stays_one_line(void **state) {
  (void)state;
  ht_context *ctx;
  record r = {0};
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  ht_fail(ctx, HT_BAD_FORMAT, __func__, __FILE__, __LINE__, "type '%s'", "a\nb\x1b");
  assert_string_equal(ht_context_error(ctx), "type 'a?b?'");
  ht_context_set_log(ctx, remember, &r, HT_LOG_WARNING);
  ht_log(ctx, HT_LOG_WARNING, "%s", "a\r\nb");
  assert_string_equal(r.message, "a??b");
  ht_context_destroy(ctx);
}

static void a_stop_lasts_until_it_is_cleared(void **state) {
  (void)state;
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  assert_false(ht_stop_requested(ctx));
  ht_context_request_stop(ctx);
  ht_context_request_stop(ctx);
  assert_true(ht_stop_requested(ctx));
  ht_context_clear_stop(ctx);
  assert_false(ht_stop_requested(ctx));
  ht_context_destroy(ctx);
}

static void an_incomplete_allocator_is_refused(void **state) {
  (void)state;
  failing_allocator counter = {.fail_at = -1};
  const ht_allocator whole = {failing_allocate, failing_release, &counter};
  ht_allocator no_allocate = whole, no_release = whole;
  ht_context *ctx;
  no_allocate.allocate = NULL;
  no_release.release = NULL;
  assert_int_equal(ht_context_create_with(&no_allocate, &ctx), HT_BAD_ARGUMENT);
  assert_null(ctx);
  assert_int_equal(ht_context_create_with(&no_release, &ctx), HT_BAD_ARGUMENT);
  assert_int_equal(ht_context_create_with(NULL, &ctx), HT_BAD_ARGUMENT);
  assert_int_equal(ht_context_create_with(&whole, NULL), HT_BAD_ARGUMENT);
  counter.fail_at = 0;
  assert_int_equal(ht_context_create_with(&whole, &ctx), HT_NO_MEMORY);
  assert_null(ctx);
  assert_int_equal(counter.alive, 0);
  ht_context_destroy(NULL);
}

static void everything_goes_through_the_callers_allocator(void **state) {
  (void)state;
  failing_allocator counter;
  ht_context *ctx;
  void *memory;
  assert_int_equal(failing_context(&counter, &ctx), HT_OK);
  assert_int_equal(counter.alive, 1);
  assert_int_equal(ht_allocate(ctx, 1000, 8, &memory), HT_OK);
  assert_int_equal(counter.alive, 2);
  ht_release(ctx, memory);
  counter.fail_at = counter.requests;
  assert_int_equal(ht_allocate(ctx, 1 << 20, 8, &memory), HT_NO_MEMORY);
  assert_null(memory);
  assert_non_null(strstr(ht_context_error(ctx), "8.0 MiB"));
  ht_context_destroy(ctx);
  assert_int_equal(counter.alive, 0);
}

static ht_status fails_twice(ht_context *ctx) {
  ht_status status;
  HT_TRY_GOTO(ctx, status, HT_OK, done);
  HT_FAIL_GOTO(ctx, status, done, HT_BAD_MATRIX, "the first sentence");
done:
  return status;
}

static void a_new_error_replaces_the_old_one(void **state) {
  (void)state;
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  assert_int_equal(ht_fail(ctx, HT_BAD_FILE, "old_function", "old.c", 1, "the old sentence"), HT_BAD_FILE);
  assert_int_equal(fails_twice(ctx), HT_BAD_MATRIX);
  assert_string_equal(ht_context_error(ctx), "the first sentence");
  assert_null(strstr(ht_context_trail(ctx), "old_function"));
  assert_non_null(strstr(ht_context_trail(ctx), "fails_twice (test_context.c:")); /* file without its folder */
  ht_context_destroy(ctx);
}

static int quota(const char *text) {
  char path[] = "/tmp/halftone-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  int cores = ht_quota_cores(path);
  assert_int_equal(unlink(path), 0);
  return cores;
}

static void a_containers_quota_limits_the_cores(void **state) {
  (void)state;
  int any = ht_quota_cores("/nonexistent/cpu.max");
  assert_true(any >= 1024);
  assert_int_equal(quota("200000 100000\n"), 2);
  assert_int_equal(quota("150000 100000\n"), 2);
  assert_int_equal(quota("1000 100000\n"), 1);
  static const char *const without[] = {"max 100000\n", "", "200000", "0 100000", "-1 100000", "100000 0", "nan nan", "1e300 1e-300"};
  for (size_t k = 0; k < sizeof without / sizeof *without; k++) assert_int_equal(quota(without[k]), any);
}

static void more_threads_than_cores_are_taken_with_a_warning(void **state) {
  (void)state;
  ht_context *ctx;
  record r = {0};
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  int cores = ht_context_threads(ctx);
  ht_context_set_log(ctx, remember, &r, HT_LOG_WARNING);
  assert_int_equal(ht_context_set_threads(ctx, cores), HT_OK);
  assert_int_equal(r.count, 0);
  assert_int_equal(ht_context_set_threads(ctx, cores + 1), HT_OK);
  assert_int_equal(ht_context_set_threads(ctx, cores + 1), HT_OK); /* said once */
  assert_int_equal(r.count, 1);
  assert_int_equal(ht_context_threads(ctx), cores + 1);
  assert_int_equal(ht_context_set_threads(ctx, 0), HT_OK);
  assert_int_equal(ht_context_threads(ctx), cores);
  ht_context_destroy(ctx);
}

static int threads_with(const char *openmp) {
  ht_context *ctx;
  if (openmp)
    setenv("OMP_NUM_THREADS", openmp, 1);
  else
    unsetenv("OMP_NUM_THREADS");
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  int threads = ht_context_threads(ctx);
  assert_int_equal(ht_context_set_threads(ctx, 0), HT_OK);
  assert_int_equal(ht_context_threads(ctx), threads);
  assert_int_equal(ht_context_set_threads(ctx, 2), HT_OK); /* what is asked for wins */
  assert_int_equal(ht_context_threads(ctx), 2);
  ht_context_destroy(ctx);
  return threads;
}

static void openmps_variable_is_the_default(void **state) {
  (void)state;
  const char *before = getenv("OMP_NUM_THREADS");
  char *kept = before ? strdup(before) : NULL;
  int cores = threads_with(NULL);
  assert_int_equal(cores, ht_available_cores());
  assert_int_equal(threads_with("7"), 7);
  assert_int_equal(threads_with(" 3 "), 3);
  assert_int_equal(threads_with("5,2 , 1"), 5);
  static const char *const bad[] = {"", "0", "-2", "many", "2x", "2,", "2,x", "1.5", "99999999999999999999", "4097"};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) assert_int_equal(threads_with(bad[k]), cores);
  if (kept)
    setenv("OMP_NUM_THREADS", kept, 1);
  else
    unsetenv("OMP_NUM_THREADS");
  free(kept);
}

static void small_jobs_are_worth_few_threads(void **state) {
  (void)state;
  ht_context *ctx;
  assert_int_equal(ht_context_create(&ctx), HT_OK);
  assert_int_equal(ht_context_set_threads(ctx, 4), HT_OK);
  static const double share[] = {0, 0.5, 1, 1.99, 2, 3.5, 4, 1e9, INFINITY};
  static const int worth[] = {1, 1, 1, 1, 2, 3, 4, 4, 4};
  for (size_t k = 0; k < sizeof share / sizeof *share; k++) assert_int_equal(ht_threads_worth(ctx, share[k] * HT_BYTES_A_THREAD), worth[k]);
  ht_context_destroy(ctx);
}

static void values_out_of_range_have_words_too(void **state) {
  (void)state;
  assert_string_equal(ht_status_name((ht_status)9999), "HT_UNKNOWN");
  assert_true(strlen(ht_status_text((ht_status)9999)) > 0);
  assert_string_equal(ht_outcome_name((ht_outcome)9999), "unknown");
  assert_true(strlen(ht_outcome_text((ht_outcome)9999)) > 0);
  assert_string_equal(ht_precision_name(HT_PRECISION_COUNT), "unknown");
  assert_int_equal(ht_precision_bytes(HT_PRECISION_COUNT), 0);
  assert_true(isnan(ht_precision_unit_roundoff(HT_PRECISION_COUNT)));
  assert_true(isnan(ht_precision_largest(HT_PRECISION_COUNT)) && isnan(ht_precision_smallest_normal(HT_PRECISION_COUNT)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(laps_add_up),
      cmocka_unit_test(a_sentence_stays_one_line),
      cmocka_unit_test(the_log_takes_its_level_and_above),
      cmocka_unit_test(a_stop_lasts_until_it_is_cleared),
      cmocka_unit_test(an_incomplete_allocator_is_refused),
      cmocka_unit_test(everything_goes_through_the_callers_allocator),
      cmocka_unit_test(a_new_error_replaces_the_old_one),
      cmocka_unit_test(a_containers_quota_limits_the_cores),
      cmocka_unit_test(more_threads_than_cores_are_taken_with_a_warning),
      cmocka_unit_test(openmps_variable_is_the_default),
      cmocka_unit_test(small_jobs_are_worth_few_threads),
      cmocka_unit_test(values_out_of_range_have_words_too),
  };
  return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
