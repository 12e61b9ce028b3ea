#include "tools/import/image_record.h"

#include "base/error.h"
#include "base/file.h"
#include "tools/cli/buffer.h"
#include "tools/image/image_writer.h"
#include "tools/image/resize.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    JPEG_QUALITY = 95,     /* as of OpenCV's imencode */
    HEAD_BYTES = 64,       /* of a file, that tell what it is */
    MOST_KEPT = 4 << 20,   /* bytes of a buffer after its image */
    RECORD_MOST = INT_MAX, /* the most that protobuf's parsers take */
    WIRE_MOST = 64 + 5 * IMAGE_LABELS_MOST /* of a Datum without its data */
};

struct image_record_maker {
    const struct image_record_options *options;
    leat_image_decoder *decoder;
    struct resizer resizer;
    struct buffer path;
    struct buffer file;
    struct buffer pixels;
    struct buffer record;
    size_t file_size; /* bytes of the file that was read */
};

int image_record_maker_create(struct image_record_maker **out,
                              const struct image_record_options *options)
{
    struct image_record_maker *maker = calloc(1, sizeof(*maker));
    if (!maker)
        return leat_error(LEAT_ENOMEM, "out of memory for images");
    maker->options = options;
    int status = leat_image_decoder_create(&maker->decoder);
    if (status) {
        image_record_maker_destroy(maker);
        return status;
    }
    leat_image_decoder_set_max_bytes(maker->decoder, options->max_image_bytes);
    *out = maker;
    return LEAT_OK;
}

void image_record_maker_destroy(struct image_record_maker *maker)
{
    if (!maker)
        return;
    leat_image_decoder_destroy(maker->decoder);
    resizer_finish(&maker->resizer);
    free(maker->path.bytes);
    free(maker->file.bytes);
    free(maker->pixels.bytes);
    free(maker->record.bytes);
    free(maker);
}

/* The root, a slash where it lacks one, the name. */
static int join_path(struct image_record_maker *maker, const char *name)
{
    const char *root = maker->options->root ? maker->options->root : "";
    size_t length = strlen(root);
    const char *slash = length && root[length - 1] != '/' ? "/" : "";
    size_t size = length + strlen(name) + 2;
    int status = buffer_reserve(&maker->path, size);
    if (!status)
        snprintf((char *)maker->path.bytes, size, "%s%s%s", root, slash, name);
    return status;
}

/*
 * The errors that blame the file, for good. After any other one no image is to
 * be left out: storage fails or is gone, or there are no more descriptors.
 */
static int system_error(const char *path)
{
    static const int blame_file[] = {
        ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, ELOOP,    ENAMETOOLONG,
        EILSEQ, EINVAL,  ENXIO,  ENODEV, EFBIG, EOVERFLOW};
    int status = LEAT_EIO, code = errno;
    for (size_t i = 0; i < sizeof(blame_file) / sizeof(blame_file[0]); i++)
        if (code == blame_file[i])
            status = LEAT_EDATA;
    return leat_error(status, "%s: %s", path, strerror(code));
}

/* Reads on until `size` bytes are there, or the file ends. */
static int read_up_to(struct image_record_maker *maker, const char *path,
                      int fd, size_t size)
{
    int status = buffer_reserve(&maker->file, size + 1);
    if (status)
        return status;
    for (ssize_t n = 1; maker->file_size < size && n;) {
        n = read(fd, maker->file.bytes + maker->file_size,
                 size - maker->file_size);
        if (n < 0 && errno != EINTR)
            return system_error(path);
        maker->file_size += n > 0 ? (size_t)n : 0;
    }
    return LEAT_OK;
}

/* As a JPEG or a PNG, by the bytes of which the decoder says so. */
static bool begins_as_image(const struct image_record_maker *maker)
{
    const unsigned char *bytes = maker->file.bytes;
    return maker->file_size >= 2 && ((bytes[0] == 0xff && bytes[1] == 0xd8) ||
                                     (bytes[0] == 0x89 && bytes[1] == 'P'));
}

/* Of what is no image only the head. */
static int read_bytes(struct image_record_maker *maker, const char *path,
                      int fd)
{
    struct stat about;
    if (fstat(fd, &about))
        return system_error(path);
    if (about.st_size > RECORD_MOST - WIRE_MOST)
        return leat_error(LEAT_EDATA,
                          "%s: %lld bytes, more than the %d that a record can "
                          "hold",
                          path, (long long)about.st_size,
                          RECORD_MOST - WIRE_MOST);
    maker->file_size = 0;
    int status = read_up_to(maker, path, fd, HEAD_BYTES);
    return status || !begins_as_image(maker)
               ? status
               : read_up_to(maker, path, fd, (size_t)about.st_size);
}

