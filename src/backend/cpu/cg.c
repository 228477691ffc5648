/* The fused CG engine: predict-and-recompute conjugate gradients (Chen and Carson 2020, PR-CG; Meurant 1987) on the split
 * storage, one parallel region a run.
 *
 * An iteration is one sweep over the rows. The update of x, r and p runs just far enough ahead of the product that the
 * product finds its inputs in cache, so each vector crosses memory once an iteration: 4 reads and 4 writes of 8 bytes a row,
 * 8 bytes of the inverse diagonal, and the matrix. Rows that another part reads are updated first. Two barriers an iteration:
 * after those early rows, and before the sums are read. The sums are taken unit by unit in a fixed order, whatever the threads.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend/cpu/cg.h"
#include <math.h>
#include <omp.h>
#include <string.h>
#include "backend/cpu/isa.h"
#include "backend/cpu/split.h"
#include "base/convert.h"

/* ---- plan ---- */

static int64_t count_units(const ht_split_view *a) {
  int64_t units = 0;
  for (int64_t t = 0; t < a->tiles; t++) units += t == 0 || a->tile[t].row != a->tile[t - 1].row;
  return units;
}

static void fill_units(const ht_split_view *a, ht_cg_unit *unit) {
  int64_t u = -1;
  for (int64_t t = 0; t < a->tiles; t++) {
    if (t == 0 || a->tile[t].row != a->tile[t - 1].row) unit[++u] = (ht_cg_unit){.row = a->tile[t].row, .tile = t};
    unit[u].tiles++;
  }
  for (int64_t k = 0; k <= u; k++) unit[k].rows = (k < u ? unit[k + 1].row : a->padded) - unit[k].row;
}

/* Time of a unit in bytes: what it streams at full precision. */
static double unit_cost(const ht_split_view *a, const ht_cg_unit *unit) {
  double groups = 0;
  for (int64_t t = unit->tile; t < unit->tile + unit->tiles; t++) groups += (double)a->tile[t].groups;
  return groups * a->block * a->block * HT_LANES * 8 + (double)unit->rows * 68;
}

/* Consecutive units of about equal cost a part. */
static void cut_parts(const ht_split_view *a, ht_cg_plan *plan) {
  double total = 0, sum = 0;
  for (int64_t u = 0; u < plan->units; u++) total += unit_cost(a, &plan->unit[u]);
  int64_t part = 0;
  plan->part[0] = 0;
  for (int64_t u = 0; u < plan->units; u++) {
    double cost = unit_cost(a, &plan->unit[u]);
    while (part + 1 < plan->parts && sum + cost / 2 >= total * (double)(part + 1) / (double)plan->parts) plan->part[++part] = u;
    sum += cost;
  }
  while (part < plan->parts) plan->part[++part] = plan->units;
}

/* Which units each product needs: those of its own part give `ahead`, those of other parts are marked early. */
static void find_needs(const ht_split_view *a, ht_cg_plan *plan, const int32_t *unit_of_block) {
  for (int64_t part = 0; part < plan->parts; part++) {
    int64_t first = plan->part[part], last = plan->part[part + 1] - 1, ahead = first;
    for (int64_t u = first; u <= last; u++) {
      ht_cg_unit *unit = &plan->unit[u];
      if (ahead < u) ahead = u;
      for (int64_t t = unit->tile; t < unit->tile + unit->tiles; t++)
        for (int64_t k = 0; k < a->tile[t].touches; k++) {
          int64_t needed = unit_of_block[a->touched[a->tile[t].touch + k]];
          if (needed < first || needed > last)
            plan->unit[needed].early = 1;
          else if (needed > ahead)
            ahead = needed;
        }
      unit->ahead = ahead;
    }
  }
}

static ht_status plan_needs(ht_context *ctx, const ht_split_view *a, ht_cg_plan *plan) {
  int32_t *unit_of_block;
  HT_TRY(ctx, ht_allocate(ctx, a->blocks, sizeof *unit_of_block, &unit_of_block));
  for (int64_t u = 0; u < plan->units; u++)
    for (int64_t b = plan->unit[u].row / HT_COLUMN_BLOCK; b * HT_COLUMN_BLOCK < plan->unit[u].row + plan->unit[u].rows; b++)
      unit_of_block[b] = (int32_t)u;
  find_needs(a, plan, unit_of_block);
  ht_release(ctx, unit_of_block);
  return HT_OK;
}

