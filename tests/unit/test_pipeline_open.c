/* What the readers of a pipeline are opened with. */
#include "base/memory.h"
#include "support/empty_reader.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* What each opening was given, in order, and its leat_open_seed. */
enum { NOTED_MAX = 16 };
static leat_open noted[NOTED_MAX];
static uint64_t seeds[NOTED_MAX];
static int opened;
static int closed;

typedef struct noting_reader {
    leat_reader reader;
    leat_reader **upstream; /* owned, as are they */
    int n;
} noting_reader;

static void noting_close(leat_reader *reader)
{
    noting_reader *self = (noting_reader *)reader;
    for (int i = 0; i < self->n; i++)
        leat_reader_close(self->upstream[i]);
    free(self->upstream);
    free(self);
    closed++;
}

static const leat_reader_ops noting_ops = {EMPTY_READER_OPS, .name = "noting",
                                           .close = noting_close};

static int noting_open(const leat_open *open, leat_reader **out)
{
    size_t n = (size_t)open->nupstream;
    noting_reader *self = calloc(1, sizeof(*self));
    leat_reader **upstream = calloc(n + 1, sizeof(*upstream));
    ck_assert(self && upstream);
    memcpy(upstream, open->upstream, n * sizeof(*upstream));
    *self = (noting_reader){{.ops = &noting_ops}, upstream, open->nupstream};
    noted[opened % NOTED_MAX] = *open;
    seeds[opened++ % NOTED_MAX] = leat_open_seed(open);
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_argument arguments[] = {
    {.name = "seed", .kind = LEAT_ARGUMENT_NUMBER},
    {0},
};

static const leat_reader_type noting_type = {
    .size = sizeof(leat_reader_type),
    .name = "noting",
    .arguments = arguments,
    .argument_size = sizeof(leat_argument),
    .max_upstream = LEAT_MAX_UPSTREAM,
    .open = noting_open,
};

static void set_up(void)
{
    opened = closed = 0;
    memset(noted, 0, sizeof(noted));
}

static leat_pipeline *noting(const char *text, leat_pipeline *const upstream[],
                             int n)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &noting_type, text, NULL,
                                          NULL, upstream, n),
                     LEAT_OK);
    return pipeline;
}

/* Four readers: `pair` reads `decorator`, which reads `source`, and `source`.
   They are opened source, decorator, source, pair. */
static leat_pipeline *make_tree(void)
{
    leat_pipeline *source = noting(NULL, NULL, 0);
    leat_pipeline *both[2] = {noting(NULL, &source, 1), source};
    leat_pipeline *pair = noting(NULL, both, 2);
    leat_pipeline_unref(both[0]);
    leat_pipeline_unref(source);
    return pair;
}

static void open_and_close(const leat_pipeline *pipeline,
                           const leat_open_options *options)
{
    leat_reader *reader;
    opened = closed = 0;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, options, &reader),
                     LEAT_OK);
    leat_reader_close(reader);
    ck_assert_int_eq(closed, opened);
}

START_TEST(every_reader_is_told_for_whom_it_is_opened)
{
    const leat_allocator allocator = {.size = sizeof(allocator)};
    const leat_open_options options = {.size = sizeof(options),
                                       .seed = 7,
                                       .phase = LEAT_TEST,
                                       .rank = 2,
                                       .world_size = 3,
                                       .allocator = &allocator,
                                       .max_memory = 1 << 20,
                                       .threads = 5};
    leat_pipeline *tree = make_tree();
    open_and_close(tree, &options);
    ck_assert_int_eq(opened, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(noted[i].size, sizeof(leat_open));
        ck_assert_ptr_nonnull(noted[i].args);
        ck_assert_int_eq(noted[i].phase, LEAT_TEST);
        ck_assert_int_eq(noted[i].rank, 2);
        ck_assert_int_eq(noted[i].world_size, 3);
        ck_assert_ptr_eq(noted[i].allocator, &allocator);
        ck_assert_int_eq(noted[i].max_memory, 1 << 20);
        ck_assert_int_eq(noted[i].threads, 5);
    }
    ck_assert_int_eq(noted[0].nupstream, 0);
    ck_assert_int_eq(noted[1].nupstream, 1);
    ck_assert_int_eq(noted[3].nupstream, 2);
    leat_pipeline_unref(tree);
}
END_TEST

