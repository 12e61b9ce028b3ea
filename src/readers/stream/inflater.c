#include "readers/stream/inflater.h"
#include "base/error.h"
#include "base/memory.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#define INPUT_BYTES ((size_t)64 << 10)

/* zlib's own for inflate: its state and the window of 32 KiB. */
#define ZLIB_BYTES ((size_t)48 << 10)

enum { GZIP_WINDOW = 15 + 16, ZLIB_WINDOW = 15 };

struct leat__inflater {
    z_stream z; /* next_in and avail_in: input that is not used yet */
    bool is_zlib;
    bool is_between; /* members: before the first or after one that is whole */
    bool has_begun;  /* a member */
    bool is_padding; /* zeros after the last member */
    bool input_ended;
    unsigned char input[INPUT_BYTES];
};

static void *allocate(void *context, uInt n, uInt size)
{
    (void)context;
    return leat__alloc_zero(n, size);
}

static void release(void *context, void *memory)
{
    (void)context;
    leat__free(memory);
}

int leat__inflater_create(leat__inflater **out)
{
    leat__inflater *inflater = leat__alloc(sizeof(*inflater));
    if (!inflater)
        return LEAT_ENOMEM;
    inflater->z = (z_stream){.zalloc = allocate, .zfree = release};
    if (inflateInit2(&inflater->z, GZIP_WINDOW) != Z_OK) {
        leat__free(inflater);
        return leat__error_memory(ZLIB_BYTES);
    }
    leat__inflater_begin(inflater);
    *out = inflater;
    return LEAT_OK;
}

void leat__inflater_destroy(leat__inflater *inflater)
{
    if (!inflater)
        return;
    inflateEnd(&inflater->z);
    leat__free(inflater);
}

size_t leat__inflater_memory(void)
{
    return sizeof(leat__inflater) + ZLIB_BYTES;
}

void leat__inflater_begin(leat__inflater *inflater)
{
    inflater->z.avail_in = 0;
    inflater->is_between = true;
    inflater->has_begun = inflater->is_padding = inflater->input_ended = false;
}

void leat__inflater_set_format(leat__inflater *inflater, bool is_zlib)
{
    inflater->is_zlib = is_zlib;
}

/* Has `n` bytes of input, or all that are left. */
static int need_input(leat__inflater *inflater, leat__byte_source *source,
                      unsigned n)
{
    z_stream *z = &inflater->z;
    while (z->avail_in < n && !inflater->input_ended) {
        size_t got;
        if (z->avail_in > 0)
            memmove(inflater->input, z->next_in, z->avail_in);
        z->next_in = inflater->input;
        int status =
            leat__byte_source_read(source, inflater->input + z->avail_in,
                                   INPUT_BYTES - z->avail_in, &got);
        if (status)
            return status;
        z->avail_in += (unsigned)got;
        inflater->input_ended = got == 0;
    }
    return LEAT_OK;
}

bool leat__inflater_is_gzip(const unsigned char *bytes, size_t size)
{
    return size >= LEAT__GZIP_MAGIC && bytes[0] == 0x1f && bytes[1] == 0x8b &&
           bytes[2] == Z_DEFLATED;
}

static bool begins_gzip(const z_stream *z)
{
    return leat__inflater_is_gzip(z->next_in, z->avail_in);
}

/* A method, and a sum that is a multiple of 31. */
static bool begins_zlib(const z_stream *z)
{
    return z->avail_in >= 2 && (z->next_in[0] & 15) == Z_DEFLATED &&
           (z->next_in[0] << 8 | z->next_in[1]) % 31 == 0;
}

int leat__inflater_probe(leat__inflater *inflater, leat__byte_source *source,
                         bool *is_gzip)
{
    int status = need_input(inflater, source, LEAT__GZIP_MAGIC);
    if (status)
        return status;
    *is_gzip = begins_gzip(&inflater->z);
    return LEAT_OK;
}

void leat__inflater_drain(leat__inflater *inflater, void *out, size_t n,
                          size_t *got)
{
    z_stream *z = &inflater->z;
    *got = z->avail_in < n ? z->avail_in : n;
    if (*got > 0)
        memcpy(out, z->next_in, *got);
    z->next_in += *got;
    z->avail_in -= (unsigned)*got;
}

static const char *format_name(const leat__inflater *inflater)
{
    return inflater->is_zlib ? "zlib" : "gzip";
}

