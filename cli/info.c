/* halftone info. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "args.h"
#include "input.h"
#include "json.h"
#include "text.h"

enum { DEFAULT_STEPS = 60, MOST_STEPS = 200 };

static void tell(cli_json *json, int as_json, const char *name, const char *text) {
  if (as_json)
    json_text(json, name, text);
  else
    line(stdout, name, "%s", text);
}

static int tell_about(ht_context *ctx, int as_json) {
  char text[1024]; /* a line may list many devices */
  const char *name;
  cli_json json;
  if (as_json) json_begin(&json, stdout);
  for (int i = 0; i < ht_about_count(); i++) {
    if (ht_about_at(ctx, i, &name, text, sizeof text) != HT_OK) continue;
    tell(&json, as_json, name, text);
  }
  if (as_json) json_finish(&json);
  return 0;
}

static void show_structure(const ht_facts *f) {
  line(stdout, "size", "%s, %s (%s), %s", text_number_of(f->n, "row").text, text_number_of(f->nnz, "nonzero").text,
       text_number_of(f->explicit_zeros, "explicit zero").text, text_number_of(f->empty_rows, "empty row").text);
  line(stdout, "row lengths", "%lld to %lld, mean %.1f", (long long)f->row_min, (long long)f->row_max, f->row_mean);
  if (f->asymmetry_row < 0)
    line(stdout, "symmetry", "symmetric to the last bit; %s without a partner", text_number_of(f->unmatched, "entry").text);
  else
    line(stdout, "symmetry", "%s: largest difference %.3e at (%lld,%lld), counted from 1; %s without a partner", f->symmetry, f->asymmetry,
         (long long)f->asymmetry_row + 1, (long long)f->asymmetry_column + 1, text_number_of(f->unmatched, "entry").text);
}

static void show_bandwidth(const ht_facts *f) {
  char range[64];
  line(stdout, "bandwidth", "%s; rows by their own:", text_count(f->bandwidth).text);
  for (int bin = 0; bin < HT_FACTS_BINS; bin++) {
    long long low = bin ? 1LL << (bin - 1) : 0, high = bin ? (1LL << bin) - 1 : 0;
    double share = f->n ? (double)f->rows_by_bandwidth[bin] / (double)f->n : 0;
    if (!f->rows_by_bandwidth[bin]) continue;
    snprintf(range, sizeof range, low == high ? "%lld" : "%lld to %lld", low, high);
    line(stdout, NULL, "%-24s %10s  %.*s", range, text_count(f->rows_by_bandwidth[bin]).text, (int)ceil(share * 30),
         "##############################");
  }
}

static double part(int64_t count, int64_t whole) { return whole ? (double)count / (double)whole : NAN; }

static void show_values(const ht_facts *f) {
  line(stdout, "diagonal", "%.3e to %.3e, %s zero or missing, %s negative", f->diagonal_min, f->diagonal_max,
       text_count(f->diagonal_missing).text, text_count(f->diagonal_negative).text);
  line(stdout, "values", "magnitudes %.3e to %.3e; exact in the number formats bf16 %s, f16 %s, f32 %s", f->value_min, f->value_max,
       text_share(part(f->exact_bf16, f->nnz)).text, text_share(part(f->exact_f16, f->nnz)).text,
       text_share(part(f->exact_f32, f->nnz)).text);
  if (!isnan(f->share_exact_16)) line(stdout, NULL, "exact at 16 bits in the split storage: %s", text_share(f->share_exact_16).text);
  line(stdout, "dominance", "%s of the rows diagonally dominant within rounding, %s strictly",
       text_share(part(f->dominant_rows, f->n)).text, text_share(part(f->strictly_dominant_rows, f->n)).text);
}

/* Ritz values lie inside the spectrum: both are bounds, and so is their ratio. */
static void show_eigenvalues(const char *label, double least, double most, double condition, int64_t steps) {
  char ratio[64] = "";
  if (!isnan(condition)) snprintf(ratio, sizeof ratio, "; condition number at least %.2e", condition);
  line(stdout, label, "smallest at most %.3e, largest at least %.3e (%s)%s", least, most, text_number_of(steps, "Lanczos step").text,
       ratio);
}

static void show_spectrum(const ht_facts *f) {
  if (f->lanczos_steps < 1) return;
  show_eigenvalues("eigenvalues", f->eigenvalue_min, f->eigenvalue_max, f->condition_estimate, f->lanczos_steps);
  if (!isnan(f->scaled_eigenvalue_max))
    show_eigenvalues("after Jacobi", f->scaled_eigenvalue_min, f->scaled_eigenvalue_max, f->scaled_condition_estimate, f->lanczos_steps);
}

static void show_verdict(const ht_facts *f) {
  const char *word = f->looks_spd == 1 ? "looks positive definite" : "not positive definite";
  int proved = !strncmp(f->reason, "positive definite: ", 19);
  line(stdout, "verdict", "%s%s%s", proved ? "" : word, proved ? "" : ": ", f->reason);
}

static void show_storage_line(const char *label, const char *format, int64_t bytes, const ht_facts *f) {
  line(stdout, label, "%-30s %10s, %.1f B a nonzero", format, text_bytes((double)bytes).text, f->nnz ? (double)bytes / (double)f->nnz : 0);
}

static void show_facts(const char *path, const ht_facts *f) {
  line(stdout, "matrix", "%s", path);
  show_structure(f);
  show_bandwidth(f);
  show_values(f);
  show_spectrum(f);
  show_storage_line("storage", "CSR, FP64", f->bytes_csr_f64, f);
  show_storage_line(NULL, "CSR, FP32", f->bytes_csr_f32, f);
  show_storage_line(NULL, "split (at most)", f->bytes_split, f);
  show_storage_line(NULL, "Tile-CSC (at least)", f->bytes_tilecsc, f);
  show_verdict(f);
}