START_TEST(by_default_it_is_opened_for_one_rank_in_training)
{
    leat_pipeline *source = noting(NULL, NULL, 0);
    leat_reader *reader;
    const leat_open_options init = LEAT_OPEN_OPTIONS_INIT;
    leat_open_options written = {.size = sizeof(written)};
    ck_assert_int_eq(leat_open_options_init(&written), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(source, &reader), LEAT_OK);
    leat_reader_close(reader);
    open_and_close(source, NULL);
    uint64_t seed = noted[0].seed;
    open_and_close(source, &init);
    ck_assert_uint_eq(noted[0].seed, seed);
    open_and_close(source, &written);
    ck_assert_uint_eq(noted[0].seed, seed);
    ck_assert_int_eq(noted[0].phase, LEAT_TRAIN);
    ck_assert_int_eq(noted[0].rank, 0);
    ck_assert_int_eq(noted[0].world_size, 1);
    ck_assert_ptr_null(noted[0].allocator);
    ck_assert_int_eq(noted[0].max_memory, 0);
    ck_assert_int_eq(noted[0].threads, 0);
    leat_pipeline_unref(source);
}
END_TEST

START_TEST(each_position_in_the_pipeline_has_a_seed_of_its_own)
{
    leat_open_options options = {.size = sizeof(options), .seed = 7};
    uint64_t first[4];
    leat_pipeline *tree = make_tree();
    open_and_close(tree, &options);
    for (int i = 0; i < 4; i++) {
        first[i] = noted[i].seed;
        ck_assert_uint_eq(seeds[i], first[i]);
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(first[i], first[k]);
    }
    open_and_close(tree, &options);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(noted[i].seed, first[i]);
    options.seed = 8;
    open_and_close(tree, &options);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_ne(noted[i].seed, first[i]);
    leat_pipeline_unref(tree);
}
END_TEST

/* Or a resumed run with a cache more would choose otherwise. */
START_TEST(a_reader_that_passes_all_on_leaves_the_seeds)
{
    leat_open_options options = {.size = sizeof(options), .seed = 7};
    leat_reader_type cache = noting_type;
    cache.passes_on = 1;
    cache.max_upstream = 1;
    leat_pipeline *source = noting(NULL, NULL, 0);
    leat_pipeline *shuffle = noting(NULL, &source, 1);
    leat_pipeline *cached, *end;
    open_and_close(shuffle, &options);
    uint64_t first[2] = {noted[0].seed, noted[1].seed};
    ck_assert_int_eq(
        leat_pipeline_create(&cached, &cache, NULL, NULL, NULL, &source, 1),
        LEAT_OK);
    leat_pipeline *again = noting(NULL, &cached, 1);
    ck_assert_int_eq(
        leat_pipeline_create(&end, &cache, NULL, NULL, NULL, &again, 1),
        LEAT_OK);
    open_and_close(end, &options);
    ck_assert_int_eq(opened, 4);
    ck_assert_uint_eq(noted[0].seed, first[0]);
    ck_assert_uint_eq(noted[2].seed, first[1]);
    leat_pipeline_unref(end);
    leat_pipeline_unref(again);
    leat_pipeline_unref(cached);
    leat_pipeline_unref(shuffle);
    leat_pipeline_unref(source);
}
END_TEST

START_TEST(a_seed_that_is_given_wins)
{
    leat_open_options options = {.size = sizeof(options), .seed = 7};
    leat_pipeline *source = noting("seed=12345", NULL, 0);
    open_and_close(source, &options);
    ck_assert_uint_eq(seeds[0], 12345);
    ck_assert_uint_ne(noted[0].seed, 12345);
    leat_pipeline_unref(source);
}
END_TEST

