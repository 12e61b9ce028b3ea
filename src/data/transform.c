#include "data/transform.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "base/option_list.h"
#include "base/options.h"
#include "base/random.h"
#include "base/streaming_copy.h"
#include "data/cast.h"
#include "data/mean.h"
#include "data/transform_option_table.h"
#include "device/transform_top.h"

#include <stdbool.h>

struct leat__transform {
    const leat__row_kernels *kernels;
    int crop_size; /* 0: none */
    bool mirror;
    leat_phase phase;
    int mean_channels; /* of the mean image; 0: none */
    char *mean_file;   /* its path, for errors; owned */
    /* What a job has before its shape is known. */
    leat__transform_job job;
    void *mean;       /* owned */
    void *mean_value; /* owned */
};

static int check_choices(leat_phase phase, leat_layout layout)
{
    if (phase != LEAT_TRAIN && phase != LEAT_TEST)
        return leat_error(LEAT_EINVAL, "phase is %d: expected TRAIN or TEST",
                          (int)phase);
    if (layout != LEAT_NCHW && layout != LEAT_NHWC)
        return leat_error(LEAT_EINVAL, "layout is %d: expected NCHW or NHWC",
                          (int)layout);
    return LEAT_OK;
}

static int check_options(const leat_transform_options *options)
{
    if (options->mean_values < 0)
        return leat_error(LEAT_EINVAL,
                          "mean_values is %d, must not be negative",
                          options->mean_values);
    if (options->mean_values > 0 && !options->mean_value)
        return leat_error(LEAT_EINVAL, "mean_values is %d, mean_value is NULL",
                          options->mean_values);
    if (options->mean_file && options->mean_values > 0)
        return leat_error(LEAT_EINVAL,
                          "mean_file \"%s\" and %d mean_value are both given; "
                          "only one of the two can be",
                          options->mean_file, options->mean_values);
    if (options->force_color && options->force_gray)
        return leat_error(LEAT_EINVAL,
                          "force_color and force_gray are both given; only "
                          "one of the two can be");
    return LEAT_OK;
}

static int check_top(const leat_transform_options *options, leat_dtype top_type)
{
    if (top_type != LEAT_UINT8 && !leat__dtype_is_float(top_type))
        return leat_error(LEAT_EINVAL,
                          "a top of type %s is not supported; expected "
                          "float32, float64, float16, bfloat16 or uint8",
                          leat_dtype_name(top_type));
    if (top_type == LEAT_UINT8 &&
        (options->mean_file || options->mean_values > 0))
        return leat_error(LEAT_EINVAL,
                          "a uint8 top takes the pixels as they are: %s "
                          "cannot be given",
                          options->mean_file ? "mean_file" : "mean_value");
    if (top_type == LEAT_UINT8 && options->scale != 1.0f)
        return leat_error(LEAT_EINVAL,
                          "a uint8 top takes the pixels as they are: scale "
                          "must be 1, found %g",
                          (double)options->scale);
    return LEAT_OK;
}

#define ENTRY(member, ...)                                                     \
    LEAT__OPTION(leat_transform_options, member, __VA_ARGS__),
static const leat_option list[] = {LEAT__TRANSFORM_OPTIONS(ENTRY)};
enum { COUNT = sizeof(list) / sizeof(list[0]) };

const leat_option *leat_transform_option_list(int *n)
{
    *n = COUNT;
    return list;
}

int leat_transform_options_set(leat_transform_options *options,
                               const char *name, const char *text)
{
    return leat__option_set(list, COUNT, "the transform", options, name, text);
}

int leat_transform_options_init(leat_transform_options *options)
{
    leat_transform_options defaults = LEAT_TRANSFORM_OPTIONS_INIT;
    leat__option_complete(list, COUNT, &defaults);
    return leat__options_init(options, &defaults, sizeof(defaults));
}