static void write_facts(const char *path, const ht_facts *facts) {
  cli_json json;
  char object[8192]; /* the fields' names and numbers, and two texts at their full length, escaped */
  ht_facts_json(facts, object, sizeof object);
  json_begin(&json, stdout);
  json_text(&json, "matrix", path);
  json_members(&json, object);
  json_open(&json, "rows_by_bandwidth", '[');
  for (int bin = 0; bin < HT_FACTS_BINS; bin++) json_integer(&json, NULL, facts->rows_by_bandwidth[bin]);
  json_close(&json, ']');
  json_finish(&json);
}

typedef enum file_kind { A_MATRIX, A_POLICY, A_STATE } file_kind;

/* Safetensors begin with the length of the text in braces that follows, 8 bytes of which the last are 0. A file is what its beginning says,
 * whatever its name, as for a solve; a damaged policy what its name says. */
static file_kind kind_of(const char *path) {
  static const char ending[] = ".safetensors", state[] = "halftone-train";
  size_t length = strlen(path);
  char bytes[sizeof state] = "";
  struct stat about;
  int there = stat(path, &about) == 0;
  FILE *file = there && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL; /* of a pipe nothing may be taken */
  size_t got = file ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
  if (file) fclose(file);
  if (!memcmp(bytes, state, sizeof state - 1)) return A_STATE;
  if (!there && (!strcmp(path, "learned") || !strcmp(path, "learned:universal"))) return A_POLICY; /* the library's */
  if (got > 8 && !bytes[6] && !bytes[7] && bytes[8] == '{') return A_POLICY;
  return length >= sizeof ending && !strcmp(path + length - (sizeof ending - 1), ending) ? A_POLICY : A_MATRIX;
}

/* What a file tells of itself, line by line, begun with the first: nothing is written of a file that is refused. */
typedef struct telling {
  const char *kind, *path;
  int as_json, begun;
  cli_json json;
  char matrices[1100], options[1100]; /* of a state */
} telling;

static void tell_line(void *user, const char *name, const char *text) {
  telling *t = user;
  if (!t->begun) {
    if (t->as_json) json_begin(&t->json, stdout);
    tell(&t->json, t->as_json, t->kind, t->path);
    t->begun = 1;
  }
  if (!strcmp(name, "trained_on")) snprintf(t->matrices, sizeof t->matrices, "%s", text);
  if (!strcmp(name, "options")) snprintf(t->options, sizeof t->options, "%s", text);
  if (*text || t->as_json) tell(&t->json, t->as_json, name, text);
}

static int tell_policy(ht_context *ctx, const char *path, int as_json) {
  telling t = {.kind = "policy", .path = path, .as_json = as_json};
  ht_status status = ht_policy_about(ctx, path, tell_line, &t);
  if (status != HT_OK) return cli_failed(ctx, status);
  if (as_json) json_finish(&t.json);
  return 0;
}

/* And, for people, how to go on; where the matrices lie the state does not know. */
static int tell_lines_of_state(ht_context *ctx, const char *path, const void *bytes, int64_t size, int as_json) {
  telling t = {.kind = "state", .path = path, .as_json = as_json};
  if (ht_train_state_about(ctx, bytes, size, tell_line, &t) != HT_OK) return cli_bad("%s: %s", path, ht_context_error(ctx));
  if (as_json) {
    json_finish(&t.json);
    return 0;
  }
  for (char *c = t.matrices; *c; c++)
    if (*c == ',') memmove(c, c + 1, strlen(c));
  line(stdout, "to go on", "halftone train %s%s%s --resume %s --episodes MORE -o P.safetensors", t.matrices, *t.options ? " " : "",
       t.options, path);
  return 0;
}

static int tell_state(ht_context *ctx, const char *path, int as_json) {
  int64_t size;
  void *bytes = input_read("the state", path, &size);
  int result = bytes ? tell_lines_of_state(ctx, path, bytes, size, as_json) : CLI_BAD;
  free(bytes);
  return result;
}

int info_command(ht_context *ctx, const cli_args *args) {
  ht_matrix *matrix = NULL;
  ht_facts facts;
  const char *steps_text = args_value(args, "--steps");
  int as_json = args_value(args, "--json") != NULL;
  int steps = DEFAULT_STEPS;
  if (args_value(args, "--verbose")) cli_set_verbose(ctx);
  if (args_whole_number(args, "--steps", 0, MOST_STEPS, &steps)) return CLI_BAD;
  if (args_set_threads(ctx, args)) return CLI_BAD;
  const char *path = args->word_count ? args->words[0] : NULL;
  file_kind kind = path ? kind_of(path) : A_MATRIX;
  if (steps_text && (!path || kind != A_MATRIX)) return args_in_vain("--steps", "a matrix");
  if (args_value(args, "--threads") && kind != A_MATRIX) return args_in_vain("--threads", "a matrix");
  if (!path) return tell_about(ctx, as_json);
  if (kind == A_POLICY) return tell_policy(ctx, path, as_json);
  if (kind == A_STATE) return tell_state(ctx, path, as_json);
  ht_status status = ht_matrix_read(ctx, path, &matrix);
  if (status == HT_OK) status = ht_matrix_facts(matrix, steps, &facts);
  if (status == HT_OK && as_json) write_facts(path, &facts);
  if (status == HT_OK && !as_json) show_facts(path, &facts);
  ht_matrix_destroy(matrix);
  return status == HT_OK ? 0 : cli_failed(ctx, status);
}
