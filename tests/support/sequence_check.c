#include "support/sequence_check.h"
#include "base/memory.h"
#include "pipeline/pipeline.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_MOST = 80 };

typedef struct buffers {
    leat_sample sample[CALL_MOST];
    leat_sample *at[CALL_MOST];
} buffers;

static buffers *buffers_create(void)
{
    buffers *all = calloc(1, sizeof(*all));
    ck_assert_ptr_nonnull(all);
    for (int i = 0; i < CALL_MOST; i++)
        all->at[i] = &all->sample[i];
    return all;
}

static void buffers_destroy(buffers *all)
{
    for (int i = 0; i < CALL_MOST; i++)
        leat_sample_finish(&all->sample[i]);
    free(all);
}

/* Asserts of Check that hold cost a system call each, unlike these. */
static void add(sequence *out, const leat_sample *sample)
{
    if (out->n >= SEQUENCE_MOST)
        ck_abort_msg("more than %d samples", SEQUENCE_MOST);
    sequence_item *item = &out->item[out->n++];
    memset(item, 0, sizeof(*item));
    item->number[0] = -1;
    if (!sample)
        return;
    if (sample->deferred)
        ck_abort_msg("sample %d is deferred", out->n - 1);
    item->nfields = sample->nfields;
    item->epoch = counted_source_epoch(sample, 0);
    for (int i = 0; i < sample->nfields && i < SEQUENCE_FIELDS; i++)
        item->number[i] = counted_source_number(sample, i);
}

void sequence_read(sequence *out, leat_reader *reader, int per_call, int most)
{
    buffers *all = buffers_create();
    out->n = 0;
    out->status = LEAT_OK;
    while (!out->status && out->n < most) {
        int got;
        int n = most - out->n < per_call ? most - out->n : per_call;
        out->status = leat_reader_next_batch(reader, all->at, n, &got);
        for (int i = 0; i < got; i++)
            add(out, all->at[i]);
        if (out->status == LEAT_EDATA && out->n < most) {
            ck_assert_ptr_nonnull(all->at[got]->from.source);
            add(out, NULL);
            out->status = LEAT_OK;
        }
    }
    buffers_destroy(all);
}

static leat_reader *open_at(const char *text, int64_t epoch)
{
    leat_reader *reader = counted_source_reader(text);
    if (epoch > 0)
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch, 0}, NULL), LEAT_OK);
    return reader;
}

void sequence_of(sequence *out, const char *text, int64_t epoch)
{
    leat_reader *reader = open_at(text, epoch);
    sequence_read(out, reader, 1, SEQUENCE_MOST);
    leat_reader_close(reader);
}

void sequence_is(const char *text, int64_t epoch, const int64_t *numbers, int n)
{
    sequence *all = malloc(sizeof(*all));
    sequence_of(all, text, epoch);
    ck_assert_msg(all->status == LEAT_END, "%s: %s", text, leat_last_error());
    for (int i = 0; i < n && i < all->n; i++)
        ck_assert_msg(all->item[i].number[0] == numbers[i],
                      "%s: sample %d is %lld, expected %lld", text, i,
                      (long long)all->item[i].number[0], (long long)numbers[i]);
    ck_assert_msg(all->n == n, "%s: %d samples, expected %d", text, all->n, n);
    free(all);
}

static void check_equal(const sequence *all, int first, const sequence *part,
                        const char *text, const char *how)
{
    for (int i = 0; i < part->n && first + i < all->n; i++)
        if (memcmp(&all->item[first + i], &part->item[i],
                   sizeof(part->item[i])) != 0)
            ck_abort_msg("%s, %s: sample %d is %lld, expected %lld", text, how,
                         first + i, (long long)part->item[i].number[0],
                         (long long)all->item[first + i].number[0]);
}

static void check_rest(const sequence *all, int first, leat_reader *reader,
                       int per_call, const char *text, const char *how)
{
    sequence *rest = malloc(sizeof(*rest));
    sequence_read(rest, reader, per_call, SEQUENCE_MOST);
    check_equal(all, first, rest, text, how);
    ck_assert_msg(rest->n == all->n - first && rest->status == all->status,
                  "%s, %s: %d samples and status %d after %d, expected %d "
                  "and %d (%s)",
                  text, how, rest->n, rest->status, first, all->n - first,
                  all->status, leat_last_error());
    free(rest);
}

