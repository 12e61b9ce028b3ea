/* zip: the fields of several readers, side by side, in lockstep. */
#include "lmdb_fixture.h"
#include "support/empty_reader.h"
#include "support/layer_fixture.h"
#include "support/sanitizer.h"
#include "support/sequence_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const forms[] = {"index", "stream", "deferred"};
enum { FORMS = 3 };

/* `format` for each pair of forms of two inputs; it has two %s. The thread
 * sanitizer sees those of one form. */
static void in_all_forms(const char *format, void (*check)(const char *))
{
    char text[400];
    for (int a = 0; a < FORMS; a++)
        for (int b = 0; b < FORMS; b++) {
            if (IS_THREAD_SANITIZED && a != b)
                continue;
            snprintf(text, sizeof(text), format, forms[a], forms[b]);
            check(text);
        }
}

/* Rows of two counts of 100, from 0 and from 500; every tenth from 3 is bad. */
static void check_rows(const char *text)
{
    sequence *all = malloc(sizeof(*all));
    sequence_of(all, text, 2);
    ck_assert_int_eq(all->n, 100);
    ck_assert_int_eq(all->status, LEAT_END);
    for (int i = 0; i < all->n; i++) {
        const sequence_item *item = &all->item[i];
        ck_assert_int_eq(item->number[0], i % 10 == 3 ? -1 : i);
        if (item->number[0] < 0)
            continue;
        ck_assert_int_eq(item->number[1], 500 + i);
        ck_assert_int_eq(item->nfields, 2);
        ck_assert_int_eq(item->epoch, 2);
    }
    free(all);
    sequence_holds(text);
    sequence_settles(text);
}

START_TEST(failing_allocations_lose_nothing)
{
    in_all_forms("(counted:20,field=a,form=%s,bad=3) (counted:20,field=b,"
                 "form=%s,size=9) | zip",
                 sequence_survives);
    sequence_survives("(counted:40,field=a,form=stream,bad=3) (counted:40,"
                      "field=b,size=300,bad=7) | zip");
}
END_TEST

START_TEST(rows_have_the_fields_of_all_inputs_in_lockstep)
{
    in_all_forms("(counted:100,field=a,form=%s,bad=3) "
                 "(counted:100,field=b,first=500,form=%s,size=9) | zip",
                 check_rows);
    in_all_forms("(counted:100,field=a,form=%s) (counted:100,field=b,"
                 "first=500,form=%s,bad=3) | zip",
                 check_rows);
    /* So large that the second input appends its samples itself. */
    in_all_forms("(counted:100,field=a,form=%s,key=5,size=70) (counted:100,"
                 "field=b,key=5,first=500,form=%s,bad=3,size=300) | "
                 "zip:align=key",
                 check_rows);
    in_all_forms("(counted:100,field=a,form=%s,bad=3) (counted:100,field=b,"
                 "first=500,form=%s,size=300) | zip",
                 check_rows);
    in_all_forms("(counted:100,field=a,form=%s,bad=3) (counted:100,field=b,"
                 "first=500,form=%s,bad=3,key=7) | zip:align=0",
                 check_rows);
}
END_TEST

START_TEST(three_inputs_and_a_zip_in_a_zip)
{
    const char *text = "((counted:50,field=a,form=stream,bad=1) (counted:50,"
                       "field=b,bad=4,size=30) | zip) (counted:50,field=c,"
                       "form=deferred,bad=9) (counted:50,field=d) | zip";
    sequence *all = malloc(sizeof(*all));
    sequence_of(all, text, 0);
    ck_assert_int_eq(all->n, 50);
    for (int i = 0; i < 50; i++) {
        int bad = i % 10 == 1 || i % 10 == 4 || i % 10 == 9;
        for (int k = 0; k < 4; k++)
            ck_assert_int_eq(all->item[i].number[k], bad ? -(k == 0) : i);
    }
    free(all);
    sequence_holds(text);
    sequence_survives(text);
}
END_TEST

