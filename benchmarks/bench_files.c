/*
 * bench_files: readers of files beside bare loops over the mapped file.
 *
 *     bench_files [--json] [--seconds S] [--dir DIR]
 *
 * TFRecords, read with both checksums checked, and records of one size, whose
 * bytes both sides add up; in memory, 64 MiB each, 64 samples a call, by one
 * thread. Then the index of a million TFRecords beside a walk over their
 * headers that checks the lengths. The sides alternate, round by round, for S
 * seconds (5) together; times are of the processor, shares those of the same
 * round.
 */
#include "base/crc32c.h"
#include "readers/record/record_format.h"
#include "tools/bench/bench.h"
#include "tools/bench/report.h"
#include "tools/cli/output.h"

#include <leat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 15, BATCH = 64, SIZES = 4 };
#define FILE_BYTES ((size_t)64 << 20)

static const size_t sizes[SIZES] = {100, 784, 3073, 16384};

/* A file that is measured, mapped for the bare loop. */
struct file {
    char path[512];
    const unsigned char *base;
    size_t size;
    size_t record; /* bytes of data */
    int64_t count;
};

static volatile uint64_t sink;

static uint64_t add_up(const unsigned char *data, size_t size)
{
    uint64_t sum = 0, word;
    for (; size >= 8; size -= 8, data += 8) {
        memcpy(&word, data, 8);
        sum += word;
    }
    for (; size > 0; size--)
        sum += *data++;
    return sum;
}

static void write_bytes(FILE *to, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, to) != size) {
        perror("bench_files: write");
        exit(1);
    }
}

static const unsigned char *map_file(const struct file *file)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    void *base = mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        perror(file->path);
        exit(1);
    }
    close(fd);
    return base;
}

/* Records of pseudo-random bytes; with sums they are TFRecords. */
static void make_file(struct file *file, const char *dir, size_t record,
                      int64_t count, int has_sums)
{
    unsigned char *data = malloc(record);
    uint64_t length = record, drawn = 1;
    uint32_t length_sum = leat__crc32c_mask(leat__crc32c(0, &length, 8));
    snprintf(file->path, sizeof(file->path), "%s/bench_files.%ld", dir,
             (long)getpid());
    FILE *to = fopen(file->path, "wb");
    if (!to || !data) {
        perror(file->path);
        exit(1);
    }
    for (int64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < record; k++) {
            drawn = drawn * 6364136223846793005u + 1442695040888963407u;
            data[k] = (unsigned char)(drawn >> 56);
        }
        uint32_t sum = leat__crc32c_mask(leat__crc32c(0, data, record));
        if (has_sums) {
            write_bytes(to, &length, 8);
            write_bytes(to, &length_sum, 4);
        }
        write_bytes(to, data, record);
        if (has_sums)
            write_bytes(to, &sum, 4);
    }
    fclose(to);
    free(data);
    file->record = record;
    file->count = count;
    file->size = (size_t)count * (record + (has_sums ? 16 : 0));
    file->base = map_file(file);
}

static void remove_file(struct file *file)
{
    munmap((void *)(uintptr_t)file->base, file->size);
    unlink(file->path);
}

/* The bare loops: what they return keeps the compiler from leaving them out. */
static int64_t bare_tfrecords(const struct file *file)
{
    int64_t good = 0;
    uint64_t length;
    for (size_t at = 0; at < file->size; at += length + 16) {
        const unsigned char *header = file->base + at;
        length = leat__get_u64(header);
        if (leat__crc32c_mask(leat__crc32c(0, header, 8)) !=
                leat__get_u32(header + 8) ||
            length > file->size - at - 16)
            break;
        good += leat__crc32c_mask(leat__crc32c(0, header + 12, length)) ==
                leat__get_u32(header + 12 + length);
    }
    return good;
}

/* Maps the file anew, as opening it does. */
static int64_t bare_headers(const struct file *file)
{
    int64_t good = 0;
    uint64_t length;
    const unsigned char *base = map_file(file);
    for (size_t at = 0; at < file->size; at += length + 16, good++) {
        const unsigned char *header = base + at;
        length = leat__get_u64(header);
        if (leat__crc32c_mask(leat__crc32c(0, header, 8)) !=
                leat__get_u32(header + 8) ||
            length > file->size - at - 16)
            break;
    }
    munmap((void *)(uintptr_t)base, file->size);
    return good;
}

static int64_t bare_fixed(const struct file *file)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < file->size; at += file->record)
        sum += add_up(file->base + at, file->record);
    sink += sum;
    return file->count;
}

