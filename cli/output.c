/* Output files: checked early, written at the end by the library's own writer. SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/output.h"

/* Opening a device or a pipe would already do something to it. */
static int is_special(const char *path) {
  struct stat status;
  return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

/* The surest check is to begin: the temporary file is made and removed again. */
int output_check(ht_context *ctx, const char *path) {
  ht_output probe;
  if (!path || is_special(path)) return 0;
  ht_status status = ht_output_open(ctx, path, &probe);
  if (status != HT_OK) return cli_failed(ctx, status);
  ht_output_abandon(&probe);
  return 0;
}

/* Of a file that is not there: its folder, and its name in it. */
static int stat_folder(const char *path, const char **name, struct stat *folder) {
  char text[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 0;
  if (length >= sizeof text) return 0;
  memcpy(text, path, length);
  strcpy(text + length, slash ? "" : ".");
  *name = path + length;
  return stat(text, folder) == 0;
}

/* Whether both paths lead to one file. A device takes what it is given: nothing is overwritten there. */
static int is_same_file(const char *a, const char *b) {
  struct stat p, q;
  const char *name_a, *name_b;
  if (!a || !b || is_special(a) || is_special(b)) return 0;
  int there = stat(a, &p) == 0;
  if (there != (stat(b, &q) == 0)) return 0;
  if (there) return p.st_dev == q.st_dev && p.st_ino == q.st_ino;
  return stat_folder(a, &name_a, &p) && stat_folder(b, &name_b, &q) && p.st_dev == q.st_dev && p.st_ino == q.st_ino &&
         !strcmp(name_a, name_b);
}

int output_check_apart(int outputs, const cli_file *output, int inputs, const cli_file *input) {
  for (int i = 0; i < outputs; i++) {
    for (int k = 0; k < i; k++)
      if (is_same_file(output[k].path, output[i].path))
        return cli_bad("%s and %s are the same file, %s; give each its own", output[k].what, output[i].what, output[i].path);
    for (int k = 0; k < inputs; k++)
      if (is_same_file(input[k].path, output[i].path))
        return cli_bad("%s %s is %s itself, which would be overwritten; give another name", output[i].what, output[i].path, input[k].what);
  }
  return 0;
}

int output_check_ending(const char *path, const char *endings) {
  if (!path || is_special(path)) return 0;
  size_t length = strlen(path);
  for (const char *at = endings;;) {
    size_t n = strcspn(at, "|");
    if (length > n && strncmp(path + length - n, at, n) == 0) return 0;
    if (!at[n]) break;
    at += n + 1;
  }
  return cli_bad("the format of %s is not known: its name must end with one of %s", path, endings);
}

int output_open(cli_output *output, const char *path) {
  *output = (cli_output){.path = path};
  output->file = open_memstream(&output->text, &output->size);
  return output->file ? 0 : cli_bad("memory is exhausted: %s cannot be written", path);
}

int output_close(ht_context *ctx, cli_output *output) {
  ht_output file;
  int whole = !ferror(output->file);
  whole &= fclose(output->file) == 0;
  if (!whole) {
    free(output->text);
    return cli_bad("memory is exhausted: %s cannot be written", output->path);
  }
  ht_status status = ht_output_open(ctx, output->path, &file);
  if (status == HT_OK) {
    status = ht_output_write(&file, output->text, output->size);
    if (status == HT_OK) status = ht_output_commit(&file);
    ht_output_abandon(&file);
  }
  free(output->text);
  return status == HT_OK ? 0 : cli_failed(ctx, status);
}

int output_flush_standard(void) {
  errno = 0;
  int wrong = fflush(stdout) != 0 || ferror(stdout);
  return wrong ? cli_bad("standard output cannot be written: %s", strerror(errno ? errno : EIO)) : 0;
}

void output_reserve_standard(void) {
  /* Opened the wrong way round, so that using a closed one is still an error. */
  static const int mode[] = {O_WRONLY, O_RDONLY, O_RDONLY};
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[fd]) < 0) return;
}
