/*
 * JPEG, through libjpeg-turbo. Its errors leave by longjmp to the setjmp of
 * leat__jpeg_open or leat__jpeg_read; whatever must survive that lies in the
 * leat__jpeg.
 */
#include "base/error.h"
#include "base/log.h"
#include "data/image_codec.h"
#include "data/image_exif.h"
#include "data/image_jpeg_memory.h"
#include "data/image_jpeg_work.h"
#include "data/jpeg/baseline_jpeg.h"

#include <jerror.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows handed to libjpeg at a time; it makes at most 4 of them at once. */
#define ROWS_AT_ONCE 4
/* In bytes 96, which keeps rows off vector alignment; see image.c. */
#define COLUMN_STEP 32
/* Each scan walks the whole image: far more than any encoder writes. */
#define SCANS_MAX 500
/* APP1 begins with "Exif" and two zeros. */
#define EXIF_HEAD_BYTES 6

struct leat__jpeg {
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr input;
    struct jpeg_progress_mgr progress;
    struct jpeg_memory_mgr *first_manager; /* put back to destroy */
    leat__jpeg_memory memory;
    leat__baseline_jpeg *baseline; /* NULL: libjpeg decodes all */
    leat__jpeg_counts counts;
    jmp_buf escape;
    int status;       /* status of the jump to `escape` */
    bool is_done;     /* all pixels are decoded: errors count as warnings */
    bool is_scanning; /* coefficients are read, scan by scan */
    uint64_t work;    /* of the scans so far */
    bool has_ended;   /* libjpeg requested bytes after the last */
    char warning[16 + JMSG_LENGTH_MAX]; /* the first of this image; or "" */
    const leat__image_source *source;
    const unsigned char *exif; /* the first APP1, in the source; or NULL */
    size_t exif_bytes;
};

static leat__jpeg *owner(j_common_ptr codec)
{
    return codec->client_data;
}

static _Noreturn void leave(leat__jpeg *jpeg, int status)
{
    jpeg->status = status;
    longjmp(jpeg->escape, 1);
}

static void note_warning(leat__jpeg *jpeg)
{
    char text[JMSG_LENGTH_MAX];
    if (*jpeg->warning)
        return;
    jpeg->errors.format_message((j_common_ptr)&jpeg->codec, text);
    snprintf(jpeg->warning, sizeof(jpeg->warning), "JPEG: %s", text);
}

static void error_exit(j_common_ptr codec)
{
    leat__jpeg *jpeg = owner(codec);
    if (jpeg->is_done) {
        note_warning(jpeg);
        leave(jpeg, LEAT_OK);
    }
    /* The arena has set the error line. */
    if (codec->err->msg_code == JERR_OUT_OF_MEMORY)
        leave(jpeg,
              jpeg->memory.arena ? jpeg->memory.arena->status : LEAT_ENOMEM);
    char text[JMSG_LENGTH_MAX];
    codec->err->format_message(codec, text);
    leave(jpeg, leat_error(LEAT_EDATA, "JPEG%s: %s",
                           jpeg->has_ended ? " ends early" : "", text));
}

static int ends_early(const leat__jpeg *jpeg)
{
    return leat_error(LEAT_EDATA,
                      "JPEG ends early: its %zu bytes do not hold "
                      "%u x %u pixels",
                      jpeg->source->size, jpeg->codec.image_width,
                      jpeg->codec.image_height);
}

/*
 * Negative levels are warnings. Damage may let a scan meet a marker too soon:
 * its other pixels are gray then, as in Caffe. But where the bytes have run
 * out, it is the end marker of fill_input, and Caffe's pixels are made up.
 */
static void emit_message(j_common_ptr codec, int level)
{
    leat__jpeg *jpeg = owner(codec);
    if (level >= 0)
        return;
    codec->err->num_warnings++;
    note_warning(jpeg);
    if (codec->err->msg_code == JWRN_HIT_MARKER && jpeg->has_ended &&
        !jpeg->is_done)
        leave(jpeg, ends_early(jpeg));
}

