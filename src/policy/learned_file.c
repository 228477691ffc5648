/* Learned policies as safetensors files: 8 bytes of length, a JSON header padded with spaces, and the tensors' numbers. The reader
 * trusts nothing: every length is checked before it is used, and a file that is not wholly as expected is refused.
 * SPDX-License-Identifier: BSD-3-Clause */
#include "policy/learned_file.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "base/convert.h"
#include "base/fields.h"
#include "base/number.h"
#include "base/words.h"
#include "halftone/precision.h"
#include "policy/features.h"

enum {
  LENGTH_BYTES = 8,
  HEADER_MOST = 1 << 16,
  FILE_MOST = 1 << 20, /* the largest network and its header are smaller */
  DEPTH_MOST = 3,      /* of the header: members, their members, lists */
  TENSORS = 8,
  NAMES_SIZE = 512 /* of the features' names */
};
static const char FORMAT[] = "halftone-policy", FORMAT_VERSION[] = "1", CHECKSUM[] = "crc32";

#define DAMAGED "; the file is damaged or cut short: copy it again, or train the policy again with `halftone train`"
#define RETRAIN "; train a policy with this program's `halftone train`"

/* ---- what a file holds ---- */

typedef struct tensor {
  const char *name;
  int rank;
  int64_t shape[2];
} tensor;

/* In the order of ht_network.weights. */
static void list_tensors(const ht_network *net, tensor *list) {
  int64_t i = net->inputs, h = net->hidden, a = net->actions;
  const tensor all[TENSORS] = {{"backbone.0.weight", 2, {h, i}}, {"backbone.0.bias", 1, {h, 1}}, {"backbone.2.weight", 2, {h, h}},
                               {"backbone.2.bias", 1, {h, 1}},   {"policy.weight", 2, {a, h}},   {"policy.bias", 1, {a, 1}},
                               {"value.weight", 2, {1, h}},      {"value.bias", 1, {1, 1}}};
  memcpy(list, all, sizeof all);
}

static const char *kind_name(ht_learned_kind kind) { return kind == HT_LEARNED_TILES ? "tiles" : "window"; }
static const char *state_name(ht_learned_kind kind) { return kind == HT_LEARNED_TILES ? "paper" : "features"; }

static const char *machine_name(const ht_learned *l) { return l->for_device ? "device" : "cpu"; }

static void print_shape(const tensor *t, char *text, size_t size) {
  if (t->rank == 2)
    snprintf(text, size, "[%" PRId64 ", %" PRId64 "]", t->shape[0], t->shape[1]);
  else
    snprintf(text, size, "[%" PRId64 "]", t->shape[0]);
}

/* Deployed, weights are rounded to 16 bits: what overflows there is no weight. */
static int64_t find_bad_weight(const ht_network *net) {
  int64_t count = ht_network_size(net->inputs, net->hidden, net->actions);
  for (int64_t k = 0; k < count; k++)
    if (!(fabs((double)net->weights[k]) <= ht_precision_largest(HT_F16))) return k;
  return -1;
}

/* CRC-32 of the weights' bytes, tensor by tensor in the order of the list, and of what else decides what a policy does. `weights`: of the
 * former. */
typedef struct checksum {
  char text[9];
} checksum;

static checksum checksum_of(const ht_learned *l, const char *actions, uLong weights) {
  checksum sum;
  char text[sizeof l->actions + 128];
  const char *made_for = l->kind == HT_LEARNED_TILES ? "" : machine_name(l);
  int length = snprintf(text, sizeof text, "%s\n%s\n%d\n%d\n%s\n%s\n", kind_name(l->kind), actions, l->interval, l->network.hidden,
                        made_for, l->chosen);
  snprintf(sum.text, sizeof sum.text, "%08lx", crc32(weights, (const Bytef *)text, (uInt)length));
  return sum;
}

/* ---- reading ---- */

typedef struct reader {
  ht_context *ctx;
  const char *name;
  json_t *header;
  const json_t *metadata;
  const unsigned char *data; /* the tensors' numbers */
  int64_t data_size;
  ht_learned *learned;
} reader;

/* Nesting of brackets outside of strings: the JSON reader below calls itself at each. */
static int depth_of(const char *text, size_t size) {
  int depth = 0, deepest = 0, in_string = 0;
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') i++;
      if (c == '"') in_string = 0;
      continue;
    }
    if (c == '"') in_string = 1;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    if (depth > deepest) deepest = depth;
  }
  return deepest;
}

