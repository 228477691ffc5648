/* Context, errors, allocation, options and reports. SPDX-License-Identifier: BSD-3-Clause */
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
#include "base/number.h"
#include "base/sum.h"
#include "base/words.h"
#include "halftone/options.h"
#include "halftone/report.h"
#include "halftone/version.h"

static int make_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int free_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static ht_status inner(ht_context *ctx, int value) {
  HT_CHECK(ctx, value == 7, HT_BAD_ARGUMENT, "value must be 7, and is %d", value);
  return HT_OK;
}
static ht_status outer(ht_context *ctx, int value) {
  HT_TRY(ctx, inner(ctx, value));
  return HT_OK;
}

static void an_error_leaves_a_sentence_and_a_trail(void **state) {
  ht_context *ctx = *state;
  assert_int_equal(outer(ctx, 7), HT_OK);
  assert_string_equal(ht_context_error(ctx), "");
  assert_int_equal(outer(ctx, 8), HT_BAD_ARGUMENT);
  assert_string_equal(ht_context_error(ctx), "value must be 7, and is 8");
  const char *trail = ht_context_trail(ctx);
  assert_non_null(strstr(trail, "inner"));
  assert_non_null(strstr(trail, "outer"));
  ht_context_clear_error(ctx);
  assert_string_equal(ht_context_error(ctx), "");
  assert_string_equal(ht_context_trail(ctx), "");
}

static ht_status deep(ht_context *ctx, int depth) {
  if (depth == 0) HT_FAIL(ctx, HT_INTERNAL, "%01500d", 1);
  HT_TRY(ctx, deep(ctx, depth - 1));
  return HT_OK;
}
static void long_sentences_and_trails_are_cut(void **state) {
  ht_context *ctx = *state;
  assert_int_equal(deep(ctx, 300), HT_INTERNAL);
  assert_true(strlen(ht_context_error(ctx)) < HT_ERROR_TEXT);
  assert_true(strlen(ht_context_trail(ctx)) < HT_TRAIL_TEXT);
}

static void texts_are_cut_at_words(void **state) {
  char text[16];
  (void)state;
  ht_print_words(text, sizeof text, "%s", "three words fit");
  assert_string_equal(text, "three words fit");
  ht_print_words(text, sizeof text, "%s", "three words do not fit");
  assert_string_equal(text, "three words ...");
  ht_print_words(text, sizeof text, "one, two");
  assert_false(ht_is_cut(text));
  for (int k = 0; k < 3; k++) ht_add_words(text, sizeof text, "%s", k ? "" : ", three, four");
  assert_string_equal(text, "one, two, ...");
  assert_true(ht_is_cut(text));
  ht_print_words(text, sizeof text, "a%s", "wordthatistoolong");
  assert_string_equal(text, "awordthatist...");
  ht_print_words(text, sizeof text, "awordthatis\xc3\xa9%s", "toolong");
  assert_string_equal(text, "awordthatis...");
}

static void every_status_and_outcome_has_its_words(void **state) {
  (void)state;
  assert_string_equal(ht_status_name(HT_NO_MEMORY), "HT_NO_MEMORY");
  for (int s = HT_OK; s <= HT_INTERNAL; s++) assert_true(strlen(ht_status_text(s)) > 5);
  for (int o = HT_CONVERGED; o <= HT_NOT_RUN; o++) assert_true(strlen(ht_outcome_name(o)) > 4 && strlen(ht_outcome_text(o)) > 10);
}

static void memory_is_aligned_and_overflow_is_refused(void **state) {
  ht_context *ctx = *state;
  for (int64_t count = 0; count < 200; count += 13) {
    double *memory;
    assert_int_equal(ht_allocate_zeroed(ctx, count, sizeof *memory, &memory), HT_OK);
    assert_int_equal((uintptr_t)memory % 64, 0);
    for (int64_t i = 0; i < count; i++) assert_true(memory[i] == 0);
    ht_release(ctx, memory);
  }
  static const int64_t counts[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / 8, INT64_MAX / 16};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    double *memory = (double *)state;
    assert_int_equal(ht_allocate(ctx, counts[i], sizeof *memory, &memory), HT_NO_MEMORY);
    assert_null(memory);
    assert_true(strlen(ht_context_error(ctx)) > 10);
  }
  ht_release(ctx, NULL);
}

