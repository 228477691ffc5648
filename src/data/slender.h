/* How long and thin a mesh is, by its graph alone. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HT_DATA_SLENDER_H
#define HT_DATA_SLENDER_H
#include "backend/backend.h"
#include "base/context.h"

/* Of nodes of `unknowns` rows that share their neighbours, 2 or 3, and as many dimensions: the levels of a breadth-first search from an
 * end, by those of a square or a cube of as many nodes, (nodes)^(1/unknowns). About 1 for a cube of hexahedra or of unstructured
 * tetrahedra, up to 2 where all cells are cut alike, 2.8 for a plate of 154 x 154 x 6 hexahedra. Of several components the largest counts.
 * 0 for other `unknowns`, and where there is no memory for the search, 5 bytes a node: nothing depends on it but speed. Two searches, which
 * look at an entry a node of the first row of each. */
double ht_slenderness(ht_context *ctx, const ht_csr_view *a, int unknowns);

#endif
