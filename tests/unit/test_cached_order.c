/*
 * A chain over a cache of a stream gives one order, and takes any token of it,
 * whatever is kept: nothing, a part, or all, in memory or on disk.
 */
#include "support/layer_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAMED = 30, /* samples of each stream */
    INDEXED = 20,  /* and of each file that is read by index */
    BATCH = 2,
    BATCHES = 75, /* three epochs of a stream and a file */
    APART = 14,   /* batches between the tokens that are gone back to */
    TEXT_MAX = 4096
};

/* {} is a stream with a cache, # a file that is read by index. */
static const char *const chains[] = {
    "{}",
    "{} | cast:label=int32",
    "{} | transform:data,mirror=1,type=UINT8",
    "{} | drop_behind",
    "{} | prefetch:3,threads=2",
    "{} | prefetch:auto",
    "{} | cache",
    "{} | constant:20",
    "{} | take:20",
    "{} | skip:7",
    "{} | shard:3,1",
    "{} | repeat:2",
    "{} | repeat",
    "{} | where:label=!(3..5,10)",
    "{} | shuffle:6",
    "{} | shuffle:6,each_epoch=0",
    "{} | batch:4 | unbatch",
    "{} | batch:3 | unbatch",
    "{} | batch:4,drop_last=1 | unbatch",
    "{} | batch:2 | batch:3 | unbatch | unbatch",
    "{} | window:3,2 | unbatch",
    "{} | window:3,2,drop_last=1 | unbatch",
    "{} | bucket:data,(2,4),batch=(2,3,4) | unbatch",
    "({} | where:label=0..9) ({}) | chain",
    "({}) (#) | chain",
    "({} | repeat:2) (#) | chain | shuffle:5",
    "({}) ({} | shuffle:5) | zip:prefix=(,b_)",
    "({}) (#) | zip:prefix=(,b_),align=0",
    "({}) (#) | interleave",
    "({}) (#) ({} | take:4) | interleave:cycle=2,block=3",
    "{} | mix",
    "({}) (#) | mix",
    "({}) (#) | mix:0.7,0.3",
    "({}) (#) | mix:0.7,0.3,on_end=drop",
    "({}) (#) | mix:0.7,0.3,on_end=repeat",
    "({}) (#) | mix:2,1,even=1",
    "({}) (#) | mix:2,1,even=1,on_end=drop",
    "({}) (#) | mix:2,1,even=1,on_end=repeat",
    "({}) ({} | skip:5) | mix:0.4,0.6,on_end=drop",
    "({} | cache) (#) | mix:0.7,0.3,on_end=drop",
    "({} | prefetch:2) (#) | mix:0.7,0.3,on_end=drop",
    "({} | take:9) (#) | mix:0.7,0.3,on_end=repeat",
    "({} | cast:label=int32) (#) | mix:0.7,0.3,on_end=drop",
    "({} | batch:3 | unbatch) (#) | mix:0.7,0.3,on_end=drop",
    "({} | repeat:2) (#) | mix:0.7,0.3,on_end=drop",
    "({} | constant:9) (#) | mix:0.7,0.3,on_end=drop",
    "(({}) (#) | chain) (#) | mix:0.7,0.3,on_end=drop",
    "(({}) (#) | interleave) (#) | mix:0.7,0.3,on_end=drop",
    "(({}) (#) | mix) (#) | mix:0.7,0.3,on_end=drop",
    "({}) (#) | mix:0.7,0.3,on_end=drop | take:40 | shuffle:6",
    "({}) (#) | mix:0.7,0.3,on_end=repeat | shard:2,1 | batch:3 | unbatch",
    "({}) (#) | mix:0.7,0.3,on_end=drop | cache",
    "(({}) (#) | mix:0.7,0.3,on_end=drop) (#) | interleave",
};
/* A sanitizer sees every third chain. */
enum {
    STRIDE = IS_SANITIZED ? 3 : 1,
    CHAINS = (int)(sizeof(chains) / sizeof(chains[0])) / STRIDE
};

