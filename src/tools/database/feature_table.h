/* feature_table.h: which features the Examples of a pipeline have. */
#ifndef LEAT_TOOLS_DATABASE_FEATURE_TABLE_H
#define LEAT_TOOLS_DATABASE_FEATURE_TABLE_H

#include <jansson.h>
#include <leat/example.h>
#include <leat/sample.h>

/* The features that are told apart; those that are met later are left out, and
 * those with a name that no line would show (KEY_MOST). */
enum { FEATURE_TABLE_MAX = 1000 };

/* One name of one type, and what records have of it. */
struct feature {
    char *name; /* as in the message, and a NUL */
    size_t name_size;
    leat_dtype dtype;
    bool is_sequence;
    int64_t fewest, most; /* values; of a sequence, those of a step */
    int64_t records;
    int64_t last; /* the record that it was met in last, from 1 */
};

/* A zeroed one is empty. */
struct feature_table {
    int64_t records; /* that are Examples, such as one without features */
    struct feature *feature;
    int n;
    int next;      /* of the feature that is likely met next */
    bool has_more; /* some were left out */
};

/* Adds the features of a record, if it is an Example or a SequenceExample. Ends
 * the program without memory. */
void feature_table_add(struct feature_table *table, const leat_field *record);

/*
 * Each feature, as `example` or `sequence_example` takes it, with the records
 * that have it: an array of {"name", "type", "sequence", "values": [fewest,
 * most], "records", "argument"}, ordered by name. Owned by the caller. Ends the
 * program without memory.
 */
json_t *feature_table_json(struct feature_table *table);

void feature_table_print(struct feature_table *table);

void feature_table_finish(struct feature_table *table);

#endif
