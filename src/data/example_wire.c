#include "data/example_wire.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "floats are taken in wire order");

/* Field numbers of the inner messages (proto/example.proto). */
enum { ENTRY = 1, KEY = 1, VALUE = 2, STEP = 1, LIST_VALUE = 1 };

/* The bytes of a name that an error shows. */
enum { NAME_SHOWN = 32 };

const char *leat__feature_kind_name(leat__feature_kind kind)
{
    static const char *const names[] = {"no kind", "bytes", "float", "int64"};
    return names[kind];
}

/* A field of wire type bytes as a message of its own, whose errors have the
 * offset in the outermost one. */
static leat__wire enter(const leat__wire *wire, const leat__wire_field *field)
{
    return (leat__wire){.at = field->bytes,
                        .end = field->bytes + field->size,
                        .start = wire->start};
}

static int wrong_type(const leat__wire *wire, const leat__wire_field *field)
{
    return leat_error(LEAT_EDATA,
                      "malformed protobuf before byte %td: field %u has wire "
                      "type %d",
                      wire->at - wire->start, field->number, (int)field->type);
}

/* The next field of that number, which is a message or a string. LEAT_OK,
 * LEAT_END or LEAT_EDATA. */
static int next_bytes(leat__wire *wire, uint32_t number,
                      leat__wire_field *field)
{
    int status;
    do
        status = leat__wire_next(wire, field);
    while (!status && field->number != number);
    if (!status && field->type != LEAT__WIRE_BYTES)
        return wrong_type(wire, field);
    return status;
}

/* The key of a map's entry; without one it is empty, and the last one counts.
 */
static int read_key(leat__wire entry, leat__feature_key *out)
{
    leat__wire_field field;
    int status;
    out->name = "";
    out->size = 0;
    while ((status = next_bytes(&entry, KEY, &field)) == LEAT_OK) {
        out->name = (const char *)field.bytes;
        out->size = field.size;
    }
    return status == LEAT_END ? LEAT_OK : status;
}

static int find_in_map(leat__wire map, uint32_t number,
                       const leat__feature_key keys[], int n,
                       leat__feature_entry out[])
{
    leat__wire_field field;
    int status;
    while ((status = next_bytes(&map, ENTRY, &field)) == LEAT_OK) {
        leat__feature_key key = {.map = number};
        status = read_key(enter(&map, &field), &key);
        if (status)
            return status;
        for (int i = 0; i < n; i++)
            if (keys[i].size == key.size && keys[i].map == number &&
                memcmp(keys[i].name, key.name, key.size) == 0)
                out[i] = (leat__feature_entry){
                    (size_t)(field.bytes - map.start), field.size};
    }
    return status == LEAT_END ? LEAT_OK : status;
}

int leat__example_find(const void *message, size_t size,
                       const leat__feature_key keys[], int n,
                       leat__feature_entry out[])
{
    leat__wire wire;
    leat__wire_field field;
    bool has_key[LEAT__EXAMPLE_LISTS + 1] = {false};
    int status;
    leat__wire_init(&wire, message, size);
    for (int i = 0; i < n; i++) {
        out[i] = (leat__feature_entry){0, 0};
        has_key[keys[i].map] = true;
    }
    while ((status = leat__wire_next(&wire, &field)) == LEAT_OK) {
        if (field.number > LEAT__EXAMPLE_LISTS || !has_key[field.number])
            continue;
        if (field.type != LEAT__WIRE_BYTES)
            return wrong_type(&wire, &field);
        status = find_in_map(enter(&wire, &field), field.number, keys, n, out);
        if (status)
            return status;
    }
    return status == LEAT_END ? LEAT_OK : status;
}