static void output_message(j_common_ptr codec)
{
    (void)codec; /* a library does not print */
}

static void start_input(j_decompress_ptr codec)
{
    (void)codec; /* leat__jpeg_open has */
}

/*
 * After the last byte an end-of-image marker follows, repeatedly. Not for
 * arithmetic coding, which would continue silently with made-up data.
 */
static boolean fill_input(j_decompress_ptr codec)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    leat__jpeg *jpeg = codec->client_data;
    jpeg->has_ended = true;
    /* In a header the process and the size may be those of an earlier image. */
    if (codec->input_scan_number > 0 && codec->arith_code && !jpeg->is_done)
        leave(jpeg, ends_early(jpeg));
    codec->src->next_input_byte = end;
    codec->src->bytes_in_buffer = sizeof(end);
    return TRUE;
}

static void skip_input(j_decompress_ptr codec, long bytes)
{
    struct jpeg_source_mgr *input = codec->src;
    if (bytes <= 0)
        return;
    if ((size_t)bytes > input->bytes_in_buffer) {
        fill_input(codec);
        return;
    }
    input->next_input_byte += bytes;
    input->bytes_in_buffer -= (size_t)bytes;
}

static void stop_input(j_decompress_ptr codec)
{
    (void)codec;
}

/* Is called before each row of MCUs of each scan. */
static void limit_scans(j_common_ptr codec)
{
    leat__jpeg *jpeg = owner(codec);
    int scans = jpeg->codec.input_scan_number;
    if (scans > SCANS_MAX)
        leave(jpeg,
              leat_error(LEAT_EDATA, "JPEG of more than %d scans", SCANS_MAX));
    if (!jpeg->is_scanning)
        return;
    jpeg->work += leat__jpeg_row_work(&jpeg->codec);
    if (jpeg->work > leat__jpeg_most_work(&jpeg->codec, jpeg->source->size))
        leave(jpeg,
              leat_error(LEAT_EDATA,
                         "JPEG of %u x %u pixels has more scans than its %zu "
                         "bytes can be of use for: they are given up after %d",
                         jpeg->codec.image_width, jpeg->codec.image_height,
                         jpeg->source->size, scans));
}

/*
 * Notes where the first APP1 lies, instead of libjpeg's copy of it. Its two
 * bytes of length count themselves; libjpeg saves none of a length below that.
 */
static boolean note_exif(j_decompress_ptr codec)
{
    leat__jpeg *jpeg = codec->client_data;
    struct jpeg_source_mgr *input = codec->src;
    if (input->bytes_in_buffer < 2) {
        fill_input(codec);
        return TRUE;
    }
    size_t bytes = (size_t)input->next_input_byte[0] << 8;
    bytes |= input->next_input_byte[1];
    size_t body = bytes < 2 ? 0 : bytes - 2;
    skip_input(codec, 2);
    if (bytes >= 2 && !jpeg->exif && body <= input->bytes_in_buffer) {
        jpeg->exif = input->next_input_byte;
        jpeg->exif_bytes = body;
    }
    skip_input(codec, (long)body);
    return TRUE;
}

static void set_callbacks(leat__jpeg *jpeg)
{
    jpeg->codec.err = jpeg_std_error(&jpeg->errors);
    jpeg->codec.client_data = jpeg;
    jpeg->errors.error_exit = error_exit;
    jpeg->errors.emit_message = emit_message;
    jpeg->errors.output_message = output_message;
    jpeg->progress.progress_monitor = limit_scans;
    jpeg->input.init_source = start_input;
    jpeg->input.fill_input_buffer = fill_input;
    jpeg->input.skip_input_data = skip_input;
    jpeg->input.resync_to_restart = jpeg_resync_to_restart;
    jpeg->input.term_source = stop_input;
}

