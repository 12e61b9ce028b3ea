/* A layer and the readers that it opens: what they are given, and what of them
 * a resume token holds. */
#include "support/layer_fixture.h"
#include "support/record_sequence.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the latest opening was given. */
static leat_open noted;
static uint64_t seed;
static int opened;

static leat_data_layer_options options;
static leat_transform_options transform;

/* Lets samples pass, and notes what it was opened with. */
typedef struct passing_reader {
    leat_reader reader;
    leat_reader *upstream;
} passing_reader;

static int passing_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    return leat_reader_fields(((passing_reader *)reader)->upstream, out, n);
}

static int passing_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    return leat_reader_pull(((passing_reader *)reader)->upstream, out, n, got);
}

static int passing_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    return leat_reader_seek(((passing_reader *)reader)->upstream, position,
                            mark);
}

static void passing_cancel(leat_reader *reader)
{
    leat_reader_cancel(((passing_reader *)reader)->upstream);
}

static void passing_close(leat_reader *reader)
{
    leat_reader_close(((passing_reader *)reader)->upstream);
    free(reader);
}

static const leat_reader_ops passing_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "passing",
    .fields = passing_fields,
    .next = passing_next,
    .seek = passing_seek,
    .cancel = passing_cancel,
    .close = passing_close,
};

