#include "tools/import/record_file.h"

#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>

enum { HEADER_MOST = 16, IMAGE_MOST = 1 << 28 };

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
    int status = gzip_input_read(&file->input, header, size, &got);
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
    int status = gzip_input_open(&file->input, path);
    if (!status && formats[format].magic)
        status = read_header(file);
    if (status)
        return status;
    file->record = malloc(file->size);
    return file->record ? LEAT_OK
                        : leat_error(LEAT_ENOMEM, "%s: out of memory", path);
}

/* LEAT_END, for a file that is still what it was. */
static int end(const struct record_file *file)
{
    int status = gzip_input_check(&file->input);
    return status ? status : LEAT_END;
}

/* That the file ends here. */
static int check_end(struct record_file *file)
{
    unsigned char byte;
    size_t got;
    int status = gzip_input_read(&file->input, &byte, 1, &got);
    if (status || !got)
        return status ? status : end(file);
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

/* What follows the gzip data may have been records, where nothing counts them.
 */
static int refuse_rest(const struct record_file *file)
{
    return leat_error(LEAT_EFORMAT,
                      "%s: damaged gzip data: after record %lld other bytes "
                      "follow its end",
                      file->path, (long long)file->next - 1);
}

int record_file_next(struct record_file *file, const unsigned char **record)
{
    bool is_batch = file->format == CIFAR10_BATCH;
    bool has_count = !is_batch || file->count;
    if (has_count && file->next == file->count)
        return check_end(file);
    size_t got;
    int status = gzip_input_read(&file->input, file->record, file->size, &got);
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
        return file->input.is_cut ? refuse_rest(file) : end(file);
    if (got < file->size)
        return refuse_end(file, got);
    file->next++;
    *record = file->record;
    return LEAT_OK;
}

void record_file_close(struct record_file *file)
{
    gzip_input_close(&file->input);
    free(file->record);
    memset(file, 0, sizeof(*file));
}
