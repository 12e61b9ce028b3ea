/* What a worker makes of chunks: batches, whole, short and failed. */
#include "base/queue.h"
#include "base/thread.h"
#include "layer/worker.h"
#include "support/bad_records.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

enum { BATCH = 6, CHUNK = 2, COUNT = 9, WORKERS = 2 };

static bad_records records;
static leat_pipeline *pipeline;
static leat__data_reader *reader;
static leat_transformer *transformer;
static leat__top_plan plan;
static leat__device_queues queues;
static leat__carry_chain *carry_chain;
static leat__worker_options options;
static leat__worker worker[WORKERS];
static leat__batch *batch; /* that is filled */
static int64_t number;

static void start_queues(void)
{
    const leat__device_queue_options queue = {
        .transformer = transformer,
        .shape = options.shape,
        .batch_size = BATCH,
        .batches = 3,
        .circulating = 3,
    };
    leat_device *cpu;
    ck_assert_int_eq(leat_device_find(&cpu, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat__device_queues_init(&queues, &cpu, 1, &queue),
                     LEAT_OK);
}

static void start(leat_on_error on_error)
{
    const leat__position beginning = {0};
    const leat__data_reader_options source = {
        .source = {.pipeline = pipeline = bad_records_pipeline(&records),
                   .batch_size = BATCH,
                   .step = 1,
                   .collects = on_error != LEAT_ON_ERROR_FAIL}};
    const leat__data_reader_chunks chunks = {
        .size = CHUNK,
        .takers = WORKERS,
        .ahead_size = CHUNK,
        .own_buffers = LEAT__CHUNK_BUFFERS,
        .ahead = {3, LEAT__CHUNK_BUFFERS, SIZE_MAX}};
    const leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    const leat_sample *first;
    ck_assert_int_eq(
        leat__data_reader_create(&reader, &source, &beginning, NULL), LEAT_OK);
    ck_assert_int_eq(leat_transformer_create(&transformer, &transform,
                                             LEAT_TEST, LEAT_FLOAT32,
                                             LEAT_NCHW),
                     LEAT_OK);
    options = (leat__worker_options){
        .reader = reader,
        .image = &transformer,
        .spec = {.batch_size = BATCH, .plan = &plan},
        .on_error = on_error,
        .step = 1,
    };
    ck_assert_int_eq(
        leat__top_plan_usual(&plan, 2, LEAT_FLOAT32, LEAT_INT32, NULL, 0),
        LEAT_OK);
    ck_assert_int_eq(leat__data_reader_preview(reader, &first), LEAT_OK);
    ck_assert_int_eq(leat__batch_spec_shape(&options.spec, &transformer, first,
                                            &options.shape),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_start(reader, &chunks), LEAT_OK);
    start_queues();
    if (on_error != LEAT_ON_ERROR_FAIL)
        ck_assert_int_eq(leat__carry_chain_create(&carry_chain, WORKERS, NULL,
                                                  LEAT__CARRY_NONE),
                         LEAT_OK);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(
            leat__worker_init(&worker[i], &options, &queues, carry_chain),
            LEAT_OK);
}

static void set_up(void)
{
    records = (bad_records){.count = COUNT};
    memset(worker, 0, sizeof(worker));
    carry_chain = NULL;
    number = 0;
}

static void stop(void)
{
    leat__data_reader_cancel(reader);
    leat__device_queues_close(&queues);
    for (int i = 0; i < WORKERS; i++)
        leat__worker_finish(&worker[i]);
    leat__carry_chain_destroy(carry_chain);
    leat__device_queues_finish(&queues);
    leat_transformer_destroy(transformer);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}

static void open_batch(void)
{
    ck_assert_int_eq(leat__device_queue_take(queues.queue, &batch), LEAT_OK);
    leat__batch_begin(batch, number++);
}

/* As a claim does it. */
static leat__chunk *take(int taker)
{
    leat__chunk *chunk;
    int64_t ticket;
    ck_assert_int_eq(leat__data_reader_take(reader, taker, &chunk, &ticket),
                     LEAT_OK);
    if (carry_chain)
        leat__carry_chain_enter(carry_chain, chunk);
    if (chunk->is_last) {
        batch->after = chunk->after;
        batch->n = batch->valid = chunk->first + chunk->n;
    }
    return chunk;
}

static leat__batch *ready(void)
{
    void *item = NULL;
    ck_assert_int_eq(leat__queue_pop(queues.queue->ready, &item, 0), LEAT_OK);
    return item;
}

static void assert_not_ready(void)
{
    void *item;
    ck_assert_int_eq(leat__queue_pop(queues.queue->ready, &item, 0),
                     LEAT_AGAIN);
}

/* Fills a batch, chunk by chunk, and returns it from the ready queue. */
static leat__batch *work(void)
{
    open_batch();
    for (bool is_last = false; !is_last;) {
        leat__chunk *chunk = take(0);
        is_last = chunk->is_last;
        assert_not_ready();
        leat__worker_work(&worker[0], chunk, batch);
    }
    ck_assert_ptr_eq(ready(), batch);
    return batch;
}

static int label(const leat__batch *of, int i)
{
    return *(const int32_t *)leat__batch_at(of, 1, i);
}

static float pixel(const leat__batch *of, int i)
{
    return *(const float *)leat__batch_at(of, 0, i);
}

static void assert_sample(const leat__batch *of, int i, int record)
{
    ck_assert_int_eq(label(of, i), 1000 + record);
    ck_assert(pixel(of, i) == (float)((37 * record + 1) % 256));
    ck_assert_int_eq(of->from[i].record, record);
}

START_TEST(a_batch_is_completed_with_its_last_chunk)
{
    start(LEAT_ON_ERROR_FAIL);
    for (int k = 0; k < 5; k++) {
        leat__batch *of = work();
        ck_assert_int_eq(of->number, k);
        ck_assert_int_eq(of->n, BATCH);
        ck_assert_int_eq(of->failed, -1);
        for (int i = 0; i < BATCH; i++)
            assert_sample(of, i, (k * BATCH + i) % COUNT);
        leat__device_queue_give(&queues, queues.queue, of);
    }
    /* The first chunk of all is the sample that was previewed. */
    ck_assert_int_eq(atomic_load(&worker[0].items), 5 * BATCH);
    ck_assert_int_eq(atomic_load(&worker[0].chunks), 5 * BATCH / CHUNK + 1);
    ck_assert_int_eq(atomic_load(&worker[0].bytes),
                     5 * BATCH * (int64_t)options.shape.top[0].bytes);
    ck_assert_int_eq(atomic_load(&worker[0].activity), LEAT__IDLE);
    ck_assert_int_ge(atomic_load(&worker[0].busy), 0);
    stop();
}
END_TEST

START_TEST(a_short_batch_is_completed_with_the_samples_it_has)
{
    records.way = BAD_RECORDS_IN_ORDER;
    records.single_pass = 1;
    start(LEAT_ON_ERROR_FAIL);
    leat__batch *of = work();
    leat__device_queue_give(&queues, queues.queue, of);
    of = work();
    ck_assert_int_eq(of->n, COUNT - BATCH);
    ck_assert_int_eq(of->failed, -1);
    for (int i = 0; i < of->n; i++)
        assert_sample(of, i, BATCH + i);
    leat__device_queue_give(&queues, queues.queue, of);
    of = work();
    ck_assert_int_eq(of->n, 0);
    ck_assert_int_eq(of->status, LEAT_END);
    stop();
}
END_TEST

/* What fails, by how its record is bad, and with which line. */
START_TEST(a_bad_record_fails_its_batch_and_no_other)
{
    static const struct {
        bad_records_kind kind;
        int status;
        const char *line;
    } cases[] = {
        {BAD_RECORDS_UNREADABLE, LEAT_EDATA, "record 3 cannot be read"},
        {BAD_RECORDS_SHORT, LEAT_EDATA, "2 x 5 x 6"},
        {BAD_RECORDS_SMALL, LEAT_EDATA, "2 x 2 x 6"},
        {BAD_RECORDS_UNLABELED, LEAT_EDATA, "field"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up();
        records.kind[3] = cases[i].kind;
        start(LEAT_ON_ERROR_FAIL);
        leat__batch *of = work();
        ck_assert_int_eq(of->failed, 3);
        ck_assert_int_eq(of->status, cases[i].status);
        ck_assert_msg(strstr(of->culprit.line, cases[i].line), "%s",
                      of->culprit.line);
        ck_assert_int_eq(of->culprit.from.record, 3);
        for (int k = 0; k < 3; k++)
            assert_sample(of, k, k);
        leat__device_queue_give(&queues, queues.queue, of);
        number = of->number + 1;
        records.kind[3] = BAD_RECORDS_GOOD;
        of = work();
        ck_assert_int_eq(of->failed, -1);
        assert_sample(of, 0, BATCH);
        stop();
    }
}
END_TEST

START_TEST(the_earlier_of_two_bad_records_counts_whichever_chunk_is_first)
{
    records.kind[2] = BAD_RECORDS_SHORT;
    records.kind[4] = BAD_RECORDS_UNREADABLE;
    start(LEAT_ON_ERROR_FAIL);
    leat__batch *of = work();
    ck_assert_int_eq(of->failed, 2);
    ck_assert_int_eq(of->culprit.from.record, 2);
    stop();
}
END_TEST

START_TEST(bad_records_are_replaced_and_listed)
{
    static const leat_on_error policies[] = {LEAT_ON_ERROR_REPLACE,
                                             LEAT_ON_ERROR_ZERO};
    for (int p = 0; p < 2; p++) {
        set_up();
        records.kind[1] = BAD_RECORDS_UNREADABLE;
        records.kind[4] = BAD_RECORDS_SHORT;
        start(policies[p]);
        leat__batch *of = work();
        ck_assert_int_eq(of->failed, -1);
        ck_assert_int_eq(of->bad.n, 2);
        for (int k = 0; k < 2; k++) {
            int bad = k ? 4 : 1;
            ck_assert_int_eq(of->bad.item[k].sample, bad);
            ck_assert_int_eq(of->bad.item[k].from.record, bad);
            if (p == 0) {
                ck_assert_int_eq(label(of, bad), 1000 + bad - 1);
            } else {
                ck_assert(pixel(of, bad) == 0);
            }
        }
        assert_sample(of, 0, 0);
        assert_sample(of, 5, 5);
        stop();
    }
}
END_TEST

typedef struct job {
    leat__chunk *chunk;
    leat__thread thread;
} job;

static void *work_on(void *argument)
{
    leat__worker_work(&worker[1], ((job *)argument)->chunk, batch);
    return NULL;
}

/* The shape is the first chunk's to tell: the other worker waits for that. */
START_TEST(a_later_chunk_waits_for_the_shape)
{
    for (int is_broken = 0; is_broken <= 1; is_broken++) {
        job other = {0};
        set_up();
        start(LEAT_ON_ERROR_FAIL);
        leat__batch *of = work();
        leat__device_queue_give(&queues, queues.queue, of);
        records.kind[BATCH] =
            is_broken ? BAD_RECORDS_UNREADABLE : BAD_RECORDS_GOOD;
        open_batch();
        leat__chunk *first = take(0);
        other.chunk = take(1);
        ck_assert_int_eq(
            leat__thread_start(&other.thread, "waits", work_on, &other),
            LEAT_OK);
        leat__worker_work(&worker[0], first, batch);
        leat__thread_join(&other.thread);
        leat__worker_work(&worker[0], take(0), batch);
        of = ready();
        ck_assert_int_eq(of->failed, is_broken ? 0 : -1);
        for (int i = 0; !is_broken && i < BATCH; i++)
            assert_sample(of, i, (BATCH + i) % COUNT);
        stop();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *tcase = tcase_create("worker");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_batch_is_completed_with_its_last_chunk);
    tcase_add_test(tcase, a_short_batch_is_completed_with_the_samples_it_has);
    tcase_add_test(tcase, a_bad_record_fails_its_batch_and_no_other);
    tcase_add_test(
        tcase, the_earlier_of_two_bad_records_counts_whichever_chunk_is_first);
    tcase_add_test(tcase, bad_records_are_replaced_and_listed);
    tcase_add_test(tcase, a_later_chunk_waits_for_the_shape);
    return suite_run(suite);
}
