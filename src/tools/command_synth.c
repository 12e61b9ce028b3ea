/* command_synth.c: `leat synth`, databases of drawn images. */
#include "tools/command.h"
#include "tools/database/lmdb_writer.h"
#include "tools/database/worker_pool.h"
#include "tools/image/canvas.h"
#include "tools/image/jpeg_writer.h"

#include <leat/datum.h>

/* Up to here keys of eight digits ascend. */
static const int64_t max_records = 100000000;

enum { MAX_SIDE = 8192, MAX_BYTES = 256 << 20 };

struct synth_options {
    int64_t count;
    int shape[3];
    int64_t quality;
    int64_t seed;
    bool force;
    bool json;
};

/* What is drawn; draw gives the label. */
struct drawing {
    int (*draw)(struct canvas *canvas, uint64_t seed, int64_t index);
    const struct synth_options *options;
};

/* The state of a thread. */
struct drawing_state {
    struct canvas canvas;
    unsigned char *record; /* room for `capacity` bytes */
    size_t capacity;
};

static int open_state(void **out, const void *context)
{
    struct drawing_state *state = calloc(1, sizeof(*state));
    if (!state)
        return leat_error(LEAT_ENOMEM, "out of memory for images");
    const struct drawing *drawing = context;
    int status = canvas_init(&state->canvas, drawing->options->shape);
    if (status) {
        free(state);
        return status;
    }
    *out = state;
    return LEAT_OK;
}

static void close_state(void *argument)
{
    struct drawing_state *state = argument;
    if (!state)
        return;
    canvas_finish(&state->canvas);
    free(state->record);
    free(state);
}

static int write_datum(struct drawing_state *state, const leat_datum *datum,
                       struct pool_record *out)
{
    size_t size = leat_datum_size(datum);
    if (size > state->capacity) {
        unsigned char *record = realloc(state->record, size);
        if (!record)
            return leat_error(LEAT_ENOMEM, "out of memory for a record");
        state->record = record;
        state->capacity = size;
    }
    out->bytes = state->record;
    out->size = leat_datum_write(datum, state->record);
    return LEAT_OK;
}

static int make_record(void *argument, const void *context, int64_t number,
                       struct pool_record *out)
{
    struct drawing_state *state = argument;
    const struct drawing *drawing = context;
    const struct synth_options *options = drawing->options;
    struct canvas *canvas = &state->canvas;
    leat_datum datum = {0};
    datum.label = drawing->draw(canvas, (uint64_t)options->seed, number);
    if (!options->quality) {
        datum.channels = canvas->channels;
        datum.height = canvas->height;
        datum.width = canvas->width;
        datum.data = canvas->pixels;
        datum.data_size = canvas_bytes(canvas);
        return write_datum(state, &datum, out);
    }
    unsigned char *image;
    int status = jpeg_writer_encode(canvas, (int)options->quality, &image,
                                    &datum.data_size);
    if (status)
        return status;
    datum.encoded = 1;
    datum.data = image;
    status = write_datum(state, &datum, out);
    free(image);
    return status;
}

static int write_records(struct lmdb_writer *writer, struct worker_pool *pool,
                         struct progress *progress)
{
    struct pool_record record;
    for (int64_t i = 0;; i++) {
        int status = worker_pool_take(pool, &record);
        if (status == LEAT_END)
            return LEAT_OK;
        char key[24];
        snprintf(key, sizeof(key), "%08lld", (long long)i);
        if (!status)
            status = lmdb_writer_put(writer, key, strlen(key), record.bytes,
                                     record.size);
        if (!status)
            status = interrupt_check();
        if (status)
            return status;
        progress_update(progress, i + 1);
    }
}

static int report(const struct synth_options *options, const char *path,
                  int64_t bytes, double seconds)
{
    if (options->json)
        return output_json(json_pack("{s:I, s:I, s:f}", "records",
                                     (json_int_t)options->count, "bytes",
                                     (json_int_t)bytes, "seconds", seconds));
    printf("%s: %s, %s\n", plain_text(path),
           output_count(options->count, "record", "records"),
           output_bytes(bytes));
    return 0;
}

static int make_database(const struct synth_options *options,
                         const struct drawing *drawing, const char *path)
{
    const struct pool_options pool_options = {.end = options->count,
                                              .job_records = POOL_JOB_MOST,
                                              .most_bytes = POOL_BYTES,
                                              .context = drawing,
                                              .open = open_state,
                                              .close = close_state,
                                              .make = make_record};
    struct lmdb_writer writer = {0};
    struct worker_pool *pool = NULL;
    struct progress progress;
    progress_start(&progress, "records", options->count, options->json);
    const struct staging_options target = {.target = path,
                                           .replace = options->force};
    int status = lmdb_writer_open(&writer, &target);
    if (!status)
        status = worker_pool_open(&pool, &pool_options);
    if (!status)
        status = write_records(&writer, pool, &progress);
    if (!status)
        status = lmdb_writer_publish(&writer, 0);
    int64_t bytes = status ? 0 : writer.bytes;
    worker_pool_close(pool);
    lmdb_writer_close(&writer);
    double seconds = progress_finish(&progress);
    if (status)
        return message_last_error();
    return report(options, path, bytes, seconds);
}

int command_synth(int argc, char **argv)
{
    struct synth_options options = {1000, {1, 28, 28}, 0, 1, 0, 0};
    const struct option_spec specs[] = {
        {"count", "N", "records to make (1000)", option_int, &options.count, 0,
         max_records},
        {"shape", "CxHxW", "shape of an image (1x28x28)", option_shape,
         options.shape, 1, MAX_SIDE},
        {"jpeg", "Q", "encode images as JPEGs of this quality", option_int,
         &options.quality, 1, 100},
        {"seed", "S", "the same seed gives the same records (1)", option_int,
         &options.seed, 0, 0},
        {"force", NULL, "replace a database that is there", NULL,
         &options.force, 0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
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
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status != OPTION_GO)
        return status;

    struct drawing drawing = {NULL, &options};
    if (!strcmp(arguments[0], "digits"))
        drawing.draw = canvas_draw_digit;
    else if (!strcmp(arguments[0], "noise"))
        drawing.draw = canvas_draw_noise;
    else
        return message_misuse("synth", "synth makes digits or noise, not '%s'",
                              arguments[0]);
    const int *shape = options.shape;
    if ((int64_t)shape[0] * shape[1] > MAX_BYTES / shape[2])
        return message_misuse("synth", "--shape: an image of more than %s",
                              output_bytes(MAX_BYTES));
    if (options.quality && shape[0] != 1 && shape[0] != 3)
        return message_misuse("synth",
                              "--jpeg: an image has 1 or 3 channels, "
                              "not %d",
                              shape[0]);
    interrupt_catch();
    return make_database(&options, &drawing, arguments[1]);
}
