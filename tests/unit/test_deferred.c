/* What a call of a reader gives, keeps and holds, and the work that next
 * deferred, for every order of good and bad records. */
#include "base/memory.h"
#include "support/scripted_reader.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const scripts[] = {
    "",
    "g",
    "d",
    "ggggg",
    "ddddd",
    "gdgdgdgd",
    "ggxgg",
    "ddDdd",
    "xgggx",
    "DdddD",
    "xxggxx",
    "DDddDD",
    "gxDdgDxgd",
    "dDgxdDgx",
    "DxDxDx",
    "gdDgdxgdDgdxgdDgdx",
    "dDdDdDdDdDdDdDdD",
    "ddddDddddDdddd",
};
enum { SCRIPTS = sizeof(scripts) / sizeof(scripts[0]) };

START_TEST(samples_and_errors_come_in_order_at_any_number_a_call)
{
    scripted_follow(scripts[_i]);
    for (int n = 1; n < 12; n++) {
        int64_t size = (int64_t)strlen(scripts[_i]);
        ck_assert_int_eq(scripted_read(0, n), size);
        ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]), LEAT_END);
        scripted_restart();
    }
}
END_TEST

/* A smaller call after a larger one, whose rest is still held. */
START_TEST(calls_of_changing_size_lose_no_sample)
{
    const int64_t size = (int64_t)strlen(scripts[_i]);
    for (int first = 2; first < 9; first++)
        for (int n = 1; n < 5; n++) {
            int got;
            scripted_follow(scripts[_i]);
            int status =
                leat_reader_next_batch(scripted, scripted_out, first, &got);
            int64_t record = got;
            for (int i = 0; i < got; i++)
                scripted_check_sample(scripted_out[i], i);
            ck_assert(!status ||
                      status == scripted_status_of(scripts[_i][record]));
            record += status == LEAT_EDATA;
            ck_assert_int_eq(scripted_read(record, n), size);
        }
}
END_TEST

START_TEST(pulled_samples_are_completed_by_materialize)
{
    const char *letters = scripts[_i];
    int n = (int)strlen(letters);
    scripted_follow(letters);
    for (int record = 0; record < n;) {
        int got = 0, done = 0;
        for (int i = 0; i < n; i++)
            leat_sample_clear(scripted_out[i]);
        int status = leat_reader_pull(scripted, scripted_out, n, &got);
        ck_assert(status == LEAT_OK || (status == LEAT_EDATA && got == 0));
        while (done < got) {
            int more;
            status = leat_reader_materialize(scripted, scripted_out + done,
                                             got - done, &more);
            for (int i = 0; i < more; i++)
                scripted_check_sample(scripted_out[done + i], record++);
            done += more;
            ck_assert_int_eq(status, done < got ? LEAT_EDATA : LEAT_OK);
            if (done < got) {
                ck_assert_int_eq(letters[record], 'D');
                scripted_check_line(record++);
                done++;
            }
        }
        if (got == 0) {
            ck_assert_int_eq(letters[record], 'x');
            scripted_check_line(record++);
        }
    }
    int got;
    ck_assert_int_eq(leat_reader_pull(scripted, scripted_out, 1, &got),
                     LEAT_END);
}
END_TEST

START_TEST(materialize_leaves_complete_samples_alone)
{
    int got;
    scripted_follow("gdgddg");
    ck_assert_int_eq(leat_reader_pull(scripted, scripted_out, 6, &got),
                     LEAT_OK);
    ck_assert_int_eq(got, 6);
    ck_assert_int_eq(leat_reader_materialize(scripted, scripted_out, 6, &got),
                     LEAT_OK);
    ck_assert_int_eq(got, 6);
    ck_assert_int_eq(script.materialized, 3);
    ck_assert_int_eq(leat_reader_materialize(scripted, scripted_out, 6, &got),
                     LEAT_OK);
    ck_assert_int_eq(script.materialized, 3);
    for (int i = 0; i < 6; i++)
        scripted_check_sample(scripted_out[i], i);
}
END_TEST

START_TEST(a_deferred_sample_needs_materialize)
{
    scripted_follow("gd");
    scripted_ops.materialize = NULL;
    ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "lacks \"materialize\""));
}
END_TEST

