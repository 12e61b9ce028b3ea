#include "support/order_check.h"
#include "base/memory.h"
#include "support/plain_source.h"

#include <leat/ext/reader.h>
#include <leat/pipeline.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64 };

/* ck_assert_msg of what is checked often: that writes to a pipe each time. */
#define REQUIRE(condition, ...)                                                \
    do {                                                                       \
        if (!(condition))                                                      \
            ck_abort_msg(__VA_ARGS__);                                         \
    } while (0)

/* The case under test: one at a time. */
static const char *tested;
static int tested_bad;
static leat_sample buffer[AT_ONCE];
static leat_sample *out[AT_ONCE];

void order_add(order_epoch *epoch, int record)
{
    REQUIRE(epoch->n < ORDER_MAX, "more than %d records", ORDER_MAX);
    epoch->record[epoch->n++] = record;
}

void order_add_range(order_epoch *epoch, int first, int n)
{
    for (int i = 0; i < n; i++)
        order_add(epoch, first + i);
}

leat_pipeline *order_parse(const char *text)
{
    leat_pipeline *pipeline;
    plain_source_register();
    int status = leat_pipeline_parse(&pipeline, text);
    REQUIRE(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return pipeline;
}

leat_reader *order_open(const char *text)
{
    leat_pipeline *pipeline = order_parse(text);
    leat_reader *reader;
    int status = leat_pipeline_open(pipeline, &reader);
    REQUIRE(status == LEAT_OK, "%s: %s", text, leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

void order_check_refused(const char *text, int status, const char *part)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    plain_source_register();
    int found = leat_pipeline_parse(&pipeline, text);
    if (!found) {
        found = leat_pipeline_open(pipeline, &reader);
        leat_pipeline_unref(pipeline);
    }
    REQUIRE(found == status, "%s: %d", text, found);
    REQUIRE(strstr(leat_last_error(), part), "%s: %s", text, leat_last_error());
}

static void begin(const char *text, int has_bad)
{
    tested = text;
    tested_bad = has_bad;
    for (int i = 0; i < AT_ONCE; i++) {
        leat_sample_init(&buffer[i]);
        out[i] = &buffer[i];
    }
}

static void end(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_finish(&buffer[i]);
}

static int is_bad(int record)
{
    return tested_bad && record % 10 == 3;
}

static void check_sample(const leat_sample *sample, int record, int index)
{
    const unsigned char *data = sample->field[0].data;
    int64_t label = 0;
    int32_t narrow;
    memcpy(&narrow, sample->field[1].data, sizeof(narrow));
    label = narrow;
    REQUIRE(sample->nfields == 2 && !sample->deferred &&
                sample->from.record == record,
            "%s: sample %d is record %d, expected %d", tested, index,
            (int)sample->from.record, record);
    REQUIRE(label == 1000 + record, "%s: label %d", tested, (int)label);
    for (int64_t i = 0; i < sample->field[0].shape[0]; i++)
        REQUIRE(data[i] == record % 256, "%s: data %d", tested, data[i]);
    REQUIRE(strtol(sample->from.key, NULL, 10) == record, "%s: key", tested);
}

/* Up to `n` samples at `index`; returns their number, 0 at the end. */
static int read_some(leat_reader *reader, const order_epoch *epoch, int index,
                     int n)
{
    int got = -1;
    int status = leat_reader_next_batch(reader, out, n, &got);
    REQUIRE(index + got <= epoch->n, "%s: more than %d", tested, epoch->n);
    for (int i = 0; i < got; i++) {
        REQUIRE(!is_bad(epoch->record[index + i]), "%s: %d is good", tested,
                index + i);
        check_sample(out[i], epoch->record[index + i], index + i);
    }
    if (status == LEAT_OK || status == LEAT_END)
        return got;
    REQUIRE(status == LEAT_EDATA && index + got < epoch->n &&
                is_bad(epoch->record[index + got]),
            "%s: sample %d: %s", tested, index + got, leat_last_error());
    REQUIRE(out[got]->from.record == epoch->record[index + got] &&
                strstr(leat_last_error(), "is bad"),
            "%s: sample %d: %s", tested, index + got, leat_last_error());
    return got + 1;
}

static int is_single_pass(void)
{
    return strstr(tested, "plain:once") != NULL;
}

/* From `index` to the end, or to where the list is cut, `n` at a time. */
static void read_on(leat_reader *reader, const order_epoch *epoch, int index,
                    int n)
{
    while (index < epoch->n) {
        int left = epoch->n - index;
        int more = read_some(reader, epoch, index, left < n ? left : n);
        REQUIRE(more > 0, "%s: it ends at %d, expected %d", tested, index,
                epoch->n);
        index += more;
    }
    for (int i = 0; i < 2 && !epoch->is_cut; i++)
        REQUIRE(read_some(reader, epoch, epoch->n, n) == 0, "%s", tested);
}

static int can_go_to(leat_reader *reader, int64_t epoch)
{
    int status = leat_reader_seek(reader, (leat_position){epoch, 0}, NULL);
    REQUIRE(status == LEAT_OK ||
                (is_single_pass() && status == LEAT_EUNSUPPORTED),
            "%s: %s", tested, leat_last_error());
    return status == LEAT_OK;
}

/* As leat does: by seek, or by skip. */
static void go_to(leat_reader *reader, int64_t epoch, int64_t index)
{
    int64_t skipped;
    int status = leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
    if (index == 0 || leat_reader_can_seek(reader))
        REQUIRE(status == LEAT_OK, "%s: %s", tested, leat_last_error());
    if (status == LEAT_OK)
        return;
    REQUIRE(status == LEAT_EUNSUPPORTED, "%s: %s", tested, leat_last_error());
    status = leat_reader_seek(reader, (leat_position){epoch, 0}, NULL);
    if (!status)
        status = leat_reader_skip(reader, index, &skipped);
    REQUIRE(!status && skipped == index, "%s: %s", tested, leat_last_error());
}

static void check_batches(const order_epoch epoch[], int n)
{
    static const int sizes[] = {1, 2, 3, 7, AT_ONCE};
    leat_reader *reader = order_open(tested);
    for (int i = 0; i < 5; i++) {
        for (int e = 0; e < n; e++) {
            if (i + e == 0 || can_go_to(reader, e))
                read_on(reader, &epoch[e], 0, sizes[i]);
        }
    }
    leat_reader_close(reader);
}

static void check_count(leat_reader *reader, const order_epoch *epoch)
{
    int64_t count;
    int status = leat_reader_count(reader, &count);
    if (leat_reader_is_random_access(reader))
        ck_assert_int_eq(status, LEAT_OK);
    if (status)
        ck_assert_int_eq(status, LEAT_EUNSUPPORTED);
    else if (epoch->is_cut)
        ck_assert_int_ge(count, epoch->n);
    else
        ck_assert_int_eq(count, epoch->n);
}

/* Backwards, and all at a time. */
static void check_read_at(const order_epoch epoch[], int n)
{
    leat_reader *reader = order_open(tested);
    check_count(reader, &epoch[0]);
    for (int e = 0; e < n && leat_reader_is_random_access(reader); e++) {
        for (int last = epoch[e].n - 1; last >= 0;) {
            leat_position at[AT_ONCE];
            int some = last % AT_ONCE + 1, got;
            for (int i = 0; i < some; i++)
                at[i] = (leat_position){e, last - i};
            leat_reader_advise(reader, at, some);
            int status = leat_reader_read_at(reader, at, out, some, &got);
            for (int i = 0; i < got; i++)
                check_sample(out[i], epoch[e].record[last - i], last - i);
            last -= got;
            if (status == LEAT_EDATA)
                ck_assert(is_bad(epoch[e].record[last--]));
            else
                REQUIRE(status == LEAT_OK, "%s: %s", tested, leat_last_error());
        }
    }
    leat_reader_close(reader);
}

/* Every index, or some of many. */
static int step_of(const order_epoch *epoch)
{
    return epoch->n / 100 + 1;
}

static void check_indices(const order_epoch epoch[], int n)
{
    leat_reader *reader = order_open(tested);
    for (int e = 0; e < n; e++) {
        for (int i = 0; i <= epoch[e].n && can_go_to(reader, e);
             i += step_of(&epoch[e])) {
            go_to(reader, e, i);
            read_on(reader, &epoch[e], i, 5);
        }
    }
    leat_reader_close(reader);
}

static void check_skips(const order_epoch *epoch)
{
    leat_reader *reader = order_open(tested);
    int64_t skipped;
    for (int i = 0; i + 5 < epoch->n;) {
        ck_assert_int_eq(leat_reader_skip(reader, 4, &skipped), LEAT_OK);
        ck_assert_int_eq(skipped, 4);
        i += 4;
        i += read_some(reader, epoch, i, 1);
    }
    leat_reader_close(reader);
}

/* A new reader goes to the mark. */
static leat_reader *open_at(leat_token *mark, int e, int i)
{
    leat_reader *reader = order_open(tested);
    mark->cursor = 0;
    int status = leat_reader_seek(reader, (leat_position){e, i}, mark);
    REQUIRE(status == LEAT_OK, "%s: mark at %d: %s", tested, i,
            leat_last_error());
    REQUIRE(mark->cursor == mark->size, "%s: mark at %d: %zu of %zu bytes",
            tested, i, mark->cursor, mark->size);
    return reader;
}

/* The same samples follow from there, and from a mark that follows it. */
static void check_mark(leat_token *mark, const order_epoch *epoch, int e, int i)
{
    leat_token second;
    leat_reader *reader = open_at(mark, e, i);
    leat_token_init(&second);
    for (int k = 0; k < 3 && i < epoch->n; k++)
        i += read_some(reader, epoch, i, 1);
    ck_assert_int_eq(leat_reader_mark(reader, &second), LEAT_OK);
    read_on(reader, epoch, i, 4);
    leat_reader_close(reader);
    reader = open_at(&second, e, i);
    read_on(reader, epoch, i, 7);
    leat_token_finish(&second);
    leat_reader_close(reader);
}

static void check_marks(const order_epoch epoch[], int n)
{
    leat_reader *reader = order_open(tested);
    leat_token mark;
    leat_token_init(&mark);
    for (int e = 0; e < n; e++) {
        if (e > 0 && !can_go_to(reader, e))
            break;
        for (int i = 0; i < epoch[e].n;
             i += read_some(reader, &epoch[e], i, 1)) {
            if (i % step_of(&epoch[e]) != 0)
                continue;
            mark.size = 0;
            REQUIRE(leat_reader_mark(reader, &mark) == LEAT_OK, "%s: %s",
                    tested, leat_last_error());
            ck_assert_uint_le(mark.size, 32 * 4);
            check_mark(&mark, &epoch[e], e, i);
        }
    }
    leat_token_finish(&mark);
    leat_reader_close(reader);
}

static void check_restore(const order_epoch *epoch)
{
    leat_reader *reader = order_open(tested);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    if (epoch->n > 0)
        read_some(reader, epoch, 0, 3);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_OK);
    read_on(reader, epoch, 0, 6);
    leat_token_finish(&token);
    leat_reader_close(reader);
}

static void check_cancel(const order_epoch *epoch)
{
    leat_reader *reader = order_open(tested);
    if (epoch->n < 8)
        goto close;
    read_some(reader, epoch, 0, 1);
    leat_reader_cancel(reader);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_ECANCELLED);
close:
    leat_reader_close(reader);
}

