/* Every option of the tables, at its least, its most, its default and each of
   its words, is the same in C, by name, in a net file and on the command line.
 */
#include "base/option_list.h"
#include "config/net_param.h"
#include "data/transform.h"
#include "layer/options/data_layer_options.h"
#include "support/suite.h"
#include "tools/delivery/layer_source_options.h"

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option and one value of it. */
typedef struct trial {
    const leat_option *option;
    bool is_pixels; /* one of the transform's */
    const char *text;
    int64_t number; /* what the text stands for in C */
    float real;
} trial;

/* What one of the ways comes to. */
typedef struct outcome {
    leat_data_layer_options layer;
    leat_transform_options transform;
} outcome;

static bool is_named(const trial *t, const char *name)
{
    return strcmp(t->option->name, name) == 0;
}

static bool sets_batch(const trial *t)
{
    return is_named(t, "batch_size") || is_named(t, "global_batch_size");
}

/* What stands beside the option in all ways. */
static outcome start(const trial *t)
{
    outcome out;
    memset(&out, 0, sizeof(out));
    out.layer.size = sizeof(out.layer);
    out.transform.size = sizeof(out.transform);
    out.layer.batch_size = sets_batch(t) ? 0 : 6;
    if (is_named(t, "max_errors"))
        out.layer.on_error = LEAT_ON_ERROR_ZERO;
    return out;
}

static void *members(const trial *t, outcome *out)
{
    return t->is_pixels ? (void *)&out->transform : (void *)&out->layer;
}

/* Defaults in the place of zeros, and no pointers but texts. */
static outcome finish(outcome out)
{
    leat_transform_options pixels;
    leat__data_layer_options_complete(&out.layer);
    ck_assert_int_eq(leat__transform_options_copy(&pixels, &out.transform),
                     LEAT_OK);
    out.transform = pixels;
    out.layer.tops = NULL;
    out.layer.stages = NULL;
    out.layer.transform = NULL;
    out.layer.has_random_seed = out.layer.random_seed >= 0;
    out.layer.has_max_errors = out.layer.max_errors >= 0;
    out.transform.has_scale = out.transform.scale == 0;
    return out;
}

/* A member as C programs set it. */
static outcome from_c(const trial *t)
{
    outcome out = start(t);
    char *base = members(t, &out);
    void *member = base + t->option->offset;
    const int narrow = (int)t->number;
    const size_t bytes = (size_t)t->number;
    switch (t->option->type) {
    case LEAT_OPTION_TEXT:
        *(const char **)member = t->text;
        break;
    case LEAT_OPTION_BOOL:
        *(bool *)member = t->number;
        break;
    case LEAT_OPTION_INT64:
        *(int64_t *)member = t->number;
        break;
    case LEAT_OPTION_BYTES:
        *(size_t *)member = bytes;
        break;
    case LEAT_OPTION_FLOAT:
        *(float *)member = t->real;
        break;
    default:
        memcpy(member, &narrow, sizeof(narrow));
    }
    if (t->option->given)
        *(bool *)(base + t->option->given) = true;
    return finish(out);
}

static outcome by_name(const trial *t)
{
    outcome out = start(t);
    ck_assert_msg(
        (t->is_pixels ? leat_transform_options_set(&out.transform,
                                                   t->option->name, t->text)
                      : leat_data_layer_options_set(&out.layer, t->option->name,
                                                    t->text)) == LEAT_OK,
        "%s", leat_last_error());
    return finish(out);
}

