/*
 * command_mean.c: `leat mean`, Caffe's compute_image_mean: float sums in the
 * order of the keys, divided by the count.
 */
#include "tools/command.h"
#include "tools/database/target.h"
#include "tools/delivery/image_reader.h"

#include <math.h>

struct mean_image {
    struct image_reader reader;
    int shape[3];
    size_t pixels; /* channels x height x width */
    int64_t records;
    float *sum; /* at the end the mean */
};

/* Adds the image of the current record. */
static int add_image(struct mean_image *mean)
{
    int *all = mean->shape, one[3];
    int status = image_reader_decode(&mean->reader, one);
    if (status)
        return status;
    if (!mean->sum) {
        memcpy(all, one, sizeof(one));
        mean->pixels = (size_t)one[0] * (size_t)one[1] * (size_t)one[2];
        mean->sum = calloc(mean->pixels, sizeof(float));
    }
    if (!mean->sum)
        return leat_error(LEAT_ENOMEM, "out of memory for a mean of %zu pixels",
                          mean->pixels);
    if (memcmp(one, all, sizeof(one)) != 0)
        return leat_error(LEAT_EDATA,
                          "the image is %d x %d x %d, those before it %d x %d "
                          "x %d; a mean is of images of one shape",
                          one[0], one[1], one[2], all[0], all[1], all[2]);
    for (size_t i = 0; i < mean->pixels; i++)
        mean->sum[i] += mean->reader.image[i];
    mean->records++;
    return LEAT_OK;
}

static void compute(struct mean_image *mean, const char *path,
                    size_t max_image_bytes, bool quiet)
{
    int64_t total = -1;
    struct progress progress;
    const leat_provenance *from = &mean->reader.sample.from;
    output_require(image_reader_open(&mean->reader, path, max_image_bytes));
    interrupt_catch();
    leat_reader_count(mean->reader.reader, &total);
    progress_start(&progress, "records", total, quiet);
    for (;;) {
        int status =
            leat_reader_next(mean->reader.reader, &mean->reader.sample);
        output_require(status);
        if (status == LEAT_END)
            break;
        status = add_image(mean);
        if (status)
            output_require(image_reader_name(status, from->source, from->record,
                                             from->key, from->key_size));
        output_require(interrupt_check());
        progress_update(&progress, mean->records);
    }
    progress_finish(&progress);
    image_reader_close(&mean->reader);
    if (!mean->records)
        message_fail("%s: has no records to take a mean of", path);
    for (size_t i = 0; i < mean->pixels; i++)
        mean->sum[i] /= (float)mean->records;
}

/* As Caffe adds them up. */
static float channel_mean(const struct mean_image *mean, int channel)
{
    size_t plane = (size_t)mean->shape[1] * (size_t)mean->shape[2];
    const float *values = mean->sum + (size_t)channel * plane;
    float sum = 0;
    for (size_t i = 0; i < plane; i++)
        sum += values[i];
    return sum / (float)plane;
}

static int report(const struct mean_image *mean, const char *out, bool json)
{
    const int *shape = mean->shape;
    json_t *values = json_array();
    if (!json)
        printf("%s: mean of %s of %dx%dx%d\n", plain_text(out),
               output_count(mean->records, "record", "records"), shape[0],
               shape[1], shape[2]);
    for (int c = 0; c < shape[0]; c++) {
        double value = (double)channel_mean(mean, c);
        if (!json)
            printf("mean_value: %.6g\n", value);
        /* JSON has no infinities. */
        json_array_append_new(values,
                              isfinite(value) ? json_real(value) : json_null());
    }
    json_t *object = json_pack("{s:I, s:[i, i, i], s:o}", "records",
                               (json_int_t)mean->records, "shape", shape[0],
                               shape[1], shape[2], "mean_value", values);
    if (json)
        return output_json(object);
    json_decref(object);
    return 0;
}

static bool is_mean_file(const char *path)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_transformer *transformer = NULL;
    options.mean_file = path;
    int status = leat_transformer_create(&transformer, &options, LEAT_TEST,
                                         LEAT_FLOAT32, LEAT_NCHW);
    leat_transformer_destroy(transformer);
    return !status;
}

int command_mean(int argc, char **argv)
{
    bool json = false, force = false;
    int64_t max_image_bytes = 0;
    const struct option_spec specs[] = {
        option_flag("force", "replace a file that is no mean file", &force),
        {"max-image-bytes", "N", "memory that decoding an image may take",
         option_bytes, &max_image_bytes, 1, INT64_MAX},
        option_flag("json", "print one JSON object", &json),
        {0}};
    const struct usage usage = {
        .command = "mean",
        .arguments = "[options] DB OUT.binaryproto",
        .about = "Computes the mean image of a database as Caffe's\n"
                 "compute_image_mean does, writes it as a mean file and\n"
                 "prints each channel's mean. All images must have one\n"
                 "shape.",
        .options = specs,
        .least_arguments = 2,
        .most_arguments = 2,
    };
    char **arguments = option_parse(&usage, argc, argv);
    if (!arguments[1][0])
        message_misuse("mean", "mean: the file to write has no name");
    interrupt_catch_opening();
    struct mean_image mean = {0};
    output_require(
        target_check(arguments[1], arguments[0], force, is_mean_file));
    compute(&mean, arguments[0], (size_t)max_image_bytes, json);
    /* It may have come since. */
    output_require(
        target_check(arguments[1], arguments[0], force, is_mean_file));
    output_require(leat_mean_save(arguments[1], mean.shape[0], mean.shape[1],
                                  mean.shape[2], mean.sum));
    int status = report(&mean, arguments[1], json);
    free(mean.sum);
    return status;
}
