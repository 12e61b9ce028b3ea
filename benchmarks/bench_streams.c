/*
 * bench_streams: readers of lines, IDX, RecordIO and compressed files beside
 * bare loops over the mapped file.
 *
 *     bench_streams [--json] [--seconds S] [--dir DIR]
 *
 * Bare loops look for the ends of lines by memchr; add up the bytes of images;
 * check the checksum of each chunk of RecordIO, of 1 MiB, and walk its records;
 * and inflate by zlib, into 64 KiB. Files are in memory, 32 MiB each without
 * compression; a reader gives 64 samples a call to one thread. A reader of
 * RecordIO, which checks a chunk once, is opened anew for each epoch, and the
 * loop maps the file anew. The sides alternate,
 * round by round, for S seconds (5) together; times are of the processor,
 * shares those of the same round.
 */
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
#include <zlib.h>

enum { ROUNDS = 15, BATCH = 64, CHUNK_HEADER = 20 };
#define FILE_BYTES ((size_t)32 << 20)
#define CHUNK_BYTES ((size_t)1 << 20)

static volatile uint64_t sink;

/* A file that is measured, mapped for the bare loop. */
struct file {
    char path[512];
    char text[640]; /* its pipeline */
    const unsigned char *base;
    size_t size;
    size_t record; /* bytes of a sample */
    int64_t count;
    leat_reader *reader; /* NULL: one for each epoch */
};

/* A comparison: what it is of, and the bare side of it. */
struct comparison {
    const char *name;
    const char *text; /* the reader and, after %s, its arguments */
    size_t record;
    size_t (*make)(unsigned char *out, size_t record, int64_t *count);
    int64_t (*bare)(const struct file *file);
    int compression; /* 0: none; windowBits of zlib */
    int adds_up;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

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

/* Letters of English's frequencies, about, that compress as text does. */
static void draw(unsigned char *out, size_t size)
{
    static uint64_t drawn = 1;
    static const char letters[] =
        "eeeeeeeetttttaaaaoooiiinnnsssrrrhhhdl  ucmfyw"
        "gpbvk    ";
    for (size_t i = 0; i < size; i++) {
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        out[i] = (unsigned char)letters[(drawn >> 40) % (sizeof(letters) - 1)];
    }
}

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static size_t make_lines(unsigned char *out, size_t record, int64_t *count)
{
    *count = (int64_t)(FILE_BYTES / (record + 1));
    for (int64_t i = 0; i < *count; i++, out += record + 1) {
        draw(out, record);
        out[record] = '\n';
    }
    return (size_t)*count * (record + 1);
}

static size_t make_images(unsigned char *out, size_t record, int64_t *count)
{
    static const unsigned char header[] = {0, 0, 8, 2};
    *count = (int64_t)((FILE_BYTES - 12) / record);
    memcpy(out, header, 4);
    for (int i = 0; i < 4; i++) {
        out[4 + i] = (unsigned char)((uint64_t)*count >> (24 - 8 * i));
        out[8 + i] = (unsigned char)(record >> (24 - 8 * i));
    }
    draw(out + 12, (size_t)*count * record);
    return 12 + (size_t)*count * record;
}

static size_t make_chunks(unsigned char *out, size_t record, int64_t *count)
{
    size_t in_chunk = CHUNK_BYTES / (record + 4), size = 0;
    size_t payload = in_chunk * (record + 4);
    *count = 0;
    while (size + CHUNK_HEADER + payload <= FILE_BYTES) {
        unsigned char *chunk = out + size, *at = chunk + CHUNK_HEADER;
        for (size_t i = 0; i < in_chunk; i++, at += record + 4) {
            put_u32(at, (uint32_t)record);
            draw(at + 4, record);
        }
        put_u32(chunk, 0x01020304);
        put_u32(chunk + 4, (uint32_t)in_chunk);
        put_u32(chunk + 8, (uint32_t)crc32_z(0, chunk + CHUNK_HEADER, payload));
        put_u32(chunk + 12, 0);
        put_u32(chunk + 16, (uint32_t)payload);
        size += CHUNK_HEADER + payload;
        *count += (int64_t)in_chunk;
    }
    return size;
}

/* Compresses in place of `bytes`, which it frees. */
static unsigned char *pack(unsigned char *bytes, size_t *size, int window_bits)
{
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY))
        fail("deflate");
    size_t room = deflateBound(&z, *size);
    unsigned char *packed = malloc(room);
    z.next_in = bytes;
    z.avail_in = (unsigned)*size;
    z.next_out = packed;
    z.avail_out = (unsigned)room;
    if (!packed || deflate(&z, Z_FINISH) != Z_STREAM_END)
        fail("deflate");
    *size = room - z.avail_out;
    deflateEnd(&z);
    free(bytes);
    return packed;
}

