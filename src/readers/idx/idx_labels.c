#include "readers/idx/idx_labels.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "pipeline/opening.h"
#include "readers/idx/idx_header.h"
#include "readers/stream/byte_stream.h"

#include <string.h>
#include <sys/stat.h>

/* The bytes that labels may take where the caller sets no limit. */
#define LABELS_MAX ((int64_t)1 << 30)

static int32_t label_at(const unsigned char *bytes, leat_dtype dtype)
{
    if (dtype == LEAT_UINT8)
        return bytes[0];
    if (dtype == LEAT_INT8)
        return (int8_t)bytes[0];
    if (dtype == LEAT_INT16)
        return (int16_t)(bytes[0] << 8 | bytes[1]);
    return (int32_t)leat__idx_big_endian(bytes);
}

/* Room for labels grows with what is read, not with what a header promises. */
static int append(leat__idx_labels *labels, int64_t at, int64_t n,
                  const unsigned char *bytes, leat_dtype dtype)
{
    int64_t capacity = 1024;
    size_t size = leat_dtype_size(dtype);
    while (capacity < at + n)
        capacity *= 2;
    int32_t *value =
        leat__realloc(labels->value, (size_t)capacity * sizeof(*value));
    if (!value)
        return LEAT_ENOMEM;
    labels->value = value;
    for (int64_t i = 0; i < n; i++)
        value[at + i] = label_at(bytes + (size_t)i * size, dtype);
    return LEAT_OK;
}

/* The stream's own errors name the file already. */
static int blame(const leat__byte_stream *stream, int status)
{
    return leat__error_context(status, "%s", stream->source.path);
}

static int check_type(const leat__idx_header *header)
{
    if (header->ndim == 0 && header->dtype != LEAT_FLOAT32 &&
        header->dtype != LEAT_FLOAT64)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT,
                      "these are no labels: expected whole numbers in one "
                      "dimension, found %s in %d",
                      leat_dtype_name(header->dtype), header->ndim + 1);
}

static int read_header(leat__byte_stream *stream, leat__idx_header *header)
{
    int status;
    while ((status = leat__idx_header_parse(header, stream->next,
                                            stream->left)) == LEAT_AGAIN) {
        if (stream->ended)
            return blame(stream, leat__idx_header_cut(stream->left));
        status = leat__byte_stream_need(stream, stream->left + 1);
        if (status)
            return status;
    }
    if (!status)
        status = check_type(header);
    if (status)
        return blame(stream, status);
    leat__byte_stream_consume(stream, header->size);
    return LEAT_OK;
}

static int check_room(const leat__idx_labels *labels, int64_t at,
                      uint64_t count)
{
    if (count <= (uint64_t)(labels->most - at))
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "has %llu labels, more than fit into %lld bytes; give "
                      "a larger max_memory",
                      (unsigned long long)count,
                      (long long)labels->most * (long long)sizeof(int32_t));
}

/* Appends the labels of the open file after the first `at`. */
static int read_file(leat__idx_labels *labels, leat__byte_stream *stream,
                     int64_t *at)
{
    leat__idx_header header = {0};
    int status = read_header(stream, &header);
    size_t size = leat_dtype_size(header.dtype);
    if (!status && check_room(labels, *at, header.count))
        status = blame(stream, LEAT_ELIMIT);
    for (uint64_t left = header.count; !status && left > 0;) {
        status = leat__byte_stream_need(stream, size);
        uint64_t n = stream->left / size;
        if (status || n == 0)
            break;
        n = n < left ? n : left;
        status = append(labels, *at, (int64_t)n, stream->next, header.dtype);
        leat__byte_stream_consume(stream, (size_t)n * size);
        *at += (int64_t)n;
        left -= n;
        header.count = left;
    }
    if (!status)
        status = leat__byte_stream_need(stream, 1);
    if (status || (header.count == 0 && stream->left == 0))
        return status;
    return leat_error(LEAT_EFORMAT, "%s: %s its last label",
                      stream->source.path,
                      header.count ? "ends before" : "continues past");
}

/* Those of all files, one after another. */
static int load(leat__idx_labels *labels)
{
    leat__byte_stream stream;
    int64_t at = 0;
    int status = append(labels, 0, 0, NULL, LEAT_UINT8);
    labels->first =
        leat__alloc_zero((size_t)labels->files.n + 1, sizeof(int64_t));
    if (!labels->first)
        status = LEAT_ENOMEM;
    leat__byte_stream_init(&stream, LEAT__IDX_HEADER_MAX, NULL);
    for (int i = 0; !status && i < labels->files.n; i++) {
        const char *path = labels->files.path[i];
        status = leat__byte_stream_open(&stream, path,
                                        (leat__compression)labels->compression);
        if (!status)
            status = read_file(labels, &stream, &at);
        if (!status)
            status = leat__byte_source_check_open(&stream.source);
        labels->first[i + 1] = at;
    }
    leat__byte_stream_finish(&stream);
    return status;
}

