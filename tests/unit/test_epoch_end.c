/* Batches that end with the epoch, against a slow model of the sequence. */
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define RANKS_MAX 5
#define POSITIONS_MAX 400

static bad_records records;
static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;
static uint32_t wanted[POSITIONS_MAX]; /* a checksum of the sample there */

static void set_up(void)
{
    records = (bad_records){.count = 11};
    layer_fixture_options(&options, &transform);
    transform.crop_size = 3;
    transform.mirror = 1;
    options.random_seed = 99;
    options.workers = 2;
    pipeline = NULL;
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static uint32_t sample_digest(const layer_fixture *fixture, int64_t i)
{
    uLong sum = 0;
    for (int k = 0; k < 2; k++) {
        leat_blob *top = fixture->top[k];
        size_t bytes = leat_blob_bytes(top) / (size_t)leat_blob_dim(top, 0);
        sum = crc32_z(
            sum, (const Bytef *)leat_blob_cpu_data(top) + (size_t)i * bytes,
            bytes);
    }
    return (uint32_t)sum;
}

/* What each position has, as one rank without batches delivers it. */
static void note_samples(void)
{
    const leat_data_layer_options asked = options;
    options.batch_size = options.world_size = 1;
    options.rank = 0;
    options.epoch_end = LEAT_EPOCH_END_WRAP;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int p = 0; p < POSITIONS_MAX; p++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        wanted[p] = sample_digest(&fixture, 0);
    }
    layer_fixture_close(&fixture);
    options = asked;
}

/* The model: a batch of all ranks has the positions from `begin` to `end`. */
typedef struct extent {
    int64_t begin;
    int64_t end;
} extent;

static extent batch_after(int64_t place)
{
    int64_t all = options.batch_size * options.world_size;
    int64_t left = records.count - place % records.count;
    if (options.epoch_end == LEAT_EPOCH_END_WRAP || left >= all)
        return (extent){place, place + all};
    if (options.epoch_end == LEAT_EPOCH_END_DROP)
        return (extent){place + left, place + left + all};
    return (extent){place, place + left};
}

static void check_rows(const layer_fixture *fixture, const leat_batch *batch,
                       const extent *at, int rank)
{
    int64_t n = 0;
    for (int64_t p = at->begin; p < at->end; p++) {
        if (p % options.world_size != rank)
            continue;
        const leat_provenance *from = &batch->from[n];
        ck_assert_int_lt(n, batch->valid);
        ck_assert_int_eq(from->epoch, p / records.count);
        ck_assert_int_eq(from->position, p % records.count);
        ck_assert_int_eq(from->replacement, LEAT_REPLACEMENT_NONE);
        if (options.rng == LEAT_RNG_LEAT || options.world_size == 1)
            ck_assert_uint_eq(sample_digest(fixture, n), wanted[p]);
        n++;
    }
    ck_assert_int_eq(n, batch->valid);
}

static void check_padding(const layer_fixture *fixture, const leat_batch *batch)
{
    for (int64_t i = batch->valid; i < batch->n; i++) {
        const leat_provenance *from = &batch->from[i];
        ck_assert_int_eq(from->replacement, LEAT_REPLACEMENT_PADDING);
        ck_assert_int_eq(from->record, -1);
        ck_assert_int_eq(from->position, -1);
        ck_assert_int_eq(from->epoch, batch->epoch);
        ck_assert_ptr_null(from->source);
        ck_assert_ptr_null(from->key);
    }
    for (int k = 0; k < 2; k++) {
        const float *value = leat_blob_cpu_data(fixture->top[k]);
        int64_t all = leat_blob_count(fixture->top[k]);
        for (int64_t i = all / batch->n * batch->valid; i < all; i++)
            ck_assert_float_eq(value[i], 0);
    }
}

