/*
 * command_bench_reader.c: `leat bench reader`: how fast a pipeline gives its
 * samples.
 *
 * The cases alternate, round by round, so that all see the same machine.
 * Samples are located, not accessed, unless --touch asks for it: a reader over
 * a map gives views, whose pages are fetched on access.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel_for.h"
#include "tools/bench/bench.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/splitmix.h"
#include "tools/command.h"
#include "tools/database/database.h"

#include <leat/reader.h>

#include <math.h>

enum { MOST_BATCH = 64, ROUNDS = 9, MOST_CASES = 8, CLOCK_STRIDE = 512 };

struct reader_options {
    const char *reader;
    int64_t workers;
    double seconds;
    bool touch; /* records are accessed, not only located */
    bool json;
};

enum order { NEXT, IN_ORDER, SHUFFLED };
static const char *const order_names[] = {"next", "read_at in order",
                                          "read_at shuffled"};

struct reading_case {
    enum order order;
    int batch; /* samples in a call */
    int threads;
    struct bench_spread records; /* a second */
    double bytes;                /* a record */
    double rounds[ROUNDS];
};

/* One thread's own. */
struct reading {
    leat_reader *reader; /* for next */
    leat_sample storage[MOST_BATCH];
    leat_sample *sample[MOST_BATCH];
    struct splitmix random;
    int64_t position; /* of read_at in order */
    bool ended;       /* the call before gave LEAT_END */
    int64_t records;
    int64_t bytes;
    double rate; /* records a second, of the round */
    unsigned sum;
    char apart[64];
};

struct reader_bench {
    leat_pipeline *pipeline;
    leat_reader *shared; /* for read_at; NULL: there is none */
    int64_t count;       /* below 0: unknown */
    bool touch;
    int threads;
    int ncases;
    struct reading_case cases[MOST_CASES];
    const struct reading_case *now;
    double seconds; /* of a round */
    struct reading *reading;
};

static void touch(struct reading *reading, const leat_field *field)
{
    const unsigned char *bytes = field->data;
    for (size_t i = 0; i < field->bytes; i += 64)
        reading->sum += bytes[i];
}

static void count_samples(struct reading *reading, int touches, int n)
{
    for (int i = 0; i < n; i++) {
        const leat_sample *sample = reading->sample[i];
        for (int k = 0; k < sample->nfields; k++) {
            reading->bytes += (int64_t)sample->field[k].bytes;
            if (touches)
                touch(reading, &sample->field[k]);
        }
    }
    reading->records += n;
}

/* An epoch's end leads to the next one's beginning. */
static int read_next(struct reading *reading, int n, int *got)
{
    int status =
        leat_reader_next_batch(reading->reader, reading->sample, n, got);
    if (status != LEAT_END) {
        reading->ended = false;
        return status;
    }
    if (reading->ended)
        return leat_error(LEAT_EDATA, "there are no records");
    reading->ended = true;
    *got = 0;
    return leat_reader_seek(reading->reader, (leat_position){0, 0}, NULL);
}

static int read_at(struct reading *reading, const struct reader_bench *bench,
                   int n, int *got)
{
    leat_position at[MOST_BATCH];
    for (int i = 0; i < n; i++) {
        uint64_t word = bench->now->order == SHUFFLED
                            ? splitmix_next(&reading->random)
                            : (uint64_t)reading->position++;
        at[i] = (leat_position){0, (int64_t)(word % (uint64_t)bench->count)};
    }
    return leat_reader_read_at(bench->shared, at, reading->sample, n, got);
}

static int read_once(struct reading *reading, const struct reader_bench *bench)
{
    int n = bench->now->batch, got = 0;
    int status = bench->now->order == NEXT ? read_next(reading, n, &got)
                                           : read_at(reading, bench, n, &got);
    count_samples(reading, bench->touch, got);
    /* A bad record is left out. */
    if (status == LEAT_EDATA && !(bench->now->order == NEXT && reading->ended))
        return LEAT_OK;
    return status;
}

static int read_for_a_while(int i, void *context)
{
    struct reader_bench *bench = context;
    struct reading *reading = &bench->reading[i];
    reading->records = reading->bytes = 0;
    int most = CLOCK_STRIDE / bench->now->batch, calls = 1;
    double start = leat__clock_seconds(), before, now = start;
    do {
        for (int call = 0; call < calls; call++) {
            int status = read_once(reading, bench);
            if (status)
                return status;
        }
        before = now;
        now = leat__clock_seconds();
        /* Slow readers would go on for long beyond the time. */
        if (calls < most && now - before < bench->seconds / 8)
            calls *= 2;
    } while (now - start < bench->seconds);
    reading->rate = (double)reading->records / (now - start);
    return LEAT_OK;
}

