/* docs/generators.md is what the rows of the test problems say. With HALFTONE_WRITE_DOCS set the page is written instead
 * (tools/generate_docs.sh). SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "support/generated.h"

static void print_range(FILE *out, const ht_option_info *p) {
  if (p->choices)
    for (const char *c = p->choices; *c; c++) fprintf(out, *c == '|' ? ", " : "%c", *c);
  else if (p->type == HT_OPTION_INTEGER)
    fprintf(out, "%.0f to %.0f", p->low, p->high);
  else
    fprintf(out, "%g to %g", p->low, p->high);
}

static void print_kind(FILE *out, int g) {
  const ht_generator_info *info = ht_generator_at(g);
  fprintf(out, "\n## %s\n%s.\n\n", info->name, info->summary);
  fprintf(out, "**Formula.** %s\n\n**Why it is positive definite.** %s\n\n", info->formula, info->spd);
  fprintf(out, "| parameter | default | allowed | meaning |\n|---|---|---|---|\n");
  for (int p = 0; p < info->parameters; p++) {
    const ht_option_info *row = ht_generator_parameter(g, p);
    fprintf(out, "| `--%s` | %s | ", row->name, row->default_value);
    print_range(out, row);
    char needs[200];
    ht_option_needs_text(row, needs, sizeof needs);
    fprintf(out, " | %s%s%s%s |\n", row->help, *needs ? " (with `" : "", needs, *needs ? "`)" : "");
  }
}

static void print_page(FILE *out) {
  fprintf(out,
          "<!-- Made by tools/generate_docs.sh from the rows in src/gen/: edit those. -->\n# Test problems\n"
          "`halftone gen KIND [--PARAMETER VALUE ...] -o A.mtx`, or `ht_generate` in C. Matrices are symmetric to the bit, and the same\n"
          "parameters give the same bits on any number of threads: random numbers are counter-based (a hash of seed, purpose and place;\n"
          "`src/gen/random.h` has the formula), so no value depends on the order in which it is drawn. Grids count x fastest. `jnlbrng`,\n"
          "`torsion`, `obstacle`, `fv`, `cvxbqp` and `trefethen` reproduce matrices of the SuiteSparse collection.\n\n"
          "| kind | what |\n|---|---|\n");
  for (int g = 0; g < ht_generator_count(); g++)
    fprintf(out, "| [%s](#%s) | %s |\n", ht_generator_at(g)->name, ht_generator_at(g)->name, ht_generator_at(g)->summary);
  for (int g = 0; g < ht_generator_count(); g++) print_kind(out, g);
}

static char *read_all(FILE *file, size_t *length) {
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  rewind(file);
  *length = fread(text, 1, (1 << 20) - 1, file);
  return text;
}

static void the_page_is_current(void **state) {
  (void)state;
  const char *root = getenv("HALFTONE_SOURCE");
  char path[1024];
  snprintf(path, sizeof path, "%s/docs/generators.md", root ? root : ".");
  if (getenv("HALFTONE_WRITE_DOCS")) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    print_page(out);
    assert_int_equal(fclose(out), 0);
    return;
  }
  FILE *page = fopen(path, "r"), *expected = tmpfile();
  if (!page) fail_msg("%s cannot be read: run tools/generate_docs.sh", path);
  assert_non_null(expected);
  print_page(expected);
  size_t have = 0, want = 0;
  char *is = read_all(page, &have), *should = read_all(expected, &want);
  if (have != want || memcmp(is, should, have)) fail_msg("%s is not what src/gen/ says: run tools/generate_docs.sh", path);
  free(is);
  free(should);
  fclose(page);
  fclose(expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_is_current)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
