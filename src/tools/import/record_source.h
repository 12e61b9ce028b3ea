/* record_source.h: where the records of a database to be made come from. */
#ifndef LEAT_TOOLS_IMPORT_RECORD_SOURCE_H
#define LEAT_TOOLS_IMPORT_RECORD_SOURCE_H

#include <leat/status.h>

#include <jansson.h>

/* A record on its way into a database; borrowed until the next call. */
struct record {
    int64_t number;    /* its place in the source, from 0 */
    const char *name;  /* NULL: its key is the number, else NUMBER_name */
    const void *value; /* a Datum in wire format */
    size_t size;
};

/*
 * The first member of a source's own struct. A source always gives the same
 * records, whatever happened to the run before: what was killed is gone on with
 * at the number where it stopped. One thread calls it; a source may well have
 * threads of its own that work ahead.
 */
struct record_source {
    const char *unit; /* of what it reads: "images" */
    int64_t count;    /* numbers run from 0 to below it; -1: unknown */
    int digits;       /* of a number in a key */

    /*
     * The next record; numbers ascend, and those of what is left out are
     * missing. LEAT_END after the last one, when its files proved sound to
     * their ends. Errors: any, with its line; none is gone on after.
     */
    int (*next)(struct record_source *source, struct record *out);

    /*
     * The next `next` gives the first record whose number is not below this
     * one. Called once at most, before the first next. Errors: as of next.
     */
    int (*seek)(struct record_source *source, int64_t number);

    /*
     * Says what else there is to say of a database that is made, with `records`
     * in it: on stderr, and with --json in `object` (else NULL). Returns the
     * tool's exit status. NULL: nothing.
     */
    int (*report)(struct record_source *source, int64_t records,
                  json_t *object);
};

#endif
