/* The parts that ht_matrix_facts is made of. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_SOLVER_FACTS_SCAN_H
#define HT_SOLVER_FACTS_SCAN_H
#include "data/matrix.h"
#include "halftone/facts.h"

/* Everything that one walk over the rows tells. diagonal: n entries, filled here. */
void ht_facts_scan_rows(const ht_matrix *a, double *diagonal, ht_facts *facts);
/* Symmetry of pattern and values, and the couplings, which need the diagonal. */
void ht_facts_scan_pairs(const ht_matrix *a, const double *diagonal, ht_facts *facts);
/* What the formats would cost. */
ht_status ht_facts_storage(const ht_matrix *a, ht_facts *facts);
/* looks_spd and reason, from all the rest. */
void ht_facts_judge(ht_facts *facts);

#endif
