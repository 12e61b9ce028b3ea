/*
 * PNG, through libpng with the calls that OpenCV makes. Its errors leave by
 * longjmp to the setjmp of leat__png_open or leat__png_read; whatever must
 * survive that lies in the leat__png. All that libpng and zlib allocate goes
 * with the arena.
 */
#include "base/error.h"
#include "data/image_codec.h"
#include "data/image_exif.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define SIGNATURE_BYTES 8
#define CHUNK_BYTES 12 /* of length, name and checksum */
#define CRC_BYTES 4
/* deflate expands a byte at most this much. */
#define INFLATION_MAX 1032
/* A chunk may inflate to so much, as libpng has it by default. */
#define CHUNK_BYTES_MAX ((size_t)8000000)
/* What libpng and zlib take for an image of any size, and a pixel of a row. */
#define FIXED_BYTES ((uint64_t)256 << 10)
#define PIXEL_BYTES 8
/* Bytes of image data that may follow those of the last row. */
#define TAIL_BYTES_MAX ((size_t)64 << 10)

struct leat__png {
    leat__arena *arena; /* borrowed */
    jmp_buf escape;
    int status;        /* status of the jump to `escape` */
    char warning[128]; /* the first of this image; or "" */
    const leat__image_source *source;
    size_t position; /* in the source */
    png_structp codec;
    png_infop info;
    int bit_depth;
    int color_type;
    bool is_tail_due; /* what follows the last row is still to be checked */
};

static _Noreturn void leave(leat__png *png, int status)
{
    png->status = status;
    longjmp(png->escape, 1);
}

static void error_exit(png_structp codec, png_const_charp text)
{
    leave(png_get_error_ptr(codec), leat_error(LEAT_EDATA, "PNG: %s", text));
}

static void note_warning(png_structp codec, png_const_charp text)
{
    leat__png *png = png_get_error_ptr(codec);
    if (!*png->warning)
        snprintf(png->warning, sizeof(png->warning), "PNG: %s", text);
}

/* libpng would continue without allocations that it considers optional. */
static png_voidp alloc_bytes(png_structp codec, png_alloc_size_t bytes)
{
    leat__png *png = png_get_mem_ptr(codec);
    void *memory = leat__arena_alloc(png->arena, bytes);
    if (!memory)
        leave(png, png->arena->status);
    return memory;
}

static void free_bytes(png_structp codec, png_voidp memory)
{
    leat__png *png = png_get_mem_ptr(codec);
    leat__arena_free(png->arena, memory);
}

static int ends_early(const leat__png *png)
{
    return leat_error(LEAT_EDATA, "PNG ends early, after %zu bytes",
                      png->source->size);
}

/* A chunk as it lies in the source. */
typedef struct png_chunk {
    const unsigned char *name;
    const unsigned char *data;
    size_t bytes;
} png_chunk;

/* The chunk at *position, which moves on; 0 where no whole one is left. */
static bool next_chunk(const leat__image_source *source, size_t *position,
                       png_chunk *out)
{
    size_t left = source->size - *position;
    if (left < CHUNK_BYTES)
        return false;
    const unsigned char *chunk = source->bytes + *position;
    out->bytes = png_get_uint_32(chunk);
    out->name = chunk + 4;
    out->data = chunk + 8;
    if (out->bytes > left - CHUNK_BYTES)
        return false;
    *position += out->bytes + CHUNK_BYTES;
    return true;
}

