#include "support/life_cycles.h"

#include "support/images.h"
#include "support/index_decorators.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"

#include <leat.h>
#include <leat/config.h>
#include <leat/datum.h>

enum { RECORDS = 40, IMAGES = 6, BATCH = 4, FORWARDS = 4 };

static char directory[FIXTURE_PATH];
static unsigned char image[20000];
static size_t image_size;

/* In the place of an output that must stay as it was. */
static char untouched;
#define UNTOUCHED ((void *)&untouched)

/* Check itself takes memory and writes, which may be what fails. */
#define EXPECT(what)                                                           \
    do {                                                                       \
        if (!(what))                                                           \
            complain(#what, __LINE__);                                         \
    } while (0)

static void complain(const char *what, int line)
{
    fprintf(stderr, "life_cycles.c:%d: not so: %s\n", line, what);
    abort();
}

static char *in(const char *name)
{
    static char path[4][FIXTURE_PATH + 32];
    static int at;
    char *out = path[at++ % 4];
    snprintf(out, sizeof(path[0]), "%s/%s", directory, name);
    return out;
}

static void make_encoded(int number, fixture_record *out)
{
    leat_datum datum = {0, 0, 0, number, 1, image, image_size, NULL, 0};
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

static void load_image(const char *name)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/images/%s", LEAT_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    image_size = fread(image, 1, sizeof(image) - 64, file);
    fclose(file);
}

static void write_net(void)
{
    char text[3 * FIXTURE_PATH];
    int n = sprintf(text,
                    "layer { name: 'd' type: 'Data' top: 'x' top: 'y'\n"
                    "  transform_param { mean_file: '%s' mirror: true }\n"
                    "  data_param { source: '%s' backend: LMDB batch_size: 4 }"
                    "\n  leat_param { random_seed: 7 workers: 2 } }\n",
                    in("mean"), in("raw"));
    fixture_store(in("net"), text, (size_t)n);
}

void life_cycles_begin(void)
{
    const float mean[20] = {1};
    fixture_directory(directory);
    ck_assert_int_eq(mkdir(in("raw"), 0755), 0);
    fixture_write(in("raw"), images_record, RECORDS);
    ck_assert_int_eq(mkdir(in("jpeg"), 0755), 0);
    load_image("baseline-420.jpg");
    fixture_write(in("jpeg"), make_encoded, IMAGES);
    ck_assert_int_eq(mkdir(in("png"), 0755), 0);
    load_image("rgb-8.png");
    fixture_write(in("png"), make_encoded, IMAGES);
    ck_assert_int_eq(leat_mean_save(in("mean"), 1, 4, 5, mean), LEAT_OK);
    write_net();
    index_decorators_register();
    late_device_register();
}

void life_cycles_end(void)
{
    fixture_remove(directory);
}

const char *life_cycles_directory(void)
{
    return directory;
}

/* A pipeline of the text, of which %s is the directory. */
static int parse(leat_pipeline **out, const char *text, const char *name)
{
    char whole[2 * FIXTURE_PATH];
    snprintf(whole, sizeof(whole), text, in(name));
    *out = UNTOUCHED;
    int status = leat_pipeline_parse(out, whole);
    if (status) {
        EXPECT(*out == UNTOUCHED);
        *out = NULL;
    }
    return status;
}

static int open_reader(leat_reader **out, const leat_pipeline *pipeline)
{
    *out = UNTOUCHED;
    int status = leat_pipeline_open(pipeline, out);
    if (status) {
        EXPECT(*out == UNTOUCHED);
        *out = NULL;
    }
    return status;
}

/* Everything from here to the end, in order. */
static int read_all(leat_reader *reader, leat_sample *sample, int expected)
{
    int n = 0, status;
    while (!(status = leat_reader_next(reader, sample))) {
        EXPECT(*(const int32_t *)sample->field[1].data == n);
        n++;
    }
    if (status != LEAT_END)
        return status;
    EXPECT(n == expected);
    return LEAT_OK;
}

static int read_at_random(leat_reader *reader, leat_sample *sample)
{
    const leat_position at[] = {{0, 7}, {0, 0}, {0, 39}};
    for (int i = 0; i < 3; i++) {
        int got;
        int status = leat_reader_read_at(reader, &at[i], &sample, 1, &got);
        if (status)
            return status;
        EXPECT(*(const int32_t *)sample->field[1].data == at[i].index);
    }
    return LEAT_OK;
}

static int save_and_restore(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_save(reader, &token);
    token.cursor = 0;
    if (!status)
        status = leat_reader_restore(reader, &token);
    leat_token_finish(&token);
    return status;
}

static int use_reader(const leat_pipeline *pipeline, int is_random)
{
    leat_reader *reader;
    leat_sample sample;
    const leat_field_spec *fields;
    int n;
    int status = open_reader(&reader, pipeline);
    if (status)
        return status;
    leat_sample_init(&sample);
    status = leat_reader_fields(reader, &fields, &n);
    if (!status)
        status = read_all(reader, &sample, RECORDS);
    if (!status)
        status = leat_reader_seek(reader, (leat_position){0, 0}, NULL);
    if (!status && is_random)
        status = read_at_random(reader, &sample);
    if (!status && is_random)
        status = leat_reader_seek(reader, (leat_position){0, 3}, NULL);
    if (!status && is_random)
        status = save_and_restore(reader);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status;
}

static int use_text(const char *text)
{
    leat_pipeline *pipeline;
    int status = parse(&pipeline, text, "raw");
    if (!status)
        status = use_reader(pipeline, 1);
    leat_pipeline_unref(pipeline);
    return status;
}

static int lmdb_reader(void)
{
    return use_text("lmdb:%s");
}

static int dropping_reader(void)
{
    return use_text("lmdb:%s,drop_behind=1,keep_behind=-1,read_ahead=4096");
}

static int two_readers(void)
{
    leat_pipeline *pipeline;
    leat_reader *first = NULL, *second = NULL;
    int status = parse(&pipeline, "lmdb:%s", "raw");
    if (!status)
        status = open_reader(&first, pipeline);
    if (!status)
        status = open_reader(&second, pipeline);
    leat_reader_close(first);
    leat_reader_close(second);
    leat_pipeline_unref(pipeline);
    return status;
}

static int memory_reader(void)
{
    leat_pipeline *pipeline = UNTOUCHED;
    static unsigned char pixels[RECORDS][20];
    static int32_t labels[RECORDS];
    for (int i = 0; i < RECORDS; i++)
        labels[i] = i;
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {1, 4, 5}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    int status = leat_pipeline_memory(&pipeline, fields, 2, RECORDS);
    if (status) {
        EXPECT(pipeline == UNTOUCHED);
        return status;
    }
    status = use_reader(pipeline, 1);
    leat_pipeline_unref(pipeline);
    return status;
}

/* A layer as far as it gets: what is delivered is as it should be. */
static int use_layer(leat_data_layer *layer, int64_t records)
{
    leat_token token;
    leat_blob *top[2] = {NULL, NULL};
    leat_device *device = NULL;
    int status =
        leat_device_find(&device, leat_data_layer_get_options(layer)->device);
    leat_token_init(&token);
    for (int i = 0; i < 2 && !status; i++)
        status = leat_blob_create(&top[i], device);
    if (!status)
        status = leat_data_layer_setup(layer, top, 2);
    for (int i = 0; i < 2 * FORWARDS && !status; i++) {
        if (i == FORWARDS)
            status = leat_data_layer_save(layer, &token);
        if (i == FORWARDS && !status)
            status = leat_data_layer_restore(layer, &token);
        if (!status)
            status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
        if (status)
            break;
        const leat_batch *batch = leat_data_layer_batch(layer);
        const float *labels = leat_blob_cpu_data(top[1]);
        status = labels ? LEAT_OK : LEAT_ENOMEM;
        for (int k = 0; k < BATCH && !status; k++) {
            EXPECT(batch->from[k].position == (i * BATCH + k) % records);
            EXPECT((int64_t)labels[k] == batch->from[k].record);
        }
    }
    leat_token_finish(&token);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    return status;
}

static leat_data_layer_options layer_options(void)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = BATCH;
    options.prefetch = 2;
    options.workers = 2;
    options.random_seed = 3;
    return options;
}

