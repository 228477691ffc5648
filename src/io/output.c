/* A file that appears whole or not at all. SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "io/output.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100 };

/* The temporary file that is there, for a process that is told to end. A command writes one file at a time. */
static char unfinished[HT_OUTPUT_PATH + 32];
static volatile sig_atomic_t is_unfinished;

static void note_temporary(const ht_output *out) {
  strcpy(unfinished, out->temporary);
  is_unfinished = 1;
}

static void remove_temporary(const ht_output *out) {
  unlink(out->temporary);
  is_unfinished = 0;
}

void ht_output_unlink(void) {
  if (is_unfinished) unlink(unfinished);
}

/* Open a file beside the target that nobody else has. */
static ht_status open_temporary(ht_output *out, const struct stat *old) {
  for (int i = 0; i < TRIES && out->fd < 0; i++) {
    snprintf(out->temporary, sizeof out->temporary, "%s.%ld-%d.tmp", out->target, (long)getpid(), i);
    out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out->fd < 0 && errno != EEXIST) break;
  }
  HT_CHECK(out->ctx, out->fd >= 0, HT_BAD_FILE, "%s cannot be written: %s", out->name, strerror(errno));
  out->replaces = 1;
  note_temporary(out);
  if (old) (void)!fchmod(out->fd, old->st_mode & 07777); /* a file system without modes is no reason to fail */
  return HT_OK;
}

ht_status ht_output_open(ht_context *ctx, const char *path, ht_output *out) {
  struct stat old;
  memset(out, 0, sizeof *out);
  out->ctx = ctx;
  out->fd = -1;
  out->name = path;
  if (!strcmp(path, "-")) {
    out->name = "standard output";
    out->fd = STDOUT_FILENO;
    return HT_OK;
  }
  HT_CHECK(ctx, *path && strlen(path) < HT_OUTPUT_PATH, HT_BAD_FILE, "the output path is %s", *path ? "too long" : "empty");
  if (stat(path, &old) != 0) {
    strcpy(out->target, path);
    return open_temporary(out, NULL);
  }
  HT_CHECK(ctx, !S_ISDIR(old.st_mode), HT_BAD_FILE, "%s cannot be written: it is a folder", path);
  HT_CHECK(ctx, access(path, W_OK) == 0, HT_BAD_FILE, "%s cannot be written: %s", path, strerror(errno));
  if (!S_ISREG(old.st_mode)) { /* a device or a pipe must not be replaced */
    out->fd = open(path, O_WRONLY | O_CLOEXEC);
    HT_CHECK(ctx, out->fd >= 0, HT_BAD_FILE, "%s cannot be written: %s", path, strerror(errno));
    return HT_OK;
  }
  char resolved[PATH_MAX];
  HT_CHECK(ctx, realpath(path, resolved) && strlen(resolved) < HT_OUTPUT_PATH, HT_BAD_FILE, "%s cannot be written: %s", path,
           strerror(errno));
  strcpy(out->target, resolved);
  return open_temporary(out, &old);
}

ht_status ht_output_write(ht_output *out, const void *bytes, size_t size) {
  const char *p = bytes;
  out->written += (int64_t)size;
  while (size > 0) {
    ssize_t w = write(out->fd, p, size);
    if (w < 0) {
      HT_CHECK(out->ctx, errno == EINTR, HT_BAD_FILE, "%s cannot be written: %s", out->name, strerror(errno));
      HT_CHECK(out->ctx, !ht_stop_requested(out->ctx), HT_INTERRUPTED, "%s: writing was interrupted", out->name);
      continue;
    }
    p += w;
    size -= (size_t)w;
  }
  return HT_OK;
}

ht_status ht_output_patch(ht_output *out, int64_t offset, const void *bytes, size_t size) {
  ssize_t w = pwrite(out->fd, bytes, size, offset);
  HT_CHECK(out->ctx, w == (ssize_t)size, HT_BAD_FILE, "%s cannot be written: %s", out->name, w < 0 ? strerror(errno) : "too few bytes");
  return HT_OK;
}

ht_status ht_output_commit(ht_output *out) {
  int fd = out->fd;
  if (fd == STDOUT_FILENO) return HT_OK;
  out->fd = -1;
  if (close(fd) != 0) {
    int why = errno;
    if (out->replaces) remove_temporary(out);
    HT_FAIL(out->ctx, HT_BAD_FILE, "%s cannot be written: %s", out->name, strerror(why));
  }
  if (out->replaces && rename(out->temporary, out->target) != 0) {
    int why = errno;
    remove_temporary(out);
    HT_FAIL(out->ctx, HT_BAD_FILE, "%s cannot be replaced: %s", out->name, strerror(why));
  }
  if (out->replaces) is_unfinished = 0;
  return HT_OK;
}

void ht_output_abandon(ht_output *out) {
  if (out->fd < 0 || out->fd == STDOUT_FILENO) return;
  close(out->fd);
  out->fd = -1;
  if (out->replaces) remove_temporary(out);
}
