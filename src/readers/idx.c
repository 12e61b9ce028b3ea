/*
 * An IDX file is an array: two zero bytes, the type of its elements, the number
 * of its dimensions, those as big-endian 32-bit numbers, and the elements,
 * big-endian. A record is what the first dimension counts. Labels, an array of
 * their own, are read whole when the reader is opened.
 */
#include "readers/idx.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"

#include <stdbool.h>
#include <string.h>

/* Before the dimensions; and the longest header. */
#define MAGIC_BYTES 4
#define HEADER_MAX (MAGIC_BYTES + 4 * LEAT_MAX_DIMS)

/* A larger record is none of a file. */
#define RECORD_MAX ((uint64_t)1 << 40)

/* The bytes that labels may take where the caller sets no limit. */
#define LABELS_MAX ((int64_t)1 << 30)

typedef struct idx_format {
    leat__record_format format;
    /* Labels of all files, and where those of file i begin; NULL: none. */
    int32_t *labels;
    int64_t *first_label;  /* an element more than files */
    int64_t max_labels;    /* there is memory for */
    leat__file_list files; /* of labels, one for each of images */
} idx_format;

/* What the header of an array says. */
typedef struct idx_header {
    leat_dtype dtype;
    size_t size;    /* of the header */
    uint64_t count; /* the first dimension */
    uint64_t bytes; /* of a record */
    int ndim;       /* of a record */
    int64_t shape[LEAT_MAX_DIMS];
} idx_header;

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

static int parse_type(leat_dtype *out, int code)
{
    static const leat_dtype types[] = {
        LEAT_UINT8,   LEAT_INT8,    /* 8, 9 */
        LEAT_BYTES,   LEAT_INT16,   /* -, 11 */
        LEAT_INT32,   LEAT_FLOAT32, /* 12, 13 */
        LEAT_FLOAT64,               /* 14 */
    };
    if (code < 8 || code > 14 || code == 10)
        return leat_error(LEAT_EFORMAT,
                          "not an IDX file: its elements have the type %d, "
                          "expected 8, 9 or 11 to 14",
                          code);
    *out = types[code - 8];
    return LEAT_OK;
}

static int parse_shape(idx_header *out, const unsigned char *dims, int n)
{
    bool overflows = false;
    out->bytes = leat_dtype_size(out->dtype);
    out->count = big_endian(dims);
    out->ndim = n - 1;
    for (int i = 0; i < out->ndim; i++) {
        out->shape[i] = big_endian(dims + 4 * (i + 1));
        overflows = overflows ||
                    __builtin_mul_overflow(out->bytes, (uint64_t)out->shape[i],
                                           &out->bytes) ||
                    out->bytes > RECORD_MAX;
    }
    if (overflows || (out->bytes == 0 && out->count > 0))
        return leat_error(LEAT_EFORMAT,
                          "damaged: its %d dimensions are no shape of a record",
                          out->ndim);
    return LEAT_OK;
}

/* Of a header's first bytes. LEAT_AGAIN: out->size are needed. */
static int parse_header(idx_header *out, const unsigned char *bytes,
                        size_t size)
{
    out->size = MAGIC_BYTES;
    if (size < MAGIC_BYTES)
        return LEAT_AGAIN;
    int n = bytes[3];
    if (bytes[0] || bytes[1])
        return leat_error(LEAT_EFORMAT,
                          "not an IDX file: it begins with %02x%02x%02x%02x, "
                          "expected two zero bytes",
                          bytes[0], bytes[1], bytes[2], bytes[3]);
    int status = parse_type(&out->dtype, bytes[2]);
    if (status)
        return status;
    if (n < 1 || n > LEAT_MAX_DIMS)
        return leat_error(LEAT_EFORMAT,
                          "it has %d dimensions, expected 1 to %d", n,
                          LEAT_MAX_DIMS);
    out->size = MAGIC_BYTES + 4 * (size_t)n;
    return size < out->size ? LEAT_AGAIN
                            : parse_shape(out, bytes + MAGIC_BYTES, n);
}

static int ends_in_header(size_t size)
{
    return leat_error(LEAT_EFORMAT, "ends in its header, after %zu bytes",
                      size);
}

/* The file's size is that of its array. */
static int check_size(const idx_header *header, uint64_t size)
{
    uint64_t all = 0;
    if (size == UINT64_MAX)
        return LEAT_OK;
    bool overflows = __builtin_mul_overflow(header->count, header->bytes, &all);
    if (!overflows && all == size - header->size)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT,
                      "its header promises %llu records of %llu bytes, and "
                      "%llu bytes follow it",
                      (unsigned long long)header->count,
                      (unsigned long long)header->bytes,
                      (unsigned long long)(size - header->size));
}

