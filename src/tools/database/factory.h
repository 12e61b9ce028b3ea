/*
 * factory.h: records made by several threads, taken in order.
 */
#ifndef LEAT_TOOLS_DATABASE_FACTORY_H
#define LEAT_TOOLS_DATABASE_FACTORY_H

#include <leat/status.h>

enum {
    FACTORY_RUN_MOST = 32,    /* records that a thread makes at a time */
    FACTORY_BYTES = 512 << 20 /* that may wait, where nothing speaks for less */
};

/* A record of an image. */
struct factory_record {
    const void *bytes; /* a Datum in wire format */
    size_t size;
    int shape[3];      /* of the image: channels, height, width */
    char warning[160]; /* what is to be said of it, or "" */
};

/* What records there shall be. Each thread has a bench to make them on. */
struct factory_order {
    int64_t first; /* number of the first one */
    int64_t end;   /* and the number behind the last one */
    int run;       /* records made at a time; 1 for large ones */
    size_t bytes;  /* more than these do not wait to be taken, but for the runs
                      that are being made by then */
    const void *context;

    int (*open)(void **bench, const void *context);
    void (*close)(void *bench); /* takes NULL */

    /*
     * Makes record `number`, always the same one; borrowed until the bench's
     * next. An error is in the place of this record and the rest of its run.
     */
    int (*make)(void *bench, int64_t number, struct factory_record *out);
};

struct factory;

/* Starts the threads. Errors: LEAT_ENOMEM, LEAT_EIO. */
int factory_open(struct factory **out, const struct factory_order *order);

/*
 * The next record; borrowed until the next take. LEAT_END after the last one.
 * Errors: those of open and make; the next take gives what comes behind it.
 */
int factory_take(struct factory *factory, struct factory_record *out);

/* Stops the threads and frees everything, at any time. Takes NULL. */
void factory_close(struct factory *factory);

#endif