typedef struct countdown {
  int left, held;
} countdown;
static void *allocate_counted(void *user, size_t bytes) {
  countdown *c = user;
  if (c->left-- <= 0) return NULL;
  c->held++;
  return malloc(bytes);
}
static void release_counted(void *user, void *memory) {
  ((countdown *)user)->held--;
  free(memory);
}
static void the_nth_allocation_fails_cleanly(void **state) {
  (void)state;
  int failures = 0, done = 0;
  for (int limit = 0; !done && limit < 20; limit++) {
    countdown c = {limit, 0};
    ht_allocator allocator = {allocate_counted, release_counted, &c};
    ht_context *ctx = NULL;
    ht_options *options = NULL;
    ht_status status = ht_context_create_with(&allocator, &ctx);
    if (!status) status = ht_options_create(ctx, &options);
    done = status == HT_OK;
    if (!done) {
      assert_int_equal(status, HT_NO_MEMORY);
      assert_null(options);
      failures++;
    }
    ht_options_destroy(options);
    ht_context_destroy(ctx);
    assert_int_equal(c.held, 0);
  }
  assert_true(done && failures >= 2);
}

static void threads_are_checked(void **state) {
  ht_context *ctx = *state;
  assert_true(ht_context_threads(ctx) >= 1);
  assert_int_equal(ht_context_set_threads(ctx, 3), HT_OK);
  assert_int_equal(ht_context_threads(ctx), 3);
  assert_int_equal(ht_context_set_threads(ctx, -1), HT_BAD_ARGUMENT);
  assert_int_equal(ht_context_threads(ctx), 3);
  assert_int_equal(ht_context_set_threads(ctx, 0), HT_OK);
  assert_true(ht_context_threads(ctx) >= 1);
}

/* Defaults read back as themselves, and each option takes its own printed value. */
static void every_option_round_trips(void **state) {
  ht_context *ctx = *state;
  ht_options *options;
  char text[256], again[256];
  assert_int_equal(ht_options_create(ctx, &options), HT_OK);
  assert_true(ht_option_count() > 10);
  for (int i = 0; i < ht_option_count(); i++) {
    const ht_option_info *info = ht_option_at(i);
    assert_null(strchr(info->name, '_'));
    assert_true(strlen(info->help) > 5);
    assert_int_equal(ht_options_get(options, info->name, text, sizeof text), HT_OK);
    assert_string_equal(text, info->default_value);
    assert_int_equal(ht_options_set(options, info->name, text), HT_OK);
    assert_int_equal(ht_options_get(options, info->name, again, sizeof again), HT_OK);
    assert_string_equal(text, again);
    for (int j = 0; j < i; j++) assert_string_not_equal(info->name, ht_option_at(j)->name);
    if (info->type == HT_OPTION_REAL || info->type == HT_OPTION_INTEGER) {
      static const char *const wrong[] = {"", "1x", "nan", "inf", "-1e400", " ", "two"};
      for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(ht_options_set(options, info->name, wrong[k]), HT_BAD_OPTION);
      snprintf(text, sizeof text, "%.17g", info->high > 0 ? info->high * 2 : 1);
      assert_int_equal(ht_options_set(options, info->name, info->high > 1e307 ? "1e309" : text), HT_BAD_OPTION);
    }
  }
  assert_null(ht_option_at(-1));
  assert_null(ht_option_at(ht_option_count()));
  ht_options_destroy(options);
}

static void options_say_what_they_need(void **state) {
  static const struct {
    const char *name, *other, *value;
    int has_effect;
  } cases[] = {{"ic-shift", "precond", "jacobi", 0},          {"ic-shift", "precond", "ic0", 1},
               {"column-sums", "format", "split", 0},         {"column-sums", "format", "tilecsc", 1},
               {"column-sums", "policy", "fixed:f64", 0},     {"column-sums", "policy", "budget", 0},
               {"column-sums", "engine", "paper", 1},         {"budget-theta", "policy", "rule", 0},
               {"budget-theta", "policy", "learned", 1},      {"budget-theta", "policy", "learned:a.safetensors", 1},
               {"policy-interval", "policy", "fixed:f64", 0}, {"rtol", "policy", "fixed:f64", 1}};
  ht_context *ctx = *state;
  ht_options *options;
  char needs[256];
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    assert_int_equal(ht_options_create(ctx, &options), HT_OK);
    assert_int_equal(ht_options_set(options, cases[k].other, cases[k].value), HT_OK);
    assert_int_equal(ht_options_check(options, cases[k].name), cases[k].has_effect ? HT_OK : HT_BAD_OPTION);
    if (!cases[k].has_effect) assert_non_null(strstr(ht_context_error(ctx), "has an effect only with --"));
    for (int i = 0; i < ht_option_count(); i++) { /* what is needed is there */
      ht_status status = ht_options_check(options, ht_option_at(i)->name);
      assert_true(status == HT_OK || (status == HT_BAD_OPTION && ht_option_at(i)->needs));
    }
    ht_options_destroy(options);
  }
  ht_option_needs_text(&(ht_option_info){.needs = "format=tilecsc|csr policy=learned*"}, needs, sizeof needs);
  assert_string_equal(needs, "--format tilecsc|csr or --policy learned");
  ht_option_needs_text(&(ht_option_info){.needs = "format=tilecsc|csr policy=learned*"}, needs, 20);
  assert_true(strlen(needs) < 20);
  ht_option_needs_text(&(ht_option_info){.name = "policy", .needs = "a=1 b=2 & policy=auto c=3"}, needs, sizeof needs);
  assert_string_equal(needs, "--a 1 or --b 2, and --c 3");
  ht_option_needs_text(NULL, needs, sizeof needs);
  assert_string_equal(needs, "");
}

