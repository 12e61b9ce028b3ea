#include "tools/import/importer.h"
#include "base/clock.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/database/lmdb_writer.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A run so far. */
struct run {
    struct importer *source;
    struct lmdb_writer writer;
    struct progress progress;
    char key[IMPORTER_KEY];
    int64_t resumed; /* records that an earlier run wrote */
    int64_t added;   /* records that this run wrote */
    bool complete;   /* all are written; only the target is to be made */
};

char **importer_parse(struct importer *importer, struct usage *usage, int argc,
                      char **argv)
{
    struct option_spec shared[] = {
        option_flag("force", "replace a database that is there",
                    &importer->force),
        option_flag("restart", "discard an unfinished import and start over",
                    &importer->restart),
        option_flag("json", "print one JSON object", &importer->json),
        {0}};
    if (importer->is_fresh)
        memmove(&shared[1], &shared[2], 2 * sizeof(shared[0]));
    static const struct option_removed append = {
        "append",
        "an import makes a whole database; import all inputs at once (--force "
        "replaces OUT), or each into a database of its own"};
    usage->shared = shared;
    usage->removed = importer->is_fresh ? NULL : &append;
    return option_parse(usage, argc, argv);
}

int importer_add(struct importer *importer, const char *format, ...)
{
    char *line = NULL, *text = NULL;
    va_list values;
    va_start(values, format);
    int length = vasprintf(&line, format, values);
    va_end(values);
    for (int i = 0; i < length; i++)
        if (line[i] == '\n')
            line[i] = '?';
    if (length >= 0)
        length = asprintf(&text, "%s%s\n",
                          importer->arguments ? importer->arguments : "", line);
    free(line);
    if (length < 0)
        return leat_error(LEAT_ENOMEM, "out of memory for a list of files");
    free(importer->arguments);
    importer->arguments = text;
    return LEAT_OK;
}

int importer_add_once(struct importer *importer, const char *name)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    importer->is_once = true;
    return importer_add(importer, "%s, read once by process %ld at %lld.%09ld",
                        name, (long)getpid(), (long long)now.tv_sec,
                        now.tv_nsec);
}

int importer_add_file(struct importer *importer, const char *path)
{
    struct stat state;
    char *absolute = NULL;
    if (stat(path, &state))
        return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(state.st_mode))
        return leat_error(LEAT_EFORMAT, "%s: %s", path, strerror(EISDIR));
    if (!S_ISREG(state.st_mode))
        return importer_add_once(importer, path);
    /* It needs more than the file: to look at all directories above. */
    absolute = realpath(path, NULL);
    int status =
        importer_add(importer, "%s, %lld bytes of %lld.%09ld",
                     absolute ? absolute : path, (long long)state.st_size,
                     (long long)state.st_mtim.tv_sec, state.st_mtim.tv_nsec);
    free(absolute);
    return status;
}

int importer_key(char out[IMPORTER_KEY], int digits, int64_t number,
                 const char *name)
{
    int length =
        snprintf(out, IMPORTER_KEY, "%0*lld", digits, (long long)number);
    if (length > digits)
        return leat_error(LEAT_EINVAL,
                          "record %lld: keys of %d digits end before it",
                          (long long)number, digits);
    if (name)
        snprintf(out + length, (size_t)(IMPORTER_KEY - length), "_%s", name);
    return LEAT_OK;
}

static int next_record(struct run *run, struct record *record)
{
    struct importer *source = run->source;
    int status = source->next(source, record);
    return status ? status
                  : importer_key(run->key, source->digits, record->number,
                                 record->name);
}

/* Makes the last record again that an earlier run wrote. A source that gives
   another record there is another source. */
static int resume(struct run *run)
{
    MDB_val key, value;
    struct record record = {.value = ""};
    int64_t number = 0;
    run->resumed = run->writer.records;
    if (!run->resumed)
        return LEAT_OK;
    int status = lmdb_writer_last(&run->writer, &key, &value);
    if (status)
        return status;
    const char *digit = key.mv_data;
    for (int i = 0; i < run->source->digits && (size_t)i < key.mv_size &&
                    digit[i] >= '0' && digit[i] <= '9';
         i++)
        number = 10 * number + (digit[i] - '0');
    if (run->source->seek)
        status = run->source->seek(run->source, number);
    do
        status = status ? status : next_record(run, &record);
    while (!status && record.number < number);
    if (status < 0)
        return status;
    progress_skip(&run->progress, record.number + 1);
    if (!status && strlen(run->key) == key.mv_size &&
        !memcmp(run->key, key.mv_data, key.mv_size) &&
        record.size == value.mv_size &&
        !memcmp(record.value, value.mv_data, value.mv_size))
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: record %.*s is another one than the input has now; "
                      "--restart starts over",
                      run->writer.staging.path, (int)key.mv_size,
                      (const char *)key.mv_data);
}

static int write_records(struct run *run)
{
    for (;;) {
        struct record record;
        int status = next_record(run, &record);
        /* A signal to the whole pipeline may have ended its input. */
        if (status == LEAT_END)
            return interrupt_check();
        if (!status)
            status = lmdb_writer_put(&run->writer, run->key, strlen(run->key),
                                     record.value, record.size);
        if (!status)
            status = interrupt_check();
        if (status)
            return status;
        run->added++;
        progress_update(&run->progress, record.number + 1);
    }
}

