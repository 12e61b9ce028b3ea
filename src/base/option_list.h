/* option_list.h: the one way to read, complete and check an option of a table.
 */
#ifndef LEAT_BASE_OPTION_LIST_H
#define LEAT_BASE_OPTION_LIST_H

#include <leat/option.h>
#include <stdbool.h>
#include <stddef.h>

/* An entry of a list, out of a line of an option table. */
#define LEAT__OPTION(structure, member, kind, proto, ...)                      \
    {                                                                          \
        .name = #member, .type = LEAT_OPTION_##kind,                           \
        .offset = offsetof(structure, member), .field = LEAT__FIELD_##proto,   \
        __VA_ARGS__                                                            \
    }
#define LEAT__FIELD_NONE NULL
#define LEAT__FIELD_BOOL "bool"
#define LEAT__FIELD_FLOAT "float"
#define LEAT__FIELD_INT64 "int64"
#define LEAT__FIELD_STRING "string"
#define LEAT__FIELD_UINT32 "uint32"
#define LEAT__FIELD_UINT64 "uint64"
#define LEAT__FIELD_WORD "word"

/* The option of that name; NULL: there is none. */
const leat_option *leat__option_find(const leat_option list[], int n,
                                     const char *name);

/*
 * Each of these stores a value that the option may have, or returns false and
 * stores nothing; a FLOAT may have any. A word is read in any case;
 * leat__option_take_text reads what leat_option_set does.
 */
bool leat__option_take_number(const leat_option *option, void *options,
                              int64_t number);
void leat__option_take_float(const leat_option *option, void *options,
                             float number);
bool leat__option_take_word(const leat_option *option, void *options,
                            const char *word);
bool leat__option_take_text(const leat_option *option, void *options,
                            const char *text);

/*
 * Writes what is wrong with a value that was not taken: "expected LEAT or
 * CAFFE, found 'dice'". `text` is the value, `shown` the same as the line shows
 * it. Returns `out`.
 */
#define LEAT__OPTION_FAULT_MAX 448
const char *leat__option_fault(const leat_option *option, const char *text,
                               const char *shown,
                               char out[LEAT__OPTION_FAULT_MAX]);

/* Writes the default in the place of each zero that does not count as a value.
 */
void leat__option_complete(const leat_option list[], int n, void *options);

/* LEAT_EINVAL names the first option whose value is none of its own. */
int leat__option_check(const leat_option list[], int n, const void *options);

/* leat_option_set of the option of that name in `what`: "the data layer". */
int leat__option_set(const leat_option list[], int n, const char *what,
                     void *options, const char *name, const char *text);

#endif
