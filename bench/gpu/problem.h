/* What is measured: rows of a suite, files, recipes. SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_PROBLEM_H
#define BENCH_GPU_PROBLEM_H
#include <halftone/halftone.h>

typedef struct problem {
  char name[128], class[32], recipe[512]; /* recipe: `KIND --parameter value ...`, or a matrix file */
} problem;

typedef struct problem_list {
  int count;
  problem *items;
} problem_list;

/* 1 where `text` is one of the comma-separated words. */
int in_list(const char *text, const char *words);
int problems_add(problem_list *list, const char *name, const char *class, const char *recipe); /* -1: memory, or too long */
/* The rows of a suite file whose class is in `classes` (NULL: any) and whose name is in `only` (NULL: any). -1: errno says why. */
int problems_read_suite(problem_list *list, const char *path, const char *classes, const char *only);
ht_status problem_make(ht_context *ctx, const problem *p, ht_matrix **matrix);
#endif