/* The batch that a rank holds, against the model's. */
static void check_batch(const layer_fixture *fixture, const extent *at,
                        int rank)
{
    const leat_batch *batch = leat_data_layer_batch(fixture->layer);
    ck_assert_ptr_nonnull(batch);
    bool pads = options.epoch_end == LEAT_EPOCH_END_PAD;
    ck_assert_int_eq(batch->n, pads ? options.batch_size : batch->valid);
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(leat_blob_dim(fixture->top[k], 0), batch->n);
    ck_assert_int_eq(
        batch->epoch,
        (batch->valid > 0 ? batch->from[0].epoch : at->begin / records.count));
    check_rows(fixture, batch, at, rank);
    if (batch->n > batch->valid)
        check_padding(fixture, batch);
}

static void open_ranks(layer_fixture fixture[])
{
    for (int r = 0; r < options.world_size; r++) {
        options.rank = r;
        fixture[r] = layer_fixture_open(pipeline, &options);
    }
}

static void close_ranks(layer_fixture fixture[])
{
    for (int r = 0; r < options.world_size; r++)
        layer_fixture_close(&fixture[r]);
}

/* Takes batches from `place` on; where the last of them ends. */
static int64_t take_batches(layer_fixture fixture[], int64_t place, int n)
{
    for (int k = 0; k < n; k++) {
        const extent at = batch_after(place);
        for (int r = 0; r < options.world_size; r++) {
            int status = layer_fixture_forward(&fixture[r]);
            ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
            check_batch(&fixture[r], &at, r);
        }
        place = at.end;
    }
    return place;
}

/* The same token from every rank. */
static void save(layer_fixture fixture[], leat_token *token)
{
    ck_assert_int_eq(leat_data_layer_save(fixture[0].layer, token), LEAT_OK);
    for (int r = 1; r < options.world_size; r++) {
        leat_token other;
        leat_token_init(&other);
        ck_assert_int_eq(leat_data_layer_save(fixture[r].layer, &other),
                         LEAT_OK);
        if (options.epoch_end != LEAT_EPOCH_END_WRAP)
            ck_assert_str_eq(leat_token_text(token), leat_token_text(&other));
        leat_token_finish(&other);
    }
}

static void restore(layer_fixture fixture[], leat_token *token)
{
    for (int r = 0; r < options.world_size; r++) {
        int status = leat_data_layer_restore(fixture[r].layer, token);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    }
}

static const struct {
    int count, batch, ranks;
} cases[] = {{11, 4, 1}, {12, 4, 1}, {11, 2, 2}, {11, 1, 3}, {13, 3, 4},
             {7, 7, 1},  {9, 1, 5},  {20, 3, 2}, {1, 1, 1},  {16, 5, 3}};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void use_case(int i, bad_records_way way)
{
    records.count = cases[i].count;
    records.way = way;
    options.batch_size = cases[i].batch;
    options.world_size = cases[i].ranks;
    leat_pipeline_unref(pipeline);
    pipeline = bad_records_pipeline(&records);
    note_samples();
}

START_TEST(every_rank_gets_what_the_model_says)
{
    layer_fixture fixture[RANKS_MAX];
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(_i, (bad_records_way)way);
        for (int end = 0; end < 4; end++) {
            options.epoch_end = (leat_epoch_end)end;
            open_ranks(fixture);
            (void)take_batches(fixture, 0, 14);
            close_ranks(fixture);
        }
    }
}
END_TEST

/* Less than a sample for each rank in an epoch: some batches have none. */
START_TEST(an_epoch_may_be_smaller_than_a_batch)
{
    layer_fixture fixture[RANKS_MAX];
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(0, (bad_records_way)way);
        records.count = 3;
        options.batch_size = 2;
        options.world_size = 5;
        note_samples();
        for (int end = LEAT_EPOCH_END_PARTIAL; end <= LEAT_EPOCH_END_PAD;
             end++) {
            options.epoch_end = (leat_epoch_end)end;
            open_ranks(fixture);
            (void)take_batches(fixture, 0, 12);
            close_ranks(fixture);
        }
    }
}
END_TEST

