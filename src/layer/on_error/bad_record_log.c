#include "layer/on_error/bad_record_log.h"
#include "base/cancel.h"
#include "base/log.h"

#include <stdbool.h>
#include <string.h>

void leat__bad_record_log_init(leat__bad_record_log *log,
                               const leat_data_layer_options *options)
{
    log->name = options->name;
    log->max_errors = options->max_errors;
    /* What ends the layer is counted whatever it is. */
    if (log->max_errors >= (int64_t)LEAT__RECORD_SET_MAX)
        log->known.limit = (size_t)log->max_errors + 1;
    leat__bad_record_file_init(&log->file, options->name,
                               options->bad_record_file);
}

void leat__bad_record_log_finish(leat__bad_record_log *log)
{
    leat__bad_record_file_finish(&log->file);
    leat__record_set_finish(&log->known);
}

int leat__bad_record_log_open(leat__bad_record_log *log)
{
    return leat__bad_record_file_open(&log->file);
}

void leat__bad_record_log_close(leat__bad_record_log *log)
{
    leat__bad_record_file_discard(&log->file);
}

void leat__bad_record_log_begin(leat__bad_record_log *log, int64_t epoch,
                                int64_t position)
{
    leat__record_set_rewind(&log->known, epoch, position);
    log->count = 0;
    log->unwritten = 0;
    log->listed = 0;
}

static void keep_listed(leat__bad_record_log *log, const leat__bad *bad)
{
    leat__bad *entry = &log->entry[log->listed];
    *entry = *bad;
    log->list[log->listed] = (leat_bad_record){
        .from = leat__bad_from(entry),
        .reason = entry->line,
    };
    log->listed++;
    leat__log(LEAT_LOG_WARNING, "%s: bad record, %s: %s", log->name,
              bad->from.replacement == LEAT_REPLACEMENT_NONE
                  ? "its batch is lost"
              : bad->from.replacement == LEAT_REPLACEMENT_ZEROS
                  ? "zeros replace it"
                  : "an earlier one replaces it",
              bad->line);
    if (log->listed == LEAT_BAD_RECORDS_MAX)
        leat__log(LEAT_LOG_WARNING,
                  "%s: further bad records are counted, but not logged",
                  log->name);
}

/* Where a reader names no source, its record is known by its position. */
static leat__record_mark make_mark(const leat__bad *bad)
{
    const leat_provenance *from = &bad->from;
    const char *source = from->source ? from->source : "";
    size_t size = strlen(source);
    return (leat__record_mark){.source = leat__record_set_source(source, size),
                               .record =
                                   size > 0 ? from->record : from->position,
                               .epoch = from->epoch,
                               .position = from->position};
}

int leat__bad_record_log_note(leat__bad_record_log *log, const leat__bad *bad)
{
    int cancel = leat__cancel_disable();
    leat__record_mark mark = make_mark(bad);
    int added = leat__record_set_add(&log->known, &mark);
    /* What is not remembered is looked up in the file's own list. */
    bool may_be_new = added != 0 && added != LEAT_ENOMEM;
    log->count++;
    if (log->listed < LEAT_BAD_RECORDS_MAX)
        keep_listed(log, bad);
    if (may_be_new && leat__bad_record_file_add(&log->file, bad) &&
        log->unwritten++ == 0)
        leat__log(LEAT_LOG_WARNING, "%s; the list in it has gaps",
                  leat_last_error());
    leat__cancel_restore(cancel);
    return added == LEAT_ENOMEM ? added : LEAT_OK;
}

int leat__bad_record_log_check(const leat__bad_record_log *log)
{
    int64_t distinct = (int64_t)log->known.n;
    if (log->max_errors < 0 || distinct <= log->max_errors)
        return LEAT_OK;
    const char *line = log->listed > 0 ? log->list[0].reason : "";
    return leat_error(LEAT_ELIMIT,
                      "%s: %lld bad record%s, max_errors allows %lld; the "
                      "first one: %s",
                      log->name, (long long)distinct, distinct == 1 ? "" : "s",
                      (long long)log->max_errors, line);
}
