/* Training on a small matrix: that it learns, that its bits depend on nothing but options and matrix, that it can go on later, and how it
 * refuses. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/random.h"
#include "halftone/halftone.h"
#include "policy/learned_file.h"
#include "support/failing.h"
#include "support/generated.h"
#include "train/saving.h"
#include "train/trainer.h"

typedef struct fixture {
  ht_context *ctx;
  ht_matrix *matrix;
} fixture;

static int set_up(void **state) {
  static fixture f;
  assert_int_equal(ht_context_create(&f.ctx), HT_OK);
  assert_int_equal(generate_line(f.ctx, "stencil2d size=14 coefficients=lognormal", &f.matrix), HT_OK);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  ht_matrix_destroy(f->matrix);
  ht_context_destroy(f->ctx);
  return 0;
}

/* The reward says which state is trained; "tiles": the reward time with the state paper. */
static ht_trainer *make(fixture *f, const char *reward, const char *episodes) {
  ht_trainer *t;
  assert_int_equal(ht_trainer_create(f->ctx, &t), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "reward", !strcmp(reward, "tiles") ? "time" : reward), HT_OK);
  if (!strcmp(reward, "time")) {
    assert_int_equal(ht_trainer_set_option(t, "state", "features"), HT_OK);
    assert_int_equal(ht_trainer_set_option(t, "actions", "f64@8,f32@8,16:0.03@16,budget:0.03@8"), HT_OK);
  }
  assert_int_equal(ht_trainer_set_option(t, "episodes", episodes), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "patience", "0"), HT_OK);
  assert_int_equal(ht_trainer_add_matrix(t, f->matrix, "small"), HT_OK);
  return t;
}

/* A copy, for free. */
static void *bytes_of(ht_trainer *t, ht_status (*get)(ht_trainer *, const void **, int64_t *), int64_t *size) {
  const void *bytes;
  assert_int_equal(get(t, &bytes, size), HT_OK);
  void *copy = malloc((size_t)*size);
  assert_non_null(copy);
  memcpy(copy, bytes, (size_t)*size);
  return copy;
}

static void the_return_rises(void **state) {
  fixture *f = *state;
  ht_train_report r;
  ht_trainer *t = make(f, "tiles", "300");
  assert_int_equal(ht_trainer_set_option(t, "replace", "no"), HT_OK); /* low precision then misses the tolerance: much to learn */
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  assert_string_equal(r.outcome, "finished");
  assert_true(r.return_last > r.return_first + 0.2);
  assert_true(r.traffic <= 1.1 && r.missed == 0); /* looks have their price */
  assert_true(r.episodes >= 300 && r.updates > 0 && r.interval >= 1);
  assert_true(fabs(r.share_f64 + r.share_f32 + r.share_16 - 1) < 1e-12);
  const double *returns;
  const int64_t *iterations;
  assert_int_equal(ht_trainer_history(t, &returns, &iterations), r.episodes);
  for (int64_t k = 0; k < r.episodes; k++) assert_true(isfinite(returns[k]) && iterations[k] > 0);
  ht_trainer_destroy(t);
}

static void the_policy_can_be_read_back(void **state) {
  fixture *f = *state;
  ht_train_report r;
  ht_learned *learned;
  int64_t size;
  ht_trainer *t = make(f, "paper", "20");
  const void *none;
  assert_int_equal(ht_trainer_policy(t, &none, &size), HT_BAD_ARGUMENT);
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  void *bytes = bytes_of(t, ht_trainer_policy, &size);
  assert_int_equal(ht_learned_parse(f->ctx, bytes, size, "small", &learned), HT_OK);
  assert_int_equal(learned->kind, HT_LEARNED_TILES);
  assert_int_equal(learned->interval, r.interval);
  assert_int_equal(learned->episodes, r.episodes);
  assert_string_equal(learned->reward, "paper");
  assert_string_equal(learned->trained_on, "small");
  ht_learned_release(f->ctx, learned);
  free(bytes);
  ht_trainer_destroy(t);
}

