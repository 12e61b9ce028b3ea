/* Tokens of several ranks, and the end of a single pass, for readers of each
 * kind: with a length that is known or not, in order or by index. */
#include "support/sanitizer.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 4, COUNT_MAX = 7, STEPS = 8 };

/* What a reader can do. */
enum {
    COUNTS = 1,
    BY_INDEX = 2,
    SINGLE_PASS = 4,
    OVER_ANOTHER = 8,
    KINDS = 16
};

typedef struct kind_reader {
    leat_reader reader;
    leat_reader *upstream;
    leat_position at;
} kind_reader;

static int kind;
static int count;
static leat_pipeline *pipeline;
static const float values[COUNT_MAX] = {0, 1, 2, 3, 4, 5, 6};

static int kind_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec field = {.name = "x", .dtype = LEAT_FLOAT32};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int fill(int64_t i, leat_sample *sample)
{
    sample->from.source = "kind";
    sample->from.record = i;
    return leat_sample_set(sample, sample->nfields, LEAT_FLOAT32, 0, NULL,
                           &values[i]);
}

static int kind_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    kind_reader *self = (kind_reader *)reader;
    while (*got < n) {
        if (self->at.index == count)
            return LEAT_END;
        int status = fill(self->at.index++, out[*got]);
        if (status)
            return status;
        ++*got;
    }
    return LEAT_OK;
}

static int kind_seek(leat_reader *reader, leat_position to, leat_token *mark)
{
    (void)mark;
    if (to.epoch > 0 && (kind & SINGLE_PASS))
        return leat_error(LEAT_EUNSUPPORTED, "there is one pass");
    if (to.index > 0 && !(kind & COUNTS))
        return leat_error(LEAT_EUNSUPPORTED, "it begins at the beginning");
    if (to.index > count)
        return leat_error(LEAT_EINVAL, "there are %d", count);
    ((kind_reader *)reader)->at = to;
    return LEAT_OK;
}

static int kind_count(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = count;
    return LEAT_OK;
}

static int kind_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    int status = LEAT_OK;
    (void)reader;
    /* A single pass has no others to read. */
    for (; *got < n && !status; *got += !status)
        status = at[*got].epoch > 0 && (kind & SINGLE_PASS)
                     ? leat_error(LEAT_EIO, "past the end")
                     : fill(at[*got].index, out[*got]);
    return status;
}

static void kind_cancel(leat_reader *reader)
{
    leat_reader *upstream = ((kind_reader *)reader)->upstream;
    if (upstream)
        leat_reader_cancel(upstream);
}

static void kind_close(leat_reader *reader)
{
    leat_reader_close(((kind_reader *)reader)->upstream);
    free(reader);
}

static leat_reader_ops ops;

static int kind_open(const leat_open *open, leat_reader **out)
{
    kind_reader *self = calloc(1, sizeof(*self));
    self->reader.ops = &ops;
    if (open->nupstream > 0)
        self->upstream = open->upstream[0];
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type type = {
    .size = sizeof(type), .name = "kind", .max_upstream = 1, .open = kind_open};

static void open_pipeline(void)
{
    const leat_memory_field field = {
        .name = "x", .dtype = LEAT_FLOAT32, .data = values};
    leat_pipeline *other;
    int n = kind & OVER_ANOTHER ? 1 : 0;
    ops = (leat_reader_ops){.size = sizeof(ops),
                            .name = "kind",
                            .fields = kind_fields,
                            .next = kind_next,
                            .seek = kind_seek,
                            .cancel = kind_cancel,
                            .close = kind_close};
    if (kind & COUNTS)
        ops.count = kind_count;
    if (kind & BY_INDEX)
        ops.read_at = kind_read_at;
    ck_assert_int_eq(leat_pipeline_memory(&other, &field, 1, COUNT_MAX),
                     LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, &other, n),
        LEAT_OK);
    leat_pipeline_unref(other);
}

/* Whether there is such a reader. */
static bool is_possible(void)
{
    return !(kind & BY_INDEX) || (kind & COUNTS);
}

static leat_data_layer *open_layer(int rank, int ranks, int batch,
                                   leat_epoch_end epoch_end)
{
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = batch,
                                             .rank = rank,
                                             .world_size = ranks,
                                             .workers = 1,
                                             .epoch_end = epoch_end,
                                             .has_random_seed = 1,
                                             .random_seed = 1};
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    return layer;
}

/* What a forward gives: its status, and the epoch and records of the batch. */
typedef struct step {
    int status;
    int n;
    int64_t epoch;
    int64_t record[8];
} step;

static step forward(leat_data_layer *layer)
{
    step out;
    memset(&out, 0, sizeof(out));
    out.status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
    ck_assert_msg(out.status == LEAT_OK || out.status == LEAT_END, "%s",
                  leat_last_error());
    if (out.status)
        return out;
    const leat_batch *batch = leat_data_layer_batch(layer);
    out.n = batch->valid;
    out.epoch = batch->epoch;
    for (int i = 0; i < batch->valid; i++)
        out.record[i] = batch->from[i].record;
    return out;
}