/* The error of a reader after some samples. */
static void check_error(const char *text, int after, int status,
                        const char *part)
{
    sequence *all = malloc(sizeof(*all));
    for (int n = 1; n < 40; n += 6) {
        leat_reader *reader = counted_source_reader(text);
        sequence_read(all, reader, n, SEQUENCE_MOST);
        ck_assert_msg(all->n == after && all->status == status,
                      "%s: %d samples, status %d (%s)", text, all->n,
                      all->status, leat_last_error());
        ck_assert_msg(strstr(leat_last_error(), part) != NULL, "%s: %s", text,
                      leat_last_error());
        leat_reader_close(reader);
    }
    free(all);
}

/* Then leat reads from there. */
START_TEST(a_seek_that_one_input_refuses_moves_none)
{
    leat_sample sample;
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "(range:40) (range:40 | "
                                                    "where:value=0..100) | "
                                                    "zip:prefix=(a_,b_)"),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_sample_init(&sample);
    for (int i = 0; i < 4; i++) {
        int64_t number[2];
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 8}, NULL),
                         LEAT_EUNSUPPORTED);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        memcpy(&number[0], sample.field[0].data, sizeof(number[0]));
        memcpy(&number[1], sample.field[1].data, sizeof(number[1]));
        ck_assert_int_eq(number[0], i);
        ck_assert_int_eq(number[1], i);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Only then is it known of the second one that it has no such sample. */
START_TEST(a_seek_that_the_second_input_refuses_is_sticky)
{
    leat_sample sample;
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    int64_t number[2];
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "(range:20 | shuffle:1) "
                                                    "(range:6 | shuffle:1) | "
                                                    "zip:prefix=(a_,b_),"
                                                    "align=0"),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 12}, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 3}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    memcpy(&number[0], sample.field[0].data, sizeof(number[0]));
    memcpy(&number[1], sample.field[1].data, sizeof(number[1]));
    ck_assert_int_eq(number[0], 3);
    ck_assert_int_eq(number[1], 3);
    /* The first one refuses this: none has moved. */
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 25}, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    memcpy(&number[0], sample.field[0].data, sizeof(number[0]));
    ck_assert_int_eq(number[0], 4);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(unequal_lengths_are_an_error_after_the_last_row)
{
    /* paddle: compose(chain(r10, r10), r10) raises after exactly 10. */
    check_error("(counted:20,field=a) (counted:10,field=b,form=stream) | zip",
                10, LEAT_EFORMAT,
                "zip: input 2 (counted:10,field=b,form=stream) ends after 10 "
                "samples, but input 1 (counted:20,field=a) has more");
    check_error("(counted:10,field=a,form=stream) (counted:20,field=b) | zip",
                10, LEAT_EFORMAT, "zip: input 1 (counted:10,");
    check_error("(counted:12,field=a,form=stream) (counted:12,field=b) "
                "(counted:11,field=c,form=deferred) | zip",
                11, LEAT_EFORMAT, "zip: input 3 (counted:11,");
    check_error("(counted:12,field=a,form=stream) (counted:12,field=b) "
                "(counted:13,field=c,form=deferred) | zip",
                12, LEAT_EFORMAT, "zip: input 1 (counted:12,");
    check_error("(counted:60,field=a,form=stream,bad=9) (counted:51,field=b,"
                "bad=8,size=300) | zip",
                51, LEAT_EFORMAT, "zip: input 2 (counted:51,");
    check_error("(counted:50,field=a,form=stream,bad=9) (counted:51,field=b,"
                "bad=8,size=300) | zip",
                50, LEAT_EFORMAT, "zip: input 1 (counted:50,");
    check_error("(counted:40,field=a,form=stream,bad=9) (counted:31,field=b,"
                "bad=8) | zip",
                31, LEAT_EFORMAT, "zip: input 2 (counted:31,");
}
END_TEST

/* After `rows` rows of up to `n` and a mark there, both the reader and one that
 * goes on from the mark return `status`. One that met an error has no mark. */
