/* leat_param's tops: what becomes of them, and the lines of what is wrong. */
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static leat_net *net;

static int parse(const char *lines, const char *tops)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "layer { name: \"d\" type: \"Data\" %s\n"
             "data_param { source: \"x\" backend: LMDB batch_size: 2 }\n"
             "leat_param {\n%s } }",
             lines, tops);
    return leat_net_parse(&net, "net", text, strlen(text), LEAT_TRAIN, NULL);
}

START_TEST(tops_are_read_with_all_that_they_say)
{
    ck_assert_msg(
        !parse(
            "top: \"image\" top: \"mask\" top: \"t\" top: \"t.lengths\" "
            "top: \"w\" top: \"w.offsets\" top: \"w.offsets.1\"",
            "top { name: 'image' field: 'data' is_image: true dtype: FLOAT16 "
            "transform_param { crop_size: 5 mirror: true mean_value: 3 } }"
            "top { name: 'mask' is_image: true choices_of: 'image' "
            "transform_param { crop_size: 5 mirror: true } }"
            "top { name: 't' form: PAD dtype: int8 cast_lossy: true "
            "pad_value: -1 shape: [7, 0] }"
            "top { name: 'w' form: ragged }"),
        "%s", leat_last_error());
    const leat_data_layer_options *options = leat_net_options(net);
    const leat_top *top = options->top;
    ck_assert_int_eq(options->ntop, 4);
    ck_assert_ptr_null(options->tops);
    ck_assert_str_eq(top[0].field, "data");
    ck_assert(top[0].is_image && !top[2].is_image && top[2].cast_lossy);
    ck_assert_int_eq(top[0].dtype, LEAT_FLOAT16);
    ck_assert_int_eq(top[0].transform->crop_size, 5);
    ck_assert_int_eq(top[0].transform->mean_values, 1);
    ck_assert_float_eq(top[0].transform->mean_value[0], 3);
    ck_assert_int_eq(top[1].transform->mean_values, 0);
    ck_assert_str_eq(top[1].choices_of, "image");
    ck_assert_int_eq(top[2].form, LEAT_TOP_PAD);
    ck_assert_int_eq(top[2].dtype, LEAT_INT8);
    ck_assert_double_eq(top[2].pad_value, -1);
    ck_assert_int_eq(top[2].ndim, 2);
    ck_assert_int_eq(top[2].shape[0], 7);
    ck_assert_int_eq(top[3].form, LEAT_TOP_RAGGED);
    ck_assert_int_eq(leat_net_top_count(net), 6);
    ck_assert_str_eq(leat_net_top_name(net, 3), "t.lengths");
    ck_assert_str_eq(leat_net_top_name(net, 5), "w.offsets");
    leat_net_close(net);
}
END_TEST

START_TEST(the_layers_own_lines_may_be_left_out)
{
    ck_assert_int_eq(parse("", "top { name: 'x' }"), LEAT_OK);
    ck_assert_int_eq(leat_net_top_count(net), 1);
    leat_net_close(net);
}
END_TEST

START_TEST(images_without_a_transform_choose_by_the_layers)
{
    ck_assert_int_eq(parse("transform_param { crop_size: 5 mirror: true }",
                           "top { name: 'image' is_image: true }"
                           "top { name: 'mask' is_image: true choices_of: "
                           "'image' transform_param { crop_size: 5 mirror: "
                           "true } }"
                           "top { name: 'depth' is_image: true choices_of: "
                           "'image' }"),
                     LEAT_OK);
    leat_net_close(net);
    ck_assert_int_eq(parse("transform_param { crop_size: 5 }",
                           "top { name: 'image' is_image: true }"
                           "top { name: 'mask' is_image: true choices_of: "
                           "'image' transform_param { crop_size: 4 } }"),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "found 4 and 5") != NULL, "%s",
                  leat_last_error());
}
END_TEST

static const struct {
    const char *lines, *tops, *line;
} refused[] = {
    {"", "top { field: 'x' }", "net:4:1: top: expected a name, found none"},
    {"", "top { name: 'x' form: DENS }",
     "net:4:23: form: expected DENSE, PAD or RAGGED, found DENS"},
    {"", "top { name: 'x' colour: 1 }",
     "net:4:17: top has no field named \"colour\""},
    {"", "top { name: 'x' } top { name: 'x' }",
     "net:4:1: two tops are called x"},
    {"", "top { name: 'x' pad_value: 1 }",
     "net:4:1: top x: pad_value is for the form PAD"},
    {"top: 'y'", "top { name: 'x' }",
     "net:1:37: top: expected x, as leat_param lists the tops, found y"},
    {"top: 'x' top: 'x.lengths' top: 'z'", "top { name: 'x' form: PAD }",
     "expected no further one, as leat_param lists the tops, found z"},
    {"top: 'x'", "top { name: 'x' form: PAD }",
     "net:1:32: the layer lacks top: \"x.lengths\", which leat_param lists"},
    {"", "top { name: 'x' form: PAD shape: [1, 1, 1, 1, 1, 1, 1, 1] }",
     "shape: expected at most 7 dimensions"},
};

START_TEST(wrong_tops_are_refused_where_they_stand)
{
    ck_assert_int_eq(parse(refused[_i].lines, refused[_i].tops), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), refused[_i].line) != NULL, "%s",
                  leat_last_error());
}
END_TEST

START_TEST(there_are_32_at_most)
{
    char tops[33 * 32] = "";
    for (int i = 0; i < 33; i++)
        snprintf(tops + strlen(tops), 32, "top { name: 't%d' }\n", i);
    ck_assert_int_eq(parse("", tops), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "net:36:1: expected at most 32 tops");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net_top");
    TCase *tcase = tcase_create("net_top");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, tops_are_read_with_all_that_they_say);
    tcase_add_test(tcase, the_layers_own_lines_may_be_left_out);
    tcase_add_test(tcase, images_without_a_transform_choose_by_the_layers);
    tcase_add_loop_test(tcase, wrong_tops_are_refused_where_they_stand, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tcase, there_are_32_at_most);
    return suite_run(suite);
}