/* The policy stands for the least of the times, FP64's among them, and its file says so. */
static void the_best_is_kept(void **state) {
  static const char *const formats[] = {"split", "tilecsc"};
  fixture *f = *state;
  for (int k = 0; k < 2; k++) {
    ht_train_report r;
    ht_learned *learned;
    int64_t size;
    ht_trainer *t = make(f, "tiles", "60");
    assert_int_equal(ht_trainer_set_option(t, "format", formats[k]), HT_OK);
    assert_int_equal(ht_trainer_run(t, &r), HT_OK);
    void *bytes = bytes_of(t, ht_trainer_policy, &size);
    assert_int_equal(ht_learned_parse(f->ctx, bytes, size, "small", &learned), HT_OK);
    const double time[HT_RIVALS_FIXED] = {r.time_network, 1, r.time_f32, r.time_16};
    int best = 0;
    while (best < HT_RIVALS_FIXED - 1 && strcmp(r.chosen, ht_rival_name(best)) != 0) best++;
    assert_string_equal(learned->chosen, ht_rival_name(best));
    assert_string_equal(learned->contest, r.contest);
    assert_true(r.judged == 1 && r.time_contest_s > 0 && r.time_contest_s <= r.time_judge_s);
    for (int i = 0; i < HT_RIVALS_FIXED; i++) assert_true(time[i] > 0.1 && time[best] <= time[i] / 0.99 + 1e-12);
    ht_learned_release(f->ctx, learned);
    free(bytes);
    ht_trainer_destroy(t);
  }
}

/* FP64 throughout earns what it saves: nothing but the certificate that it is spared here, whatever the number of its steps. */
static void fp64_earns_nothing(void **state) {
  fixture *f = *state;
  ht_train_report r;
  ht_trainer *t = make(f, "tiles", "1");
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  const ht_saving *s = t->saving[0];
  const ht_price *price = &s->price[1];
  ht_lane *lane = &t->rollout->lane[0];
  ht_course *c = &lane->course;
  double total = 0,
         spared = 1 - (double)price->iterations_64 * ht_policy_time(&s->facts, s->facts.bytes_level[HT_LEVEL_64]) / ht_price_cost_64(price);
  ht_course_begin(t->environment[0], 1, c);
  memset(c->level, HT_LEVEL_64, (size_t)t->environment[0]->blocks);
  lane->lowest = c->norm_0;
  while (!c->over) {
    ht_course_step(c, 10000);
    total += ht_saving_reward(s, 1, lane);
  }
  assert_true(c->reached && c->iteration == price->iterations_64);
  assert_true(spared > 0 && spared < 0.1);
  assert_true(fabs(total - spared) < 1e-9);
  ht_trainer_destroy(t);
}

static void bits_do_not_depend_on_threads(void **state) {
  fixture *f = *state;
  static const char *const rewards[] = {"paper", "tiles", "time"};
  for (int k = 0; k < 3; k++) {
    void *first = NULL;
    int64_t first_size = 0, size;
    for (int threads = 1; threads <= 3; threads++) {
      ht_train_report r;
      ht_trainer *t = make(f, rewards[k], "40");
      assert_int_equal(ht_context_set_threads(f->ctx, threads), HT_OK);
      assert_int_equal(ht_trainer_run(t, &r), HT_OK);
      void *bytes = bytes_of(t, ht_trainer_state, &size);
      if (!first) {
        first = bytes;
        first_size = size;
      } else {
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, (size_t)size);
        free(bytes);
      }
      ht_trainer_destroy(t);
    }
    free(first);
  }
}

static void goes_on(fixture *f, const char *reward) {
  ht_train_report r;
  int64_t size, size_whole, size_late;
  ht_trainer *whole = make(f, reward, "80"), *early = make(f, reward, "30"), *late = make(f, reward, "80");
  assert_int_equal(ht_trainer_run(whole, &r), HT_OK);
  assert_int_equal(ht_trainer_run(early, &r), HT_OK);
  void *bytes = bytes_of(early, ht_trainer_state, &size);
  assert_int_equal(ht_trainer_resume(late, bytes, size), HT_OK);
  assert_int_equal(ht_trainer_run(late, &r), HT_OK);
  void *of_whole = bytes_of(whole, ht_trainer_state, &size_whole), *of_late = bytes_of(late, ht_trainer_state, &size_late);
  assert_int_equal(size_whole, size_late);
  assert_memory_equal(of_whole, of_late, (size_t)size_whole);
  void *memory[] = {bytes, of_whole, of_late};
  for (int k = 0; k < 3; k++) free(memory[k]);
  ht_trainer_destroy(whole);
  ht_trainer_destroy(early);
  ht_trainer_destroy(late);
}

