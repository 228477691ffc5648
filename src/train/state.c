/* A training's state as bytes, and taking it up again. SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "base/random.h"
#include "train/device.h"

static const char MAGIC[16] = "halftone-train3";

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

/* A number that tells options and matrices apart; how long to train, and where, may change. */
static uint64_t fingerprint(const ht_trainer *t) {
  ht_train_options o = t->options;
  o.episodes = o.patience = o.lanes = 0;         /* lanes: the header has them */
  if (o.state == HT_STATE_PAPER) o.interval = 0; /* chosen at the end */
  o.judge = o.compete = 0;                       /* what was learned does not depend on it */
  o.backend[0] = 0;
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

typedef struct header {
  char magic[16];
  uint64_t fingerprint, check; /* check: of all bytes behind the header */
  int64_t episodes, lanes, size;
} header;

static uint64_t check_of(const char *bytes, int64_t size) {
  uint64_t hash = (uint64_t)size;
  for (int64_t i = 0; i < size; i++) hash = ht_random_mix(hash ^ (uint64_t)(unsigned char)bytes[i]);
  return hash;
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
  header h = {.fingerprint = fingerprint(t), .episodes = t->at.episodes, .lanes = t->options.lanes, .size = w.at};
  memcpy(h.magic, MAGIC, sizeof h.magic);
  h.check = check_of(w.bytes + sizeof h, w.at - (int64_t)sizeof h);
  memcpy(w.bytes, &h, sizeof h);
  *bytes = t->bytes;
  *size = w.at;
  return HT_OK;
}

ht_status ht_trainer_resume(ht_trainer *t, const void *bytes, int64_t size) {
  HT_NEED(NULL, t);
  HT_NEED(t->ctx, bytes);
  header h;
  HT_CHECK(t->ctx, !t->prepared, HT_BAD_ARGUMENT, "a training that has begun cannot take up another");
  int whole = size >= (int64_t)sizeof h;
  if (whole) memcpy(&h, bytes, sizeof h);
  HT_CHECK(t->ctx, whole && !memcmp(h.magic, MAGIC, sizeof h.magic), HT_BAD_FORMAT, "the bytes are not the state of a training");
  HT_CHECK(t->ctx, h.size == size && h.check == check_of((const char *)bytes + sizeof h, size - (int64_t)sizeof h), HT_BAD_FORMAT,
           "the state of the training is damaged: it should have %lld bytes and has %lld, or some of them have changed", (long long)h.size,
           (long long)size);
  HT_CHECK(t->ctx, h.fingerprint == fingerprint(t), HT_BAD_FORMAT,
           "the training that is to be resumed had other options or other matrices; give the same ones, or begin anew");
  HT_CHECK(t->ctx, h.episodes >= 0 && h.episodes <= size / (int64_t)sizeof(double), HT_BAD_FORMAT, "the state of the training is damaged");
  HT_CHECK(t->ctx, !t->options.lanes || t->options.lanes == h.lanes, HT_BAD_FORMAT,
           "the training that is to be resumed had %lld lanes, and not %lld", (long long)h.lanes, (long long)t->options.lanes);
  t->options.lanes = h.lanes;
  HT_TRY(t->ctx, ht_trainer_prepare(t));
  HT_TRY(t->ctx, ht_trainer_make_room(t, h.episodes + 1));
  t->at.episodes = h.episodes;
  walk w = {.what = MEASURE, .at = sizeof h};
  HT_TRY(t->ctx, pieces(&w, t));
  if (w.at != size) {
    t->at.episodes = 0;
    HT_FAIL(t->ctx, HT_BAD_FORMAT, "the state of the training is damaged: expected %lld bytes, found %lld", (long long)w.at,
            (long long)size);
  }
  w = (walk){.what = READ, .bytes = (char *)bytes, .at = sizeof h};
  HT_TRY(t->ctx, pieces(&w, t));
  if (t->learner) return ht_device_place_network(t);
  for (int k = 0; t->rollout && k < t->options.lanes; k++) {
    ht_lane *lane = &t->rollout->lane[k];
    if (lane->episode >= 0) lane->course.environment = t->environment[lane->episode % t->matrices];
  }
  ht_packed_load(&t->ppo->packed, &t->network);
  return HT_OK;
}
