#include "base/memory.h"
#include "data/token.h"
#include "pipeline/reader_form.h"
#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"random", "counted", "seekable",
                                    "sequential", "marked"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Two epochs of records from three ranges. */
static void fill(order_epoch epoch[2], int a, int b, int c)
{
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        order_add_range(&epoch[e], 0, a);
        order_add_range(&epoch[e], 100, b);
        order_add_range(&epoch[e], 200, c);
    }
}

static void check_chain(const char *kind, const char *options, int a, int b,
                        int c)
{
    static order_epoch epoch[2];
    char text[300];
    fill(epoch, a, b, c);
    snprintf(text, sizeof(text),
             "(plain:%s,%d%s) (plain:%s,%d,first=100%s) "
             "(plain:%s,%d,first=200%s) | chain",
             kind, a, options, kind, b, options, kind, c, options);
    order_check(text, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(readers_follow_each_other)
{
    check_chain(kinds[_i], "", 10, 10, 10);
    check_chain(kinds[_i], "", 1, 0, 17);
    check_chain(kinds[_i], "", 0, 0, 5);
    check_chain(kinds[_i], "", 5, 0, 0);
    check_chain(kinds[_i], "", 0, 0, 0);
}
END_TEST

START_TEST(bad_and_deferred_records_count)
{
    check_chain(kinds[_i], ",bad=1", 14, 4, 15);
    check_chain(kinds[_i], ",defers=1", 7, 8, 9);
    check_chain(kinds[_i], ",bad=1,defers=1", 14, 14, 4);
}
END_TEST

START_TEST(readers_of_all_kinds_follow_each_other)
{
    static order_epoch epoch[2];
    fill(epoch, 5, 6, 7);
    order_check("(plain:random,5) (plain:marked,6,first=100,defers=1) "
                "(plain:sequential,7,first=200,defers=1) | chain",
                epoch, 2, 0);
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        for (int i = 0; i < 4; i++)
            order_add_range(&epoch[e], i / 2 * 100, 4);
    }
    order_check("(plain:marked,4,defers=1 | repeat:2) "
                "(plain:random,4,first=100 | repeat:2) | chain",
                epoch, 2, 0);
}
END_TEST

START_TEST(chains_nest)
{
    static order_epoch epoch[2];
    fill(epoch, 5, 6, 7);
    char text[300];
    snprintf(text, sizeof(text),
             "((plain:%s,5,defers=1) (plain:%s,6,first=100,defers=1) | chain) "
             "(plain:%s,7,first=200,defers=1) | chain",
             kinds[_i], kinds[_i], kinds[_i]);
    order_check(text, epoch, 2, 0);
}
END_TEST

START_TEST(a_single_pass_can_be_one_of_them)
{
    static order_epoch epoch[2];
    fill(epoch, 5, 6, 0);
    order_check("(plain:once,5) (plain:once,6,first=100) | chain", epoch, 1, 0);
    /* Where one is read once, no other is read twice. */
    order_check("(plain:sequential,5) (plain:once,6,first=100) | chain", epoch,
                1, 0);
    order_check("(plain:once,5) (plain:marked,6,first=100) | chain", epoch, 1,
                0);
}
END_TEST

START_TEST(what_follows_an_endless_reader_never_comes)
{
    static order_epoch epoch;
    epoch = (order_epoch){.is_cut = 1};
    order_add_range(&epoch, 100, 4);
    for (int i = 0; i < 5; i++)
        order_add_range(&epoch, 0, 9);
    order_check("(plain:random,4,first=100) (plain:random,9 | repeat) "
                "(plain:random,5) | chain",
                &epoch, 1, 0);
    leat_reader *reader =
        order_open("(plain:random,9 | repeat) (plain:random,5) | chain");
    int64_t count;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, LEAT_ENDLESS);
    leat_reader_close(reader);
}
END_TEST