static void a_training_goes_on_as_if_it_had_not_stopped(void **state) {
  goes_on(*state, "tiles");
  goes_on(*state, "time");
}

/* Another number of lanes interleaves the episodes otherwise; a state keeps its own. */
static void lanes_go_with_the_state(void **state) {
  fixture *f = *state;
  ht_train_report r;
  int64_t size, again_size;
  char text[8];
  ht_trainer *t = make(f, "paper", "10"), *same = make(f, "paper", "10"), *other = make(f, "paper", "10");
  assert_int_equal(ht_trainer_set_option(t, "lanes", "5"), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "update", "52"), HT_OK);
  assert_int_equal(ht_trainer_set_option(same, "update", "52"), HT_OK);
  assert_int_equal(ht_trainer_set_option(other, "update", "52"), HT_OK);
  assert_int_equal(ht_trainer_set_option(other, "lanes", "4"), HT_OK);
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  assert_int_equal(r.transitions, r.updates * 50);
  assert_string_equal(r.backend, "cpu");
  void *bytes = bytes_of(t, ht_trainer_state, &size);
  assert_int_equal(ht_trainer_resume(other, bytes, size), HT_BAD_FORMAT);
  assert_non_null(strstr(ht_context_error(f->ctx), "5 lanes"));
  assert_int_equal(ht_trainer_resume(same, bytes, size), HT_OK);
  assert_int_equal(ht_trainer_get_option(same, "lanes", text, sizeof text), HT_OK);
  assert_string_equal(text, "5");
  void *again = bytes_of(same, ht_trainer_state, &again_size);
  assert_int_equal(again_size, size);
  assert_memory_equal(again, bytes, (size_t)size);
  free(bytes), free(again);
  ht_trainer_destroy(t);
  ht_trainer_destroy(same);
  ht_trainer_destroy(other);
  t = make(f, "paper", "10");
  assert_int_equal(ht_trainer_set_option(t, "lanes", "20"), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "update", "19"), HT_OK);
  assert_int_equal(ht_trainer_run(t, &r), HT_BAD_OPTION);
  ht_trainer_destroy(t);
}

/* 40 tiles in 31 ranges: two ranges meet in most tiles, and now and then both pick that one. */
static void every_picked_row_is_written(void **state) {
  fixture *f = *state;
  ht_matrix *wide;
  int64_t twice = 0;
  assert_int_equal(generate_line(f->ctx, "stencil2d size=50", &wide), HT_OK);
  ht_trainer *t = make(f, "paper", "1");
  assert_int_equal(ht_trainer_add_matrix(t, wide, "wide"), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "tiles", "31"), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "backend", "cpu"), HT_OK);
  assert_int_equal(ht_trainer_prepare(t), HT_OK);
  const ht_ppo_batch *b = &t->rollout->batch;
  for (int64_t i = 0; i < b->transitions * b->most_rows; i++) b->log_probability[i] = NAN;
  ht_rollout_collect(t->rollout, &t->ppo->packed);
  for (int64_t k = 0; k < b->transitions; k++)
    for (int64_t row = k * b->most_rows; row < k * b->most_rows + b->rows[k]; row++) {
      assert_true(b->log_probability[row] < 0);
      twice += row > k * b->most_rows && !memcmp(b->state + 64 * row, b->state + 64 * (row - 1), 64 * sizeof *b->state);
    }
  assert_true(twice > 0);
  ht_trainer_destroy(t);
  ht_matrix_destroy(wide);
}

static int note_solves(void *user, const ht_train_progress *now) {
  int64_t *most = user;
  if (now->solves > most[now->phase]) most[now->phase] = now->solves;
  return 0;
}

