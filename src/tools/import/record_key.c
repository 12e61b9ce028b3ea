#include "tools/import/record_key.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number of so many digits fits in 63 bits. */
enum { MOST_DIGITS = 18 };

int record_key_make(struct record_key *key, int digits, int64_t number,
                    const char *name)
{
    int64_t most = 1;
    for (int i = 0; i < digits; i++)
        most *= 10;
    if (number >= most)
        return leat_error(LEAT_EINVAL,
                          "record %lld: keys of %d digits end before it",
                          (long long)number, digits);
    size_t capacity = MOST_DIGITS + 2 + (name ? strlen(name) : 0);
    if (capacity > key->capacity) {
        char *text = realloc(key->text, capacity);
        if (!text)
            return leat_error(LEAT_ENOMEM, "out of memory for a key");
        key->text = text;
        key->capacity = capacity;
    }
    key->size =
        (size_t)snprintf(key->text, capacity, "%0*lld%s%s", digits,
                         (long long)number, name ? "_" : "", name ? name : "");
    return LEAT_OK;
}

int record_key_parse(const char *key, size_t size, int *digits, int64_t *number)
{
    int64_t value = 0;
    size_t n = 0;
    for (; n < size && n < MOST_DIGITS && key[n] >= '0' && key[n] <= '9'; n++)
        value = 10 * value + (key[n] - '0');
    if (!n || (n < size && key[n] != '_'))
        return leat_error(LEAT_EINVAL,
                          "key '%.*s' does not begin with a number of at most "
                          "%d digits",
                          size < 64 ? (int)size : 64, key, MOST_DIGITS);
    *digits = (int)n;
    *number = value;
    return LEAT_OK;
}

void record_key_finish(struct record_key *key)
{
    free(key->text);
    memset(key, 0, sizeof(*key));
}
