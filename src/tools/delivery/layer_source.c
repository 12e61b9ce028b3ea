#include "tools/delivery/layer_source.h"

#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/database/database.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int layer_source_open_stream(struct layer_source *source, const char *name)
{
    leat_device *device;
    int status = leat_device_find(&device, name);
    if (status || device->ops->unified)
        return status;
    status = device->ops->stream_create(device, &source->stream);
    if (!status)
        source->device = device;
    return status;
}

/* A net file without a batch size takes it; its own size wins. */
static int check_batch(const struct layer_source *source,
                       const struct layer_source_options *options)
{
    const leat_data_layer_options *in_force =
        leat_data_layer_get_options(source->layer);
    int64_t asked = options->layer.batch_size;
    if (!asked || in_force->batch_size == asked)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "--batch %lld: %s sets the size of a batch itself; leave "
                      "--batch out",
                      (long long)asked, options->net);
}

static int create_from_net(struct layer_source *source,
                           const struct layer_source_options *options,
                           const leat_data_layer_options *layer_options)
{
    int status = leat_data_layer_create_from_net(
        &source->layer, options->net, layer_options->phase, layer_options);
    return status ? status : check_batch(source, options);
}

int layer_source_create(struct layer_source *source,
                        const struct layer_source_options *options)
{
    leat_data_layer_options layer_options;
    leat_transform_options transform;
    int status =
        layer_source_options_resolve(options, &layer_options, &transform);
    if (!status && layer_options.device)
        status = layer_source_open_stream(source, layer_options.device);
    if (status)
        return status;
    if (options->net)
        return create_from_net(source, options, &layer_options);

    layer_options.transform = &transform;
    leat_pipeline *pipeline;
    status = database_pipeline(&pipeline, options->reader);
    if (status)
        return status;
    status = leat_data_layer_create(&source->layer, pipeline, &layer_options);
    leat_pipeline_unref(pipeline);
    return status;
}

void layer_source_take_tops(struct layer_source *source)
{
    source->ntop = leat_data_layer_top_count(source->layer);
    for (int i = 0; i < source->ntop; i++)
        source->top[i] = leat_data_layer_top(source->layer, i);
}

static const char *list_of(const struct layer_source *source)
{
    return leat_data_layer_get_options(source->layer)->bad_record_file;
}

static void close_layer(void *source)
{
    layer_source_abandon(source);
}

static void cancel_layer(void *layer)
{
    leat_data_layer_cancel(layer);
}

int layer_source_setup(struct layer_source *source)
{
    struct stat list;
    const char *path = list_of(source);
    source->makes_list |= path && stat(path, &list) && errno == ENOENT;
    interrupt_watch(cancel_layer, source->layer);
    cleanup_add(close_layer, source);
    int status = leat_data_layer_setup(source->layer, NULL, 0);
    /* One that fails has removed its own. */
    if (status || !path || !source->makes_list || stat(path, &source->list))
        source->list = (struct stat){0};
    if (!status)
        layer_source_take_tops(source);
    return interrupt_explain(status);
}

static bool is_one_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int layer_source_check_output(const struct layer_source *source,
                              const char *path)
{
    struct stat output, list;
    const char *listed = list_of(source);
    if (!listed || stat(path, &output) || stat(listed, &list) ||
        !is_one_file(&output, &list))
        return LEAT_OK;
    return leat_error(
        LEAT_EINVAL, "%s: is the list of bad records; give another name", path);
}

int layer_source_forward(struct layer_source *source)
{
    int status = leat_data_layer_forward(
        source->layer, NULL, 0, source->device ? source->stream : LEAT_HOST);
    if (status == LEAT_END)
        return leat_error(LEAT_EDATA, "the data has ended");
    return interrupt_explain(status);
}

int layer_source_wait(struct layer_source *source)
{
    leat_device *device = source->device;
    return device ? device->ops->stream_synchronize(device, source->stream)
                  : LEAT_OK;
}

/* Enqueues the copy of a top, out of the device's own memory. */
static int copy_back(struct layer_source *source, int i)
{
    leat_device *device = source->device;
    leat_blob *top = source->top[i];
    int status = LEAT_OK;
    if (!source->copy[i])
        status = leat_blob_create(&source->copy[i], NULL);
    if (status)
        return status;
    leat_blob *copy = source->copy[i];
    status = leat_blob_reshape(copy, leat_blob_dtype(top), leat_blob_ndim(top),
                               leat_blob_shape(top));
    size_t bytes = leat_blob_bytes(copy);
    if (status || bytes == 0)
        return status;
    const void *from = leat_blob_gpu_data(top);
    void *to = leat_blob_mutable_cpu_data(copy);
    if (!from || !to)
        return LEAT_ENOMEM;
    return device->ops->copy(device, to, from, bytes, LEAT_COPY_TO_HOST,
                             source->stream);
}

int layer_source_fetch(struct layer_source *source,
                       leat_blob *out[LEAT_MAX_FIELDS])
{
    int status = LEAT_OK;
    for (int i = 0; !status && source->device && i < source->ntop; i++)
        status = copy_back(source, i);
    int waited = layer_source_wait(source);
    if (status || waited)
        return status ? status : waited;
    for (int i = 0; i < source->ntop; i++)
        out[i] = source->device ? source->copy[i] : source->top[i];
    return LEAT_OK;
}

int64_t layer_source_bad_records(const struct layer_source *source)
{
    leat_stats stats = {.size = sizeof(stats)};
    (void)leat_data_layer_stats(source->layer, &stats);
    return stats.bad_records;
}

static void destroy(struct layer_source *source)
{
    cleanup_remove(source);
    interrupt_unwatch(source->layer);
    leat_data_layer_destroy(source->layer);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        leat_blob_destroy(source->copy[i]);
    }
    if (source->device)
        source->device->ops->stream_destroy(source->device, source->stream);
    memset(source, 0, sizeof(*source));
}

/* The library says so in its log, which the tool does not print. */
static void report_unlisted(const struct layer_source *source)
{
    leat_stats stats = {.size = sizeof(stats)};
    if (!leat_data_layer_stats(source->layer, &stats) && stats.unwritten > 0)
        message_print(
            0, "%s: %s could not be written to it", list_of(source),
            output_count(stats.unwritten, "bad record", "bad records"));
}

void layer_source_destroy(struct layer_source *source)
{
    if (source->layer)
        report_unlisted(source);
    destroy(source);
}

/* An empty one, also where a link leads to it. Others that write to it have its
   lock; where it may not be read, as under umask 0444, none can have opened it.
 */
static void drop_list(const char *name, const struct stat *made)
{
    struct stat named;
    char *path = leat__file_followed(name);
    int fd = path ? leat__file_open_regular(AT_FDCWD, path, O_NOFOLLOW) : -1;
    if (!path || (fd < 0 && errno != EACCES)) {
        leat__free(path);
        return;
    }
    if ((fd < 0 || !flock(fd, LOCK_EX | LOCK_NB)) && !lstat(path, &named) &&
        is_one_file(&named, made) && named.st_size == 0)
        (void)unlink(path);
    if (fd >= 0)
        (void)close(fd);
    leat__free(path);
}

void layer_source_abandon(struct layer_source *source)
{
    if (source->makes_list)
        drop_list(list_of(source), &source->list);
    destroy(source);
}