/* Adds a name, as far as there is room; control characters are replaced. */
static size_t add_name(char *out, size_t size, size_t used,
                       const leat__feature_key *key)
{
    used += (size_t)snprintf(out + used, size - used, "%s\"", used ? ", " : "");
    for (size_t i = 0; i < key->size && i < NAME_SHOWN; i++) {
        unsigned char letter = (unsigned char)key->name[i];
        out[used++] = (char)(letter < ' ' || letter == 127 ? '?' : letter);
    }
    return used + (size_t)snprintf(out + used, size - used, "%s\"",
                                   key->size > NAME_SHOWN ? "..." : "");
}

void leat__example_walk_begin(leat__example_walk *walk, const void *message,
                              size_t size)
{
    leat__wire_init(&walk->message, message, size);
    leat__wire_init(&walk->map, NULL, 0);
    walk->number = 0;
}

int leat__example_walk_next(leat__example_walk *walk, leat__feature_key *key,
                            leat__feature_entry *entry)
{
    leat__wire_field field;
    int status;
    while ((status = next_bytes(&walk->map, ENTRY, &field)) == LEAT_END) {
        status = leat__wire_next(&walk->message, &field);
        if (status)
            return status;
        if (field.number != LEAT__EXAMPLE_FEATURES &&
            field.number != LEAT__EXAMPLE_LISTS)
            continue;
        if (field.type != LEAT__WIRE_BYTES)
            return wrong_type(&walk->message, &field);
        walk->map = enter(&walk->message, &field);
        walk->number = field.number;
    }
    if (status)
        return status;
    key->map = walk->number;
    *entry = (leat__feature_entry){(size_t)(field.bytes - walk->message.start),
                                   field.size};
    return read_key(enter(&walk->map, &field), key);
}

void leat__example_names(char *out, size_t out_size, const void *message,
                         size_t size, uint32_t map)
{
    leat__example_walk walk;
    leat__feature_key key;
    leat__feature_entry entry;
    size_t used = 0;
    out[0] = 0;
    leat__example_walk_begin(&walk, message, size);
    while (leat__example_walk_next(&walk, &key, &entry) == LEAT_OK) {
        if (key.map != map)
            continue;
        if (out_size - used < NAME_SHOWN + sizeof(", \"...\", ...")) {
            snprintf(out + used, out_size - used, ", ...");
            return;
        }
        used = add_name(out, out_size, used, &key);
    }
}

void leat__feature_begin(leat__feature_iterator *iterator, const void *message,
                         const leat__feature_entry *entry, uint32_t map)
{
    const unsigned char *start = message;
    leat__wire_init(&iterator->entry, start + entry->at, entry->size);
    iterator->entry.start = start;
    leat__wire_init(&iterator->list, NULL, 0);
    iterator->is_list = map == LEAT__EXAMPLE_LISTS;
}

int leat__feature_next(leat__feature_iterator *iterator, leat__wire *feature)
{
    leat__wire *list = &iterator->list;
    leat__wire_field field;
    for (;;) {
        int status = next_bytes(list, STEP, &field);
        if (!status)
            *feature = enter(list, &field);
        if (status != LEAT_END)
            return status;
        status = next_bytes(&iterator->entry, VALUE, &field);
        if (status)
            return status;
        if (iterator->is_list) {
            *list = enter(&iterator->entry, &field);
            continue;
        }
        *feature = enter(&iterator->entry, &field);
        return LEAT_OK;
    }
}

/* Writes after the first `used` bytes, as far as there is room. */
static void put(leat__feature_values *values, size_t used, const void *from,
                size_t size)
{
    if (values->out && used <= values->room && size <= values->room - used)
        memcpy((char *)values->out + used, from, size);
}

static int add_bytes(leat__feature_values *values, const leat__wire *list,
                     const leat__wire_field *field)
{
    if (field->type != LEAT__WIRE_BYTES)
        return wrong_type(list, field);
    put(values, values->bytes, field->bytes, field->size);
    values->view = values->count == 0 ? field->bytes : NULL;
    values->bytes += field->size;
    if (values->ends && values->count < values->max_ends)
        values->ends[values->count] = (int64_t)values->bytes;
    values->count++;
    return LEAT_OK;
}

