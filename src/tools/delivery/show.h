/* show.h: draws records for `leat show`. */
#ifndef LEAT_TOOLS_DELIVERY_SHOW_H
#define LEAT_TOOLS_DELIVERY_SHOW_H

#include "tools/delivery/contact_sheet.h"
#include "tools/delivery/layer_source.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { SHOW_MAX_RECORDS = 100000 };

struct show {
    /* The options. */
    const char *out;
    int64_t count;
    bool worst;
    int64_t side;
    int64_t columns;
    bool rgb;
    bool force;
    bool json;
    struct layer_source_options layer; /* whose forward is shown, with --net */
    const char *database;              /* or "" */
    const char *source;                /* the database, net file or pipeline */

    /* The sheet: `shown` pictures, of which some are `bad` or `lost`. */
    struct contact_sheet sheet;
    int64_t shown, bad, lost;

    /* Of a database: the pictures, those of --records from the beginning. */
    struct show_cell {
        int64_t record;
        const struct flaw *flaw; /* why the record is bad; NULL: not known */
        bool is_drawn;
    } * cell;                /* room for SHOW_MAX_RECORDS */
    int64_t records;         /* all of them; -1: a layer's samples are shown */
    atomic_int missing;      /* good ones that an inspection has yet to meet */
    struct inspection found; /* with --worst, or where it is damaged */

    /* Of a layer. */
    struct layer_source plain; /* whose samples are drawn */
    uint64_t seed;             /* of its choices; 0: none at random */
    leat_phase phase;
};

/* Draws records of the database `source`, by the numbers of leat verify. Errors
   end the program, here and below. */
void show_database(struct show *show);

/*
 * Draws the first samples that a layer delivers with their crops and mirrors,
 * but without means and scale, so that they can be seen. `plain` is destroyed
 * by the caller once they are written.
 */
void show_layer(struct show *show);

#endif