START_TEST(a_reader_opens_its_upstream_again)
{
    leat_open_options options = {.size = sizeof(options),
                                 .seed = 7,
                                 .phase = LEAT_TEST,
                                 .rank = 1,
                                 .world_size = 2,
                                 .threads = 3};
    leat_pipeline *source = noting(NULL, NULL, 0);
    leat_pipeline *decorator = noting(NULL, &source, 1);
    leat_reader *reader, *again[2];
    ck_assert_int_eq(leat_pipeline_open_with(decorator, &options, &reader),
                     LEAT_OK);
    leat_open open = noted[1];
    ck_assert_ptr_eq(open.pipeline[0], source);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_open_again(&open, open.pipeline[0], i, &again[i]),
                         LEAT_OK);
    ck_assert_int_eq(noted[2].phase, LEAT_TEST);
    ck_assert_int_eq(noted[2].rank, 1);
    ck_assert_int_eq(noted[2].world_size, 2);
    ck_assert_int_eq(noted[2].threads, 3);
    ck_assert_uint_ne(noted[2].seed, noted[3].seed);
    ck_assert_uint_ne(noted[2].seed, noted[0].seed);
    for (int i = 0; i < 2; i++)
        leat_reader_close(again[i]);
    leat_reader_close(reader);
    leat_pipeline_unref(decorator);
    leat_pipeline_unref(source);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
    static const struct {
        leat_open_options options;
        const char *line;
    } cases[] = {
        {{0}, "opening: options have size 0"},
        {{.size = sizeof(leat_open_options), .phase = (leat_phase)2},
         "phase is 2"},
        {{.size = sizeof(leat_open_options), .rank = 1}, "rank 1"},
        {{.size = sizeof(leat_open_options), .rank = -1, .world_size = 2},
         "rank -1"},
        {{.size = sizeof(leat_open_options), .world_size = -1},
         "world_size -1"},
        {{.size = sizeof(leat_open_options), .max_memory = -1},
         "max_memory -1"},
        {{.size = sizeof(leat_open_options), .threads = -1}, "threads -1"},
    };
    leat_pipeline *source = noting(NULL, NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_reader *reader = NULL;
        ck_assert_int_eq(
            leat_pipeline_open_with(source, &cases[i].options, &reader),
            LEAT_EINVAL);
        ck_assert_msg(strstr(leat_last_error(), cases[i].line) != NULL, "%s",
                      leat_last_error());
        ck_assert_ptr_null(reader);
    }
    leat_pipeline_unref(source);
    ck_assert_int_eq(opened, 0);
}
END_TEST

START_TEST(options_of_an_older_header_end_with_defaults)
{
    leat_open_options options = {.size =
                                     offsetof(leat_open_options, world_size),
                                 .seed = 7,
                                 .phase = LEAT_TEST,
                                 .world_size = 77,
                                 .threads = -1};
    leat_pipeline *source = noting(NULL, NULL, 0);
    open_and_close(source, &options);
    ck_assert_int_eq(noted[0].phase, LEAT_TEST);
    ck_assert_int_eq(noted[0].world_size, 1);
    leat_pipeline_unref(source);
}
END_TEST

START_TEST(a_reader_has_65536_upstreams_and_no_more)
{
    leat_pipeline **all = calloc(LEAT_MAX_UPSTREAM + 1, sizeof(*all));
    ck_assert_ptr_nonnull(all);
    leat_pipeline *source = noting(NULL, NULL, 0);
    for (int i = 0; i <= LEAT_MAX_UPSTREAM; i++)
        all[i] = source;
    leat_pipeline *most = noting(NULL, all, LEAT_MAX_UPSTREAM);
    open_and_close(most, NULL);
    ck_assert_int_eq(opened, LEAT_MAX_UPSTREAM + 1);
    leat_pipeline *none = NULL;
    ck_assert_int_eq(leat_pipeline_create(&none, &noting_type, NULL, NULL, NULL,
                                          all, LEAT_MAX_UPSTREAM + 1),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "65536"));
    leat_reader_type type = noting_type;
    type.max_upstream = LEAT_MAX_UPSTREAM + 1;
    ck_assert_int_eq(leat_reader_register(&type), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_upstream"));
    leat_pipeline_unref(most);
    leat_pipeline_unref(source);
    free(all);
}
END_TEST

START_TEST(opening_survives_every_failing_allocation)
{
    leat_pipeline *tree = make_tree();
    leat_reader *reader = NULL;
    int status;
    int n = 0;
    do {
        opened = closed = 0;
        leat__alloc_fail_at(n++);
        status = leat_pipeline_open(tree, &reader);
        leat__alloc_fail_at(-1);
        if (status) {
            ck_assert_int_eq(status, LEAT_ENOMEM);
            ck_assert_int_eq(closed, opened);
        }
    } while (status);
    /* For each an array of upstreams and a state; and the chain. */
    ck_assert_int_eq(n, 1 + 4 * 2 + 1);
    leat_reader_close(reader);
    leat_pipeline_unref(tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline_open");
    TCase *tcase = tcase_create("pipeline_open");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, every_reader_is_told_for_whom_it_is_opened);
    tcase_add_test(tcase, by_default_it_is_opened_for_one_rank_in_training);
    tcase_add_test(tcase, each_position_in_the_pipeline_has_a_seed_of_its_own);
    tcase_add_test(tcase, a_reader_that_passes_all_on_leaves_the_seeds);
    tcase_add_test(tcase, a_seed_that_is_given_wins);
    tcase_add_test(tcase, a_reader_opens_its_upstream_again);
    tcase_add_test(tcase, options_out_of_range_are_refused);
    tcase_add_test(tcase, options_of_an_older_header_end_with_defaults);
    tcase_add_test(tcase, a_reader_has_65536_upstreams_and_no_more);
    tcase_add_test(tcase, opening_survives_every_failing_allocation);
    return suite_run(suite);
}
