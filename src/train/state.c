/* A training's state as bytes, and taking it up again. SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"
#include "base/random.h"
#include "base/words.h"
#include "halftone/version.h"
#include "train/device.h"

static const char MAGIC[16] = "halftone-train5";
enum { MAGIC_NAME = 14 }; /* without the number, that other versions of the program may have otherwise */

/* Walks over the pieces of the state in order, and measures, writes or reads each. */
typedef struct walk {
  enum { MEASURE, WRITE, READ } what;
  char *bytes;
  int64_t at;
} walk;

static void piece(walk *w, void *data, int64_t size) {
  if (w->what == WRITE) memcpy(w->bytes + w->at, data, (size_t)size);
  if (w->what == READ) memcpy(data, w->bytes + w->at, (size_t)size);
  w->at += size;
}

static void course_pieces(walk *w, ht_course *c, int64_t padded) {
  double *vectors[] = {c->b, c->x, c->r, c->p};
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) piece(w, vectors[k], padded * (int64_t)sizeof(double));
  piece(w, &c->iteration, sizeof c->iteration);
  piece(w, &c->norm_0, sizeof c->norm_0);
  piece(w, &c->norm_r, sizeof c->norm_r);
  piece(w, &c->rr, sizeof c->rr);
  piece(w, &c->reference, sizeof c->reference);
  piece(w, &c->lowest, sizeof c->lowest);
  piece(w, &c->over, sizeof c->over);
}

/* All that follows the header and the number of episodes, which say how long it is. */
static ht_status pieces(walk *w, ht_trainer *t) {
  int64_t weights = t->ppo->weights * (int64_t)sizeof(float), padded = 0;
  piece(w, &t->at, sizeof t->at);
  piece(w, t->returns, t->at.episodes * (int64_t)sizeof *t->returns);
  piece(w, t->iterations, t->at.episodes * (int64_t)sizeof *t->iterations);
  float *arrays[] = {t->network.weights, t->best, t->ppo->first, t->ppo->second};
  for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) piece(w, arrays[k], weights);
  piece(w, &t->ppo->steps, sizeof t->ppo->steps);
  if (t->window) return HT_OK; /* its solves are made again */
  for (int k = 0; k < t->matrices; k++)
    if (t->environment[k]->padded > padded) padded = t->environment[k]->padded;
  for (int k = 0; k < t->options.lanes; k++) {
    ht_lane *lane = t->learner ? &t->rollout->judge : &t->rollout->lane[k];
    if (t->learner && w->what != MEASURE) HT_TRY(t->ctx, ht_device_fetch_lane(t, k, &lane));
    piece(w, &lane->episode, sizeof lane->episode);
    piece(w, &lane->total, sizeof lane->total);
    piece(w, &lane->lowest, sizeof lane->lowest);
    course_pieces(w, &lane->course, padded);
    if (t->learner && w->what == READ) HT_TRY(t->ctx, ht_device_place_lane(t, k));
  }
  return HT_OK;
}

/* How long to train, how that is judged, and where, may change from run to run: what else there is belongs to the training. Not settled. */
static ht_train_options lasting(const ht_train_options *options) {
  ht_train_options o = *options, defaults;
  ht_train_options_set_defaults(&defaults);
  o.episodes = defaults.episodes;
  o.patience = defaults.patience;
  o.lanes = defaults.lanes;                                      /* the header has them */
  if (o.state == HT_STATE_PAPER) o.interval = defaults.interval; /* chosen at the end */
  o.judge = defaults.judge;
  o.compete = defaults.compete;
  memcpy(o.backend, defaults.backend, sizeof o.backend);
  return o;
}

/* A number that tells options and matrices apart. */
static uint64_t fingerprint(const ht_trainer *t) {
  ht_train_options o = lasting(&t->options);
  ht_train_options_settle(&o);
  uint64_t hash = 0;
  char text[HT_OPTION_TEXT_SIZE];
  for (int i = 0; i < ht_train_option_count(); i++) {
    ht_train_options_print(&o, i, text);
    for (const char *c = text; *c; c++) hash = ht_random_mix(hash ^ (uint64_t)(unsigned char)*c);
  }
  for (int k = 0; k < t->matrices; k++) {
    const ht_matrix *a = t->matrix[k];
    hash = ht_random_mix(hash ^ (uint64_t)a->n);
    for (int64_t i = 0; i < a->nnz; i++) {
      uint64_t bits;
      memcpy(&bits, &a->values[i], sizeof bits);
      hash = ht_random_mix(hash ^ bits ^ (uint64_t)a->columns[i]);
    }
  }
  return hash;
}

/* `check` is of all bytes behind it; the texts are for whoever asks what a file is. */
typedef struct header {
  char magic[16];
  uint64_t check, fingerprint;
  int64_t size, seed, episodes, updates, transitions, lanes;
  char version[32], kind[16], reward[16], trained_on[512], options[1024];
} header;

