/*
 * A record is its length (8 bytes), the masked CRC-32C of that, the data, and
 * the masked CRC-32C of the data; little-endian. A walk checks the first sum,
 * on which it depends, and materialize the second.
 */
#include "readers/tfrecord.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"

/* Bytes before the data, and after it. */
#define HEADER 12
#define FOOTER 4

/*
 * Where the length's checksum is wrong, the length is believed after all if the
 * data's checksum is right: only this record is bad then. Longer ones are not
 * tried, so that a stream need not hold them.
 */
#define TRIED_MAX ((uint64_t)16 << 20)

/* Bytes that are summed between two looks at whether reading was cancelled;
 * what is tried is no longer. */
#define SUMMED_BYTES ((uint64_t)64 << 20)

/* A larger length is none of a file. */
#define LENGTH_MAX (UINT64_C(1) << 47)

/*
 * Each header says where the next one is, so a walk waits for memory at each.
 * Where records are of about one size, a header so many records ahead is
 * already on its way.
 */
#define AHEAD 8

static bool is_length_good(const unsigned char *header)
{
    return leat__crc32c_mask(leat__crc32c(0, header, 8)) ==
           leat__get_u32(header + 8);
}

/* LEAT_OK, or LEAT_ECANCELLED. */
static int sum_long_data(const leat__record_window *window,
                         const unsigned char *data, uint64_t length,
                         uint32_t *sum)
{
    while (length > 0) {
        size_t bytes = length < SUMMED_BYTES ? (size_t)length : SUMMED_BYTES;
        if (window->cancelled &&
            atomic_load_explicit(window->cancelled, memory_order_relaxed))
            return leat_error(LEAT_ECANCELLED, "reading was cancelled");
        *sum = leat__crc32c(*sum, data, bytes);
        data += bytes;
        length -= bytes;
    }
    return LEAT_OK;
}

/* Of data of `length` bytes, the footer after them. LEAT_EDATA, without a line;
 * LEAT_ECANCELLED. */
static int check_data(const leat__record_window *window,
                      const unsigned char *data, uint64_t length, uint32_t *sum)
{
    int status = LEAT_OK;
    *sum = 0;
    if (length <= SUMMED_BYTES)
        *sum = leat__crc32c(0, data, (size_t)length);
    else
        status = sum_long_data(window, data, length, sum);
    *sum = leat__crc32c_mask(*sum);
    return status || *sum == leat__get_u32(data + length) ? status : LEAT_EDATA;
}

__attribute__((cold)) static int
bad_sum(int status, const char *of, const unsigned char *found, uint32_t sum)
{
    return leat_error(status, "the checksum of its %s is %08x, expected %08x",
                      of, leat__get_u32(found), sum);
}

__attribute__((cold)) static int bad_length(int status,
                                            const unsigned char *header)
{
    return bad_sum(status, "length", header + 8,
                   leat__crc32c_mask(leat__crc32c(0, header, 8)));
}

/* `left` bytes are there, and the record, or its header, takes more. */
static int want_more(const leat__record_window *window, leat__record_walk *walk,
                     uint64_t left, uint64_t needed)
{
    if (!window->is_last && needed <= SIZE_MAX) {
        walk->needed = (size_t)needed;
        return LEAT_AGAIN;
    }
    if (left == 0)
        return LEAT_END;
    return leat_error(LEAT_EFORMAT,
                      "the file is cut: %llu bytes are left, and the record's "
                      "%s takes %llu",
                      (unsigned long long)left,
                      needed == HEADER ? "header" : "length says it",
                      (unsigned long long)needed);
}

/* A length with a wrong checksum: the data shows whether it is right. */
static int walk_past_bad(const leat__record_window *window,
                         leat__record_walk *walk, const unsigned char *header,
                         uint64_t left)
{
    uint64_t length = leat__get_u64(header);
    uint64_t whole = length + HEADER + FOOTER;
    if (length <= TRIED_MAX && whole > left && !window->is_last)
        return want_more(window, walk, left, whole);
    uint32_t sum;
    if (length > TRIED_MAX || whole > left ||
        check_data(window, header + HEADER, length, &sum))
        return bad_length(LEAT_EFORMAT, header);
    walk->offset += whole;
    walk->record++;
    return bad_length(LEAT_EDATA, header);
}

