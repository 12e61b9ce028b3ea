/*
 * bench_joins: what decorators over several readers cost.
 *
 *     bench_joins [--json] [--seconds S]
 *
 * zip: two sources whose next copies BYTES into each sample, or in memory
 * (stable), read alone and zipped, 64 samples a call, by next and by read_at;
 * the ratio is that of zip to the sum of both. mix and interleave: four sources
 * in memory, 64 positions a call, in order and permuted, beside the same
 * positions of one source of that size: what they add. All in processor time;
 * the readers alternate, round by round, for S seconds (6) together.
 */
#include "tools/bench/bench.h"
#include "tools/bench/report.h"
#include "tools/cli/output.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, RECORDS = 4096, MOST = 64, INPUTS = 4, LARGEST = 16384 };

static unsigned char bytes[LARGEST];

/* A stream whose samples are copies. */
struct copies {
    leat_reader reader;
    leat_field_spec spec;
    int64_t next;
};

static int copies_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    *out = &((struct copies *)reader)->spec;
    *n = 1;
    return LEAT_OK;
}

static int copies_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    struct copies *self = (struct copies *)reader;
    size_t size = (size_t)self->spec.shape[0];
    for (; *got < n; ++*got) {
        leat_sample *sample = out[*got];
        if (self->next == RECORDS)
            return LEAT_END;
        void *copy = leat_sample_take(sample, size);
        if (!copy)
            return LEAT_ENOMEM;
        memcpy(copy, bytes, size);
        sample->stable = 0;
        sample->from.source = "copies";
        sample->from.record = self->next++;
        leat_sample_set(sample, sample->nfields, LEAT_UINT8, 1,
                        self->spec.shape, copy);
    }
    return LEAT_OK;
}

static int copies_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    (void)mark;
    ((struct copies *)reader)->next = position.index;
    return LEAT_OK;
}

static void copies_cancel(leat_reader *reader)
{
    (void)reader;
}

static void copies_close(leat_reader *reader)
{
    free(reader);
}

static const leat_reader_ops copies_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "copies",
    .fields = copies_fields,
    .next = copies_next,
    .seek = copies_seek,
    .cancel = copies_cancel,
    .close = copies_close,
};