/* Readers that join samples append to what other readers gave. */
START_TEST(pull_appends_and_next_clears)
{
    int got;
    scripted_follow("gdgd");
    for (int i = 0; i < 2; i++)
        scripted_fill(scripted_out[i], 100);
    ck_assert_int_eq(leat_reader_pull(scripted, scripted_out, 2, &got),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_materialize(scripted, scripted_out, 2, &got),
                     LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(scripted_out[i]->nfields, 2);
        ck_assert_int_eq(*(const int32_t *)scripted_out[i]->field[0].data, 100);
        ck_assert_int_eq(*(const int32_t *)scripted_out[i]->field[1].data, i);
    }
    ck_assert_int_eq(leat_reader_next_batch(scripted, scripted_out, 2, &got),
                     LEAT_OK);
    scripted_check_sample(scripted_out[0], 2);
    scripted_check_sample(scripted_out[1], 3);
}
END_TEST

START_TEST(a_bad_record_after_good_ones_is_told_with_its_line_and_key)
{
    scripted_follow("ggxg");
    int got;
    ck_assert_int_eq(leat_reader_next_batch(scripted, scripted_out, 4, &got),
                     LEAT_OK);
    ck_assert_int_eq(got, 2);
    (void)leat_error(LEAT_EIO, "another line");
    scripted_out[0]->from.epoch = 3;
    scripted_out[0]->from.position = 8;
    ck_assert_int_eq(leat_reader_next_batch(scripted, scripted_out, 4, &got),
                     LEAT_EDATA);
    ck_assert_int_eq(got, 0);
    scripted_check_line(2);
    ck_assert_int_eq(scripted_out[0]->from.record, 2);
    ck_assert_str_eq(scripted_out[0]->from.source, "script");
    /* The layer's part of it stays. */
    ck_assert_int_eq(scripted_out[0]->from.epoch, 3);
    ck_assert_int_eq(scripted_out[0]->from.position, 8);
    ck_assert_int_eq(script.nexts, 1);
    ck_assert_int_eq(scripted_read(3, 4), 4);
}
END_TEST

static const char *long_key;
static size_t long_key_size;

/* Two good samples, and a bad one whose key lies in a buffer of its own. */
static int keyed_next(leat_reader *reader, leat_sample *const into[], int n,
                      int *got)
{
    char *key;
    (void)reader;
    ck_assert_int_ge(n, 3);
    scripted_fill(into[0], 0);
    scripted_fill(into[1], 1);
    *got = 2;
    ck_assert_ptr_nonnull(key = leat_sample_take(into[2], long_key_size));
    memcpy(key, long_key, long_key_size);
    into[2]->from =
        (leat_provenance){.record = 2, .key = key, .key_size = long_key_size};
    return leat_error(LEAT_EDATA, "bad");
}

/* The buffer of the sample in which it was read is refilled meanwhile. */
START_TEST(the_key_of_a_kept_record_is_a_copy_of_64_bytes)
{
    static const char all[100] = "0123456789";
    static const size_t sizes[] = {1, 63, 64, 65, 100};
    int got;
    long_key = all;
    scripted_follow("");
    scripted_ops.next = keyed_next;
    for (int i = 0; i < 5; i++) {
        long_key_size = sizes[i];
        ck_assert_int_eq(
            leat_reader_next_batch(scripted, scripted_out, 5, &got), LEAT_OK);
        memset(scripted_out[2]->buffer, 'x', scripted_out[2]->buffer_size);
        ck_assert_int_eq(leat_reader_next(scripted, scripted_out[3]),
                         LEAT_EDATA);
        size_t kept = sizes[i] < 64 ? sizes[i] : 64;
        /* Its source is unknown; the record is not. */
        ck_assert_int_eq(scripted_out[3]->from.record, 2);
        ck_assert_uint_eq(scripted_out[3]->from.key_size, kept);
        ck_assert_mem_eq(scripted_out[3]->from.key, all, kept);
        ck_assert_uint_eq(scripted_out[3]->from.key_cut, sizes[i] - kept);
    }
}
END_TEST