/* Why there is no good record at the walk's offset. */
__attribute__((noinline)) static int walk_bad(const leat__record_window *window,
                                              leat__record_walk *walk,
                                              leat__record_span *out)
{
    size_t at = (size_t)(walk->offset - window->offset);
    uint64_t left = window->size - at;
    out->offset = walk->offset;
    if (left < HEADER)
        return want_more(window, walk, left, HEADER);
    const unsigned char *header = window->bytes + at;
    if (!is_length_good(header))
        return walk_past_bad(window, walk, header, left);
    uint64_t length = leat__get_u64(header);
    if (length > LENGTH_MAX)
        return leat_error(LEAT_EFORMAT,
                          "its length is %llu bytes, more than a file's",
                          (unsigned long long)length);
    return want_more(window, walk, left, length + HEADER + FOOTER);
}

static int tfrecord_walk(const leat__record_format *format,
                         const leat__record_file *file,
                         const leat__record_window *window,
                         leat__record_walk *walk, leat__record_span out[],
                         int n, int *got)
{
    size_t at = (size_t)(walk->offset - window->offset);
    int found = 0;
    (void)format;
    (void)file;
    for (; found < n; found++) {
        uint64_t left = window->size - at;
        if (left < HEADER + FOOTER)
            break;
        const unsigned char *header = window->bytes + at;
        if (!is_length_good(header))
            break;
        uint64_t length = leat__get_u64(header);
        if (length > left - HEADER - FOOTER)
            break;
        size_t size = (size_t)length + HEADER + FOOTER;
        if (size < left / AHEAD)
            __builtin_prefetch(header + AHEAD * size);
        out[found].offset = window->offset + at;
        out[found].size = size;
        at += size;
    }
    walk->offset = window->offset + at;
    walk->record += found;
    *got = found;
    return found > 0 ? LEAT_OK : walk_bad(window, walk, out);
}

static inline int read_record(const leat__record_window *window,
                              const leat__record_span *span,
                              leat_sample *sample)
{
    uint64_t at = span->offset - window->offset;
    if (at > window->size || window->size - at < HEADER + FOOTER)
        return leat_error(LEAT_EDATA, "it is beyond the end of the file");
    const unsigned char *header = window->bytes + at;
    const unsigned char *data = header + HEADER;
    uint64_t length = leat__get_u64(header);
    if (!is_length_good(header))
        return bad_length(LEAT_EDATA, header);
    if (length > window->size - at - HEADER - FOOTER)
        return leat_error(LEAT_EDATA, "it ends beyond the end of the file");
    uint32_t sum;
    int status = check_data(window, data, length, &sum);
    if (status == LEAT_EDATA)
        return bad_sum(LEAT_EDATA, "data", data + length, sum);
    if (status)
        return status;
    return leat__record_append_bytes(sample, data, (size_t)length);
}

static int tfrecord_read(const leat__record_format *format,
                         const leat__record_file *file,
                         leat__record_window *window,
                         const leat__record_span span[],
                         leat_sample *const out[], int n, int *got)
{
    int status = LEAT_OK;
    (void)format;
    (void)file;
    for (*got = 0; !status && *got < n; *got += !status)
        status = read_record(window, &span[*got], out[*got]);
    return status;
}

const leat__record_format_ops leat__tfrecord_format = {
    .name = "tfrecord",
    .walk = tfrecord_walk,
    .read = tfrecord_read,
};

static int tfrecord_open(const leat_open *open, leat_reader **out)
{
    leat__record_format *format = leat__alloc_zero(1, sizeof(*format));
    if (!format)
        return LEAT_ENOMEM;
    format->ops = &leat__tfrecord_format;
    format->defers = true;
    format->nspec = 1;
    format->spec[0] = (leat_field_spec){
        .name = "record", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    return leat__record_reader_open(open, format, out);
}

static const leat_argument tfrecord_arguments[] = {
    LEAT__RECORD_ARGUMENTS,
    {0},
};

const leat_reader_type leat__tfrecord_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "tfrecord",
    .help = "TensorFlow's TFRecord: the bytes of each record",
    .arguments = tfrecord_arguments,
    .argument_size = sizeof(leat_argument),
    .open = tfrecord_open,
};

int leat_pipeline_tfrecord(leat_pipeline **out, const char *const path[], int n,
                           const leat_file_options *options)
{
    return leat__record_pipeline(out, &leat__tfrecord_reader_type, path, n, "",
                                 options);
}
