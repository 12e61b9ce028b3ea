#include "tools/jpeg_writer.h"

#include <leat/ext/reader.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

struct jpeg_failure {
    struct jpeg_error_mgr manager; /* first: libjpeg hands this one back */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

static void leave(j_common_ptr jpeg)
{
    struct jpeg_failure *failure = (struct jpeg_failure *)jpeg->err;
    failure->manager.format_message(jpeg, failure->text);
    longjmp(failure->back, 1);
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

static void compress_rows(struct jpeg_compress_struct *jpeg,
                          const struct canvas *canvas, int quality,
                          unsigned char *row)
{
    jpeg->image_width = (JDIMENSION)canvas->width;
    jpeg->image_height = (JDIMENSION)canvas->height;
    jpeg->input_components = canvas->channels;
    jpeg->in_color_space = canvas->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        interleave_row(canvas, jpeg->next_scanline, row);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

int jpeg_writer_encode(const struct canvas *canvas, int quality,
                       unsigned char **out, size_t *size)
{
    unsigned char *row =
        malloc((size_t)canvas->width * (size_t)canvas->channels);
    if (!row)
        return leat_error(LEAT_ENOMEM, "out of memory for a JPEG");

    /* volatile: they are looked at after a longjmp. */
    unsigned char *volatile bytes = NULL;
    unsigned long written = 0;
    struct jpeg_compress_struct jpeg;
    struct jpeg_failure failure;
    jpeg.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = leave;
    if (setjmp(failure.back)) {
        jpeg_destroy_compress(&jpeg);
        free(bytes);
        free(row);
        int short_of_memory = jpeg.err->msg_code == JERR_OUT_OF_MEMORY;
        return leat_error(short_of_memory ? LEAT_ENOMEM : LEAT_EINVAL,
                          "JPEG of %d x %d x %d: %s", canvas->channels,
                          canvas->height, canvas->width, failure.text);
    }
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, (unsigned char **)&bytes, &written);
    compress_rows(&jpeg, canvas, quality, row);
    jpeg_destroy_compress(&jpeg);
    free(row);
    *out = bytes;
    *size = written;
    return LEAT_OK;
}