/* LEAT_JPEG=libjpeg leaves all images to the library. */
static int create_baseline(leat__jpeg *jpeg)
{
    const char *name = getenv("LEAT_JPEG");
    if (name && strcmp(name, "libjpeg") == 0)
        return LEAT_OK;
    if (name && *name)
        leat__log(LEAT_LOG_WARNING,
                  "LEAT_JPEG=%s names no decoder; it can be libjpeg, which "
                  "then decodes every JPEG",
                  name);
    return leat__baseline_jpeg_create(&jpeg->baseline);
}

int leat__jpeg_create(leat__jpeg **out, leat__arena *arena)
{
    leat__jpeg *jpeg = leat__alloc_zero(1, sizeof(*jpeg));
    if (!jpeg)
        return LEAT_ENOMEM;
    set_callbacks(jpeg);
    if (setjmp(jpeg->escape)) {
        int status = jpeg->status;
        if (status == LEAT_ENOMEM)
            leat__error_memory(sizeof(jpeg->codec));
        jpeg_destroy_decompress(&jpeg->codec);
        leat__baseline_jpeg_destroy(jpeg->baseline);
        leat__free(jpeg);
        return status;
    }
    int status = create_baseline(jpeg);
    if (status) {
        leat__free(jpeg);
        return status;
    }
    /* This one clears all of the object but `err` and `client_data`. */
    jpeg_create_decompress(&jpeg->codec);
    jpeg_set_marker_processor(&jpeg->codec, JPEG_APP0 + 1, note_exif);
    jpeg->codec.src = &jpeg->input;
    jpeg->codec.progress = &jpeg->progress;
    leat__jpeg_memory_init(&jpeg->memory, arena);
    jpeg->first_manager = jpeg->codec.mem;
    jpeg->codec.mem = &jpeg->memory.manager;
    *out = jpeg;
    return LEAT_OK;
}

void leat__jpeg_destroy(leat__jpeg *jpeg)
{
    if (!jpeg)
        return;
    jpeg->codec.mem = jpeg->first_manager;
    jpeg_destroy_decompress(&jpeg->codec);
    leat__baseline_jpeg_destroy(jpeg->baseline);
    leat__free(jpeg);
}

leat__jpeg_counts leat__jpeg_count(const leat__jpeg *jpeg)
{
    return jpeg->counts;
}

/* Back to the state of a new object: no image may use another's tables. */
void leat__jpeg_close(leat__jpeg *jpeg)
{
    jpeg_abort_decompress(&jpeg->codec);
    memset(jpeg->codec.quant_tbl_ptrs, 0, sizeof(jpeg->codec.quant_tbl_ptrs));
    memset(jpeg->codec.dc_huff_tbl_ptrs, 0,
           sizeof(jpeg->codec.dc_huff_tbl_ptrs));
    memset(jpeg->codec.ac_huff_tbl_ptrs, 0,
           sizeof(jpeg->codec.ac_huff_tbl_ptrs));
    leat__arena_reset(jpeg->memory.arena);
}

static int choose_colors(leat__jpeg *jpeg, leat__image_frame *frame)
{
    struct jpeg_decompress_struct *codec = &jpeg->codec;
    int components = codec->num_components;
    if (components != 1 && components != 3 && components != 4)
        return leat_error(LEAT_EDATA, "JPEG of %d components", components);
    leat_color color = jpeg->source->color;
    if (color == LEAT_COLOR_NATIVE)
        color = components == 1 ? LEAT_COLOR_GRAY : LEAT_COLOR_BGR;
    frame->channels = color == LEAT_COLOR_GRAY ? 1 : 3;
    if (components == 4)
        codec->out_color_space = JCS_CMYK;
    else
        codec->out_color_space =
            color == LEAT_COLOR_GRAY ? JCS_GRAYSCALE : JCS_EXT_BGR;
    return LEAT_OK;
}

