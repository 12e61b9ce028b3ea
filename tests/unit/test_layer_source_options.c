/* The same value of an option means the same in C, in a net file and on the
   command line. */
#include "config/net_param.h"
#include "layer/data_layer_options.h"
#include "support/suite.h"
#include "tools/delivery/layer_source_options.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static leat_transform_options transform;

static leat_data_layer_options start(void)
{
    leat_data_layer_options out;
    memset(&out, 0, sizeof(out));
    memset(&transform, 0, sizeof(transform));
    out.size = sizeof(out);
    transform.size = sizeof(transform);
    out.transform = &transform;
    out.batch_size = 6;
    out.on_error = LEAT_ON_ERROR_ZERO;
    return out;
}

/* What one of the three comes to. */
typedef struct outcome {
    leat_data_layer_options values; /* no pointers */
    float scale;
    int crop_size;
} outcome;

static outcome resolve(const leat_data_layer_options *options)
{
    leat__layer_options known;
    outcome out;
    ck_assert_msg(leat__layer_options_init(&known, options) == LEAT_OK, "%s",
                  leat_last_error());
    memset(&out, 0, sizeof(out));
    memcpy(&out.values, &known.values, sizeof(out.values));
    out.scale = known.transform.scale;
    out.crop_size = known.transform.crop_size;
    out.values.name = out.values.device = NULL;
    out.values.transform = NULL;
    out.values.tops = NULL;
    leat__layer_options_finish(&known);
    return out;
}

static outcome from_net(const char *own, const char *pixels)
{
    char text[512];
    leat__net_param net;
    int n = snprintf(text, sizeof(text),
                     "layer { type: 'Data' top: 'data' data_param { source: 'x'"
                     " backend: LMDB batch_size: 6 } transform_param { %s }"
                     " leat_param { on_error: ZERO %s } }",
                     pixels, own);
    ck_assert_msg(leat__net_param_parse(&net, "net", text, (size_t)n,
                                        LEAT_TRAIN, NULL) == LEAT_OK,
                  "%s", leat_last_error());
    outcome out = resolve(&net.options);
    leat__net_param_finish(&net);
    return out;
}

static outcome from_command(const char *name, const char *value)
{
    struct layer_source_options source = LAYER_SOURCE_OPTIONS_INIT;
    struct option_spec table[LAYER_SOURCE_OPTIONS];
    const struct usage usage = {
        .command = "dump", .arguments = "", .about = "", .shared = table};
    char line[5][32] = {"dump", "--batch=6", "--on-error=ZERO", "", ""};
    char *argv[] = {line[0], line[1], line[2], line[3], NULL};
    char **arguments;
    int n;
    if (*name)
        snprintf(line[3], sizeof(line[3]), "--%s=%s", name, value);
    layer_source_options_list(table, &source);
    ck_assert_int_eq(option_parse(&usage, *name ? 4 : 3, argv, &arguments, &n),
                     OPTION_GO);
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_transform_options pixels = LEAT_TRANSFORM_OPTIONS_INIT;
    ck_assert_int_eq(layer_source_options_fill(&source, &options), LEAT_OK);
    layer_source_options_fill_transform(&source, &pixels);
    options.transform = &pixels;
    return resolve(&options);
}

/* Values on either side of what is special. */
typedef struct value {
    const char *field; /* of leat_param; or of transform_param */
    const char *option;
    const char *text;
    int64_t number;
    int is_pixels;
} value;

static const value values[] = {
    {"", "", "", 0, 0},
    {"prefetch", "prefetch", "0", 0, 0},
    {"prefetch", "prefetch", "1", 1, 0},
    {"prefetch", "prefetch", "1048576", 1 << 20, 0},
    {"prefetch", "prefetch", "-1", LEAT_PREFETCH_AUTO, 0},
    {"prefetch", "prefetch", "AUTO", LEAT_PREFETCH_AUTO, 0},
    {"prefetch", "prefetch", "auto", LEAT_PREFETCH_AUTO, 0},
    {"random_seed", "seed", "0", 0, 0},
    {"random_seed", "seed", "7", 7, 0},
    {"random_seed", "seed", "-1", -1, 0},
    {"max_errors", "max-errors", "0", 0, 0},
    {"max_errors", "max-errors", "3", 3, 0},
    {"max_errors", "max-errors", "-1", -1, 0},
    {"world_size", "world-size", "0", 0, 0},
    {"world_size", "world-size", "1", 1, 0},
    {"world_size", "world-size", "5", 5, 0},
    {"workers", "workers", "0", 0, 0},
    {"workers", "workers", "3", 3, 0},
    {"max_image_bytes", "max-image-bytes", "0", 0, 0},
    {"max_image_bytes", "max-image-bytes", "4096", 4096, 0},
    {"scale", "scale", "0", 0, 1},
    {"scale", "scale", "1", 1, 1},
    {"scale", "scale", "2", 2, 1},
    {"crop_size", "crop", "0", 0, 1},
    {"crop_size", "crop", "9", 9, 1},
};

/* The same in C, where a number comes with its flag if it has one. */
static outcome from_c(const value *what)
{
    leat_data_layer_options options = start();
    int number = (int)what->number;
    if (strcmp(what->field, "prefetch") == 0)
        options.prefetch = number;
    if (strcmp(what->field, "random_seed") == 0) {
        options.random_seed = number;
        options.has_random_seed = 1;
    }
    if (strcmp(what->field, "max_errors") == 0) {
        options.max_errors = number;
        options.has_max_errors = 1;
    }
    if (strcmp(what->field, "world_size") == 0)
        options.world_size = number;
    if (strcmp(what->field, "workers") == 0)
        options.workers = number;
    if (strcmp(what->field, "max_image_bytes") == 0)
        options.max_image_bytes = (size_t)number;
    if (strcmp(what->field, "scale") == 0) {
        transform.scale = (float)number;
        transform.has_scale = 1;
    }
    if (strcmp(what->field, "crop_size") == 0)
        transform.crop_size = number;
    return resolve(&options);
}

static void assert_same(const outcome *one, const outcome *other,
                        const char *where, const char *text)
{
    const void *a = &one->values;
    const void *b = &other->values;
    ck_assert_msg(memcmp(a, b, sizeof(one->values)) == 0, "%s: %s", where,
                  text);
    ck_assert_msg(one->scale == other->scale, "%s: %s", where, text);
    ck_assert_int_eq(one->crop_size, other->crop_size);
}

START_TEST(a_value_means_the_same_wherever_it_is_given)
{
    const value *what = &values[_i];
    char text[64] = "";
    if (*what->field)
        snprintf(text, sizeof(text), "%s: %s", what->field, what->text);
    const outcome c = from_c(what);
    const outcome net =
        what->is_pixels ? from_net("", text) : from_net(text, "");
    const outcome command = from_command(what->option, what->text);
    assert_same(&c, &net, "net file", text);
    assert_same(&c, &command, "command line", text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_source_options");
    TCase *tcase = tcase_create("layer_source_options");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_value_means_the_same_wherever_it_is_given, 0,
                        (int)(sizeof(values) / sizeof(values[0])));
    return suite_run(suite);
}