/* What is told to be judged are solves of the policy, each of them: two passes over two matrices, and nothing of the preparation. */
static void progress_counts_solves(void **state) {
  fixture *f = *state;
  int64_t most[HT_TRAIN_COMPETES + 1] = {0};
  ht_train_report r;
  ht_matrix *other;
  assert_int_equal(generate_line(f->ctx, "stencil2d size=9", &other), HT_OK);
  ht_trainer *t = make(f, "tiles", "8");
  assert_int_equal(ht_trainer_add_matrix(t, other, "other"), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "interval", "8"), HT_OK);
  ht_trainer_set_progress(t, note_solves, most);
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  assert_int_equal(most[HT_TRAIN_PREPARES], 0);
  assert_int_equal(most[HT_TRAIN_LEARNS], 0);
  assert_int_equal(most[HT_TRAIN_JUDGES], 4);
  assert_true(most[HT_TRAIN_COMPETES] >= 2 * HT_RIVALS_FIXED);
  assert_int_equal(r.solves, 2);
  assert_true(r.time_prepare_s > 0 && r.time_prepare_s + r.time_rollout_s + r.time_update_s + r.time_judge_s <= r.time_s);
  ht_trainer_destroy(t);
  ht_matrix_destroy(other);
}

/* A header whose last text has no end, with a checksum that fits: header of src/train/state.c. */
static void forge(char *bytes, int64_t size) {
  enum { CHECK = 16, CHECKED = 24, OPTIONS = 656, OPTIONS_SIZE = 1024 };
  memset(bytes + OPTIONS, 'x', OPTIONS_SIZE);
  uint64_t hash = (uint64_t)size;
  for (int64_t i = CHECKED; i < size; i++) hash = ht_random_mix(hash ^ (unsigned char)bytes[i]);
  memcpy(bytes + CHECK, &hash, sizeof hash);
}

static void foreign_and_damaged_states_are_refused(void **state) {
  fixture *f = *state;
  ht_train_report r;
  int64_t size;
  ht_trainer *t = make(f, "tiles", "10"), *other = make(f, "paper", "10"), *same = make(f, "tiles", "10");
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  char *bytes = bytes_of(t, ht_trainer_state, &size);
  assert_int_equal(ht_trainer_resume(other, bytes, size), HT_BAD_FORMAT);
  assert_int_equal(ht_trainer_resume(same, bytes, size - 1), HT_BAD_FORMAT);
  assert_int_equal(ht_trainer_resume(same, bytes, 3), HT_BAD_FORMAT);
  bytes[size / 2] ^= 1;
  assert_int_equal(ht_trainer_resume(same, bytes, size), HT_BAD_FORMAT);
  bytes[size / 2] ^= 1;
  forge(bytes, size);
  ht_trainer *forged = make(f, "tiles", "10");
  assert_int_equal(ht_trainer_resume(forged, bytes, size), HT_BAD_FORMAT);
  ht_trainer_destroy(forged);
  free(bytes);
  bytes = bytes_of(t, ht_trainer_state, &size);
  assert_int_equal(ht_trainer_resume(same, bytes, size), HT_OK);
  assert_int_equal(ht_trainer_resume(same, bytes, size), HT_BAD_ARGUMENT);
  free(bytes);
  ht_trainer_destroy(t);
  ht_trainer_destroy(other);
  ht_trainer_destroy(same);
}

