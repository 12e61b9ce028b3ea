/* field.h: fields of samples, as the arguments of decorators name them. */
#ifndef LEAT_DECORATORS_FIELD_H
#define LEAT_DECORATORS_FIELD_H

#include <leat/ext/reader.h>

#include <stdbool.h>
#include <stddef.h>

/* The longest name of a field in an argument, with its NUL. */
#define LEAT__FIELD_NAME_MAX 64

/*
 * Finds the field of that name. Errors: LEAT_EINVAL, which names those that
 * there are.
 */
int leat__field_find(const leat_field_spec spec[], int n, const char *name,
                     int *out);

/*
 * The first field of LEAT_BYTES, or that of `name` unless it is NULL. Errors:
 * LEAT_EINVAL.
 */
int leat__field_find_bytes(const leat_field_spec spec[], int n,
                           const char *name, int *out);

/*
 * Splits NAME=VALUE. `*value` is in `pair`; NULL: it is a name alone. Errors:
 * LEAT_EINVAL for a name that is empty or too long.
 */
int leat__field_split_pair(const char *pair, char name[LEAT__FIELD_NAME_MAX],
                           const char **value);

/*
 * Writes the argument FIELD=VALUE, whatever letters the field has. Freed by the
 * caller. Errors: LEAT_EINVAL without a field; LEAT_ENOMEM.
 */
int leat__field_write_pair(char **out, const char *field, const char *value);

/*
 * Writes the arguments FIELD,REST, or REST where `field` is NULL. Freed by the
 * caller. Errors: LEAT_ENOMEM.
 */
int leat__field_write_argument(char **out, const char *field, const char *rest);

/*
 * The number of the field's elements; of LEAT_BYTES that of its bytes. Errors:
 * LEAT_EDATA where they are more than its bytes hold.
 */
int leat__field_count(const leat_field *field, size_t *count);

/* The elements of a spec without dimensions that vary; -1: they do, or are too
 * many. */
int64_t leat__field_spec_count(const leat_field_spec *spec);

/* Whether the field is what its spec promises. */
bool leat__field_fits(const leat_field *field, const leat_field_spec *spec);

#endif
