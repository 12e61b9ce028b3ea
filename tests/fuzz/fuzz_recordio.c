/*
 * fuzz_recordio.c: any bytes as a RecordIO file, as it is and through the
 * stream that decompresses chunks. Both give the same good records, as far as
 * they agree on the chunks, and by index they are those in order.
 */
#include <leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a pass found. */
typedef struct pass {
    int status;
    int64_t good;
    int64_t all;
    uint64_t hash; /* of the good records */
} pass;

static void add(pass *pass, const leat_sample *sample)
{
    const leat_field *field = &sample->field[0];
    const unsigned char *bytes = field->data;
    for (size_t i = 0; i < field->bytes; i++)
        pass->hash = (pass->hash ^ bytes[i]) * 0x100000001b3;
    pass->hash = pass->hash * 31 + 1;
    pass->good++;
}

static pass read_in_order(leat_reader *reader)
{
    pass pass = {0};
    leat_sample sample;
    leat_sample_init(&sample);
    do {
        pass.status = leat_reader_next(reader, &sample);
        if (pass.status == LEAT_OK)
            add(&pass, &sample);
        pass.all += pass.status == LEAT_OK || pass.status == LEAT_EDATA;
    } while (pass.status == LEAT_OK || pass.status == LEAT_EDATA);
    leat_sample_finish(&sample);
    return pass;
}

static void read_by_index(leat_reader *reader, const pass *ordered)
{
    pass pass = {0};
    int64_t count;
    leat_sample sample, *out = &sample;
    if (!leat_reader_is_random_access(reader) ||
        leat_reader_count(reader, &count))
        return;
    leat_sample_init(&sample);
    for (int64_t i = 0; i < count; i++) {
        const leat_position at = {0, i};
        int got;
        int status = leat_reader_read_at(reader, &at, &out, 1, &got);
        if (status != LEAT_OK && status != LEAT_EDATA)
            abort();
        if (status == LEAT_OK)
            add(&pass, &sample);
    }
    leat_sample_finish(&sample);
    if (count != ordered->all || pass.good != ordered->good ||
        pass.hash != ordered->hash)
        abort();
}

/* By name: the bytes may be of gzip themselves. */
static int open_reader(leat_reader **out, int fd, const char *compression)
{
    char text[256];
    leat_pipeline *pipeline;
    snprintf(text, sizeof(text),
             "recordio:/proc/self/fd/%d,max_record=1M,compression=%s", fd,
             compression);
    if (leat_pipeline_parse(&pipeline, text))
        abort();
    int status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_reader *reader;
    int fd[2] = {write_file(data, size), write_packed(data, size)};
    pass found[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        int status = open_reader(&reader, fd[i], i == 0 ? "NONE" : "GZIP");
        found[i].status = status;
        if (status)
            continue;
        found[i] = read_in_order(reader);
        if (i == 0)
            read_by_index(reader, &found[0]);
        leat_reader_close(reader);
    }
    if (found[0].status == LEAT_END &&
        (found[1].status != LEAT_END || found[1].good != found[0].good ||
         found[1].hash != found[0].hash))
        abort();
    close(fd[0]);
    close(fd[1]);
    return 0;
}