/* Opens no pipe, whose writer would take that for a reader. */
static int read_file(struct image_record_maker *maker)
{
    const char *path = (const char *)maker->path.bytes;
    struct stat about;
    int fd = leat__file_open_regular(AT_FDCWD, path, 0);
    if (fd < 0 && errno == ENXIO)
        return leat_error(LEAT_EDATA, "%s: is %s, no regular file", path,
                          !stat(path, &about) && S_ISDIR(about.st_mode)
                              ? "a directory"
                              : "a pipe, a socket or a device");
    if (fd < 0)
        return system_error(path);
    int status = read_bytes(maker, path, fd);
    close(fd);
    return status;
}

int image_record_identify(struct image_record_maker *maker, const char *name,
                          int64_t out[3])
{
    struct stat about;
    const int64_t none[3] = {-1, -1, -1};
    memcpy(out, none, sizeof(none));
    int status = join_path(maker, name);
    if (status)
        return status;
    const char *path = (const char *)maker->path.bytes;
    if (stat(path, &about)) {
        status = system_error(path);
        return status == LEAT_EDATA ? LEAT_OK : status;
    }
    /* What is no image may change: a directory does as the database is made. */
    if (!S_ISREG(about.st_mode))
        return LEAT_OK;
    out[0] = about.st_size;
    out[1] = about.st_mtim.tv_sec;
    out[2] = about.st_mtim.tv_nsec;
    return LEAT_OK;
}

static void take_planes(const leat_image *image, unsigned char *out)
{
    size_t pixels = (size_t)image->height * (size_t)image->width;
    size_t step = (size_t)image->channels;
    for (size_t c = 0; c < step; c++)
        for (size_t i = 0; i < pixels; i++)
            *out++ = image->pixels[i * step + c];
}

/* The pixels as planes, resized if they are to be: `canvas` borrows them. */
static int take_pixels(struct image_record_maker *maker,
                       const leat_image *image, struct canvas *canvas)
{
    const int *size = maker->options->size;
    if (size[0] > 0) {
        canvas->height = size[0];
        canvas->width = size[1];
    }
    size_t bytes = canvas_bytes(canvas);
    if (bytes > RECORD_MOST - WIRE_MOST)
        return leat_error(LEAT_EDATA,
                          "%d x %d pixels take %zu bytes, more than the %d "
                          "that a record can hold",
                          canvas->width, canvas->height, bytes,
                          RECORD_MOST - WIRE_MOST);
    int status = buffer_reserve(&maker->pixels, bytes);
    if (status)
        return status;
    canvas->pixels = maker->pixels.bytes;
    if (size[0] > 0)
        return resizer_apply(&maker->resizer, image, size, canvas->pixels);
    take_planes(image, canvas->pixels);
    return LEAT_OK;
}

static enum image_encoding encoding_of_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") ||
                !strcasecmp(dot, ".jpe")))
        return IMAGE_JPEG;
    return dot && !strcasecmp(dot, ".png") ? IMAGE_PNG : IMAGE_BY_NAME;
}

/* The encoding of an image: by its bytes where its name has none. */
static enum image_encoding
choose_encoding(const struct image_record_maker *maker, const char *name)
{
    enum image_encoding encoding = maker->options->encoding;
    if (encoding == IMAGE_BY_NAME)
        encoding = encoding_of_name(name);
    if (encoding != IMAGE_BY_NAME)
        return encoding;
    return maker->file.bytes[0] == 0xff ? IMAGE_JPEG : IMAGE_PNG;
}

/*
 * Whether the file's own bytes can be used. They are of a gray image if
 * decoding it as it is gives one channel.
 */
static int keeps_bytes(const struct image_record_maker *maker, const char *name,
                       bool *out)
{
    const struct image_record_options *options = maker->options;
    *out = false;
    if (options->encoding == IMAGE_RAW || options->size[0] > 0)
        return LEAT_OK;
    if (options->encoding != IMAGE_BY_NAME &&
        options->encoding != encoding_of_name(name))
        return LEAT_OK;
    *out = true;
    if (!options->gray)
        return LEAT_OK;
    leat_image native;
    int status = leat_image_probe(maker->decoder, maker->file.bytes,
                                  maker->file_size, LEAT_COLOR_NATIVE, &native);
    *out = !status && native.channels == 1;
    /* What is no image is an error of decoding it. */
    return status == LEAT_EDATA ? LEAT_OK : status;
}

