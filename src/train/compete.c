/* Policies that compete. SPDX-License-Identifier: BSD-3-Clause */
#include "train/compete.h"
#include <math.h>
#include <stdio.h>
#include "base/words.h"

static const char *const names[HT_RIVALS] = {"learned", "fixed:f64", "fixed:f32", "fixed:bf16", "auto", "budget"};

const char *ht_rival_name(int rival) { return names[rival]; }
const char *ht_rival_policy(int rival) { return rival == HT_RIVAL_LEARNED ? NULL : names[rival]; }

/* ---- a case ---- */

enum { LEAST_ROUNDS = 5, MOST_ROUNDS = 12 };

/* A rival's costs, in ascending order. */
typedef struct record {
  double cost[MOST_ROUNDS];
  double error; /* the last one's: solves are alike, to the bit */
  int solves;
} record;

static void note(record *r, const ht_trial *trial) {
  int at = r->solves++;
  for (; at > 0 && r->cost[at - 1] > trial->cost; at--) r->cost[at] = r->cost[at - 1];
  r->cost[at] = trial->cost;
  r->error = trial->error;
}

static double least_of(const record *r) { return r->solves ? r->cost[0] : INFINITY; }

static const double OF_ONE = 0.5; /* the noise of a single solve, of which nothing is known: what is twice as fast is believed */

/* A busy machine only makes solves longer, so that the least counts; the other ones of the lower third tell how far it can be trusted. */
static double noise_of(const record *r) {
  double least = least_of(r);
  if (!isfinite(least)) return 0;
  return r->solves > 1 ? r->cost[(r->solves + 2) / 3] / least - 1 : OF_ONE;
}

static double least_of_all(const ht_competition *c, const record *records) {
  double least = INFINITY;
  for (int k = 0; k < c->rivals; k++) least = fmin(least, least_of(&records[k]));
  return least;
}

/* Whoever is far behind does not run again: after few solves, which may all have been disturbed, twice as slow is far. */
static int is_in_the_running(const record *r, double least) {
  static const double FAR = 1.5, FAR_AT_FIRST = 2;
  return !r->solves || least_of(r) <= (r->solves < LEAST_ROUNDS ? FAR_AT_FIRST : FAR) * least;
}

static const double MARGIN = 0.01; /* what is not faster by so much is no faster */

/* Another round would not change the order: what is as near as the noise is, is within the margin too. */
static int is_clear(const ht_competition *c, const record *records) {
  double least = least_of_all(c, records);
  for (int k = 0; k < c->rivals; k++) {
    double noise = noise_of(&records[k]), behind = least_of(&records[k]) / least - 1;
    if (is_in_the_running(&records[k], least) && noise > MARGIN && behind < 2 * noise) return 0;
  }
  return 1;
}

/* In turn, every second round in the opposite order. */
static ht_status run_case(const ht_competition *c, int number, record *records, int *rounds) {
  double begun = ht_seconds(), share = c->seconds / c->cases;
  int most = c->measured ? MOST_ROUNDS : 1, round = 0;
  for (; round < most && !(round >= LEAST_ROUNDS && is_clear(c, records)) && !(round && ht_seconds() - begun > share); round++) {
    double least = least_of_all(c, records);
    for (int turn = 0; turn < c->rivals; turn++) {
      int k = round % 2 ? c->rivals - 1 - turn : turn;
      ht_trial trial = {INFINITY, NAN};
      if (ht_stop_requested(c->ctx)) return HT_OK;
      if (!is_in_the_running(&records[k], least)) continue;
      HT_TRY(c->ctx, c->solve(c->user, number, k, &trial));
      note(&records[k], &trial);
    }
  }
  if (round > *rounds) *rounds = round;
  return HT_OK;
}

/* ---- all ---- */

static int is_faster(const ht_contest *c, int rival, int than) {
  double margin = fmax(MARGIN, fmax(c->noise[rival], c->noise[than]));
  return c->time[rival] < (1 - margin) * c->time[than];
}

static int is_as_good(const ht_contest *c, int rival) { return c->error[rival] <= HT_MOST_ERROR; }

/* Less is rounding of the solution itself, or nearly. fmax passes over a NaN. */
static void compare_errors(ht_contest *contest, const record *records) {
  static const double LEAST = 1e-14;
  double by = fmax(records[HT_RIVAL_64].error, LEAST);
  for (int k = 0; k < contest->rivals; k++) contest->error[k] = fmax(contest->error[k], fmax(records[k].error, LEAST) / by);
}

static int find_winner(const ht_contest *c) {
  int best = HT_RIVAL_64;
  for (int k = best + 1; k < c->rivals; k++)
    if (is_as_good(c, k) && is_faster(c, k, best)) best = k;
  return is_as_good(c, HT_RIVAL_LEARNED) && is_faster(c, HT_RIVAL_LEARNED, best) ? HT_RIVAL_LEARNED : best;
}

ht_status ht_compete(const ht_competition *c, ht_contest *contest) {
  int told = 0;
  *contest = (ht_contest){.rivals = c->rivals, .measured = c->measured};
  for (int number = 0; number < c->cases && !ht_stop_requested(c->ctx); number++) {
    record records[HT_RIVALS] = {{{0}, 0, 0}};
    HT_TRY(c->ctx, run_case(c, number, records, &contest->rounds));
    double by = least_of(&records[HT_RIVAL_64]);
    if (!isfinite(by)) continue; /* what FP64 does not solve tells nothing */
    told++;
    if (!isnan(records[HT_RIVAL_64].error)) compare_errors(contest, records);
    for (int k = 0; k < c->rivals; k++) contest->time[k] += log(least_of(&records[k]) / by);
    for (int k = 0; k < c->rivals && c->measured; k++) contest->noise[k] += noise_of(&records[k]);
  }
  for (int k = 0; k < c->rivals && told; k++) contest->noise[k] /= told;
  for (int k = 0; k < c->rivals; k++) contest->time[k] = told ? exp(contest->time[k] / told) : 1;
  contest->winner = find_winner(contest);
  return HT_OK;
}

/* Who would have won by time. */
static void tell_errors(const ht_contest *c, char *text, size_t size) {
  for (int k = 0; k < c->rivals; k++)
    if (!is_as_good(c, k) && is_faster(c, k, c->winner))
      ht_add_words(text, size, "; %s has %.3g times the error of FP64, and is left out", names[k], c->error[k]);
}

void ht_contest_print(const ht_contest *c, const char *where, char *text, size_t size) {
  *text = 0;
  for (int k = 0; k < c->rivals; k++) ht_add_words(text, size, "%s%s %.3f", k ? ", " : "", names[k], c->time[k]);
  if (c->measured)
    ht_add_words(text, size, " of FP64's time, measured on %s, good to %.1f %%", where,
                 100 * fmax(c->noise[c->winner], c->noise[HT_RIVAL_64]));
  else
    ht_add_words(text, size, " of FP64's time, by the model of %s", where);
  tell_errors(c, text, size);
}