int leat__transform_options_copy(leat_transform_options *out,
                                 const leat_transform_options *given)
{
    const leat_transform_options defaults = LEAT_TRANSFORM_OPTIONS_INIT;
    *out = defaults;
    int status = leat__options_copy(out, given, sizeof(*out));
    if (status)
        return leat__error_context(status, "the transform");
    leat__option_complete(list, COUNT, out);
    return LEAT_OK;
}

static int load_mean(leat__transform *transform, const char *path)
{
    leat__mean mean = {0};
    transform->mean_file = leat__strdup(path);
    if (!transform->mean_file)
        return LEAT_ENOMEM;
    int status = leat__mean_load(&mean, path);
    if (status)
        return status;
    transform->mean_channels = mean.channels;
    transform->job.mean_height = mean.height;
    transform->job.mean_width = mean.width;
    if (transform->job.top_type == LEAT_FLOAT64) {
        transform->mean = mean.values;
        transform->job.mean = mean.values;
        return LEAT_OK;
    }
    size_t count =
        (size_t)mean.channels * (size_t)mean.height * (size_t)mean.width;
    float *values = leat__alloc_aligned(count * sizeof(*values));
    for (size_t i = 0; values && i < count; i++)
        values[i] = (float)mean.values[i];
    leat__mean_finish(&mean);
    transform->mean = values;
    transform->job.mean = values;
    return values ? LEAT_OK : LEAT_ENOMEM;
}

static int copy_mean_values(leat__transform *transform, const float *given,
                            size_t count)
{
    /* Room for doubles serves both types. */
    void *values = leat__alloc_zero(count, sizeof(double));
    if (!values)
        return LEAT_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (transform->job.top_type == LEAT_FLOAT64)
            ((double *)values)[i] = given[i];
        else
            ((float *)values)[i] = given[i];
    }
    transform->mean_value = values;
    transform->job.mean_value = values;
    transform->job.mean_values = (int)count;
    return LEAT_OK;
}

int leat__transform_create(leat__transform **out,
                           const leat_transform_options *options,
                           leat_phase phase, leat_dtype top_type,
                           leat_layout layout)
{
    leat_transform_options complete;
    int status = leat__transform_options_copy(&complete, options);
    if (!status)
        status = leat__option_check(list, COUNT, &complete);
    if (!status)
        status = check_options(&complete);
    if (!status)
        status = check_choices(phase, layout);
    if (!status)
        status = check_top(&complete, top_type);
    if (status)
        return status;
    leat__transform *transform = leat__alloc_zero(1, sizeof(*transform));
    if (!transform)
        return LEAT_ENOMEM;
    transform->kernels = leat__row_kernels_choose();
    transform->crop_size = complete.crop_size;
    transform->mirror = complete.mirror;
    transform->phase = phase;
    transform->job.top_type = top_type;
    transform->job.layout = layout;
    transform->job.scale = complete.scale;
    if (complete.mean_file)
        status = load_mean(transform, complete.mean_file);
    else if (complete.mean_values > 0)
        status = copy_mean_values(transform, complete.mean_value,
                                  (size_t)complete.mean_values);
    if (status) {
        leat__transform_destroy(transform);
        return status;
    }
    *out = transform;
    return LEAT_OK;
}

void leat__transform_destroy(leat__transform *transform)
{
    if (!transform)
        return;
    leat__free(transform->mean_file);
    leat__free(transform->mean);
    leat__free(transform->mean_value);
    leat__free(transform);
}

int leat__transform_check_mean(const leat__transform *transform, int channels,
                               int height, int width)
{
    const leat__transform_job *job = &transform->job;
    bool is_image = channels > 0 && height > 0 && width > 0;
    bool fits = transform->mean_channels == channels &&
                job->mean_height == height && job->mean_width == width;
    if (!job->mean || !is_image || fits)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "mean_file %s is of %d x %d x %d, the image of %d x %d x "
                      "%d; they must agree before the crop: expected the mean "
                      "of these images, or mean_value instead",
                      transform->mean_file, transform->mean_channels,
                      job->mean_height, job->mean_width, channels, height,
                      width);
}

