/* NULL in the place of each pointer that a public function cannot do without: HT_BAD_ARGUMENT, and a sentence where there is a context.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "halftone/generate.h"
#include "halftone/halftone.h"

#define OK(call) assert_int_equal((call), HT_OK)

static int apply(void *user, int64_t n, const double *x, double *y) {
  (void)user, (void)n, (void)x, (void)y;
  return 0;
}

/* The objects that the calls below take in turn. */
typedef struct {
  ht_context *ctx;
  ht_matrix *a;
  ht_options *options;
  ht_solver *solver;
  ht_trainer *trainer;
} world;

static int setup(void **state) {
  static world w;
  const char *const names[] = {"size"}, *const values[] = {"3"};
  OK(ht_context_create(&w.ctx));
  OK(ht_generate(w.ctx, "stencil2d", 1, names, values, &w.a));
  OK(ht_options_create(w.ctx, &w.options));
  OK(ht_solver_create(w.ctx, w.options, &w.solver));
  OK(ht_trainer_create(w.ctx, &w.trainer));
  *state = &w;
  return 0;
}

static int teardown(void **state) {
  world *w = *state;
  ht_trainer_destroy(w->trainer);
  ht_solver_destroy(w->solver);
  ht_options_destroy(w->options);
  ht_matrix_destroy(w->a);
  ht_context_destroy(w->ctx);
  return 0;
}

