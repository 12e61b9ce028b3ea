#include "tools/import/importer.h"
#include "base/clock.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/database/lmdb_writer.h"
#include "tools/import/record_key.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <string.h>

/* What a run did so far. */
struct import_run {
    const struct importer_options *options;
    struct record_source *source;
    struct lmdb_writer *writer;
    struct progress progress;
    struct record_key key;
    int64_t resumed; /* records of the source that a run before wrote */
    int64_t added;   /* records that this run wrote */
    int complete;    /* all are written; only the target is to be made */
};

void importer_list_options(struct option_spec out[IMPORTER_OPTIONS],
                           struct importer_options *options)
{
    const struct option_spec table[IMPORTER_OPTIONS] = {
        {"force", NULL, "replace a database that is there", NULL,
         &options->force, 0, 0},
        {"restart", NULL, "begin anew where an unfinished import stands", NULL,
         &options->restart, 0, 0},
        {"json", NULL, "print one JSON object", NULL, &options->json, 0, 0},
    };
    memcpy(out, table, sizeof(table));
}

const struct option_removed importer_removed = {
    "append",
    "an import makes a whole database; import all inputs at once (--force "
    "replaces OUT), or each into a database of its own"};

static int next_record(struct import_run *run, struct record *record)
{
    int status = run->source->next(run->source, record);
    if (!status)
        status = record_key_make(&run->key, run->source->digits, record->number,
                                 record->name);
    return status;
}

/* A source that gives another record there than before is another source. */
static int compare_last(struct import_run *run, const struct record *record)
{
    const void *key, *value;
    size_t key_size, size;
    int status = lmdb_writer_last(run->writer, &key, &key_size, &value, &size);
    if (status)
        return status;
    if (run->key.size == key_size && !memcmp(run->key.text, key, key_size) &&
        record->size == size && !memcmp(record->value, value, size))
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: record %.*s is another one than the input has now; "
                      "--restart begins anew",
                      lmdb_writer_staging(run->writer)->path, (int)key_size,
                      (const char *)key);
}

/* Makes the last record again that a run before wrote. */
static int resume(struct import_run *run)
{
    run->resumed = lmdb_writer_records(run->writer);
    if (!run->resumed)
        return LEAT_OK;
    const void *key, *value;
    size_t key_size, size;
    int digits;
    int64_t number;
    int status = lmdb_writer_last(run->writer, &key, &key_size, &value, &size);
    if (!status)
        status = record_key_parse(key, key_size, &digits, &number);
    if (!status)
        status = run->source->seek(run->source, number);
    struct record record = {.value = ""};
    if (!status)
        status = next_record(run, &record);
    if (status < 0)
        return status;
    progress_skip(&run->progress, record.number + 1);
    if (status == LEAT_END)
        run->key.size = 0;
    return compare_last(run, &record);
}

static int write_records(struct import_run *run)
{
    for (;;) {
        struct record record;
        int status = next_record(run, &record);
        if (status == LEAT_END)
            return LEAT_OK;
        if (!status)
            status = lmdb_writer_put(run->writer, run->key.text, run->key.size,
                                     record.value, record.size);
        if (!status)
            status = interrupt_check();
        if (status)
            return status;
        run->added++;
        progress_update(&run->progress, record.number + 1);
    }
}

static int make_database(struct import_run *run)
{
    if (lmdb_writer_staging(run->writer)->state == STAGING_COMPLETE)
        return lmdb_writer_publish(run->writer, 0);
    progress_start(&run->progress, run->source->unit, run->source->count,
                   run->options->json);
    int status = resume(run);
    if (!status)
        status = write_records(run);
    run->complete = !status;
    if (!status)
        status = lmdb_writer_publish(run->writer, run->resumed + run->added);
    return status;
}

/*
 * Somebody else was at the target. What was made is of use once that is out of
 * the way.
 */
static int say_taken(const struct import_run *run, const char *line,
                     int64_t kept)
{
    const struct staging *staging = lmdb_writer_staging(run->writer);
    return message_error("%s; %s kept in %s: move %s away, and the same "
                         "command goes on",
                         line, output_count(kept, "record is", "records are"),
                         staging->path, staging->target);
}

/* What a run that failed leaves is of use where only the run was at fault. */
static int say_failure(struct import_run *run, int status)
{
    int is_taken = status == LEAT_EINVAL && run->complete;
    int may_go_on = status == LEAT_EIO || status == LEAT_ENOMEM ||
                    status == LEAT_ECANCELLED || status == LEAT_ESTATE ||
                    is_taken;
    char line[512];
    snprintf(line, sizeof(line), "%s", leat_last_error());
    int64_t kept = may_go_on && run->writer ? lmdb_writer_keep(run->writer) : 0;
    if (is_taken)
        return say_taken(run, line, kept);
    if (!kept || status == LEAT_ESTATE)
        return message_error("%s", line);
    return message_error("%s; %s kept, the same command goes on", line,
                         output_count(kept, "record is", "records are"));
}

/* Records of the source in the database. */
static int64_t source_records(const struct import_run *run)
{
    const struct staging *staging = lmdb_writer_staging(run->writer);
    return staging->state == STAGING_COMPLETE ? staging->result
                                              : run->resumed + run->added;
}

static void print_result(const struct import_run *run, const char *path)
{
    int64_t records = lmdb_writer_records(run->writer);
    char detail[128] = "";
    if (run->added != records)
        snprintf(detail, sizeof(detail), " (%lld of them by this run)",
                 (long long)run->added);
    printf("%s: %s%s, %s\n", plain_text(path),
           output_count(records, "record", "records"), detail,
           output_bytes(lmdb_writer_bytes(run->writer)));
}

static int report(const struct import_run *run, const char *path,
                  double seconds)
{
    struct record_source *source = run->source;
    json_t *object = NULL;
    if (run->options->json)
        object = json_pack("{s:I, s:I, s:I, s:f}", "records",
                           (json_int_t)lmdb_writer_records(run->writer),
                           "added", (json_int_t)run->added, "bytes",
                           (json_int_t)lmdb_writer_bytes(run->writer),
                           "seconds", seconds);
    else
        print_result(run, path);
    int status = 0;
    if (source->report)
        status = source->report(source, source_records(run), object);
    int failed = run->options->json ? output_json(object) : 0;
    return failed ? failed : status;
}

int importer_run(const struct importer_options *options,
                 struct record_source *source,
                 const struct import_arguments *arguments, const char *path)
{
    struct import_run run = {.options = options, .source = source};
    const struct staging_options target = {.target = path,
                                           .arguments = arguments->text,
                                           .replace = options->force,
                                           .restart = options->restart};
    double started = leat__clock_seconds();
    int status = lmdb_writer_open(&run.writer, &target);
    if (!status)
        status = make_database(&run);
    progress_finish(&run.progress);
    double seconds = leat__clock_seconds() - started;
    int exit_status =
        status ? say_failure(&run, status) : report(&run, path, seconds);
    /* Whoever is killed before this gets the report from the next run. */
    fflush(stdout);
    lmdb_writer_close(run.writer);
    record_key_finish(&run.key);
    return exit_status;
}
