/* Policy files: the round trip to the bit, and every kind of damage refused with a sentence. SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include "policy/features.h"
#include "support/failing.h"
#include "support/learned.h"

static int open_context(void **state) { return ht_context_create((ht_context **)state) != HT_OK; }
static int close_context(void **state) {
  ht_context_destroy(*state);
  return 0;
}

static void assert_same(const ht_learned *a, const ht_learned *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->network.inputs, b->network.inputs);
  assert_int_equal(a->network.hidden, b->network.hidden);
  assert_int_equal(a->network.actions, b->network.actions);
  assert_int_equal(a->interval, b->interval);
  assert_true(a->seed == b->seed && a->episodes == b->episodes);
  assert_string_equal(a->state, b->state);
  assert_string_equal(a->reward, b->reward);
  assert_string_equal(a->actions, b->actions);
  assert_string_equal(a->trained_on, b->trained_on);
  assert_string_equal(a->version, b->version);
  assert_string_equal(a->chosen, b->chosen);
  assert_string_equal(a->contest, b->contest);
  int64_t count = ht_network_size(a->network.inputs, a->network.hidden, a->network.actions);
  assert_memory_equal(a->network.weights, b->network.weights, (size_t)count * sizeof(float));
}

static void test_round_trip(void **state) {
  static const int hidden[] = {1, 7, 64, HT_NETWORK_MOST_HIDDEN};
  for (int i = 0; i < 8; i++) {
    void *bytes, *again;
    int64_t size, size_again;
    ht_learned *back, *l = learned_random(*state, i % 2 ? HT_LEARNED_WINDOW : HT_LEARNED_TILES, hidden[i / 2], i + 1, (uint64_t)i);
    if (i % 2) snprintf(l->chosen, sizeof l->chosen, "%s", i % 4 == 1 ? "learned" : "fixed:bf16");
    if (i % 2) snprintf(l->contest, sizeof l->contest, "learned 0.9, \"auto\" 0.8");
    l->network.weights[0] = -0.0f;
    l->network.weights[1] = 0x1p-149f;
    l->network.weights[2] = 65504;
    assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
    if (ht_learned_parse(*state, bytes, size, "policy", &back) != HT_OK) fail_msg("%s", ht_context_error(*state));
    assert_same(l, back);
    assert_int_equal(ht_learned_serialize(*state, back, &again, &size_again), HT_OK);
    assert_int_equal(size, size_again);
    assert_memory_equal(bytes, again, (size_t)size);
    int64_t weights = 4 * ht_network_size(l->network.inputs, l->network.hidden, l->network.actions);
    assert_int_equal((size - weights) % 8, 0); /* the numbers are aligned */
    ht_release(*state, bytes), ht_release(*state, again);
    ht_learned_release(*state, l), ht_learned_release(*state, back);
  }
}

/* Texts that do not fit a file as they are: lines, broken UTF-8 at full length. What is written can be read. */
static void test_awkward_texts(void **state) {
  void *bytes;
  int64_t size;
  ht_learned *back, *l = learned_blank(*state, HT_LEARNED_TILES, 3, 8);
  memset(l->trained_on, 0xc3, sizeof l->trained_on - 1);
  l->trained_on[0] = '\n';
  l->actions[0] = 0; /* the usual ones */
  assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
  if (ht_learned_parse(*state, bytes, size, "policy", &back) != HT_OK) fail_msg("%s", ht_context_error(*state));
  assert_int_equal(back->trained_on[0], ' ');
  assert_string_equal(back->actions, "f64,f32,16");
  ht_release(*state, bytes);
  ht_learned_release(*state, l), ht_learned_release(*state, back);
}

/* The bytes with the first `from` of the header replaced by `to`, the length and the padding made right. */
static unsigned char *edit(const unsigned char *bytes, int64_t size, const char *from, const char *to, int64_t *edited_size) {
  size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8, data = (size_t)size - 8 - length;
  char *header = calloc(length + 1, 1);
  memcpy(header, bytes + 8, length);
  char *at = strstr(header, from);
  if (!at) fail_msg("the header has no %s", from);
  size_t before = (size_t)(at - header), behind = length - before - strlen(from), text = before + strlen(to) + behind;
  size_t padded = (text + 7) / 8 * 8;
  unsigned char *edited = malloc(8 + padded + data);
  memset(edited, 0, 8);
  edited[0] = (unsigned char)padded, edited[1] = (unsigned char)(padded >> 8), edited[2] = (unsigned char)(padded >> 16);
  memset(edited + 8, ' ', padded);
  memcpy(edited + 8, header, before);
  memcpy(edited + 8 + before, to, strlen(to));
  memcpy(edited + 8 + before + strlen(to), at + strlen(from), behind);
  memcpy(edited + 8 + padded, bytes + 8 + length, data);
  *edited_size = (int64_t)(8 + padded + data);
  free(header);
  return edited;
}