static int copies_open(const leat_open *open, leat_reader **out)
{
    struct copies *self = calloc(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = &copies_ops;
    self->spec =
        (leat_field_spec){.name = "data",
                          .dtype = LEAT_UINT8,
                          .ndim = 1,
                          .shape = {leat_args_number(open->args, "size")}};
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_argument copies_arguments[] = {
    {.name = "size",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .max = LARGEST},
    {0},
};

static const leat_reader_type copies_type = {
    .size = sizeof(leat_reader_type),
    .name = "copies",
    .arguments = copies_arguments,
    .argument_size = sizeof(leat_argument),
    .open = copies_open,
};

/* `size` 0: in memory. */
static leat_pipeline *make_source(int size, int64_t records)
{
    static unsigned char images[INPUTS * RECORDS][784];
    const leat_memory_field field = {
        "data", LEAT_UINT8, 3, {1, 28, 28}, images};
    char text[16];
    leat_pipeline *pipeline;
    snprintf(text, sizeof(text), "%d", size);
    output_require(size > 0
                       ? leat_pipeline_create(&pipeline, &copies_type, text,
                                              NULL, NULL, NULL, 0)
                       : leat_pipeline_memory(&pipeline, &field, 1, records));
    return pipeline;
}

static leat_reader *open_pipeline(leat_pipeline *pipeline)
{
    leat_reader *reader;
    output_require(leat_pipeline_open(pipeline, &reader));
    leat_pipeline_unref(pipeline);
    return reader;
}

static leat_reader *open_zip(int size)
{
    static const char *const prefix[] = {"a", "b"};
    const leat_zip_options options = {.size = sizeof(options),
                                      .prefix = prefix};
    leat_pipeline *input[] = {make_source(size, RECORDS),
                              make_source(size, RECORDS)};
    leat_pipeline *zip;
    output_require(leat_pipeline_zip(&zip, input, 2, &options));
    leat_pipeline_unref(input[0]);
    leat_pipeline_unref(input[1]);
    return open_pipeline(zip);
}

/* 0: mix; 1: mix in the even order; 2: interleave. */
static leat_reader *open_map(int which)
{
    static const double weight[] = {0.4, 0.3, 0.2, 0.1};
    const leat_mix_options options = {.size = sizeof(options),
                                      .weight = weight,
                                      .even = which == 1,
                                      .on_end = LEAT_MIX_DROP};
    leat_pipeline *input[INPUTS], *map;
    for (int i = 0; i < INPUTS; i++)
        input[i] = make_source(0, RECORDS);
    output_require(which < 2
                       ? leat_pipeline_mix(&map, input, INPUTS, &options)
                       : leat_pipeline_interleave(&map, input, INPUTS, NULL));
    for (int i = 0; i < INPUTS; i++)
        leat_pipeline_unref(input[i]);
    return open_pipeline(map);
}

static leat_sample storage[MOST];
static leat_sample *sample[MOST];

static int64_t read_epoch(leat_reader *reader)
{
    int64_t all = 0;
    int status, got;
    while (!(status = leat_reader_next_batch(reader, sample, MOST, &got)))
        all += got;
    if (status != LEAT_END)
        output_require(status);
    output_require(leat_reader_seek(reader, (leat_position){0, 0}, NULL));
    return all;
}

/* `step` is prime to the count: 1 for their order. */
static int64_t read_positions(leat_reader *reader, int64_t step)
{
    int64_t count;
    output_require(leat_reader_count(reader, &count));
    for (int64_t at = 0; at < count; at += MOST) {
        leat_position where[MOST];
        int n = count - at < MOST ? (int)(count - at) : MOST;
        for (int i = 0; i < n; i++)
            where[i] = (leat_position){0, (at + i) * step % count};
        for (int done = 0, got; done < n; done += got)
            output_require(leat_reader_read_at(reader, where + done,
                                               sample + done, n - done, &got));
    }
    return count;
}

/* Nanoseconds of processor time a sample; step 0: by next. */
static double measure(leat_reader *reader, int64_t step, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t samples = 0;
    do {
        samples += step ? read_positions(reader, step) : read_epoch(reader);
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)samples;
}

static void add_row(struct report *report, const char *name, double alone,
                    double joined, double figure, int is_ratio)
{
    const struct figure figures[] = {
        {"case", "case", REPORT_TEXT, 0, name},
        {"ns.inputs", "inputs", REPORT_NS, alone, NULL},
        {"ns.joined", "joined", REPORT_NS, joined, NULL},
        {is_ratio ? "ratio" : "ns.added", is_ratio ? "ratio" : "added",
         is_ratio ? REPORT_REAL : REPORT_NS, figure, NULL},
        {0}};
    report_row_of(report, is_ratio ? "zip" : "maps", figures);
}

static void measure_zip(struct report *report, const char *name, int size,
                        int64_t step, double seconds)
{
    double alone[ROUNDS], joined[ROUNDS], ratio[ROUNDS];
    leat_reader *one = open_pipeline(make_source(size, RECORDS));
    leat_reader *two = open_pipeline(make_source(size, RECORDS));
    leat_reader *zip = open_zip(size);
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        double each = seconds / (3 * (ROUNDS + 1));
        alone[at] = measure(one, step, each) + measure(two, step, each);
        joined[at] = measure(zip, step, each);
        ratio[at] = joined[at] / alone[at];
    }
    leat_reader_close(one);
    leat_reader_close(two);
    leat_reader_close(zip);
    add_row(report, name, bench_spread_of(alone, ROUNDS).median,
            bench_spread_of(joined, ROUNDS).median,
            bench_spread_of(ratio, ROUNDS).median, 1);
}

static void measure_map(struct report *report, const char *name, int which,
                        int64_t step, double seconds)
{
    double alone[ROUNDS], joined[ROUNDS], added[ROUNDS];
    leat_reader *one = open_pipeline(make_source(0, INPUTS * RECORDS));
    leat_reader *map = open_map(which);
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round;
        double each = seconds / (2 * (ROUNDS + 1));
        alone[at] = measure(one, step, each);
        joined[at] = measure(map, step, each);
        added[at] = joined[at] - alone[at];
    }
    leat_reader_close(one);
    leat_reader_close(map);
    add_row(report, name, bench_spread_of(alone, ROUNDS).median,
            bench_spread_of(joined, ROUNDS).median,
            bench_spread_of(added, ROUNDS).median, 0);
}

int main(int argc, char **argv)
{
    double seconds = 6;
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_joins [--json] [--seconds S]\n");
            return 64;
        }
    }
    struct report report;
    report_begin(&report, json);
    for (int i = 0; i < MOST; i++)
        sample[i] = &storage[i];
    double each = seconds / 12;
    measure_zip(&report, "zip, in memory, by next", 0, 0, each);
    measure_zip(&report, "zip, in memory, read_at", 0, 1, each);
    measure_zip(&report, "zip, copies of 16 B", 16, 0, each);
    measure_zip(&report, "zip, copies of 784 B", 784, 0, each);
    measure_zip(&report, "zip, copies of 4 KiB", 4096, 0, each);
    measure_zip(&report, "zip, copies of 16 KiB", 16384, 0, each);
    measure_map(&report, "mix, in order", 0, 1, each);
    measure_map(&report, "mix, permuted", 0, 6151, each);
    measure_map(&report, "mix even, in order", 1, 1, each);
    measure_map(&report, "mix even, permuted", 1, 6151, each);
    measure_map(&report, "interleave, in order", 2, 1, each);
    measure_map(&report, "interleave, permuted", 2, 6151, each);
    return report_end(&report);
}