START_TEST(the_end_and_errors_are_repeated_until_seek)
{
    static const char *const ends[] = {"", "gg", "!g", "gg!g"};
    for (int i = 0; i < 4; i++)
        for (int n = 1; n < 4; n++) {
            int got;
            scripted_follow(ends[i]);
            int64_t record = scripted_read(0, n);
            int status = scripted_status_of(ends[i][record]);
            int nexts = script.nexts;
            for (int k = 0; k < 3; k++) {
                int64_t skipped = -1;
                (void)leat_error(LEAT_EINVAL, "another line");
                ck_assert_int_eq(
                    leat_reader_next_batch(scripted, scripted_out, n, &got),
                    status);
                ck_assert_int_eq(got, 0);
                if (status != LEAT_END)
                    scripted_check_line(record);
                ck_assert_int_eq(
                    leat_reader_pull(scripted, scripted_out, n, &got), status);
                ck_assert_int_eq(leat_reader_skip(scripted, 2, &skipped),
                                 status);
                ck_assert_int_eq(skipped, 0);
            }
            ck_assert_int_eq(script.nexts, nexts);
            scripted_restart();
            ck_assert_int_eq(scripted_read(0, n), record);
            ck_assert_int_eq(leat_reader_restore(scripted, NULL), LEAT_OK);
            script.at = 0; /* the stub's restore does nothing */
            ck_assert_int_eq(scripted_read(0, n), record);
        }
}
END_TEST

START_TEST(an_error_of_materialize_is_repeated_until_seek)
{
    for (int n = 1; n < 6; n++) {
        scripted_follow("dg?dgd");
        ck_assert_int_eq(scripted_read(0, n), 2);
        for (int k = 0; k < 2; k++) {
            int got;
            (void)leat_error(LEAT_EINVAL, "another line");
            ck_assert_int_eq(
                leat_reader_next_batch(scripted, scripted_out, n, &got),
                LEAT_EIO);
            ck_assert_int_eq(got, 0);
            scripted_check_line(2);
        }
        ck_assert_int_eq(scripted_go_to(0, 3), LEAT_OK);
        ck_assert_int_eq(scripted_read(3, n), 6);
    }
}
END_TEST

START_TEST(seek_drops_what_was_kept_and_held)
{
    static const char *const kept[] = {"gggxgg", "dddDdd", "ggg!gg"};
    for (int i = 0; i < 3; i++) {
        int got;
        scripted_follow(kept[i]);
        int status = leat_reader_next_batch(scripted, scripted_out, 6, &got);
        ck_assert_int_eq(got, 3);
        ck_assert_int_eq(status, i == 1 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(scripted_go_to(0, 1), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]), LEAT_OK);
        scripted_check_sample(scripted_out[0], 1);
        /* A failed seek changes nothing. */
        ck_assert_int_eq(scripted_go_to(0, 0), LEAT_OK);
        (void)leat_reader_next_batch(scripted, scripted_out, 6, &got);
        ck_assert_int_eq(scripted_go_to(0, -1), LEAT_EINVAL);
        ck_assert_int_eq(scripted_go_to(-1, 0), LEAT_EINVAL);
        script.in_order = 1;
        ck_assert_int_eq(scripted_go_to(0, 2), LEAT_EUNSUPPORTED);
        if (i != 1)
            ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]),
                             scripted_status_of(kept[i][3]));
        if (i != 2)
            ck_assert_int_eq(scripted_read(4, 6), 6);
    }
}
END_TEST

/* One by one, so that each place of what is kept or held is passed. */
START_TEST(skip_passes_good_and_bad_records_alike)
{
    const char *letters = scripts[_i];
    int64_t size = (int64_t)strlen(letters);
    for (int with = 0; with < 2; with++)
        for (int first = 0; first < 6; first++)
            for (int64_t n = 0; n < size + 2; n++) {
                int got = 0, status = LEAT_OK;
                int64_t skipped = -1;
                scripted_follow(letters);
                scripted_ops.skip = with ? scripted_skip : NULL;
                if (first > 0)
                    status = leat_reader_next_batch(scripted, scripted_out,
                                                    first, &got);
                int64_t at = got + (status == LEAT_EDATA);
                status = leat_reader_skip(scripted, n, &skipped);
                int64_t left = size - at;
                ck_assert_int_eq(status, n > left ? LEAT_END : LEAT_OK);
                ck_assert_int_eq(skipped, n > left ? left : n);
                ck_assert_int_eq(scripted_read(at + skipped, 3), size);
            }
}
END_TEST