static uint64_t check_of(const void *bytes, int64_t size) {
  const unsigned char *at = (const unsigned char *)bytes + offsetof(header, fingerprint);
  int64_t count = size - (int64_t)offsetof(header, fingerprint);
  uint64_t hash = (uint64_t)size;
  for (int64_t i = 0; i < count; i++) hash = ht_random_mix(hash ^ at[i]);
  return hash;
}

/* The options that belong to the training and are not at their defaults, as on the command line. */
static void print_options(const ht_train_options *options, char *text, size_t size) {
  ht_train_options o = lasting(options), usual;
  char value[HT_OPTION_TEXT_SIZE], usual_value[HT_OPTION_TEXT_SIZE];
  *text = 0;
  ht_train_options_set_defaults(&usual);
  usual.state = o.state;
  if (o.reward == HT_REWARD_PAPER) usual.reward = o.reward;
  ht_train_options_settle(&o);
  ht_train_options_settle(&usual);
  usual.state = HT_STATE_PAPER;
  usual.reward = HT_REWARD_TIME;
  for (int i = 0; i < ht_train_option_count(); i++) {
    ht_train_options_print(&o, i, value);
    ht_train_options_print(&usual, i, usual_value);
    if (strcmp(value, usual_value) != 0) ht_add_words(text, size, "%s--%s %s", *text ? " " : "", ht_train_option_at(i)->name, value);
  }
}

static void fill_header(const ht_trainer *t, int64_t size, header *h) {
  *h = (header){.fingerprint = fingerprint(t),
                .size = size,
                .seed = t->options.seed,
                .episodes = t->at.episodes,
                .updates = t->at.updates,
                .transitions = t->at.transitions,
                .lanes = t->options.lanes};
  memcpy(h->magic, MAGIC, sizeof h->magic);
  snprintf(h->version, sizeof h->version, "%s", ht_version());
  snprintf(h->kind, sizeof h->kind, "%s", ht_trains_windows(t) ? "window" : "tiles");
  snprintf(h->reward, sizeof h->reward, "%s", t->options.reward == HT_REWARD_PAPER ? "paper" : "time");
  snprintf(h->trained_on, sizeof h->trained_on, "%s", t->trained_on);
  print_options(&t->options, h->options, sizeof h->options);
}

/* A text that ends where its room does, and is one line. */
static int is_line(const char *text, size_t room) {
  size_t length = strnlen(text, room);
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)text[i] < ' ' || text[i] == 127) return 0;
  return length < room;
}

static int has_lines(const header *h) {
  return is_line(h->version, sizeof h->version) && is_line(h->kind, sizeof h->kind) && is_line(h->reward, sizeof h->reward) &&
         is_line(h->trained_on, sizeof h->trained_on) && is_line(h->options, sizeof h->options);
}

/* That the bytes are a whole state of this version, and its header. */
static ht_status read_header(ht_context *ctx, const void *bytes, int64_t size, header *h) {
  int begins = size >= (int64_t)sizeof h->magic && !memcmp(bytes, MAGIC, MAGIC_NAME);
  HT_CHECK(ctx, begins, HT_BAD_FORMAT, "expected the state of a training, which begins with '%.*s', found something else%s",
           (int)MAGIC_NAME, MAGIC, size ? "" : ": nothing");
  HT_CHECK(ctx, !memcmp(bytes, MAGIC, sizeof MAGIC), HT_BAD_FORMAT,
           "expected a state of the form %s, found one of another version of halftone; begin the training anew", MAGIC);
  int whole = size >= (int64_t)sizeof *h;
  if (whole) memcpy(h, bytes, sizeof *h);
  HT_CHECK(ctx, whole && h->size == size, HT_BAD_FORMAT,
           "expected a state of %lld bytes%s, found %lld; the file is damaged or cut short: copy it again, or begin the training anew",
           (long long)(whole ? h->size : (int64_t)sizeof *h), whole ? "" : " or more", (long long)size);
  HT_CHECK(ctx, h->check == check_of(bytes, size), HT_BAD_FORMAT,
           "expected the checksum %016llx of the state, found %016llx; the file is damaged: copy it again, or begin the training anew",
           (unsigned long long)h->check, (unsigned long long)check_of(bytes, size));
  HT_CHECK(ctx, has_lines(h), HT_BAD_FORMAT, "expected lines of text about the training, found something else; the state is damaged");
  HT_CHECK(ctx, h->episodes >= 0 && h->episodes <= size / (int64_t)sizeof(double), HT_BAD_FORMAT,
           "expected a number of episodes, found %lld; the state is damaged", (long long)h->episodes);
  return HT_OK;
}