static void check_mark_at(const char *text, int rows, int n, int status)
{
    leat_reader *reader = counted_source_reader(text);
    leat_reader *other = counted_source_reader(text);
    leat_sample sample[16], *out[16];
    leat_token mark;
    int got, marked = n > rows && status != LEAT_END ? status : LEAT_OK;
    leat_token_init(&mark);
    for (int i = 0; i < 16; i++)
        leat_sample_init(out[i] = &sample[i]);
    ck_assert_int_eq(leat_reader_next_batch(reader, out, n, &got), LEAT_OK);
    ck_assert_int_eq(got, rows);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), marked);
    if (!marked) {
        const leat_position at = {0, rows};
        ck_assert_int_eq(leat_reader_seek(other, at, &mark), LEAT_OK);
        ck_assert_int_eq(leat_reader_next_batch(other, out, 1, &got), status);
    }
    ck_assert_int_eq(leat_reader_next_batch(reader, out, 1, &got), status);
    for (int i = 0; i < 16; i++)
        leat_sample_finish(out[i]);
    leat_token_finish(&mark);
    leat_reader_close(reader);
    leat_reader_close(other);
}

static void check_mark_at_end(const char *text, int rows, int status)
{
    check_mark_at(text, rows, rows, status);
    check_mark_at(text, rows, 16, status);
}

/* The inputs are past the row that only one of them has. */
START_TEST(a_mark_before_the_error_leads_to_it)
{
    check_mark_at_end("(counted:9,field=a,form=stream) "
                      "(counted:7,field=b,form=stream) | zip",
                      7, LEAT_EFORMAT);
}
END_TEST

/* The first input is past it, and fails in the next rows: they are no rows of
 * the zip's. Over a shard, zip is told to skip to its end. */
START_TEST(a_mark_before_the_end_leads_to_it)
{
    check_mark_at_end("(counted:9,field=a,form=stream,fails=5) "
                      "(counted:3,field=b,form=stream) | zip:align=0",
                      3, LEAT_END);
    check_mark_at_end("(counted:9,field=a,form=stream,fails=4) "
                      "(counted:3,field=b,form=stream) | zip:align=0 | "
                      "shard:2,0",
                      2, LEAT_END);
    check_mark_at_end("(counted:9,field=a,form=stream,fails=4) "
                      "(counted:3,field=b,form=stream) | zip:align=0 | "
                      "shard:2,1",
                      1, LEAT_END);
}
END_TEST

/* The first input is at its end, after what ends the other. */
START_TEST(a_mark_before_an_error_that_a_skip_met_leads_to_it)
{
    check_mark_at_end("(counted:5,field=a,form=stream) "
                      "(counted:9,field=b,form=stream,fails=4) | zip:align=0 | "
                      "shard:6,0",
                      1, LEAT_EIO);
}
END_TEST

START_TEST(unequal_counts_are_refused_when_it_is_opened)
{
    counted_source_refused("(counted:20,field=a) (counted:10,field=b) | zip",
                           LEAT_EFORMAT,
                           "zip: input 2 (counted:10,field=b) ends after 10");
    counted_source_refused("(counted:2,field=a) (counted:10,field=b) | zip",
                           LEAT_EFORMAT, "zip: input 1 (counted:2,field=a)");
}
END_TEST