START_TEST(skip_calls_the_table_where_it_can)
{
    int64_t skipped;
    scripted_follow("ggggdddd");
    scripted_ops.skip = scripted_skip;
    ck_assert_int_eq(leat_reader_skip(scripted, 6, &skipped), LEAT_OK);
    ck_assert_int_eq(script.skips, 1);
    ck_assert_int_eq(script.nexts + script.materialized, 0);
    scripted_ops.skip = NULL;
    ck_assert_int_eq(leat_reader_skip(scripted, 1, &skipped), LEAT_OK);
    ck_assert_int_eq(skipped, 1);
    ck_assert_int_gt(script.nexts, 0);
    /* What is dropped is not completed. */
    ck_assert_int_eq(script.materialized, 0);
    ck_assert_int_eq(scripted_read(7, 2), 8);
}
END_TEST

START_TEST(an_error_on_the_way_ends_skip_and_stays)
{
    for (int with = 0; with < 2; with++) {
        int64_t skipped;
        scripted_follow("gxg!gg");
        scripted_ops.skip = with ? scripted_skip : NULL;
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(leat_reader_skip(scripted, 5, &skipped), LEAT_EIO);
            ck_assert_int_eq(skipped, k == 0 ? 3 : 0);
            scripted_check_line(3);
        }
        ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]), LEAT_EIO);
        ck_assert_int_eq(scripted_go_to(0, 4), LEAT_OK);
        ck_assert_int_eq(scripted_read(4, 1), 6);
    }
}
END_TEST

/* With the contract of next it stepped over that one, too. */
static int skip_to_bad(leat_reader *reader, int64_t n, int64_t *skipped)
{
    (void)reader;
    for (*skipped = 0; *skipped < n; ++*skipped) {
        char letter = script.letters[script.at];
        if (letter == '\0')
            return LEAT_END;
        if (script.letters[script.at++] == 'x')
            return leat_error(LEAT_EDATA, "a bad record");
    }
    return LEAT_OK;
}

START_TEST(a_skip_that_reports_bad_records_goes_on_after_them)
{
    static const char letters[] = "ggxxgxg";
    for (int64_t n = 1; n < 9; n++) {
        int64_t skipped;
        scripted_follow(letters);
        scripted_ops.skip = skip_to_bad;
        ck_assert_int_eq(leat_reader_skip(scripted, n, &skipped),
                         n > 7 ? LEAT_END : LEAT_OK);
        ck_assert_int_eq(skipped, n > 7 ? 7 : n);
        ck_assert_int_eq(scripted_read(skipped, 2), 7);
    }
}
END_TEST

/* Samples that cannot be held are lost: reading on would leave them
 * scripted_out. */
START_TEST(no_memory_to_hold_samples_is_an_error_that_stays)
{
    int got;
    scripted_follow("dDdd");
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_nonnull(leat_sample_take(scripted_out[i], 64));
    leat__alloc_fail_at(0);
    int status = leat_reader_next_batch(scripted, scripted_out, 4, &got);
    leat__alloc_fail_at(-1);
    ck_assert_int_eq(status, LEAT_ENOMEM);
    ck_assert_int_eq(leat_reader_next_batch(scripted, scripted_out, 4, &got),
                     LEAT_ENOMEM);
    /* Once every buffer that is swapped around has grown there is room. */
    for (int i = 0; i < 8; i++) {
        scripted_restart();
        ck_assert_int_eq(scripted_read(0, 4), 4);
    }
    int64_t before = leat__alloc_count();
    scripted_restart();
    ck_assert_int_eq(scripted_read(0, 4), 4);
    ck_assert_int_eq(leat__alloc_count(), before);
}
END_TEST

/* Halves what is whole. Of record 9 it is bad, but half done by then. */
static int halve(void *calls, leat_sample *sample)
{
    static const int64_t half = 4;
    bool is_whole = sample->field[0].shape[0] == 8;
    ++*(int *)calls;
    ck_assert_int_eq(
        leat_sample_set(sample, 0, LEAT_FLOAT32, 1, &half, sample->field->data),
        LEAT_OK);
    return is_whole && sample->from.record == 9
               ? leat_error(LEAT_EDATA, "half done")
               : LEAT_OK;
}