/* The byte of the file that the input stands at. */
static long long byte_of(const leat__inflater *inflater,
                         const leat__byte_source *source)
{
    return (long long)source->offset - inflater->z.avail_in;
}

static int damaged(const leat__inflater *inflater,
                   const leat__byte_source *source, int64_t offset,
                   const char *what)
{
    return leat_error(LEAT_EFORMAT,
                      "%s: damaged %s data at byte %lld of the file, after "
                      "%lld bytes of uncompressed data: %s",
                      source->path, format_name(inflater),
                      byte_of(inflater, source), (long long)offset, what);
}

static int ends_early(const leat__inflater *inflater,
                      const leat__byte_source *source, int64_t offset)
{
    return leat_error(LEAT_EFORMAT,
                      "%s: its %s data ends early, at byte %lld of the file, "
                      "after %lld bytes of uncompressed data",
                      source->path, format_name(inflater),
                      byte_of(inflater, source), (long long)offset);
}

/* Zeros up to the end, as tapes and some writers append them. */
static int pass_padding(leat__inflater *inflater, leat__byte_source *source,
                        int64_t offset)
{
    z_stream *z = &inflater->z;
    for (;;) {
        int status = need_input(inflater, source, 1);
        if (status || z->avail_in == 0)
            return status;
        for (; z->avail_in > 0; z->next_in++, z->avail_in--)
            if (*z->next_in != 0)
                return damaged(inflater, source, offset,
                               "other bytes follow its end");
    }
}

/* Begins the next member; *ended: there is none. */
static int next_member(leat__inflater *inflater, leat__byte_source *source,
                       int64_t offset, bool *ended)
{
    z_stream *z = &inflater->z;
    int status = need_input(inflater, source, LEAT__GZIP_MAGIC);
    if (status)
        return status;
    *ended = z->avail_in == 0;
    if (*ended)
        return LEAT_OK;
    if (inflater->is_padding || (inflater->has_begun && *z->next_in == 0)) {
        inflater->is_padding = true;
        *ended = true;
        return pass_padding(inflater, source, offset);
    }
    bool begins = inflater->is_zlib ? begins_zlib(z) : begins_gzip(z);
    if (!begins && inflater->input_ended && z->avail_in < LEAT__GZIP_MAGIC)
        return ends_early(inflater, source, offset);
    if (!begins)
        return damaged(inflater, source, offset,
                       inflater->has_begun ? "other bytes follow its end"
                                           : "it does not begin as such");
    inflater->is_between = false;
    inflater->has_begun = true;
    if (inflateReset2(z, inflater->is_zlib ? ZLIB_WINDOW : GZIP_WINDOW) != Z_OK)
        return damaged(inflater, source, offset, "it cannot be decompressed");
    return LEAT_OK;
}

/* What inflate returned where it gave no byte; LEAT_OK: it may go on. */
static int judge(leat__inflater *inflater, const leat__byte_source *source,
                 int64_t offset, int code)
{
    const z_stream *z = &inflater->z;
    if (code == Z_STREAM_END || code == Z_OK)
        return LEAT_OK;
    if (code == Z_MEM_ERROR)
        return leat__error_memory(ZLIB_BYTES);
    if (code == Z_BUF_ERROR && inflater->input_ended)
        return ends_early(inflater, source, offset);
    if (code == Z_BUF_ERROR)
        return LEAT_OK;
    return damaged(inflater, source, offset,
                   code == Z_NEED_DICT ? "it needs a dictionary"
                   : z->msg            ? z->msg
                                       : "it cannot be decompressed");
}

int leat__inflater_read(leat__inflater *inflater, leat__byte_source *source,
                        int64_t offset, void *out, size_t n, size_t *got)
{
    z_stream *z = &inflater->z;
    unsigned room = n < UINT_MAX ? (unsigned)n : UINT_MAX;
    bool ended = false;
    int status = LEAT_OK;
    *got = 0;
    z->next_out = out;
    z->avail_out = room;
    while (!status && z->avail_out == room && !ended) {
        if (inflater->is_between) {
            status = next_member(inflater, source, offset, &ended);
            continue;
        }
        status = need_input(inflater, source, 1);
        if (status)
            break;
        int code = inflate(z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            inflater->is_between = true;
        if (z->avail_out == room)
            status = judge(inflater, source, offset, code);
    }
    *got = room - z->avail_out;
    return status;
}