static const unsigned char *map_file(const struct file *file)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    void *base = mmap(NULL, file->size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || base == MAP_FAILED)
        fail(file->path);
    close(fd);
    return base;
}

static leat_reader *open_reader(const struct file *file)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    output_require(leat_pipeline_parse(&pipeline, file->text));
    output_require(leat_pipeline_open(pipeline, &reader));
    leat_pipeline_unref(pipeline);
    return reader;
}

static int64_t bare_chunks(const struct file *file);

static void make_file(struct file *file, const char *dir,
                      const struct comparison *comparison)
{
    unsigned char *bytes = malloc(FILE_BYTES);
    if (!bytes)
        fail("malloc");
    file->record = comparison->record;
    file->size = comparison->make(bytes, comparison->record, &file->count);
    if (comparison->compression)
        bytes = pack(bytes, &file->size, comparison->compression);
    snprintf(file->path, sizeof(file->path), "%s/bench_streams.%ld", dir,
             (long)getpid());
    snprintf(file->text, sizeof(file->text), comparison->text, file->path);
    int fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t done = 0; fd >= 0 && done < file->size;) {
        ssize_t n = write(fd, bytes + done, file->size - done);
        if (n <= 0)
            fail(file->path);
        done += (size_t)n;
    }
    if (fd < 0 || close(fd))
        fail(file->path);
    free(bytes);
    file->base = map_file(file);
    file->reader = NULL;
    if (comparison->bare != bare_chunks)
        file->reader = open_reader(file);
}

static void remove_file(struct file *file)
{
    if (file->reader)
        leat_reader_close(file->reader);
    munmap((void *)(uintptr_t)file->base, file->size);
    unlink(file->path);
}

static int64_t bare_lines(const struct file *file)
{
    const unsigned char *at = file->base, *end = at + file->size, *newline;
    int64_t n = 0;
    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); n++)
        at = newline + 1;
    return n;
}

static int64_t bare_images(const struct file *file)
{
    uint64_t sum = 0;
    for (size_t at = 12; at < file->size; at += file->record)
        sum += add_up(file->base + at, file->record);
    sink += sum;
    return file->count;
}

static int64_t bare_chunks(const struct file *file)
{
    int64_t n = 0;
    size_t at = 0;
    const unsigned char *base = map_file(file);
    while (at < file->size) {
        const unsigned char *chunk = base + at;
        const unsigned char *payload = chunk + CHUNK_HEADER;
        uint32_t size = leat__get_u32(chunk + 16);
        if (crc32_z(0, payload, size) != leat__get_u32(chunk + 8))
            break;
        for (uint32_t k = 0; k < size; n++)
            k += 4 + leat__get_u32(payload + k);
        at += CHUNK_HEADER + size;
    }
    munmap((void *)(uintptr_t)base, file->size);
    return n;
}

/* Both formats, found by the header. */
static int64_t bare_inflate(const struct file *file)
{
    static unsigned char out[64 << 10];
    z_stream z = {0};
    if (inflateInit2(&z, 15 + 32))
        fail("inflate");
    z.next_in = (unsigned char *)(uintptr_t)file->base;
    z.avail_in = (unsigned)file->size;
    int code;
    do {
        z.next_out = out;
        z.avail_out = sizeof(out);
        code = inflate(&z, Z_NO_FLUSH);
    } while (code == Z_OK);
    inflateEnd(&z);
    return code == Z_STREAM_END ? file->count : -1;
}