START_TEST(shapes_may_differ)
{
    leat_reader *reader =
        order_open("(plain:random,4) (plain:random,4,wide=5) | chain");
    const leat_field_spec *spec;
    int n;
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(spec[0].name, "data");
    ck_assert_int_eq(spec[0].ndim, 1);
    ck_assert_int_eq(spec[0].shape[0], -1);
    ck_assert_int_eq(spec[1].ndim, 0);
    leat_reader_close(reader);
}
END_TEST

/* Asking for the fields fails with a line that has all of `parts`. */
static void check_fields_refused(const char *text, const char *const parts[])
{
    leat_reader *reader = order_open(text);
    const leat_field_spec *spec;
    int n;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_EINVAL);
    for (int i = 0; parts[i]; i++)
        ck_assert_msg(strstr(leat_last_error(), parts[i]), "%s",
                      leat_last_error());
    leat_reader_close(reader);
}

START_TEST(types_and_names_may_not)
{
    static const char *const types[] = {"field 1", "\"label\" of int32",
                                        "\"label\" of int64 in reader 1",
                                        "its type differs", NULL};
    static const char *const names[] = {"\"label\"", "\"class\"",
                                        "its name differs", NULL};
    check_fields_refused("(plain:random,4) (plain:random,4,long=1) | chain",
                         types);
    check_fields_refused("(plain:marked,4) (plain:random,4,name=class) | chain",
                         names);
}
END_TEST

START_TEST(no_mark_leads_out_of_it)
{
    leat_reader *reader = order_open("(plain:marked,9) (plain:marked,9)|chain");
    leat_token mark;
    leat_token_init(&mark);
    const int64_t states[][3] = {{2, 0, 0}, {-1, 0, 0}, {1, -1, 0}};
    for (int i = 0; i < 3; i++) {
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat__reader_put_form(reader, &mark), LEAT_OK);
        ck_assert_int_eq(leat_token_put(&mark, states[i], sizeof(states[i])),
                         LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 5}, &mark),
                         LEAT_EINVAL);
    }
    leat_token_finish(&mark);
    leat_reader_close(reader);
}
END_TEST

/* The number of a sample in a mark is what another program wrote. */
START_TEST(a_number_up_to_the_largest_in_a_mark_is_taken)
{
    leat_reader *reader = order_open("(plain:marked,9) (plain:marked,9)|chain");
    const int64_t near = LEAT__POSITION_MAX - 3, beyond = near + 4;
    /* Behind the form, and which reader it is. */
    const size_t number = sizeof(uint64_t) + sizeof(near);
    const leat_position at = {0, 5};
    leat_token mark;
    leat_sample sample;
    int64_t skipped;
    leat_token_init(&mark);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    for (int skips = 0; skips < 2; skips++) {
        memcpy(mark.bytes + number, &near, sizeof(near));
        mark.cursor = 0;
        ck_assert_int_eq(leat_reader_seek(reader, at, &mark), LEAT_OK);
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(skips ? leat_reader_skip(reader, 1, &skipped)
                                   : leat_reader_next(reader, &sample),
                             LEAT_OK);
        mark.size = mark.cursor = 0;
        ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
        ck_assert_msg(!leat_reader_seek(reader, at, &mark), "%s",
                      leat_last_error());
        memcpy(mark.bytes + number, &beyond, sizeof(beyond));
        mark.cursor = 0;
        ck_assert_int_eq(leat_reader_seek(reader, at, &mark), LEAT_EINVAL);
    }
    leat_sample_finish(&sample);
    leat_token_finish(&mark);
    leat_reader_close(reader);
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source[] = {order_parse("plain:random,45"),
                               order_parse("plain:random,7")};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_chain(&pipeline, source, 2), LEAT_OK);
    leat_pipeline *parsed =
        order_parse("(plain:random,45) (plain:random,7) | chain");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(source[0]);
    leat_pipeline_unref(source[1]);
}
END_TEST