/* By marks that are taken after calls of several samples. */
static void check_marks(const sequence *all, const char *text, int64_t epoch,
                        int per_call)
{
    sequence *some = malloc(sizeof(*some));
    leat_reader *reader = open_at(text, epoch);
    for (int at = 0; at < all->n; at += some->n) {
        leat_token mark;
        leat_token_init(&mark);
        int status = leat_reader_mark(reader, &mark);
        ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
        leat_reader *other = counted_source_reader(text);
        status = leat_reader_seek(other, (leat_position){epoch, at}, &mark);
        ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
        ck_assert_uint_eq(mark.cursor, mark.size);
        check_rest(all, at, other, 5, text, "by its mark");
        leat_reader_close(other);
        leat_token_finish(&mark);
        sequence_read(some, reader, per_call,
                      per_call < all->n - at ? per_call : all->n - at);
    }
    leat_reader_close(reader);
    free(some);
}

static void check_seeks(const sequence *all, const char *text, int64_t epoch)
{
    leat_reader *reader = counted_source_reader(text);
    for (int at = 0; at < all->n && leat_reader_can_seek(reader); at++) {
        int status = leat_reader_seek(reader, (leat_position){epoch, at}, NULL);
        ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
        check_rest(all, at, reader, 4, text, "by its index");
    }
    leat_reader_close(reader);
}

static void check_skips(const sequence *all, const char *text, int64_t epoch)
{
    for (int at = 0; at <= all->n; at += 1 + at / 3) {
        leat_reader *reader = open_at(text, epoch);
        int64_t skipped;
        ck_assert_int_eq(leat_reader_skip(reader, at, &skipped), LEAT_OK);
        ck_assert_int_eq(skipped, at);
        check_rest(all, at, reader, 3, text, "after skipping");
        leat_reader_close(reader);
    }
}

/* In a scattered order, in calls of several. */
static void check_random_access(const sequence *all, const char *text,
                                int64_t epoch)
{
    leat_reader *reader = counted_source_reader(text);
    int64_t count;
    if (leat_reader_is_random_access(reader) && all->status == LEAT_END) {
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
        ck_assert_int_eq(count, all->n);
        buffers *each = buffers_create();
        for (int at = 0; at < all->n;) {
            leat_position where[CALL_MOST];
            int n = 0, got;
            for (; n < CALL_MOST && at + n < all->n; n++)
                where[n] = (leat_position){epoch, (at + n) * 7919LL % all->n};
            leat_reader_advise(reader, where, n);
            int status = leat_reader_read_at(reader, where, each->at, n, &got);
            for (int i = 0; i < got + (status == LEAT_EDATA); i++) {
                sequence *one = calloc(1, sizeof(*one));
                add(one, i < got ? each->at[i] : NULL);
                check_equal(all, (int)where[i].index, one, text, "read_at");
                free(one);
            }
            ck_assert(status == LEAT_OK || status == LEAT_EDATA);
            at += got + (status == LEAT_EDATA);
        }
        buffers_destroy(each);
    }
    leat_reader_close(reader);
}

void sequence_holds(const char *text)
{
    sequence *all = malloc(sizeof(*all));
    for (int64_t epoch = 0; epoch < 3; epoch += 2) {
        sequence_of(all, text, epoch);
        for (int n = 2; n <= CALL_MOST; n *= 3) {
            leat_reader *reader = open_at(text, epoch);
            check_rest(all, 0, reader, n, text, "several a call");
            leat_reader_close(reader);
        }
        check_marks(all, text, epoch, 1);
        check_marks(all, text, epoch, 7);
        if (all->status == LEAT_END)
            check_skips(all, text, epoch);
        check_seeks(all, text, epoch);
        check_random_access(all, text, epoch);
    }
    free(all);
}

/* Opens, reads, marks and reads on; ENOMEM at any point. */
static int open_and_read(const char *text, sequence *out)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    leat_token mark;
    sequence part = {.n = 0};
    leat_token_init(&mark);
    out->n = 0;
    int status = leat_pipeline_parse(&pipeline, text);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    if (!status) {
        sequence_read(&part, reader, 3, 5);
        status = part.status;
    }
    if (!status)
        status = leat_reader_mark(reader, &mark);
    if (!status)
        status = leat_reader_seek(reader, (leat_position){0, part.n}, &mark);
    if (!status) {
        sequence_read(out, reader, 3, SEQUENCE_MOST);
        status = out->status;
    }
    leat_token_finish(&mark);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    return status;
}