static int make_database(struct run *run)
{
    if (run->writer.staging.state == STAGING_COMPLETE)
        return lmdb_writer_publish(&run->writer, 0);
    progress_start(&run->progress, run->source->unit, run->source->count,
                   run->source->json);
    int status = resume(run);
    if (!status)
        status = write_records(run);
    run->complete = !status;
    return status
               ? status
               : lmdb_writer_publish(&run->writer, run->resumed + run->added);
}

/* Keeps the output of a failed run, unless the input was at fault. */
static int report_failure(struct run *run, int status)
{
    /* Another process made the target. */
    bool is_taken = status == LEAT_EINVAL && run->complete;
    bool is_resumable = status == LEAT_EIO || status == LEAT_ENOMEM ||
                        status == LEAT_ECANCELLED || status == LEAT_ESTATE ||
                        is_taken;
    char line[512];
    snprintf(line, sizeof(line), "%s", leat_last_error());
    int64_t kept = is_resumable ? lmdb_writer_keep(&run->writer) : 0;
    const char *records = output_count(kept, "record is", "records are");
    if (is_taken && kept) {
        const struct staging *staging = &run->writer.staging;
        if (run->source->is_once)
            return message_error("%s; %s kept in %s", line, records,
                                 staging->database);
        return message_error("%s; %s kept in %s: move %s away and rerun the "
                             "same command",
                             line, records, staging->path, staging->target);
    }
    /* Its path leads to another directory. */
    if (status == LEAT_ESTATE && run->complete && kept)
        return message_error("%s; %s kept there", line, records);
    if (!kept || status == LEAT_ESTATE)
        return message_error("%s", line);
    if (run->source->is_once)
        return message_error("%s; a pipe cannot be read again, so --restart "
                             "starts over",
                             line);
    return message_error("%s; %s kept; rerun the same command to resume", line,
                         records);
}

static void print_result(const struct run *run, const char *path)
{
    int64_t records = run->writer.records;
    char detail[128] = "";
    if (run->added != records)
        snprintf(detail, sizeof(detail), " (%lld of them by this run)",
                 (long long)run->added);
    printf("%s: %s%s, %s\n", plain_text(path),
           output_count(records, "record", "records"), detail,
           output_bytes(run->writer.bytes));
}

static int report(const struct run *run, const char *path, double seconds)
{
    struct importer *source = run->source;
    const struct staging *staging = &run->writer.staging;
    json_t *object = NULL;
    if (source->json)
        object = json_pack(
            "{s:I, s:o*, s:I, s:f}", "records", (json_int_t)run->writer.records,
            "added", source->is_fresh ? NULL : json_integer(run->added),
            "bytes", (json_int_t)run->writer.bytes, "seconds", seconds);
    else
        print_result(run, path);
    int64_t records = staging->state == STAGING_COMPLETE
                          ? staging->result
                          : run->resumed + run->added;
    int status = source->report ? source->report(source, records, object) : 0;
    int failed = source->json ? output_json(object) : 0;
    return failed ? failed : status;
}

/* What holds where a signal has ended the report. A failed stdout has its line.
 */
static void print_unreported(const struct run *run, const char *path)
{
    const struct importer *source = run->source;
    /* Over what replaced one of its inputs the rerun may be refused; one with
       --restart makes it again, or is refused. */
    bool can_report = !source->is_fresh && !source->is_once &&
                      !source->is_in_place && !source->restart;
    if (!ferror(stdout))
        (void)message_error(
            "%s; %s is complete%s", leat_last_error(), path,
            can_report ? "; rerun the same command for its report" : "");
}

/* For good where the report has arrived: it is true, whatever comes later. The
   message of one that has not may wait for a reader. */
static void block_late_signals(sigset_t *mask)
{
    sigset_t late;
    sigemptyset(&late);
    sigaddset(&late, SIGINT);
    sigaddset(&late, SIGTERM);
    sigaddset(&late, SIGHUP);
    sigaddset(&late, SIGXCPU);
    pthread_sigmask(SIG_BLOCK, &late, NULL);
    if (!ferror(stdout))
        sigorset(mask, mask, &late);
}

void importer_check(const struct importer *importer, const char *path)
{
    const struct staging_options target = {.target = path,
                                           .replace = importer->force,
                                           .restart = importer->restart};
    output_require(staging_check(&target));
}

int importer_run(struct importer *importer, const char *path)
{
    struct run run = {.source = importer};
    const struct staging_options target = {.target = path,
                                           .arguments = importer->arguments,
                                           .in_place = importer->is_in_place,
                                           .replace = importer->force,
                                           .restart = importer->restart};
    double started = leat__clock_seconds();
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    int status = lmdb_writer_open(&run.writer, &target);
    if (!status)
        status = make_database(&run);
    /* A pipe's reader that is gone ends this run after the journal is closed.
     */
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    progress_finish(&run.progress);
    double seconds = leat__clock_seconds() - started;
    int exit_status =
        status ? report_failure(&run, status) : report(&run, path, seconds);
    /* If this run is killed before, the next one reports. */
    if (fflush(stdout))
        (void)output_has_failed();
    block_late_signals(&before);
    /* A signal may have come before the report, and with it the end of stdout.
     */
    run.writer.staging.unreported =
        run.writer.staging.published && interrupt_check() != LEAT_OK;
    if (run.writer.staging.unreported)
        print_unreported(&run, path);
    lmdb_writer_close(&run.writer);
    free(importer->arguments);
    importer->arguments = NULL;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* No rerun gives the report that a full disk has lost. */
    if (!status && exit_status <= EXIT_FOUND && !interrupt_check() &&
        output_flush())
        exit_status =
            message_error("%s; %s is complete", leat_last_error(), path);
    return exit_status;
}