static void check_shortest(const char *text)
{
    const int64_t expected[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    sequence_is(text, 0, expected, 10);
    sequence_is(text, 1, expected, 10);
    sequence_holds(text);
}

START_TEST(align_0_stops_with_the_shortest)
{
    in_all_forms("(counted:10,field=a,form=%s) (counted:25,field=b,form=%s) | "
                 "zip:align=0",
                 check_shortest);
    in_all_forms("(counted:17,field=a,form=%s) (counted:10,field=b,form=%s) | "
                 "zip:align=0",
                 check_shortest);
    /* tf.data: (0..2) x (10..14) gives 3 pairs. */
    const int64_t three[] = {0, 1, 2};
    sequence_is("(counted:3,field=a) (counted:5,field=b,first=10) | "
                "zip:align=0",
                0, three, 3);
    sequence_is("(counted:0,field=a) (counted:5,field=b) | zip:align=0", 0,
                NULL, 0);
}
END_TEST

START_TEST(keys_are_compared)
{
    sequence_holds("(counted:40,field=a,key=5,bad=2) (counted:40,field=b,"
                   "key=5,size=40) | zip:align=key");
    sequence_holds("(counted:40,field=a,key=5,form=stream) (counted:40,"
                   "field=b,key=5,bad=2,size=40) | zip:align=key");
    check_error("(counted:40,field=a,key=5,name=left) (counted:40,field=b,"
                "key=6,name=right) | zip:align=key",
                0, LEAT_EFORMAT,
                "zip: sample 0: the key of input 1 is 5 (left, record 0), that "
                "of input 2 is 6 (right, record 0)");
    check_error("(counted:40,field=a,key=5,form=stream) (counted:40,field=b) | "
                "zip:align=key",
                0, LEAT_EFORMAT, "that of input 2 is none");
}
END_TEST

START_TEST(names_that_are_equal_are_refused_or_prefixed)
{
    counted_source_refused("(counted:5) (counted:5) | zip", LEAT_EINVAL,
                           "zip: input 2 (counted:5): another input has a "
                           "field \"x\", too: give the inputs prefixes");
    counted_source_refused("(counted:5) (counted:5) | zip:prefix=(a_)",
                           LEAT_EINVAL, "expected as many as inputs, 2");
    counted_source_refused("(counted:5) (counted:5) | zip:prefix=(a,a)",
                           LEAT_EINVAL, "a field \"ax\"");
    leat_reader *reader = counted_source_reader(
        "(counted:5,bad=1) (counted:5) | zip:prefix=(,second_)");
    const leat_field_spec *fields;
    int n;
    ck_assert_int_eq(leat_reader_fields(reader, &fields, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(fields[0].name, "x");
    ck_assert_str_eq(fields[1].name, "second_x");
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_sample_has_no_more_fields_than_it_can)
{
    char text[4000] = "";
    for (int i = 0; i <= LEAT_MAX_FIELDS; i++) {
        char one[64];
        snprintf(one, sizeof(one), "(counted:3,field=f%d) ", i);
        strcat(text, one);
        if (i == LEAT_MAX_FIELDS - 1) {
            char full[4100];
            snprintf(full, sizeof(full), "%s| zip", text);
            leat_reader_close(counted_source_reader(full));
        }
    }
    char inner[4200];
    snprintf(inner, sizeof(inner),
             "((counted:3,field=g) | zip) (%.*s | zip) |"
             " zip",
             (int)(strrchr(text, '(') - text), text);
    counted_source_refused(inner, LEAT_EINVAL, "expected at most 32 in all");
}
END_TEST

/* Source and record of the next sample, whether good or bad. */
static void check_from(leat_reader *reader, int status, const char *source,
                       int64_t record)
{
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), status);
    ck_assert_str_eq(sample.from.source, source);
    ck_assert_int_eq(sample.from.record, record);
    ck_assert_uint_eq(sample.from.key_size, 2);
    char key[3] = {(char)('0' + record / 10 + 2), (char)('0' + record % 10), 0};
    key[0] = (char)(key[0] + (strcmp(source, "right") == 0 ? 3 : 0));
    ck_assert_int_eq(memcmp(sample.from.key, key, 2), 0);
    leat_sample_finish(&sample);
}

static void check_provenance(const char *text)
{
    leat_reader *reader = counted_source_reader(text);
    for (int64_t i = 0; i < 20; i++) {
        if (i % 10 == 4)
            check_from(reader, LEAT_EDATA, "right", i);
        else if (i % 10 == 7)
            check_from(reader, LEAT_EDATA, "left", i);
        else
            check_from(reader, LEAT_OK, "left", i);
    }
    leat_reader_close(reader);
}

/* Whichever of them is larger, and keeps its buffer. */
START_TEST(provenance_is_the_first_inputs_and_errors_name_the_culprits)
{
    in_all_forms("(counted:20,field=a,form=%s,bad=7,name=left,key=20) "
                 "(counted:20,field=b,form=%s,bad=4,name=right,key=50) | zip",
                 check_provenance);
    in_all_forms("(counted:20,field=a,form=%s,bad=7,name=left,key=20) (counted:"
                 "20,field=b,form=%s,bad=4,name=right,key=50,size=90) | zip",
                 check_provenance);
    in_all_forms("(counted:20,field=a,form=%s,bad=7,name=left,key=20) (counted:"
                 "20,field=b,form=%s,bad=4,name=right,key=50,size=400) | zip",
                 check_provenance);
    in_all_forms("(counted:20,field=a,form=%s,bad=7,name=left,key=20,size=80) "
                 "(counted:20,field=b,form=%s,bad=4,name=right,key=50) | zip",
                 check_provenance);
}
END_TEST

START_TEST(another_error_ends_it_at_its_row)
{
    check_error("(counted:50,field=a,bad=2) (counted:50,field=b,fails=25) | "
                "zip",
                25, LEAT_EIO, "record 25 cannot be read");
    check_error("(counted:50,field=a,bad=2,form=stream) (counted:50,field=b,"
                "fails=25,form=deferred) | zip",
                25, LEAT_EIO, "record 25 cannot be read");
    check_error("(counted:50,field=a,fails=33,form=deferred) (counted:50,"
                "field=b,bad=5,form=stream) | zip",
                33, LEAT_EIO, "record 33 cannot be read");
}
END_TEST

/* Where it only looks whether that input ends, too. */
START_TEST(an_error_where_another_input_has_ended_is_no_end)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    int64_t skipped;
    /* The second one's first input has no samples to be repeated. */
    ck_assert_int_eq(
        leat_pipeline_parse(
            &pipeline,
            "(range:1 | where:value=0..1) ((range:2 | where:value=0..) (range:2"
            " | where:value=9..) | mix:2,1,even=1,on_end=repeat) | "
            "zip:prefix=(a_,b_)"),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 2, &skipped), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "cannot be begun again"));
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The first input fails after its 2 samples, and with it all that is over it.
 */
