/* inspection.h: checks every record of a database, on all cores. */
#ifndef LEAT_TOOLS_DATABASE_INSPECTION_H
#define LEAT_TOOLS_DATABASE_INSPECTION_H

#include <leat/image.h>
#include <leat/lmdb_check.h>
#include <leat/sample.h>

#include <stdbool.h>

/* A bad record, a damaged page, or a record whose codec warned. */
struct flaw {
    int64_t record;  /* bad, or the one that would come where a page is lost */
    int64_t page;    /* -1: none in particular */
    int64_t lost;    /* records: 1 a bad one; -1 unknown; 0 none */
    const char *key; /* as text; NULL: none */
    const char *reason;
};

/* Whether it is one record that is bad. */
bool flaw_is_record(const struct flaw *flaw);

/* A good record. */
struct inspected {
    const leat_lmdb_check_entry *entry;
    const leat_sample *sample; /* its fields */
    const leat_image *image;   /* decoded, of an encoded one; else NULL */
    const char *warning;       /* of the codec; NULL: none */
};

struct inspection {
    int64_t expected; /* records according to the database */
    int64_t good;
    int64_t warned; /* of these, by their codecs */
    int64_t bad;    /* records met that are */
    int64_t gaps;   /* positions at which records of damaged pages are lost */
    int64_t lost;   /* records of these, as far as is known */
    int64_t gap;    /* the position, if there is one */
    struct flaw *flaw;
    size_t flaws;         /* in the order of the records */
    struct flaw *warning; /* each a record of which its codec warned */
    size_t warnings;      /* likewise */
    bool has_pages;       /* 0: the freelist was not read to its end */
    leat_lmdb_page_use pages;
    struct flaw_texts *texts; /* of flaws and warnings */
};

/*
 * Reads every page and record of the database, decodes every image, in at most
 * `max_image_bytes` of memory each (0: the decoders' default). `visit`,
 * unless NULL, gets the good ones on any thread in any order. The result is the
 * same for any number of threads. Once the database is open, a signal is caught
 * (interrupt_catch). Errors: those of leat_lmdb_check_open,
 * LEAT_ENOMEM, LEAT_ECANCELLED, those of `visit`; *out is then zero.
 */
int inspection_run(struct inspection *out, const char *path,
                   size_t max_image_bytes, bool quiet,
                   int (*visit)(void *context, const struct inspected *record),
                   void *context);

/* All records, the lost ones as far as is known. */
int64_t inspection_records(const struct inspection *inspection);

/* The reason of the first damage that is no bad record; NULL: there is none. */
const char *inspection_damage(const struct inspection *inspection);

/* The number in the whole database of a record that a leat_lmdb_check numbered.
 */
int64_t inspection_number(const struct inspection *inspection, int64_t record);

void inspection_finish(struct inspection *inspection);

/*
 * A key as text that is UTF-8: bytes that are not, and NUL, become \xNN, and so
 * does the backslash of a \xNN in the key, so that each text is that of one
 * key. For a terminal it needs plain_text yet. Of more than KEY_MOST bytes the
 * first ones, "..." and how many there are: "... (600 bytes)". `cut` counts
 * those that `key` lacks (leat_provenance). Returns `out`.
 */
enum { KEY_MOST = 511, KEY_TEXT = 4 * KEY_MOST + 48 };
const char *inspection_key(char out[KEY_TEXT], const void *key, size_t size,
                           size_t cut);

/*
 * A Datum's label as text: its class, or of several labels the first ones,
 * "0.5 1 -2", or, if `values` is 0, their number and type, "3 x float32".
 * Returns `out`.
 */
const char *inspection_label(char *out, size_t size, const leat_field *label,
                             bool values);

#endif
