/*
 * field_list.h: the fields of a decorator over several readers, described by
 * itself.
 */
#ifndef LEAT_DECORATORS_FIELD_LIST_H
#define LEAT_DECORATORS_FIELD_LIST_H

#include <leat/ext/reader.h>

/* Zeroed: empty. Names are its own. */
typedef struct leat__field_list {
    int n;
    leat_field_spec spec[LEAT_MAX_FIELDS];
    char *name[LEAT_MAX_FIELDS];
    char *offsets_of[LEAT_MAX_FIELDS];
} leat__field_list;

/*
 * Appends the fields of a reader whose samples are joined with others, with
 * `prefix` (NULL: none) before their names. Errors: LEAT_EINVAL for more than
 * LEAT_MAX_FIELDS, and for a name that is taken; LEAT_ENOMEM. What was appended
 * before an error stays.
 */
int leat__field_list_append(leat__field_list *list,
                            const leat_field_spec fields[], int n,
                            const char *prefix);

/*
 * Adds the fields of another reader, whose samples come in turn with those of
 * the first: sizes that differ vary from then on. An empty list takes them as
 * they are. Errors: LEAT_EINVAL for fields of other names, types, contents or
 * offsets; LEAT_ENOMEM.
 */
int leat__field_list_merge(leat__field_list *list,
                           const leat_field_spec fields[], int n);

/* The same errors for another reader, whose sizes are not looked at. */
int leat__field_list_check(const leat__field_list *list,
                           const leat_field_spec fields[], int n);

/*
 * Merges those of all `n` readers. Errors besides: those of leat_reader_fields;
 * the line begins with `who`, and names the reader.
 */
int leat__field_list_merge_all(leat__field_list *list, const char *who,
                               leat_reader *const reader[], int n);

void leat__field_list_finish(leat__field_list *list);

/* The text of a reader's pipeline, for errors. */
const char *leat__reader_text(const leat_reader *reader);

#endif
