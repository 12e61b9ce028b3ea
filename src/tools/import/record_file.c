#include "tools/import/record_file.h"

#include "tools/cli/input.h"
#include "tools/cli/interrupt.h"

#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER_BYTES = 128 << 10, HEADER_MOST = 16, IMAGE_MOST = 1 << 28 };

static const struct {
    const char *noun; /* of a record */
    const char *count_is;
    uint32_t magic; /* 0: no header */
    size_t header;  /* bytes */
} formats[] = {
    [IDX_IMAGES] = {"image", "that its header promises", 2051, 16},
    [IDX_LABELS] = {"label", "that its header promises", 2049, 8},
    [CIFAR10_BATCH] = {"record",
                       "that were expected; --count gives another number", 0,
                       0},
};

/* Why gzread gave fewer bytes than it was asked for. */
static int explain_end(const struct record_file *file)
{
    int code;
    const char *text = gzerror(file->stream, &code);
    const char *reason = strstr(text, ": "); /* after a name of its own */
    reason = reason ? reason + 2 : text;
    if (code == Z_OK)
        return LEAT_OK;
    if (code == Z_BUF_ERROR)
        return leat_error(LEAT_EFORMAT, "%s: its gzip data ends early",
                          file->path);
    if (code == Z_MEM_ERROR)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", file->path);
    if (code == Z_ERRNO)
        return leat_error(LEAT_EIO, "%s: %s", file->path, reason);
    return leat_error(LEAT_EFORMAT, "%s: damaged gzip data: %s", file->path,
                      reason);
}

/* Reads `size` bytes, or fewer at the end: *got. */
static int read_bytes(struct record_file *file, void *out, size_t size,
                      size_t *got)
{
    int status = file->has_begun ? LEAT_OK : input_begin(file->fd, file->path);
    if (status)
        return status;
    file->has_begun = true;
    int n = gzread(file->stream, out, (unsigned)size);
    *got = n > 0 ? (size_t)n : 0;
    /* The end that a signal makes is none of the file's. */
    status = interrupt_check();
    return status || *got == size ? status : explain_end(file);
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static int read_header(struct record_file *file)
{
    unsigned char header[HEADER_MOST];
    size_t size = formats[file->format].header, got;
    uint32_t magic = formats[file->format].magic;
    int status = read_bytes(file, header, size, &got);
    if (status)
        return status;
    if (got >= 4 && big_endian(header) != magic)
        return leat_error(LEAT_EFORMAT,
                          "%s: not an IDX file of %ss: expected magic number "
                          "%u, found %u",
                          file->path, formats[file->format].noun, magic,
                          big_endian(header));
    if (got < size)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends in its header, after %zu of %zu bytes",
                          file->path, got, size);
    file->count = big_endian(header + 4);
    if (file->format == IDX_LABELS)
        return LEAT_OK;
    uint32_t rows = big_endian(header + 8), columns = big_endian(header + 12);
    /* More is taken for a damaged header. */
    if (!rows || !columns || rows > IMAGE_MOST / columns)
        return leat_error(LEAT_EFORMAT,
                          "%s: images of %u x %u pixels are no images",
                          file->path, rows, columns);
    file->rows = (int)rows;
    file->columns = (int)columns;
    file->size = (size_t)rows * columns;
    return LEAT_OK;
}

int record_file_open(struct record_file *file, const char *path,
                     enum record_format format, int64_t count)
{
    *file = (struct record_file){
        .path = path,
        .format = format,
        .count = count,
        .size = format == CIFAR10_BATCH ? 1 + CIFAR10_IMAGE : 1};
    int status = input_open(&file->fd, path);
    if (status)
        return status;
    file->stream = gzdopen(file->fd, "rb");
    if (!file->stream)
        close(file->fd);
    else if (!gzbuffer(file->stream, BUFFER_BYTES)) {
        status = formats[format].magic ? read_header(file) : LEAT_OK;
        file->record = status ? NULL : malloc(file->size);
    }
    return status || file->record
               ? status
               : leat_error(LEAT_ENOMEM, "%s: out of memory", path);
}

/* That the file ends here. */
static int check_end(struct record_file *file)
{
    unsigned char byte;
    size_t got;
    int status = read_bytes(file, &byte, 1, &got);
    if (status || !got)
        return status ? status : LEAT_END;
    return leat_error(LEAT_EFORMAT, "%s: continues past the %lld %ss %s",
                      file->path, (long long)file->count,
                      formats[file->format].noun,
                      formats[file->format].count_is);
}

/* The file ended with `got` bytes of a record read. */
static int refuse_end(const struct record_file *file, size_t got)
{
    const char *noun = formats[file->format].noun;
    const char *where = got ? "in" : "before";
    if (!file->count)
        return leat_error(
            LEAT_EFORMAT, "%s: ends %s %s %lld, expected %ss of %zu bytes",
            file->path, where, noun, (long long)file->next, noun, file->size);
    return leat_error(LEAT_EFORMAT, "%s: ends %s %s %lld of the %lld %s",
                      file->path, where, noun, (long long)file->next,
                      (long long)file->count, formats[file->format].count_is);
}

int record_file_next(struct record_file *file, const unsigned char **record)
{
    bool is_batch = file->format == CIFAR10_BATCH;
    bool has_count = !is_batch || file->count;
    if (has_count && file->next == file->count)
        return check_end(file);
    size_t got;
    int status = read_bytes(file, file->record, file->size, &got);
    if (status)
        return status;
    /* A file of another kind shows here, before it shows in its size. */
    if (is_batch && got && file->record[0] >= CIFAR10_LABELS)
        return leat_error(LEAT_EFORMAT,
                          "%s: not a batch of CIFAR-10's binary version: "
                          "record %lld has label %d, expected 0 to %d",
                          file->path, (long long)file->next, file->record[0],
                          CIFAR10_LABELS - 1);
    if (!got && !has_count && file->next)
        return LEAT_END;
    if (got < file->size)
        return refuse_end(file, got);
    file->next++;
    *record = file->record;
    return LEAT_OK;
}

void record_file_close(struct record_file *file)
{
    if (file->stream) {
        interrupt_keep(file->fd);
        gzclose(file->stream); /* Read-only: nothing is lost if it fails. */
    }
    free(file->record);
    memset(file, 0, sizeof(*file));
}