static int add_floats(leat__feature_values *values, const leat__wire *list,
                      const leat__wire_field *field)
{
    if (field->type != LEAT__WIRE_BYTES && field->type != LEAT__WIRE_FIXED32)
        return wrong_type(list, field);
    if (field->size % sizeof(float))
        return leat_error(LEAT_EDATA,
                          "malformed protobuf before byte %td: packed floats "
                          "of %zu bytes, expected a multiple of 4",
                          list->at - list->start, field->size);
    if (field->size == 0)
        return LEAT_OK;
    put(values, values->count * sizeof(float), field->bytes, field->size);
    values->view = values->count == 0 ? field->bytes : NULL;
    values->count += field->size / sizeof(float);
    return LEAT_OK;
}

/* Every varint ends with the first byte below 0x80. */
static size_t count_varints(const unsigned char *bytes, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += bytes[i] < 0x80;
    return n;
}

static int write_packed(int64_t *to, leat__wire packed)
{
    uint64_t value;
    while (packed.at != packed.end) {
        if (*packed.at < 0x80) {
            *to++ = *packed.at++;
            continue;
        }
        int status = leat__wire_varint(&packed, &value);
        if (status)
            return status;
        *to++ = (int64_t)value;
    }
    return LEAT_OK;
}

/* Checks the varints of a list that is not written. */
static int check_packed(leat__wire packed)
{
    uint64_t value;
    int status = LEAT_OK;
    while (packed.at != packed.end && !status)
        status = leat__wire_varint(&packed, &value);
    return status;
}

/* Where lists are only counted, their varints are checked when they are
 * written, but for a cut one, which does not count. */
static int add_packed(leat__feature_values *values, leat__wire packed)
{
    size_t size = (size_t)(packed.end - packed.at);
    size_t used = values->count * sizeof(int64_t);
    size_t n = count_varints(packed.at, size);
    bool is_cut = size > 0 && packed.end[-1] >= 0x80;
    values->count += n;
    if (!values->out && !is_cut)
        return LEAT_OK;
    if (!values->out || used > values->room ||
        n > (values->room - used) / sizeof(int64_t))
        return check_packed(packed);
    return write_packed((int64_t *)values->out + used / sizeof(int64_t),
                        packed);
}

static int add_ints(leat__feature_values *values, const leat__wire *list,
                    const leat__wire_field *field)
{
    if (field->type == LEAT__WIRE_BYTES)
        return add_packed(values, enter(list, field));
    if (field->type != LEAT__WIRE_VARINT)
        return wrong_type(list, field);
    int64_t value = (int64_t)field->value;
    put(values, values->count * sizeof(value), &value, sizeof(value));
    values->count++;
    return LEAT_OK;
}

static int add_list(leat__feature_values *values, leat__wire list)
{
    leat__wire_field field;
    int status;
    while ((status = leat__wire_next(&list, &field)) == LEAT_OK) {
        if (field.number != LIST_VALUE)
            continue;
        if (values->kind == LEAT__FEATURE_BYTES)
            status = add_bytes(values, &list, &field);
        else if (values->kind == LEAT__FEATURE_FLOATS)
            status = add_floats(values, &list, &field);
        else
            status = add_ints(values, &list, &field);
        if (status)
            return status;
    }
    return status == LEAT_END ? LEAT_OK : status;
}

int leat__feature_add(leat__feature_values *values, leat__wire feature)
{
    leat__wire_field field;
    int status;
    while ((status = leat__wire_next(&feature, &field)) == LEAT_OK) {
        if (field.number > LEAT__FEATURE_INTS)
            continue;
        if (field.type != LEAT__WIRE_BYTES)
            return wrong_type(&feature, &field);
        if (values->kind != (leat__feature_kind)field.number) {
            values->kind = (leat__feature_kind)field.number;
            values->count = values->bytes = 0;
            values->view = NULL;
        }
        status = add_list(values, enter(&feature, &field));
        if (status)
            return status;
    }
    return status == LEAT_END ? LEAT_OK : status;
}
