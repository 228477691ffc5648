/* Output files: checked early, written beside their place and renamed. SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_standard(const char *path) { return !strcmp(path, "-"); }

static int cannot(const char *path, int error) { return cli_bad("%s cannot be written: %s", path, strerror(error)); }

/* The folder a path lies in, in memory to be freed. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 1;
  char *folder = malloc(length + 1);
  if (!folder) return NULL;
  memcpy(folder, slash ? path : ".", length);
  folder[length] = 0;
  return folder;
}

int output_check(const char *path) {
  struct stat status;
  if (!path || is_standard(path)) return 0;
  if (!*path) return cli_bad("the name of an output file is empty");
  int exists = stat(path, &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return cannot(path, EISDIR);
  if (exists && access(path, W_OK)) return cannot(path, errno);
  if (exists && !S_ISREG(status.st_mode)) return 0;
  char *folder = folder_of(path);
  if (!folder) return cannot(path, ENOMEM);
  int wrong = access(folder, W_OK | X_OK) ? errno : 0;
  if (!wrong && stat(folder, &status) == 0 && !S_ISDIR(status.st_mode)) wrong = ENOTDIR;
  free(folder);
  return wrong ? cannot(path, wrong) : 0;
}

int output_check_ending(const char *path, const char *endings) {
  if (!path || is_standard(path)) return 0;
  size_t length = strlen(path);
  for (const char *at = endings;;) {
    size_t n = strcspn(at, "|");
    if (length > n && !strncmp(path + length - n, at, n)) return 0;
    if (!at[n]) break;
    at += n + 1;
  }
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return 0; /* a pipe, a device */
  return cli_bad("the format of %s is not known: its name must end with one of %s", path, endings);
}

int output_open(cli_output *output, const char *path) {
  struct stat status;
  *output = (cli_output){.path = path};
  if (is_standard(path)) {
    output->file = stdout;
    return 0;
  }
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) { /* a device or a pipe is written, never replaced */
    output->file = fopen(path, "w");
    return output->file ? 0 : cannot(path, errno);
  }
  size_t size = strlen(path) + 32;
  output->temporary = malloc(size);
  if (!output->temporary) return cannot(path, ENOMEM);
  snprintf(output->temporary, size, "%s.%ld.part", path, (long)getpid());
  output->file = fopen(output->temporary, "wx");
  if (output->file) return 0;
  int error = errno;
  free(output->temporary);
  output->temporary = NULL;
  return cannot(path, error);
}

int output_close(cli_output *output) {
  if (output->file == stdout) return output_flush_standard();
  int error = 0;
  if (ferror(output->file) || fflush(output->file)) error = errno ? errno : EIO;
  if (fclose(output->file) && !error) error = errno;
  if (output->temporary) {
    if (!error && rename(output->temporary, output->path)) error = errno;
    if (error) unlink(output->temporary);
    free(output->temporary);
  }
  return error ? cannot(output->path, error) : 0;
}

int output_flush_standard(void) {
  errno = 0;
  int wrong = fflush(stdout) || ferror(stdout);
  return wrong ? cli_bad("standard output cannot be written: %s", strerror(errno ? errno : EIO)) : 0;
}

void output_reserve_standard(void) {
  /* Opened the wrong way round, so that using a closed one is still an error. */
  static const int mode[] = {O_WRONLY, O_RDONLY, O_RDONLY};
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[fd]) < 0) return;
}