/* A layer restored by the token gives the same. */
static void check_resume(leat_token *token, int rank, int ranks, int batch,
                         leat_epoch_end epoch_end, const step *expected)
{
    leat_data_layer *layer = open_layer(rank, ranks, batch, epoch_end);
    int status = leat_data_layer_restore(layer, token);
    step next = forward(layer);
    ck_assert_int_eq(next.status, status);
    /* A rank that has no sample left does not wait for the others' last. */
    if (status != LEAT_END || expected->n > 0)
        ck_assert_mem_eq(&next, expected, sizeof(next));
    leat_data_layer_destroy(layer);
}

/*
 * Every rank's token of a step is the same. One goes on by `*token`, that of
 * the step before, which becomes this one's. Whether all have ended.
 */
static bool check_step(leat_data_layer *const layer[], int ranks, int batch,
                       leat_epoch_end epoch_end, int number, leat_token *token)
{
    leat_token own, first;
    leat_token_init(&own);
    leat_token_init(&first);
    step given[RANKS_MAX];
    int n = 0;
    for (int r = 0; r < ranks; r++) {
        given[r] = forward(layer[r]);
        if (given[r].status)
            continue;
        leat_token *to = n++ > 0 ? &own : &first;
        ck_assert_int_eq(leat_data_layer_save(layer[r], to), LEAT_OK);
        ck_assert_msg(
            strcmp(leat_token_text(to), leat_token_text(&first)) == 0,
            "kind %d, %d samples, %d ranks, batch %d: rank %d has %s, "
            "not %s",
            kind, count, ranks, batch, r, leat_token_text(to),
            leat_token_text(&first));
    }
    int rank = number % ranks;
    if (number > 0)
        check_resume(token, rank, ranks, batch, epoch_end, &given[rank]);
    leat_token_finish(&own);
    leat_token_finish(token);
    *token = first;
    return n == 0;
}

/* Step by step, with as many ranks. */
static void check_steps(int ranks, int batch, leat_epoch_end epoch_end)
{
    leat_data_layer *layer[RANKS_MAX];
    leat_token token;
    leat_token_init(&token);
    for (int r = 0; r < ranks; r++)
        layer[r] = open_layer(r, ranks, batch, epoch_end);
    bool is_over = false;
    for (int s = 0; s < STEPS && !is_over; s++)
        is_over = check_step(layer, ranks, batch, epoch_end, s, &token);
    ck_assert_int_eq(is_over, (kind & SINGLE_PASS) != 0);
    for (int r = 0; r < ranks; r++)
        leat_data_layer_destroy(layer[r]);
    leat_token_finish(&token);
}

static const leat_epoch_end epoch_ends[] = {
    LEAT_EPOCH_END_WRAP, LEAT_EPOCH_END_PARTIAL, LEAT_EPOCH_END_PAD};

/* _i: the kind, and what becomes of the end of an epoch. */
START_TEST(every_rank_has_the_same_token)
{
    kind = _i % KINDS;
    leat_epoch_end epoch_end = epoch_ends[_i / KINDS];
    if (!is_possible())
        return;
    open_pipeline();
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++)
        for (count = ranks; count <= COUNT_MAX;
             count += IS_SANITIZED ? 3 : 1 + _i % 2)
            for (int batch = 1; batch <= 3; batch++)
                check_steps(ranks, batch, epoch_end);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Each sample once, then the end, and so after a restore there. */
START_TEST(a_single_pass_ends_on_every_rank)
{
    kind = _i % KINDS | SINGLE_PASS;
    leat_token token;
    leat_token_init(&token);
    if (!is_possible())
        return;
    open_pipeline();
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++)
        for (count = ranks; count <= COUNT_MAX; count++) {
            int seen[COUNT_MAX] = {0};
            for (int r = 0; r < ranks; r++) {
                leat_data_layer *layer =
                    open_layer(r, ranks, 2, LEAT_EPOCH_END_WRAP);
                step got = forward(layer);
                for (int s = 0; s < STEPS && !got.status; s++) {
                    ck_assert_int_eq(got.epoch, 0);
                    for (int i = 0; i < got.n; i++)
                        seen[got.record[i]]++;
                    got = forward(layer);
                }
                ck_assert_int_eq(got.status, LEAT_END);
                ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
                ck_assert_int_eq(leat_data_layer_restore(layer, &token),
                                 LEAT_END);
                ck_assert_int_eq(forward(layer).status, LEAT_END);
                leat_data_layer_destroy(layer);
            }
            for (int i = 0; i < count; i++)
                ck_assert_int_eq(seen[i], 1);
        }
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rank_tokens");
    TCase *tcase = tcase_create("rank_tokens");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, every_rank_has_the_same_token, 0, 3 * KINDS);
    tcase_add_loop_test(tcase, a_single_pass_ends_on_every_rank, 0, KINDS);
    return suite_run(suite);
}