static int make_layer(const leat_pipeline *pipeline,
                      const leat_data_layer_options *options, int64_t records)
{
    leat_data_layer *layer = UNTOUCHED;
    int status = leat_data_layer_create(&layer, pipeline, options);
    if (!status)
        return use_layer(layer, records);
    EXPECT(layer == UNTOUCHED);
    return status;
}

static int layer_over(const char *text, const char *name,
                      const leat_data_layer_options *options, int64_t records)
{
    leat_pipeline *pipeline;
    int status = parse(&pipeline, text, name);
    if (!status)
        status = make_layer(pipeline, options, records);
    leat_pipeline_unref(pipeline);
    return status;
}

static int merged_layer(void)
{
    leat_data_layer_options options = layer_options();
    options.reader_thread = LEAT_READER_OFF;
    return layer_over("lmdb:%s", "raw", &options, RECORDS);
}

static int threaded_layer(void)
{
    leat_data_layer_options options = layer_options();
    options.reader_thread = LEAT_READER_ON;
    options.top_mode = LEAT_TOP_COPY;
    return layer_over("lmdb:%s", "raw", &options, RECORDS);
}

static int shuffled_layer(void)
{
    leat_data_layer_options options = layer_options();
    options.reader_thread = LEAT_READER_ON;
    return layer_over("lmdb:%s | test_shuffle:seed=3", "raw", &options,
                      RECORDS);
}