/* Images of rows and columns have one channel, as Caffe's do. */
static void describe(leat_field_spec *spec, const idx_header *header)
{
    int channels = header->ndim == 2;
    *spec = (leat_field_spec){.name = "data",
                              .dtype = header->dtype,
                              .ndim = header->ndim + channels};
    spec->shape[0] = 1;
    memcpy(spec->shape + channels, header->shape,
           (size_t)header->ndim * sizeof(spec->shape[0]));
}

/* The first file gives the fields, and the others have the same. */
static int set_fields(idx_format *idx, const idx_header *header)
{
    leat_field_spec spec;
    leat_field_spec *known = idx->format.spec;
    describe(&spec, header);
    if (idx->format.nspec == 0) {
        known[0] = spec;
        known[1] = (leat_field_spec){.name = "label", .dtype = LEAT_INT32};
        idx->format.nspec = idx->labels ? 2 : 1;
        idx->format.defers = leat_dtype_size(spec.dtype) > 1;
        return LEAT_OK;
    }
    if (known[0].dtype == spec.dtype && known[0].ndim == spec.ndim &&
        memcmp(known[0].shape, spec.shape, sizeof(spec.shape)) == 0)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT, "its records have another type or shape "
                                    "than those of the first file");
}

static int check_labels(const idx_format *idx, int file, uint64_t count)
{
    if (!idx->labels)
        return LEAT_OK;
    int64_t labels = idx->first_label[file + 1] - idx->first_label[file];
    if ((uint64_t)labels == count)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT, "has %llu records, and %s has %lld labels",
                      (unsigned long long)count, idx->files.path[file],
                      (long long)labels);
}

static int idx_begin(leat__record_format *format,
                     const leat__record_window *window, uint64_t size,
                     leat__record_file *out)
{
    idx_format *idx = (idx_format *)format;
    idx_header header = {0};
    int status = parse_header(&header, window->bytes, window->size);
    if (status == LEAT_AGAIN && window->is_last)
        return ends_in_header(window->size);
    out->first = header.size;
    if (!status)
        status = check_size(&header, size);
    if (!status)
        status = check_labels(idx, out->number, header.count);
    if (!status)
        status = set_fields(idx, &header);
    out->count = (int64_t)header.count;
    out->stride = header.bytes ? header.bytes : 1;
    return status;
}

/* For streams alone. */
static int idx_walk(const leat__record_format *format,
                    const leat__record_file *file,
                    const leat__record_window *window, leat__record_walk *walk,
                    leat__record_span out[], int n, int *got)
{
    uint64_t left = window->offset + window->size - walk->offset;
    (void)format;
    *got = 0;
    out[0].offset = walk->offset;
    if (walk->record == file->count && left > 0)
        return leat_error(LEAT_EFORMAT,
                          "the file continues past the %lld records that its "
                          "header promises",
                          (long long)file->count);
    if (walk->record == file->count && window->is_last)
        return LEAT_END;
    for (; *got < n && left >= file->stride && walk->record < file->count;
         left -= file->stride) {
        out[(*got)++] = (leat__record_span){walk->offset, file->stride};
        walk->offset += file->stride;
        walk->record++;
    }
    if (*got > 0)
        return LEAT_OK;
    walk->needed = walk->record < file->count ? file->stride : 1;
    if (!window->is_last)
        return LEAT_AGAIN;
    return leat_error(LEAT_EFORMAT,
                      "the file ends here, and its header promises %lld "
                      "records of %llu bytes",
                      (long long)file->count, (unsigned long long)file->stride);
}

/* Big-endian elements of `size` bytes, in the machine's order. */
static void swap_elements(unsigned char *out, const unsigned char *in,
                          size_t bytes, size_t size)
{
    for (size_t i = 0; i < bytes; i += size)
        for (size_t k = 0; k < size; k++)
            out[i + k] = in[i + size - 1 - k];
}

static int set_data(const leat__record_file *file, leat__record_window *window,
                    const leat__record_span *span, const leat_field_spec *spec,
                    leat_sample *sample)
{
    uint64_t at = span->offset - window->offset;
    size_t size = leat_dtype_size(spec->dtype);
    if (at > window->size || window->size - at < file->stride)
        return leat_error(LEAT_EDATA, "it is beyond the end of the file");
    const void *data = window->bytes + at;
    if (size > 1) {
        unsigned char *out =
            leat__record_take(sample, window, (size_t)file->stride);
        if (!out)
            return LEAT_ENOMEM;
        swap_elements(out, window->bytes + at, (size_t)file->stride, size);
        data = out;
    }
    return leat__record_append_as(sample, spec, data, (size_t)file->stride);
}

