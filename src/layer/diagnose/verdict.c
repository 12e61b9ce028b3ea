/*
 * The bottleneck, derived from which threads were busy and what others waited
 * for.
 *
 * All decisions are made on the rounded shares that the sentence prints, so
 * that it cannot contradict them.
 */
#include "base/error.h"

#include <leat/stats.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Shares of a time span in per cent, rounded. */
typedef struct shares {
    /* Of the threads' time, at most 100 together. */
    int work;    /* decoding and transforming */
    int reading; /* where there is no reader thread */
    int input;   /* waiting for the reader thread */
    int room;    /* waiting for a batch to fill */
    int lock;    /* waiting for each other */
    /* Of the span. */
    int storage; /* the reader thread; without one, as `reading` */
    int serial;  /* all reading, as if one thread did it */
    int copies;  /* somebody waiting for one; below 0: there are none */
    int waits;   /* forward, for others to make its batch */
    int helps;   /* forward, making it itself */
    int threads; /* that work, the helping caller counted as it helped */
    int cores;   /* that these share; 0: each has its own, or unknown */
    int spare;   /* cores that neither they nor the caller use */
    /* Of a chain of readers, the one that takes most of `storage`. */
    const char *reader; /* its path; NULL: there is only one */
    int of_reader;      /* its share, at most `storage` */
    bool reader_waits;  /* for its own source, longer than any is busy */
} shares;

/* A bottleneck: its word, its name in a sentence, and advice. */
typedef struct bound {
    const char *word;
    const char *phrase;
    const char *advice;
} bound;

/*
 * The shares from which forward is late, a stage is the bottleneck, and a wait
 * is no accident.
 */
enum { FORWARD_LATE = 10, STAGE_BUSY = 50, WAIT_MATTERS = 20 };
/* And reading keeps one thread at it. */
enum { READER_FULL = 80 };

static const leat_stage_stats *find(const leat_stats *stats, const char *name)
{
    static const leat_stage_stats none = {0};
    for (int i = 0; i < stats->nstages; i++) {
        if (strcmp(stats->stage[i].name, name) == 0)
            return &stats->stage[i];
    }
    return &none;
}