/* Opens and reads with one allocation failing. */
static int read_failing(const leat_pipeline *pipeline, const order_epoch *epoch,
                        int fails)
{
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    leat__alloc_fail_at(fails);
    int status = leat_pipeline_open(pipeline, &reader);
    if (!status) {
        for (int i = 0; !status && i < epoch->n; i++) {
            status = leat_reader_next(reader, &sample);
            if (status == LEAT_EDATA)
                status = LEAT_OK;
        }
        if (!status)
            status = leat_reader_seek(reader, (leat_position){0, 0}, NULL);
        leat_reader_close(reader);
    }
    int64_t left = leat__alloc_fail_at(-1);
    leat_sample_finish(&sample);
    if (left >= 0)
        return 1;
    REQUIRE(status == LEAT_ENOMEM || status == LEAT_OK ||
                status == LEAT_EUNSUPPORTED,
            "%s: allocation %d: %s", tested, fails, leat_last_error());
    return 0;
}

static void check_allocations(const order_epoch *epoch)
{
    leat_pipeline *pipeline = order_parse(tested);
    for (int i = 0; !read_failing(pipeline, epoch, i); i++)
        ck_assert_int_lt(i, 10000);
    leat_pipeline_unref(pipeline);
}

void order_read(leat_reader *reader, int most, order_epoch *epoch)
{
    leat_sample sample;
    leat_sample_init(&sample);
    epoch->n = 0;
    int status = LEAT_OK;
    while (epoch->n < most && status != LEAT_END) {
        status = leat_reader_next(reader, &sample);
        REQUIRE(status == LEAT_OK || status == LEAT_EDATA || status == LEAT_END,
                "%s", leat_last_error());
        if (status != LEAT_END)
            order_add(epoch, (int)sample.from.record);
    }
    leat_sample_finish(&sample);
}

void order_check(const char *text, const order_epoch epoch[], int n,
                 int has_bad)
{
    begin(text, has_bad);
    check_batches(epoch, n);
    check_read_at(epoch, n);
    check_indices(epoch, n);
    check_skips(epoch);
    if (!is_single_pass())
        check_marks(epoch, n);
    check_restore(epoch);
    check_cancel(epoch);
    check_allocations(epoch);
    end();
}