/* The Nth allocation of a seek fails, in the first input or the second. */
START_TEST(after_a_seek_that_failed_the_beginning_is_found)
{
    leat_reader *reader = order_open("(range:40 | batch:3 | unbatch) "
                                     "(range:40,80 | batch:3 | unbatch) | "
                                     "chain");
    leat_token mark;
    leat_sample sample;
    int64_t skipped;
    const int at = _i ? 44 : 5;
    int failed = 0;
    leat_token_init(&mark);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_skip(reader, at, &skipped), LEAT_OK);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    leat_reader_close(reader);
    for (int n = 0; failed == n; n++) {
        reader = order_open("(range:40 | batch:3 | unbatch) "
                            "(range:40,80 | batch:3 | unbatch) | chain");
        mark.cursor = 0;
        leat__alloc_fail_at(n);
        int status = leat_reader_seek(reader, (leat_position){0, at}, &mark);
        leat__alloc_fail_at(-1);
        failed += status != LEAT_OK;
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
        for (int k = 0; k < 80; k++) {
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            ck_assert_int_eq(*(const int64_t *)sample.field[0].data, k);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        leat_reader_close(reader);
    }
    ck_assert_int_gt(failed, 0);
    leat_sample_finish(&sample);
    leat_token_finish(&mark);
}
END_TEST

static int end_at_once(void *user, leat_sample *sample)
{
    (void)user;
    (void)sample;
    return LEAT_END;
}

/* A chain of a callback, which nothing identifies, and another. */
static leat_reader *open_after_callback(const char *text,
                                        const leat_field_spec *field)
{
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = field,
                                      .nfields = 1,
                                      .next = end_at_once};
    leat_pipeline *upstream[2], *chain;
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_callback(&upstream[0], &callbacks, NULL),
                     LEAT_OK);
    upstream[1] = order_parse(text);
    ck_assert_int_eq(leat_pipeline_chain(&chain, upstream, 2), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(chain, &reader), LEAT_OK);
    leat_pipeline_unref(chain);
    leat_pipeline_unref(upstream[0]);
    leat_pipeline_unref(upstream[1]);
    return reader;
}

static void write_lines(const char *path, const char *lines)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(lines, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(an_input_without_identity_hides_no_other)
{
    static const leat_field_spec value = {.name = "value", .dtype = LEAT_INT64};
    static const leat_field_spec line = {
        .name = "line", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    char path[] = "/tmp/leat-chain-XXXXXX", text[64];
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(text, sizeof(text), "text:%s", path);
    leat_token token;
    leat_token_init(&token);
    leat_reader *reader =
        open_after_callback("(range:5) (range:5) | merge", &value);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_ESTATE);
    leat_reader_close(reader);
    token.size = 0;
    for (int other = 0; other < 2; other++) {
        write_lines(path, other ? "another" : "one");
        reader = open_after_callback(text, &line);
        if (!other)
            ck_assert_int_eq(leat_reader_save(reader, &token),
                             LEAT_EUNSUPPORTED);
        token.cursor = 0;
        ck_assert_int_eq(leat_reader_restore(reader, &token),
                         other ? LEAT_EINVAL : LEAT_EUNSUPPORTED);
        leat_reader_close(reader);
    }
    leat_token_finish(&token);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chain");
    TCase *all = tcase_create("chain");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, readers_follow_each_other, 0, KINDS);
    tcase_add_loop_test(all, bad_and_deferred_records_count, 0, KINDS);
    tcase_add_test(all, readers_of_all_kinds_follow_each_other);
    tcase_add_loop_test(all, chains_nest, 0, KINDS);
    tcase_add_test(all, a_single_pass_can_be_one_of_them);
    tcase_add_test(all, what_follows_an_endless_reader_never_comes);
    tcase_add_test(all, shapes_may_differ);
    tcase_add_test(all, types_and_names_may_not);
    tcase_add_test(all, no_mark_leads_out_of_it);
    tcase_add_test(all, a_number_up_to_the_largest_in_a_mark_is_taken);
    tcase_add_loop_test(all, after_a_seek_that_failed_the_beginning_is_found, 0,
                        2);
    tcase_add_test(all, an_input_without_identity_hides_no_other);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
