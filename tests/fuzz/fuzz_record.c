/*
 * fuzz_record.c: any bytes as a file of records, whose format the first byte
 * chooses: mapped in order and by index, and as a compressed stream. All three
 * find the same records, good and bad, and end in the same way.
 */
#include <leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const formats[] = {
    "tfrecord:/proc/self/fd/%d,compression=%s",
    "fixed:/proc/self/fd/%d,compression=%s,record=3,header=5,footer=2",
    "fixed:/proc/self/fd/%d,compression=%s,fields=(a=uint16be@1,b=uint8@0:2)",
    "idx:/proc/self/fd/%d,compression=%s",
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

/* What a pass found. */
typedef struct pass {
    int status;
    int64_t good;
    int64_t bad;
    uint64_t hash; /* of all fields, and of where records are bad */
} pass;

static int write_file(const void *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    return fd;
}

static int write_packed(const void *bytes, size_t size)
{
    z_stream z = {0};
    if (deflateInit2(&z, 0, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    size_t room = deflateBound(&z, size);
    unsigned char *packed = malloc(room);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)size;
    z.next_out = packed;
    z.avail_out = (unsigned)room;
    if (!packed || deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    int fd = write_file(packed, room - z.avail_out);
    deflateEnd(&z);
    free(packed);
    return fd;
}

static void add(pass *pass, const leat_sample *sample, int status)
{
    uint64_t hash = pass->hash * 31 + (status == LEAT_OK);
    for (int i = 0; status == LEAT_OK && i < sample->nfields; i++) {
        const unsigned char *at = sample->field[i].data;
        for (size_t k = 0; k < sample->field[i].bytes; k++)
            hash = (hash ^ at[k]) * 0x100000001b3;
    }
    pass->hash = hash;
    pass->good += status == LEAT_OK;
    pass->bad += status == LEAT_EDATA;
}

static int open_reader(leat_reader **out, const char *format, int fd,
                       const char *compression)
{
    char text[256];
    leat_pipeline *pipeline;
    snprintf(text, sizeof(text), format, fd, compression);
    if (leat_pipeline_parse(&pipeline, text))
        abort();
    int status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}

static pass read_in_order(leat_reader *reader)
{
    pass pass = {0};
    leat_sample sample;
    leat_sample_init(&sample);
    for (;;) {
        int status = leat_reader_next(reader, &sample);
        if (status != LEAT_OK && status != LEAT_EDATA) {
            pass.status = status;
            break;
        }
        if (status == LEAT_EDATA && sample.from.record != pass.good + pass.bad)
            abort();
        add(&pass, &sample, status);
    }
    leat_sample_finish(&sample);
    return pass;
}

static pass read_by_index(leat_reader *reader)
{
    pass pass = {0};
    int64_t count = 0;
    leat_sample sample;
    leat_sample *out[] = {&sample};
    leat_sample_init(&sample);
    pass.status = leat_reader_count(reader, &count);
    for (int64_t i = 0; i < count && !pass.status; i++) {
        const leat_position at = {0, i};
        int got;
        int status = leat_reader_read_at(reader, &at, out, 1, &got);
        if (status != LEAT_OK && status != LEAT_EDATA)
            abort();
        add(&pass, &sample, status);
    }
    if (!pass.status)
        pass.status = LEAT_END;
    leat_sample_finish(&sample);
    return pass;
}

static void expect_same(const pass *a, const pass *b)
{
    if (a->status != b->status || a->good != b->good || a->bad != b->bad ||
        a->hash != b->hash)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_reader *mapped, *stream;
    if (size < 1)
        return 0;
    const char *format = formats[data[0] % FORMATS];
    int fd[2] = {write_file(data + 1, size - 1),
                 write_packed(data + 1, size - 1)};
    int status = open_reader(&mapped, format, fd[0], "NONE");
    if (status != LEAT_OK && status != LEAT_EFORMAT)
        abort();
    if (open_reader(&stream, format, fd[1], "GZIP") != LEAT_OK)
        abort();
    pass packed = read_in_order(stream);
    leat_reader_close(stream);
    if (status == LEAT_OK) {
        pass ordered = read_in_order(mapped);
        pass indexed = read_by_index(mapped);
        expect_same(&ordered, &packed);
        if (indexed.status == LEAT_END)
            expect_same(&ordered, &indexed);
        else if (ordered.status == LEAT_END)
            abort();
        leat_reader_close(mapped);
    } else if (packed.status != LEAT_EFORMAT) {
        abort();
    }
    close(fd[0]);
    close(fd[1]);
    return 0;
}
