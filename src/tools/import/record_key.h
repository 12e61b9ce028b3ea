/* record_key.h: Caffe's keys, a number of some digits, or NUMBER_name. */
#ifndef LEAT_TOOLS_IMPORT_RECORD_KEY_H
#define LEAT_TOOLS_IMPORT_RECORD_KEY_H

#include <leat/status.h>

/* Zeroed: no key yet. */
struct record_key {
    char *text; /* NUL-terminated */
    size_t size;
    size_t capacity;
};

/*
 * Makes the key of a number and a name, or NULL. Errors: LEAT_EINVAL for a
 * number of more digits, LEAT_ENOMEM.
 */
int record_key_make(struct record_key *key, int digits, int64_t number,
                    const char *name);

/*
 * Takes the number and how many digits it has from a key. Errors: LEAT_EINVAL
 * for another kind of key.
 */
int record_key_parse(const char *key, size_t size, int *digits,
                     int64_t *number);

void record_key_finish(struct record_key *key);

#endif
