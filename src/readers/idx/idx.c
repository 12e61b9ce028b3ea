#include "readers/idx/idx.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/idx/idx_header.h"
#include "readers/idx/idx_labels.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"

#include <stdbool.h>
#include <string.h>

typedef struct idx_format {
    leat__record_format format;
    leat__idx_labels labels;
} idx_format;

/* The file's size is that of its array. */
static int check_size(const leat__idx_header *header, uint64_t size)
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
static void describe(leat_field_spec *spec, const leat__idx_header *header)
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
static int set_fields(idx_format *idx, const leat__idx_header *header)
{
    leat_field_spec spec;
    leat_field_spec *known = idx->format.spec;
    describe(&spec, header);
    if (idx->format.nspec == 0) {
        known[0] = spec;
        known[1] = (leat_field_spec){.name = "label", .dtype = LEAT_INT32};
        idx->format.nspec = idx->labels.value ? 2 : 1;
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
    const leat__idx_labels *labels = &idx->labels;
    if (!labels->value)
        return LEAT_OK;
    int64_t found = labels->first[file + 1] - labels->first[file];
    if ((uint64_t)found == count)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT, "has %llu records, and %s has %lld labels",
                      (unsigned long long)count, labels->files.path[file],
                      (long long)found);
}

static int idx_begin(leat__record_format *format,
                     const leat__record_window *window, uint64_t size,
                     leat__record_file *out)
{
    idx_format *idx = (idx_format *)format;
    leat__idx_header header = {0};
    int status = leat__idx_header_parse(&header, window->bytes, window->size);
    if (status == LEAT_AGAIN && window->is_last)
        return leat__idx_header_cut(window->size);
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
    if (status || !idx->labels.value)
        return status;
    uint64_t record = (span->offset - file->first) / file->stride;
    if (span->offset < file->first || record >= (uint64_t)file->count)
        return leat_error(LEAT_EDATA, "it has no label");
    const int32_t *label =
        &idx->labels.value[idx->labels.first[file->number] + (int64_t)record];
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
    leat__idx_labels_close(&idx->labels);
    leat__free(idx);
}

static const leat__record_format_ops idx_ops = {
    .name = "idx",
    .begin = idx_begin,
    .walk = idx_walk,
    .read = idx_read,
    .destroy = idx_destroy,
};

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
        status = leat__idx_labels_open(&idx->labels, open, images.n,
                                       &idx->format.revision);
    if (status) {
        leat__file_list_close(&images);
        idx_destroy(&idx->format);
        return status;
    }
    status = leat__record_reader_open_files(open, &idx->format, &images, out);
    if (status)
        return status;
    status = leat__idx_labels_check(&idx->labels);
    if (status)
        (*out)->ops->close(*out);
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
