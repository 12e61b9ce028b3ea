/* feature_table.h: which features the Examples of a pipeline have. */
#ifndef LEAT_TOOLS_DATABASE_FEATURE_TABLE_H
#define LEAT_TOOLS_DATABASE_FEATURE_TABLE_H

#include <jansson.h>
#include <leat/sample.h>

/* The features that are told apart; those that are met later are left out. */
enum { FEATURE_TABLE_MAX = 1000 };

/* A zeroed one is empty. */
struct feature_table {
    int64_t records; /* that have features */
    json_t *feature; /* object of "TYPE NAME": its figures; NULL: none yet */
    bool has_more;   /* some were left out */
};

/* Adds the features of a record, if it is an Example or a SequenceExample. */
void feature_table_add(struct feature_table *table, const leat_field *record);

/*
 * Each feature, as `example` or `sequence_example` takes it, with the records
 * that have it: an array of {"name", "type", "sequence", "values": [fewest,
 * most], "records", "argument"}, ordered by name. Owned by the caller. Ends the
 * program without memory.
 */
json_t *feature_table_json(const struct feature_table *table);

void feature_table_print(const struct feature_table *table);

void feature_table_finish(struct feature_table *table);

#endif