/* An epoch of a reader; adds up the bytes where asked to. */
static int64_t read_epoch(leat_reader *reader, int adds_up)
{
    static leat_sample storage[BATCH];
    leat_sample *sample[BATCH];
    int64_t all = 0;
    uint64_t sum = 0;
    int status, got;
    for (int i = 0; i < BATCH; i++)
        sample[i] = &storage[i];
    while (!(status = leat_reader_next_batch(reader, sample, BATCH, &got))) {
        all += got;
        for (int i = 0; adds_up && i < got; i++)
            sum += add_up(sample[i]->field[0].data, sample[i]->field[0].bytes);
    }
    if (status != LEAT_END)
        output_require(status);
    output_require(leat_reader_seek(reader, (leat_position){0, 0}, NULL));
    sink += sum;
    return all;
}

static leat_reader *open_reader(const struct file *file, const char *type)
{
    char text[640];
    leat_pipeline *pipeline;
    leat_reader *reader;
    if (strcmp(type, "fixed") == 0)
        snprintf(text, sizeof(text), "fixed:%s,record=%zu", file->path,
                 file->record);
    else
        snprintf(text, sizeof(text), "%s:%s", type, file->path);
    output_require(leat_pipeline_parse(&pipeline, text));
    output_require(leat_pipeline_open(pipeline, &reader));
    leat_pipeline_unref(pipeline);
    return reader;
}

static int64_t index_file(const struct file *file)
{
    int64_t count;
    leat_reader *reader = open_reader(file, "tfrecord");
    output_require(leat_reader_count(reader, &count));
    leat_reader_close(reader);
    return count;
}

/* One side of a comparison. */
struct side {
    int64_t (*bare)(const struct file *file);
    leat_reader *reader; /* NULL: the index */
    int adds_up;
};

static double take(const struct file *file, const struct side *side,
                   int is_leat, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t records = 0;
    do {
        int64_t more = !is_leat       ? side->bare(file)
                       : side->reader ? read_epoch(side->reader, side->adds_up)
                                      : index_file(file);
        if (more != file->count) {
            fprintf(stderr, "bench_files: %lld of %lld records\n",
                    (long long)more, (long long)file->count);
            exit(1);
        }
        records += more;
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)records;
}

static void compare(struct report *report, const char *name,
                    const struct file *file, const struct side *side,
                    double seconds)
{
    double bare[ROUNDS], own[ROUNDS], share[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        bare[at] = take(file, side, 0, seconds / (2 * (ROUNDS + 1)));
        own[at] = take(file, side, 1, seconds / (2 * (ROUNDS + 1)));
        share[at] = bare[at] / own[at];
    }
    struct bench_spread of_share = bench_spread_of(share, ROUNDS);
    const struct figure figures[] = {
        {"case", "case", REPORT_TEXT, 0, name},
        {"bytes", "bytes", REPORT_COUNT, (double)file->record, NULL},
        {"bare_ns", "bare", REPORT_NS, bench_spread_of(bare, ROUNDS).median,
         NULL},
        {"leat_ns", "leat", REPORT_NS, bench_spread_of(own, ROUNDS).median,
         NULL},
        {"share.median", "share", REPORT_SHARE, of_share.median, NULL},
        {"share.p10", "p10", REPORT_SHARE, of_share.p10, NULL},
        {0}};
    report_row_of(report, "results", figures);
}

static void measure(struct report *report, const char *dir, double seconds)
{
    struct file file;
    for (int i = 0; i < 2 * SIZES; i++) {
        int is_fixed = i >= SIZES;
        size_t record = sizes[i % SIZES];
        make_file(&file, dir, record,
                  (int64_t)(FILE_BYTES / (record + (is_fixed ? 0 : 16))),
                  !is_fixed);
        struct side side = {is_fixed ? bare_fixed : bare_tfrecords,
                            open_reader(&file, is_fixed ? "fixed" : "tfrecord"),
                            is_fixed};
        compare(report, is_fixed ? "fixed" : "tfrecord", &file, &side, seconds);
        leat_reader_close(side.reader);
        remove_file(&file);
    }
    make_file(&file, dir, 100, 1000000, 1);
    const struct side index = {bare_headers, NULL, 0};
    compare(report, "index of 1,000,000", &file, &index, seconds);
    remove_file(&file);
}

int main(int argc, char **argv)
{
    double seconds = 5;
    const char *dir = "/tmp";
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            dir = argv[++i];
        } else {
            fprintf(stderr, "usage: bench_files [--json] [--seconds S] "
                            "[--dir DIR]\n");
            return 64;
        }
    }
    struct report report;
    report_begin(&report, json);
    measure(&report, dir, seconds / (2 * SIZES + 1));
    return report_end(&report);
}