uint64_t leat__transform_hash_mean(const leat__transform *transform,
                                   uint64_t hash)
{
    const leat__transform_job *job = &transform->job;
    const int shape[] = {transform->mean_channels, job->mean_height,
                         job->mean_width};
    size_t values = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    size_t size =
        job->top_type == LEAT_FLOAT64 ? sizeof(double) : sizeof(float);
    hash = leat__file_hash_bytes(hash, shape, sizeof(shape));
    return leat__file_hash_bytes(hash, job->mean, values * size);
}

/* Checks the image against crop and mean; failures other than the mean's are
 * `status`. */
static int check_image(const leat__transform *transform, int status,
                       int channels, int height, int width)
{
    const leat__transform_job *job = &transform->job;
    int crop = transform->crop_size;
    if (channels <= 0 || height <= 0 || width <= 0)
        return leat_error(status,
                          "image is %d x %d x %d; expected positive "
                          "dimensions",
                          channels, height, width);
    int mean = leat__transform_check_mean(transform, channels, height, width);
    if (mean)
        return mean;
    if (height < crop || width < crop)
        return leat_error(status,
                          "crop_size is %d, the image is only %d x %d (height "
                          "x width)",
                          crop, height, width);
    if (job->mean_values > 1 && job->mean_values != channels)
        return leat_error(status,
                          "%d mean_value are given, the image has %d "
                          "channels; expected 1 or as many",
                          job->mean_values, channels);
    return LEAT_OK;
}

int leat__transform_shape(const leat__transform *transform, const int shape[3],
                          int out[3])
{
    int status =
        check_image(transform, LEAT_EINVAL, shape[0], shape[1], shape[2]);
    if (status)
        return status;
    int crop = transform->crop_size;
    out[0] = shape[0];
    out[1] = crop ? crop : shape[1];
    out[2] = crop ? crop : shape[2];
    return LEAT_OK;
}

int leat__transform_words_per_image(const leat__transform *transform)
{
    bool crops = transform->crop_size && transform->phase == LEAT_TRAIN;
    return (transform->mirror ? 1 : 0) + (crops ? 2 : 0);
}

/* One of n; a range that no crop fits leaves 0 for apply to refuse. */
static int pick(leat_rng rng, uint32_t word, int n)
{
    if (n <= 1)
        return 0;
    return (int)(rng == LEAT_RNG_CAFFE ? word % (uint32_t)n
                                       : leat__random_below(word, (uint32_t)n));
}

void leat__transform_choose(const leat__transform *transform, leat_rng rng,
                            const uint32_t words[4],
                            leat__transform_image *image)
{
    /* Caffe draws only the words that it uses; leat's have fixed positions. */
    const uint32_t *crop_words =
        rng == LEAT_RNG_CAFFE && !transform->mirror ? words : words + 1;
    image->mirror = transform->mirror ? pick(rng, words[0], 2) : 0;
    image->h_off = 0;
    image->w_off = 0;
    int crop = transform->crop_size;
    if (!crop)
        return;
    if (transform->phase == LEAT_TRAIN) {
        image->h_off = pick(rng, crop_words[0], image->height - crop + 1);
        image->w_off = pick(rng, crop_words[1], image->width - crop + 1);
    } else {
        image->h_off = (image->height - crop) / 2;
        image->w_off = (image->width - crop) / 2;
    }
}

