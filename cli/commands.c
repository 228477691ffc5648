/* The only list of commands and of their own options. Parsing, help and the manual page walk it.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include "cli.h"

static const cli_option solve_options[] = {
    {"-b", "B",
     "right-hand side: a file (n x k for k of them), ones, random:SEED, A*ones or A*random:SEED; without it b = A*1, which can be easier "
     "than "
     "others: random:1 tells more"},
    {"-x0", "X", "starting vector, given as B is; without it 0"},
    {"-o", "X",
     "write the solution (.mtx, .mtx.gz, .npy); the best iterate where the tolerance was not met, no file where no iteration ran"},
    {"--history", "H.csv", "write iteration,residual_recursive lines, of the last column where there are several"},
    {"--report", "R.json", "write the report as one JSON object"},
    {"--json", NULL, "print the report as one JSON object, and nothing else"},
    {"--config", "FILE", "read solver options from `name = value` lines; the command line overrides them"},
    {"--quiet", NULL, "print nothing but errors, no warnings either"},
    {"--verbose", NULL, "tell what the library decides, and where an error came from"},
    {NULL, NULL, NULL}};

static const cli_option info_options[] = {
    {"--steps", "K", "Lanczos steps for the extreme eigenvalues, 0 to 200; 0 leaves them out; default 60"},
    {"--threads", "N", "most threads; 0, the default: OMP_NUM_THREADS, or else every core this process may use"},
    {"--json", NULL, "print one JSON object, and nothing else"},
    {"--verbose", NULL, "tell where an error came from"},
    {NULL, NULL, NULL}};

static const cli_option gen_options[] = {{"-o", "A", "file to write (.mtx, .mtx.gz, .npz)"},
                                         {"--list", NULL, "list the kinds"},
                                         {"--quiet", NULL, "print nothing but errors, no warnings either"},
                                         {"--verbose", NULL, "tell where an error came from"},
                                         {NULL, NULL, NULL}};

static const cli_option convert_options[] = {{"-o", "B", "file to write (.mtx, .mtx.gz, .npz)"},
                                             {"--quiet", NULL, "print nothing but errors, no warnings either"},
                                             {"--verbose", NULL, "tell where an error came from"},
                                             {NULL, NULL, NULL}};

static const cli_option bench_options[] = {
    {"--policy", "P,P,...", "policies to compare, the first is the reference; default fixed:f64,auto"},
    {"-b", "B", "right-hand side, as for solve"},
    {"--repeat", "N", "timed solves a policy, interleaved; default 7"},
    {"--json", NULL, "print one JSON object, and nothing else"},
    {"--config", "FILE", "read solver options from `name = value` lines"},
    {"--verbose", NULL, "tell what the library decides, and where an error came from"},
    {NULL, NULL, NULL}};

static const cli_option report_options[] = {{"-o", "RUN.html", "file to write"},
                                            {"--title", "TEXT", "the page's title; default: halftone report"},
                                            {"--quiet", NULL, "print nothing but errors, no warnings either"},
                                            {"--verbose", NULL, "tell where an error came from"},
                                            {NULL, NULL, NULL}};
static const cli_option train_options[] = {
    {"-o", "P.safetensors", "write the policy; solve uses it with --policy learned:P.safetensors"},
    {"--save", "STATE", "write the state of the training too, so that it can go on later"},
    {"--resume", "STATE",
     "go on from such a file, with the same matrices and options; --episodes, --patience, --judge, --compete and --backend may differ"},
    {"--history", "H.csv", "write episode,return,iterations lines"},
    {"--threads", "N", "threads; 0, the default: OMP_NUM_THREADS, or else every core this process may use"},
    {"--json", NULL, "print the report as one JSON object, and nothing else"},
    {"--quiet", NULL, "print nothing but errors, no warnings either"},
    {"--verbose", NULL, "tell where an error came from"},
    {NULL, NULL, NULL}};

static const cli_option help_options[] = {{"--man", NULL, "print the manual page (troff)"}, {NULL, NULL, NULL}};
static const cli_option no_options[] = {{NULL, NULL, NULL}};

const cli_command cli_commands[] = {
    {"solve", "A.mtx [-b B] [-x0 X] [-o X] [options]", "solve A x = b",
     "A is a Matrix Market file, plain or gzip, or a SciPy .npz; - reads standard input. The answer counts as solved only when the true "
     "residual, recomputed in FP64 from the matrix as given, meets the tolerance.",
     solve_options, CLI_SOLVER_OPTIONS, 1, solve_command},
    {"info", "[A.mtx|P.safetensors|learned|STATE] [options]",
     "facts about a matrix, a policy or a training; without one, about this build and machine",
     "Tells size, symmetry, diagonal, values and how many of them narrow formats hold exactly, bounds of the extreme eigenvalues, what "
     "each "
     "format would cost, and whether the matrix looks positive definite. Of a policy's file, or of the policy learned that the library "
     "carries: what it is and how it was learned; of a training's state: what it is, how far it came, and how to go on.",
     info_options, CLI_NO_MORE, 1, info_command},
    {"gen", "KIND [--parameter value ...] -o A.mtx", "make a test matrix",
     "`halftone gen --list` lists the kinds, `halftone help gen KIND` tells the parameters of one.", gen_options, CLI_GENERATOR_PARAMETERS,
     1, gen_command},
    {"convert", "A.mtx -o B.npz", "read a matrix and write it in another format",
     "The formats are told by the content of the input and by the ending of the output's name.", convert_options, CLI_NO_MORE, 1,
     convert_command},
    {"bench", "A.mtx [--policy P,P] [--repeat N] [options]", "time solves of one system under several precision policies",
     "The policies take turns, so that a change of the machine's speed hits all of them. Medians are given, with the spread.",
     bench_options, CLI_SOLVER_OPTIONS, 1, bench_command},
    {"report", "R.json [more.json ...] -o RUN.html", "draw runs as one page for a browser",
     "Reads what `halftone solve A.mtx --trace --report R.json` wrote; up to 12 runs side by side. The page needs nothing else: residuals "
     "against iterations and time, precision over the iterations and over the matrix, time by phase, bytes by precision. Without --trace "
     "the report holds no histories, and those charts are left out.",
     report_options, CLI_NO_MORE, 12, report_command},
    {"train", "A.mtx ... -o P.safetensors [options]", "learn a precision policy from solves",
     "Solves the systems again and again with conjugate gradients whose precision a small network chooses, and learns from what came of "
     "it. At the end that is judged, and competes with policies that always do the same: the file holds the fastest. An interrupt ends all "
     "of "
     "it soon and keeps the best network so far, unjudged.",
     train_options, CLI_TRAINING_OPTIONS, 96, train_command},
    {"help", "[COMMAND] [KIND]", "explain a command", "", help_options, CLI_NO_MORE, 2, help_command},
    {"version", "", "print the version", "", no_options, CLI_NO_MORE, 0, version_command},
    {NULL, NULL, NULL, NULL, NULL, CLI_NO_MORE, 0, NULL}};
