/* Conversions to and from the 16-bit formats, exhaustively: every value, every midpoint between two values, and the doubles
 * on each side of each midpoint. SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/convert.h"
#include "halftone/precision.h"

typedef struct format {
  ht_precision precision;
  uint16_t (*store)(double v);
  double (*load)(uint16_t h);
  uint16_t infinity; /* bits of +infinity: finite values are those below */
} format;

static const format formats[] = {{HT_F16, ht_store_f16, ht_load_f16, 0x7c00}, {HT_BF16, ht_store_bf16, ht_load_bf16, 0x7f80}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The value of the bits by the definition of the format, without any shift. */
static double value_by_definition(const format *f, uint16_t h) {
  int mbits = 0;
  while (((f->infinity >> mbits) & 1) == 0) mbits++;
  int bias = (f->infinity >> mbits) / 2, exponent = (h & 0x7fff) >> mbits, significand = h & ((1 << mbits) - 1);
  double magnitude = exponent ? ldexp((1 << mbits) + significand, exponent - bias - mbits) : ldexp(significand, 1 - bias - mbits);
  return h & 0x8000 ? -magnitude : magnitude;
}

static void every_value_survives(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++)
    for (uint32_t h = 0; h <= 0xffff; h++) {
      const format *f = &formats[k];
      double v = f->load((uint16_t)h);
      uint16_t back = f->store(v), magnitude = h & 0x7fff;
      if (magnitude > f->infinity) { /* NaN stays NaN, whatever its payload */
        assert_true(isnan(v));
        assert_true((back & 0x7fff) > f->infinity);
        assert_true(isnan(ht_precision_round(f->precision, v)));
        continue;
      }
      assert_int_equal(back, h);
      if (magnitude == f->infinity)
        assert_true(isinf(v) && (v < 0) == (h > 0x7fff));
      else
        assert_true(ht_bits64(v) == ht_bits64(value_by_definition(f, (uint16_t)h)));
      assert_true(ht_bits64(ht_precision_round(f->precision, v)) == ht_bits64(v));
    }
}

static void midpoints_go_to_even_and_neighbours_to_the_nearer(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++)
    for (uint16_t h = 0; h < formats[k].infinity; h++) {
      const format *f = &formats[k];
      double low = f->load(h);
      /* Above the largest finite value rounding works as if the next power of two were there; it becomes infinity. */
      double high = h + 1 < f->infinity ? f->load((uint16_t)(h + 1)) : ldexp(1.0, ilogb(low) + 1);
      double middle = (low + high) / 2; /* exact: both have far fewer bits than a double */
      uint16_t even = h & 1 ? (uint16_t)(h + 1) : h;
      assert_int_equal(f->store(middle), even);
      assert_int_equal(f->store(-middle), even | 0x8000);
      assert_int_equal(f->store(nextafter(middle, 0)), h);
      assert_int_equal(f->store(nextafter(middle, INFINITY)), h + 1);
    }
}

static void extremes(void **state) {
  (void)state;
  for (int k = 0; k < FORMATS; k++) {
    const format *f = &formats[k];
    assert_int_equal(f->store(INFINITY), f->infinity);
    assert_int_equal(f->store(1e308), f->infinity);
    assert_int_equal(f->store(-1e308), f->infinity | 0x8000);
    assert_int_equal(f->store(5e-324), 0);
    assert_int_equal(f->store(-5e-324), 0x8000);
    assert_int_equal(f->store(-0.0), 0x8000);
    assert_true(ht_precision_largest(f->precision) == f->load((uint16_t)(f->infinity - 1)));
  }
}

/* What precision.def says about each format against the rounding itself. */
static void the_table_is_true(void **state) {
  (void)state;
  for (int p = 0; p < HT_PRECISION_COUNT; p++) {
    double u = ht_precision_unit_roundoff(p), largest = ht_precision_largest(p), smallest = ht_precision_smallest_normal(p);
    assert_true(ht_precision_round(p, 1 + 2 * u) == 1 + 2 * u);
    if (p != HT_F64) assert_true(ht_precision_round(p, 1 + u) == 1); /* a tie, to even */
    assert_true(ht_precision_round(p, largest) == largest);
    assert_true(ht_precision_round(p, smallest) == smallest);
    if (p != HT_F64) assert_true(isinf(ht_precision_round(p, largest * (1 + u))));
    for (double v = smallest; v < largest / 3; v *= 2.7) assert_true(fabs(ht_precision_round(p, v) - v) <= u * v);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_value_survives),
      cmocka_unit_test(midpoints_go_to_even_and_neighbours_to_the_nearer),
      cmocka_unit_test(extremes),
      cmocka_unit_test(the_table_is_true),
  };
  return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
