/* The page around the charts: style, table, sections. SPDX-License-Identifier: BSD-3-Clause */
#include "page.h"
#include <math.h>
#include <string.h>
#include "chart.h"
#include "text.h"

/* Colours that differ in lightness too, so that they stay apart without colour vision: six for runs (a seventh begins again, dashed),
 * three for precisions from narrow to wide, grey for the rest. */
static const char *const light[] = {"--s0:#0072b2;--s1:#d55e00;--s2:#009e73;--s3:#a8487f;--s4:#b07d00;--s5:#4b4b4b;",
                                    "--ink:#1c1c1e;--soft:#5f6368;--grid:#e3e5e8;--page:#fff;--card:#f7f8fa;--vectors:#9aa0a6;"};
static const char *const dark[] = {"--s0:#5ab4f0;--s1:#ff8a3d;--s2:#2ecc9a;--s3:#e59ac7;--s4:#f0c040;--s5:#c8c8c8;",
                                   "--ink:#e8eaed;--soft:#a6abb1;--grid:#33363b;--page:#16181b;--card:#1f2226;--vectors:#7d838a;"};
static const int light_level[RUN_LEVELS][3] = {{0xf0, 0xb4, 0x29}, {0x2a, 0x9d, 0x8f}, {0x3d, 0x2c, 0x78}};
static const int dark_level[RUN_LEVELS][3] = {{0xf6, 0xd5, 0x5c}, {0x25, 0xa5, 0x98}, {0x7a, 0x68, 0xd8}};

static const char *const rules[] = {
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}",
    "main{max-width:1360px;margin:auto;padding:24px}h1{font-size:1.5rem;margin:0 0 4px}h2{font-size:1.15rem;margin:36px 0 8px}",
    "h3{font-size:.95rem;margin:0 0 6px}p{margin:4px 0;color:var(--soft)}",
    ".row{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(460px,100%),1fr));gap:18px}",
    "figure{margin:0;padding:14px;background:var(--card);border-radius:8px}svg{display:block;width:100%;height:auto}",
    "svg text{font:12px system-ui,sans-serif;fill:var(--soft)}svg text.name{fill:var(--ink)}",
    ".grid{stroke:var(--grid)}.frame{fill:none;stroke:var(--soft)}.level{stroke:var(--ink);stroke-dasharray:5 4}",
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.point{fill:var(--card);stroke-width:1.8}.dash{stroke-dasharray:6 3}",
    ".key{display:inline-block;margin:0 14px 4px 0;font-size:.85rem}.key i{display:inline-block;width:12px;height:12px;margin-right:6px;"
    "border-radius:2px;vertical-align:-1px}",
    ".again{background-image:repeating-linear-gradient(90deg,transparent 0 3px,var(--page) 3px 6px)}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}",
    "th,td{padding:5px 10px;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap}th{color:var(--soft);font-weight:600}",
    "th:first-child,td.text{text-align:left}td.bad{color:var(--s1);font-weight:600}footer{margin-top:36px;font-size:.8rem;color:var(--soft)"
    "}"};

static void write_colours(FILE *file, const char *const *names, const int level[RUN_LEVELS][3]) {
  fprintf(file, "%s%s", names[0], names[1]);
  for (int m = 0; m < PAGE_MAP_COLOURS; m++) {
    double at = 2.0 * m / (PAGE_MAP_COLOURS - 1);
    int below = at < 1 ? 0 : 1;
    int mixed[3];
    for (int c = 0; c < 3; c++) mixed[c] = (int)lround(level[below][c] + (at - below) * (level[below + 1][c] - level[below][c]));
    fprintf(file, "--m%d:#%02x%02x%02x;", m, mixed[0], mixed[1], mixed[2]);
  }
}

static void write_style(FILE *file) {
  fputs("<style>\n:root{color-scheme:light dark;", file);
  write_colours(file, light, light_level);
  fputs("}\n@media(prefers-color-scheme:dark){:root{", file);
  write_colours(file, dark, dark_level);
  fputs("}}\n", file);
  for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) fprintf(file, "%s\n", rules[k]);
  for (int k = 0; k < 6; k++) fprintf(file, ".s%d{stroke:var(--s%d)}.b%d{fill:var(--s%d);background:var(--s%d)}\n", k, k, k, k, k);
  for (int m = 0; m < PAGE_MAP_COLOURS; m++) fprintf(file, ".m%d{fill:var(--m%d);background:var(--m%d)}\n", m, m, m);
  fputs(".bv{fill:var(--vectors);background:var(--vectors)}\n</style>\n", file);
}