#define FAILING                                                                \
    "((range:2 | where:value=0..) (range:3 | where:value=0..) | "              \
    "zip:prefix=(a_,b_) | select:a=a_value)"

START_TEST(a_skip_ends_as_reading_does)
{
    static const struct {
        const char *text;
        int64_t skipped;
        int status;
    } chains[] = {
        {FAILING " (range:1 | where:value=0..) | zip:align=0", 1, LEAT_END},
        {FAILING " (range:2 | where:value=0..) | zip:align=0", 2, LEAT_EFORMAT},
        {FAILING " (range:9 | where:value=0..) | zip:align=0", 2, LEAT_EFORMAT},
        {FAILING " (range:1 | where:value=0..) | zip", 1, LEAT_EFORMAT},
        {"(range:1 | where:value=0..) " FAILING " | zip:align=0", 1, LEAT_END},
        {"(range:9 | where:value=0..) " FAILING " | zip", 2, LEAT_EFORMAT},
        {FAILING " | batch:3", 0, LEAT_EFORMAT},
        {FAILING " | batch:2", 1, LEAT_EFORMAT},
    };
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    int64_t skipped, read = 0;
    int status;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, chains[_i].text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    while (!(status = leat_reader_next(reader, &sample)))
        read++;
    ck_assert_int_eq(status, chains[_i].status);
    ck_assert_int_eq(read, chains[_i].skipped);
    leat_reader_close(reader);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 5, &skipped), status);
    ck_assert_int_eq(skipped, read);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(stable_samples_are_not_copied)
{
    leat_reader *reader = counted_source_reader(
        "(counted:9,field=a,stable=1) (counted:9,field=b,stable=1) | zip");
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.stable, 1);
        ck_assert_uint_eq(sample.buffer_size, 0);
        ck_assert_int_eq(counted_source_number(&sample, 1), i);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_cancelled_reader_returns_no_rows_that_it_holds)
{
    leat_reader *reader = counted_source_reader(
        "(counted:40,field=a,form=stream,bad=3) (counted:40,field=b) | zip");
    sequence *some = malloc(sizeof(*some));
    sequence_read(some, reader, 30, 4);
    leat_reader_cancel(reader);
    sequence_read(some, reader, 1, 10);
    ck_assert_int_eq(some->n, 0);
    ck_assert_int_eq(some->status, LEAT_ECANCELLED);
    free(some);
    leat_reader_close(reader);
}
END_TEST