static inline int read_record(const idx_format *idx,
                              const leat__record_file *file,
                              leat__record_window *window,
                              const leat__record_span *span,
                              leat_sample *sample)
{
    const leat_field_spec *spec = idx->format.spec;
    int status = set_data(file, window, span, &spec[0], sample);
    if (status || !idx->labels)
        return status;
    uint64_t record = (span->offset - file->first) / file->stride;
    if (span->offset < file->first || record >= (uint64_t)file->count)
        return leat_error(LEAT_EDATA, "it has no label");
    const int32_t *label =
        &idx->labels[idx->first_label[file->number] + (int64_t)record];
    return leat__record_append_as(sample, &spec[1], label, sizeof(*label));
}

static int idx_read(const leat__record_format *format,
                    const leat__record_file *file, leat__record_window *window,
                    const leat__record_span span[], leat_sample *const out[],
                    int n, int *got)
{
    const idx_format *idx = (const idx_format *)format;
    int status = LEAT_OK;
    for (*got = 0; !status && *got < n; *got += !status)
        status = read_record(idx, file, window, &span[*got], out[*got]);
    return status;
}

static void idx_destroy(leat__record_format *format)
{
    idx_format *idx = (idx_format *)format;
    leat__file_list_close(&idx->files);
    leat__free(idx->first_label);
    leat__free(idx->labels);
    leat__free(idx);
}

static const leat__record_format_ops idx_ops = {
    .name = "idx",
    .begin = idx_begin,
    .walk = idx_walk,
    .read = idx_read,
    .destroy = idx_destroy,
};

static int32_t label_at(const unsigned char *bytes, leat_dtype dtype)
{
    if (dtype == LEAT_UINT8)
        return bytes[0];
    if (dtype == LEAT_INT8)
        return (int8_t)bytes[0];
    if (dtype == LEAT_INT16)
        return (int16_t)(bytes[0] << 8 | bytes[1]);
    return (int32_t)big_endian(bytes);
}

/* Room for labels grows with what is read, not with what a header promises. */
static int append_labels(idx_format *idx, int64_t at, int64_t n,
                         const unsigned char *bytes, leat_dtype dtype)
{
    int64_t capacity = 1024;
    size_t size = leat_dtype_size(dtype);
    while (capacity < at + n)
        capacity *= 2;
    int32_t *labels =
        leat__realloc(idx->labels, (size_t)capacity * sizeof(*labels));
    if (!labels)
        return LEAT_ENOMEM;
    idx->labels = labels;
    for (int64_t i = 0; i < n; i++)
        labels[at + i] = label_at(bytes + (size_t)i * size, dtype);
    return LEAT_OK;
}

static int read_header(leat__byte_stream *stream, idx_header *header)
{
    int status;
    while ((status = parse_header(header, stream->next, stream->left)) ==
           LEAT_AGAIN) {
        if (stream->ended)
            return ends_in_header(stream->left);
        status = leat__byte_stream_need(stream, stream->left + 1);
        if (status)
            return status;
    }
    if (status)
        return status;
    if (header->ndim != 0 || header->dtype == LEAT_FLOAT32 ||
        header->dtype == LEAT_FLOAT64)
        return leat_error(LEAT_EFORMAT,
                          "these are no labels: expected whole numbers in one "
                          "dimension, found %s in %d",
                          leat_dtype_name(header->dtype), header->ndim + 1);
    leat__byte_stream_consume(stream, header->size);
    return LEAT_OK;
}

static int check_room(const idx_format *idx, int64_t at, uint64_t count)
{
    if (count <= (uint64_t)(idx->max_labels - at))
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "has %llu labels, more than fit into %lld bytes; give "
                      "a larger max_memory",
                      (unsigned long long)count,
                      (long long)idx->max_labels * (long long)sizeof(int32_t));
}

