/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char SETTINGS_HELP[] =
    "usage: bench_gpu_cg [options] [[NAME=]MATRIX.npz | [NAME=]MATRIX.mtx | '[NAME=]RECIPE'] ...\n"
    "  --suite FILE          rows of this suite (bench/suite.tsv where no matrix is given)\n"
    "  --class A,B           classes of the suite to take (small,L2,HBM)\n"
    "  --only NAME,...       names of the suite to take, whatever the class\n"
    "  --policies P,...      ours: fixed:f64 (exactness flags off), fixed:f64+exact, auto, budget, rule, fixed:f32, "
    "fixed:bf16 (fixed:f64,auto)\n"
    "                        {matrix} in a policy is the matrix's name: learned:policies/{matrix}.safetensors\n"
    "  --option NAME=VALUE   of our solver, as often as wanted (guard=off)\n"
    "  --precond NAME (none) --engine NAME (auto)  --backend NAME (cuda)\n"
    "  --rhs A*ones|random:1|... (A*ones; `ones` and `random` stand for A*ones and random:1)\n"
    "  --pairs N (7)         --seconds S a matrix (60)  --total-seconds S: begin no matrix after it (1e9)\n"
    "  --max-iterations N    (10000)\n"
    "  --vectors device|host where b and x of ours lie (device)\n"
    "  --peers 0|1           cuSPARSE + cuBLAS in both forms (1)\n"
    "  --program NAME=COMMAND a peer of its own, as often as wanted: bench/peers/problem_file.h says what it is told\n"
    "  --commit TEXT  --out FILE.json (bench/results/h200-cg-DATE.json)\n";

static int set_policies(settings *set, char *text) {
  char *rest = NULL;
  set->policy_count = 0;
  for (char *p = strtok_r(text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
    if (set->policy_count == MOST_POLICIES) return -1;
    set->policies[set->policy_count++] = p;
  }
  return set->policy_count ? 0 : -1;
}

static int set_number(const char *text, double low, double high, double *value) {
  char *end = NULL;
  *value = strtod(text, &end);
  return end != text && !*end && *value >= low && *value <= high ? 0 : -1;
}

/* 0: taken, -1: not valid. */
static int set_option(settings *set, const char *name, char *value) {
  const struct {
    const char *name, **field;
  } texts[] = {{"--suite", &set->suite},     {"--class", &set->classes}, {"--only", &set->only},
               {"--precond", &set->precond}, {"--engine", &set->engine}, {"--backend", &set->backend},
               {"--vectors", &set->vectors}, {"--out", &set->out},       {"--commit", &set->commit}};
  double number = 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!strcmp(name, texts[i].name)) {
      *texts[i].field = value;
      return 0;
    }
  if (!strcmp(name, "--policies")) return set_policies(set, value);
  if (!strcmp(name, "--option")) {
    if (set->option_count == MOST_OPTIONS || !strchr(value, '=')) return -1;
    set->options[set->option_count++] = value;
    return 0;
  }
  if (!strcmp(name, "--program")) {
    char *command = strchr(value, '=');
    if (set->program_count == MOST_PROGRAMS || !command) return -1;
    *command = 0;
    set->programs[set->program_count].name = value;
    set->programs[set->program_count++].command = command + 1;
    return 0;
  }
  if (!strcmp(name, "--rhs")) {
    set->rhs = !strcmp(value, "ones") ? "A*ones" : !strcmp(value, "random") ? "random:1" : value;
    return 0;
  }
  if (!strcmp(name, "--seconds")) return set_number(value, 0, 1e9, &set->seconds);
  if (!strcmp(name, "--total-seconds")) return set_number(value, 0, 1e9, &set->total_seconds);
  if (!strcmp(name, "--pairs") && !set_number(value, 1, MOST_PAIRS, &number)) return set->pairs = (int)number, 0;
  if (!strcmp(name, "--peers") && !set_number(value, 0, 1, &number)) return set->peers = (int)number, 0;
  if (!strcmp(name, "--max-iterations") && !set_number(value, 1, 1e7, &number)) return set->max_iterations = (long long)number, 0;
  return -1;
}

/* NAME=RECIPE, or a recipe or file that is its own name. */
static int add_given(problem_list *list, const char *text) {
  char name[64];
  size_t length = strcspn(text, "= ");
  if (text[length] != '=' || length >= sizeof name) return problems_add(list, text, "given", text);
  memcpy(name, text, length);
  name[length] = 0;
  return problems_add(list, name, "given", text + length + 1);
}

static const settings DEFAULTS = {.rhs = "A*ones",
                                  .precond = "none",
                                  .engine = "auto",
                                  .backend = "cuda",
                                  .vectors = "device",
                                  .commit = "",
                                  .policies = {"fixed:f64", "auto"},
                                  .policy_count = 2,
                                  .pairs = 7,
                                  .peers = 1,
                                  .max_iterations = 10000,
                                  .seconds = 60,
                                  .total_seconds = 1e9};

int settings_parse(int argc, char **argv, settings *set, problem_list *list) {
  *set = DEFAULTS;
  for (int i = 1; i < argc; i++) {
    if (!strncmp(argv[i], "--", 2)) {
      if (i + 1 == argc || set_option(set, argv[i], argv[i + 1])) {
        fprintf(stderr, "'%s %s' is not valid\n%s", argv[i], i + 1 < argc ? argv[i + 1] : "", SETTINGS_HELP);
        return -1;
      }
      i++;
    } else if (add_given(list, argv[i])) {
      fprintf(stderr, "'%s' is too long\n", argv[i]);
      return -1;
    }
  }
  if (strcmp(set->precond, "none") && strcmp(set->precond, "jacobi") && (set->peers || set->program_count)) {
    fprintf(stderr, "the peers have --precond none and jacobi; another one needs --peers 0 and no --program\n");
    return -1;
  }
  if (!set->suite && !list->count) set->suite = "bench/suite.tsv";
  const char *classes = set->classes ? set->classes : set->only ? NULL : "small,L2,HBM";
  if (set->suite && problems_read_suite(list, set->suite, classes, set->only)) {
    fprintf(stderr, "%s cannot be read: %s\n", set->suite, strerror(errno));
    return -1;
  }
  if (!list->count) fprintf(stderr, "no row of the suite matches\n");
  return list->count ? 0 : -1;
}
