/* The screen an engineer reads: what was solved, how, for what time and bytes, how well, and the verdict.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "show.h"
#include <math.h>
#include <string.h>
#include "text.h"

static const char *symmetry_name(ht_symmetry symmetry) {
  return symmetry == HT_SYMMETRIC ? "symmetric" : symmetry == HT_NEARLY_SYMMETRIC ? "symmetric but for rounding" : "not symmetric";
}

static void show_problem(FILE *file, const cli_problem *p) {
  int64_t nnz = ht_matrix_nonzeros(p->matrix);
  line(file, "matrix", "%s: %s, %s (%.1f a row), %s", p->path, text_number_of(p->n, "unknown").text, text_number_of(nnz, "nonzero").text,
       p->n ? (double)nnz / (double)p->n : 0, symmetry_name(ht_matrix_symmetry(p->matrix)));
  if (p->columns == 1)
    line(file, "right side", "%s", p->origin);
  else
    line(file, "right sides", "%s: %d columns", p->origin, p->columns);
}

static void show_method(FILE *file, const ht_report *r) {
  line(file, "method", "CG, preconditioner %s, engine %s", r->precond, r->engine);
  if (*r->policy_chosen)
    line(file, "precision", "policy %s: %s", r->policy, r->policy_chosen);
  else
    line(file, "precision", "policy %s", r->policy);
  line(file, "storage", "%s, %s, %.1f B a nonzero, ordering %s", r->format, text_bytes((double)r->bytes_matrix).text, r->bytes_per_nonzero,
       *r->ordering ? r->ordering : "natural");
  if (!isnan(r->share_exact_16))
    line(file, NULL, "nonzeros in tiles exact at 16 bits: %s, at 32 bits: %s", text_share(r->share_exact_16).text,
         text_share(r->share_exact_f32).text);
  line(file, "machine", "%s, %s, %s", r->backend, r->isa, text_number_of(r->threads, "thread").text);
  if (*r->backend_chosen) line(file, NULL, "backend auto: %s", r->backend_chosen);
}

static void show_work(FILE *file, const ht_report *r) {
  line(file, "time", "read %s, set-up %s, solve %s (certificate %s)", text_seconds(r->time_read_s).text, text_seconds(r->time_setup_s).text,
       text_seconds(r->time_solve_s).text, text_seconds(r->time_certificate_s).text);
  const char *over = r->columns > 1 ? ", all right-hand sides together" : "";
  line(file, "work", "iterations %s%s%s; products %s, replacements %s, restores %s%s", text_count(r->iterations).text,
       r->iterations > 0 ? " of " : "", r->iterations > 0 ? text_seconds(r->time_solve_s / (double)r->iterations).text : "",
       text_count(r->products).text, text_count(r->replacements).text, text_count(r->restores).text, over);
  if (r->left_to_f64 > 0) line(file, NULL, "the iteration limit might not have been enough for low levels: the rest was left to FP64");
  line(file, "bytes read", "matrix: %s at FP64, %s at 32 bits, %s at 16 bits; vectors: %s", text_bytes(r->bytes_f64).text,
       text_bytes(r->bytes_f32).text, text_bytes(r->bytes_16).text, text_bytes(r->bytes_vectors).text);
}

static void show_quality(FILE *file, const ht_report *r) {
  if (r->norm_b == 0 && r->columns == 1) {
    line(file, "residual", "0: b = 0 has the solution x = 0");
    return;
  }
  line(file, "residual", "true %s, recursive %s, at the start %s; asked for %s (all / ||b||)", text_residual(r->residual_true).text,
       text_residual(r->residual_recursive).text, text_residual(r->residual_initial).text, text_residual(r->tolerance).text);
  line(file, "accuracy", "backward error %s; estimated error in the A-norm %s", text_residual(r->backward_error).text,
       text_residual(r->error_estimate).text);
  if (!isnan(r->error_known)) line(file, NULL, "error against the known solution %s", text_residual(r->error_known).text);
  if (!isnan(r->condition_estimate))
    line(file, "condition", "at least %.2e: preconditioned eigenvalues from %.2e to %.2e", r->condition_estimate, r->eigenvalue_min,
         r->eigenvalue_max);
}

void show_verdict(char *text, size_t size, const ht_report *r) {
  const char *sentence = *r->detail ? r->detail : ht_outcome_text(r->outcome);
  char work[128];
  if (r->columns > 1)
    snprintf(work, sizeof work, "%s over %lld right-hand sides", text_number_of(r->iterations, "iteration").text, (long long)r->columns);
  else
    snprintf(work, sizeof work, "%s", text_number_of(r->iterations, "iteration").text);
  if (r->outcome == HT_CONVERGED && isnan(r->tolerance) && r->columns == 1)
    snprintf(text, size, "solved without an iteration: b = 0 has the solution x = 0");
  else if (r->outcome == HT_CONVERGED && isnan(r->tolerance))
    snprintf(text, size, "solved in %s: the true residuals are within the tolerance", work);
  else if (r->outcome == HT_CONVERGED)
    snprintf(text, size, "solved in %s: the true residual %s is within the tolerance %s", work, text_residual(r->residual_true).text,
             text_residual(r->tolerance).text);
  else if (r->iterations > 0)
    snprintf(text, size, "not solved: %s (%s, %s, true residual %s)", sentence, ht_outcome_name(r->outcome), work,
             text_residual(r->residual_true).text);
  else
    snprintf(text, size, "not solved: %s (%s)", sentence, ht_outcome_name(r->outcome));
}

void show_solve(FILE *file, const cli_problem *problem, const ht_report *report, const double *history, int64_t history_count) {
  char verdict[600];
  show_problem(file, problem);
  if (*report->engine) { /* else the system was refused before anything was built */
    show_method(file, report);
    show_work(file, report);
    show_quality(file, report);
    plot_convergence(file, history, history_count, report->tolerance, problem->columns > 1 ? " (last right side)" : "");
  }
  show_verdict(verdict, sizeof verdict, report);
  line(file, "verdict", "%s", verdict);
}