/* Bytes of all strings together, as they stand in the text and as they were read. */
static int64_t strings_of_text(const char *text, size_t size) {
  int64_t bytes = 0;
  int in_string = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '"') {
      in_string = !in_string;
    } else if (in_string && text[i] == '\\' && ++i < size && text[i] == 'u') { /* the half of a pair: 2 of its 4 bytes */
      unsigned long code = i + 4 < size ? strtoul((const char[]){text[i + 1], text[i + 2], text[i + 3], text[i + 4], 0}, NULL, 16) : 0;
      bytes += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 2 : 3;
      i += 4;
    } else {
      bytes += in_string;
    }
  }
  return bytes;
}

static int64_t strings_of(json_t *value) {
  const char *key;
  json_t *member;
  size_t k;
  int64_t bytes = (int64_t)json_string_length(value);
  json_object_foreach(value, key, member) bytes += (int64_t)strlen(key) + strings_of(member);
  json_array_foreach(value, k, member) bytes += strings_of(member);
  return bytes;
}

/* jansson takes memory that ends for a word that it does not know, or drops a letter of a string and goes on. */
static int memory_ended(const reader *r, const json_error_t *error, int error_number, const char *text, size_t size) {
  if (error_number == ENOMEM) return 1;
  if (r->header) return strings_of(r->header) != strings_of_text(text, size);
  return !*error->text || json_error_code(error) == json_error_out_of_memory;
}

static ht_status load_json(reader *r, const char *text, size_t size) {
  json_error_t error;
  HT_CHECK(r->ctx, depth_of(text, size) <= DEPTH_MOST, HT_BAD_FORMAT,
           "%s: expected a safetensors header, found JSON that is nested more than %d deep" RETRAIN, r->name, (int)DEPTH_MOST);
  errno = 0;
  r->header = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  HT_CHECK(r->ctx, !memory_ended(r, &error, errno, text, size), HT_NO_MEMORY, "%s: no memory for its header", r->name);
  if (r->header) return HT_OK;
  char *near = strstr(error.text, " near "); /* quotes the file, which may hold anything */
  if (near) *near = 0;
  HT_FAIL(r->ctx, HT_BAD_FORMAT, "%s: expected a JSON header, found at its byte %d: %s" DAMAGED, r->name, error.position, error.text);
}

static ht_status read_header(reader *r, const unsigned char *bytes, int64_t size) {
  uint64_t length = 0;
  HT_CHECK(r->ctx, size > LENGTH_BYTES && size <= FILE_MOST, HT_BAD_FORMAT,
           "%s: expected a policy file of %d to %d bytes, found %s" DAMAGED, r->name, LENGTH_BYTES + 1, (int)FILE_MOST,
           size > FILE_MOST ? "more" : ht_number_of(size, "byte").text);
  for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << 8 * i;
  HT_CHECK(r->ctx, length > 0 && bytes[LENGTH_BYTES] == '{', HT_BAD_FORMAT,
           "%s: expected a safetensors file, whose header begins with '{', found another kind of file" RETRAIN, r->name);
  HT_CHECK(r->ctx, length <= (uint64_t)(size - LENGTH_BYTES), HT_BAD_FORMAT,
           "%s: expected a header of %" PRIu64 " bytes, found %s in all behind its length" DAMAGED, r->name, length,
           ht_number_of(size - LENGTH_BYTES, "byte").text);
  HT_CHECK(r->ctx, length <= HEADER_MOST, HT_BAD_FORMAT, "%s: expected a header of at most %d bytes, found %" PRIu64 RETRAIN, r->name,
           (int)HEADER_MOST, length);
  HT_TRY(r->ctx, load_json(r, (const char *)bytes + LENGTH_BYTES, (size_t)length));
  r->data = bytes + LENGTH_BYTES + length;
  r->data_size = size - LENGTH_BYTES - (int64_t)length;
  return HT_OK;
}

/* One line: sentences quote it. */
static int is_line(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 0x7f) return 0;
  return 1;
}