/* Of 1000 rows, bad ones in the last input. */
START_TEST(rows_beside_bad_ones_are_seldom_made_again)
{
    int calls;
    ck_assert_int_le(sequence_cost("(counted:1000,field=a,counts=1) "
                                   "(counted:1000,field=b,bad=1,every=2) | zip",
                                   &calls),
                     2000);
    ck_assert_int_le(sequence_cost("(counted:1000,field=a,counts=1) "
                                   "(counted:1000,field=b) (counted:1000,"
                                   "field=c,bad=3,size=300) | zip",
                                   &calls),
                     2000);
    /* What is made first is made once. */
    ck_assert_int_eq(sequence_cost("(counted:1000,field=b,bad=3) (counted:1000,"
                                   "field=a,counts=1) | zip",
                                   &calls),
                     900);
    ck_assert_int_le(calls, 200);
}
END_TEST

START_TEST(after_a_bad_row_as_many_are_soon_read_in_a_call)
{
    const char *text = "(counted:1000,field=a,counts=1) (counted:1000,field=b,"
                       "bad=%d,every=2000) | zip";
    char sound[200], damaged[200];
    int calls, more;
    snprintf(sound, sizeof(sound), text, -1);
    snprintf(damaged, sizeof(damaged), text, 64);
    ck_assert_int_eq(sequence_cost(sound, &calls), 1000);
    ck_assert_int_le(sequence_cost(damaged, &more), 1032);
    ck_assert_int_le(more, calls + 8);
}
END_TEST

START_TEST(code_and_text_make_the_same_pipeline)
{
    leat_pipeline *input[2], *zip;
    const char *const prefix[] = {"", "a,b_"};
    input[0] = counted_source_parse("counted:10");
    input[1] = counted_source_parse("counted:20");
    leat_zip_options options = {.size = sizeof(options)};
    ck_assert_int_eq(leat_zip_options_init(&options), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 2, NULL), LEAT_OK);
    sequence_same_pipeline("(counted:10) (counted:20) | zip", zip);
    options.align = LEAT_ALIGN_SHORTEST;
    options.prefix = prefix;
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 2, &options), LEAT_OK);
    sequence_same_pipeline(
        "(counted:10) (counted:20) | zip:align=0,prefix=(,a\\,b_)", zip);
    options.align = LEAT_ALIGN_KEY;
    options.prefix = NULL;
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 2, &options), LEAT_OK);
    sequence_same_pipeline("(counted:10) (counted:20) | zip:align=key", zip);
    options.align = (leat_align)3;
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 2, &options), LEAT_EINVAL);
    options.size = 0;
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 2, &options), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 0, NULL), LEAT_EINVAL);
    leat_pipeline_unref(input[0]);
    leat_pipeline_unref(input[1]);
}
END_TEST

/* Images and labels of the fixture, beside a field whose record 7 is bad. */
static leat_pipeline *over_bad(const char *form)
{
    char text[80];
    leat_pipeline *input[2], *zip;
    snprintf(text, sizeof(text), "counted:%d,bad=7,form=%s",
             LAYER_FIXTURE_COUNT, form);
    input[0] = layer_fixture_pipeline();
    input[1] = counted_source_parse(text);
    ck_assert_int_eq(leat_pipeline_zip(&zip, input, 2, NULL), LEAT_OK);
    leat_pipeline_unref(input[0]);
    leat_pipeline_unref(input[1]);
    return zip;
}

