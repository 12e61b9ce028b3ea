/*
 * factory.h: records made by several threads, taken in order.
 */
#ifndef LEAT_TOOLS_FACTORY_H
#define LEAT_TOOLS_FACTORY_H

#include "tools/canvas.h"

/* What records there shall be. */
struct factory_order {
    int (*draw)(struct canvas *canvas, uint64_t seed, int64_t index);
    uint64_t seed;
    int64_t count;
    int shape[3]; /* channels, height, width */
    int quality;  /* of JPEGs; 0: raw Datums */
};

struct factory;

/* Starts the threads. Errors: LEAT_ENOMEM, LEAT_EIO. */
int factory_open(struct factory **out, const struct factory_order *order);

/*
 * The next record, a Datum in wire format; borrowed until the next take.
 * LEAT_END after the last one. Errors: LEAT_ENOMEM, LEAT_EINVAL.
 */
int factory_take(struct factory *factory, const void **record, size_t *size);

/* Stops the threads and frees everything, at any time. Takes NULL. */
void factory_close(struct factory *factory);

#endif