static int ranked_layer(void)
{
    leat_data_layer_options options = layer_options();
    options.phase = LEAT_TEST;
    options.world_size = 2;
    options.rank = 1;
    options.prefetch = LEAT_PREFETCH_AUTO;
    return layer_over("lmdb:%s", "raw", &options, RECORDS);
}

static int jpeg_layer(void)
{
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_data_layer_options options = layer_options();
    transform.crop_size = 8;
    transform.mirror = 1;
    options.transform = &transform;
    return layer_over("lmdb:%s", "jpeg", &options, IMAGES);
}

static int png_layer(void)
{
    leat_data_layer_options options = layer_options();
    return layer_over("lmdb:%s", "png", &options, IMAGES);
}

static int device_layer(void)
{
    leat_data_layer_options options = layer_options();
    options.device = "late:0";
    return layer_over("lmdb:%s", "raw", &options, RECORDS);
}

static int callback_layer(void)
{
    static scripted_source fixture;
    const scripted_source fresh = SCRIPTED_SOURCE_INIT;
    leat_data_layer_options options = layer_options();
    fixture = fresh;
    fixture.count = RECORDS;
    leat_pipeline *pipeline = UNTOUCHED;
    int status = scripted_source_try_pipeline(&pipeline, &fixture);
    if (status) {
        EXPECT(pipeline == UNTOUCHED);
        return status;
    }
    status = make_layer(pipeline, &options, RECORDS);
    leat_pipeline_unref(pipeline);
    return status;
}

static int net_layer(void)
{
    leat_data_layer *layer = UNTOUCHED;
    int status =
        leat_data_layer_create_from_net(&layer, in("net"), LEAT_TRAIN, NULL);
    if (!status)
        return use_layer(layer, RECORDS);
    EXPECT(layer == UNTOUCHED);
    return status;
}

