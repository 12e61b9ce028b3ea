#include "support/example_message.h"
#include "data/example_wire.h"

#include <check.h>
#include <string.h>

void example_put(example_text *to, const void *from, size_t size)
{
    ck_assert_uint_le(to->size + size, EXAMPLE_MESSAGE_MAX);
    if (size > 0)
        memcpy(to->at + to->size, from, size);
    to->size += size;
}

void example_put_field(example_text *to, int number,
                       const example_text *content)
{
    unsigned char head[16];
    unsigned char *end = leat__wire_put_tag(head, number, LEAT__WIRE_BYTES);
    end = leat__wire_put_varint(end, content->size);
    example_put(to, head, (size_t)(end - head));
    example_put(to, content->at, content->size);
}

static example_text example_string(const char *value)
{
    example_text out = {.size = 0};
    example_put(&out, value, strlen(value));
    return out;
}

/* A Feature of one kind: its list in field `kind`. */
static example_text example_feature(int kind, const example_text *list)
{
    example_text out = {.size = 0};
    example_put_field(&out, kind, list);
    return out;
}

example_text example_ints(int n, const int64_t values[])
{
    example_text packed = {.size = 0}, list = {.size = 0};
    for (int i = 0; i < n; i++) {
        unsigned char number[16];
        unsigned char *end = leat__wire_put_varint(number, (uint64_t)values[i]);
        example_put(&packed, number, (size_t)(end - number));
    }
    example_put_field(&list, 1, &packed);
    return example_feature(LEAT__FEATURE_INTS, &list);
}

example_text example_one_int(int64_t value)
{
    return example_ints(1, &value);
}

example_text example_floats(int n, const float values[])
{
    example_text packed = {.size = 0}, list = {.size = 0};
    example_put(&packed, values, (size_t)n * sizeof(float));
    example_put_field(&list, 1, &packed);
    return example_feature(LEAT__FEATURE_FLOATS, &list);
}

example_text example_strings(int n, const char *const values[])
{
    example_text list = {.size = 0};
    for (int i = 0; i < n; i++) {
        example_text value = example_string(values[i]);
        example_put_field(&list, 1, &value);
    }
    return example_feature(LEAT__FEATURE_BYTES, &list);
}

void example_put_entry(example_text *to, int map, const char *key,
                       example_text value)
{
    example_text entry = {.size = 0}, features = {.size = 0},
                 name = example_string(key);
    example_put_field(&entry, 1, &name);
    example_put_field(&entry, 2, &value);
    example_put_field(&features, 1, &entry);
    example_put_field(to, map, &features);
}

void example_put_steps(example_text *to, const char *key, int n,
                       const example_text steps[])
{
    example_text list = {.size = 0};
    for (int i = 0; i < n; i++)
        example_put_field(&list, 1, &steps[i]);
    example_put_entry(to, LEAT__EXAMPLE_LISTS, key, list);
}