static int read_header(leat__jpeg *jpeg, leat__image_frame *frame)
{
    struct jpeg_decompress_struct *codec = &jpeg->codec;
    jpeg_read_header(codec, TRUE);
    int status =
        leat__image_check_size(codec->image_width, codec->image_height);
    if (status)
        return status;
    if (jpeg->has_ended || leat__jpeg_is_too_short(codec, jpeg->source->size))
        return ends_early(jpeg);
    frame->height = (int)codec->image_height;
    frame->width = (int)codec->image_width;
    frame->orientation = 1;
    if (jpeg->exif_bytes > EXIF_HEAD_BYTES &&
        jpeg->source->color != LEAT_COLOR_NATIVE)
        frame->orientation = leat__exif_orientation(
            jpeg->exif + EXIF_HEAD_BYTES, jpeg->exif_bytes - EXIF_HEAD_BYTES);
    frame->working_bytes = leat__jpeg_working_bytes(codec);
    return choose_colors(jpeg, frame);
}

/* Inks lie inverted, as Adobe writes them; OpenCV's integers, not libjpeg's. */
static void convert_cmyk(const unsigned char *from, unsigned char *to,
                         int channels, int width)
{
    for (int x = 0; x < width; x++, from += 4, to += channels) {
        int k = from[3];
        int red = k - ((255 - from[0]) * k >> 8);
        int green = k - ((255 - from[1]) * k >> 8);
        int blue = k - ((255 - from[2]) * k >> 8);
        if (channels == 1) {
            /* 0.299, 0.587 and what is left of 1, in units of 2^-14 */
            to[0] = (unsigned char)((red * 4899 + green * 9617 + blue * 1868 +
                                     (1 << 13)) >>
                                    14);
        } else {
            to[0] = (unsigned char)blue;
            to[1] = (unsigned char)green;
            to[2] = (unsigned char)red;
        }
    }
}

static void read_cmyk_rows(leat__jpeg *jpeg, const leat__image_frame *frame,
                           unsigned char *to)
{
    struct jpeg_decompress_struct *codec = &jpeg->codec;
    JSAMPARRAY row = codec->mem->alloc_sarray((j_common_ptr)codec, JPOOL_IMAGE,
                                              codec->output_width * 4, 1);
    size_t pitch = (size_t)frame->width * (size_t)frame->channels;
    for (int y = 0; y < frame->height; y++, to += pitch) {
        jpeg_read_scanlines(codec, row, 1);
        convert_cmyk(row[0], to, frame->channels, frame->width);
    }
}

/* Reads up to row `end`; rows are `pitch` bytes apart. */
static void read_rows(leat__jpeg *jpeg, unsigned char *to, size_t pitch,
                      JDIMENSION end)
{
    struct jpeg_decompress_struct *codec = &jpeg->codec;
    while (codec->output_scanline < end) {
        JSAMPROW rows[ROWS_AT_ONCE];
        JDIMENSION n = 0, left = end - codec->output_scanline;
        for (; n < ROWS_AT_ONCE && n < left; n++)
            rows[n] = to + (codec->output_scanline + n) * pitch;
        jpeg_read_scanlines(codec, rows, n);
    }
}

/* Leaves out what lies left and right; returns the first column that stays. */
static JDIMENSION crop_columns(struct jpeg_decompress_struct *codec,
                               const leat__image_region *region)
{
    /* Upsampling looks one column beyond, and differs at the window's edge. */
    JDIMENSION column = (JDIMENSION)(region->column - (region->column > 0));
    column -= column % COLUMN_STEP;
    JDIMENSION end = (JDIMENSION)(region->column + region->columns + 1);
    if (end > codec->output_width)
        end = codec->output_width;
    JDIMENSION columns = end - column;
    /* A window of a sample or two would get another upsampler. */
    if (columns < (JDIMENSION)(DCTSIZE * codec->max_h_samp_factor))
        return 0;
    jpeg_crop_scanline(codec, &column, &columns);
    return column;
}

/*
 * Rows and columns outside the region are entropy-decoded, so that damage there
 * is found all the same, but not transformed, upsampled and coloured.
 */