static ht_status get_text(const reader *r, const char *key, const char **text) {
  *text = json_string_value(json_object_get(r->metadata, key));
  const char *found = *text ? "control characters in it" : json_object_get(r->metadata, key) ? "something else" : "none";
  HT_CHECK(r->ctx, *text && is_line(*text), HT_BAD_FORMAT, "%s: expected a line of text as '%s' among the metadata, found %s" RETRAIN,
           r->name, key, found);
  return HT_OK;
}

/* A text for people, cut at a word where it is too long. */
static ht_status copy_text(const reader *r, const char *key, char *to, size_t size) {
  const char *text;
  HT_TRY(r->ctx, get_text(r, key, &text));
  ht_print_words(to, size, "%s", text);
  return HT_OK;
}

static ht_status get_number(const reader *r, const char *key, uint64_t least, uint64_t most, uint64_t *value) {
  const char *text;
  HT_TRY(r->ctx, get_text(r, key, &text));
  size_t digits = strspn(text, "0123456789");
  errno = 0;
  *value = strtoull(text, NULL, 10);
  HT_CHECK(r->ctx, digits > 0 && !text[digits] && !errno && *value >= least && *value <= most, HT_BAD_FORMAT,
           "%s: expected a whole number from %" PRIu64 " to %" PRIu64 " as '%s', found '%.40s'" RETRAIN, r->name, least, most, key, text);
  return HT_OK;
}

/* Text that must be one certain word. */
static ht_status expect_text(const reader *r, const char *key, const char *expected) {
  const char *text;
  HT_TRY(r->ctx, get_text(r, key, &text));
  HT_CHECK(r->ctx, !strcmp(text, expected), HT_BAD_FORMAT, "%s: expected '%s' as '%s', found '%.80s'" RETRAIN, r->name, expected, key,
           text);
  return HT_OK;
}

static ht_status read_kind(reader *r) {
  const char *kind;
  ht_learned *l = r->learned;
  HT_TRY(r->ctx, get_text(r, "kind", &kind));
  l->kind = strcmp(kind, kind_name(HT_LEARNED_WINDOW)) ? HT_LEARNED_TILES : HT_LEARNED_WINDOW;
  HT_CHECK(r->ctx, !strcmp(kind, kind_name(l->kind)), HT_BAD_FORMAT,
           "%s: expected a policy of the kind tiles or window, found '%.40s'" RETRAIN, r->name, kind);
  HT_TRY(r->ctx, expect_text(r, "state", state_name(l->kind)));
  strcpy(l->state, state_name(l->kind));
  if (l->kind == HT_LEARNED_TILES) return HT_OK;
  char names[NAMES_SIZE];
  ht_feature_names(names, sizeof names);
  HT_TRY(r->ctx, expect_text(r, "features", names));
  return HT_OK;
}

static ht_status read_architecture(reader *r) {
  uint64_t interval, hidden, episodes;
  const char *actions;
  ht_learned *l = r->learned;
  ht_learned_action action[HT_NETWORK_MOST_ACTIONS];
  HT_TRY(r->ctx, get_number(r, "hidden", 1, HT_NETWORK_MOST_HIDDEN, &hidden));
  HT_TRY(r->ctx, get_number(r, "interval", 1, HT_LEARNED_MOST_INTERVAL, &interval));
  HT_TRY(r->ctx, get_number(r, "seed", 0, UINT64_MAX, &l->seed));
  HT_TRY(r->ctx, get_number(r, "episodes", 0, INT64_MAX, &episodes));
  HT_TRY(r->ctx, get_text(r, "actions", &actions));
  l->network.inputs = ht_learned_inputs(l->kind);
  l->network.hidden = (int)hidden;
  l->network.actions = strlen(actions) < sizeof l->actions ? ht_learned_actions(l->kind, actions, action) : 0;
  l->interval = (int)interval;
  l->episodes = (int64_t)episodes;
  HT_CHECK(r->ctx, l->network.actions, HT_BAD_FORMAT, "%s: expected actions like '%s' in a policy of the kind %s, found '%.80s'" RETRAIN,
           r->name, ht_learned_usual_actions(l->kind), kind_name(l->kind), actions);
  strcpy(l->actions, actions);
  return HT_OK;
}