static void run_round(struct reader_bench *bench, struct reading_case *what,
                      int round)
{
    bench->now = what;
    output_require(leat__parallel_for("leat-bench", what->threads,
                                      read_for_a_while, bench));
    int64_t records = 0, bytes = 0;
    what->rounds[round] = 0;
    for (int i = 0; i < what->threads; i++) {
        what->rounds[round] += bench->reading[i].rate;
        records += bench->reading[i].records;
        bytes += bench->reading[i].bytes;
    }
    what->bytes = bench_share((double)bytes, (double)records);
}

/* One sample and many in a call, by one thread and by several. */
static void choose_cases(struct reader_bench *bench)
{
    static const struct {
        enum order order;
        int batch, is_parallel;
    } all[] = {{NEXT, 1, 0},
               {NEXT, MOST_BATCH, 0},
               {NEXT, MOST_BATCH, 1},
               {IN_ORDER, MOST_BATCH, 0},
               {SHUFFLED, MOST_BATCH, 0},
               {IN_ORDER, MOST_BATCH, 1},
               {SHUFFLED, MOST_BATCH, 1}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        bool is_possible = (all[i].order == NEXT || bench->shared) &&
                           (!all[i].is_parallel || bench->threads > 1);
        if (is_possible)
            bench->cases[bench->ncases++] = (struct reading_case){
                .order = all[i].order,
                .batch = all[i].batch,
                .threads = all[i].is_parallel ? bench->threads : 1};
    }
}

/* For read_at, where the reader can do it. */
static void open_shared(struct reader_bench *bench)
{
    int64_t count;
    bench->count = -1;
    if (leat_reader_count(bench->reading[0].reader, &count))
        return;
    bench->count = count;
    if (!count || !leat_reader_is_random_access(bench->reading[0].reader))
        return;
    int status =
        peer_open(&bench->shared, bench->pipeline, bench->reading[0].reader);
    if (status != LEAT_ESTATE)
        output_require(status);
}

static void close_bench(void *object)
{
    struct reader_bench *bench = object;
    interrupt_unwatch(bench);
    interrupt_unwatch(bench->shared);
    for (int i = 0; i < bench->threads; i++) {
        leat_reader_close(bench->reading[i].reader);
        for (int k = 0; k < MOST_BATCH; k++)
            leat_sample_finish(&bench->reading[i].storage[k]);
    }
    leat_reader_close(bench->shared);
    leat_pipeline_unref(bench->pipeline);
    leat__free(bench->reading);
}

/* Of a signal: reads may take long. */
static void cancel_bench(void *object)
{
    const struct reader_bench *bench = object;
    for (int i = 0; i < bench->threads; i++)
        leat_reader_cancel(bench->reading[i].reader);
}

static void cancel_shared(void *reader)
{
    leat_reader_cancel(reader);
}

static void open_bench(struct reader_bench *bench,
                       const struct reader_options *options)
{
    bench->touch = options->touch;
    bench->threads = bench_workers(options->workers);
    bench->reading =
        leat__alloc_zero((size_t)bench->threads, sizeof(bench->reading[0]));
    output_require(bench->reading ? LEAT_OK : LEAT_ENOMEM);
    cleanup_add(close_bench, bench);
    output_require(database_pipeline(&bench->pipeline, options->reader));
    for (int i = 0; i < bench->threads; i++) {
        struct reading *reading = &bench->reading[i];
        reading->random = splitmix_start(1, (uint64_t)i);
        for (int k = 0; k < MOST_BATCH; k++) {
            leat_sample_init(&reading->storage[k]);
            reading->sample[k] = &reading->storage[k];
        }
        if (!peer_require(&reading->reader, bench->pipeline,
                          bench->reading[0].reader))
            bench->threads = i;
    }
    interrupt_watch(cancel_bench, bench);
    open_shared(bench);
    if (bench->shared)
        interrupt_watch(cancel_shared, bench->shared);
    choose_cases(bench);
}

/* The first round of each case is for caches and an index, and is not counted.
 */
