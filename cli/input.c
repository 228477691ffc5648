/* A file read whole. SPDX-License-Identifier: BSD-3-Clause */
#include "input.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"

void *input_read(const char *what, const char *path, int64_t *size) {
  if (!*path) return cli_bad("the name of %s is empty", what), NULL;
  FILE *file = strcmp(path, "-") != 0 ? fopen(path, "rb") : stdin;
  char *bytes = NULL;
  size_t room = 0, count = 0, got = 1;
  if (!file) return cli_bad("%s cannot be opened: %s", path, strerror(errno)), NULL;
  while (got) {
    if (count == room) {
      room = room ? 2 * room : 65536;
      char *larger = realloc(bytes, room);
      if (!larger) {
        fclose(file);
        free(bytes);
        return cli_bad("memory is exhausted: %s cannot be read", path), NULL;
      }
      bytes = larger;
    }
    got = fread(bytes + count, 1, room - count, file);
    count += got;
  }
  int error = ferror(file) ? errno : 0;
  fclose(file);
  *size = (int64_t)count;
  if (!error) return bytes;
  free(bytes);
  return cli_bad("%s cannot be read: %s", path, strerror(error)), NULL;
}