static void take_canvas(const struct canvas *canvas, leat_datum *datum)
{
    datum->channels = canvas->channels;
    datum->height = canvas->height;
    datum->width = canvas->width;
    datum->data = canvas->pixels;
    datum->data_size = canvas_bytes(canvas);
}

/* Caffe writes the field `encoded` of raw pixels, too, as false. */
static const unsigned char not_encoded[] = {7 << 3, 0};

static int write_record(struct image_record_maker *maker,
                        const leat_datum *datum, struct pool_record *out)
{
    int status = buffer_reserve(&maker->record,
                                leat_datum_size(datum) + sizeof(not_encoded));
    if (status)
        return status;
    out->bytes = maker->record.bytes;
    out->size = leat_datum_write(datum, maker->record.bytes);
    if (!datum->encoded) {
        memcpy(maker->record.bytes + out->size, not_encoded,
               sizeof(not_encoded));
        out->size += sizeof(not_encoded);
    }
    return LEAT_OK;
}

/* Encodes the pixels; *bytes is owned by the caller. */
static int encode(const struct image_record_maker *maker, const char *name,
                  const struct canvas *canvas, unsigned char **bytes,
                  leat_datum *datum)
{
    bool is_jpeg = choose_encoding(maker, name) == IMAGE_JPEG;
    int status = image_writer_encode(
        canvas, is_jpeg ? image_writer_jpeg : image_writer_png,
        is_jpeg ? JPEG_QUALITY : 0, NULL, bytes, &datum->data_size);
    datum->encoded = 1;
    datum->data = *bytes;
    return status;
}

/* A PNG's depth follows its signature, the head of its first chunk and its two
   sides. The decoder has read them. */
static bool has_16_bits(const struct image_record_maker *maker)
{
    return maker->file.bytes[0] == 0x89 && maker->file.bytes[24] == 16;
}

static int make_record(struct image_record_maker *maker, const char *name,
                       leat_datum *datum, struct pool_record *out)
{
    const struct image_record_options *options = maker->options;
    unsigned char *encoded = NULL;
    leat_image image;
    /* Asked first: the decoder's next call takes pixels and warning back. */
    bool kept;
    int status = keeps_bytes(maker, name, &kept);
    if (!status)
        status = leat_image_decode(
            maker->decoder, maker->file.bytes, maker->file_size,
            options->gray ? LEAT_COLOR_GRAY : LEAT_COLOR_BGR, &image);
    if (status)
        return status;
    const char *warning = leat_image_warning(maker->decoder);
    snprintf(out->warning, sizeof(out->warning), "%s", warning ? warning : "");
    struct canvas canvas = {image.channels, image.height, image.width, NULL,
                            NULL};
    if (kept && !warning && has_16_bits(maker))
        snprintf(out->warning, sizeof(out->warning),
                 "PNG of 16 bits per channel, which a layer reads only with "
                 "force_color or force_gray");
    if (kept) {
        datum->encoded = 1;
        datum->data = maker->file.bytes;
        datum->data_size = maker->file_size;
    } else {
        status = take_pixels(maker, &image, &canvas);
        if (!status && options->encoding != IMAGE_RAW)
            status = encode(maker, name, &canvas, &encoded, datum);
        else if (!status)
            take_canvas(&canvas, datum);
    }
    out->shape[0] = canvas.channels;
    out->shape[1] = canvas.height;
    out->shape[2] = canvas.width;
    if (!status)
        status = write_record(maker, datum, out);
    free(encoded);
    return status;
}

int image_record_make(struct image_record_maker *maker, const char *name,
                      const struct image_label *label, struct pool_record *out)
{
    /* Several labels stand in float_data, which pixels leave free. */
    leat_datum datum = {.label = label->class,
                        .float_data = (const unsigned char *)label->value,
                        .float_count = label->count};
    buffer_trim(&maker->file, MOST_KEPT);
    buffer_trim(&maker->pixels, MOST_KEPT);
    buffer_trim(&maker->record, MOST_KEPT);
    int status = join_path(maker, name);
    if (!status)
        status = read_file(maker);
    if (status)
        return status;
    status = make_record(maker, name, &datum, out);
    /* An image that cannot be encoded, such as a JPEG with a side over 65500,
       is as bad as one that cannot be decoded. */
    return status ? leat__error_context(status == LEAT_EINVAL ? LEAT_EDATA
                                                              : status,
                                        "%s", (const char *)maker->path.bytes)
                  : LEAT_OK;
}
