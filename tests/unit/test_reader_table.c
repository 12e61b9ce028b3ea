/* Tables that lack what leat calls are refused by name, and never called. */
#include "support/empty_reader.h"
#include "support/suite.h"

#include <leat/reader.h>

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static leat_reader_ops ops;
static leat_reader_type type;
static leat_reader opened;
static int closed;
static int open_fails; /* with that status, and no line */

static void note_close(leat_reader *reader)
{
    ck_assert_ptr_eq(reader, &opened);
    closed++;
}

static int open_it(const leat_open *open, leat_reader **out)
{
    (void)open;
    opened.ops = &ops;
    *out = &opened;
    return open_fails;
}

static int read_nothing(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    (void)at;
    return empty_reader_next(reader, out, n, got);
}

static int keep(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return LEAT_OK;
}

static void set_up(void)
{
    closed = 0;
    open_fails = LEAT_OK;
    ops = (leat_reader_ops){EMPTY_READER_OPS, .name = "mine",
                            .close = note_close};
    type = (leat_reader_type){
        .size = sizeof(type), .name = "mine", .open = open_it};
}

static int open_once(void)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status)
        ck_assert_ptr_null(reader);
    leat_reader_close(reader);
    return status;
}

static void refused(const char *line)
{
    ck_assert_int_eq(open_once(), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), line);
    set_up();
}

START_TEST(what_is_obligatory_is_enough)
{
    ck_assert_int_eq(open_once(), LEAT_OK);
    ck_assert_int_eq(closed, 1);
    ops.size = offsetof(leat_reader_ops, count);
    ck_assert_int_eq(open_once(), LEAT_OK);
    /* A header to come may have more. */
    ops.size = sizeof(ops) + 64;
    ck_assert_int_eq(open_once(), LEAT_OK);
}
END_TEST

START_TEST(each_obligatory_operation_is_missed_by_name)
{
    ops.name = NULL;
    refused("the reader \"mine\" lacks \"name\"");
    ops.fields = NULL;
    refused("the reader \"mine\" lacks \"fields\"");
    ops.next = NULL;
    refused("the reader \"mine\" lacks \"next\"");
    ops.seek = NULL;
    refused("the reader \"mine\" lacks \"seek\"");
    ops.cancel = NULL;
    refused("the reader \"mine\" lacks \"cancel\"");
    ops.close = NULL;
    refused("the reader \"mine\" lacks \"close\"");
}
END_TEST

static int no_parts(leat_reader *reader, const int64_t **first, int64_t *n)
{
    (void)reader;
    (void)first;
    *n = 0;
    return LEAT_OK;
}

START_TEST(operations_that_need_each_other_come_together)
{
    ops.read_at = read_nothing;
    refused("the reader \"mine\" has \"read_at\", but lacks \"count\"");
    ops.parts = no_parts;
    refused("the reader \"mine\" has \"parts\", but lacks \"read_at\"");
    ops.revision = keep;
    refused("the reader \"mine\" has \"revision\", but lacks \"save\"");
    ops.save = keep;
    refused("the reader \"mine\" has \"save\", but lacks \"restore\"");
    ops.restore = keep;
    refused("the reader \"mine\" has \"restore\", but lacks \"save\"");
    /* Behind the table's end there is none. */
    ops.restore = keep;
    ops.size = offsetof(leat_reader_ops, restore);
    ck_assert_int_eq(open_once(), LEAT_OK);
}
END_TEST

static int count_none(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = 0;
    return LEAT_OK;
}

START_TEST(a_reader_by_index_has_no_marks)
{
    ops.read_at = read_nothing;
    ops.count = count_none;
    ck_assert_int_eq(open_once(), LEAT_OK);
    ops.mark = keep;
    refused("the reader \"mine\" has both \"read_at\" and \"mark\": expected "
            "one of them");
    ops.mark = keep;
    ck_assert_int_eq(open_once(), LEAT_OK);
}
END_TEST

START_TEST(a_refused_reader_is_closed_where_it_can_be)
{
    ops.next = NULL;
    ck_assert_int_eq(open_once(), LEAT_EINVAL);
    ck_assert_int_eq(closed, 1);
    /* The oldest table has it, too. */
    ops.size = offsetof(leat_reader_ops, count);
    ck_assert_int_eq(open_once(), LEAT_EINVAL);
    ck_assert_int_eq(closed, 2);
    ops.close = NULL;
    ck_assert_int_eq(open_once(), LEAT_EINVAL);
    ck_assert_int_eq(closed, 2);
}
END_TEST

START_TEST(a_table_without_its_size_is_refused)
{
    ops.size = 0;
    ck_assert_int_eq(open_once(), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"size\""));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"size\" 0"));
    ck_assert_int_eq(closed, 0);
}
END_TEST

START_TEST(a_reader_that_does_not_open_is_named)
{
    (void)leat_error(LEAT_EDATA, "an older line");
    open_fails = LEAT_EIO;
    ck_assert_int_eq(open_once(), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(),
                     "the reader \"mine\" does not open: the operating system "
                     "reported an error");
    static const int odd[] = {LEAT_END, -77};
    for (int i = 0; i < 2; i++) {
        open_fails = odd[i];
        ck_assert_int_eq(open_once(), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "open returned"));
    }
    ck_assert_int_eq(closed, 0);
}
END_TEST

static int released;

static void release(void *object)
{
    ck_assert_ptr_eq(object, &released);
    released++;
}

static void type_refused(const char *part)
{
    leat_pipeline *pipeline = NULL;
    released = 0;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &type, NULL, &released,
                                          release, NULL, 0),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), part), "%s", leat_last_error());
    ck_assert_ptr_null(pipeline);
    ck_assert_int_eq(released, 1);
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), part), "%s", leat_last_error());
    set_up();
}

START_TEST(a_type_is_looked_at_registered_or_not)
{
    type.size = 0;
    type_refused("\"size\"");
    type.name = NULL;
    type_refused("lacks \"name\"");
    type.open = NULL;
    type_refused("\"mine\" lacks \"open\"");
    ck_assert_int_eq(leat_reader_register(NULL), LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader_table");
    TCase *tcase = tcase_create("reader_table");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, what_is_obligatory_is_enough);
    tcase_add_test(tcase, each_obligatory_operation_is_missed_by_name);
    tcase_add_test(tcase, operations_that_need_each_other_come_together);
    tcase_add_test(tcase, a_reader_by_index_has_no_marks);
    tcase_add_test(tcase, a_refused_reader_is_closed_where_it_can_be);
    tcase_add_test(tcase, a_table_without_its_size_is_refused);
    tcase_add_test(tcase, a_reader_that_does_not_open_is_named);
    tcase_add_test(tcase, a_type_is_looked_at_registered_or_not);
    return suite_run(suite);
}
