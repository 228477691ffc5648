/* Training: precision policies learned from solves. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_TRAIN_H
#define HALFTONE_TRAIN_H
#include <stdint.h>
#include "halftone/matrix.h"
#include "halftone/options.h"
#include "halftone/report.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A policy is a small network that chooses the precision of each block of 64 columns in every iteration of CG. It learns by proximal
 * policy optimisation with the solver in the loop, as in the EvoCG paper; the file that results is used with the solver's option
 * policy = learned:FILE. The same options and matrices give the same bits on any number of threads, and on a GPU every time on the same
 * one. */
typedef struct ht_trainer ht_trainer;

/* What came of it: a row of train_report.def each, as ht_report is of report.def. */
typedef struct ht_train_report {
#define HT_TRAIN_REAL(name, unit, help) double name;
#define HT_TRAIN_INTEGER(name, unit, help) int64_t name;
#define HT_TRAIN_STRING(name, unit, help) char name[HT_REPORT_TEXT];
#include "halftone/train_report.def"
#undef HT_TRAIN_REAL
#undef HT_TRAIN_INTEGER
#undef HT_TRAIN_STRING
} ht_train_report;

/* Walk all fields: index from 0 to ht_train_report_count()-1; NULL outside. */
HT_API int ht_train_report_count(void);
HT_API const ht_report_info *ht_train_report_at(int index);
HT_API void ht_train_report_clear(ht_train_report *report); /* unknown numbers become NaN or -1, texts "" */
/* One JSON object, NUL-terminated; returns the length it needs (as snprintf does). */
HT_API size_t ht_train_report_json(const ht_train_report *report, char *text, size_t size);

/* Preparing: the solves that others are compared with. Learning; then judging what was learned, and letting it compete. */
typedef enum { HT_TRAIN_PREPARES, HT_TRAIN_LEARNS, HT_TRAIN_JUDGES, HT_TRAIN_COMPETES } ht_train_phase;

/* What a progress callback sees when a phase begins, after each update, and after each solve of the last two phases. Return nonzero to stop
 * soon; what has been learned so far is kept, unjudged. */
typedef struct ht_train_progress {
  ht_train_phase phase;
  int64_t solves; /* of this phase, where it is one of the last two: made so far */
  int64_t episodes, episodes_asked, updates, transitions;
  double mean_return, best_return; /* over the last episodes: the mean now, and its best so far; NaN before the first has ended */
  double mean_iterations;
  double traffic;   /* of the best policy so far: bytes by those of FP64; NaN before it is known */
  double elapsed_s; /* of this run, taking up a state included */
} ht_train_progress;
typedef int (*ht_train_progress_fn)(void *user, const ht_train_progress *progress);

/* Options of training: index from 0 to ht_train_option_count()-1; NULL outside. `when` has no meaning here. */
HT_API int ht_train_option_count(void);
HT_API const ht_option_info *ht_train_option_at(int index);

/* Errors: HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_trainer_create(ht_context *ctx, ht_trainer **trainer);
HT_API void ht_trainer_destroy(ht_trainer *trainer); /* NULL is allowed */
/* By name, from text, before the first run. Errors: HT_BAD_OPTION with the nearest known name, or the allowed range; HT_BAD_ARGUMENT
 * after a run. */
HT_API HT_MUST_CHECK ht_status ht_trainer_set_option(ht_trainer *trainer, const char *name, const char *value);
/* The value as text, in a buffer of the caller's. */
HT_API HT_MUST_CHECK ht_status ht_trainer_get_option(const ht_trainer *trainer, const char *name, char *text, size_t size);
/* One more matrix to learn from (borrowed until the trainer is destroyed); episodes take turns. `name` goes into the policy's file. */
HT_API HT_MUST_CHECK ht_status ht_trainer_add_matrix(ht_trainer *trainer, const ht_matrix *matrix, const char *name);
HT_API void ht_trainer_set_progress(ht_trainer *trainer, ht_train_progress_fn fn, void *user); /* NULL: none */

/* Learn, judge what was learned, and let it compete. HT_OK also when it was stopped, which it is soon, whatever it does (the report's
 * outcome says so): the policy is the best so far, and was not judged. Errors: HT_BAD_ARGUMENT without a
 * matrix, HT_BAD_MATRIX when FP64 does not solve one, HT_INTERRUPTED before the first episode, HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_trainer_run(ht_trainer *trainer, ht_train_report *report);
/* The sum of rewards and the iterations of each episode so far; returns their number. Borrowed until the next run. */
HT_API int64_t ht_trainer_history(const ht_trainer *trainer, const double **returns, const int64_t **iterations);
/* The bytes of a policy file (safetensors), after a run. Borrowed until the next call. Errors: HT_BAD_ARGUMENT, HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_trainer_policy(ht_trainer *trainer, const void **bytes, int64_t *size);
/* All that a later trainer with the same options (but episodes, patience, judge, compete and backend) and matrices needs to go on as if it
 * had not stopped, to the bit where it goes on with the same backend, which may be another one; and taking it up, before the first run.
 * Borrowed until the next call. The bytes are for the machine that wrote them. Errors: HT_BAD_ARGUMENT, HT_BAD_FORMAT for other bytes,
 * HT_NO_MEMORY. */
HT_API HT_MUST_CHECK ht_status ht_trainer_state(ht_trainer *trainer, const void **bytes, int64_t *size);
HT_API HT_MUST_CHECK ht_status ht_trainer_resume(ht_trainer *trainer, const void *bytes, int64_t size);
/* A line of what a file tells of itself. */
typedef void (*ht_about_fn)(void *user, const char *name, const char *text);
/* What a state tells of itself: `tell` gets each line, in order, once all bytes are checked; "options" are those that must be given again,
 * as on the command line. Errors: HT_BAD_ARGUMENT, HT_BAD_FORMAT; nothing is told then. */
HT_API HT_MUST_CHECK ht_status ht_train_state_about(ht_context *ctx, const void *bytes, int64_t size, ht_about_fn tell, void *user);
/* The same of a policy file, or of "learned", which the library carries: such as "chosen", what was fastest at the end of the training,
 * "learned", the network, or a fixed policy for which the file then stands. Errors: HT_BAD_ARGUMENT, HT_BAD_FILE, HT_BAD_FORMAT,
 * HT_NO_MEMORY; nothing is told then. */
HT_API HT_MUST_CHECK ht_status ht_policy_about(ht_context *ctx, const char *path, ht_about_fn tell, void *user);

#ifdef __cplusplus
}
#endif
#endif