/* A policy for whole windows: it learns to save, reads back as what it is, and says what it can do. */
static void windows_are_learned(void **state) {
  fixture *f = *state;
  ht_train_report r;
  ht_learned *learned;
  ht_matrix *waves; /* bears 32 bits without an iteration more */
  int64_t size;
  ht_trainer *t = make(f, "time", "150");
  assert_int_equal(generate_line(f->ctx, "weather size=8", &waves), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "learning-rate", "2e-3"), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "actions", "f64@16,f32@32,16:0.03@32"), HT_OK);
  assert_int_equal(ht_trainer_add_matrix(t, waves, "waves"), HT_OK);
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  assert_true(isfinite(r.return_first) && isfinite(r.return_last));
  assert_true(r.traffic < 1 && r.missed == 0 && r.residual_true <= 1e-10);
  assert_true(fabs(r.share_f64 + r.share_f32 + r.share_16 - 1) < 1e-12 && r.share_f64 < 1);
  void *bytes = bytes_of(t, ht_trainer_policy, &size);
  assert_int_equal(ht_learned_parse(f->ctx, bytes, size, "small", &learned), HT_OK);
  assert_int_equal(learned->kind, HT_LEARNED_WINDOW);
  assert_int_equal(learned->interval, 32);
  assert_int_equal(learned->network.actions, 3);
  assert_string_equal(learned->state, "features");
  assert_string_equal(learned->reward, "time");
  assert_string_equal(learned->actions, "f64@16,f32@32,16:0.03@32");
  assert_string_equal(learned->trained_on, "small, waves");
  ht_learned_release(f->ctx, learned);
  free(bytes);
  ht_trainer_destroy(t);
  ht_matrix_destroy(waves);
}

/* The file holds the fastest of what was learned and of policies that always do the same, and is that policy where it is used. */
static void the_fastest_is_kept(void **state) {
  static const char *const names[] = {"learned", "auto", "fixed:f64", "fixed:f32", "fixed:bf16", "budget"};
  fixture *f = *state;
  for (int by_time = 0; by_time < 2; by_time++) {
    char path[] = "/tmp/halftone-train-XXXXXX", policy[64];
    ht_train_report r;
    int64_t size;
    int known = 0, file = mkstemp(path);
    ht_trainer *t = make(f, "time", "30");
    assert_true(file >= 0);
    assert_int_equal(ht_trainer_set_option(t, "judge", by_time ? "time" : "auto"), HT_OK);
    assert_int_equal(ht_trainer_set_option(t, "precond", "jacobi"), HT_OK);
    assert_int_equal(ht_trainer_run(t, &r), HT_OK);
    assert_non_null(strstr(r.contest, by_time ? "measured on cpu" : "by the model"));
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      assert_non_null(strstr(r.contest, names[k]));
      known |= !strcmp(r.chosen, names[k]);
    }
    assert_true(known);
    void *bytes = bytes_of(t, ht_trainer_policy, &size);
    assert_int_equal(write(file, bytes, (size_t)size), size);
    close(file);
    ht_solver *solver;
    ht_report solved[2];
    int64_t n = ht_matrix_rows(f->matrix);
    double *x = calloc(2 * (size_t)n, sizeof *x), *b = x + n;
    for (int64_t i = 0; i < n; i++) b[i] = (double)(i % 7) - 3;
    snprintf(policy, sizeof policy, "learned:%s", path);
    for (int by_name = 0; by_name < 1 + (strcmp(r.chosen, "learned") != 0); by_name++) {
      assert_int_equal(ht_solver_create(f->ctx, NULL, &solver), HT_OK);
      assert_int_equal(ht_solver_set_option(solver, "backend", "cpu"), HT_OK);
      assert_int_equal(ht_solver_set_option(solver, "policy", by_name ? r.chosen : policy), HT_OK);
      assert_int_equal(ht_solver_set_matrix(solver, f->matrix), HT_OK);
      memset(x, 0, (size_t)n * sizeof *x);
      assert_int_equal(ht_solver_solve(solver, 1, b, x, &solved[by_name]), HT_OK);
      assert_int_equal(solved[by_name].outcome, HT_CONVERGED);
      ht_solver_destroy(solver);
    }
    if (strcmp(r.chosen, "learned") != 0) {
      assert_int_equal(solved[0].iterations, solved[1].iterations);
      assert_true(solved[0].bytes_16 == solved[1].bytes_16 && solved[0].bytes_f32 == solved[1].bytes_f32);
      assert_non_null(strstr(solved[0].policy_chosen, "the fastest in training"));
    }
    assert_non_null(strstr(solved[0].policy, "learned:"));
    remove(path);
    free(bytes), free(x);
    ht_trainer_destroy(t);
  }
}