static void read_region(leat__jpeg *jpeg, const leat__image_region *region,
                        const leat__image_frame *frame, unsigned char *to)
{
    struct jpeg_decompress_struct *codec = &jpeg->codec;
    size_t channels = (size_t)frame->channels;
    size_t pitch = (size_t)frame->width * channels;
    JDIMENSION height = codec->output_height;
    to += crop_columns(codec, region) * channels;
    jpeg_skip_scanlines(codec, (JDIMENSION)region->row);
    /* Upsampling makes a group of rows at once; a skip may not divide one. */
    JDIMENSION group = (JDIMENSION)codec->max_v_samp_factor;
    JDIMENSION end = (JDIMENSION)(region->row + region->rows);
    end += (group - end % group) % group;
    read_rows(jpeg, to, pitch, end < height ? end : height);
    /* A skip to the very end would not look at the bytes that it skips. */
    if (codec->output_scanline + 1 < height)
        jpeg_skip_scanlines(codec, height - 1 - codec->output_scanline);
    read_rows(jpeg, to, pitch, height);
}

/*
 * With several scans, damage makes libjpeg smooth blocks by their neighbours,
 * which it does otherwise in a window; arithmetic coding could not be skipped
 * in its older versions.
 */
static bool can_skip(const leat__jpeg *jpeg)
{
    const struct jpeg_decompress_struct *codec = &jpeg->codec;
    return !jpeg_has_multiple_scans((j_decompress_ptr)codec) &&
           !codec->arith_code;
}

static int read_image(leat__jpeg *jpeg, const leat__image_region *region,
                      unsigned char *pixels, const leat__image_frame *frame)
{
    struct jpeg_decompress_struct *codec = &jpeg->codec;
    jpeg->is_scanning = jpeg_has_multiple_scans(codec);
    jpeg_start_decompress(codec);
    jpeg->is_scanning = false;
    /* Without the end marker, further scans may be missing. */
    if (jpeg->has_ended && jpeg_has_multiple_scans(codec))
        return ends_early(jpeg);
    if (codec->out_color_space == JCS_CMYK)
        read_cmyk_rows(jpeg, frame, pixels);
    else if (region && can_skip(jpeg))
        read_region(jpeg, region, frame, pixels);
    else
        read_rows(jpeg, pixels, (size_t)frame->width * (size_t)frame->channels,
                  codec->output_height);
    /* Only now the bytes up to the end marker are read. */
    jpeg->is_done = true;
    jpeg_finish_decompress(codec);
    return LEAT_OK;
}

int leat__jpeg_open(leat__jpeg *jpeg, const leat__image_source *source,
                    leat__image_frame *frame)
{
    jpeg->source = source;
    jpeg->input.next_input_byte = source->bytes;
    jpeg->input.bytes_in_buffer = source->size;
    jpeg->is_done = jpeg->has_ended = false;
    jpeg->warning[0] = 0;
    jpeg->is_scanning = false;
    jpeg->work = 0;
    jpeg->exif = NULL;
    jpeg->exif_bytes = 0;
    if (setjmp(jpeg->escape) == 0)
        jpeg->status = read_header(jpeg, frame);
    return jpeg->status;
}

/* Without a warning so far; the fast path has none of its own. */
static bool read_baseline(leat__jpeg *jpeg, const leat__image_region *region,
                          unsigned char *pixels, const leat__image_frame *frame)
{
    return jpeg->baseline && !*jpeg->warning &&
           leat__baseline_jpeg_read(jpeg->baseline, &jpeg->codec,
                                    jpeg->memory.arena, region, frame, pixels);
}

int leat__jpeg_read(leat__jpeg *jpeg, const leat__image_region *region,
                    unsigned char *pixels, leat__image_frame *frame)
{
    if (read_baseline(jpeg, region, pixels, frame)) {
        jpeg->counts.fast++;
        frame->warning = NULL;
        return LEAT_OK;
    }
    if (setjmp(jpeg->escape) == 0)
        jpeg->status = read_image(jpeg, region, pixels, frame);
    jpeg->counts.library += jpeg->status == LEAT_OK;
    frame->warning = *jpeg->warning    ? jpeg->warning
                     : jpeg->has_ended ? "JPEG: its end marker is missing"
                                       : NULL;
    return jpeg->status;
}