static int refuse_map(void *user, leat_sample *sample)
{
    (void)user;
    return sample->from.record % 9 == 3 ? leat_error(LEAT_EDATA, "refused")
                                        : LEAT_OK;
}

static int refuse_filter(void *user, const leat_sample *sample, int *keep)
{
    (void)user;
    *keep = 1;
    return sample->from.record % 9 == 3 ? leat_error(LEAT_EDATA, "refused")
                                        : LEAT_OK;
}

/* Half done, where the reader above it fails at an earlier sample. */
START_TEST(a_sample_that_failed_is_not_tried_again)
{
    static const float value[20][8];
    const leat_memory_field field = {"x", LEAT_FLOAT32, 1, {8}, value};
    leat_map_options options = LEAT_MAP_OPTIONS_INIT;
    leat_field_spec given = {
        .name = "x", .dtype = LEAT_FLOAT32, .ndim = 1, .shape = {4}};
    leat_pipeline *base, *halved, *refused;
    leat_reader *reader = NULL;
    int calls = 0, at = 0, bad = 0, status = LEAT_OK;
    options.fields = &given;
    options.nfields = 1;
    ck_assert_int_eq(leat_pipeline_memory(&base, &field, 1, 20), LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_map(&halved, base, halve, &calls, 1, &options), LEAT_OK);
    status =
        _i ? leat_pipeline_filter(&refused, halved, refuse_filter, NULL, 2,
                                  NULL)
           : leat_pipeline_map(&refused, halved, refuse_map, NULL, 2, NULL);
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(refused, &reader), LEAT_OK);
    while (status != LEAT_END) {
        int got;
        status = leat_reader_next_batch(reader, scripted_out, 16, &got);
        ck_assert(status != LEAT_ENOMEM);
        for (int i = 0; i < got; i++, at++)
            ck_assert_int_eq(scripted_out[i]->from.record, at);
        if (status != LEAT_EDATA)
            continue;
        ck_assert_int_eq(scripted_out[got]->from.record, at);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), at % 9 == 3 ? "refused" : "half done"));
        at++;
        bad++;
    }
    ck_assert_int_eq(at, 20);
    ck_assert_int_eq(bad, 3); /* 3, 9 and 12 */
    ck_assert_int_eq(calls, 20);
    leat_reader_close(reader);
    leat_pipeline_unref(refused);
    leat_pipeline_unref(halved);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deferred");
    TCase *tcase = tcase_create("deferred");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, scripted_set_up, scripted_tear_down);
    tcase_add_loop_test(tcase,
                        samples_and_errors_come_in_order_at_any_number_a_call,
                        0, SCRIPTS);
    tcase_add_loop_test(tcase, calls_of_changing_size_lose_no_sample, 0,
                        SCRIPTS);
    tcase_add_loop_test(tcase, pulled_samples_are_completed_by_materialize, 0,
                        SCRIPTS);
    tcase_add_loop_test(tcase, skip_passes_good_and_bad_records_alike, 0,
                        SCRIPTS);
    tcase_add_test(tcase, materialize_leaves_complete_samples_alone);
    tcase_add_test(tcase, a_deferred_sample_needs_materialize);
    tcase_add_test(tcase, pull_appends_and_next_clears);
    tcase_add_test(tcase,
                   a_bad_record_after_good_ones_is_told_with_its_line_and_key);
    tcase_add_test(tcase, the_key_of_a_kept_record_is_a_copy_of_64_bytes);
    tcase_add_test(tcase, the_end_and_errors_are_repeated_until_seek);
    tcase_add_test(tcase, an_error_of_materialize_is_repeated_until_seek);
    tcase_add_test(tcase, seek_drops_what_was_kept_and_held);
    tcase_add_test(tcase, skip_calls_the_table_where_it_can);
    tcase_add_test(tcase, an_error_on_the_way_ends_skip_and_stays);
    tcase_add_test(tcase, a_skip_that_reports_bad_records_goes_on_after_them);
    tcase_add_test(tcase, no_memory_to_hold_samples_is_an_error_that_stays);
    tcase_add_loop_test(tcase, a_sample_that_failed_is_not_tried_again, 0, 2);
    return suite_run(suite);
}