/* What cannot be solved in FP64 within the iterations that are allowed is left out where the other preconditioner can. */
static void hard_cases_are_left_out(void **state) {
  fixture *f = *state;
  ht_train_report r;
  ht_matrix *stiff;
  ht_trainer *t;
  assert_int_equal(generate_line(f->ctx, "stencil2d size=14 coefficients=jumps contrast=1e6", &stiff), HT_OK);
  for (int most = 0; most < 2; most++) {
    assert_int_equal(ht_trainer_create(f->ctx, &t), HT_OK);
    assert_int_equal(ht_trainer_set_option(t, "state", "features"), HT_OK);
    assert_int_equal(ht_trainer_set_option(t, "episodes", "10"), HT_OK);
    assert_int_equal(ht_trainer_set_option(t, "max-iterations", most ? "120" : "5"), HT_OK);
    assert_int_equal(ht_trainer_add_matrix(t, stiff, "stiff"), HT_OK);
    assert_int_equal(ht_trainer_run(t, &r), most ? HT_OK : HT_BAD_MATRIX);
    if (most) assert_true(r.iterations_f64 > 0 && r.iterations_f64 <= 120 && isfinite(r.traffic)); /* of one solve, not of two */
    ht_trainer_destroy(t);
  }
  ht_matrix_destroy(stiff);
}

static void states_and_rewards_go_together(void **state) {
  static const char *const cases[][3][2] = {{{"state", "features"}, {"reward", "paper"}, {"hidden", "8"}},
                                            {{"state", "features"}, {"compete", "no"}, {"judge", "time"}},
                                            {{"reward", "paper"}, {"judge", "model"}, {"hidden", "8"}},
                                            {{"replace", "no"}, {"judge", "time"}, {"hidden", "8"}},
                                            {{"actions", "f64,f32"}, {"reward", "time"}, {"hidden", "8"}},
                                            {{"precond", "jacobi"}, {"reward", "time"}, {"hidden", "8"}},
                                            {{"late", "2"}, {"reward", "paper"}, {"hidden", "8"}},
                                            {{"machine", "this"}, {"reward", "time"}, {"hidden", "8"}},
                                            {{"credit", "shared"}, {"reward", "time"}, {"hidden", "8"}},
                                            {{"tile-cost", "8"}, {"reward", "time"}, {"hidden", "8"}},
                                            {{"state", "features"}, {"format", "tilecsc"}, {"hidden", "8"}},
                                            {{"state", "features"}, {"replace", "no"}, {"hidden", "8"}},
                                            {{"state", "features"}, {"actions", "f32,f64"}, {"hidden", "8"}},
                                            {{"state", "features"}, {"actions", "f64"}, {"hidden", "8"}},
                                            {{"state", "features"}, {"actions", "f64,f31"}, {"hidden", "8"}}};
  fixture *f = *state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ht_train_report r;
    ht_trainer *t;
    assert_int_equal(ht_trainer_create(f->ctx, &t), HT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(ht_trainer_set_option(t, cases[k][i][0], cases[k][i][1]), HT_OK);
    assert_int_equal(ht_trainer_add_matrix(t, f->matrix, "small"), HT_OK);
    if (ht_trainer_run(t, &r) != HT_BAD_OPTION) fail_msg("case %zu: %s", k, ht_context_error(f->ctx));
    ht_trainer_destroy(t);
  }
}

static void bad_options_are_refused(void **state) {
  fixture *f = *state;
  ht_train_report r;
  char text[8];
  ht_trainer *t;
  assert_int_equal(ht_trainer_create(f->ctx, &t), HT_OK);
  assert_int_equal(ht_trainer_set_option(t, "episode", "5"), HT_BAD_OPTION);
  assert_non_null(strstr(ht_context_error(f->ctx), "episodes"));
  assert_int_equal(ht_trainer_set_option(t, "episodes", "0"), HT_BAD_OPTION);
  assert_int_equal(ht_trainer_set_option(t, "reward", "money"), HT_BAD_OPTION);
  assert_int_equal(ht_trainer_set_option(t, "format", "tilecsc"), HT_OK);
  assert_int_equal(ht_trainer_get_option(t, "format", text, sizeof text - 1), HT_BAD_ARGUMENT); /* it takes 8 */
  assert_int_equal(ht_trainer_get_option(t, "hidden", text, sizeof text), HT_OK);
  assert_string_equal(text, "64");
  assert_int_equal(ht_trainer_run(t, &r), HT_BAD_ARGUMENT);
  ht_trainer_destroy(t);
}