/* Threads, depth, who reads and who helps change nothing. */
START_TEST(so_they_are_read_in_every_manner)
{
    layer_fixture fixture[RANKS_MAX];
    use_case(4, (bad_records_way)_i);
    for (int end = 1; end < 4; end++)
        for (int manner = 0; manner < 24; manner++) {
            options.epoch_end = (leat_epoch_end)end;
            options.reader_thread = (leat_reader_thread)(manner % 3);
            options.workers = manner / 3 % 2 ? 8 : 1;
            options.prefetch = manner / 6 % 2 ? 5 : 1;
            options.caller_helps =
                manner / 12 ? LEAT_CALLER_HELPS_OFF : LEAT_CALLER_HELPS_AUTO;
            options.rng = manner % 2 ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
            open_ranks(fixture);
            (void)take_batches(fixture, 0, 8);
            close_ranks(fixture);
        }
}
END_TEST

START_TEST(so_they_are_on_the_only_core)
{
    layer_fixture fixture[RANKS_MAX];
    layer_fixture_use_one_core(1);
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(0, (bad_records_way)way);
        options.rng = LEAT_RNG_CAFFE;
        note_samples();
        for (int end = 1; end < 4; end++) {
            options.epoch_end = (leat_epoch_end)end;
            open_ranks(fixture);
            (void)take_batches(fixture, 0, 20);
            close_ranks(fixture);
        }
    }
    layer_fixture_use_one_core(0);
}
END_TEST

/* From every batch on: as they were, and as other options would have it. */
static void check_resumes(void)
{
    layer_fixture fixture[RANKS_MAX];
    leat_token token[9];
    int64_t place[9] = {0};
    const leat_data_layer_options saved = options;
    open_ranks(fixture);
    for (int k = 0; k < 9; k++) {
        leat_token_init(&token[k]);
        save(fixture, &token[k]);
        if (k < 8)
            place[k + 1] = take_batches(fixture, place[k], 1);
    }
    close_ranks(fixture);
    for (int k = 0; k < 9; k++)
        for (int end = 0; end < 4; end++) {
            bool is_other = (leat_epoch_end)end != saved.epoch_end;
            options = saved;
            options.epoch_end = (leat_epoch_end)end;
            if (is_other && options.rng == LEAT_RNG_LEAT) {
                options.world_size = 1 + (k + end) % 3;
                options.batch_size = 1 + k % 3;
            }
            if (records.count < options.batch_size * options.world_size)
                continue;
            open_ranks(fixture);
            (void)take_batches(fixture, 0, 2);
            restore(fixture, &token[k]);
            int64_t now = take_batches(fixture, place[k], 1);
            leat_token again;
            leat_token_init(&again);
            save(fixture, &again);
            if (!is_other && k < 8)
                ck_assert_str_eq(leat_token_text(&again),
                                 leat_token_text(&token[k + 1]));
            leat_token_finish(&again);
            (void)take_batches(fixture, now, 9);
            close_ranks(fixture);
        }
    for (int k = 0; k < 9; k++)
        leat_token_finish(&token[k]);
    options = saved;
}

START_TEST(a_layer_resumes_at_every_batch_under_any_epoch_end)
{
    static const int of[] = {0, 2, 4, 8};
    for (int way = 0; way < BAD_RECORDS_WAYS; way++)
        for (int i = 0; i < 4; i += IS_SANITIZED ? 2 : 1) {
            use_case(of[i], (bad_records_way)way);
            options.epoch_end = (leat_epoch_end)_i;
            check_resumes();
        }
}
END_TEST

/* Words of left-out samples are drawn, too: a position has its own. */
START_TEST(so_it_does_with_caffes_generator)
{
    options.rng = LEAT_RNG_CAFFE;
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(0, (bad_records_way)way);
        options.epoch_end = (leat_epoch_end)_i;
        check_resumes();
    }
}
END_TEST