/* Checks the image against its batch, which keeps memory accesses in bounds. */
static int check_batch_shape(const leat__transform *transform,
                             const leat__transform_image *image,
                             const int shape[3])
{
    if (image->type != LEAT_UINT8 &&
        (image->type != LEAT_FLOAT32 || transform->job.top_type == LEAT_UINT8))
        return leat_error(LEAT_EDATA, "the image is of type %s, the top of %s",
                          leat_dtype_name(image->type),
                          leat_dtype_name(transform->job.top_type));
    if (image->channels != shape[0])
        return leat_error(
            LEAT_EDATA, "the image has %d channel%s, its batch %d",
            image->channels, image->channels == 1 ? "" : "s", shape[0]);
    int crop = transform->crop_size;
    int height = crop ? crop : image->height;
    int width = crop ? crop : image->width;
    if (height != shape[1] || width != shape[2])
        return leat_error(LEAT_EDATA,
                          "the image is %d x %d x %d, its batch's are %d x %d "
                          "x %d; without crop_size all must be alike",
                          image->channels, height, width, shape[0], shape[1],
                          shape[2]);
    if (image->h_off < 0 || image->h_off > image->height - height ||
        image->w_off < 0 || image->w_off > image->width - width)
        return leat_error(LEAT_EDATA,
                          "a crop of %d x %d at %d, %d lies outside the image "
                          "of %d x %d",
                          height, width, image->h_off, image->w_off,
                          image->height, image->width);
    return LEAT_OK;
}

static leat__transform_job job_of(const leat__transform *transform,
                                  const int shape[3])
{
    leat__transform_job job = transform->job;
    job.channels = shape[0];
    job.height = shape[1];
    job.width = shape[2];
    return job;
}

void leat__transform_run(const leat__transform *transform,
                         const leat__transform_image *image, const int shape[3],
                         void *top)
{
    leat__transform_job job = job_of(transform, shape);
    leat__transform_top(transform->kernels, &job, image, top);
}

leat__row_convert *leat__transform_row(const leat__transform *transform,
                                       const leat__transform_image *image,
                                       const int shape[3], leat__row_run *out)
{
    if (transform->mirror)
        return NULL;
    leat__transform_job job = job_of(transform, shape);
    return leat__transform_top_row(transform->kernels, &job, image, out);
}

int leat__transform_apply(const leat__transform *transform,
                          const leat__transform_image *image,
                          const int shape[3], void *top)
{
    int status = check_image(transform, LEAT_EDATA, image->channels,
                             image->height, image->width);
    if (!status)
        status = check_batch_shape(transform, image, shape);
    if (!status)
        leat__transform_run(transform, image, shape, top);
    return status;
}

/* Of images below this memcpy reads what it overwrites, which takes longer than
   stores past the caches. */
enum { THROUGH_CACHES = 2048 };

/* Whether the crop is the image's bytes as they are. */
static bool is_whole(const leat__transform_image *image, const int shape[3],
                     leat_layout layout)
{
    return image->height == shape[1] && image->width == shape[2] &&
           (image->layout == layout || shape[0] == 1);
}

int leat__transform_crop(const leat__transform *transform,
                         const leat__transform_image *image, const int shape[3],
                         leat_layout layout, bool is_streamed, void *crop,
                         leat_device_choice *choice)
{
    int status = check_image(transform, LEAT_EDATA, image->channels,
                             image->height, image->width);
    if (!status && image->type != LEAT_UINT8)
        status = leat_error(LEAT_EDATA,
                            "the image is of type %s: with transform_on DEVICE "
                            "it must be uint8",
                            leat_dtype_name(image->type));
    if (!status)
        status = check_batch_shape(transform, image, shape);
    if (status)
        return status;
    const leat__transform_job job = {.top_type = LEAT_UINT8,
                                     .layout = layout,
                                     .channels = shape[0],
                                     .height = shape[1],
                                     .width = shape[2],
                                     .scale = 1};
    leat__transform_image plain = *image;
    plain.mirror = 0;
    size_t bytes = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    if (!is_whole(image, shape, layout))
        leat__transform_top(transform->kernels, &job, &plain, crop);
    else if (is_streamed || bytes < THROUGH_CACHES)
        leat__streaming_copy(crop, image->pixels, bytes);
    else
        memcpy(crop, image->pixels, bytes);
    *choice = (leat_device_choice){.h_off = image->h_off,
                                   .w_off = image->w_off,
                                   .mirror = image->mirror != 0};
    return LEAT_OK;
}

const leat__transform_job *
leat__transform_plan(const leat__transform *transform)
{
    return &transform->job;
}