ht_status ht_trainer_state(ht_trainer *t, const void **bytes, int64_t *size) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, bytes);
  HT_NEED(t->ctx, size);
  HT_CHECK(t->ctx, t->prepared, HT_BAD_ARGUMENT, "there is no state before a training has run");
  if (t->learner) HT_TRY(t->ctx, ht_device_fetch_network(t));
  walk w = {.what = MEASURE, .at = sizeof(header)};
  HT_TRY(t->ctx, pieces(&w, t));
  ht_release(t->ctx, t->bytes);
  t->bytes = NULL;
  HT_TRY(t->ctx, ht_allocate(t->ctx, w.at, 1, &t->bytes));
  w = (walk){.what = WRITE, .bytes = t->bytes, .at = sizeof(header)};
  HT_TRY(t->ctx, pieces(&w, t));
  header h;
  fill_header(t, w.at, &h);
  memcpy(w.bytes, &h, sizeof h);
  h.check = check_of(w.bytes, w.at);
  memcpy(w.bytes, &h, sizeof h);
  *bytes = t->bytes;
  *size = w.at;
  return HT_OK;
}

/* The pieces in their places, once all is there that they belong to. */
static ht_status take_up(ht_trainer *t, const void *bytes, const header *h) {
  HT_TRY(t->ctx, ht_trainer_make_room(t, h->episodes + 1));
  t->at.episodes = h->episodes;
  walk w = {.what = MEASURE, .at = sizeof *h};
  HT_TRY(t->ctx, pieces(&w, t));
  if (w.at != h->size) {
    t->at.episodes = 0;
    HT_FAIL(t->ctx, HT_BAD_FORMAT, "the state of the training is damaged: expected %lld bytes, found %lld", (long long)w.at,
            (long long)h->size);
  }
  w = (walk){.what = READ, .bytes = (char *)bytes, .at = sizeof *h};
  HT_TRY(t->ctx, pieces(&w, t));
  if (t->learner) return ht_device_place_network(t);
  for (int k = 0; t->rollout && k < t->options.lanes; k++) {
    ht_lane *lane = &t->rollout->lane[k];
    if (lane->episode >= 0) lane->course.environment = t->environment[lane->episode % t->matrices];
  }
  ht_packed_load(&t->ppo->packed, &t->network);
  return HT_OK;
}

/* Names alone may differ. */
static ht_status check_same(const ht_trainer *t, const header *h) {
  header now;
  if (h->fingerprint == fingerprint(t)) return HT_OK;
  fill_header(t, 0, &now);
  const char *had = *h->options ? h->options : "the usual options", *given = *now.options ? now.options : "the usual options";
  HT_CHECK(t->ctx, !strcmp(had, given), HT_BAD_FORMAT,
           "the training that is to be resumed had %s, and this one has %s: give the same options, or begin anew", had, given);
  HT_CHECK(t->ctx, !strcmp(h->trained_on, now.trained_on), HT_BAD_FORMAT,
           "the training that is to be resumed was on %s, and this one is on %s: give the same matrices, or begin anew", h->trained_on,
           now.trained_on);
  HT_FAIL(t->ctx, HT_BAD_FORMAT, "the training that is to be resumed was on %s, and %s now: give the same matrices, or begin anew",
          h->trained_on, t->matrices == 1 ? "that has other entries" : "some of those are others");
}

ht_status ht_trainer_resume(ht_trainer *t, const void *bytes, int64_t size) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, bytes);
  header h;
  HT_CHECK(t->ctx, !t->prepared, HT_BAD_ARGUMENT, "a training that has begun cannot take up another");
  HT_TRY(t->ctx, read_header(t->ctx, bytes, size, &h));
  HT_TRY(t->ctx, check_same(t, &h));
  HT_CHECK(t->ctx, !t->options.lanes || t->options.lanes == h.lanes, HT_BAD_FORMAT,
           "the training that is to be resumed had %s, and not %lld", ht_number_of(h.lanes, "lane").text, (long long)t->options.lanes);
  t->options.lanes = h.lanes;
  t->started = ht_seconds();
  HT_TRY(t->ctx, ht_trainer_prepare(t));
  HT_TRY(t->ctx, take_up(t, bytes, &h));
  t->episodes_before = h.episodes;
  t->time_s = ht_trainer_elapsed(t);
  return HT_OK;
}

/* ---- what a state tells of itself ---- */

ht_status ht_train_state_about(ht_context *ctx, const void *bytes, int64_t size, ht_about_fn tell, void *user) {
  header h;
  HT_NEED(NULL, ctx);
  HT_NEED(ctx, bytes);
  HT_NEED(ctx, tell);
  HT_TRY(ctx, read_header(ctx, bytes, size, &h));
  const struct {
    const char *name, *text; /* without a text the number */
    int64_t number;
  } lines[] = {
      {"kind", h.kind, 0},      {"reward", h.reward, 0},        {"trained_on", h.trained_on, 0}, {"options", h.options, 0},
      {"seed", NULL, h.seed},   {"episodes", NULL, h.episodes}, {"updates", NULL, h.updates},    {"transitions", NULL, h.transitions},
      {"version", h.version, 0}};
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)lines[k].number);
    tell(user, lines[k].name, lines[k].text ? lines[k].text : number);
  }
  return HT_OK;
}