static void measure(struct reader_bench *bench,
                    const struct reader_options *options)
{
    open_bench(bench, options);
    bench->seconds = options->seconds / (bench->ncases * (ROUNDS + 1));
    struct progress progress;
    progress_start(&progress, "rounds", ROUNDS + 1, options->json);
    for (int round = -1; round < ROUNDS; round++) {
        for (int i = 0; i < bench->ncases; i++) {
            run_round(bench, &bench->cases[i], round < 0 ? 0 : round);
            if (interrupt_check())
                output_exit(EXIT_FAILED);
        }
        progress_update(&progress, round + 2);
    }
    progress_finish(&progress);
    for (int i = 0; i < bench->ncases; i++)
        bench->cases[i].records =
            bench_spread_of(bench->cases[i].rounds, ROUNDS);
}

/* Adds what the readers of one chain did to those of the same paths. */
static void add_chain(leat_reader *reader,
                      leat_reader_stats all[LEAT_MAX_READER_STATS], int *n)
{
    leat_reader_stats own[LEAT_MAX_READER_STATS];
    int found = leat_reader_chain_stats(reader, own);
    for (int i = 0; i < found; i++) {
        int k = 0;
        while (k < *n && strcmp(all[k].path, own[i].path) != 0)
            k++;
        if (k == LEAT_MAX_READER_STATS)
            continue;
        if (k == *n) {
            all[(*n)++] = own[i];
            continue;
        }
        all[k].items += own[i].items;
        all[k].bytes += own[i].bytes;
        all[k].busy += own[i].busy;
        all[k].blocked += own[i].blocked;
        all[k].memory += own[i].memory;
    }
}

/* The readers of all threads, and of read_at. One alone has a row for each
   case. */
static void report_chain(struct report *report,
                         const struct reader_bench *bench)
{
    leat_reader_stats all[LEAT_MAX_READER_STATS];
    int n = 0;
    for (int i = 0; i < bench->threads; i++)
        add_chain(bench->reading[i].reader, all, &n);
    if (bench->shared)
        add_chain(bench->shared, all, &n);
    if (n > 1)
        report_readers(report, all, n);
}

static int print_report(const struct reader_bench *bench, bool json)
{
    struct report report;
    report_begin(&report, json);
    for (int i = 0; i < bench->ncases; i++) {
        const struct reading_case *what = &bench->cases[i];
        double rate = what->records.median;
        const struct figure figures[] = {
            {"case", "case", REPORT_TEXT, 0, order_names[what->order]},
            {"batch", "batch", REPORT_COUNT, what->batch, NULL},
            {"threads", "threads", REPORT_COUNT, what->threads, NULL},
            {"records_per_s.median", "records/s", REPORT_RATE, rate, NULL},
            {"records_per_s.p10", "p10", REPORT_RATE, what->records.p10, NULL},
            {"records_per_s.p90", "p90", REPORT_RATE, what->records.p90, NULL},
            {"ns_per_record", "time/record", REPORT_NS,
             1e9 * bench_share(what->threads, rate), NULL},
            {"bytes_per_s", "bytes/s", REPORT_BANDWIDTH, rate * what->bytes,
             NULL},
            {0}};
        report_row_of(&report, "results", figures);
    }
    const struct figure figures[] = {
        {"random_access", NULL, REPORT_FLAG, bench->shared != NULL, NULL},
        {"touched", NULL, REPORT_FLAG, bench->touch, NULL},
        {"records", NULL, REPORT_COUNT,
         bench->count < 0 ? NAN : (double)bench->count, NULL},
        {0}};
    report_figures(&report, figures);
    report_chain(&report, bench);
    return report_end(&report);
}

static int run(const struct reader_options *options)
{
    struct reader_bench bench = {0};
    interrupt_catch_opening();
    measure(&bench, options);
    int exit_status = print_report(&bench, options->json);
    cleanup_remove(&bench);
    close_bench(&bench);
    return exit_status;
}

int command_bench_reader(int argc, char **argv)
{
    struct reader_options options = {.seconds = 3};
    const struct option_spec specs[] = {
        {"reader", "TEXT", "an LMDB's path, or a pipeline's text", option_text,
         &options.reader, 0, 0},
        {"workers", "N", "threads (one for each core)", option_int,
         &options.workers, 0, BENCH_MOST_WORKERS},
        bench_seconds(&options.seconds),
        option_flag("touch", "read the bytes of the records, too",
                    &options.touch),
        option_flag("json", "print one JSON object", &options.json),
        {0}};
    const struct usage usage = {
        .command = "bench reader",
        .arguments = "--reader TEXT [options]",
        .about = "Measures how many records a second a pipeline gives, in\n"
                 "order and shuffled, by one thread and by --workers.",
        .options = specs,
    };
    option_parse(&usage, argc, argv);
    if (!options.reader)
        message_misuse(usage.command, "bench reader: give --reader");
    return run(&options);
}
