/* What bounds the feed, told from who was busy and who waited. */
#include "base/error.h"

#include <leat/stats.h>

#include <stdio.h>
#include <string.h>

/* Shares of a time span, in per cent of the threads that took part. */
typedef struct shares {
    double storage;  /* the reader's thread, or the readers among workers */
    double work;     /* decoding and transforming */
    double starved;  /* workers without input */
    double consumer; /* forward waiting */
    double copies;   /* somebody waiting for one; below 0: there are none */
    double full;     /* workers without a slot to fill */
    int threads;     /* that work, the helping caller counted as it helped */
    int cores;       /* that these share; 0: each has its own, or unknown */
} shares;

static const leat_stage_stats *find(const leat_stats *stats, const char *name)
{
    static const leat_stage_stats none = {0};
    for (int i = 0; i < stats->nstages; i++) {
        if (strcmp(stats->stage[i].name, name) == 0)
            return &stats->stage[i];
    }
    return &none;
}

static double per_cent(double part, double whole)
{
    double share = whole > 0 ? 100 * part / whole : 0;
    return share > 100 ? 100 : share;
}

static const char *work_name(const leat_stats *stats)
{
    return find(stats, "decode")->name ? "decode" : "transform";
}

static shares measure(const leat_stats *now, const leat_stats *before)
{
    const leat_stage_stats *reader = find(now, "reader");
    const leat_stage_stats *old_reader = find(before, "reader");
    const leat_stage_stats *work = find(now, work_name(now));
    const leat_stage_stats *old_work = find(before, work_name(now));
    double span = now->elapsed - before->elapsed;
    double waited = now->waited - before->waited;
    double helped = now->helped_runs > before->helped_runs ? waited : 0;
    double capacity = span * work->threads + helped;
    int threads = work->threads + (helped > span / 10);
    /* More threads than cores have no more time than these. */
    if (now->cores > 0 && capacity > span * now->cores)
        capacity = span * now->cores;
    const leat_stage_stats *copy = find(now, "copy");
    double copying = copy->busy - find(before, "copy")->busy;
    return (shares){
        .storage = per_cent(reader->busy - old_reader->busy,
                            reader->threads ? span : capacity),
        .work = per_cent(work->busy - old_work->busy, capacity),
        .starved =
            per_cent(work->blocked_empty - old_work->blocked_empty, capacity),
        .consumer = per_cent(waited, span),
        .copies = copy->name ? per_cent(copying, span) : -1,
        .full = per_cent(work->blocked_full - old_work->blocked_full, capacity),
        .threads = threads,
        .cores = now->cores < threads ? now->cores : 0,
    };
}

int leat_stats_verdict(const leat_stats *now, const leat_stats *before,
                       char *out)
{
    static const leat_stats setup = {0};
    if (!before)
        before = &setup;
    if (!now || !out || now->elapsed <= before->elapsed)
        return leat_error(LEAT_EINVAL,
                          "a verdict needs statistics with time between them");
    const char *work = work_name(now);
    shares found = measure(now, before);
    const char *bound = "no stage alone";
    const char *advice = "look for other programs on these cores";
    if (found.consumer < 10) {
        bound = "the consumer";
        advice = "the feed keeps up";
    } else if (found.copies >= 50 && found.copies > found.storage &&
               found.copies > found.work) {
        bound = "copy";
        advice = "fewer bytes would help: uint8 and transform_on DEVICE";
    } else if (found.storage >= 50 && found.storage > found.work) {
        bound = "storage";
        advice = "faster storage would help";
    } else if (found.work >= 50) {
        bound = work;
        advice = "more cores would help";
    } else if (found.copies >= 0 && found.full >= 50) {
        bound = "the consumer";
        advice = "its streams give batches back late";
    }
    char copies[32] = "", cores[32] = "";
    if (found.cores > 0)
        snprintf(cores, sizeof(cores), " on %d core%s", found.cores,
                 found.cores == 1 ? "" : "s");
    if (found.copies >= 0)
        snprintf(copies, sizeof(copies), "copies busy %.0f %%, ", found.copies);
    snprintf(out, LEAT_VERDICT_MAX,
             "bound by %s: %s by %d thread%s%s busy %.0f %%, storage busy "
             "%.0f %%, %sinput missing %.0f %%, consumer waits %.0f %%; %s",
             bound, work, found.threads, found.threads == 1 ? "" : "s", cores,
             found.work, found.storage, copies, found.starved, found.consumer,
             advice);
    return LEAT_OK;
}