static void refuses(ht_context *ctx, const void *bytes, int64_t size, const char *words) {
  ht_learned *l;
  void *copy = malloc(size > 0 ? (size_t)size : 1); /* of its own, so that a sanitizer sees what is read behind it */
  memcpy(copy, bytes, (size_t)size);
  ht_status status = ht_learned_parse(ctx, copy, size, "a/policy.safetensors", &l);
  const char *error = ht_context_error(ctx);
  free(copy);
  assert_int_equal(status, HT_BAD_FORMAT);
  assert_null(l);
  if (!strstr(error, words)) fail_msg("expected '%s' in: %s", words, error);
  if (strncmp(error, "a/policy.safetensors: expected", 30) || !strstr(error, "found") || !strstr(error, "train"))
    fail_msg("not a whole sentence: %s", error);
  assert_null(strchr(error, '\n'));
}

/* What won the competition is one of the known, and of the kind window. */
static void test_contest(void **state) {
  static const char *const bad[] = {"rule", "learned:x", "", "fixed:f6"};
  void *bytes;
  int64_t size, edited_size;
  for (int window = 0; window < 2; window++) {
    ht_learned *l = learned_random(*state, window ? HT_LEARNED_WINDOW : HT_LEARNED_TILES, 5, 8, 1);
    snprintf(l->chosen, sizeof l->chosen, window ? "budget" : "learned");
    assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad + !window; k++) {
      char from[64], to[64];
      snprintf(from, sizeof from, "\"chosen\":\"%s\"", l->chosen);
      snprintf(to, sizeof to, "\"chosen\":\"%s\"", k < sizeof bad / sizeof *bad ? bad[k] : "budget");
      unsigned char *edited = edit(bytes, size, from, to, &edited_size);
      refuses(*state, edited, edited_size, "'chosen'");
      free(edited);
    }
    ht_release(*state, bytes);
    ht_learned_release(*state, l);
  }
}