static int passing_open(const leat_open *open, leat_reader **out)
{
    passing_reader *self = calloc(1, sizeof(*self));
    ck_assert_ptr_nonnull(self);
    *self = (passing_reader){{.ops = &passing_ops}, open->upstream[0]};
    noted = *open;
    seed = leat_open_seed(open);
    opened++;
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_argument arguments[] = {
    {.name = "threads",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "1",
     .max = 64},
    {.name = "size", .kind = LEAT_ARGUMENT_BYTES},
    {.name = "seed", .kind = LEAT_ARGUMENT_NUMBER},
    {0},
};

static const leat_reader_type passing_type = {
    .size = sizeof(leat_reader_type),
    .name = "passing",
    .arguments = arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = passing_open,
};

static void *hook_alloc(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return aligned_alloc(alignment,
                         (bytes + alignment - 1) / alignment * alignment);
}

static void hook_free(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(memory);
}

static const leat_reader_type cache_type = {
    .size = sizeof(leat_reader_type),
    .name = "cache",
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 1,
    .open = passing_open,
};

/* One of a type over `upstream`, which is given up. */
static leat_pipeline *decorate(const leat_reader_type *type, const char *text,
                               leat_pipeline *upstream)
{
    leat_pipeline *made;
    ck_assert_int_eq(
        leat_pipeline_create(&made, type, text, NULL, NULL, &upstream, 1),
        LEAT_OK);
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *passing(const char *text)
{
    return decorate(&passing_type, text, layer_fixture_pipeline());
}

static void set_up(void)
{
    opened = 0;
    layer_fixture_options(&options, &transform);
    options.batch_size = 4;
}

START_TEST(a_layer_opens_its_readers_with_its_own_options)
{
    const leat_allocator allocator = {sizeof(allocator), hook_alloc, hook_free,
                                      NULL};
    leat_pipeline *pipeline = passing(NULL);
    options.random_seed = 42;
    options.rank = 1;
    options.world_size = 3;
    options.host_allocator = &allocator;
    options.max_memory = 1 << 24;
    options.workers = 2;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(opened, 1);
    ck_assert_int_eq(noted.phase, LEAT_TRAIN);
    ck_assert_int_eq(noted.rank, 1);
    ck_assert_int_eq(noted.world_size, 3);
    ck_assert_ptr_eq((void *)(uintptr_t)noted.allocator->alloc,
                     (void *)(uintptr_t)hook_alloc);
    ck_assert_int_eq(noted.max_memory, 1 << 24);
    ck_assert_int_eq(noted.threads, 2);
    uint64_t first = noted.seed;
    layer_fixture_close(&fixture);
    options.random_seed = 43;
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_uint_ne(noted.seed, first);
    layer_fixture_close(&fixture);
    /* In TEST every rank takes all. */
    options.phase = LEAT_TEST;
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(noted.phase, LEAT_TEST);
    ck_assert_int_eq(noted.rank, 0);
    ck_assert_int_eq(noted.world_size, 1);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Whether a layer over `second` takes the token of one over `first`; both are
 * given up. */
static int resume(leat_pipeline *first, leat_pipeline *second)
{
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(first, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    uint32_t digest = layer_fixture_digest(&fixture);
    layer_fixture_close(&fixture);
    fixture = layer_fixture_open(second, &options);
    int status = leat_data_layer_restore(fixture.layer, &token);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_digest(&fixture) == digest,
                     status == LEAT_OK);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
    leat_pipeline_unref(first);
    leat_pipeline_unref(second);
    return status;
}

START_TEST(a_token_holds_what_changes_samples)
{
    static const struct {
        const char *first;
        const char *second;
        int status;
    } cases[] = {
        {NULL, "threads=8", LEAT_OK},
        {"threads=2,size=10K", "size=10240,threads=8", LEAT_OK},
        {"size=10K", "size=10kB", LEAT_EINVAL},
        {"size=10K", NULL, LEAT_EINVAL},
        {"seed=1", "seed=2", LEAT_EINVAL},
    };
    options.random_seed = 7;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = resume(passing(cases[i].first), passing(cases[i].second));
        ck_assert_msg(status == cases[i].status, "%zu: %s", i,
                      leat_last_error());
        if (status)
            ck_assert_ptr_nonnull(
                strstr(leat_last_error(), "another pipeline's"));
    }
}
END_TEST

START_TEST(a_cache_may_come_and_go)
{
    options.random_seed = 7;
    ck_assert_int_eq(resume(passing("size=1"),
                            decorate(&cache_type, NULL, passing("size=1"))),
                     LEAT_OK);
    ck_assert_int_eq(resume(decorate(&cache_type, NULL, passing("size=1")),
                            passing("size=1")),
                     LEAT_OK);
    ck_assert_int_eq(resume(passing("size=1"), layer_fixture_pipeline()),
                     LEAT_EINVAL);
}
END_TEST

START_TEST(a_seed_is_drawn_for_readers_that_choose)
{
    options.random_seed = -1;
    leat_pipeline *pipeline = passing(NULL);
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    uint64_t drawn = leat_data_layer_seed(fixture.layer);
    uint64_t first = seed;
    ck_assert_uint_ne(drawn, 0);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    /* Another is drawn, and the token brings the first one back. */
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_uint_ne(seed, first);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_uint_eq(leat_data_layer_seed(fixture.layer), drawn);
    ck_assert_uint_eq(seed, first);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(ranks_choose_by_one_seed)
{
    leat_pipeline *pipeline = passing(NULL);
    leat_pipeline *given = passing("seed=5");
    leat_data_layer *layer = NULL;
    options.random_seed = -1;
    options.world_size = 2;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                 "readers that choose at random need a "
                                 "random_seed, the same for all"));
    ck_assert_int_eq(leat_data_layer_create(&layer, given, &options), LEAT_OK);
    leat_data_layer_destroy(layer);
    uint64_t seeds[2];
    options.random_seed = 7;
    for (int i = 0; i < 2; i++) {
        options.rank = i;
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        seeds[i] = seed;
        layer_fixture_close(&fixture);
    }
    ck_assert_uint_eq(seeds[0], seeds[1]);
    leat_pipeline_unref(given);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Its reading end, with some lines in it. */
static int open_pipe(void)
{
    static const char lines[] = "1\n2\n3\n4\n5\n6\n7\n8\n";
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], lines, sizeof(lines) - 1),
                     sizeof(lines) - 1);
    close(ends[1]);
    return ends[0];
}