/* Two epochs: the pair of the bad record alone is replaced, or counted. */
static void check_policy(const char *form, leat_on_error on_error, int quota)
{
    leat_data_layer_options options;
    leat_transform_options transform;
    layer_fixture_options(&options, &transform);
    options.batch_size = 1;
    options.workers = 2;
    options.on_error = on_error;
    options.max_errors = quota;
    options.has_max_errors = 1;
    leat_pipeline *zip = over_bad(form);
    layer_fixture fixture = layer_fixture_open(zip, &options);
    for (int i = 0; i < 2 * LAYER_FIXTURE_COUNT; i++) {
        int at = i % LAYER_FIXTURE_COUNT;
        int status = layer_fixture_forward(&fixture);
        if (at == 7 && quota == 0) {
            ck_assert_int_eq(status, LEAT_ELIMIT);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 7"));
            break;
        }
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        float label = layer_fixture_label(&fixture, 0);
        if (at != 7)
            ck_assert_float_eq(label, 1000 + (float)at);
        else if (on_error == LEAT_ON_ERROR_ZERO)
            ck_assert_float_eq(label, 0);
        else
            ck_assert_float_eq(label, 1006);
    }
    layer_fixture_close(&fixture);
    leat_pipeline_unref(zip);
}

START_TEST(a_layers_policy_is_for_the_whole_row)
{
    for (int i = 0; i < FORMS; i++) {
        check_policy(forms[i], LEAT_ON_ERROR_ZERO, 5);
        check_policy(forms[i], LEAT_ON_ERROR_REPLACE, 5);
        check_policy(forms[i], LEAT_ON_ERROR_ZERO, 0);
    }
}
END_TEST

/* A record whose label is its number, of which the database has no view. */
static void make_numbered(int i, fixture_record *out)
{
    const unsigned char pixel = 7;
    const leat_datum datum = {.channels = 1,
                              .height = 1,
                              .width = 1,
                              .data = &pixel,
                              .data_size = 1,
                              .label = i};
    out->key_size = (size_t)sprintf(out->key, "%08d", i);
    out->value_size = leat_datum_write(&datum, out->value);
}

static void expect_labels(const char *path, const char *end)
{
    char text[FIXTURE_PATH + 200];
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample samples[8], *out[8];
    int got, n = 0;
    snprintf(text, sizeof(text), "(range:0,200) (lmdb:%s) | %s", path, end);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int k = 0; k < 8; k++) {
        leat_sample_init(&samples[k]);
        out[k] = &samples[k];
    }
    for (int s; (s = leat_reader_next_batch(reader, out, 8, &got)) != LEAT_END;)
        for (int k = 0; k < got; k++, n++) {
            const leat_sample *one = out[k];
            int32_t label;
            int64_t value;
            memcpy(&value, one->field[0].data, sizeof(value));
            memcpy(&label, one->field[one->nfields - 1].data, sizeof(label));
            ck_assert_int_eq(s, LEAT_OK);
            ck_assert_int_eq(label, value);
        }
    ck_assert_int_eq(n, 200);
    for (int k = 0; k < 8; k++)
        leat_sample_finish(&samples[k]);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

/* The labels of an LMDB are in its samples' buffers, the pixels in its map. */
START_TEST(labels_of_a_database_are_its_rows)
{
    char path[FIXTURE_PATH];
    fixture_write(fixture_directory(path), make_numbered, 200);
    expect_labels(path, "zip");
    expect_labels(path, "zip | shuffle:20,seed=1");
    expect_labels(path, "zip | prefetch:64,threads=2");
    expect_labels(path, "zip | where:value=0.. | shuffle:9");
    expect_labels(path, "zip | batch:1 | prefetch:16 | unbatch");
    fixture_remove(path);
}
END_TEST