void sequence_survives(const char *text)
{
    sequence *all = malloc(sizeof(*all)), *now = malloc(sizeof(*now));
    counted_source_register();
    int wanted = open_and_read(text, all);
    int status = LEAT_ENOMEM;
    for (int n = 0; status == LEAT_ENOMEM; n++) {
        leat__alloc_fail_at(n);
        status = open_and_read(text, now);
        leat__alloc_fail_at(-1);
        ck_assert_msg(status == LEAT_ENOMEM || status == wanted,
                      "%s, allocation %d: %d (%s)", text, n, status,
                      leat_last_error());
        ck_assert_int_eq(counted_source_open(), 0);
    }
    ck_assert_int_eq(all->n, now->n);
    check_equal(all, 0, now, text, "after a failure");
    free(all);
    free(now);
}

/* Opens and reads an epoch. */
static int open_and_end(const char *text)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    sequence *all = malloc(sizeof(*all));
    int status = leat_pipeline_parse(&pipeline, text);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    if (!status) {
        sequence_read(all, reader, 3, SEQUENCE_MOST);
        status = all->status;
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    free(all);
    return status;
}

void sequence_survives_any(const char *text)
{
    int status = LEAT_ENOMEM;
    int enough = 0;
    counted_source_register();
    /* Threads allocate as they come: one that is not reached ends it. */
    for (int n = 0; enough < 5; n++) {
        leat__alloc_fail_at(n);
        status = open_and_end(text);
        enough += leat__alloc_fail_at(-1) >= 0;
        ck_assert_msg(status == LEAT_ENOMEM || status == LEAT_END,
                      "%s, allocation %d: %d (%s)", text, n, status,
                      leat_last_error());
        ck_assert_int_eq(counted_source_open(), 0);
    }
}

static void read_epoch(leat_reader *reader, int64_t epoch, buffers *all)
{
    int got, status;
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                     LEAT_OK);
    do {
        status = leat_reader_next_batch(reader, all->at, 16, &got);
    } while (status == LEAT_OK || status == LEAT_EDATA);
    ck_assert_int_eq(status, LEAT_END);
}

static void read_all_at(leat_reader *reader, buffers *all)
{
    int64_t count;
    int got;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    for (int64_t at = 0; at < count; at += 8) {
        leat_position where[8];
        int n = count - at < 8 ? (int)(count - at) : 8;
        for (int i = 0; i < n; i++)
            where[i] = (leat_position){0, at + i};
        leat_reader_read_at(reader, where, all->at, n, &got);
    }
}

void sequence_settles(const char *text)
{
    leat_reader *reader = counted_source_reader(text);
    buffers *all = buffers_create();
    int is_random_access = leat_reader_is_random_access(reader);
    /* Buffers that are exchanged grow one after the other. */
    for (int64_t epoch = 0; epoch < 12; epoch++) {
        read_epoch(reader, epoch, all);
        if (is_random_access)
            read_all_at(reader, all);
    }
    int64_t before = leat__alloc_count();
    read_epoch(reader, 20, all);
    if (is_random_access)
        read_all_at(reader, all);
    ck_assert_msg(leat__alloc_count() == before, "%s: %lld allocations", text,
                  (long long)(leat__alloc_count() - before));
    buffers_destroy(all);
    leat_reader_close(reader);
}

int sequence_cost(const char *text, int *calls)
{
    leat_position at[CALL_MOST];
    buffers *all = buffers_create();
    leat_reader *reader = counted_source_reader(text);
    int64_t count;
    int made = counted_source_made();
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    *calls = 0;
    for (int64_t done = 0; done < count; ++*calls) {
        int got, n = 0;
        for (; n < CALL_MOST && done + n < count; n++)
            at[n] = (leat_position){0, done + n};
        int status = leat_reader_read_at(reader, at, all->at, n, &got);
        ck_assert_msg(status == LEAT_OK || status == LEAT_EDATA, "%s: %s", text,
                      leat_last_error());
        done += got + (status == LEAT_EDATA);
    }
    leat_reader_close(reader);
    buffers_destroy(all);
    return counted_source_made() - made;
}

void sequence_same_pipeline(const char *text, leat_pipeline *other)
{
    leat_pipeline *pipeline = counted_source_parse(text);
    ck_assert_msg(leat__pipeline_hash(pipeline) == leat__pipeline_hash(other),
                  "%s is not %s", leat_pipeline_text(pipeline),
                  leat_pipeline_text(other));
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(other);
}
