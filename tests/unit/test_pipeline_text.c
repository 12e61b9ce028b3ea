#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "support/empty_reader.h"
#include "support/index_decorators.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat_pipeline *parse(const char *text)
{
    leat_pipeline *pipeline = NULL;
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return pipeline;
}

/* A reader that only tells its argument. */
typedef struct teller {
    leat_reader reader;
    char path[256];
} teller;

static void teller_close(leat_reader *reader)
{
    free(reader);
}

static const leat_reader_ops teller_ops = {EMPTY_READER_OPS, .name = "teller",
                                           .close = teller_close};

static int teller_open(const leat_open *open, leat_reader **out)
{
    teller *self = calloc(1, sizeof(*self));
    ck_assert_ptr_nonnull(self);
    self->reader.ops = &teller_ops;
    strcpy(self->path, leat_args_at(open->args, 0));
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_argument teller_arguments[] = {
    {.name = "text", .positional = 1, .required = 1},
    {0},
};

static const leat_reader_type teller_type = {
    .size = sizeof(leat_reader_type),
    .name = "tell",
    .arguments = teller_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 0,
    .max_upstream = 1,
    .may_block = 1,
    .open = teller_open,
};

static int no_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    (void)out;
    return leat_error(LEAT_EUNSUPPORTED, "it is only a name");
}

static const leat_argument zip_arguments[] = {
    {.name = "threads",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "1",
     .max = 64},
    {.name = "size", .kind = LEAT_ARGUMENT_BYTES, .initial = "64K"},
    {.name = "mode", .kind = LEAT_ARGUMENT_WORD, .words = "SHORT|LONG"},
    {.name = "fields", .kind = LEAT_ARGUMENT_LIST},
    {0},
};

/* Reads several. */
static const leat_reader_type zip_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_zip",
    .arguments = zip_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = LEAT_MAX_UPSTREAM,
    .open = no_open,
};

static const leat_argument each_arguments[] = {
    {.name = "each",
     .kind = LEAT_ARGUMENT_PIPELINE,
     .positional = 1,
     .required = 1},
    {.name = "cycle", .kind = LEAT_ARGUMENT_NUMBER, .initial = "1"},
    {0},
};

/* Opens a pipeline for each of something. */
static const leat_reader_type each_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_each",
    .arguments = each_arguments,
    .argument_size = sizeof(leat_argument),
    .max_upstream = 1,
    .open = no_open,
};

static const leat_argument draw_arguments[] = {
    {.name = "seed", .kind = LEAT_ARGUMENT_NUMBER}, {0}};

/* Chooses at random. */
static const leat_reader_type draw_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_draw",
    .arguments = draw_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = no_open,
};

/* As a cache. */
static const leat_reader_type cache_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_cache",
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 1,
    .open = no_open,
};

/* As a cache, too: every epoch is the first. */
static const leat_reader_type first_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_first",
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 2,
    .open = no_open,
};

static void set_up(void)
{
    index_decorators_register();
    ck_assert_int_eq(leat_reader_register(&first_type), LEAT_OK);
    ck_assert_int_eq(leat_reader_register(&zip_type), LEAT_OK);
    ck_assert_int_eq(leat_reader_register(&each_type), LEAT_OK);
    ck_assert_int_eq(leat_reader_register(&cache_type), LEAT_OK);
    ck_assert_int_eq(leat_reader_register(&draw_type), LEAT_OK);
}

/* The path that the pipeline's last reader is given. */
static void told(const leat_pipeline *pipeline, char out[256])
{
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    strcpy(out, ((teller *)reader)->path);
    leat_reader_close(reader);
}