static int64_t read_epoch(const struct file *file, int adds_up)
{
    static leat_sample storage[BATCH];
    leat_sample *sample[BATCH];
    leat_reader *reader = file->reader ? file->reader : open_reader(file);
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
    if (file->reader)
        output_require(leat_reader_seek(reader, (leat_position){1, 0}, NULL));
    else
        leat_reader_close(reader);
    sink += sum;
    return all;
}

static double take(const struct file *file, const struct comparison *comparison,
                   int is_leat, double seconds)
{
    double begin = bench_cpu_seconds(), now;
    int64_t records = 0;
    do {
        int64_t more = is_leat ? read_epoch(file, comparison->adds_up)
                               : comparison->bare(file);
        if (more != file->count) {
            fprintf(stderr, "bench_streams: %lld of %lld records\n",
                    (long long)more, (long long)file->count);
            exit(1);
        }
        records += more;
        now = bench_cpu_seconds();
    } while (now - begin < seconds);
    return 1e9 * (now - begin) / (double)records;
}

static void compare(struct report *report, const char *dir,
                    const struct comparison *comparison, double seconds)
{
    struct file file;
    double bare[ROUNDS], own[ROUNDS], share[ROUNDS];
    double each = seconds / (2 * (ROUNDS + 1));
    make_file(&file, dir, comparison);
    for (int round = -1; round < ROUNDS; round++) {
        int at = round < 0 ? 0 : round; /* the first one warms up */
        bare[at] = take(&file, comparison, 0, each);
        own[at] = take(&file, comparison, 1, each);
        share[at] = bare[at] / own[at];
    }
    remove_file(&file);
    struct bench_spread of_share = bench_spread_of(share, ROUNDS);
    const struct figure figures[] = {
        {"case", "case", REPORT_TEXT, 0, comparison->name},
        {"bytes", "bytes", REPORT_COUNT, (double)file.record, NULL},
        {"bare_ns", "bare", REPORT_NS, bench_spread_of(bare, ROUNDS).median,
         NULL},
        {"leat_ns", "leat", REPORT_NS, bench_spread_of(own, ROUNDS).median,
         NULL},
        {"share.median", "share", REPORT_SHARE, of_share.median, NULL},
        {"share.p10", "p10", REPORT_SHARE, of_share.p10, NULL},
        {0}};
    report_row_of(report, "results", figures);
}

static const struct comparison comparisons[] = {
    {"lines", "text:%s", 80, make_lines, bare_lines, 0, 0},
    {"lines", "text:%s", 400, make_lines, bare_lines, 0, 0},
    {"lines", "text:%s", 1600, make_lines, bare_lines, 0, 0},
    {"lines", "text:%s", 6400, make_lines, bare_lines, 0, 0},
    {"IDX", "idx:%s", 784, make_images, bare_images, 0, 1},
    {"IDX", "idx:%s", 3072, make_images, bare_images, 0, 1},
    {"RecordIO", "recordio:%s", 100, make_chunks, bare_chunks, 0, 0},
    {"RecordIO", "recordio:%s", 784, make_chunks, bare_chunks, 0, 0},
    {"RecordIO", "recordio:%s", 16384, make_chunks, bare_chunks, 0, 0},
    {"lines, GZIP", "text:%s", 80, make_lines, bare_inflate, 31, 0},
    {"lines, ZLIB", "text:%s,compression=ZLIB", 80, make_lines, bare_inflate,
     15, 0},
    {"IDX, GZIP", "idx:%s", 784, make_images, bare_inflate, 31, 0},
    {"RecordIO, GZIP", "recordio:%s", 784, make_chunks, bare_inflate, 31, 0},
};

int main(int argc, char **argv)
{
    const int n = (int)(sizeof(comparisons) / sizeof(comparisons[0]));
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
            fprintf(stderr, "usage: bench_streams [--json] [--seconds S] "
                            "[--dir DIR]\n");
            return 64;
        }
    }
    struct report report;
    report_begin(&report, json);
    for (int i = 0; i < n; i++)
        compare(&report, dir, &comparisons[i], seconds / n);
    return report_end(&report);
}