static void a_matrix_that_cannot_be_solved_is_refused(void **state) {
  fixture *f = *state;
  const int64_t row_start[] = {0, 1, 2};
  const int32_t columns[] = {0, 1};
  const double values[] = {1, -1};
  ht_matrix *indefinite;
  ht_train_report r;
  ht_trainer *t;
  assert_int_equal(ht_matrix_create_csr(f->ctx, 2, row_start, columns, values, HT_COPY, &indefinite), HT_OK);
  assert_int_equal(ht_trainer_create(f->ctx, &t), HT_OK);
  assert_int_equal(ht_trainer_add_matrix(t, indefinite, "indefinite"), HT_OK);
  assert_int_equal(ht_trainer_run(t, &r), HT_BAD_MATRIX);
  assert_int_equal(ht_trainer_run(t, &r), HT_BAD_MATRIX); /* and it can be tried again */
  ht_trainer_destroy(t);
  ht_matrix_destroy(indefinite);
  t = make(f, "paper", "10");
  assert_int_equal(ht_trainer_set_option(t, "max-iterations", "3"), HT_OK);
  assert_int_equal(ht_trainer_run(t, &r), HT_BAD_MATRIX);
  ht_trainer_destroy(t);
}

/* Which phase to stop in, after so many solves of it, and what was told after that. */
typedef struct interrupt {
  ht_train_phase phase;
  int64_t solves;
  int by_request, told_since; /* by_request: as a signal does, instead of the callback's answer */
  ht_context *ctx;
} interrupt;

static int stop_there(void *user, const ht_train_progress *now) {
  interrupt *i = user;
  i->told_since += i->told_since > 0;
  if (now->phase != i->phase || now->solves < i->solves) return 0;
  i->told_since += !i->told_since;
  if (i->by_request) ht_context_request_stop(i->ctx);
  return !i->by_request;
}

/* Whenever it comes, the training ends without another solve, and leaves what it has learned, which the file says was not judged; a later
 * run of the same trainer judges it. */
static void an_interrupt_keeps_what_there_is(void **state) {
  static const char *const rewards[] = {"paper", "tiles", "time", "time"};
  static const interrupt when[] = {{HT_TRAIN_LEARNS, 0, 0, 0, NULL},
                                   {HT_TRAIN_JUDGES, 0, 1, 0, NULL},
                                   {HT_TRAIN_JUDGES, 1, 0, 0, NULL},
                                   {HT_TRAIN_COMPETES, 2, 1, 0, NULL}};
  fixture *f = *state;
  ht_train_report r;
  ht_learned *learned;
  for (int kind = 0; kind < 4; kind++)
    for (size_t k = 0; k < sizeof when / sizeof *when; k++) {
      interrupt stop = when[k];
      int64_t size;
      int never = (stop.phase == HT_TRAIN_COMPETES && kind == 0) || (stop.phase == HT_TRAIN_JUDGES && stop.solves && kind > 1);
      ht_trainer *t = make(f, rewards[kind], "8");
      if (kind == 3) assert_int_equal(ht_trainer_set_option(t, "judge", "time"), HT_OK);
      if (never) stop = (interrupt){HT_TRAIN_LEARNS, 0, 1, 0, NULL};
      stop.ctx = f->ctx;
      ht_trainer_set_progress(t, stop_there, &stop);
      assert_int_equal(ht_trainer_run(t, &r), HT_OK);
      assert_string_equal(r.outcome, "interrupted");
      assert_true(r.judged == 0 && stop.told_since <= 2 && isnan(r.residual_true) && r.interval > 0);
      void *bytes = bytes_of(t, ht_trainer_policy, &size);
      assert_int_equal(ht_learned_parse(f->ctx, bytes, size, "small", &learned), HT_OK);
      assert_string_equal(learned->chosen, "learned");
      assert_non_null(strstr(learned->contest, "interrupted"));
      ht_learned_release(f->ctx, learned);
      free(bytes);
      ht_trainer_set_progress(t, NULL, NULL);
      assert_int_equal(ht_trainer_run(t, &r), HT_OK);
      assert_true(r.judged == 1 && r.residual_true > 0);
      assert_null(strstr(r.contest, "interrupted"));
      ht_trainer_destroy(t);
    }
}