static void test_edited(void **state) {
  static const struct {
    const char *from, *to, *words;
  } edits[] = {
      {"halftone-policy", "pytorch", "something else"},
      {"\"format_version\":\"1\"", "\"format_version\":\"2\"", "'format_version', found '2'"},
      {"\"kind\":\"tiles\"", "\"kind\":\"rows\"", "found 'rows'"},
      {"\"kind\":\"tiles\"", "\"kind\":\"window\"", "'features' as 'state'"},
      {"\"kind\":\"tiles\",", "", "'kind'"},
      {"\"kind\":\"tiles\"", "\"kind\":7", "'kind'"},
      {"\"kind\":\"tiles\"", "\"kind\":\"ti\\nles\"", "control characters"},
      {"\"state\":\"paper\"", "\"state\":\"features\"", "'state'"},
      {"f64,f32,16", "f64,f32,8", "f64,f32,8"},
      {"f64,f32,16", "f32,f64,16", "actions"},
      {"\"version\":\"0.0.0\"", "\"version\":\"0.0.0\",\"chosen\":\"budget\",\"contest\":\"\"", "as 'chosen', found 'budget'"},
      {"\"version\":\"0.0.0\"", "\"version\":\"0.0.0\",\"chosen\":1", "'chosen'"},
      {"\"interval\":\"8\"", "\"interval\":\"0\"", "'interval', found '0'"},
      {"\"interval\":\"8\"", "\"interval\":\"8x\"", "'8x'"},
      {"\"interval\":\"8\"", "\"interval\":\"-8\"", "'-8'"},
      {"\"interval\":\"8\"", "\"interval\":\"4097\"", "4096"},
      {"\"hidden\":\"5\"", "\"hidden\":\"6\"", "shape [6, 64]"},
      {"\"hidden\":\"5\"", "\"hidden\":\"1000000\"", "from 1 to 256"},
      {"\"seed\":\"18446744073709551615\"", "\"seed\":\"18446744073709551616\"", "'seed'"},
      {"\"dtype\":\"F32\"", "\"dtype\":\"F64\"", "found 'F64'"},
      {"\"dtype\":\"F32\",", "", "found 'nothing'"},
      {"[5, 64]", "[64, 5]", "shape"},
      {"[5, 64]", "[5, 64, 1]", "shape"},
      {"[5, 64]", "[5, 64.0]", "shape"},
      {"[5, 64]", "\"5\"", "shape"},
      {"[0,1280]", "[0,1276]", "data_offsets"},
      {"[0,1280]", "[-4,1276]", "data_offsets"},
      {"[0,1280]", "[9223372036854775807,-9223372036854775807]", "data_offsets"},
      {"[0,1280]", "[4,1284]", "the same"},
      {"[0,1280]", "[0,1280,2]", "data_offsets"},
      {"[1280,1300]", "[1300,1320]", "the same"},
      {"policy.bias", "policy.bios", "'policy.bias'"},
      {"\"policy.bias\"", "\"more\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"policy.bias\"", "8 tensors, found 9"},
      {"\"policy.bias\"", "\"policy.weight\"", "duplicate"},
      {"\"policy.bias\"", "policy.bias", "JSON"},
      {"\"__metadata__\":{", "\"other\":{", "something else"},
      {"{\"format\"", "[{\"format\"", "JSON"},
      {"\"value.bias\"", "\"v\":[[[[1]]]],\"value.bias\"", "nested"},
      {"by hand", "by \xff hand", "byte"},
      {"by hand", "by \\u0000 hand", "JSON"},
  };
  void *bytes;
  int64_t size, edited_size;
  ht_learned *l = learned_random(*state, HT_LEARNED_TILES, 5, 8, 1);
  assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
  for (size_t k = 0; k < sizeof edits / sizeof *edits; k++) {
    unsigned char *edited = edit(bytes, size, edits[k].from, edits[k].to, &edited_size);
    refuses(*state, edited, edited_size, edits[k].words);
    free(edited);
  }
  ht_release(*state, bytes);
  ht_learned_release(*state, l);
  l = learned_random(*state, HT_LEARNED_WINDOW, 5, 8, 1);
  assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
  unsigned char *edited = edit(bytes, size, "fallen,remaining", "remaining,fallen", &edited_size);
  refuses(*state, edited, edited_size, "'features'");
  free(edited);
  ht_release(*state, bytes);
  ht_learned_release(*state, l);
}

/* Tensors in another order than ours, as other programs write them: the same policy. */
static void test_other_order(void **state) {
  void *bytes;
  int64_t size, edited_size;
  ht_learned *back, *l = learned_random(*state, HT_LEARNED_TILES, 5, 8, 1);
  assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
  int64_t biases = 5 * 4, first = 1280 + biases + 100; /* where the second layer's bias begins */
  unsigned char *edited = edit(bytes, size, "[1280,1300]", "[1400,1420]", &edited_size), *data = edited + edited_size;
  int64_t all = 4 * ht_network_size(64, 5, 3);
  unsigned char *again = edit(edited, edited_size, "\"backbone.2.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[1400,1420]",
                              "\"backbone.2.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[1280,1300]", &edited_size);
  data = again + edited_size - all;
  unsigned char held[20];
  memcpy(held, data + 1280, 20);
  memcpy(data + 1280, data + first, 20);
  memcpy(data + first, held, 20);
  if (ht_learned_parse(*state, again, edited_size, "policy", &back) != HT_OK) fail_msg("%s", ht_context_error(*state));
  assert_same(l, back);
  free(edited), free(again);
  ht_release(*state, bytes);
  ht_learned_release(*state, l), ht_learned_release(*state, back);
}

static void test_bad_weights(void **state) {
  static const float bad[] = {NAN, INFINITY, -INFINITY, 65505};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    void *file, *none;
    int64_t size;
    ht_learned *l = learned_random(*state, HT_LEARNED_TILES, 5, 8, 1);
    assert_int_equal(ht_learned_serialize(*state, l, &file, &size), HT_OK);
    memcpy((unsigned char *)file + size - 4, &bad[k], 4);
    refuses(*state, file, size, "weights");
    ht_release(*state, file);
    l->network.weights[3] = bad[k];
    assert_int_equal(ht_learned_serialize(*state, l, &none, &size), HT_BAD_ARGUMENT);
    assert_null(none);
    ht_learned_release(*state, l);
  }
}

