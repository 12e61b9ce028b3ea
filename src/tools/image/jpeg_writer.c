#include "tools/image/jpeg_writer.h"

#include <leat/ext/reader.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

enum { FIRST_BYTES = 4096 };

struct jpeg_making {
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr output;
    unsigned char *bytes;
    size_t room;
    unsigned char *row;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX]; /* what was wrong */
};

static struct jpeg_making *making_of(const void *codec)
{
    return ((const struct jpeg_common_struct *)codec)->client_data;
}

static _Noreturn void leave(j_common_ptr codec)
{
    struct jpeg_making *making = making_of(codec);
    codec->err->format_message(codec, making->text);
    longjmp(making->back, 1);
}

/*
 * libjpeg's own output to memory frees its first block when it takes a larger
 * one, and tells of that at the end alone: who is left by an error in between
 * would free what is free.
 */
static void take_room(j_compress_ptr codec, size_t used, size_t room)
{
    struct jpeg_making *making = making_of(codec);
    unsigned char *moved = realloc(making->bytes, room);
    if (!moved)
        ERREXIT1(codec, JERR_OUT_OF_MEMORY, 0);
    making->bytes = moved;
    making->room = room;
    making->output.next_output_byte = moved + used;
    making->output.free_in_buffer = room - used;
}

static void begin_output(j_compress_ptr codec)
{
    take_room(codec, 0, FIRST_BYTES);
}

/* The room is full. */
static boolean grow_output(j_compress_ptr codec)
{
    size_t used = making_of(codec)->room;
    take_room(codec, used, 2 * used);
    return TRUE;
}

static void end_output(j_compress_ptr codec)
{
    (void)codec;
}

static void interleave_row(const struct canvas *canvas, unsigned y,
                           unsigned char *row)
{
    size_t width = (size_t)canvas->width;
    size_t plane = (size_t)canvas->height * width;
    for (int c = 0; c < canvas->channels; c++) {
        /* A Datum's first plane is blue, a JPEG's first component red. */
        const unsigned char *from = canvas->pixels + y * width +
                                    (size_t)(canvas->channels - 1 - c) * plane;
        for (size_t x = 0; x < width; x++)
            row[x * (size_t)canvas->channels + (size_t)c] = from[x];
    }
}

static void compress_rows(struct jpeg_making *making,
                          const struct canvas *canvas, int quality)
{
    struct jpeg_compress_struct *codec = &making->codec;
    codec->image_width = (JDIMENSION)canvas->width;
    codec->image_height = (JDIMENSION)canvas->height;
    codec->input_components = canvas->channels;
    codec->in_color_space = canvas->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(codec);
    jpeg_set_quality(codec, quality, TRUE);
    jpeg_start_compress(codec, TRUE);
    while (codec->next_scanline < codec->image_height) {
        interleave_row(canvas, codec->next_scanline, making->row);
        jpeg_write_scanlines(codec, &making->row, 1);
    }
    jpeg_finish_compress(codec);
}

/* Its own function: what a longjmp must find again are its caller's. */
static int try_image(struct jpeg_making *making, const struct canvas *canvas,
                     int quality)
{
    struct jpeg_compress_struct *codec = &making->codec;
    codec->err = jpeg_std_error(&making->errors);
    codec->client_data = making;
    making->errors.error_exit = leave;
    making->output.init_destination = begin_output;
    making->output.empty_output_buffer = grow_output;
    making->output.term_destination = end_output;
    if (setjmp(making->back)) {
        int is_short = making->errors.msg_code == JERR_OUT_OF_MEMORY;
        return leat_error(is_short ? LEAT_ENOMEM : LEAT_EINVAL,
                          "JPEG of %d x %d x %d: %s", canvas->channels,
                          canvas->height, canvas->width, making->text);
    }
    /* This one clears all of it but `err` and `client_data`. */
    jpeg_create_compress(codec);
    codec->dest = &making->output;
    compress_rows(making, canvas, quality);
    return LEAT_OK;
}

int jpeg_writer_encode(const struct canvas *canvas, int quality,
                       unsigned char **out, size_t *size)
{
    struct jpeg_making making = {.bytes = NULL};
    making.row = malloc((size_t)canvas->width * (size_t)canvas->channels);
    if (!making.row)
        return leat_error(LEAT_ENOMEM, "out of memory for a JPEG");
    int status = try_image(&making, canvas, quality);
    jpeg_destroy_compress(&making.codec);
    free(making.row);
    if (status) {
        free(making.bytes);
        return status;
    }
    *out = making.bytes;
    *size = making.room - making.output.free_in_buffer;
    return LEAT_OK;
}