/* Appends the labels of the open file after the first `at`. */
static int read_labels(idx_format *idx, leat__byte_stream *stream, int64_t *at)
{
    idx_header header = {0};
    int status = read_header(stream, &header);
    size_t size = leat_dtype_size(header.dtype);
    if (!status)
        status = check_room(idx, *at, header.count);
    for (uint64_t left = header.count; !status && left > 0;) {
        status = leat__byte_stream_need(stream, size);
        uint64_t n = stream->left / size;
        if (status || n == 0)
            break;
        n = n < left ? n : left;
        status =
            append_labels(idx, *at, (int64_t)n, stream->next, header.dtype);
        leat__byte_stream_consume(stream, (size_t)n * size);
        *at += (int64_t)n;
        left -= n;
        header.count = left;
    }
    if (!status)
        status = leat__byte_stream_need(stream, 1);
    if (status || (header.count == 0 && stream->left == 0))
        return status;
    return leat_error(LEAT_EFORMAT, "%s",
                      header.count ? "ends before its last label"
                                   : "continues past its last label");
}

/* Whether the error line begins with the file, as the stream's own do. */
static bool line_names(const char *path)
{
    size_t length = strlen(path);
    const char *line = leat_last_error();
    return strncmp(line, path, length) == 0 && line[length] == ':';
}

/* Those of all files, one after another. */
static int load_labels(idx_format *idx, leat__compression compression)
{
    leat__byte_stream stream;
    int64_t at = 0;
    int status = append_labels(idx, 0, 0, NULL, LEAT_UINT8);
    idx->format.revision = leat__file_list_modified(0, &idx->files);
    idx->first_label =
        leat__alloc_zero((size_t)idx->files.n + 1, sizeof(int64_t));
    if (!idx->first_label)
        status = LEAT_ENOMEM;
    leat__byte_stream_init(&stream, HEADER_MAX, NULL);
    for (int i = 0; !status && i < idx->files.n; i++) {
        const char *path = idx->files.path[i];
        status = leat__byte_stream_open(&stream, path, compression);
        if (!status)
            status = read_labels(idx, &stream, &at);
        if (!status)
            status = leat__byte_source_check_open(&stream.source);
        if ((status == LEAT_EFORMAT || status == LEAT_ELIMIT) &&
            !line_names(path))
            status = leat__error_context(status, "%s", path);
        idx->first_label[i + 1] = at;
    }
    leat__byte_stream_finish(&stream);
    return status ? status : leat__file_list_check(&idx->files);
}

static int open_labels(idx_format *idx, const leat_open *open, int images)
{
    const char *labels = leat_args_get(open->args, "labels");
    if (!labels)
        return LEAT_OK;
    idx->max_labels =
        (open->max_memory > 0 ? open->max_memory / 4 : LABELS_MAX) /
        (int64_t)sizeof(int32_t);
    idx->files.most = open->max_memory;
    int status = leat__file_list_add(&idx->files, labels);
    if (status)
        return status;
    if (idx->files.n != images)
        return leat_error(LEAT_EINVAL,
                          "%d files of labels for %d of images: expected one "
                          "for each",
                          idx->files.n, images);
    return load_labels(
        idx, (leat__compression)leat_args_number(open->args, "compression"));
}

static int idx_open(const leat_open *open, leat_reader **out)
{
    leat__file_list images = {.most = open->max_memory};
    idx_format *idx = leat__alloc_zero(1, sizeof(*idx));
    if (!idx)
        return LEAT_ENOMEM;
    idx->format.ops = &idx_ops;
    int status =
        leat__file_list_add(&images, leat_args_get(open->args, "images"));
    if (!status)
        status = open_labels(idx, open, images.n);
    if (!status)
        return leat__record_reader_open_files(open, &idx->format, &images, out);
    leat__file_list_close(&images);
    idx_destroy(&idx->format);
    return status;
}

static const leat_argument idx_arguments[] = {
    {.name = "images",
     .positional = 1,
     .required = 1,
     .keeps_samples = 1,
     .help = "of data: a path, a pattern or @LIST"},
    {.name = "labels",
     .positional = 1,
     .keeps_samples = 1,
     .help = "of labels, a file for each of images; without them the samples "
             "have data alone"},
    LEAT__RECORD_OPTIONS,
    {0},
};

const leat_reader_type leat__idx_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "idx",
    .help = "IDX, as MNIST's: images and their labels",
    .arguments = idx_arguments,
    .argument_size = sizeof(leat_argument),
    .open = idx_open,
};

int leat_pipeline_idx(leat_pipeline **out, const char *images,
                      const char *labels, const leat_file_options *options)
{
    const char *const path[] = {images, labels};
    return leat__record_pipeline(out, &leat__idx_reader_type, path,
                                 labels ? 2 : 1, "", options);
}