void page_key(FILE *file, const char *css, const char *text) {
  fprintf(file, "<span class='key'><i class='%s'></i>", css);
  html_text(file, text);
  fputs("</span>", file);
}

static void cell(FILE *file, const char *css, const char *text) {
  fprintf(file, "<td%s%s%s>", css ? " class='" : "", css ? css : "", css ? "'" : "");
  html_text(file, *text ? text : "\xe2\x80\x93");
  fputs("</td>", file);
}

static void write_row(FILE *file, const cli_run *run) {
  const ht_report *r = &run->report;
  fputs("<tr>", file);
  cell(file, "text", run->label);
  cell(file, r->outcome == HT_CONVERGED ? "text" : "text bad", ht_outcome_name(r->outcome));
  cell(file, NULL, text_count(r->n).text);
  cell(file, NULL, text_count(r->nnz).text);
  cell(file, "text", r->policy);
  cell(file, "text", r->precond);
  cell(file, "text", r->engine);
  cell(file, "text", r->isa);
  char iterations[96];
  snprintf(iterations, sizeof iterations, r->columns > 1 ? "%s in %s" : "%s", text_count(r->iterations).text,
           text_number_of(r->columns, "solve").text);
  cell(file, NULL, iterations);
  cell(file, NULL, text_seconds(r->time_setup_s).text);
  cell(file, NULL, text_seconds(r->time_solve_s).text);
  cell(file, NULL, text_residual(r->residual_true).text);
  cell(file, NULL, text_residual(r->residual_recursive).text);
  cell(file, NULL, text_residual(r->tolerance).text);
  cell(file, NULL, text_count(r->replacements).text);
  cell(file, NULL, text_count(r->restores).text);
  fputs("</tr>\n", file);
}

static void write_table(FILE *file, int runs, const cli_run *run) {
  static const char *const heads[] = {"run",          "outcome",    "n",      "nnz",   "policy",        "preconditioner",     "engine",
                                      "machine",      "iterations", "set-up", "solve", "true residual", "recursive residual", "tolerance",
                                      "replacements", "restores"};
  fputs("<div class='wide'><table><thead><tr>", file);
  for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) fprintf(file, "<th>%s</th>", heads[k]);
  fputs("</tr></thead><tbody>\n", file);
  for (int i = 0; i < runs; i++) write_row(file, &run[i]);
  fputs("</tbody></table></div>\n<p>Residuals are relative to ||b||; the true one is computed in FP64 from the matrix as given.</p>\n",
        file);
  for (int i = 0; i < runs; i++) {
    const char *detail = *run[i].report.detail ? run[i].report.detail : run[i].report.policy_chosen;
    if (!*detail) continue;
    fputs("<p>", file);
    html_text(file, run[i].label);
    fputs(": ", file);
    html_text(file, detail);
    fputs("</p>\n", file);
  }
}

static int any_trace(int runs, const cli_run *run) {
  for (int i = 0; i < runs; i++)
    if (run[i].has_trace) return 1;
  return 0;
}

void page_write(FILE *file, const char *title, int runs, const cli_run *run) {
  fputs(
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/><meta name='viewport' content='width=device-width,initial-scale=1'/>\n"
      "<title>",
      file);
  html_text(file, title);
  fputs("</title>\n", file);
  write_style(file);
  fputs("</head><body><main>\n<h1>", file);
  html_text(file, title);
  fputs("</h1>\n<h2>Outcomes</h2>\n", file);
  write_table(file, runs, run);
  if (any_trace(runs, run)) page_residuals(file, runs, run);
  for (int i = 0; i < runs; i++)
    if (run[i].has_trace && (run[i].changes || !run[i].blocks)) page_precision(file, &run[i]);
  if (!any_trace(runs, run))
    fputs("<p>These runs kept no trace: <code>halftone solve --trace</code> records residuals and precisions.</p>\n", file);
  page_bars(file, runs, run);
  fprintf(file, "<footer>halftone %s</footer>\n</main></body></html>\n", ht_version());
}