void ht_cpu_cg_release(ht_cg_plan *plan) {
  if (!plan) return;
  ht_release(plan->ctx, plan->unit);
  ht_release(plan->ctx, plan->part);
  ht_release(plan->ctx, plan->sums[0]);
  ht_release(plan->ctx, plan->sums[1]);
  ht_release(plan->ctx, plan->work);
  ht_release(plan->ctx, plan);
}

ht_status ht_cpu_cg_prepare(ht_context *ctx, const ht_split_view *a, ht_cg_plan **out) {
  ht_cg_plan *plan;
  ht_status status;
  *out = NULL;
  HT_TRY(ctx, ht_allocate_zeroed(ctx, 1, sizeof *plan, &plan));
  plan->ctx = ctx;
  plan->units = count_units(a);
  plan->barrier.spins = ht_barrier_spins(ctx->threads, ht_available_cores());
  plan->parts = ctx->threads < plan->units ? ctx->threads : plan->units;
  HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, plan->units, sizeof *plan->unit, &plan->unit), fail);
  for (int k = 0; k < 2; k++) HT_TRY_GOTO(ctx, status, ht_allocate_zeroed(ctx, plan->units, sizeof(ht_cg_sums), &plan->sums[k]), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, 2 * a->padded, sizeof *plan->work, &plan->work), fail);
  HT_TRY_GOTO(ctx, status, ht_allocate(ctx, plan->parts + 1, sizeof *plan->part, &plan->part), fail);
  fill_units(a, plan->unit);
  cut_parts(a, plan);
  HT_TRY_GOTO(ctx, status, plan_needs(ctx, a, plan), fail);
  *out = plan;
  return HT_OK;
fail:
  ht_cpu_cg_release(plan);
  return status;
}

/* ---- one iteration ---- */

typedef struct sweep {
  ht_cg_plan *plan;
  const ht_split_view *a;
  ht_cg_state *state;
  const ht_cg_kernels *kernels;
  ht_cg_diagonal diagonal;
} sweep;

/* In the caller's scale: p = S^-1 p^. */
static void block_statistics(const ht_split_view *a, const ht_cg_state *state, int64_t row, int64_t rows) {
  for (int64_t b = row / HT_COLUMN_BLOCK; b * HT_COLUMN_BLOCK < row + rows; b++) {
    double norm2 = 0, largest = 0;
    for (int64_t i = b * HT_COLUMN_BLOCK; i < (b + 1) * HT_COLUMN_BLOCK; i++) {
      double v = state->p[i] * ht_from_bits64((uint64_t)(1023 - ht_split_exponent(a, i)) << 52); /* ldexp takes longer */
      norm2 += v * v;
      if (fabs(v) > largest) largest = fabs(v);
      if (state->block_direction) state->block_direction[i] = v;
    }
    state->block_norm2[b] = norm2;
    state->block_max[b] = largest;
  }
}

/* What one sweep does besides the vectors. */
typedef struct pass {
  double alpha, beta;
  int statistics;   /* leave the direction's block norms for the policy */
  ht_cg_sums *sums; /* a unit */
} pass;

static void update_unit(const sweep *w, const pass *k, int64_t u) {
  const ht_cg_unit *unit = &w->plan->unit[u];
  w->kernels->update(w->state, &w->diagonal, unit->row, unit->row + unit->rows, k->alpha, k->beta, &k->sums[u]);
  if (k->statistics) block_statistics(w->a, w->state, unit->row, unit->rows);
}

static void multiply_unit(const sweep *w, const pass *k, int64_t u) {
  const ht_cg_unit *unit = &w->plan->unit[u];
  for (int64_t t = unit->tile; t < unit->tile + unit->tiles; t++) {
    const ht_tile *tile = &w->a->tile[t];
    ht_cpu_split_kernel(w->a, tile, (ht_level)w->state->tile_level[t])(w->a, tile, w->state->p, w->state->s);
  }
  w->kernels->reduce(w->state, &w->diagonal, unit->row, unit->row + unit->rows, &k->sums[u]);
}

static void sweep_early(const sweep *w, const pass *k, int64_t part) {
  for (int64_t u = w->plan->part[part]; u < w->plan->part[part + 1]; u++)
    if (w->plan->unit[u].early) update_unit(w, k, u);
}

static void sweep_rest(const sweep *w, const pass *k, int64_t part) {
  int64_t next = w->plan->part[part];
  for (int64_t u = next; u < w->plan->part[part + 1]; u++) {
    for (; next <= w->plan->unit[u].ahead; next++)
      if (!w->plan->unit[next].early) update_unit(w, k, next);
    multiply_unit(w, k, u);
  }
}