START_TEST(a_path_of_any_letters_comes_back_from_the_text)
{
    const char *const paths[] = {"a",       "a b", "a,b",  "a|b",    "a=b",
                                 "a\\b",    "a\\", " a",   "a ",     " ",
                                 "a\\ ",    "\\",  "\\\\", "a\\\\ ", "/x y/,=|",
                                 "k=v,k=v", "a:b", "|",    "| "};
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        leat_pipeline *pipeline;
        char path[256];
        char text[256];
        ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, paths[i], NULL),
                         LEAT_OK);
        strcpy(text, leat_pipeline_text(pipeline));
        leat_pipeline_unref(pipeline);
        memcpy(text, "tell", 4);
        pipeline = parse(text);
        told(pipeline, path);
        ck_assert_str_eq(path, paths[i]);
        ck_assert_str_eq(leat_pipeline_text(pipeline), text);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(a_bar_after_a_path_does_not_change_it)
{
    const char *const paths[] = {"a\\", "a ", "a\\\\", "a\\ ", "a|"};
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        leat_pipeline *pipeline;
        char first[256];
        char both[300];
        ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, paths[i], NULL),
                         LEAT_OK);
        strcpy(first, leat_pipeline_text(pipeline));
        leat_pipeline_unref(pipeline);
        snprintf(both, sizeof(both), " %s | test_shuffle:seed=7 ", first);
        pipeline = parse(both);
        snprintf(both, sizeof(both), "%s | test_shuffle:seed=7", first);
        ck_assert_str_eq(leat_pipeline_text(pipeline), both);
        leat_pipeline *again = parse(both);
        ck_assert_str_eq(leat_pipeline_text(again), both);
        leat_pipeline_unref(again);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(the_text_is_that_of_the_chain_in_order)
{
    leat_pipeline *pipeline =
        parse("  lmdb:a b|test_slice:skip=1,take=2  |   test_shuffle");
    ck_assert_str_eq(leat_pipeline_text(pipeline),
                     "lmdb:a b | test_slice:skip=1,take=2 | test_shuffle");
    ck_assert_int_eq(leat__pipeline_keeps_order(pipeline), 0);
    ck_assert_int_eq(leat__pipeline_may_block(pipeline), 0);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void refuse(const char *text, const char *why)
{
    leat_pipeline *pipeline = NULL;
    ck_assert_msg(leat_pipeline_parse(&pipeline, text) == LEAT_EINVAL, "%s",
                  text);
    ck_assert_msg(strstr(leat_last_error(), why) != NULL, "%s: %s", text,
                  leat_last_error());
    ck_assert_ptr_null(pipeline);
}

START_TEST(a_wrong_text_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "1:1: expected the name of a reader"},
        {"  ", "1:3: expected the name of a reader"},
        {"|", "1:1: expected the name of a reader"},
        {"lmdb:a|", "1:8: expected the name"},
        {"lmdb:a || test_shuffle", "1:9: expected the name"},
        {":a", "1:1: expected the name"},
        {"lmbd:a", "1:1: there is no reader \"lmbd\"; did you mean lmdb?"},
        {"lmdb:a | nothing", "1:10: there is no reader \"nothing\""},
        {"/nowhere/db", "; a database is lmdb:/nowhere/db"},
        {"../db | lmdb:b", "; a database is lmdb:../db"},
        {"lmdb", "1:1: lmdb: path is missing: the database"},
        {"lmdb:a,b", "1:8: the reader \"lmdb\" takes 1 argument, found 2"},
        {"lmdb:a=b", "1:6: the reader \"lmdb\" has no argument \"a\""},
        {"lmdb:a | test_shuffle:sead=7",
         "1:23: the reader \"test_shuffle\" has no argument \"sead\"; did you "
         "mean seed?"},
        {"lmdb:a | test_shuffle:seed=x",
         "1:28: test_shuffle: seed: expected 0 to 2147483647, found 'x'"},
        {"lmdb:a |\n  test_shuffle: seed = x ", "2:24: test_shuffle: seed"},
        {"lmdb:a | lmdb:b", "1:10: \"lmdb\" reads storage"},
        {"test_shuffle:seed=7", "1:1: \"test_shuffle\" reads 1 to 1"},
        {"(lmdb:a", "1:1: this parenthesis is not closed"},
        {"(lmdb:a) (lmdb:b", "1:10: this parenthesis is not closed"},
        {"(lmdb:a)) | test_zip", "1:9: expected | and a reader"},
        {"(lmdb:a) (lmdb:b)", "1:18: expected | and a reader"},
        {"(lmdb:a) test_shuffle", "1:10: expected | and a reader"},
        {"() | test_zip", "1:2: expected the name of a reader"},
        {"lmdb:a | (lmdb:b) | test_zip",
         "1:10: an upstream in parentheses is only possible at the beginning"},
        {"(lmdb:a) (lmdb:b) | test_shuffle", "1:21: \"test_shuffle\" reads 1"},
        {"(lmdb:a) (nothing:b) | test_zip", "1:11: there is no reader"},
        {"test_each:all", "1:11: test_each: each: expected a pipeline in"},
        {"test_each:(\n  lmdb:{},\n  depth=7)",
         "3:3: the reader \"lmdb\" has no argument \"depth\""},
        {"test_each:(lmdb:{}", "1:11: this parenthesis is not closed"},
        {"test_each:(lmdb:{}) x", "1:21: expected a comma, | or the end"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refuse(cases[i].text, cases[i].why);
}
END_TEST

START_TEST(the_shown_text_is_one_line)
{
    refuse("lmdb:a\n|\tnothing", "pipeline \"lmdb:a | nothing\", 2:3: there");
    ck_assert_ptr_null(strchr(leat_last_error(), '\n'));
}
END_TEST

/* Each has this text, which parses to the same text and hash again. */
START_TEST(a_text_comes_back_in_its_own_spelling)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"lmdb:a", "lmdb:a"},
        {" \t\r\nlmdb : a \n", "lmdb:a"},
        {"lmdb:set (old)", "lmdb:set \\(old\\)"},
        {"lmdb:a)", "lmdb:a\\)"},
        {"lmdb:a|test_shuffle : seed = 7", "lmdb:a | test_shuffle:seed=7"},
        {"(lmdb:a)", "lmdb:a"},
        {"((lmdb:a))", "lmdb:a"},
        {"(lmdb:a) | test_shuffle", "lmdb:a | test_shuffle"},
        {"(lmdb:a|test_shuffle)|test_zip", "lmdb:a | test_shuffle | test_zip"},
        {"(lmdb:a)(lmdb:b)|test_zip", "(lmdb:a) (lmdb:b) | test_zip"},
        {"\n( lmdb:a | test_slice:take=10 )\n( lmdb:b )\n| test_zip\n",
         "(lmdb:a | test_slice:take=10) (lmdb:b) | test_zip"},
        {"((lmdb:a) (lmdb:b) | test_zip) (lmdb:c) | test_zip | test_shuffle",
         "((lmdb:a) (lmdb:b) | test_zip) (lmdb:c) | test_zip | test_shuffle"},
        {"(lmdb:a (x)) (lmdb:b\\)) | test_zip",
         "(lmdb:a \\(x\\)) (lmdb:b\\)) | test_zip"},
        {"test_each: ( lmdb:{} | test_shuffle ) , cycle = 4",
         "test_each:(lmdb:{} | test_shuffle),cycle=4"},
        {"test_each:(test_each:(lmdb:{}))", "test_each:(test_each:(lmdb:{}))"},
        {"test_each:((lmdb:{}) (lmdb:{}) | test_zip)",
         "test_each:((lmdb:{}) (lmdb:{}) | test_zip)"},
        {"(test_each:(lmdb:{}),cycle=2) (lmdb:b) | test_zip",
         "(test_each:(lmdb:{}),cycle=2) (lmdb:b) | test_zip"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *pipeline = parse(cases[i].text);
        ck_assert_str_eq(leat_pipeline_text(pipeline), cases[i].wanted);
        leat_pipeline *again = parse(cases[i].wanted);
        ck_assert_str_eq(leat_pipeline_text(again), cases[i].wanted);
        ck_assert_uint_eq(leat__pipeline_hash(again),
                          leat__pipeline_hash(pipeline));
        leat_pipeline_unref(again);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(a_pipeline_of_code_comes_back_from_its_text)
{
    leat_pipeline *one, *two, *both, *again;
    ck_assert_int_eq(leat_pipeline_lmdb(&one, "a) | (b", NULL), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_create(&two, index_decorators_shuffle(),
                                          "seed=7", NULL, NULL, &one, 1),
                     LEAT_OK);
    leat_pipeline *const upstream[] = {one, two, one};
    ck_assert_int_eq(
        leat_pipeline_create(&both, &zip_type, NULL, NULL, NULL, upstream, 3),
        LEAT_OK);
    again = parse(leat_pipeline_text(both));
    ck_assert_str_eq(leat_pipeline_text(again), leat_pipeline_text(both));
    ck_assert_int_eq(again->nupstream, 3);
    ck_assert_str_eq(leat_args_at(&again->upstream[2]->args, 0), "a) | (b");
    ck_assert_uint_eq(leat__pipeline_hash(again), leat__pipeline_hash(both));
    leat_pipeline_unref(again);
    leat_pipeline_unref(both);
    leat_pipeline_unref(two);
    leat_pipeline_unref(one);
}
END_TEST

/* `n` parentheses around `inner`, each of `open` and `close`. */
static char *nest(int n, const char *open, const char *inner, const char *close)
{
    size_t size = (size_t)n * (strlen(open) + strlen(close)) + strlen(inner);
    char *text = malloc(size + 1);
    ck_assert_ptr_nonnull(text);
    char *to = text;
    for (int i = 0; i < n; i++)
        to = stpcpy(to, open);
    to = stpcpy(to, inner);
    for (int i = 0; i < n; i++)
        to = stpcpy(to, close);
    return text;
}

START_TEST(parentheses_are_32_deep_at_most)
{
    static const struct {
        int n;
        const char *open, *inner, *close, *why;
    } cases[] = {
        {32, "(", "lmdb:a", ")", NULL},
        {33, "(", "lmdb:a", ")", "more than 32 parentheses in each other"},
        {1000000, "(", "lmdb:a", ")", "1:33: more than 32 parentheses"},
        {32, "test_each:(", "lmdb:{}", ")", NULL},
        {33, "test_each:(", "lmdb:{}", ")", "1:363: more than 32 parentheses"},
        {1000000, "test_each:(", "lmdb:{}", ")", "more than 32 parentheses"},
        {32, "(", "lmdb:a", ") | test_shuffle", NULL},
        {33, "(", "lmdb:a", ") | test_shuffle", "more than 32 parentheses"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text =
            nest(cases[i].n, cases[i].open, cases[i].inner, cases[i].close);
        if (cases[i].why)
            refuse(text, cases[i].why);
        else
            leat_pipeline_unref(parse(text));
        free(text);
    }
}
END_TEST

/* The readers of an argument are opened below the one that has it. */
START_TEST(readers_in_arguments_count_in_the_chain)
{
    for (int readers = 64; readers <= 65; readers++) {
        char *chain = nest(readers - 21, "", "lmdb:{}", " | test_shuffle");
        char *text = nest(20, "test_each:(", chain, ")");
        if (readers > 64)
            refuse(text, "more than 64 readers in a chain");
        else
            leat_pipeline_unref(parse(text));
        free(text);
        free(chain);
    }
}
END_TEST

START_TEST(there_are_65536_upstreams_at_most)
{
    enum { GROUP = 8 };
    char *text = malloc((LEAT_MAX_UPSTREAM + 1) * GROUP + 32);
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i <= LEAT_MAX_UPSTREAM; i++)
        memcpy(text + i * GROUP, "(lmdb:a)", GROUP);
    strcpy(text + LEAT_MAX_UPSTREAM * GROUP, "|test_zip");
    leat_pipeline *pipeline = parse(text);
    ck_assert_int_eq(pipeline->nupstream, LEAT_MAX_UPSTREAM);
    leat_pipeline_unref(pipeline);
    strcpy(text + LEAT_MAX_UPSTREAM * GROUP, "(lmdb:a)|test_zip");
    refuse(text, "more than 65536 upstreams");
    free(text);
}
END_TEST

/* By which a deferred sample finds the reader that completes it. */
START_TEST(ways_of_samples_that_64_bits_cannot_tell_apart_are_refused)
{
    static const struct {
        int most;
        const char *before, *after;
    } cases[] = {
        {27, "(", ")(lmdb:a)(lmdb:a)(lmdb:a)(lmdb:a) | test_zip"}, /* 5^27 */
        {10, "", " | share:a"},                                    /* 65^10 */
    };
    for (int extra = 0; extra < 2; extra++) {
        char *text = nest(cases[_i].most + extra, cases[_i].before, "lmdb:a",
                          cases[_i].after);
        if (extra)
            refuse(text, "more than 64 bits can tell apart");
        else
            leat_pipeline_unref(parse(text));
        free(text);
    }
}
END_TEST

START_TEST(shared_pipelines_that_multiply_are_refused)
{
    leat_pipeline *pipeline = parse("lmdb:a");
    int status = LEAT_OK;
    int n = 0;
    for (; !status && n < 60; n++) {
        leat_pipeline *const two[] = {pipeline, pipeline};
        leat_pipeline *both = pipeline;
        status =
            leat_pipeline_create(&both, &zip_type, NULL, NULL, NULL, two, 2);
        if (!status)
            leat_pipeline_unref(pipeline);
        pipeline = both;
    }
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "more than 1048576 readers"));
    ck_assert_int_eq(n, 20);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(the_reason_is_there_even_after_a_long_text)
{
    char text[2000] = "lmdb:";
    memset(text + 5, 'x', sizeof(text) - 6);
    strcpy(text + sizeof(text) - 12, " | nothing");
    refuse(text, "there is no reader \"nothing\"");
}
END_TEST

