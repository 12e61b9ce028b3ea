/* Readers that ask the one below whether it may block ask it rarely. */
#include "support/empty_reader.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { COUNT = 4000, CALL = 64, OFTEN = 256 };

static leat_sample sample[CALL], *out[CALL];
static atomic_int asked;
static int answer;

/* A stream of numbers. */
typedef struct asked_reader {
    leat_reader reader;
    int32_t next;
} asked_reader;

static int asked_fields(leat_reader *reader, const leat_field_spec **fields,
                        int *n)
{
    static const leat_field_spec number = {.name = "number",
                                           .dtype = LEAT_INT32};
    (void)reader;
    *fields = &number;
    *n = 1;
    return LEAT_OK;
}

static int asked_next(leat_reader *reader, leat_sample *const to[], int n,
                      int *got)
{
    asked_reader *self = (asked_reader *)reader;
    int status = self->next == COUNT ? LEAT_END : LEAT_OK;
    for (; *got < n && self->next < COUNT && !status; ++*got, self->next++) {
        int32_t *data = leat_sample_take(to[*got], sizeof(*data));
        if (!data)
            return LEAT_ENOMEM;
        *data = self->next;
        status = leat_sample_set(to[*got], 0, LEAT_INT32, 0, NULL, data);
    }
    return status;
}

static int asked_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    (void)mark;
    ((asked_reader *)reader)->next = (int32_t)position.index;
    return LEAT_OK;
}

static int asked_may_block(leat_reader *reader)
{
    (void)reader;
    atomic_fetch_add(&asked, 1);
    return answer;
}

static void asked_close(leat_reader *reader)
{
    free(reader);
}

static int asked_open(const leat_open *open, leat_reader **reader)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "asked",
                                        .fields = asked_fields,
                                        .next = asked_next,
                                        .seek = asked_seek,
                                        .cancel = empty_reader_cancel,
                                        .close = asked_close,
                                        .may_block = asked_may_block};
    asked_reader *self = calloc(1, sizeof(*self));
    (void)open;
    if (!self)
        return LEAT_ENOMEM;
    self->reader.ops = &ops;
    *reader = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type asked_type = {
    .size = sizeof(asked_type), .name = "asked", .open = asked_open};

static void begin(void)
{
    static bool is_registered;
    if (!is_registered)
        ck_assert_int_eq(leat_reader_register(&asked_type), LEAT_OK);
    is_registered = true;
    for (int i = 0; i < CALL; i++)
        leat_sample_init(out[i] = &sample[i]);
    answer = 0;
    atomic_store(&asked, 0);
}

static void end(void)
{
    for (int i = 0; i < CALL; i++)
        leat_sample_finish(out[i]);
}

/* Reads an epoch in calls of CALL; returns the calls. */
static int read_epoch(const char *text)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    int calls = 0, got;
    ck_assert_msg(!leat_pipeline_parse(&pipeline, text), "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int number = 0; number < COUNT; number += got, calls++) {
        ck_assert_int_eq(leat_reader_next_batch(reader, out, CALL, &got),
                         LEAT_OK);
        ck_assert_int_eq(*(const int32_t *)sample[0].field[0].data, number);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    return calls;
}

START_TEST(it_is_asked_once_for_many_samples)
{
    static const char *const texts[] = {"asked | cache", "asked | cache:10",
                                        "asked | prefetch:512",
                                        "asked | prefetch:512 | cache"};
    read_epoch(texts[_i]);
    ck_assert_int_le(atomic_load(&asked), COUNT / OFTEN);
}
END_TEST

START_TEST(a_call_of_a_cache_does_not_wait_for_a_second_sample)
{
    ck_assert_int_le(read_epoch("asked | cache"), COUNT / CALL + 1);
    answer = 1;
    ck_assert_int_eq(read_epoch("asked | cache"), COUNT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block_probe");
    TCase *tcase = tcase_create("block_probe");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, it_is_asked_once_for_many_samples, 0, 4);
    tcase_add_test(tcase, a_call_of_a_cache_does_not_wait_for_a_second_sample);
    return suite_run(suite);
}
