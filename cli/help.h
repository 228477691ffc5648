/* Help texts and the manual page, made from the lists of commands and options. SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALFTONE_CLI_HELP_H
#define HALFTONE_CLI_HELP_H
#include <stdio.h>
#include "cli.h"

void help_usage(FILE *file);
void help_on_command(FILE *file, const cli_command *command);
void help_generators(FILE *file); /* the kinds of test matrices, one a line */
void help_manual_page(FILE *file);

/* Walk the listed options that the command takes and does not define itself, from *index = 0 until NULL. */
const ht_option_info *help_next_listed_option(const cli_command *command, int *index);
/* One of them as the help shows it: "--rtol X" and what it does with its default. */
void help_option(const ht_option_info *info, char *left, size_t left_size, char *text, size_t text_size);

#endif