static ht_cg_sums total(const ht_cg_plan *plan, const ht_cg_sums *sums) {
  ht_cg_sums all = {0, 0, 0, 0, 0};
  for (int64_t u = 0; u < plan->units; u++) {
    const ht_cg_sums *s = &sums[u];
    all.rz += s->rz;
    all.rr += s->rr;
    all.pap += s->pap;
    all.rms += s->rms;
    all.sms += s->sms;
  }
  return all;
}

/* Step lengths from the sums. rz of the next residual is predicted for beta, and recomputed in the next sweep. */
static ht_cg_event step(const ht_cg_sums *sums, ht_cg_state *state) {
  state->norm_r = sqrt(sums->rr);
  state->rz = sums->rz;
  state->pap = sums->pap;
  if (state->iteration < state->capacity) state->history[state->iteration] = state->norm_r;
  if (!isfinite(sums->rr) || !isfinite(sums->rz)) return HT_CG_NONFINITE;
  if (state->norm_r <= state->goal) return HT_CG_REACHED;
  if (!isfinite(sums->pap)) return HT_CG_NONFINITE;
  if (sums->pap <= 0) return HT_CG_CURVATURE;
  state->alpha = sums->rz / sums->pap;
  double predicted = sums->rz - 2 * state->alpha * sums->rms + state->alpha * state->alpha * sums->sms;
  state->beta = predicted > 0 ? predicted / sums->rz : 0;
  if (!isfinite(state->alpha) || !isfinite(state->beta)) return HT_CG_NONFINITE;
  if (state->iteration < state->capacity) {
    state->alphas[state->iteration] = state->alpha;
    state->betas[state->iteration] = state->beta;
  }
  if (state->iteration >= state->iteration_end) return HT_CG_LIMIT;
  if (state->norm_r <= state->replace_below) return HT_CG_DROPPED;
  if (state->norm_r > state->grow_above) return HT_CG_GREW;
  if (state->iteration >= state->decide_at) return HT_CG_DECIDE;
  if (state->iteration >= state->pause_at) return HT_CG_PAUSE;
  return HT_CG_CONTINUE;
}

/* Every thread runs this; they agree on all scalars because each adds the same sums in the same order. */
static ht_cg_event run_thread(const sweep *w, int thread, int threads, ht_cg_state *mine) {
  ht_cg_plan *plan = w->plan;
  pass k = {.alpha = mine->fresh ? 0 : mine->alpha, .beta = mine->fresh ? 0 : mine->beta};
  if (!mine->fresh) mine->iteration++;
  mine->fresh = 0;
  for (int parity = 0;; parity ^= 1, mine->iteration++) {
    k.statistics = mine->iteration >= mine->decide_at && mine->block_norm2;
    k.sums = plan->sums[parity];
    for (int64_t part = thread; part < plan->parts; part += threads) sweep_early(w, &k, part);
    ht_barrier_wait(&plan->barrier, threads);
    for (int64_t part = thread; part < plan->parts; part += threads) sweep_rest(w, &k, part);
    ht_barrier_wait(&plan->barrier, threads);
    ht_cg_sums sums = total(plan, k.sums);
    ht_cg_event event = step(&sums, mine);
    if (event != HT_CG_CONTINUE) return event;
    k.alpha = mine->alpha;
    k.beta = mine->beta;
  }
}

static const ht_cg_kernels *kernels_in_use(void) {
  static const ht_cg_kernels *const kernels[HT_CPU_ISAS] = {&ht_cpu_cg_portable, &ht_cpu_cg_avx2, &ht_cpu_cg_avx512};
  return kernels[ht_cpu_isa_in_use()];
}

ht_cg_event ht_cpu_cg_run(ht_cg_plan *plan, const ht_split_view *a, ht_cg_state *state) {
  sweep w = {plan, a, state, kernels_in_use(), {state->inverse_diagonal, a->scale_exponent, ldexp(1.0, 2 * a->uniform_exponent)}};
  ht_cg_event event = HT_CG_FAILED;
  ht_cg_state result = *state;
#pragma omp parallel num_threads((int)plan->parts)
  {
    ht_cg_state mine = *state; /* scalars are private, vectors shared */
    int thread = omp_get_thread_num();
    if (thread > 0) mine.capacity = 0; /* one thread keeps the records */
    ht_cg_event got = run_thread(&w, thread, omp_get_num_threads(), &mine);
    if (thread == 0) {
      event = got;
      result = mine;
    }
  }
  *state = result;
  if (event == HT_CG_DECIDE) ht_cpu_cg_measure_error(plan, a, state);
  return event;
}
