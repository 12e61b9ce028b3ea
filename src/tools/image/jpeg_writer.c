#include "tools/image/jpeg_writer.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>
#include <stdbool.h>

struct jpeg_encoder {
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    char text[JMSG_LENGTH_MAX]; /* why */
};

static _Noreturn void fail(j_common_ptr codec)
{
    struct jpeg_encoder *encoder = codec->client_data;
    codec->err->format_message(codec, encoder->text);
    longjmp(encoder->failed, 1);
}

/* In its own function, so that longjmp clobbers no variable of the caller. */
static int write_rows(struct jpeg_encoder *encoder, const struct raster *raster,
                      int quality, FILE *stream)
{
    struct jpeg_compress_struct *codec = &encoder->codec;
    codec->err = jpeg_std_error(&encoder->errors);
    codec->client_data = encoder;
    encoder->errors.error_exit = fail;
    if (setjmp(encoder->failed))
        return -1;
    /* This clears all of the codec but `err` and `client_data`. */
    jpeg_create_compress(codec);
    jpeg_stdio_dest(codec, stream);
    codec->image_width = (JDIMENSION)raster->width;
    codec->image_height = (JDIMENSION)raster->height;
    codec->input_components = raster->channels;
    codec->in_color_space = raster->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(codec);
    jpeg_set_quality(codec, quality, TRUE);
    jpeg_start_compress(codec, TRUE);
    size_t step = (size_t)raster->width * (size_t)raster->channels;
    while (codec->next_scanline < codec->image_height) {
        JSAMPROW row = raster->pixels + codec->next_scanline * step;
        jpeg_write_scanlines(codec, &row, 1);
    }
    jpeg_finish_compress(codec);
    return 0;
}

int jpeg_writer_write(const struct raster *raster, int quality, FILE *stream)
{
    struct jpeg_encoder encoder;
    memset(&encoder, 0, sizeof(encoder));
    errno = 0;
    bool failed = write_rows(&encoder, raster, quality, stream);
    /* libjpeg does not report that a stream in memory could not grow. */
    bool is_memory =
        errno == ENOMEM || encoder.errors.msg_code == JERR_OUT_OF_MEMORY;
    jpeg_destroy_compress(&encoder.codec);
    if (!failed)
        return LEAT_OK;
    return leat_error(is_memory ? LEAT_ENOMEM : LEAT_EINVAL,
                      "JPEG of %d x %d x %d: %s", raster->channels,
                      raster->height, raster->width, encoder.text);
}

int jpeg_writer_encode(const struct canvas *canvas, int quality,
                       unsigned char **out, size_t *size)
{
    return canvas_encode(canvas, jpeg_writer_write, quality, out, size);
}