/* Hashes of the versions of the regular ones, and of their numbers. */
static int look(const leat__idx_labels *labels, uint64_t *versions,
                uint64_t *numbers)
{
    const leat__file_list *files = &labels->files;
    struct stat about;
    int status = LEAT_OK;
    *versions = *numbers = 0xcbf29ce484222325u;
    for (int i = 0; !status && i < files->n; i++) {
        status = leat__opening_check(files->path[i]);
        if (status || stat(files->path[i], &about) || !S_ISREG(about.st_mode))
            continue;
        const leat__file_version version = leat__file_version_of(&about);
        *versions = leat__file_hash_bytes(*versions, &version, sizeof(version));
        *numbers = leat__file_hash_bytes(*numbers, &about.st_dev,
                                         sizeof(about.st_dev));
        *numbers = leat__file_hash_bytes(*numbers, &about.st_ino,
                                         sizeof(about.st_ino));
    }
    return status;
}

/* Whether the files have the labels that were read, in *same. */
static int read_again(const leat__idx_labels *labels, bool *same)
{
    leat__idx_labels now = {.files = labels->files,
                            .most = labels->most,
                            .compression = labels->compression};
    size_t files = (size_t)labels->files.n;
    int status = load(&now);
    *same = !status &&
            memcmp(now.first, labels->first,
                   (files + 1) * sizeof(*now.first)) == 0 &&
            memcmp(now.value, labels->value,
                   (size_t)now.first[files] * sizeof(*now.value)) == 0;
    leat__free(now.first);
    leat__free(now.value);
    return status == LEAT_ENOMEM || status == LEAT_ECANCELLED ? status
                                                              : LEAT_OK;
}

int leat__idx_labels_check(const leat__idx_labels *labels)
{
    uint64_t versions, numbers;
    if (labels->files.n == 0)
        return LEAT_OK;
    int status = leat__file_list_check(&labels->files);
    if (!status)
        status = look(labels, &versions, &numbers);
    bool same = !status && versions == labels->versions;
    /* Some file systems number a file anew, and archives give files of two
     * releases one time. */
    if (same && numbers != labels->numbers)
        status = read_again(labels, &same);
    if (status || same)
        return status;
    return leat_error(LEAT_EIO,
                      "%s%s: written or replaced while it was opened with "
                      "images; open them again",
                      labels->files.path[0],
                      labels->files.n > 1 ? " or other labels" : "");
}

/* Archives and images of disks may give two versions one time. */
static uint64_t hash_values(const leat__idx_labels *labels, uint64_t hash)
{
    int files = labels->files.n;
    hash = leat__file_hash_bytes(hash, labels->first,
                                 ((size_t)files + 1) * sizeof(int64_t));
    return leat__file_hash_bytes(hash, labels->value,
                                 (size_t)labels->first[files] *
                                     sizeof(*labels->value));
}

int leat__idx_labels_open(leat__idx_labels *labels, const leat_open *open,
                          int images, uint64_t *revision)
{
    const char *files = leat_args_get(open->args, "labels");
    if (!files)
        return LEAT_OK;
    labels->most = (open->max_memory > 0 ? open->max_memory / 4 : LABELS_MAX) /
                   (int64_t)sizeof(int32_t);
    labels->files.most = open->max_memory;
    int status = leat__file_list_add(&labels->files, files);
    if (status)
        return status;
    if (labels->files.n != images)
        return leat_error(LEAT_EINVAL,
                          "%d files of labels for %d of images: expected one "
                          "for each",
                          labels->files.n, images);
    *revision = 0;
    status = leat__file_list_modified(revision, &labels->files);
    labels->compression = (int)leat_args_number(open->args, "compression");
    if (!status)
        status = look(labels, &labels->versions, &labels->numbers);
    if (!status)
        status = load(labels);
    if (!status)
        status = leat__idx_labels_check(labels);
    if (!status)
        *revision = hash_values(labels, *revision);
    return status;
}

void leat__idx_labels_close(leat__idx_labels *labels)
{
    leat__file_list_close(&labels->files);
    leat__free(labels->first);
    leat__free(labels->value);
}