/* Each call has one NULL too many. */
#define REFUSED(call)                                                                                                                      \
  do {                                                                                                                                     \
    ht_context_clear_error(w->ctx);                                                                                                        \
    if ((call) != HT_BAD_ARGUMENT) fail_msg("%s is not refused", #call);                                                                   \
    if (!*ht_context_error(w->ctx)) fail_msg("%s leaves no sentence", #call);                                                              \
  } while (0)
#define REFUSED_SILENTLY(call)                                                                                                             \
  do {                                                                                                                                     \
    if ((call) != HT_BAD_ARGUMENT) fail_msg("%s is not refused", #call);                                                                   \
  } while (0)

static void ignore_line(void *user, const char *name, const char *text) { (void)user, (void)name, (void)text; }

static void arguments(void **state) {
  const world *w = *state;
  const char *const names[] = {"size", NULL}, *const values[] = {"3", "3"};
  const int64_t start[] = {0, 1};
  const int32_t column[] = {0};
  const double one[] = {1};
  double x[9], *block;
  char text[64];
  const char *name;
  const void *bytes;
  int64_t size;
  int columns;
  ht_matrix *m;
  REFUSED(ht_about_at(w->ctx, 0, NULL, text, sizeof text));
  REFUSED(ht_about_at(w->ctx, 0, &name, NULL, sizeof text));
  REFUSED(ht_policy_about(w->ctx, NULL, ignore_line, NULL));
  REFUSED(ht_policy_about(w->ctx, "p.safetensors", NULL, NULL));
  REFUSED(ht_train_state_about(w->ctx, NULL, 0, ignore_line, NULL));
  REFUSED(ht_train_state_about(w->ctx, text, sizeof text, NULL, NULL));
  REFUSED(ht_generate(w->ctx, NULL, 0, NULL, NULL, &m));
  REFUSED(ht_generate(w->ctx, "stencil2d", 1, NULL, values, &m));
  REFUSED(ht_generate(w->ctx, "stencil2d", 1, names, NULL, &m));
  REFUSED(ht_generate(w->ctx, "stencil2d", 2, names, values, &m));
  REFUSED(ht_generate(w->ctx, "stencil2d", 0, NULL, NULL, NULL));
  REFUSED(ht_matrix_create_csr(w->ctx, 1, NULL, column, one, HT_COPY, &m));
  REFUSED(ht_matrix_create_csr(w->ctx, 1, start, NULL, one, HT_COPY, &m));
  REFUSED(ht_matrix_create_csr(w->ctx, 1, start, column, NULL, HT_COPY, &m));
  REFUSED(ht_matrix_create_csr(w->ctx, 1, start, column, one, HT_COPY, NULL));
  REFUSED(ht_matrix_read(w->ctx, NULL, &m));
  REFUSED(ht_matrix_read(w->ctx, "a.mtx", NULL));
  REFUSED(ht_matrix_write(w->a, NULL));
  REFUSED(ht_matrix_set_values(w->a, NULL));
  REFUSED(ht_matrix_multiply(w->a, NULL, x));
  REFUSED(ht_matrix_multiply(w->a, x, NULL));
  REFUSED(ht_matrix_facts(w->a, 0, NULL));
  REFUSED(ht_vector_read(w->ctx, NULL, NULL, 9, x));
  REFUSED(ht_vector_read(w->ctx, "ones", NULL, 9, NULL));
  REFUSED(ht_vector_read_block(w->ctx, NULL, NULL, 9, &columns, &block));
  REFUSED(ht_vector_read_block(w->ctx, "ones", NULL, 9, NULL, &block));
  REFUSED(ht_vector_read_block(w->ctx, "ones", NULL, 9, &columns, NULL));
  REFUSED(ht_vector_write(w->ctx, NULL, 1, 1, one));
  REFUSED(ht_vector_write(w->ctx, "x.npy", 1, 1, NULL));
  REFUSED(ht_options_create(w->ctx, NULL));
  REFUSED(ht_options_set(w->options, NULL, "1"));
  REFUSED(ht_options_set(w->options, "rtol", NULL));
  REFUSED(ht_options_set_real(w->options, NULL, 1));
  REFUSED(ht_options_set_integer(w->options, NULL, 1));
  REFUSED(ht_options_get(w->options, NULL, text, sizeof text));
  REFUSED(ht_options_get(w->options, "rtol", NULL, sizeof text));
  REFUSED(ht_options_read_file(w->options, NULL));
  REFUSED(ht_solver_create(w->ctx, NULL, NULL));
  REFUSED(ht_solver_set_option(w->solver, NULL, "1"));
  REFUSED(ht_solver_set_option(w->solver, "rtol", NULL));
  REFUSED(ht_solver_set_matrix(w->solver, NULL));
  REFUSED(ht_solver_set_operator(w->solver, 3, NULL, NULL, NULL));
  REFUSED(ht_solver_solve(w->solver, 1, NULL, x, NULL));
  REFUSED(ht_solver_solve(w->solver, 1, x, NULL, NULL));
  REFUSED(ht_trainer_create(w->ctx, NULL));
  REFUSED(ht_trainer_set_option(w->trainer, NULL, "1"));
  REFUSED(ht_trainer_set_option(w->trainer, "seed", NULL));
  REFUSED(ht_trainer_get_option(w->trainer, NULL, text, sizeof text));
  REFUSED(ht_trainer_get_option(w->trainer, "seed", NULL, sizeof text));
  REFUSED(ht_trainer_add_matrix(w->trainer, NULL, "a"));
  REFUSED(ht_trainer_add_matrix(w->trainer, w->a, NULL));
  REFUSED(ht_trainer_run(w->trainer, NULL));
  REFUSED(ht_trainer_policy(w->trainer, NULL, &size));
  REFUSED(ht_trainer_policy(w->trainer, &bytes, NULL));
  REFUSED(ht_trainer_state(w->trainer, NULL, &size));
  REFUSED(ht_trainer_state(w->trainer, &bytes, NULL));
  REFUSED(ht_trainer_resume(w->trainer, NULL, 100));
}

static void objects(void **state) {
  (void)state;
  const double one[] = {1};
  const int64_t start[] = {0, 1};
  const int32_t column[] = {0};
  double x[1] = {0}, *block;
  char text[64];
  const char *name;
  const void *bytes;
  int64_t size;
  int columns;
  ht_matrix *m;
  ht_options *options;
  ht_solver *solver;
  ht_trainer *trainer;
  ht_facts facts;
  ht_train_report report;
  REFUSED_SILENTLY(ht_about_at(NULL, 0, &name, text, sizeof text));
  REFUSED_SILENTLY(ht_policy_about(NULL, "p.safetensors", ignore_line, NULL));
  REFUSED_SILENTLY(ht_train_state_about(NULL, text, sizeof text, ignore_line, NULL));
  REFUSED_SILENTLY(ht_context_create(NULL));
  REFUSED_SILENTLY(ht_context_create_with(NULL, NULL));
  REFUSED_SILENTLY(ht_context_set_threads(NULL, 1));
  REFUSED_SILENTLY(ht_context_set_cuda_stream(NULL, NULL));
  REFUSED_SILENTLY(ht_generate(NULL, "stencil2d", 0, NULL, NULL, &m));
  REFUSED_SILENTLY(ht_matrix_create_csr(NULL, 1, start, column, one, HT_COPY, &m));
  REFUSED_SILENTLY(ht_matrix_read(NULL, "a.mtx", &m));
  REFUSED_SILENTLY(ht_matrix_write(NULL, "a.mtx"));
  REFUSED_SILENTLY(ht_matrix_set_values(NULL, one));
  REFUSED_SILENTLY(ht_matrix_multiply(NULL, one, x));
  REFUSED_SILENTLY(ht_matrix_facts(NULL, 0, &facts));
  REFUSED_SILENTLY(ht_vector_read(NULL, "ones", NULL, 1, x));
  REFUSED_SILENTLY(ht_vector_read_block(NULL, "ones", NULL, 1, &columns, &block));
  REFUSED_SILENTLY(ht_vector_write(NULL, "x.npy", 1, 1, one));
  REFUSED_SILENTLY(ht_options_create(NULL, &options));
  REFUSED_SILENTLY(ht_options_set(NULL, "rtol", "1"));
  REFUSED_SILENTLY(ht_options_set_real(NULL, "rtol", 1));
  REFUSED_SILENTLY(ht_options_set_integer(NULL, "threads", 1));
  REFUSED_SILENTLY(ht_options_get(NULL, "rtol", text, sizeof text));
  REFUSED_SILENTLY(ht_options_read_file(NULL, "a"));
  REFUSED_SILENTLY(ht_solver_create(NULL, NULL, &solver));
  REFUSED_SILENTLY(ht_solver_set_option(NULL, "rtol", "1"));
  REFUSED_SILENTLY(ht_solver_set_matrix(NULL, NULL));
  REFUSED_SILENTLY(ht_solver_set_operator(NULL, 1, apply, NULL, NULL));
  REFUSED_SILENTLY(ht_solver_prepare(NULL));
  REFUSED_SILENTLY(ht_solver_solve(NULL, 1, one, x, NULL));
  REFUSED_SILENTLY(ht_trainer_create(NULL, &trainer));
  REFUSED_SILENTLY(ht_trainer_set_option(NULL, "seed", "1"));
  REFUSED_SILENTLY(ht_trainer_get_option(NULL, "seed", text, sizeof text));
  REFUSED_SILENTLY(ht_trainer_add_matrix(NULL, NULL, "a"));
  REFUSED_SILENTLY(ht_trainer_run(NULL, &report));
  REFUSED_SILENTLY(ht_trainer_policy(NULL, &bytes, &size));
  REFUSED_SILENTLY(ht_trainer_state(NULL, &bytes, &size));
  REFUSED_SILENTLY(ht_trainer_resume(NULL, text, 1));
}

/* Those that return no status do nothing, or tell of nothing. */
static void the_others(void **state) {
  const world *w = *state;
  const int64_t *start, *iterations;
  const double *numbers;
  char text[64];
  ht_context_destroy(NULL);
  ht_matrix_destroy(NULL);
  ht_options_destroy(NULL);
  ht_solver_destroy(NULL);
  ht_trainer_destroy(NULL);
  ht_vector_free(NULL, NULL);
  ht_vector_free(w->ctx, NULL);
  ht_context_set_log(NULL, NULL, NULL, HT_LOG_ERROR);
  ht_context_clear_error(NULL);
  ht_context_request_stop(NULL);
  ht_context_clear_stop(NULL);
  ht_solver_set_progress(NULL, NULL, NULL);
  ht_solver_set_policy(NULL, NULL, NULL);
  ht_trainer_set_progress(NULL, NULL, NULL);
  ht_report_clear(NULL);
  ht_train_report_clear(NULL);
  assert_string_equal(ht_context_error(NULL), "");
  assert_string_equal(ht_context_trail(NULL), "");
  assert_int_equal(ht_context_threads(NULL), 0);
  assert_int_equal(ht_matrix_rows(NULL), 0);
  assert_int_equal(ht_matrix_nonzeros(NULL), 0);
  assert_int_equal(ht_matrix_rows_add_to_zero(NULL), 0);
  ht_matrix_csr(NULL, &start, NULL, NULL);
  assert_null(start);
  assert_null(ht_nearest(NULL, 1, NULL, NULL));
  assert_null(ht_solver_column_report(NULL, 0));
  assert_int_equal(ht_solver_history(NULL, &numbers), 0);
  assert_int_equal(ht_solver_history(w->solver, NULL), 0);
  assert_null(ht_solver_trace(NULL));
  assert_int_equal(ht_trainer_history(NULL, &numbers, &iterations), 0);
  assert_true(ht_report_json(NULL, text, sizeof text) < sizeof text);
  assert_string_equal(text, "{\n}\n");
  assert_true(ht_facts_json(NULL, NULL, 0) > 0);
  assert_true(ht_train_report_json(NULL, NULL, 10) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arguments), cmocka_unit_test(objects), cmocka_unit_test(the_others)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
