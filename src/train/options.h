/* Options of training. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_TRAIN_OPTIONS_H
#define HT_TRAIN_OPTIONS_H
#include "base/option.h"

enum { HT_STATE_PAPER, HT_STATE_FEATURES };
enum { HT_REWARD_AUTO, HT_REWARD_PAPER, HT_REWARD_TIME };
enum { HT_RIGHT_SIDE_AUTO, HT_RIGHT_SIDE_ONES, HT_RIGHT_SIDE_RANDOM };
enum { HT_REPLACE_AUTO, HT_REPLACE_YES, HT_REPLACE_NO };
enum { HT_TRAIN_PRECOND_NONE, HT_TRAIN_PRECOND_JACOBI, HT_TRAIN_PRECOND_BOTH };
enum { HT_TRAIN_AUTO, HT_TRAIN_SPLIT, HT_TRAIN_TILECSC };
enum { HT_MACHINE_AUTO, HT_MACHINE_ANY, HT_MACHINE_THIS };
enum { HT_JUDGE_AUTO, HT_JUDGE_MODEL, HT_JUDGE_TIME };
enum { HT_PRICE_MODEL, HT_PRICE_TIME };
enum { HT_LOSS_MEAN, HT_LOSS_SUM };
enum { HT_CREDIT_OWN, HT_CREDIT_SHARED };
enum { HT_COMPETE_AUTO, HT_COMPETE_YES, HT_COMPETE_NO };

#define HT_TRAIN_OPTIONS(X)                                                                                                                \
  X(INTEGER, episodes, 1000, 1, 1e9, AT_SOLVE, NULL,                                                                                       \
    "solves to learn from, and whatever more of them end in the last update; with the state features, passes over all of them")            \
  X(INTEGER, seed, 1, 0, 9e15, AT_SOLVE, NULL, "of all that is random; the same seed gives the same policy, to the bit")                   \
  X(CHOICE, state, 0, 0, 1, AT_SOLVE, "paper|features",                                                                                    \
    "what the policy sees: the direction, 64 entries at a time, without its size; or the whole solve in dimensionless numbers")            \
  X(CHOICE, reward, 0, 0, 2, AT_SOLVE, "auto|paper|time",                                                                                  \
    "equation 11 of the EvoCG paper, or what a solve whose residual is made true saves of FP64's modelled time; auto: time")               \
  X(TEXT, actions, 0, 0, 0, AT_SOLVE, "f64@1024,rule@1024,budget:0.03",                                                                    \
    "f64 the first: f64, f32 or 16, with how far the residual may fall before it is replaced, budget:THETA, or rule, which is what auto "  \
    "takes by its rule, and iterations to the next look",                                                                                  \
    "state=features")                                                                                                                      \
  X(CHOICE, precond, 2, 0, 2, AT_SOLVE, "none|jacobi|both", "preconditioner of the solves", "state=features")                              \
  X(REAL, late, 1, 0, 1000, AT_SOLVE, NULL, "what an iteration beyond 1.05 times those of FP64 costs more, in iterations of FP64",         \
    "state=features")                                                                                                                      \
  X(CHOICE, machine, 0, 0, 2, AT_SOLVE, "auto|any|this",                                                                                   \
    "whose time it is: that of any size of cache, or of this one's; auto: this one's with one matrix", "state=features")                   \
  X(CHOICE, judge, 0, 0, 2, AT_SOLVE, "auto|model|time",                                                                                   \
    "how policies compete at the end: by modelled time, or by a clock, in turn on the backend, until their order is clear, but not for "   \
    "longer than half of the time before, or 2 s and a round; auto: by the clock on a GPU",                                                \
    "compete=yes")                                                                                                                         \
  X(CHOICE, price, 0, 0, 1, AT_SOLVE, "model|time",                                                                                        \
    "what an iteration at a level takes in the reward time, on a GPU that learns: by a model, or measured there as a training begins; "    \
    "what is learned then depends on the clock, too",                                                                                      \
    "state=paper")                                                                                                                         \
  X(CHOICE, rhs, 0, 0, 2, AT_SOLVE, "auto|ones|random",                                                                                    \
    "right-hand side of an episode: A*1, or random entries that change with it; auto: ones with the reward paper, else random")            \
  X(CHOICE, format, 0, 0, 2, AT_SOLVE, "auto|split|tilecsc",                                                                               \
    "matrix storage that low precision is read from; auto: tilecsc, the paper's, with the reward paper, else split", "state=paper")        \
  X(CHOICE, replace, 0, 0, 2, AT_SOLVE, "auto|yes|no",                                                                                     \
    "put the true residual in the place of the recurrence's as it falls, as the solver does; auto: no with the reward paper, else yes",    \
    "state=paper")                                                                                                                         \
  X(REAL, rtol, 1e-10, 1e-15, 0.1, AT_SOLVE, NULL, "an episode has reached its end when ||r|| <= rtol ||b||")                              \
  X(INTEGER, max_iterations, 10000, 1, 1e9, AT_SOLVE, NULL, "most iterations of the FP64 solve; an episode takes 1.5 times its own")       \
  X(INTEGER, patience, 300, 0, 1e9, AT_SOLVE, NULL, "episodes without a better mean return after which training ends; 0: never")           \
  X(INTEGER, interval, 0, 0, 4096, AT_SOLVE, NULL,                                                                                         \
    "iterations between two decisions; 0: with the reward paper the longest, up to 1024, that delays under 10 % of the rises, else of "    \
    "1024, 512, ... the first that half of it is no faster than, looks included")                                                          \
  X(INTEGER, hidden, 64, 1, 256, AT_SOLVE, NULL, "units a layer")                                                                          \
  X(REAL, learning_rate, 0, 0, 1, AT_SOLVE, NULL, "of Adam; 0: 1e-4 with the reward paper, 2e-3 with the state features, else 3e-4")       \
  X(REAL, gamma, -1, -1, 1, AT_SOLVE, NULL, "discount; -1: 0.99 with the reward paper, else 1", "state=paper")                             \
  X(REAL, gae_lambda, -1, -1, 1, AT_SOLVE, NULL, "of the generalised advantage estimate; -1: 0.95 with the reward paper, else 0.9",        \
    "state=paper")                                                                                                                         \
  X(INTEGER, update, 1024, 8, 1e6, AT_SOLVE, NULL, "transitions, iterations of CG, an update", "state=paper")                              \
  X(INTEGER, epochs, 10, 1, 1000, AT_SOLVE, NULL, "passes over them", "state=paper")                                                       \
  X(INTEGER, minibatch, 128, 1, 1e6, AT_SOLVE, NULL, "transitions a step of Adam", "state=paper")                                          \
  X(INTEGER, tiles, 32, 1, 1024, AT_SOLVE, NULL, "most tiles of an iteration that are learned from", "state=paper")                        \
  X(CHOICE, loss, 0, 0, 1, AT_SOLVE, "mean|sum",                                                                                           \
    "of an iteration's policy: the mean over its tiles, or the sum, as where its actions are one; the entropy is the mean either way",     \
    "state=paper")                                                                                                                         \
  X(CHOICE, credit, 0, 0, 1, AT_SOLVE, "own|shared", "whose cost a tile's advantage has: its own, or the mean over the iteration's tiles", \
    "reward=paper")                                                                                                                        \
  X(REAL, tile_cost, 1, 1e-6, 1e6, AT_SOLVE, NULL,                                                                                         \
    "C(a) of equation 11 for a tile at FP64, half and a quarter of it below: 1 by share, 8 by bytes of a value", "reward=paper")           \
  X(REAL, clip, 0.2, 1e-6, 10, AT_SOLVE, NULL, "of the ratio of probabilities", "state=paper")                                             \
  X(REAL, value_weight, 0.25, 0, 100, AT_SOLVE, NULL, "of the value's loss", "state=paper")                                                \
  X(REAL, entropy_weight, -1, -1, 100, AT_SOLVE, NULL, "of the entropy; -1: 0.02 with the reward paper, else 0.002", "state=paper")        \
  X(REAL, gradient_clip, 0.5, 1e-6, 1e9, AT_SOLVE, NULL, "largest norm of a gradient")                                                     \
  X(INTEGER, lanes, 0, 0, 4096, AT_SOLVE, NULL,                                                                                            \
    "solves that run side by side, each with an equal part of an update's transitions; 0: 8, or about 32 on a GPU", "state=paper")         \
  X(CHOICE, compete, 0, 0, 2, AT_SOLVE, "auto|yes|no",                                                                                     \
    "at the end keep the fastest of what was learned, of FP64, FP32 and 16 bits throughout, and with the state features of auto and "      \
    "budget, "                                                                                                                             \
    "as the solver solves with them behind its guard; what is as fast as a simpler one, to a per cent or the clock's noise, loses to it; " \
    "auto: with the reward time where residuals are replaced")                                                                             \
  X(TEXT, backend, 0, 0, 0, AT_SOLVE, "auto",                                                                                              \
    "what the policy is for, and competes on: auto, cpu, cuda, or cuda:N for the N-th device from 0; a GPU learns from the state paper, "  \
    "by the reward paper with tilecsc and no replacement, what else there is to learn is learned on the CPU; auto: a GPU where solve "     \
    "would take it, or with the reward paper where it learns")

HT_OPTION_STRUCT(ht_train_options, HT_TRAIN_OPTIONS);

void ht_train_options_set_defaults(ht_train_options *options);
/* given: the options that were, a bit each. */
ht_status ht_train_options_set(ht_context *ctx, ht_train_options *options, const char *name, const char *value, uint64_t *given);
/* What auto and the numbers that stand for it mean, put in their place: the paper's values with its reward. */
void ht_train_options_settle(ht_train_options *options);
/* Of settled options, whether they go together and those that were given have an effect: HT_BAD_OPTION with the sentence. */
ht_status ht_train_options_check(ht_context *ctx, const ht_train_options *options, uint64_t given);
/* The value as text. */
void ht_train_options_print(const ht_train_options *options, int index, char text[HT_OPTION_TEXT_SIZE]);

#endif
