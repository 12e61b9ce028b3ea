/* synth.c: `leat synth`, databases made of nothing. */
#include "tools/command.h"
#include "tools/factory.h"
#include "tools/interrupt.h"
#include "tools/lmdb_writer.h"
#include "tools/message.h"
#include "tools/option.h"
#include "tools/output.h"
#include "tools/progress.h"

#include <stdio.h>
#include <string.h>

/* Keys of eight digits ascend up to here. */
static const int64_t most_records = 100000000;

enum { MOST_SIDE = 8192, MOST_BYTES = 256 << 20 };

struct synth_options {
    int64_t count;
    int shape[3];
    int64_t quality;
    int64_t seed;
    int force;
    int json;
};

static int write_records(struct lmdb_writer *writer, struct factory *factory,
                         struct progress *progress)
{
    const void *record;
    size_t size;
    for (int64_t i = 0;; i++) {
        int status = factory_take(factory, &record, &size);
        if (status == LEAT_END)
            return LEAT_OK;
        char key[24];
        snprintf(key, sizeof(key), "%08lld", (long long)i);
        if (!status)
            status = lmdb_writer_put(writer, key, record, size);
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
    printf("%s: %lld records, %s\n", path, (long long)options->count,
           output_bytes(bytes));
    return 0;
}

static int make_database(const struct synth_options *options,
                         const struct factory_order *order, const char *path)
{
    struct lmdb_writer *writer = NULL;
    struct factory *factory = NULL;
    struct progress progress;
    progress_start(&progress, "records", options->count, options->json);
    int status = lmdb_writer_open(&writer, path, options->force);
    if (!status)
        status = factory_open(&factory, order);
    if (!status)
        status = write_records(writer, factory, &progress);
    if (!status)
        status = lmdb_writer_publish(writer);
    int64_t bytes = status ? 0 : lmdb_writer_bytes(writer);
    factory_close(factory);
    lmdb_writer_close(writer);
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
         most_records},
        {"shape", "C,H,W", "shape of an image (1,28,28)", option_shape,
         options.shape, 1, MOST_SIDE},
        {"jpeg", "Q", "encode images as JPEGs of this quality", option_int,
         &options.quality, 1, 100},
        {"seed", "S", "the same seed gives the same records (1)", option_int,
         &options.seed, 0, 0},
        {"force", NULL, "replace a database that is there", NULL,
         &options.force, 0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        "synth",
        "digits|noise [options] OUT",
        "Makes an LMDB of Caffe's Datums with keys 00000000, 00000001, ...\n"
        "digits: drawn digits, each its own label, which a net can learn.\n"
        "noise: images for measuring, which cost what photographs cost.",
        specs,
        2,
        2};
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status != OPTION_GO)
        return status;

    struct factory_order order = {
        NULL, (uint64_t)options.seed, options.count, {0}, (int)options.quality};
    memcpy(order.shape, options.shape, sizeof(order.shape));
    if (!strcmp(arguments[0], "digits"))
        order.draw = canvas_draw_digit;
    else if (!strcmp(arguments[0], "noise"))
        order.draw = canvas_draw_noise;
    else
        return message_misuse("synth", "synth makes digits or noise, not '%s'",
                              arguments[0]);
    const int *shape = options.shape;
    if ((int64_t)shape[0] * shape[1] > MOST_BYTES / shape[2])
        return message_misuse("synth", "--shape: an image of more than %s",
                              output_bytes(MOST_BYTES));
    if (order.quality && shape[0] != 1 && shape[0] != 3)
        return message_misuse("synth",
                              "--jpeg: an image has 1 or 3 channels, "
                              "not %d",
                              shape[0]);
    interrupt_catch();
    return make_database(&options, &order, arguments[1]);
}
