#include "inputs.h"

#include "base/crc32c.h"
#include "random_chain.h"
#include "soak/dice.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

typedef struct bytes {
    size_t size;
    unsigned char data[1 << 14];
} bytes;

static void add(bytes *to, const void *data, size_t size)
{
    chain_require(size <= sizeof(to->data) - to->size, "a file is too large");
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void add_u32(bytes *to, uint32_t value)
{
    add(to, &value, sizeof(value));
}

static uint32_t masked_sum(const void *data, size_t size)
{
    return leat__crc32c_mask(leat__crc32c(0, data, size));
}

static void add_tfrecord(bytes *to, const char *line, bool is_bad)
{
    uint64_t size = strlen(line);
    add(to, &size, sizeof(size));
    add_u32(to, masked_sum(&size, sizeof(size)));
    add(to, line, size);
    add_u32(to, masked_sum(line, size) ^ is_bad);
}

/* A chunk of one record, of Fluid's dialect. */
static void add_recordio(bytes *to, const char *line, bool is_bad)
{
    unsigned char record[4 + INPUT_LINE];
    uint32_t size = (uint32_t)strlen(line);
    memcpy(record, &size, sizeof(size));
    memcpy(record + 4, line, size);
    add_u32(to, 0x01020304);
    add_u32(to, 1);
    add_u32(to, (uint32_t)crc32_z(0, record, size + 4) ^ is_bad);
    add_u32(to, 0);
    add_u32(to, size + 4);
    add(to, record, size + 4);
}

static void add_record(bytes *to, input_format format, const char *line,
                       bool is_bad)
{
    char padded[INPUT_LINE + 1];
    switch (format) {
    case INPUT_TFRECORD:
        add_tfrecord(to, line, is_bad);
        break;
    case INPUT_RECORDIO:
        add_recordio(to, line, is_bad);
        break;
    case INPUT_FIXED:
        snprintf(padded, sizeof(padded), "%-*s", INPUT_LINE, line);
        add(to, padded, INPUT_LINE);
        break;
    default:
        add(to, line, strlen(line));
        add(to, "\n", 1);
    }
}

int input_id(int i, int file, int record)
{
    return 1000 * (i + 1) + 100 * file + record;
}

/* As of an hour ago, so that an index of it may be kept. */
static void write_bytes(const char *name, const void *data, size_t size)
{
    static const char new_name[] = "new.rec";
    struct timespec times[2];
    FILE *file = fopen(new_name, "wb");
    chain_require(file && fwrite(data, 1, size, file) == size &&
                      fclose(file) == 0,
                  "no file");
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 3600;
    times[1] = times[0];
    chain_require(utimensat(AT_FDCWD, new_name, times, 0) == 0 &&
                      rename(new_name, name) == 0,
                  "no file of its name");
}

static void write_file(const char *name, const bytes *from,
                       const char *compression)
{
    static unsigned char packed[1 << 15];
    z_stream stream = {.next_in = (Bytef *)from->data,
                       .avail_in = (uInt)from->size,
                       .next_out = packed,
                       .avail_out = sizeof(packed)};
    const void *data = from->data;
    size_t size = from->size;
    if (strcmp(compression, "NONE") != 0) {
        int window = strcmp(compression, "ZLIB") == 0 ? 15 : 31;
        chain_require(deflateInit2(&stream, 1, Z_DEFLATED, window, 8, 0) ==
                              Z_OK &&
                          deflate(&stream, Z_FINISH) == Z_STREAM_END &&
                          deflateEnd(&stream) == Z_OK,
                      "no compressed file");
        data = packed;
        size = stream.total_out;
    }
    write_bytes(name, data, size);
}

static void make_file(input *made, int i, int f)
{
    static bytes file;
    char name[32], line[INPUT_LINE];
    file.size = 0;
    made->n[f] = once_in(6) ? 0 : between(1, INPUT_RECORDS);
    for (int r = 0; r < made->n[f]; r++) {
        int id = input_id(i, f, r);
        made->has_no_columns[f][r] = once_in(20);
        made->is_bad[f][r] = once_in(20) && made->format != INPUT_TEXT &&
                             made->format != INPUT_FIXED;
        if (made->has_no_columns[f][r])
            snprintf(line, sizeof(line), "%d,none", id);
        else
            snprintf(line, sizeof(line), "%d,0.5,%d,%d", id, -id, id % 7);
        add_record(&file, made->format, line, made->is_bad[f][r]);
    }
    snprintf(name, sizeof(name), "i%d-%d.rec", i, f);
    write_file(name, &file, made->compression);
}

void input_make(input *made, int i)
{
    static const char *const compressions[] = {"GZIP", "ZLIB", "NONE"};
    char name[32];
    made->format = (input_format)below(INPUT_FORMATS);
    made->compression = compressions[once_in(4) ? below(2) : 2];
    made->nfiles = between(1, INPUT_FILES);
    snprintf(name, sizeof(name), "i%d.list", i);
    FILE *list = fopen(name, "w");
    for (int f = 0; f < made->nfiles; f++)
        fprintf(list, "i%d-%d.rec\n", i, f);
    fclose(list);
    input_replace(made, i);
}

void input_replace(input *made, int i)
{
    for (int f = 0; f < made->nfiles; f++)
        make_file(made, i, f);
}

void input_damage(const input *made, int i)
{
    static bytes file;
    char name[32];
    snprintf(name, sizeof(name), "i%d-%d.rec", i, below(made->nfiles));
    FILE *from = fopen(name, "rb");
    chain_require(from != NULL, "no file to damage");
    file.size = fread(file.data, 1, sizeof(file.data) - 64, from);
    fclose(from);
    for (int k = below(4); k > 0 && file.size > 0; k--)
        file.data[dice() % file.size] ^= (unsigned char)(1 << below(8));
    if (once_in(4) && file.size > 0)
        file.size = dice() % file.size;
    for (int k = once_in(4) ? below(64) : 0; k > 0; k--)
        file.data[file.size++] = (unsigned char)dice();
    write_bytes(name, file.data, file.size);
}

void input_text(const input *made, const char *files, char *out, size_t size)
{
    static const char *const names[] = {"text", "tfrecord", "recordio",
                                        "fixed"};
    char more[80] = "";
    if (made->format == INPUT_FIXED)
        snprintf(more, sizeof(more), ",record=%d", INPUT_LINE);
    if (once_in(3))
        strcat(more, ",index=KEEP");
    if (once_in(6))
        strcat(more, ",drop_behind=1");
    snprintf(out, size, "%s:%s,compression=%s%s%s", names[made->format], files,
             made->compression, more,
             made->format == INPUT_TEXT ? "" : " | select:line=record");
}
