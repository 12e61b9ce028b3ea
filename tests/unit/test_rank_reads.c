/* One rank of several over an indexed reader reads its own records alone. */
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RECORDS = 800, RANKS = 8, BATCH = 10, PIXELS = 4 };

static unsigned char pixels[PIXELS];
static atomic_llong reads;  /* records that were read, */
static atomic_llong others; /* and of those, other ranks' */
static atomic_llong walked; /* records that next or skip came by */
static int reading_rank;

static int indexed_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    static const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, 2, 2}};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int indexed_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    (void)reader;
    (void)out;
    *got = 0;
    atomic_fetch_add(&walked, n);
    return leat_error(LEAT_EIO, "the records were to be read by index");
}

static int indexed_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    (void)reader;
    atomic_fetch_add(&walked, n);
    *skipped = n;
    return LEAT_OK;
}

static int indexed_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    (void)reader;
    (void)position;
    (void)mark;
    return LEAT_OK;
}

static int indexed_count(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = RECORDS;
    return LEAT_OK;
}

static int indexed_read_at(leat_reader *reader, const leat_position at[],
                           leat_sample *const out[], int n, int *got)
{
    (void)reader;
    int status = LEAT_OK;
    for (; *got < n && !status; *got += !status) {
        leat_sample *sample = out[*got];
        const int64_t shape[] = {1, 2, 2};
        atomic_fetch_add(&reads, 1);
        atomic_fetch_add(&others, at[*got].index % RANKS != reading_rank);
        sample->from.source = "indexed";
        sample->from.record = at[*got].index;
        status = leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, pixels);
    }
    return status;
}

static void indexed_cancel(leat_reader *reader)
{
    (void)reader;
}

static void indexed_close(leat_reader *reader)
{
    free(reader);
}

static const leat_reader_ops indexed_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "indexed",
    .fields = indexed_fields,
    .next = indexed_next,
    .seek = indexed_seek,
    .cancel = indexed_cancel,
    .close = indexed_close,
    .count = indexed_count,
    .read_at = indexed_read_at,
    .skip = indexed_skip,
};

static int indexed_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    *out = calloc(1, sizeof(**out));
    ck_assert_ptr_nonnull(*out);
    (*out)->ops = &indexed_ops;
    return LEAT_OK;
}

static const leat_reader_type indexed_type = {
    .size = sizeof(indexed_type), .name = "indexed", .open = indexed_open};

START_TEST(a_rank_reads_its_own_records_alone)
{
    enum { PREFETCH = 2, BATCHES = 3 * RECORDS / RANKS / BATCH };
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = BATCH,
                                             .prefetch = PREFETCH,
                                             .world_size = RANKS,
                                             .rank = _i,
                                             .random_seed = 3};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    reading_rank = _i;
    atomic_store(&reads, 0);
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &indexed_type, NULL, NULL,
                                          NULL, NULL, 0),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    leat_blob *top[] = {leat_data_layer_top(layer, 0)};
    for (int i = 0; i < BATCHES; i++)
        ck_assert_int_eq(leat_data_layer_forward(layer, top, 1, LEAT_HOST),
                         LEAT_OK);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(atomic_load(&walked), 0);
    ck_assert_int_eq(atomic_load(&others), 0);
    ck_assert_int_ge(atomic_load(&reads), BATCHES * BATCH);
    ck_assert_int_le(atomic_load(&reads), (BATCHES + PREFETCH + 1) * BATCH);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rank_reads");
    TCase *tcase = tcase_create("rank_reads");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_rank_reads_its_own_records_alone, 0, RANKS);
    return suite_run(suite);
}
