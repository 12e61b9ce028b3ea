#include "tools/import/idx.h"

#include "tools/import/gzip_file.h"

#include <leat/ext/reader.h>

#include <stdlib.h>

/* An image of more bytes than this is taken for a damaged header. */
static const uint64_t most_bytes = UINT64_C(1) << 28;

struct idx_file {
    const char *path;
    const char *kind; /* "image" or "label" */
    struct gzip_file *stream;
    int64_t count;
    int64_t next;
    int rows;
    int columns;
    unsigned char *item;
};

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static int read_header(struct idx_file *file, int magic)
{
    unsigned char header[16];
    size_t size = magic == IDX_IMAGES ? 16 : 8, got;
    int status = gzip_file_read(file->stream, header, size, &got);
    if (status)
        return status;
    if (got >= 4 && big_endian(header) != (uint32_t)magic)
        return leat_error(LEAT_EFORMAT,
                          "%s: no IDX file of %ss: expected magic number %d, "
                          "found %u",
                          file->path, file->kind, magic, big_endian(header));
    if (got < size)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends in its header, after %zu of %zu bytes",
                          file->path, got, size);
    file->count = big_endian(header + 4);
    file->rows = file->columns = 1;
    if (magic == IDX_LABELS)
        return LEAT_OK;
    uint64_t rows = big_endian(header + 8), columns = big_endian(header + 12);
    if (!rows || !columns || rows > most_bytes / columns)
        return leat_error(
            LEAT_EFORMAT, "%s: images of %llu x %llu pixels are no images",
            file->path, (unsigned long long)rows, (unsigned long long)columns);
    file->rows = (int)rows;
    file->columns = (int)columns;
    return LEAT_OK;
}

int idx_open(struct idx_file **out, const char *path, int magic)
{
    struct idx_file *file = calloc(1, sizeof(*file));
    if (!file)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    file->path = path;
    file->kind = magic == IDX_IMAGES ? "image" : "label";
    int status = gzip_file_open(&file->stream, path);
    if (!status)
        status = read_header(file, magic);
    if (!status) {
        file->item = malloc((size_t)file->rows * (size_t)file->columns);
        if (!file->item)
            status = leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    }
    if (status) {
        idx_close(file);
        return status;
    }
    *out = file;
    return LEAT_OK;
}

int64_t idx_count(const struct idx_file *file)
{
    return file->count;
}

int idx_rows(const struct idx_file *file)
{
    return file->rows;
}

int idx_columns(const struct idx_file *file)
{
    return file->columns;
}

static int check_end(struct idx_file *file)
{
    size_t got;
    unsigned char byte;
    int status = gzip_file_read(file->stream, &byte, 1, &got);
    if (status)
        return status;
    if (got)
        return leat_error(LEAT_EFORMAT,
                          "%s: goes on after the %lld %ss that its header "
                          "promises",
                          file->path, (long long)file->count, file->kind);
    return LEAT_END;
}

int idx_next(struct idx_file *file, const unsigned char **item)
{
    if (file->next >= file->count)
        return check_end(file);
    size_t size = (size_t)file->rows * (size_t)file->columns, got;
    int status = gzip_file_read(file->stream, file->item, size, &got);
    if (status)
        return status;
    if (got < size)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends in %s %lld of %lld that its header "
                          "promises",
                          file->path, file->kind, (long long)file->next,
                          (long long)file->count);
    file->next++;
    *item = file->item;
    return LEAT_OK;
}

void idx_close(struct idx_file *file)
{
    if (!file)
        return;
    gzip_file_close(file->stream);
    free(file->item);
    free(file);
}