static void assert_does_the_same(const ht_learned *a, const ht_learned *b) {
  assert_int_equal(a->kind, b->kind);
  assert_int_equal(a->interval, b->interval);
  assert_int_equal(a->for_device, b->for_device);
  assert_string_equal(a->actions, b->actions);
  assert_string_equal(a->chosen, b->chosen);
  assert_memory_equal(a->network.weights, b->network.weights,
                      (size_t)ht_network_size(a->network.inputs, a->network.hidden, a->network.actions) * sizeof(float));
}

/* Every prefix is refused; every changed bit gives a sentence, or a policy that does the same. */
static void test_damage(void **state) {
  for (int kind = 0; kind < 2; kind++) {
    void *file;
    int64_t size;
    ht_learned *back, *l = learned_random(*state, (ht_learned_kind)kind, 2, 8, 1);
    snprintf(l->chosen, sizeof l->chosen, "fixed:f32");
    assert_int_equal(ht_learned_serialize(*state, l, &file, &size), HT_OK);
    unsigned char *bytes = file;
    for (int64_t length = 0; length < size; length++) refuses(*state, bytes, length, "");
    int64_t header = 8 + bytes[0] + 256 * bytes[1];
    for (int64_t bit = 0; bit < 8 * header; bit++) {
      bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
      ht_status status = ht_learned_parse(*state, bytes, size, "policy", &back);
      assert_true(status == HT_OK || status == HT_BAD_FORMAT);
      assert_true((status == HT_OK) == (back != NULL));
      if (back) assert_does_the_same(back, l);
      ht_learned_release(*state, back);
      bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (int64_t bit = 8 * header; bit < 8 * size; bit++) {
      bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
      refuses(*state, bytes, size, "weights");
      bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    unsigned char *older = edit(file, size, "crc32", "other", &size);
    assert_int_equal(ht_learned_parse(*state, older, size, "policy", &back), HT_OK);
    assert_same(back, l);
    ht_learned_release(*state, back);
    free(older);
    ht_release(*state, file);
    ht_learned_release(*state, l);
  }
  char long_file[100] = {1};
  long_file[7] = 1; /* a header of 2^56 bytes */
  refuses(*state, long_file, sizeof long_file, "another kind of file");
  long_file[8] = '{';
  refuses(*state, long_file, sizeof long_file, "found 92 bytes");
  refuses(*state, "PK\3\4 not at all", 15, "another kind of file");
}

static void test_files(void **state) {
  char path[] = "/tmp/halftone-policy-XXXXXX";
  ht_learned *back, *l = learned_random(*state, HT_LEARNED_WINDOW, 64, 32, 4);
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  fclose(fdopen(fd, "w"));
  assert_int_equal(learned_write(*state, l, path), 0);
  assert_int_equal(ht_learned_read(*state, path, &back), HT_OK);
  assert_same(l, back);
  ht_learned_release(*state, back);
  remove(path);
  assert_int_equal(ht_learned_read(*state, path, &back), HT_BAD_FILE);
  assert_non_null(strstr(ht_context_error(*state), path));
  assert_null(back);
  assert_int_equal(ht_learned_read(*state, "/tmp", &back), HT_BAD_FILE);
  assert_int_equal(ht_learned_read(*state, "/dev/zero", &back), HT_BAD_FORMAT);
  ht_learned_release(*state, l);
}

static void test_writer_refuses(void **state) {
  void *bytes;
  int64_t size;
  ht_learned *good = learned_random(*state, HT_LEARNED_WINDOW, 5, 8, 1), l;
#define REFUSED(field, value)                                                                                                              \
  do {                                                                                                                                     \
    l = *good;                                                                                                                             \
    l.field = value;                                                                                                                       \
    assert_int_equal(ht_learned_serialize(*state, &l, &bytes, &size), HT_BAD_ARGUMENT);                                                    \
    assert_null(bytes);                                                                                                                    \
  } while (0)
  REFUSED(interval, 0);
  REFUSED(interval, HT_LEARNED_MOST_INTERVAL + 1);
  REFUSED(episodes, -1);
  REFUSED(network.inputs, 64);
  REFUSED(network.hidden, 0);
  REFUSED(network.hidden, HT_NETWORK_MOST_HIDDEN + 1);
  REFUSED(network.actions, 3);
  REFUSED(actions[0], 'g');
  REFUSED(kind, HT_LEARNED_TILES);
  ht_learned_release(*state, good);
}

static void test_actions(void **state) {
  ht_learned_action a[HT_NETWORK_MOST_ACTIONS];
  (void)state;
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, "16,budget:0.25,f64,f32", a), 4);
  assert_true(a[0].level == HT_LEVEL_16 && a[0].theta == 0 && a[1].theta == 0.25 && a[2].level == HT_LEVEL_64 && a[3].level == HT_LEVEL_32);
  static const char *const wrong[] = {
      "",        ",",        "f64,",     ",f64",      "f6",         "f640",        "budget",
      "budget:", "budget:0", "budget:2", "budget:-1", "budget:nan", "budget:0.1x", "budget:0.0000000000000000000000000000000000001",
      "f64 ,f32"};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, wrong[k], a), 0);
  char many[33 * 3 + 1] = "";
  for (int k = 0; k < 33; k++) strcat(many, k ? ",16" : "16");
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, many, a), 0);
  many[32 * 3 - 1] = 0;
  assert_int_equal(ht_learned_actions(HT_LEARNED_WINDOW, many, a), 32);
}