static void things_are_counted(void **state) {
  static const struct {
    int count;
    const char *thing, *text;
  } cases[] = {{1, "run", "1 run"},       {0, "run", "0 runs"},      {2, "matrix", "2 matrices"},
               {1, "matrix", "1 matrix"}, {3, "entry", "3 entries"}, {2, "array", "2 arrays"}};
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    assert_string_equal(ht_number_of(cases[k].count, cases[k].thing).text, cases[k].text);
}

static void numbers_round_trip_and_names_are_suggested(void **state) {
  ht_context *ctx = *state;
  ht_options *options;
  char text[64], small[2];
  assert_int_equal(ht_options_create(ctx, &options), HT_OK);
  assert_int_equal(ht_options_set_real(options, "rtol", 1.0 / 3), HT_OK);
  assert_int_equal(ht_options_get(options, "rtol", text, sizeof text), HT_OK);
  assert_true(strtod(text, NULL) == 1.0 / 3);
  assert_int_not_equal(ht_options_get(options, "rtol", small, sizeof small), HT_OK);
  assert_int_equal(ht_options_set_integer(options, "max-iterations", 123456789012345), HT_OK);
  assert_int_equal(ht_options_get(options, "max-iterations", text, sizeof text), HT_OK);
  assert_string_equal(text, "123456789012345");
  assert_int_equal(ht_options_set(options, "max-iteration", "5"), HT_BAD_OPTION);
  assert_non_null(strstr(ht_context_error(ctx), "max-iterations"));
  assert_int_equal(ht_options_set(options, "precond", "jakobi"), HT_BAD_OPTION);
  assert_non_null(strstr(ht_context_error(ctx), "jacobi"));
  assert_int_equal(ht_options_set_integer(options, "max-iterations", -5), HT_BAD_OPTION);
  assert_int_equal(ht_options_set_real(options, "rtol", NAN), HT_BAD_OPTION);
  ht_options_destroy(options);
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void write_file(const char *path, const char *text) { write_bytes(path, text, strlen(text)); }

static void config_files_name_file_and_line(void **state) {
  ht_context *ctx = *state;
  ht_options *options;
  char path[] = "/tmp/halftone-test-XXXXXX", text[64];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(ht_options_create(ctx, &options), HT_OK);
  write_file(path, "# comment\r\n\r\n  rtol = 1e-7  # more\nprecond=none");
  assert_int_equal(ht_options_read_file(options, path), HT_OK);
  assert_int_equal(ht_options_get(options, "rtol", text, sizeof text), HT_OK);
  assert_string_equal(text, "1e-07");
  assert_int_equal(ht_options_get(options, "precond", text, sizeof text), HT_OK);
  assert_string_equal(text, "none");
  write_file(path, "rtol = 1e-7\nno equals sign\n");
  assert_int_not_equal(ht_options_read_file(options, path), HT_OK);
  assert_non_null(strstr(ht_context_error(ctx), path));
  assert_non_null(strstr(ht_context_error(ctx), "2"));
  write_file(path, "\n\nrtoll = 1e-7\n");
  assert_int_equal(ht_options_read_file(options, path), HT_BAD_OPTION);
  assert_non_null(strstr(ht_context_error(ctx), "rtol"));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(ht_options_read_file(options, path), HT_BAD_FILE);
  ht_options_destroy(options);
}

/* A zero byte ends what text functions see: none may hide a setting. */
static void config_files_hold_no_zero_bytes(void **state) {
  ht_context *ctx = *state;
  ht_options *options;
  char path[] = "/tmp/halftone-test-XXXXXX", text[64], longest[600];
  static const char *const zeros[] = {"\n\0\0\0\0", "\n\0\n###", "\n\0rtol", "\nrtol\0", "\n#...\0", "#\nr\0t\0"};
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(ht_options_create(ctx, &options), HT_OK);
  for (size_t k = 0; k < sizeof zeros / sizeof *zeros; k++) {
    write_bytes(path, zeros[k], 6);
    assert_int_equal(ht_options_read_file(options, path), HT_BAD_FORMAT);
    snprintf(text, sizeof text, "%s:2: ", path);
    assert_ptr_equal(strstr(ht_context_error(ctx), text), ht_context_error(ctx));
    assert_non_null(strstr(ht_context_error(ctx), "zero byte"));
  }
  /* The longest line there may be, with and without an end, and one that is longer. */
  memset(longest, ' ', sizeof longest);
  memcpy(longest, "rtol=1e-5", 9);
  for (size_t size = 510; size <= 512; size++) {
    longest[511] = ' ';
    if (size == 511) longest[511] = '\n';
    write_bytes(path, longest, size + (size == 511));
    assert_int_equal(ht_options_read_file(options, path), size <= 511 ? HT_OK : HT_BAD_FORMAT);
  }
  assert_int_equal(ht_options_get(options, "rtol", text, sizeof text), HT_OK);
  assert_string_equal(text, "1e-05");
  assert_int_equal(unlink(path), 0);
  ht_options_destroy(options);
}

static void a_cleared_report_is_all_unknown_in_json(void **state) {
  (void)state;
  static ht_report report;
  static char text[16384], cut[100];
  ht_report_clear(&report);
  snprintf(report.detail, sizeof report.detail, "a \"quoted\" \\ text\n");
  size_t length = ht_report_json(&report, text, sizeof text);
  assert_int_equal(length, strlen(text));
  assert_non_null(strstr(text, "\"iterations\": null"));
  assert_non_null(strstr(text, "\"residual_true\": null"));
  assert_non_null(strstr(text, "\"a \\\"quoted\\\" \\\\ text\\u000a\""));
  assert_int_equal(ht_report_json(&report, NULL, 0), length);
  assert_int_equal(ht_report_json(&report, cut, sizeof cut), length);
  assert_int_equal(strlen(cut), sizeof cut - 1);
  for (int i = 0; i < ht_report_count(); i++) {
    char key[80];
    snprintf(key, sizeof key, "\"%s\": ", ht_report_at(i)->name);
    assert_non_null(strstr(text, key));
  }
  assert_null(ht_report_at(ht_report_count()));
}

static void the_version_is_the_headers(void **state) {
  (void)state;
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", HT_VERSION_MAJOR, HT_VERSION_MINOR, HT_VERSION_PATCH);
  assert_string_equal(ht_version(), text);
}

/* Around the parts that threads add up on their own. */
static void counts_become_offsets(void **state) {
  static const int64_t sizes[] = {0, 1, 4095, 4096, 4097, 8192, 20001, 50000};
  enum { LARGEST = 50000 };
  int64_t *start = malloc((LARGEST + 1) * sizeof *start);
  (void)state;
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (int threads = 1; threads <= 3; threads++) {
      int64_t sum = 0;
      start[0] = -7; /* is overwritten */
      for (int64_t i = 0; i < sizes[k]; i++) start[i + 1] = i % 5;
      ht_sum_counts(start, sizes[k], threads);
      assert_int_equal(start[0], 0);
      for (int64_t i = 0; i < sizes[k]; i++) assert_int_equal(start[i + 1], sum += i % 5);
    }
  free(start);
}

#define WITH_CONTEXT(test) cmocka_unit_test_setup_teardown(test, make_context, free_context)
int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_CONTEXT(an_error_leaves_a_sentence_and_a_trail),
      WITH_CONTEXT(long_sentences_and_trails_are_cut),
      cmocka_unit_test(texts_are_cut_at_words),
      cmocka_unit_test(every_status_and_outcome_has_its_words),
      WITH_CONTEXT(memory_is_aligned_and_overflow_is_refused),
      cmocka_unit_test(the_nth_allocation_fails_cleanly),
      WITH_CONTEXT(threads_are_checked),
      WITH_CONTEXT(every_option_round_trips),
      WITH_CONTEXT(options_say_what_they_need),
      cmocka_unit_test(things_are_counted),
      WITH_CONTEXT(numbers_round_trip_and_names_are_suggested),
      WITH_CONTEXT(config_files_name_file_and_line),
      WITH_CONTEXT(config_files_hold_no_zero_bytes),
      cmocka_unit_test(a_cleared_report_is_all_unknown_in_json),
      cmocka_unit_test(the_version_is_the_headers),
      cmocka_unit_test(counts_become_offsets),
  };
  return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