static void an_interrupt_before_the_first_episode_leaves_nothing(void **state) {
  static const char *const rewards[] = {"paper", "tiles", "time"};
  fixture *f = *state;
  for (int kind = 0; kind < 3; kind++) {
    ht_train_report r;
    ht_trainer *t = make(f, rewards[kind], "100000");
    ht_context_request_stop(f->ctx);
    assert_int_equal(ht_trainer_run(t, &r), HT_INTERRUPTED);
    ht_context_clear_stop(f->ctx);
    ht_trainer_destroy(t);
  }
}

/* Tiles compete by the clock too, where that is asked for. */
static void tiles_are_judged_by_time(void **state) {
  fixture *f = *state;
  ht_train_report r;
  ht_trainer *t = make(f, "tiles", "8");
  assert_int_equal(ht_trainer_set_option(t, "judge", "time"), HT_OK);
  assert_int_equal(ht_trainer_run(t, &r), HT_OK);
  assert_non_null(strstr(r.contest, "measured on cpu"));
  assert_true(r.time_network > 0 && r.time_f32 > 0 && r.time_16 > 0);
  ht_trainer_destroy(t);
}

/* Nothing leaks when the n-th allocation fails, and the trainer can be destroyed. */
static void fail_allocations(const char *reward) {
  failing_allocator memory;
  fixture f;
  assert_int_equal(failing_context(&memory, &f.ctx), HT_OK);
  assert_int_equal(ht_context_set_threads(f.ctx, 1), HT_OK); /* the allocator counts for one thread */
  assert_int_equal(generate_line(f.ctx, "stencil2d size=4 coefficients=lognormal", &f.matrix), HT_OK);
  long before = memory.alive;
  ht_status status = HT_NO_MEMORY;
  for (long n = 0; status == HT_NO_MEMORY; n++) {
    ht_train_report r;
    const void *bytes;
    int64_t size;
    ht_trainer *t = make(&f, reward, "1");
    memory.fail_at = memory.requests + n;
    status = ht_trainer_run(t, &r);
    if (status == HT_OK) status = ht_trainer_policy(t, &bytes, &size);
    memory.fail_at = -1;
    ht_trainer_destroy(t);
    assert_int_equal(memory.alive, before);
  }
  assert_int_equal(status, HT_OK);
  ht_matrix_destroy(f.matrix);
  ht_context_destroy(f.ctx);
  assert_int_equal(memory.alive, 0);
}

static void failed_allocations_are_reported(void **state) {
  (void)state;
  fail_allocations("tiles");
  fail_allocations("time");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_return_rises),
                                     TEST(the_best_is_kept),
                                     TEST(fp64_earns_nothing),
                                     TEST(the_policy_can_be_read_back),
                                     TEST(bits_do_not_depend_on_threads),
                                     TEST(a_training_goes_on_as_if_it_had_not_stopped),
                                     TEST(lanes_go_with_the_state),
                                     TEST(every_picked_row_is_written),
                                     TEST(progress_counts_solves),
                                     TEST(foreign_and_damaged_states_are_refused),
                                     TEST(bad_options_are_refused),
                                     TEST(windows_are_learned),
                                     TEST(the_fastest_is_kept),
                                     TEST(hard_cases_are_left_out),
                                     TEST(states_and_rewards_go_together),
                                     TEST(a_matrix_that_cannot_be_solved_is_refused),
                                     TEST(an_interrupt_keeps_what_there_is),
                                     TEST(an_interrupt_before_the_first_episode_leaves_nothing),
                                     TEST(tiles_are_judged_by_time),
                                     cmocka_unit_test(failed_allocations_are_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
