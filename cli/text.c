/* Numbers as people read them. SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "base/number.h"

cli_text text_count(int64_t count) {
  cli_text t;
  char digits[32];
  size_t used = 0;
  if (count < 0) {
    strcpy(t.text, "?");
    return t;
  }
  snprintf(digits, sizeof digits, "%lld", (long long)count);
  for (size_t i = 0, n = strlen(digits); i < n; i++) {
    if (i && (n - i) % 3 == 0) t.text[used++] = ',';
    t.text[used++] = digits[i];
  }
  t.text[used] = 0;
  return t;
}

cli_text text_number_of(int64_t count, const char *thing) {
  cli_text t;
  snprintf(t.text, sizeof t.text, "%.32s %.30s", text_count(count).text, ht_plural(count, thing).text);
  return t;
}

cli_text text_every(int64_t count, const char *thing) {
  cli_text t;
  snprintf(t.text, sizeof t.text, "every %.57s", count == 1 ? thing : text_number_of(count, thing).text);
  return t;
}

/* Three digits of value / base^k with the unit's k-th name. */
static cli_text scaled(double value, double base, int units, const char *const *unit) {
  cli_text t;
  int k = 0;
  while (k + 1 < units && fabs(value) >= 0.9995 * base) {
    value /= base;
    k++;
  }
  int decimals = k == 0 && value == floor(value) ? 0 : fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;
  snprintf(t.text, sizeof t.text, "%.*f %s", decimals, value, unit[k]);
  return t;
}

cli_text text_bytes(double bytes) {
  static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  cli_text unknown = {"?"};
  return bytes >= 0 ? scaled(bytes, 1000, 6, unit) : unknown;
}

cli_text text_seconds(double seconds) {
  static const char *const small[] = {"us", "ms", "s"};
  cli_text unknown = {"?"};
  return seconds >= 0 ? scaled(round(seconds * 1e8) / 100, 1000, 3, small) : unknown;
}

cli_text text_residual(double residual) {
  cli_text t;
  if (isnan(residual))
    strcpy(t.text, "not known");
  else
    snprintf(t.text, sizeof t.text, residual == 0 ? "0" : "%.2e", residual);
  return t;
}

cli_text text_share(double share) {
  cli_text t = {"?"};
  if (!isnan(share)) snprintf(t.text, sizeof t.text, "%.3g %%", 100 * share);
  return t;
}

void line(FILE *file, const char *label, const char *format, ...) {
  va_list args;
  fprintf(file, "%-13s", label ? label : "");
  va_start(args, format);
  vfprintf(file, format, args);
  va_end(args);
  fputc('\n', file);
}