static ht_status read_machine(reader *r) {
  const char *machine;
  if (r->learned->kind != HT_LEARNED_WINDOW) return HT_OK;
  HT_TRY(r->ctx, get_text(r, "made_for", &machine));
  r->learned->for_device = !strcmp(machine, "device");
  HT_CHECK(r->ctx, r->learned->for_device || !strcmp(machine, "cpu"), HT_BAD_FORMAT,
           "%s: expected 'cpu' or 'device' as 'made_for', found '%.40s'" RETRAIN, r->name, machine);
  return HT_OK;
}

/* Of files that know of it: what won. */
static ht_status read_contest(reader *r) {
  static const char *const known[] = {"learned", "auto", "fixed:f64", "fixed:f32", "fixed:bf16", "budget"};
  ht_learned *l = r->learned;
  const char *chosen;
  size_t k = 0, count = sizeof known / sizeof *known;
  if (!json_object_get(r->metadata, "chosen")) return HT_OK;
  HT_TRY(r->ctx, get_text(r, "chosen", &chosen));
  while (k < count && strcmp(known[k], chosen) != 0) k++;
  int fits = k < count && (l->kind == HT_LEARNED_WINDOW || !k || !strncmp(chosen, "fixed:", 6)); /* what each kind competes with */
  HT_CHECK(r->ctx, fits, HT_BAD_FORMAT,
           "%s: expected 'learned', a fixed policy, or of the kind window auto or budget as 'chosen', found '%.40s'" RETRAIN, r->name,
           chosen);
  snprintf(l->chosen, sizeof l->chosen, "%s", chosen);
  HT_TRY(r->ctx, copy_text(r, "contest", l->contest, sizeof l->contest));
  return HT_OK;
}

static ht_status read_metadata(reader *r) {
  ht_learned *l = r->learned;
  r->metadata = json_object_get(r->header, "__metadata__");
  const char *format = json_string_value(json_object_get(r->metadata, "format"));
  HT_CHECK(r->ctx, format && !strcmp(format, FORMAT), HT_BAD_FORMAT,
           "%s: expected a policy of halftone, found a safetensors file of something else, without the metadata 'format': '%s'" RETRAIN,
           r->name, FORMAT);
  HT_TRY(r->ctx, expect_text(r, "format_version", FORMAT_VERSION));
  HT_TRY(r->ctx, read_kind(r));
  HT_TRY(r->ctx, read_architecture(r));
  HT_TRY(r->ctx, copy_text(r, "reward", l->reward, sizeof l->reward));
  HT_TRY(r->ctx, copy_text(r, "trained_on", l->trained_on, sizeof l->trained_on));
  HT_TRY(r->ctx, copy_text(r, "version", l->version, sizeof l->version));
  HT_TRY(r->ctx, read_machine(r));
  HT_TRY(r->ctx, read_contest(r));
  return HT_OK;
}

/* What a sentence quotes of the header; of what is long jansson leaves out the end. */
static void print_json(const json_t *value, char *text, size_t size) {
  memset(text, 0, size);
  if (!value || !json_dumpb(value, text, size - 1, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY)) snprintf(text, size, "none");
}

/* Type and shape of one tensor. */
static ht_status check_tensor(const reader *r, const tensor *t) {
  char expected[48], found[48];
  const json_t *entry = json_object_get(r->header, t->name);
  print_shape(t, expected, sizeof expected);
  HT_CHECK(r->ctx, json_is_object(entry), HT_BAD_FORMAT, "%s: expected the tensor '%s', found none" RETRAIN, r->name, t->name);
  const char *type = json_string_value(json_object_get(entry, "dtype"));
  HT_CHECK(r->ctx, type && !strcmp(type, "F32"), HT_BAD_FORMAT, "%s: expected F32 numbers in the tensor '%s', found '%.40s'" RETRAIN,
           r->name, t->name, type ? type : "nothing");
  const json_t *shape = json_object_get(entry, "shape");
  int same = json_array_size(shape) == (size_t)t->rank;
  for (int d = 0; same && d < t->rank; d++) {
    const json_t *length = json_array_get(shape, (size_t)d);
    same = json_is_integer(length) && json_integer_value(length) == t->shape[d];
  }
  print_json(shape, found, sizeof found);
  HT_CHECK(r->ctx, same, HT_BAD_FORMAT, "%s: expected the shape %s of the tensor '%s', found %s" RETRAIN, r->name, expected, t->name,
           found);
  return HT_OK;
}

