/* command_synth.c: `leat synth`, databases of drawn images. */
#include "tools/cli/buffer.h"
#include "tools/command.h"
#include "tools/database/worker_pool.h"
#include "tools/image/image_writer.h"
#include "tools/import/importer.h"

#include <leat/datum.h>

/* Up to here keys of eight digits ascend. */
static const int64_t max_records = 100000000;

enum { MAX_SIDE = 8192, MAX_BYTES = 256 << 20 };

struct synth {
    struct importer importer; /* first */
    int64_t count;
    int shape[3];
    int64_t quality;
    int64_t seed;
    canvas_draw *draw;

    struct worker_pool *pool;
    int64_t next; /* record to be taken */
};

/* The state of a thread. */
struct drawing {
    struct canvas canvas;
    struct buffer record;
};

static int open_drawing(void **out, const void *context)
{
    const struct synth *synth = context;
    struct drawing *drawing = calloc(1, sizeof(*drawing));
    if (!drawing)
        return leat_error(LEAT_ENOMEM, "out of memory for images");
    int status = canvas_init(&drawing->canvas, synth->shape);
    if (status)
        free(drawing);
    else
        *out = drawing;
    return status;
}

static void close_drawing(void *argument)
{
    struct drawing *drawing = argument;
    if (!drawing)
        return;
    canvas_finish(&drawing->canvas);
    free(drawing->record.bytes);
    free(drawing);
}

static int make_record(void *argument, const void *context, int64_t number,
                       struct pool_record *out)
{
    const struct synth *synth = context;
    struct drawing *drawing = argument;
    struct canvas *canvas = &drawing->canvas;
    unsigned char *image = NULL;
    leat_datum datum = {.channels = canvas->channels,
                        .height = canvas->height,
                        .width = canvas->width,
                        .data = canvas->pixels,
                        .data_size = canvas_bytes(canvas)};
    int label;
    int status = synth->draw(canvas, (uint64_t)synth->seed, number,
                             interrupt_check, &label);
    if (status)
        return status;
    if (synth->quality) {
        datum = (leat_datum){.encoded = 1};
        status =
            image_writer_encode(canvas, image_writer_jpeg, (int)synth->quality,
                                interrupt_check, &image, &datum.data_size);
        datum.data = image;
    }
    datum.label = label;
    if (!status)
        status = buffer_reserve(&drawing->record, leat_datum_size(&datum));
    if (!status) {
        out->bytes = drawing->record.bytes;
        out->size = leat_datum_write(&datum, drawing->record.bytes);
    }
    free(image);
    return status;
}

static int next_record(struct importer *importer, struct record *out)
{
    struct synth *synth = (struct synth *)importer;
    const struct pool_options options = {.end = synth->count,
                                         .job_records = POOL_JOB_MOST,
                                         .most_bytes = POOL_BYTES,
                                         .context = synth,
                                         .open = open_drawing,
                                         .close = close_drawing,
                                         .make = make_record};
    struct pool_record record;
    int status =
        synth->pool ? LEAT_OK : worker_pool_open(&synth->pool, &options);
    if (!status)
        status = worker_pool_take(synth->pool, &record);
    if (!status)
        *out = (struct record){synth->next++, NULL, record.bytes, record.size};
    return status;
}

int command_synth(int argc, char **argv)
{
    struct synth synth = {.importer = {.unit = "records",
                                       .digits = 8,
                                       .is_fresh = true,
                                       .next = next_record},
                          .count = 1000,
                          .shape = {1, 28, 28},
                          .seed = 1};
    const struct option_spec specs[] = {
        {"count", "N", "records to make (1000)", option_int, &synth.count, 0,
         max_records},
        {"shape", "CxHxW", "shape of an image (1x28x28)", option_shape,
         synth.shape, 1, MAX_SIDE},
        {"jpeg", "Q", "encode images as JPEGs of this quality", option_int,
         &synth.quality, 1, 100},
        {"seed", "S", "the same seed gives the same records (1)", option_int,
         &synth.seed, 0, 0},
        {0}};
    struct usage usage = {
        .command = "synth",
        .arguments = "digits|noise [options] OUT",
        .about = "Makes an LMDB of Caffe's Datums with keys 00000000,\n"
                 "00000001, ...\n"
                 "digits: drawn digits, each its own label, which a net can\n"
                 "learn.\n"
                 "noise: images for measuring, which cost what photographs\n"
                 "cost.",
        .options = specs,
        .least_arguments = 2,
        .most_arguments = 2,
    };
    char **arguments = importer_parse(&synth.importer, &usage, argc, argv);
    interrupt_catch();
    if (!strcmp(arguments[0], "digits"))
        synth.draw = canvas_draw_digit;
    else if (!strcmp(arguments[0], "noise"))
        synth.draw = canvas_draw_noise;
    else
        message_misuse("synth", "synth makes digits or noise, not '%s'",
                       arguments[0]);
    const int *shape = synth.shape;
    if ((int64_t)shape[0] * shape[1] > MAX_BYTES / shape[2])
        message_misuse("synth", "--shape: an image of more than %s",
                       output_bytes(MAX_BYTES));
    if (synth.quality && shape[0] != 1 && shape[0] != 3)
        message_misuse("synth", "--jpeg: an image has 1 or 3 channels, not %d",
                       shape[0]);
    synth.importer.count = synth.count;
    int status = importer_run(&synth.importer, arguments[1]);
    worker_pool_close(synth.pool);
    return status;
}