static outcome from_net(const trial *t, leat__net_param *net)
{
    char text[512], field[128];
    const char *quote = t->option->type == LEAT_OPTION_TEXT ? "'" : "";
    bool is_data = is_named(t, "batch_size");
    snprintf(field, sizeof(field), "%s: %s%s%s", t->option->name, quote,
             t->text, quote);
    int n = snprintf(text, sizeof(text),
                     "layer { type: 'Data' top: 'data' data_param { source: 'x'"
                     " backend: LMDB %s %s } transform_param { %s }"
                     " leat_param { %s %s } }",
                     sets_batch(t) ? "" : "batch_size: 6", is_data ? field : "",
                     t->is_pixels ? field : "",
                     is_named(t, "max_errors") ? "on_error: ZERO" : "",
                     is_data || t->is_pixels ? "" : field);
    ck_assert_msg(leat__net_param_parse(net, "net", text, (size_t)n, LEAT_TRAIN,
                                        NULL) == LEAT_OK,
                  "%s: %s", text, leat_last_error());
    outcome out = {.layer = net->options, .transform = net->transform};
    return finish(out);
}

/* A list that is too long would be written beyond the commands' tables. */
START_TEST(the_tables_of_the_commands_have_room_for_all_options)
{
    struct layer_source_options source = LAYER_SOURCE_OPTIONS_INIT;
    struct option_spec table[4 * LAYER_SOURCE_OPTIONS];
    int layer, transform, n = 0;
    (void)leat_data_layer_option_list(&layer);
    (void)leat_transform_option_list(&transform);
    ck_assert_int_le(layer, LAYER_SOURCE_OPTIONS);
    ck_assert_int_le(transform, LAYER_SOURCE_OPTIONS);
    layer_source_options_list(table, &source);
    while (table[n].name)
        n++;
    ck_assert_int_le(n + 1, LAYER_SOURCE_OPTIONS);
}
END_TEST

static outcome from_command(const trial *t)
{
    struct layer_source_options source = LAYER_SOURCE_OPTIONS_INIT;
    struct option_spec table[LAYER_SOURCE_OPTIONS];
    const struct usage usage = {
        .command = "dump", .arguments = "", .about = "", .shared = table};
    static char line[4][96]; /* the outcome points into it */
    char *argv[] = {line[0], line[1], line[2], line[3], NULL};
    int argc = 1;
    outcome out;
    snprintf(line[0], sizeof(line[0]), "dump");
    if (!sets_batch(t))
        snprintf(line[argc++], sizeof(line[0]), "--batch=6");
    if (is_named(t, "max_errors"))
        snprintf(line[argc++], sizeof(line[0]), "--on-error=ZERO");
    if (t->option->type == LEAT_OPTION_BOOL && t->number)
        snprintf(line[argc++], sizeof(line[0]), "--%s", t->option->argument);
    else if (t->option->type != LEAT_OPTION_BOOL)
        snprintf(line[argc++], sizeof(line[0]), "--%s=%s", t->option->argument,
                 t->text);
    layer_source_options_list(table, &source);
    option_parse(&usage, argc, argv);
    ck_assert_int_eq(
        layer_source_options_resolve(&source, &out.layer, &out.transform),
        LEAT_OK);
    return finish(out);
}

static size_t member_size(const leat_option *option)
{
    switch (option->type) {
    case LEAT_OPTION_BOOL:
        return sizeof(bool);
    case LEAT_OPTION_INT64:
        return sizeof(int64_t);
    case LEAT_OPTION_BYTES:
        return sizeof(size_t);
    case LEAT_OPTION_FLOAT:
        return sizeof(float);
    case LEAT_OPTION_OTHER:
        return 0;
    default:
        return sizeof(int);
    }
}

/* Texts by what they say, all else by its bytes. */
static void assert_list(const trial *t, const leat_option list[], int n,
                        const void *one, const void *other, const char *way)
{
    for (int i = 0; i < n; i++) {
        const char *a = (const char *)one + list[i].offset;
        const char *b = (const char *)other + list[i].offset;
        bool is_same = memcmp(a, b, member_size(&list[i])) == 0;
        if (list[i].type == LEAT_OPTION_TEXT) {
            const char *text = *(const char *const *)a;
            const char *same = *(const char *const *)b;
            is_same = text && same ? !strcmp(text, same) : text == same;
        }
        ck_assert_msg(is_same, "%s: %s: another %s, %s", t->option->name,
                      t->text, list[i].name, way);
    }
}