/* A token is a position: the bytes are those of a layer that wraps. */
START_TEST(the_token_is_the_same_as_that_of_a_layer_that_wraps)
{
    leat_token token[4];
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(1, (bad_records_way)way);
        for (int end = 0; end < 4; end++) {
            layer_fixture fixture[1];
            options.epoch_end = (leat_epoch_end)end;
            open_ranks(fixture);
            (void)take_batches(fixture, 0, 2);
            leat_token_init(&token[end]);
            save(fixture, &token[end]);
            ck_assert_str_eq(leat_token_text(&token[0]),
                             leat_token_text(&token[end]));
            close_ranks(fixture);
        }
        for (int end = 0; end < 4; end++)
            leat_token_finish(&token[end]);
    }
}
END_TEST

START_TEST(batches_keep_their_numbers_over_a_restore)
{
    layer_fixture fixture[1];
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(0, (bad_records_way)way);
        options.epoch_end = (leat_epoch_end)_i;
        open_ranks(fixture);
        int64_t place = 0;
        for (int k = 0; k < 12; k++) {
            leat_token token;
            leat_token_init(&token);
            place = take_batches(fixture, place, 1);
            ck_assert_int_eq(leat_data_layer_batch(fixture[0].layer)->number,
                             k);
            save(fixture, &token);
            restore(fixture, &token);
            leat_token_finish(&token);
        }
        close_ranks(fixture);
    }
}
END_TEST

/* The first epoch's last batch of 4 is full, so that its end is not met yet. */
START_TEST(other_batches_are_numbered_from_an_epochs_end_on)
{
    static const int batches[] = {0, 2, 3, 3}; /* of 5, in 12 samples */
    layer_fixture fixture[RANKS_MAX];
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        leat_token token;
        leat_token_init(&token);
        use_case(1, (bad_records_way)way);
        options.epoch_end = (leat_epoch_end)_i;
        open_ranks(fixture);
        int64_t place = take_batches(fixture, 0, 3);
        save(fixture, &token);
        close_ranks(fixture);
        options.batch_size = 1;
        options.world_size = 5;
        note_samples();
        open_ranks(fixture);
        restore(fixture, &token);
        for (int k = 0; k < 4; k++) {
            place = take_batches(fixture, place, 1);
            for (int r = 0; r < options.world_size; r++)
                ck_assert_int_eq(
                    leat_data_layer_batch(fixture[r].layer)->number,
                    batches[_i] + k);
        }
        close_ranks(fixture);
        leat_token_finish(&token);
    }
}
END_TEST

START_TEST(a_group_takes_the_batches_of_a_layer_in_turn)
{
    const char *const devices[] = {"cpu", "cpu", "cpu"};
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        use_case(0, (bad_records_way)way);
        for (int n = 2; n < 4; n++) {
            leat_data_layer_group *group;
            int64_t place = 0;
            options.epoch_end = (leat_epoch_end)_i;
            ck_assert_int_eq(leat_data_layer_group_create(&group, pipeline,
                                                          &options, devices, n),
                             LEAT_OK);
            ck_assert_int_eq(leat_data_layer_group_setup(group, NULL, 0),
                             LEAT_OK);
            for (int k = 0; k < 13; k++) {
                const extent at = batch_after(place);
                layer_fixture one = {leat_data_layer_group_member(group, k % n),
                                     {NULL, NULL}};
                ck_assert_int_eq(
                    leat_data_layer_forward(one.layer, NULL, 0, LEAT_HOST),
                    LEAT_OK);
                for (int i = 0; i < 2; i++)
                    one.top[i] = leat_data_layer_top(one.layer, i);
                check_batch(&one, &at, 0);
                place = at.end;
            }
            leat_data_layer_group_destroy(group);
        }
    }
}
END_TEST