/* What is kept of a stream when a layer opens. */
typedef enum keeping {
    UNCACHED,
    IN_MEMORY,
    NOT_YET,
    ON_DISK,
    KEEPINGS
} keeping;
static const char *const keeping_names[] = {
    "no cache", "a cache in memory", "a cache on disk that is to be made",
    "a cache on disk"};

static char root[] = "/tmp/leat-cached-XXXXXX";

/* What a layer gave, and where it was before each batch. */
typedef struct run {
    uint32_t digest[BATCHES];
    leat_token token[BATCHES];
} run;

static void write_file(const char *name, int first, int n)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = first; i < first + n; i++) {
        unsigned char record[12] = {(unsigned char)i, 2, 3, 4, 5, 6, 7, 8};
        const int32_t label = i;
        memcpy(record + 8, &label, sizeof(label));
        ck_assert_uint_eq(fwrite(record, sizeof(record), 1, file), 1);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static void run_command(const char *command)
{
    char text[200];
    snprintf(text, sizeof(text), "cd %s && %s", root, command);
    ck_assert_int_eq(system(text), 0);
}

/* Appends a reader of a file; `n` is the stream's number in its chain. */
static void write_source(char *text, bool is_stream, keeping kept, int n)
{
    static const char *const caches[] = {[UNCACHED] = "",
                                         [IN_MEMORY] = " | cache",
                                         [NOT_YET] = " | cache:dir=%s/new%d",
                                         [ON_DISK] = " | cache:dir=%s/kept%d"};
    char cache[80];
    size_t used = strlen(text);
    snprintf(cache, sizeof(cache), caches[kept], root, n);
    snprintf(text + used, TEXT_MAX - used,
             "fixed:%s/%s,fields=(data=uint8@0:1x2x4,label=int32@8)%s%s", root,
             is_stream ? "streamed" : "indexed",
             is_stream ? " | where:label=0.." : "", is_stream ? cache : "");
}

static leat_pipeline *make_pipeline(const char *chain, keeping kept)
{
    char text[TEXT_MAX] = "";
    int streams = 0;
    leat_pipeline *pipeline;
    for (const char *at = chain; *at; at++) {
        bool is_stream = strncmp(at, "{}", 2) == 0;
        if (is_stream || *at == '#')
            write_source(text, is_stream, kept, is_stream ? streams++ : 0);
        else
            strncat(text, at, 1);
        at += is_stream;
    }
    ck_assert_msg(!leat_pipeline_parse(&pipeline, text), "%s: %s", text,
                  leat_last_error());
    return pipeline;
}

static layer_fixture open_layer(const char *chain, keeping kept)
{
    leat_data_layer_options options;
    leat_transform_options transform;
    layer_fixture_options(&options, &transform);
    options.batch_size = BATCH;
    options.random_seed = 4;
    options.prefetch = 2;
    options.workers = 2;
    if (kept == NOT_YET)
        run_command("rm -rf new*");
    leat_pipeline *pipeline = make_pipeline(chain, kept);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_pipeline_unref(pipeline);
    return fixture;
}

static uint32_t forward(layer_fixture *fixture, const char *chain)
{
    int status = layer_fixture_forward(fixture);
    ck_assert_msg(!status, "%s: %s", chain, leat_last_error());
    return layer_fixture_digest(fixture);
}

static void keep_run(layer_fixture *fixture, const char *chain, run *out)
{
    for (int i = 0; i < BATCHES; i++) {
        leat_token_init(&out->token[i]);
        ck_assert_int_eq(leat_data_layer_save(fixture->layer, &out->token[i]),
                         LEAT_OK);
        out->digest[i] = forward(fixture, chain);
    }
}

static void finish_run(run *run)
{
    for (int i = 0; i < BATCHES; i++)
        leat_token_finish(&run->token[i]);
}

/* Goes back to the batches of a run, the latest first. */
static void go_back(layer_fixture *fixture, const char *chain, run *to,
                    keeping of, keeping kept)
{
    for (int i = BATCHES - 1; i >= 0; i -= APART) {
        to->token[i].cursor = 0;
        int status = leat_data_layer_restore(fixture->layer, &to->token[i]);
        ck_assert_msg(!status, "%s: with %s batch %d of a run with %s: %s",
                      chain, keeping_names[kept], i, keeping_names[of],
                      leat_last_error());
        for (int k = i; k < i + 3 && k < BATCHES; k++)
            ck_assert_msg(forward(fixture, chain) == to->digest[k],
                          "%s: with %s batch %d is not that of a run with %s",
                          chain, keeping_names[kept], k, keeping_names[of]);
    }
}

/* The directories that are there from the beginning. */
static void make_caches(void)
{
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 2; i++) {
        char text[TEXT_MAX] = "";
        leat_pipeline *pipeline;
        leat_reader *reader;
        write_source(text, true, ON_DISK, i);
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        int status;
        while (!(status = leat_reader_next(reader, &sample)))
            continue;
        ck_assert_int_eq(status, LEAT_END);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
    }
    leat_sample_finish(&sample);
    run_command("test -e kept0/index -a -e kept1/index");
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
    write_file("streamed", 0, STREAMED);
    write_file("indexed", 1000, INDEXED);
    make_caches();
}