/* A reader whose samples have as many fields as a sample can have, not one. */
static int many_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec spec = {.name = "a", .dtype = LEAT_INT64};
    (void)reader;
    *out = &spec;
    *n = 1;
    return LEAT_OK;
}

static int many_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    static const int64_t value = 7;
    (void)reader;
    for (int status = LEAT_OK; *got < n && !status; *got += !status)
        for (int i = 0; i < LEAT_MAX_FIELDS && !status; i++)
            status = leat_sample_set(out[*got], i, LEAT_INT64, 0, NULL, &value);
    return LEAT_OK;
}

static void many_close(leat_reader *reader)
{
    free(reader);
}

static int many_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "many",
                                        .fields = many_fields,
                                        .next = many_next,
                                        .seek = empty_reader_seek,
                                        .cancel = empty_reader_cancel,
                                        .close = many_close};
    (void)open;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return leat_error(LEAT_ENOMEM, "no memory");
    (*out)->ops = &ops;
    return LEAT_OK;
}

START_TEST(more_fields_than_were_promised_are_an_error)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "many", .open = many_open};
    static const char *const prefix[] = {"x", "y"};
    leat_zip_options options = LEAT_ZIP_OPTIONS_INIT;
    leat_pipeline *many, *zip;
    leat_reader *reader;
    leat_sample sample;
    options.prefix = prefix;
    ck_assert_int_eq(
        leat_pipeline_create(&many, &type, NULL, NULL, NULL, NULL, 0), LEAT_OK);
    leat_pipeline *inputs[] = {many, many};
    ck_assert_int_eq(leat_pipeline_zip(&zip, inputs, 2, &options), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(zip, &reader), LEAT_OK);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ESTATE);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(zip);
    leat_pipeline_unref(many);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zip");
    TCase *tcase = tcase_create("zip");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, rows_have_the_fields_of_all_inputs_in_lockstep);
    tcase_add_test(tcase, labels_of_a_database_are_its_rows);
    tcase_add_test(tcase, failing_allocations_lose_nothing);
    tcase_add_test(tcase, three_inputs_and_a_zip_in_a_zip);
    tcase_add_test(tcase, a_seek_that_one_input_refuses_moves_none);
    tcase_add_test(tcase, a_seek_that_the_second_input_refuses_is_sticky);
    tcase_add_test(tcase, unequal_lengths_are_an_error_after_the_last_row);
    tcase_add_test(tcase, a_mark_before_the_error_leads_to_it);
    tcase_add_test(tcase, a_mark_before_the_end_leads_to_it);
    tcase_add_test(tcase, a_mark_before_an_error_that_a_skip_met_leads_to_it);
    tcase_add_test(tcase, unequal_counts_are_refused_when_it_is_opened);
    tcase_add_test(tcase, align_0_stops_with_the_shortest);
    tcase_add_test(tcase, keys_are_compared);
    tcase_add_test(tcase, names_that_are_equal_are_refused_or_prefixed);
    tcase_add_test(tcase, a_sample_has_no_more_fields_than_it_can);
    tcase_add_test(tcase, more_fields_than_were_promised_are_an_error);
    tcase_add_test(tcase,
                   provenance_is_the_first_inputs_and_errors_name_the_culprits);
    tcase_add_test(tcase, another_error_ends_it_at_its_row);
    tcase_add_test(tcase, an_error_where_another_input_has_ended_is_no_end);
    tcase_add_loop_test(tcase, a_skip_ends_as_reading_does, 0, 8);
    tcase_add_test(tcase, stable_samples_are_not_copied);
    tcase_add_test(tcase, a_cancelled_reader_returns_no_rows_that_it_holds);
    tcase_add_test(tcase, rows_beside_bad_ones_are_seldom_made_again);
    tcase_add_test(tcase, after_a_bad_row_as_many_are_soon_read_in_a_call);
    tcase_add_test(tcase, code_and_text_make_the_same_pipeline);
    tcase_add_test(tcase, a_layers_policy_is_for_the_whole_row);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