/* The labels of the bad record's replacement, the next epoch's first. */
START_TEST(what_was_left_out_replaces_a_bad_record_after_it)
{
    layer_fixture fixture;
    records.kind[0] = BAD_RECORDS_SHORT;
    records.way = (bad_records_way)_i;
    options.batch_size = 4;
    options.epoch_end = LEAT_EPOCH_END_DROP;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    pipeline = bad_records_pipeline(&records);
    fixture = layer_fixture_open(pipeline, &options);
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    const leat_batch *batch = leat_data_layer_batch(fixture.layer);
    ck_assert_int_eq(batch->epoch, 1);
    ck_assert_int_eq(batch->bad, 1);
    /* Records 8 to 10 are left out; a chain in order has the last one that it
       delivered. */
    ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                       records.way == BAD_RECORDS_IN_ORDER ? 1007 : 1010);
    layer_fixture_close(&fixture);
}
END_TEST

/* Nor does it fail a batch, or count. */
START_TEST(a_bad_record_that_is_left_out_is_none)
{
    layer_fixture fixture;
    leat_stats stats = {.size = sizeof(stats)};
    records.kind[8] = BAD_RECORDS_UNREADABLE;
    records.way = (bad_records_way)(_i % BAD_RECORDS_WAYS);
    options.batch_size = 4;
    options.epoch_end = LEAT_EPOCH_END_DROP;
    options.on_error =
        _i < BAD_RECORDS_WAYS ? LEAT_ON_ERROR_FAIL : LEAT_ON_ERROR_ZERO;
    pipeline = bad_records_pipeline(&records);
    fixture = layer_fixture_open(pipeline, &options);
    for (int k = 0; k < 9; k++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.bad_records, 0);
    layer_fixture_close(&fixture);
}
END_TEST

static leat_pipeline *evaluated(int64_t n, const float *images, int32_t *labels)
{
    leat_pipeline *out;
    const leat_memory_field fields[] = {
        {"data", LEAT_FLOAT32, 3, {1, 2, 2}, images},
        {"label", LEAT_INT32, 0, {0}, labels}};
    for (int32_t i = 0; i < n; i++)
        labels[i] = i;
    ck_assert_int_eq(leat_pipeline_memory(&out, fields, 2, n), LEAT_OK);
    return out;
}

START_TEST(an_evaluation_counts_each_record_once)
{
    enum { COUNT = 10000, BATCH = 64, WHOLE = COUNT / BATCH };
    static float images[COUNT * 4];
    static int32_t labels[COUNT];
    static char seen[COUNT];
    int64_t count, valid = 0;
    leat_stats stats = {.size = sizeof(stats)};
    transform.crop_size = 0;
    options.phase = LEAT_TEST;
    options.batch_size = BATCH;
    options.epoch_end = (leat_epoch_end)_i;
    pipeline = evaluated(COUNT, images, labels);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_count(fixture.layer, &count), LEAT_OK);
    ck_assert_int_eq(count, COUNT);
    memset(seen, 0, sizeof(seen));
    for (int k = 0; k < (COUNT + BATCH - 1) / BATCH; k++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const leat_batch *batch = leat_data_layer_batch(fixture.layer);
        ck_assert_int_eq(batch->epoch, 0);
        ck_assert_int_eq(batch->valid, k < WHOLE ? BATCH : COUNT % BATCH);
        for (int i = 0; i < batch->valid; i++)
            seen[(int)layer_fixture_label(&fixture, i)]++;
        valid += batch->valid;
    }
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.samples, valid);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_batch(fixture.layer)->epoch, 1);
    layer_fixture_close(&fixture);
}
END_TEST