static int net_group(void)
{
    static const char *const devices[] = {"cpu", "cpu"};
    leat_data_layer_group *group = UNTOUCHED;
    leat_blob *top[4] = {NULL};
    int status = leat_data_layer_group_create_from_net(
        &group, in("net"), LEAT_TRAIN, NULL, devices, 2);
    if (status) {
        EXPECT(group == UNTOUCHED);
        return status;
    }
    for (int i = 0; i < 4 && !status; i++)
        status = leat_blob_create(&top[i], NULL);
    if (!status)
        status = leat_data_layer_group_setup(group, top, 2);
    for (int i = 0; i < 2 && !status; i++) {
        leat_data_layer *member = leat_data_layer_group_member(group, i);
        status = leat_data_layer_forward(member, top + 2 * i, 2, LEAT_HOST);
        if (!status)
            EXPECT(leat_data_layer_batch(member)->number == i);
    }
    leat_data_layer_group_destroy(group);
    for (int i = 0; i < 4; i++)
        leat_blob_destroy(top[i]);
    return status;
}

static int net_file(void)
{
    leat_net *net = UNTOUCHED;
    int status = leat_net_open(&net, in("net"), LEAT_TEST, NULL);
    if (status) {
        EXPECT(net == UNTOUCHED);
        return status;
    }
    EXPECT(strcmp(leat_net_top_name(net, 1), "y") == 0);
    leat_net_close(net);
    return LEAT_OK;
}

static int mean_file(void)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_transformer *transformer = UNTOUCHED, *clone = NULL;
    char path[FIXTURE_PATH + 32];
    const float values[6] = {1, 2, 3, 4, 5, 6};
    snprintf(path, sizeof(path), "%s", in("written.mean"));
    unlink(path);
    int status = leat_mean_save(path, 1, 2, 3, values);
    if (status)
        EXPECT(access(path, F_OK) != 0);
    options.mean_file = path;
    if (!status)
        status = leat_transformer_create(&transformer, &options, LEAT_TEST,
                                         LEAT_FLOAT32, LEAT_NCHW);
    if (status) {
        EXPECT(transformer == UNTOUCHED);
        return status;
    }
    status = leat_transformer_clone(&clone, transformer);
    leat_transformer_destroy(clone);
    leat_transformer_destroy(transformer);
    return status;
}

static int blobs(void)
{
    const int64_t shape[] = {3, 5};
    leat_blob *blob = UNTOUCHED;
    int status = leat_blob_create(&blob, NULL);
    if (status) {
        EXPECT(blob == UNTOUCHED);
        return status;
    }
    status = leat_blob_reshape(blob, LEAT_FLOAT32, 2, shape);
    float *data = status ? NULL : leat_blob_mutable_cpu_data(blob);
    if (data)
        memset(data, 0, leat_blob_bytes(blob));
    leat_blob_destroy(blob);
    return status || data ? status : LEAT_ENOMEM;
}

static int tokens(void)
{
    leat_token token, back;
    leat_token_init(&token);
    leat_token_init(&back);
    int status = leat_token_put(&token, "some bytes", 10);
    const char *text = status ? NULL : leat_token_text(&token);
    if (!status)
        status = text ? leat_token_parse(&back, text) : LEAT_ENOMEM;
    if (!status)
        EXPECT(back.size == 10);
    leat_token_finish(&token);
    leat_token_finish(&back);
    return status;
}

const life_cycle life_cycles[] = {
    {"lmdb reader", lmdb_reader},
    {"lmdb reader that drops", dropping_reader},
    {"two lmdb readers", two_readers},
    {"memory reader", memory_reader},
    {"layer, merged", merged_layer},
    {"layer, threaded", threaded_layer},
    {"layer, shuffled", shuffled_layer},
    {"layer of a rank", ranked_layer},
    {"layer of JPEGs", jpeg_layer},
    {"layer of PNGs", png_layer},
    {"layer on a device", device_layer},
    {"layer over callbacks", callback_layer},
    {"layer of a net file", net_layer},
    {"group of a net file", net_group},
    {"net file", net_file},
    {"mean file", mean_file},
    {"blobs", blobs},
    {"tokens", tokens},
};
const int life_cycles_count = sizeof(life_cycles) / sizeof(life_cycles[0]);