static bool is_named(const png_chunk *chunk, const void *name)
{
    return !memcmp(chunk->name, name, 4);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes from the position to `end`, which may lie before it. */
static size_t bytes_until(const leat__png *png, size_t end)
{
    return end > png->position ? end - png->position : 0;
}

/* Bytes of image data beyond the position. Sets *is_cut where IEND lacks. */
static size_t count_unread_data(const leat__png *png, bool *is_cut)
{
    size_t end = SIGNATURE_BYTES, bytes = 0;
    png_chunk chunk = {0};
    while (next_chunk(png->source, &end, &chunk)) {
        if (is_named(&chunk, "IEND"))
            return bytes;
        if (is_named(&chunk, "IDAT"))
            bytes += smaller(chunk.bytes, bytes_until(png, end - CRC_BYTES));
    }
    *is_cut = true;
    size_t left = png->source->size - end;
    if (left >= CHUNK_BYTES && is_named(&chunk, "IDAT"))
        bytes += smaller(left, bytes_until(png, png->source->size));
    return bytes;
}

/* libpng would inflate it all, however much that is. */
static void check_tail(leat__png *png)
{
    if (png->source->size - png->position <= TAIL_BYTES_MAX)
        return;
    bool is_cut = false;
    size_t bytes = count_unread_data(png, &is_cut);
    if (bytes <= TAIL_BYTES_MAX)
        return;
    if (is_cut)
        leave(png, ends_early(png));
    leave(png, leat_error(LEAT_EDATA,
                          "PNG has %zu bytes of image data after its last row; "
                          "at most %zu are passed over",
                          bytes, TAIL_BYTES_MAX));
}

static bool are_rows_read(const leat__png *png)
{
    if (png_get_interlace_type(png->codec, png->info) != PNG_INTERLACE_NONE)
        return png_get_current_pass_number(png->codec) >=
               PNG_INTERLACE_ADAM7_PASSES;
    return png_get_current_row_number(png->codec) >=
           png_get_image_height(png->codec, png->info);
}

static void read_bytes(png_structp codec, png_bytep to, size_t bytes)
{
    leat__png *png = png_get_io_ptr(codec);
    if (png->is_tail_due && are_rows_read(png)) {
        png->is_tail_due = false;
        check_tail(png);
    }
    if (bytes > png->source->size - png->position)
        leave(png, ends_early(png));
    memcpy(to, png->source->bytes + png->position, bytes);
    png->position += bytes;
}

int leat__png_create(leat__png **out, leat__arena *arena)
{
    leat__png *png = leat__alloc_zero(1, sizeof(*png));
    if (!png)
        return LEAT_ENOMEM;
    png->arena = arena;
    *out = png;
    return LEAT_OK;
}

void leat__png_destroy(leat__png *png)
{
    leat__free(png);
}

/* Texts and suggested palettes do not touch pixels, and may be huge. */
static const png_byte ignored[] = "tEXt\0zTXt\0iTXt\0sPLT";
#define IGNORED 4
#define NAME_STEP 5 /* from name to name */

static void create_codec(leat__png *png)
{
    png->codec =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, png, error_exit,
                                 note_warning, png, alloc_bytes, free_bytes);
    if (!png->codec)
        leave(png, leat_error(LEAT_EDATA, "PNG: this libpng, %s, does not fit",
                              png_get_libpng_ver(NULL)));
    png_set_keep_unknown_chunks(png->codec, PNG_HANDLE_CHUNK_NEVER, ignored,
                                IGNORED);
    png_set_chunk_malloc_max(png->codec, CHUNK_BYTES_MAX);
    png->info = png_create_info_struct(png->codec);
    png_set_read_fn(png->codec, png, read_bytes);
}

/* libpng refuses a chunk that it knows before the header, if it looks at it. */
static bool is_header_late(const leat__image_source *source)
{
    size_t position = SIGNATURE_BYTES;
    png_chunk chunk;
    while (next_chunk(source, &position, &chunk) && !is_named(&chunk, "IHDR"))
        for (size_t i = 0; i < IGNORED; i++)
            if (is_named(&chunk, ignored + i * NAME_STEP))
                return true;
    return false;
}

/* Whether libpng accepts this eXIf chunk. */
static bool is_exif_valid(const png_chunk *chunk)
{
    const unsigned char *data = chunk->data;
    if (chunk->bytes < 2 || (data[0] != 'M' && data[0] != 'I') ||
        data[0] != data[1])
        return false;
    uLong sum = crc32(0, chunk->name, (uInt)chunk->bytes + 4);
    return sum == png_get_uint_32(data + chunk->bytes);
}

/*
 * The orientation in the first valid eXIf chunk. It may follow the image data,
 * so the chunks are walked here, which costs nothing of what lies in them.
 */
static int find_orientation(const leat__image_source *source)
{
    size_t position = SIGNATURE_BYTES;
    png_chunk chunk;
    while (next_chunk(source, &position, &chunk) && !is_named(&chunk, "IEND"))
        if (is_named(&chunk, "eXIf") && is_exif_valid(&chunk))
            return leat__exif_orientation(chunk.data, chunk.bytes);
    return 1;
}

static int native_channels(const leat__png *png)
{
    png_bytep alpha;
    png_color_16p color;
    int entries = 0;
    switch (png->color_type) {
    case PNG_COLOR_TYPE_GRAY:
        return 1;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_PALETTE:
        png_get_tRNS(png->codec, png->info, &alpha, &entries, &color);
        return entries > 0 ? 4 : 3;
    default:
        return 4;
    }
}

