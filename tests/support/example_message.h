/* example_message.h: writes Examples and SequenceExamples, part by part. */
#ifndef LEAT_TESTS_EXAMPLE_MESSAGE_H
#define LEAT_TESTS_EXAMPLE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum { EXAMPLE_MESSAGE_MAX = 4096 };

/* A message, or a part of one. */
typedef struct example_text {
    unsigned char at[EXAMPLE_MESSAGE_MAX];
    size_t size;
} example_text;

/* Features. */
example_text example_ints(int n, const int64_t values[]);
example_text example_one_int(int64_t value);
example_text example_floats(int n, const float values[]);
example_text example_strings(int n, const char *const values[]);

/* Appends bytes; and a field of bytes. */
void example_put(example_text *to, const void *from, size_t size);
void example_put_field(example_text *to, int number,
                       const example_text *content);

/* Appends an entry of a map, in a map of its own, as protobuf merges them. */
void example_put_entry(example_text *to, int map, const char *key,
                       example_text value);

/* Appends an entry of feature_lists, likewise: a Feature for each step. */
void example_put_steps(example_text *to, const char *key, int n,
                       const example_text steps[]);

#endif