static int per_cent(double part, double whole)
{
    double share = whole > 0 && part > 0 ? 100 * part / whole : 0;
    return share > 100 ? 100 : (int)(share + 0.5);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static const char *work_name(const leat_stats *stats)
{
    return find(stats, "decode")->name ? "decode" : "transform";
}

/* What happened since `before`. */
static leat_stage_stats since(const leat_stats *now, const leat_stats *before,
                              const char *name)
{
    leat_stage_stats stage = *find(now, name);
    const leat_stage_stats *old = find(before, name);
    stage.busy -= old->busy;
    stage.blocked_empty -= old->blocked_empty;
    stage.blocked_full -= old->blocked_full;
    return stage;
}

/*
 * How threads that had `capacity` spent it. More threads than cores wait while
 * others run: their waits together cannot exceed the cores' idle time.
 */
static void split_time(shares *out, double capacity, double reading,
                       const leat_stage_stats *work, double lock)
{
    double left = capacity - reading - work->busy;
    double waits = work->blocked_empty + work->blocked_full + lock;
    double scale = waits > left ? left / waits : 1;
    out->reading = per_cent(reading, capacity);
    out->work = smaller(per_cent(work->busy, capacity), 100 - out->reading);
    int rest = 100 - out->reading - out->work;
    out->input = smaller(per_cent(scale * work->blocked_empty, capacity), rest);
    rest -= out->input;
    out->room = smaller(per_cent(scale * work->blocked_full, capacity), rest);
    out->lock = smaller(per_cent(scale * lock, capacity), rest - out->room);
}

/* The reader of that path, at `before`. */
static leat_reader_stats find_reader(const leat_stats *before, const char *path)
{
    for (int i = 0; i < before->nreaders; i++)
        if (strcmp(before->reader[i].path, path) == 0)
            return before->reader[i];
    return (leat_reader_stats){.path = ""};
}

/*
 * The reader that is busiest in `whole`. One that waits longer for its own
 * source is named instead; of those that wait for each other the last.
 */
static void find_busiest(shares *out, const leat_stats *now,
                         const leat_stats *before, double whole)
{
    int waits = 0;
    const char *waiting = NULL;
    for (int i = 0; i < now->nreaders && now->nreaders > 1; i++) {
        const leat_reader_stats *reader = &now->reader[i];
        leat_reader_stats old = find_reader(before, reader->path);
        int busy = per_cent(reader->busy - old.busy, whole);
        int blocked = per_cent(reader->blocked - old.blocked, whole);
        if (!out->reader || busy > out->of_reader) {
            out->reader = reader->path;
            out->of_reader = busy;
        }
        if (blocked > 0 && blocked >= waits) {
            waiting = reader->path;
            waits = blocked;
        }
    }
    out->reader_waits = waits > out->of_reader;
    if (out->reader_waits) {
        out->reader = waiting;
        out->of_reader = waits;
    }
    out->of_reader = smaller(out->of_reader, out->storage);
}

static shares measure(const leat_stats *now, const leat_stats *before)
{
    leat_stage_stats reader = since(now, before, "reader");
    leat_stage_stats work = since(now, before, work_name(now));
    leat_stage_stats copy = since(now, before, "copy");
    double span = now->elapsed - before->elapsed;
    double waited = now->waited - before->waited;
    int helps = now->helped_chunks > before->helped_chunks;
    double capacity = span * work.threads + (helps ? waited : 0);
    int threads = work.threads + (helps && waited > span / 10);
    /* More threads than cores have no more time than these. */
    if (now->cores > 0 && capacity > span * now->cores)
        capacity = span * now->cores;
    shares found = {
        .serial = per_cent(reader.busy, span),
        .copies = copy.name ? per_cent(copy.busy, span) : -1,
        .threads = threads,
        .cores = now->cores < threads ? now->cores : 0,
        .spare = now->cores - work.threads - 1,
    };
    split_time(&found, capacity, reader.threads ? 0 : reader.busy, &work,
               now->blocked_lock - before->blocked_lock);
    found.storage = reader.threads ? found.serial : found.reading;
    find_busiest(&found, now, before, reader.threads ? span : capacity);
    int late = per_cent(waited, span);
    found.helps = smaller(per_cent(now->helped - before->helped, span), late);
    found.waits = late - found.helps;
    return found;
}

static const bound storage = {"storage", "storage",
                              "faster storage would help"};
static const bound copy = {
    "copy", "copy", "fewer bytes would help: uint8 and transform_on DEVICE"};

/* Where the threads hardly waited. */
static bound judge_busy(const shares *found, const char *work)
{
    if (found->storage > found->work && found->reading >= STAGE_BUSY)
        return (bound){"storage", "storage",
                       "faster storage or more cores would help"};
    if (found->storage > found->work && found->storage >= STAGE_BUSY)
        return storage;
    if (found->work + found->reading < STAGE_BUSY)
        return (bound){"none", "no stage alone",
                       "look for other programs on these cores"};
    return (bound){work, work,
                   found->spare > 0 ? "more workers would help"
                                    : "more cores would help"};
}

/*
 * The threads waited for a free batch. Where forward filled batches, some were
 * free.
 */
static bound judge_room(const shares *found)
{
    if (found->helps > found->waits)
        return (bound){"room", "room",
                       "forward makes batches itself before workers wake"};
    if (found->copies >= found->room)
        return copy;
    if (found->copies >= 0)
        return (bound){"consumer", "the consumer",
                       "its streams give batches back late"};
    return (bound){"room", "room", "a larger prefetch may help"};
}

static bound judge(const shares *found, const char *work)
{
    int wait = found->input > found->lock ? found->input : found->lock;
    if (found->waits + found->helps < FORWARD_LATE)
        return (bound){"consumer", "the consumer", NULL};
    if (found->copies >= STAGE_BUSY && found->copies > found->storage &&
        found->copies > found->work)
        return copy;
    if (found->room > wait && found->room >= WAIT_MATTERS)
        return judge_room(found);
    if (wait < WAIT_MATTERS)
        return judge_busy(found, work);
    /* Workers that read under the lock wait for storage there. */
    bool is_lock = found->input < found->lock;
    if (is_lock ? found->serial >= READER_FULL : found->storage >= STAGE_BUSY)
        return storage;
    if (is_lock)
        return (bound){"lock", "the lock",
                       "larger batches or fewer workers may help"};
    return (bound){"input", "input",
                   "the reader's thread is not busy: look for other programs"};
}

/* As far as the caller's structure goes; NULL: all zero. */
static leat_stats read_stats(const leat_stats *stats)
{
    leat_stats all = {0};
    if (stats)
        memcpy(&all, stats,
               stats->size < sizeof(all) ? stats->size : sizeof(all));
    return all;
}

/* `found->reader` is borrowed from `end`. */
static int examine(const leat_stats *end, const leat_stats *before,
                   shares *found, bound *out)
{
    leat_stats begin = read_stats(before);
    if (end->elapsed <= begin.elapsed)
        return leat_error(LEAT_EINVAL,
                          "a verdict needs statistics with time between them");
    *found = measure(end, &begin);
    *out = judge(found, work_name(end));
    return LEAT_OK;
}

/*
 * Writes " (shuffle/lmdb 90 %)" into `out`, where reading is what bounds and
 * there are several readers; of a long path the end that fits.
 */
static void name_reader(const shares *found, const bound *by, char *out,
                        int size)
{
    char share[32];
    *out = 0;
    if (!found->reader || found->of_reader == 0 ||
        strcmp(by->word, storage.word) != 0)
        return;
    const char *path = found->reader;
    int n = snprintf(share, sizeof(share), "%s %d %%)",
                     found->reader_waits ? " waits" : "", found->of_reader);
    int most = size - 1 - n - (int)strlen(" (");
    int length = (int)strlen(path);
    if (length <= most)
        snprintf(out, (size_t)size, " (%s%s", path, share);
    else if (most > (int)strlen("..."))
        snprintf(out, (size_t)size, " (...%s%s", path + length - most + 3,
                 share);
}

const char *leat_stats_bound_by(const leat_stats *now, const leat_stats *before)
{
    shares found;
    bound by;
    leat_stats end = read_stats(now);
    return examine(&end, before, &found, &by) ? NULL : by.word;
}

/* The sentence, with `reader` after the share of storage. Returns its length.
 */
static int write_line(const shares *found, const bound *by, const char *work,
                      const char *reader, char *out)
{
    char copies[32] = "";
    char cores[32] = "";
    if (found->cores > 0)
        snprintf(cores, sizeof(cores), " on %d core%s", found->cores,
                 found->cores == 1 ? "" : "s");
    if (found->copies >= 0)
        snprintf(copies, sizeof(copies), "copies busy %d %%, ", found->copies);
    return snprintf(
        out, LEAT_VERDICT_MAX,
        "%sbound by %s: %s by %d thread%s%s busy %d %%, storage busy "
        "%d %%%s, %swaits for input %d %%, room %d %%, lock %d %%; forward "
        "waits %d %%, helps %d %%%s%s",
        by->advice ? "" : "the feed keeps up; ", by->phrase, work,
        found->threads, found->threads == 1 ? "" : "s", cores, found->work,
        found->storage, reader, copies, found->input, found->room, found->lock,
        found->waits, found->helps, by->advice ? "; " : "",
        by->advice ? by->advice : "");
}

int leat_stats_verdict(const leat_stats *now, const leat_stats *before,
                       char *out)
{
    shares found;
    bound by;
    char reader[LEAT_VERDICT_MAX];
    if (!out)
        return leat_error(LEAT_EINVAL, "a verdict needs room to be written to");
    leat_stats end = read_stats(now);
    int status = examine(&end, before, &found, &by);
    if (status)
        return status;
    const char *work = work_name(&end);
    int n = write_line(&found, &by, work, "", out);
    name_reader(&found, &by, reader, LEAT_VERDICT_MAX - n);
    if (*reader)
        write_line(&found, &by, work, reader, out);
    return LEAT_OK;
}