/* Whatever is between the pipe and the layer. */
START_TEST(what_came_through_a_pipe_is_not_resumed)
{
    static const char *const texts[] = {
        "text:/dev/fd/%d | columns:value=int64",
        "text:/dev/fd/%d | columns:value=int64 | shuffle:2 | prefetch",
        "(range:5) (text:/dev/fd/%d | columns:value=int64) | mix",
        "(range:5) (text:/dev/fd/%d | columns:value=int64) | chain",
        "files:/dev/fd/%d | interleave:(text:{} | columns:value=int64)",
    };
    const leat_top top = {
        .size = sizeof(top), .name = "value", .dtype = LEAT_INT64};
    const leat_data_layer_options plain = {.size = sizeof(plain),
                                           .batch_size = 2,
                                           .random_seed = 7,
                                           .top = &top,
                                           .ntop = 1};
    leat_token token;
    leat_token_init(&token);
    for (int i = 0; i < 5; i++) {
        char text[100];
        leat_pipeline *pipeline;
        leat_data_layer *layer;
        int end = open_pipe();
        snprintf(text, sizeof(text), texts[i], end);
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &plain),
                         LEAT_OK);
        ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                      leat_last_error());
        ck_assert_int_eq(leat_data_layer_save(layer, &token),
                         LEAT_EUNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "pipe or device"));
        ck_assert_int_eq(leat_data_layer_restore(layer, &token),
                         LEAT_EUNSUPPORTED);
        /* It goes on as if nothing had been asked. */
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        leat_data_layer_destroy(layer);
        leat_pipeline_unref(pipeline);
        close(end);
    }
    leat_token_finish(&token);
}
END_TEST

/* The last batch is a short one, so that no count says where the epoch ends.
 * What the samples are is in the file, of which nothing is left to read. */
START_TEST(a_stream_of_batches_resumes_where_an_epoch_ends)
{
    static const unsigned char images[16 + 5 * 6] = {0, 0, 8, 3, 0, 0, 0, 5,
                                                     0, 0, 0, 2, 0, 0, 0, 3};
    const leat_data_layer_options plain = {
        .size = sizeof(plain), .batch_size = 1, .top_type = LEAT_UINT8};
    leat_pipeline *pipeline;
    leat_data_layer *layer[2];
    leat_token token;
    record_sequence_begin();
    record_sequence_pack("images.gz", images, sizeof(images), 0);
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline, "idx:images.gz | batch:4 | unbatch"),
        LEAT_OK);
    leat_token_init(&token);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_data_layer_create(&layer[i], pipeline, &plain),
                         LEAT_OK);
        ck_assert_int_eq(leat_data_layer_setup(layer[i], NULL, 0), LEAT_OK);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(leat_data_layer_forward(layer[0], NULL, 0, LEAT_HOST),
                         LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(layer[0], &token), LEAT_OK);
    ck_assert_msg(!leat_data_layer_restore(layer[1], &token), "%s",
                  leat_last_error());
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_data_layer_forward(layer[i], NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const leat_batch *batch = leat_data_layer_batch(layer[i]);
        ck_assert_int_eq(batch->from[0].epoch, 1);
        ck_assert_int_eq(batch->from[0].position, 0);
        leat_data_layer_destroy(layer[i]);
    }
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
    record_sequence_end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_readers");
    TCase *tcase = tcase_create("layer_readers");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_layer_opens_its_readers_with_its_own_options);
    tcase_add_test(tcase, a_token_holds_what_changes_samples);
    tcase_add_test(tcase, a_cache_may_come_and_go);
    tcase_add_test(tcase, a_seed_is_drawn_for_readers_that_choose);
    tcase_add_test(tcase, ranks_choose_by_one_seed);
    tcase_add_test(tcase, what_came_through_a_pipe_is_not_resumed);
    tcase_add_test(tcase, a_stream_of_batches_resumes_where_an_epoch_ends);
    return suite_run(suite);
}