START_TEST(a_chain_without_end_is_refused)
{
    size_t size = 100000 * 13 + 10;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    strcpy(text, "lmdb:a");
    for (char *to = text + 6; to < text + size - 14; to += 13)
        strcpy(to, "|test_shuffle");
    refuse(text, "more than");
    free(text);
}
END_TEST

START_TEST(what_readers_need_is_known_along_the_chain)
{
    static const struct {
        const char *text;
        bool may_block;
        bool draws_seed;
    } cases[] = {
        {"lmdb:a", false, false},
        {"lmdb:a | test_shuffle", false, false},
        {"lmdb:a | test_draw", false, true},
        {"lmdb:a | test_draw:seed=1", false, false},
        {"lmdb:a | test_draw | test_cache", false, true},
        {"(tell:a) (lmdb:a) | test_zip", true, false},
        {"test_each:(tell:{})", true, false},
        {"test_each:(lmdb:{} | test_draw) | test_cache", false, true},
        {"test_each:(lmdb:{} | test_draw:seed={})", false, false},
        {"test_each:(test_each:(tell:{} | test_draw))", true, true},
    };
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_pipeline *pipeline = parse(cases[i].text);
        ck_assert_msg(leat__pipeline_may_block(pipeline) == cases[i].may_block,
                      "%s", cases[i].text);
        ck_assert_msg(leat__pipeline_draws_seed(pipeline) ==
                          cases[i].draws_seed,
                      "%s", cases[i].text);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

static uint64_t hash_of(const char *text)
{
    leat_pipeline *pipeline = parse(text);
    uint64_t hash = leat__pipeline_hash(pipeline);
    leat_pipeline_unref(pipeline);
    return hash;
}

START_TEST(the_hash_is_of_what_is_done_and_not_of_where)
{
    uint64_t hash = hash_of("lmdb:a | test_shuffle:seed=7");
    ck_assert(hash == hash_of("lmdb:b/c | test_shuffle:seed=7"));
    ck_assert(hash == hash_of("lmdb:a|test_shuffle:seed=7 "));
    ck_assert(hash != hash_of("lmdb:a | test_shuffle:seed=8"));
    ck_assert(hash != hash_of("lmdb:a"));
    /* It stands in tokens, which later versions are to read. */
    ck_assert_uint_eq(hash_of("lmdb:a"), 0xe04516ad7b830ce0);
    ck_assert_uint_eq(hash, 0x906bbb4c74c3496d);
    ck_assert(hash != hash_of("lmdb:a | test_shuffle:seed=7 | test_slice"));
    ck_assert(hash_of("lmdb:a | test_slice | test_shuffle") !=
              hash_of("lmdb:a | test_shuffle | test_slice"));
    ck_assert_int_eq(leat_reader_register(&teller_type), LEAT_OK);
    ck_assert(hash_of("lmdb:a | tell:x\\|y") != hash_of("lmdb:a | tell:z\\|y"));
}
END_TEST

START_TEST(what_keeps_the_samples_does_not_count)
{
    static const struct {
        const char *first;
        const char *second;
        bool is_same;
    } cases[] = {
        {"lmdb:a", "lmdb:b,read_ahead=1M,drop_behind=1", true},
        {"lmdb:a | test_zip", "lmdb:a | test_zip:threads=8", true},
        {"lmdb:a | test_zip:size=64K", "lmdb:a | test_zip:size=65536", true},
        {"lmdb:a | test_zip:size=64K", "lmdb:a | test_zip", true},
        {"lmdb:a | test_zip:size=10K", "lmdb:a | test_zip:size=10240", true},
        {"lmdb:a | test_zip:size=10K", "lmdb:a | test_zip:size=10kB", false},
        {"lmdb:a | test_zip:size=1,mode=long",
         "lmdb:a | test_zip:mode=LONG,threads=3,size=1", true},
        {"lmdb:a | test_zip:mode=long", "lmdb:a | test_zip:mode=short", false},
        {"lmdb:a | test_zip:mode=short", "lmdb:a | test_zip", false},
        {"lmdb:a | test_zip:fields=b", "lmdb:a | test_zip:fields=( b )", true},
        {"lmdb:a | test_zip:fields=(b,c)", "lmdb:a | test_zip:fields=(c,b)",
         false},
        {"lmdb:a | test_zip:fields=(b,c)", "lmdb:a | test_zip:fields=(b\\,c)",
         false},
        {"lmdb:a | test_cache | test_shuffle", "lmdb:a | test_shuffle", true},
        {"lmdb:a | test_shuffle | test_cache", "lmdb:a | test_shuffle", true},
        {"lmdb:a | test_first | test_draw", "lmdb:a | test_draw", true},
        {"lmdb:a | test_draw | test_first", "lmdb:a | test_draw", false},
        {"lmdb:a | test_draw:seed=3 | test_cache | test_first",
         "lmdb:a | test_draw:seed=3", false},
        {"lmdb:a | test_draw | test_first | test_first",
         "lmdb:a | test_draw | test_first", true},
        {"test_each:(lmdb:{} | test_draw) | test_first",
         "test_each:(lmdb:{} | test_draw)", false},
        {"lmdb:a | test_zip:mode=short | test_first",
         "lmdb:a | test_zip:mode=short", true},
        {"lmdb:a | test_slice:skip=1,take=2",
         "lmdb:a | test_slice:take=2,skip=1", true},
        {"lmdb:a | test_slice:skip=1", "lmdb:a | test_slice:take=1", false},
        {"(lmdb:a) (lmdb:b | test_slice) | test_zip",
         "(lmdb:a | test_slice) (lmdb:b) | test_zip", false},
        {"(lmdb:a) (lmdb:b) | test_zip", "(lmdb:a) | test_zip", false},
        {"test_each:(lmdb:{})", "test_each:( lmdb:x/{},read_ahead=7 )", true},
        {"test_each:(lmdb:{})", "test_each:(lmdb:{}),cycle=1", true},
        {"test_each:(lmdb:{})", "test_each:(lmdb:{}),cycle=2", false},
        {"test_each:(lmdb:{} | test_zip)",
         "test_each:(lmdb:{}|test_zip:threads=2)", true},
        {"test_each:(lmdb:{} | test_slice:skip={})",
         "test_each:(lmdb:{} | test_slice:skip=1)", false},
        {"test_each:(lmdb:{} | test_slice)", "test_each:(lmdb:{})", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg((hash_of(cases[i].first) == hash_of(cases[i].second)) ==
                          cases[i].is_same,
                      "%s and %s", cases[i].first, cases[i].second);
}
END_TEST

static uint64_t number_of(const void *object)
{
    return (uint64_t) * (const int *)object;
}

START_TEST(the_id_of_an_object_counts)
{
    static const leat_reader_type type = {.size = sizeof(leat_reader_type),
                                          .name = "with_object",
                                          .object_id = number_of,
                                          .open = no_open};
    int objects[] = {1, 2, 1};
    uint64_t hash[4];
    for (int i = 0; i < 4; i++) {
        leat_pipeline *pipeline;
        ck_assert_int_eq(leat_pipeline_create(&pipeline, &type, NULL,
                                              i < 3 ? &objects[i] : NULL, NULL,
                                              NULL, 0),
                         LEAT_OK);
        hash[i] = leat__pipeline_hash(pipeline);
        leat_pipeline_unref(pipeline);
    }
    ck_assert_uint_eq(hash[0], hash[2]);
    ck_assert_uint_ne(hash[0], hash[1]);
    ck_assert_uint_ne(hash[0], hash[3]);
}
END_TEST

START_TEST(nested_texts_survive_every_failing_allocation)
{
    leat_pipeline *pipeline = NULL;
    int status;
    int n = 0;
    do {
        leat__alloc_fail_at(n++);
        status = leat_pipeline_parse(
            &pipeline, "(lmdb:a | test_slice:take=1) (lmdb:b) (lmdb:c) "
                       "(lmdb:d) (test_each:(lmdb:{}),cycle=2) | "
                       "test_zip:fields=(e,f) | test_shuffle");
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert_int_eq(pipeline != NULL, status == LEAT_OK);
    } while (status);
    ck_assert_int_ge(n, 40);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(an_lmdb_without_a_path_is_refused)
{
    leat_pipeline *pipeline = NULL;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, NULL, NULL), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "", NULL), LEAT_EINVAL);
    ck_assert_ptr_null(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline_text");
    TCase *tcase = tcase_create("pipeline_text");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_path_of_any_letters_comes_back_from_the_text);
    tcase_add_test(tcase, what_readers_need_is_known_along_the_chain);
    tcase_add_test(tcase, a_bar_after_a_path_does_not_change_it);
    tcase_add_test(tcase, the_text_is_that_of_the_chain_in_order);
    tcase_add_test(tcase, a_wrong_text_is_refused_with_its_place);
    tcase_add_test(tcase, the_reason_is_there_even_after_a_long_text);
    tcase_add_test(tcase, a_chain_without_end_is_refused);
    tcase_add_test(tcase, the_hash_is_of_what_is_done_and_not_of_where);
    tcase_add_test(tcase, an_lmdb_without_a_path_is_refused);
    tcase_add_test(tcase, the_shown_text_is_one_line);
    tcase_add_test(tcase, a_text_comes_back_in_its_own_spelling);
    tcase_add_test(tcase, a_pipeline_of_code_comes_back_from_its_text);
    tcase_add_test(tcase, parentheses_are_32_deep_at_most);
    tcase_add_test(tcase, readers_in_arguments_count_in_the_chain);
    tcase_add_test(tcase, there_are_65536_upstreams_at_most);
    tcase_add_loop_test(
        tcase, ways_of_samples_that_64_bits_cannot_tell_apart_are_refused, 0,
        2);
    tcase_add_test(tcase, shared_pipelines_that_multiply_are_refused);
    tcase_add_test(tcase, what_keeps_the_samples_does_not_count);
    tcase_add_test(tcase, the_id_of_an_object_counts);
    tcase_add_test(tcase, nested_texts_survive_every_failing_allocation);
    return suite_run(suite);
}