static void assert_same(const trial *t, const outcome *one, outcome other,
                        const char *way)
{
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    assert_list(t, list, n, &one->layer, &other.layer, way);
    ck_assert_int_eq(one->layer.has_random_seed, other.layer.has_random_seed);
    ck_assert_int_eq(one->layer.has_max_errors, other.layer.has_max_errors);
    list = leat_transform_option_list(&n);
    assert_list(t, list, n, &one->transform, &other.transform, way);
    ck_assert_int_eq(one->transform.has_scale, other.transform.has_scale);
}

static int tried;

static void check(const trial *t)
{
    const outcome c = from_c(t);
    leat__net_param net;
    tried++;
    assert_same(t, &c, by_name(t), "by name");
    if (t->option->argument)
        assert_same(t, &c, from_command(t), "command line");
    if (!t->option->field && !is_named(t, "batch_size"))
        return;
    const outcome file = from_net(t, &net);
    assert_same(t, &c, file, "net file");
    leat__net_param_finish(&net);
}

static void check_number(trial t, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, number);
    t.text = text;
    t.number = number;
    check(&t);
}

/* A word, as it stands and in small letters. */
static void check_word(trial t, const char *word, int index)
{
    char small[16] = "";
    leat_dtype dtype = LEAT_BYTES;
    for (size_t i = 0; word[i]; i++)
        small[i] = (char)tolower((unsigned char)word[i]);
    if (t.option->type == LEAT_OPTION_DTYPE)
        ck_assert_int_eq(leat_dtype_parse(&dtype, small), LEAT_OK);
    t.number = t.option->type == LEAT_OPTION_WORD    ? index
               : t.option->type == LEAT_OPTION_DTYPE ? (int)dtype
                                                     : -1;
    t.text = word;
    check(&t);
    t.text = small;
    check(&t);
    if (t.option->type != LEAT_OPTION_DTYPE)
        check_number(t, t.number);
}

static void check_words(trial t)
{
    char words[128];
    char *rest = words;
    snprintf(words, sizeof(words), "%s", t.option->words);
    char *word = strtok_r(words, "|", &rest);
    for (int i = 0; word; i++, word = strtok_r(NULL, "|", &rest))
        check_word(t, word, i);
}

static void check_option(trial t)
{
    static const char *const reals[] = {"0", "1", "2.5", "-1e-3"};
    switch (t.option->type) {
    case LEAT_OPTION_OTHER:
        return;
    case LEAT_OPTION_TEXT:
        t.text = "some text";
        check(&t);
        return;
    case LEAT_OPTION_BOOL:
        t.text = "false";
        check(&t);
        t.text = "true";
        t.number = 1;
        check(&t);
        return;
    case LEAT_OPTION_FLOAT:
        for (int i = 0; i < 4; i++) {
            t.text = reals[i];
            t.real = strtof(reals[i], NULL);
            check(&t);
        }
        return;
    default:
        break;
    }
    if (t.option->words)
        check_words(t);
    if (t.option->type == LEAT_OPTION_WORD ||
        t.option->type == LEAT_OPTION_DTYPE)
        return;
    check_number(t, t.option->least);
    check_number(t, t.option->most);
    if (t.option->initial)
        check_number(t, strtoll(t.option->initial, NULL, 10));
}

START_TEST(a_value_means_the_same_wherever_it_is_given)
{
    int n;
    const leat_option *list = leat_data_layer_option_list(&n);
    for (int i = 0; i < n; i++)
        check_option((trial){.option = &list[i]});
    list = leat_transform_option_list(&n);
    for (int i = 0; i < n; i++)
        check_option((trial){.option = &list[i], .is_pixels = true});
    ck_assert_int_gt(tried, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_source_options");
    TCase *tcase = tcase_create("layer_source_options");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_value_means_the_same_wherever_it_is_given);
    tcase_add_test(tcase, the_tables_of_the_commands_have_room_for_all_options);
    return suite_run(suite);
}
