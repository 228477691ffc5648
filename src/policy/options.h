/* Options of the precision policies. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_POLICY_OPTIONS_H
#define HT_POLICY_OPTIONS_H
#include "base/option.h"

#define HT_POLICY_OPTIONS(X)                                                                                                               \
  X(TEXT, policy, 0, 0, 0, AT_PREPARE, "auto",                                                                                             \
    "precision policy: auto, fixed:f64, fixed:f32, fixed:bf16, rule, budget, learned, learned:FILE",                                       \
    "format=auto|split|tilecsc policy=auto|fixed:f64")                                                                                     \
  X(INTEGER, policy_interval, 0, 0, 4096, AT_SOLVE, NULL,                                                                                  \
    "iterations between two looks of the policy; 0 means 8, or what a learned policy was made for", "policy=auto|rule|budget|learned*")    \
  X(REAL, budget_theta, 0.03, 0, 1, AT_SOLVE, NULL, "share of the tolerance that the storage error may use",                               \
    "policy=auto|budget|learned*")                                                                                                         \
  X(REAL, budget_eta, 0.01, 0, 1, AT_SOLVE, NULL, "share of the current residual that the storage error may use",                          \
    "policy=auto|budget|learned*")

HT_OPTION_STRUCT(ht_policy_options, HT_POLICY_OPTIONS);
#endif
