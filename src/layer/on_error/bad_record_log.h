/*
 * bad_record_log.h: the bad records that forward met: counted, listed, logged.
 */
#ifndef LEAT_LAYER_ON_ERROR_BAD_RECORD_LOG_H
#define LEAT_LAYER_ON_ERROR_BAD_RECORD_LOG_H

#include "layer/on_error/bad_list.h"
#include "layer/on_error/bad_record_file.h"
#include "layer/on_error/record_set.h"

#include <leat/data_layer.h>

/* One caller at a time; a layer's belongs to its caller. */
typedef struct leat__bad_record_log {
    const char *name;           /* the layer's, borrowed */
    int64_t max_errors;         /* -1: no limit */
    leat__bad_record_file file; /* each record is written there once */
    leat__record_set known;     /* each record once, for max_errors; without it
                                   as many as the set has room for */
    /* since the start: */
    int64_t count;
    int64_t unwritten;
    int listed;
    leat_bad_record list[LEAT_BAD_RECORDS_MAX];
    leat__bad entry[LEAT_BAD_RECORDS_MAX]; /* the list points here */
} leat__bad_record_log;

/* Of a zeroed log; opens nothing. */
void leat__bad_record_log_init(leat__bad_record_log *log,
                               const leat_data_layer_options *options);
void leat__bad_record_log_finish(leat__bad_record_log *log);

/*
 * Opens the file, if one is asked for and is not open. Errors: LEAT_EIO;
 * LEAT_EINVAL unless it is a regular file, and empty or a list; LEAT_ENOMEM.
 */
int leat__bad_record_log_open(leat__bad_record_log *log);

/* After a setup that failed: closes the file, and leaves none that has no line.
 */
void leat__bad_record_log_close(leat__bad_record_log *log);

/*
 * A start from this position: forgets all counts and entries but the records
 * known from before the position. The file stays as it is.
 */
void leat__bad_record_log_begin(leat__bad_record_log *log, int64_t epoch,
                                int64_t position);

/*
 * Notes a bad record. A file that cannot be written is no error: it is logged
 * once and counted in `unwritten`. Errors: LEAT_ENOMEM.
 */
int leat__bad_record_log_note(leat__bad_record_log *log, const leat__bad *bad);

/* LEAT_ELIMIT when there were more than max_errors different records. */
int leat__bad_record_log_check(const leat__bad_record_log *log);

#endif