/* deflate's limit bounds the image of a small file. */
static bool is_too_short(const leat__png *png, uint64_t height)
{
    uint64_t row = png_get_rowbytes(png->codec, png->info);
    return row * height / INFLATION_MAX > png->source->size;
}

/*
 * What libpng takes beside our pixels: what the header's chunks took already,
 * and two rows, the one before and the present, padded to whole bytes.
 */
static uint64_t count_working_bytes(const leat__png *png, uint64_t width)
{
    uint64_t row = (width + 8) * PIXEL_BYTES;
    return png->arena->used + png->arena->spilled + 2 * row + FIXED_BYTES;
}

static int read_header(leat__png *png, leat__image_frame *frame)
{
    const leat__image_source *source = png->source;
    if (is_header_late(source))
        return leat_error(LEAT_EDATA, "PNG: a text comes before the header");
    create_codec(png);
    png_read_info(png->codec, png->info);
    png_uint_32 width, height;
    png_get_IHDR(png->codec, png->info, &width, &height, &png->bit_depth,
                 &png->color_type, NULL, NULL, NULL);
    int status = leat__image_check_size(width, height);
    if (status)
        return status;
    if (is_too_short(png, height))
        return ends_early(png);
    frame->width = (int)width;
    frame->height = (int)height;
    frame->orientation = 1;
    frame->working_bytes = count_working_bytes(png, width);
    if (source->color == LEAT_COLOR_NATIVE) {
        if (png->bit_depth == 16)
            return leat_error(LEAT_EDATA,
                              "PNG of 16 bits per channel; "
                              "force_color or force_gray makes it 8");
        frame->channels = native_channels(png);
        return LEAT_OK;
    }
    frame->channels = source->color == LEAT_COLOR_GRAY ? 1 : 3;
    frame->orientation = find_orientation(source);
    return LEAT_OK;
}

static void set_transforms(const leat__png *png, int channels)
{
    png_structp codec = png->codec;
    bool has_color = png->color_type & PNG_COLOR_MASK_COLOR;
    if (png->bit_depth == 16)
        png_set_strip_16(codec);
    if (channels < 4)
        png_set_strip_alpha(codec);
    else
        png_set_tRNS_to_alpha(codec);
    if (png->color_type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(codec);
    if (!has_color && png->bit_depth < 8)
        png_set_expand_gray_1_2_4_to_8(codec);
    if (has_color && channels > 1)
        png_set_bgr(codec);
    else if (channels > 1)
        png_set_gray_to_rgb(codec);
    else
        png_set_rgb_to_gray(codec, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
}

static int read_rows(leat__png *png, unsigned char *to,
                     const leat__image_frame *frame)
{
    set_transforms(png, frame->channels);
    int passes = png_set_interlace_handling(png->codec);
    png_read_update_info(png->codec, png->info);
    size_t pitch = (size_t)frame->width * (size_t)frame->channels;
    if (png_get_rowbytes(png->codec, png->info) != pitch)
        return leat_error(LEAT_EDATA, "PNG: rows of %zu bytes, not %zu",
                          png_get_rowbytes(png->codec, png->info), pitch);
    png->is_tail_due = true;
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < frame->height; y++)
            png_read_row(png->codec, to + (size_t)y * pitch, NULL);
    /* Without an info struct libpng would look at none of these chunks. */
    png_read_end(png->codec, png_create_info_struct(png->codec));
    return LEAT_OK;
}

int leat__png_open(leat__png *png, const leat__image_source *source,
                   leat__image_frame *frame)
{
    png->source = source;
    png->position = 0;
    png->status = LEAT_OK;
    png->warning[0] = 0;
    png->is_tail_due = false;
    if (setjmp(png->escape) == 0)
        png->status = read_header(png, frame);
    return png->status;
}

int leat__png_read(leat__png *png, unsigned char *pixels,
                   leat__image_frame *frame)
{
    if (setjmp(png->escape) == 0)
        png->status = read_rows(png, pixels, frame);
    frame->warning = *png->warning ? png->warning : NULL;
    return png->status;
}

void leat__png_close(leat__png *png)
{
    /* Takes all of libpng's memory with it, in whatever state it is. */
    leat__arena_reset(png->arena);
}