static void tear_down(void)
{
    run_command("rm -r \"$PWD\"");
}

START_TEST(what_is_kept_changes_neither_order_nor_tokens)
{
    const char *chain = chains[_i * STRIDE];
    run *runs = calloc(KEEPINGS, sizeof(*runs));
    ck_assert_ptr_nonnull(runs);
    for (int kept = 0; kept < KEEPINGS; kept++) {
        layer_fixture fixture = open_layer(chain, kept);
        keep_run(&fixture, chain, &runs[kept]);
        for (int i = 0; i < BATCHES; i++)
            ck_assert_msg(runs[kept].digest[i] == runs[0].digest[i],
                          "%s: with %s batch %d is another one", chain,
                          keeping_names[kept], i);
        /* By now the cache may be whole. */
        leat_data_layer_cancel(fixture.layer);
        go_back(&fixture, chain, &runs[kept], kept, kept);
        layer_fixture_close(&fixture);
    }
    for (int kept = 0; kept < KEEPINGS; kept++)
        for (int of = 0; of < KEEPINGS; of++) {
            layer_fixture fixture = open_layer(chain, kept);
            go_back(&fixture, chain, &runs[of], of, kept);
            layer_fixture_close(&fixture);
        }
    for (int kept = 0; kept < KEEPINGS; kept++)
        finish_run(&runs[kept]);
    free(runs);
}
END_TEST

/* The access that a cache gives is there all the same, and shuffle's is its
 * own: it is not opened without. */
START_TEST(a_mixture_is_by_index_where_its_access_lasts)
{
    static const struct {
        const char *chain;
        int is_by_index;
    } cases[] = {
        {"{}", 1},
        {"{} | repeat:2", 1},
        {"(#) (#) | mix", 1},
        {"(# | cache) (# | prefetch:2) | mix", 1},
        {"({}) (#) | mix", 0},
        {"({} | repeat:2) (#) | mix", 0},
        {"({} | shuffle) (#) | mix", 1},
        {"({} | shuffle | take:9) (#) | mix", 1},
        {"({} | constant:9) (#) | mix", 1},
        {"(({}) (#) | chain | shuffle:files) (#) | mix", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_reader *reader;
        leat_pipeline *pipeline = make_pipeline(cases[i].chain, ON_DISK);
        ck_assert_msg(!leat_pipeline_open(pipeline, &reader), "%s: %s",
                      cases[i].chain, leat_last_error());
        ck_assert_msg(leat_reader_is_random_access(reader) ==
                          cases[i].is_by_index,
                      "%s", cases[i].chain);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cached_order");
    TCase *tcase = tcase_create("cached_order");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, what_is_kept_changes_neither_order_nor_tokens, 0,
                        CHAINS);
    tcase_add_test(tcase, a_mixture_is_by_index_where_its_access_lasts);
    tcase_set_timeout(tcase, 120);
    return suite_run(suite);
}