static void test_memory(void **state) {
  failing_allocator memory;
  ht_context *ctx;
  (void)state;
  assert_int_equal(failing_context(&memory, &ctx), HT_OK);
  void *bytes, *copy;
  int64_t size;
  ht_learned *back, *l = learned_random(ctx, HT_LEARNED_TILES, 5, 8, 1);
  assert_int_equal(ht_learned_serialize(ctx, l, &bytes, &size), HT_OK);
  for (int k = 0; k < 3; k++) {
    memory.requests = 0, memory.fail_at = k;
    ht_status status = ht_learned_parse(ctx, bytes, size, "policy", &back);
    assert_int_equal(status, k < 2 ? HT_NO_MEMORY : HT_OK);
    assert_true((back != NULL) == (k == 2));
    ht_learned_release(ctx, back);
  }
  memory.requests = 0, memory.fail_at = 0;
  assert_int_equal(ht_learned_serialize(ctx, l, &copy, &size), HT_NO_MEMORY);
  assert_null(copy);
  ht_release(ctx, bytes);
  ht_learned_release(ctx, l);
  ht_context_destroy(ctx);
  assert_int_equal(memory.alive, 0);
}

static long json_requests, json_fail_at;

/* As malloc says it. */
static void *json_allocate(size_t bytes) {
  if (json_requests++ != json_fail_at) return malloc(bytes);
  errno = ENOMEM;
  return NULL;
}

/* The JSON reader's own memory, refused request by request: never taken for damage, nothing read wrongly. */
static void refuse_json_memory(ht_context *ctx, const void *bytes, int64_t size, const ht_learned *expected, long fewest) {
  ht_learned *back;
  json_set_alloc_funcs(json_allocate, free);
  ht_status status = HT_NO_MEMORY;
  for (json_fail_at = 0; status != HT_OK; json_fail_at++) {
    json_requests = 0;
    status = ht_learned_parse(ctx, bytes, size, "policy", &back);
    if (status != HT_OK && status != HT_NO_MEMORY) fail_msg("request %ld: %s", json_fail_at, ht_context_error(ctx));
    assert_true(status == HT_OK || strstr(ht_context_error(ctx), "no memory"));
    assert_true((back != NULL) == (status == HT_OK));
  }
  json_set_alloc_funcs(malloc, free);
  assert_true(json_fail_at > fewest);
  assert_same(expected, back);
  ht_learned_release(ctx, back);
}

static void test_json_memory(void **state) {
  void *bytes;
  int64_t size;
  for (int kind = 0; kind < 2; kind++) {
    ht_learned *l = learned_random(*state, kind ? HT_LEARNED_WINDOW : HT_LEARNED_TILES, 5, 8, 1);
    snprintf(l->trained_on, sizeof l->trained_on, "\xf0\x9f\x98\x80 \\\" \xc3\xa9 \xe2\x82\xac, and a name that is longer than the others");
    assert_int_equal(ht_learned_serialize(*state, l, &bytes, &size), HT_OK);
    refuse_json_memory(*state, bytes, size, l, 50);
    ht_release(*state, bytes);
    ht_learned_release(*state, l);
  }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {TEST(test_round_trip), TEST(test_awkward_texts), TEST(test_edited),
                                     TEST(test_contest),    TEST(test_other_order),   TEST(test_bad_weights),
                                     TEST(test_damage),     TEST(test_files),         TEST(test_writer_refuses),
                                     TEST(test_actions),    TEST(test_json_memory),   cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
