/* The caller's own product as an operator, which works in the host's memory. SPDX-License-Identifier: BSD-3-Clause */
#include "op/operator.h"

typedef struct {
  ht_operator base;
  ht_apply_fn fn;
  void *user;
} callback_operator;

static ht_status apply(ht_operator *self, const uint8_t *block_level, const double *x, double *y, double *bytes_level) {
  (void)block_level, (void)bytes_level;
  callback_operator *op = (callback_operator *)self;
  int result = op->fn(op->user, self->n, x, y);
  HT_CHECK(self->ctx, result == 0, HT_BAD_ARGUMENT,
           "the caller's operator returned %d where 0 means success; the product of %lld unknowns was not made", result,
           (long long)self->n);
  return HT_OK;
}

static ht_status update(ht_operator *self, const ht_matrix *matrix) {
  (void)matrix;
  HT_FAIL(self->ctx, HT_UNSUPPORTED, "an operator given as a callback has no stored values to update; change what the callback computes");
}

static void destroy(ht_operator *self) { ht_release(self->ctx, self); }

ht_status ht_operator_create_callback(ht_context *ctx, int64_t n, ht_apply_fn fn, void *user, ht_operator **op) {
  *op = NULL;
  HT_CHECK(ctx, n >= 1 && n <= INT32_MAX, HT_BAD_ARGUMENT, "an operator needs 1 to 2147483647 unknowns, and was given %lld", (long long)n);
  HT_CHECK(ctx, fn, HT_BAD_ARGUMENT, "an operator needs a function that computes y = A x, and was given NULL");
  const ht_backend *backend;
  HT_TRY(ctx, ht_backend_find(ctx, "cpu", &backend));
  callback_operator *self;
  HT_TRY(ctx, ht_allocate(ctx, 1, sizeof *self, &self));
  *self = (callback_operator){
      .base = {.ctx = ctx, .backend = backend, .format = "callback", .n = n, .apply = apply, .update = update, .destroy = destroy},
      .fn = fn,
      .user = user};
  *op = &self->base;
  return HT_OK;
}
