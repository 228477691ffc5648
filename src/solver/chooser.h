/* What training needs of a solver: its own choice of actions, and the facts that they depend on. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_CHOOSER_H
#define HT_SOLVER_CHOOSER_H
#include "halftone/solver.h"
#include "policy/policy.h"

/* In the place of the policy, from the next preparation on (copied; its texts are borrowed). */
void ht_solver_set_chooser(ht_solver *solver, const ht_policy_chooser *chooser);
/* In the place of what the option policy, learned:NAME, would read from a file at the next preparation. The solver takes it. */
void ht_solver_set_learned(ht_solver *solver, ht_learned *learned);
/* Of a solver that is prepared: until its next preparation. */
const ht_policy_facts *ht_solver_facts(const ht_solver *solver);
/* What its last solve read of the matrix in products, at each level; recomputed residuals are not among it. */
const double *ht_solver_bytes(const ht_solver *solver);
int64_t ht_solver_looks(const ht_solver *solver); /* that its policy took at its last solve */
/* Another machine, and another policy, than there is. */
typedef struct ht_pretence {
  double cache_bytes; /* 0: as it is */
  int device;         /* on the CPU: policies, and the model of time, take it for a device */
  const char *policy; /* in the place of the options' and of the chooser; NULL: neither */
} ht_pretence;

/* Its policy is made anew for that, and believes in it, until the next preparation. */
ht_status ht_solver_pretend(ht_solver *solver, const ht_pretence *pretence);

#endif