/* In a smaller batch, too. */
START_TEST(tops_that_are_copied_keep_their_addresses)
{
    enum { FULL = 4 * 2 * 3 * 3 * (int)sizeof(float) };
    layer_fixture fixture[1] = {{0}};
    use_case(0, BAD_RECORDS_RANDOM_ACCESS);
    options.epoch_end = LEAT_EPOCH_END_PARTIAL;
    options.top_mode = LEAT_TOP_COPY;
    open_ranks(fixture);
    const void *first = leat_blob_cpu_data(fixture[0].top[0]);
    ck_assert_uint_eq(leat_blob_bytes(fixture[0].top[0]), FULL);
    int64_t place = 0;
    for (int k = 0; k < 9; k++) {
        place = take_batches(fixture, place, 1);
        ck_assert_ptr_eq(leat_blob_cpu_data(fixture[0].top[0]), first);
    }
    close_ranks(fixture);
}
END_TEST

/* A single pass: each rank gets as many batches, then the end. */
static void check_single_pass(int64_t batch, int ranks)
{
    int64_t all = batch * ranks;
    int rest = (int)(records.count % all);
    int whole = (int)(records.count / all);
    bool has_rest = rest > 0 && options.epoch_end != LEAT_EPOCH_END_DROP;
    options.batch_size = batch;
    options.world_size = ranks;
    for (int r = 0; r < ranks; r++) {
        options.rank = r;
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        leat_token token;
        leat_token_init(&token);
        for (int k = 0; k < whole + has_rest; k++) {
            const extent at = {k * all,
                               k < whole ? (k + 1) * all : records.count};
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            check_batch(&fixture, &at, r);
        }
        ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
        ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                         LEAT_END);
        leat_token_finish(&token);
        layer_fixture_close(&fixture);
    }
}

START_TEST(a_single_pass_ends_in_the_same_batch_for_all_ranks)
{
    records.way = BAD_RECORDS_IN_ORDER;
    pipeline = bad_records_pipeline(&records);
    note_samples();
    records.single_pass = 1;
    leat_pipeline_unref(pipeline);
    pipeline = bad_records_pipeline(&records);
    options.epoch_end = (leat_epoch_end)_i;
    check_single_pass(4, 1);
    check_single_pass(11, 1);
    check_single_pass(2, 3);
    check_single_pass(1, 3);
    check_single_pass(1, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("epoch_end");
    TCase *tcase = tcase_create("epoch_end");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 100);
    tcase_add_loop_test(tcase, every_rank_gets_what_the_model_says, 0, CASES);
    tcase_add_test(tcase, an_epoch_may_be_smaller_than_a_batch);
    tcase_add_loop_test(tcase, so_they_are_read_in_every_manner, 0,
                        BAD_RECORDS_WAYS);
    tcase_add_test(tcase, so_they_are_on_the_only_core);
    tcase_add_loop_test(
        tcase, a_layer_resumes_at_every_batch_under_any_epoch_end, 0, 4);
    tcase_add_loop_test(tcase, so_it_does_with_caffes_generator, 0, 4);
    tcase_add_test(tcase, the_token_is_the_same_as_that_of_a_layer_that_wraps);
    tcase_add_loop_test(tcase, batches_keep_their_numbers_over_a_restore, 1, 4);
    tcase_add_loop_test(tcase, other_batches_are_numbered_from_an_epochs_end_on,
                        1, 4);
    tcase_add_loop_test(tcase, a_group_takes_the_batches_of_a_layer_in_turn, 1,
                        4);
    tcase_add_loop_test(tcase, what_was_left_out_replaces_a_bad_record_after_it,
                        0, BAD_RECORDS_WAYS);
    tcase_add_loop_test(tcase, a_bad_record_that_is_left_out_is_none, 0,
                        2 * BAD_RECORDS_WAYS);
    tcase_add_loop_test(tcase, an_evaluation_counts_each_record_once,
                        LEAT_EPOCH_END_PARTIAL, LEAT_EPOCH_END_PAD + 1);
    tcase_add_test(tcase, tops_that_are_copied_keep_their_addresses);
    tcase_add_loop_test(
        tcase, a_single_pass_ends_in_the_same_batch_for_all_ranks, 1, 4);
    return suite_run(suite);
}
