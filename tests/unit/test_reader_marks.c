/* Marks of readers with and without one of their own. */
#include "pipeline/reader_form.h"
#include "support/scripted_reader.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

/* A mark at each record, found again in the same reader. */
static void check_marks(void)
{
    int64_t size = (int64_t)strlen(script.letters);
    for (int64_t to = 0; to <= size; to++)
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            leat_token token;
            int64_t skipped;
            leat_token_init(&token);
            ck_assert_int_eq(leat_token_put(&token, "before", 6), LEAT_OK);
            ck_assert_int_eq(scripted_go_to(epoch, 0), LEAT_OK);
            ck_assert_int_eq(leat_reader_skip(scripted, to, &skipped), LEAT_OK);
            ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_OK);
            ck_assert_int_eq(scripted_read(to, 3), size);
            token.cursor = 6;
            ck_assert_int_eq(
                leat_reader_seek(scripted, (leat_position){epoch, to}, &token),
                LEAT_OK);
            ck_assert_uint_eq(token.cursor, token.size);
            ck_assert_int_eq(script.sought.epoch, epoch);
            ck_assert_int_eq(scripted_read(to, 2), size);
            leat_token_finish(&token);
        }
}

START_TEST(a_mark_leads_back_with_mark_or_without)
{
    scripted_follow("gdxgDgxd");
    ck_assert_int_eq(leat_reader_has_mark(scripted), 0);
    check_marks(); /* by its position */
    script.in_order = 1;
    check_marks(); /* by its epoch, and reading */
    scripted_ops.skip = scripted_skip;
    check_marks(); /* or skipping */
    scripted_ops.mark = scripted_mark;
    ck_assert_int_eq(leat_reader_has_mark(scripted), 1);
    check_marks(); /* by the table */
}
END_TEST

/* What a call gave no more is not after the mark. */
START_TEST(a_mark_is_before_what_is_kept_or_held)
{
    static const char *const letters[] = {"ggxgg", "ddDdd", "dDdDd", "gg"};
    for (int i = 0; i < 4; i++) {
        int64_t size = (int64_t)strlen(letters[i]);
        for (int n = 2; n < 6; n++) {
            leat_token token;
            int got;
            leat_token_init(&token);
            scripted_follow(letters[i]);
            int status =
                leat_reader_next_batch(scripted, scripted_out, n, &got);
            int64_t record = got + (status == LEAT_EDATA);
            ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_OK);
            ck_assert_int_eq(
                leat_reader_seek(scripted, (leat_position){0, 0}, &token),
                LEAT_OK);
            ck_assert_int_eq(scripted_read(record, 2), size);
            leat_token_finish(&token);
        }
    }
}
END_TEST

/* The reader itself has passed them, and its mark with it. */
START_TEST(a_table_s_mark_waits_for_what_is_kept_or_held)
{
    static const char *const letters[] = {"ggxgg", "ddDdd"};
    for (int i = 0; i < 2; i++) {
        leat_token token;
        int got;
        leat_token_init(&token);
        scripted_follow(letters[i]);
        scripted_ops.mark = scripted_mark;
        (void)leat_reader_next_batch(scripted, scripted_out, 5, &got);
        ck_assert_int_eq(got, 2);
        ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_ESTATE);
        ck_assert_uint_eq(token.size, 0);
        ck_assert_int_eq(scripted_read(2 + i, 2), 5);
        ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_OK);
        leat_token_finish(&token);
    }
}
END_TEST

/* Samples that were not given may have been lost. */
START_TEST(a_reader_that_failed_gives_no_mark)
{
    static const char *const letters[] = {"gg!gg", "dd?dd", "gg!gg"};
    const leat_position first = {0, 0};
    leat_token token;
    leat_token_init(&token);
    for (int i = 0; i < 6; i++) {
        int got;
        int64_t skipped;
        scripted_follow(letters[i / 2]);
        scripted_ops.mark = i % 2 ? scripted_mark : NULL;
        scripted_ops.skip = i < 4 ? NULL : scripted_skip;
        if (i < 4)
            (void)leat_reader_next_batch(scripted, scripted_out, 5, &got);
        else
            (void)leat_reader_skip(scripted, 5, &skipped);
        for (int way = 0; way < 2; way++) {
            ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_EIO);
            ck_assert_str_eq(leat_last_error(), "record 2 fails");
            ck_assert_uint_eq(token.size, 0);
            ck_assert_int_eq(leat_reader_next(scripted, scripted_out[0]),
                             LEAT_EIO);
        }
        scripted_restart();
        ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_OK);
        token.size = 0;
    }
    /* The form alone is a mark cut short. */
    ck_assert_int_eq(leat__reader_put_form(scripted, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(scripted, first, &token), LEAT_EINVAL);
    token.size = 0;
    ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_EINVAL);
    leat_token_finish(&token);
}
END_TEST

static int put_and_fail(leat_reader *reader, leat_token *token)
{
    (void)reader;
    leat_token_put(token, "half", 4);
    return leat_error(LEAT_ESTATE, "no mark here");
}

START_TEST(a_mark_that_fails_leaves_the_token_as_it_was)
{
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_token_put(&token, "before", 6), LEAT_OK);
    scripted_follow("ggg");
    scripted_ops.mark = put_and_fail;
    ck_assert_int_eq(leat_reader_mark(scripted, &token), LEAT_ESTATE);
    ck_assert_uint_eq(token.size, 6);
    leat_token_finish(&token);
}
END_TEST

START_TEST(a_mark_cut_or_out_of_range_is_refused)
{
    const leat_position wrong[] = {{-1, 0}, {0, -1}, {INT64_MIN, INT64_MIN}};
    leat_token token;
    scripted_follow("ggg");
    for (int with = 0; with < 2; with++) {
        scripted_ops.mark = with ? scripted_mark : NULL;
        leat_token_init(&token);
        ck_assert_int_eq(leat_token_put(&token, "1234567", 7), LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(scripted, (leat_position){0, 0}, &token),
            LEAT_EINVAL);
        leat_token_finish(&token);
    }
    scripted_ops.mark = NULL;
    for (int i = 0; i < 3; i++) {
        leat_token_init(&token);
        ck_assert_int_eq(leat_token_put(&token, &wrong[i], sizeof(wrong[i])),
                         LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(scripted, (leat_position){0, 0}, &token),
            LEAT_EINVAL);
        leat_token_finish(&token);
    }
    ck_assert_int_eq(leat_reader_seek(scripted, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(scripted_read(0, 2), 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("marks");
    TCase *tcase = tcase_create("marks");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, scripted_set_up, scripted_tear_down);
    tcase_add_test(tcase, a_mark_leads_back_with_mark_or_without);
    tcase_add_test(tcase, a_mark_is_before_what_is_kept_or_held);
    tcase_add_test(tcase, a_table_s_mark_waits_for_what_is_kept_or_held);
    tcase_add_test(tcase, a_reader_that_failed_gives_no_mark);
    tcase_add_test(tcase, a_mark_that_fails_leaves_the_token_as_it_was);
    tcase_add_test(tcase, a_mark_cut_or_out_of_range_is_refused);
    return suite_run(suite);
}