/* The place of one tensor, *begin and *end, in bytes of the data. */
static ht_status locate(const reader *r, const tensor *t, int64_t *begin, int64_t *end) {
  char found[48];
  const json_t *offsets = json_object_get(json_object_get(r->header, t->name), "data_offsets");
  const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
  *begin = json_is_integer(first) ? json_integer_value(first) : -1;
  *end = json_is_integer(second) ? json_integer_value(second) : -1;
  int64_t bytes = t->shape[0] * t->shape[1] * (int64_t)sizeof(float);
  print_json(offsets, found, sizeof found);
  HT_CHECK(r->ctx, json_array_size(offsets) == 2 && *begin >= 0 && *end >= *begin && *end <= r->data_size && *end - *begin == bytes,
           HT_BAD_FORMAT,
           "%s: expected data_offsets of the tensor '%s' that hold %" PRId64 " of the file's %" PRId64 " bytes of data, found %s" DAMAGED,
           r->name, t->name, bytes, r->data_size, found);
  return HT_OK;
}

static float read_f32(const unsigned char *b) {
  return ht_from_bits32((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
}

/* The tensors fill the data without a hole: their lengths add up to it, as was checked, and no two overlap. */
static ht_status check_places(const reader *r, const int64_t *begin, const int64_t *end, const tensor *t) {
  for (int k = 0; k < TENSORS; k++)
    for (int j = 0; j < k; j++)
      HT_CHECK(r->ctx, begin[k] >= end[j] || begin[j] >= end[k], HT_BAD_FORMAT,
               "%s: expected each tensor at a place of its own, found '%s' and '%s' at the same" DAMAGED, r->name, t[j].name, t[k].name);
  return HT_OK;
}

/* Files of versions before it have none. */
static ht_status check_checksum(const reader *r, uLong weights) {
  const char *expected;
  if (!json_object_get(r->metadata, CHECKSUM)) return HT_OK;
  HT_TRY(r->ctx, get_text(r, CHECKSUM, &expected));
  checksum found = checksum_of(r->learned, r->learned->actions, weights);
  HT_CHECK(r->ctx, !strcmp(expected, found.text), HT_BAD_FORMAT,
           "%s: expected the checksum '%.40s' of the weights and of how they are used, found '%s'" DAMAGED, r->name, expected, found.text);
  return HT_OK;
}

static ht_status read_tensors(reader *r) {
  tensor t[TENSORS];
  int64_t begin[TENSORS], end[TENSORS];
  ht_network *net = &r->learned->network;
  int64_t size = ht_network_size(net->inputs, net->hidden, net->actions) * (int64_t)sizeof(float);
  list_tensors(net, t);
  for (int k = 0; k < TENSORS; k++) HT_TRY(r->ctx, check_tensor(r, &t[k]));
  HT_CHECK(r->ctx, json_object_size(r->header) == TENSORS + 1, HT_BAD_FORMAT, "%s: expected %d tensors, found %zu" RETRAIN, r->name,
           (int)TENSORS, json_object_size(r->header) - 1);
  HT_CHECK(r->ctx, r->data_size == size, HT_BAD_FORMAT,
           "%s: expected %" PRId64 " bytes of data behind the header, for a network of %s, found %" PRId64 DAMAGED, r->name, size,
           ht_number_of(net->hidden, "hidden unit").text, r->data_size);
  for (int k = 0; k < TENSORS; k++) HT_TRY(r->ctx, locate(r, &t[k], &begin[k], &end[k]));
  HT_TRY(r->ctx, check_places(r, begin, end, t));
  HT_TRY(r->ctx, ht_allocate(r->ctx, ht_network_size(net->inputs, net->hidden, net->actions), sizeof(float), &net->weights));
  float *to = net->weights;
  uLong sum = crc32(0, NULL, 0);
  for (int k = 0; k < TENSORS; k++) {
    sum = crc32(sum, r->data + begin[k], (uInt)(end[k] - begin[k]));
    for (int64_t at = begin[k]; at < end[k]; at += (int64_t)sizeof(float)) *to++ = read_f32(r->data + at);
  }
  int64_t bad = find_bad_weight(net);
  HT_CHECK(r->ctx, bad < 0, HT_BAD_FORMAT, "%s: expected weights between -65504 and 65504, found %g" DAMAGED, r->name,
           net->weights[bad < 0 ? 0 : bad]);
  HT_TRY(r->ctx, check_checksum(r, sum));
  return HT_OK;
}

static ht_status parse(reader *r, const void *bytes, int64_t size) {
  HT_TRY(r->ctx, ht_allocate_zeroed(r->ctx, 1, sizeof *r->learned, &r->learned));
  HT_TRY(r->ctx, read_header(r, bytes, size));
  HT_TRY(r->ctx, read_metadata(r));
  HT_TRY(r->ctx, read_tensors(r));
  return HT_OK;
}

ht_status ht_learned_parse(ht_context *ctx, const void *bytes, int64_t size, const char *name, ht_learned **learned) {
  reader r = {.ctx = ctx, .name = name};
  *learned = NULL;
  ht_status status = parse(&r, bytes, size);
  json_decref(r.header);
  if (status == HT_OK)
    *learned = r.learned;
  else
    ht_learned_release(ctx, r.learned);
  return status;
}

/* Up to FILE_MOST bytes and one more, which tells that there are too many. */
static ht_status read_bytes(ht_context *ctx, const char *path, unsigned char *bytes, int64_t *size) {
  HT_CHECK(ctx, *path, HT_BAD_FILE, "the name of the policy file is empty");
  FILE *file = fopen(path, "rb");
  HT_CHECK(ctx, file, HT_BAD_FILE, "the policy file %s cannot be opened: %s", path, strerror(errno));
  *size = (int64_t)fread(bytes, 1, FILE_MOST + 1, file);
  int error = ferror(file) ? errno : 0;
  fclose(file);
  HT_CHECK(ctx, !error, HT_BAD_FILE, "the policy file %s cannot be read: %s", path, strerror(error));
  return HT_OK;
}

ht_status ht_learned_read(ht_context *ctx, const char *path, ht_learned **learned) {
  unsigned char *bytes;
  int64_t size;
  *learned = NULL;
  HT_TRY(ctx, ht_allocate(ctx, FILE_MOST + 1, 1, &bytes));
  ht_status status = read_bytes(ctx, path, bytes, &size);
  if (status == HT_OK) status = ht_learned_parse(ctx, bytes, size, path, learned);
  ht_release(ctx, bytes);
  if (status != HT_OK) return ht_trace(ctx, status, __func__, __FILE__, __LINE__);
  return HT_OK;
}

/* ---- writing ---- */

typedef struct writer {
  char text[HEADER_MOST / 4]; /* the longest texts, escaped, take less */
  size_t used;
} writer;

static void put(writer *w, const char *format, ...) HT_PRINTF(2, 3);
static void put(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  w->used += (size_t)vsnprintf(w->text + w->used, sizeof w->text - w->used, format, args);
  va_end(args);
}

/* As one line. */
static void put_text(writer *w, const char *key, const char *text) {
  enum { LONGEST = sizeof(((ht_learned *)0)->trained_on) };
  char line[LONGEST], escaped[6 * LONGEST + 3];
  snprintf(line, sizeof line, "%s", text);
  for (char *c = line; *c; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
  ht_json_string(line, escaped, sizeof escaped);
  put(w, ",\"%s\":%s", key, escaped);
}

static void put_number(writer *w, const char *key, uint64_t value) { put(w, ",\"%s\":\"%" PRIu64 "\"", key, value); }

static void write_metadata(writer *w, const ht_learned *l, const char *actions, uLong weights) {
  char names[NAMES_SIZE];
  put(w, "\"__metadata__\":{\"format\":\"%s\"", FORMAT);
  put_text(w, "format_version", FORMAT_VERSION);
  put_text(w, "kind", kind_name(l->kind));
  put_text(w, "state", state_name(l->kind));
  ht_feature_names(names, sizeof names);
  if (l->kind == HT_LEARNED_WINDOW) put_text(w, "features", names);
  put_text(w, "reward", l->reward);
  put_text(w, "actions", actions);
  put_number(w, "interval", (uint64_t)l->interval);
  put_number(w, "hidden", (uint64_t)l->network.hidden);
  put_text(w, "trained_on", l->trained_on);
  put_number(w, "seed", l->seed);
  put_number(w, "episodes", (uint64_t)l->episodes);
  if (l->kind == HT_LEARNED_WINDOW) put_text(w, "made_for", machine_name(l));
  if (*l->chosen) {
    put_text(w, "chosen", l->chosen);
    put_text(w, "contest", l->contest);
  }
  put_text(w, "version", l->version);
  put_text(w, CHECKSUM, checksum_of(l, actions, weights).text);
  put(w, "}");
}

static void write_header(writer *w, const ht_learned *l, const char *actions, uLong weights) {
  tensor t[TENSORS];
  int64_t at = 0;
  char shape[48];
  w->used = 0;
  list_tensors(&l->network, t);
  put(w, "{");
  write_metadata(w, l, actions, weights);
  for (int k = 0; k < TENSORS; k++) {
    int64_t end = at + t[k].shape[0] * t[k].shape[1] * (int64_t)sizeof(float);
    print_shape(&t[k], shape, sizeof shape);
    put(w, ",\"%s\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", t[k].name, shape, at, end);
    at = end;
  }
  put(w, "}");
  while (w->used % LENGTH_BYTES) put(w, " ");
}

/* A reader of the file would refuse the same. */
static ht_status check(ht_context *ctx, const ht_learned *l, const char *actions) {
  ht_learned_action action[HT_NETWORK_MOST_ACTIONS];
  const ht_network *net = &l->network;
  HT_CHECK(ctx, net->inputs == ht_learned_inputs(l->kind) && net->hidden > 0 && net->hidden <= HT_NETWORK_MOST_HIDDEN, HT_BAD_ARGUMENT,
           "a policy of the kind %s has %d inputs and 1 to %d hidden units, and was given %d and %d", kind_name(l->kind),
           ht_learned_inputs(l->kind), (int)HT_NETWORK_MOST_HIDDEN, net->inputs, net->hidden);
  HT_CHECK(ctx, net->actions > 0 && ht_learned_actions(l->kind, actions, action) == net->actions, HT_BAD_ARGUMENT,
           "a network with %d actions cannot have the list '%s' in a policy of the kind %s", net->actions, actions, kind_name(l->kind));
  HT_CHECK(ctx, l->interval >= 1 && l->interval <= HT_LEARNED_MOST_INTERVAL && l->episodes >= 0, HT_BAD_ARGUMENT,
           "a policy's interval is between 1 and %d and its episodes are not negative, and they are %d and %" PRId64,
           (int)HT_LEARNED_MOST_INTERVAL, l->interval, l->episodes);
  int64_t bad = find_bad_weight(net);
  HT_CHECK(ctx, bad < 0, HT_BAD_ARGUMENT, "a policy's weights are between -65504 and 65504, and weight %" PRId64 ", counted from 0, is %g",
           bad, net->weights[bad < 0 ? 0 : bad]);
  return HT_OK;
}

static void write_f32(float value, unsigned char *b) {
  for (int k = 0; k < 4; k++) b[k] = (unsigned char)(ht_bits32(value) >> 8 * k);
}

static uLong sum_of_weights(const ht_network *net, int64_t count) {
  uLong sum = crc32(0, NULL, 0);
  unsigned char bytes[sizeof(float)];
  for (int64_t k = 0; k < count; k++) {
    write_f32(net->weights[k], bytes);
    sum = crc32(sum, bytes, sizeof bytes);
  }
  return sum;
}

ht_status ht_learned_serialize(ht_context *ctx, const ht_learned *l, void **bytes, int64_t *size) {
  writer w;
  unsigned char *to;
  const ht_network *net = &l->network;
  const char *actions = *l->actions ? l->actions : ht_learned_usual_actions(l->kind);
  *bytes = NULL;
  HT_TRY(ctx, check(ctx, l, actions));
  int64_t count = ht_network_size(net->inputs, net->hidden, net->actions);
  write_header(&w, l, actions, sum_of_weights(net, count));
  *size = LENGTH_BYTES + (int64_t)w.used + count * (int64_t)sizeof(float);
  HT_TRY(ctx, ht_allocate(ctx, *size, 1, &to));
  *bytes = to;
  for (int i = 0; i < LENGTH_BYTES; i++) *to++ = (unsigned char)((uint64_t)w.used >> 8 * i);
  memcpy(to, w.text, w.used);
  to += w.used;
  for (int64_t k = 0; k < count; k++) write_f32(net->weights[k], to + k * (int64_t)sizeof(float));
  return HT_OK;
}
