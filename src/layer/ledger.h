/* ledger.h: the bad records that forward met: counted, listed, written down. */
#ifndef LEAT_LAYER_LEDGER_H
#define LEAT_LAYER_LEDGER_H

#include "layer/bad_file.h"
#include "layer/bad_list.h"
#include "layer/record_set.h"

#include <leat/data_layer.h>

/* One caller at a time; a layer's belongs to its caller. */
typedef struct leat__ledger {
    const char *name;       /* the layer's, borrowed */
    int64_t max_errors;     /* -1: no limit */
    leat__bad_file file;    /* what of it was new is written there */
    leat__record_set known; /* each record once, for max_errors */
    /* since the start: */
    int64_t count;
    int64_t unwritten;
    int listed;
    leat_bad_record list[LEAT_BAD_RECORDS_MAX];
    leat__bad entry[LEAT_BAD_RECORDS_MAX]; /* what the list points to */
} leat__ledger;

/* Of a zeroed ledger; opens nothing. */
void leat__ledger_init(leat__ledger *ledger,
                       const leat_data_layer_options *options);
void leat__ledger_finish(leat__ledger *ledger);

/*
 * Opens the file, if one is asked for and is not open. Errors: LEAT_EIO;
 * LEAT_EINVAL for what is no regular file; LEAT_ENOMEM.
 */
int leat__ledger_open(leat__ledger *ledger);

/*
 * A start from this position: what was counted and listed is forgotten, but for
 * the records known from before the position. The file stays as it is.
 */
void leat__ledger_begin(leat__ledger *ledger, int64_t epoch, int64_t position);

/*
 * Notes a bad record. A file that cannot be written is no error: the log says
 * so once, and `unwritten` counts. Errors: LEAT_ENOMEM.
 */
int leat__ledger_note(leat__ledger *ledger, const leat__bad *bad);

/* LEAT_ELIMIT when there were more than max_errors different records. */
int leat__ledger_check(const leat__ledger *ledger);

#endif
