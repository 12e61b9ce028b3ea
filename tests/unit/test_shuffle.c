#include "decorators/shuffle/permutation.h"
#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 7 };

/* Epoch `e` of `n` records, all of them permuted. */
static void add_permuted(order_epoch *epoch, int n, int e)
{
    leat__permutation permutation;
    leat__permutation_key key;
    leat__permutation_init(&permutation, n);
    leat__permutation_key_init(&key, &permutation, SEED, e, 0);
    for (int i = 0; i < n; i++)
        order_add(epoch, (int)leat__permutation_at(&permutation, &key, i));
}

/* The same in blocks: each by its own permutation, in an order of blocks. */
static void add_blocks(order_epoch *epoch, int n, int size, int e)
{
    leat__permutation blocks, inside;
    leat__permutation_key key, own;
    int count = (n + size - 1) / size;
    leat__permutation_init(&blocks, count);
    leat__permutation_key_init(&key, &blocks, SEED, e, 0);
    for (int b = 0; b < count; b++) {
        int block = (int)leat__permutation_at(&blocks, &key, b);
        int left = n - block * size < size ? n - block * size : size;
        leat__permutation_init(&inside, left);
        leat__permutation_key_init(&own, &inside, SEED, e, 1 + block);
        for (int i = 0; i < left; i++)
            order_add(epoch, block * size +
                                 (int)leat__permutation_at(&inside, &own, i));
    }
}

static void check_permuted(const char *options, int n)
{
    static order_epoch epoch[3];
    char text[200];
    for (int e = 0; e < 3; e++) {
        epoch[e].n = 0;
        add_permuted(&epoch[e], n, e);
    }
    snprintf(text, sizeof(text), "plain:random,%d%s | shuffle:seed=7", n,
             options);
    order_check(text, epoch, 3, strstr(options, "bad=1") != NULL);
}

static void check_blocks(const char *options, int n, int size)
{
    static order_epoch epoch[2];
    char text[200];
    for (int e = 0; e < 2; e++) {
        epoch[e].n = 0;
        if (size < n)
            add_blocks(&epoch[e], n, size, e);
        else
            add_permuted(&epoch[e], n, e);
    }
    snprintf(text, sizeof(text), "plain:random,%d%s | shuffle:block=%d,seed=7",
             n, options, size);
    order_check(text, epoch, 2, strstr(options, "bad=1") != NULL);
}

START_TEST(all_samples_are_permuted)
{
    check_permuted("", 0);
    check_permuted("", 1);
    check_permuted("", 2);
    check_permuted("", 45);
    check_permuted("", 128);
    check_permuted(",bad=1", 45);
    check_permuted(",defers=1", 45);
}
END_TEST

START_TEST(blocks_are_permuted_and_their_samples)
{
    static const int sizes[] = {1, 2, 7, 9, 44, 45, 46, 1000};
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++)
        check_blocks("", 45, sizes[i]);
    check_blocks(",bad=1", 45, 6);
    check_blocks("", 0, 6);
    check_blocks("", 64, 8);
}
END_TEST

static int differences(const order_epoch *a, const order_epoch *b)
{
    int n = 0;
    ck_assert_int_eq(a->n, b->n);
    for (int i = 0; i < a->n; i++)
        n += a->record[i] != b->record[i];
    return n;
}

/* Epoch `e` of the text, whose layer's seed is `seed`. */
static void read_epoch(const char *text, uint64_t seed, int e, order_epoch *out)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *pipeline = order_parse(text);
    leat_reader *reader;
    options.seed = seed;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &reader),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){e, 0}, NULL),
                     LEAT_OK);
    order_read(reader, ORDER_MAX, out);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

static const char *const forms[] = {"shuffle", "shuffle:block=10",
                                    "shuffle:20"};

START_TEST(seed_and_epoch_choose_the_order)
{
    static order_epoch a, b;
    char text[100], seeded[120];
    snprintf(text, sizeof(text), "plain:random,100 | %s", forms[_i]);
    snprintf(seeded, sizeof(seeded), "%s%sseed=3", text,
             strchr(forms[_i], ':') ? "," : ":");
    read_epoch(text, 1, 0, &a);
    read_epoch(text, 1, 0, &b);
    ck_assert_int_eq(differences(&a, &b), 0);
    read_epoch(text, 2, 0, &b);
    ck_assert_int_gt(differences(&a, &b), 50);
    read_epoch(text, 1, 1, &b);
    ck_assert_int_gt(differences(&a, &b), 50);
    read_epoch(seeded, 1, 4, &a);
    read_epoch(seeded, 2, 4, &b);
    ck_assert_int_eq(differences(&a, &b), 0);
}
END_TEST

START_TEST(the_same_order_in_each_epoch_where_that_is_asked_for)
{
    static order_epoch a, b;
    char text[100];
    snprintf(text, sizeof(text), "plain:random,100 | %s%seach_epoch=0",
             forms[_i], strchr(forms[_i], ':') ? "," : ":");
    read_epoch(text, 1, 0, &a);
    for (int e = 1; e < 4; e++) {
        read_epoch(text, 1, e, &b);
        ck_assert_int_eq(differences(&a, &b), 0);
    }
    snprintf(text, sizeof(text), "plain:random,100 | %s%seach_epoch=0,seed=9",
             forms[_i], strchr(forms[_i], ':') ? "," : ":");
    static order_epoch epoch[2];
    read_epoch(text, 1, 0, &epoch[0]);
    epoch[1] = epoch[0];
    order_check(text, epoch, 2, 0);
}
END_TEST

START_TEST(epochs_never_mix_under_repeat)
{
    static order_epoch epoch[2], pass;
    char source[100], text[120];
    for (int random = 0; random < 2; random++) {
        if (!random && _i < 2)
            continue; /* these are computed, over random access */
        snprintf(source, sizeof(source), "plain:%s,30 | %s%sseed=7",
                 random ? "random" : "marked", forms[_i],
                 strchr(forms[_i], ':') ? "," : ":");
        snprintf(text, sizeof(text), "%s | repeat:3", source);
        for (int e = 0; e < 2; e++) {
            epoch[e].n = 0;
            for (int k = 0; k < 3; k++) {
                read_epoch(source, 0, 3 * e + k, &pass);
                ck_assert_int_eq(pass.n, 30);
                for (int i = 0; i < 30; i++)
                    order_add(&epoch[e], pass.record[i]);
            }
        }
        order_check(text, epoch, 2, 0);
    }
}
END_TEST

START_TEST(two_shuffles_of_one_pipeline_differ)
{
    static order_epoch all, a, b;
    read_epoch("(plain:random,100 | shuffle) (plain:random,100 | shuffle) | "
               "chain",
               5, 0, &all);
    ck_assert_int_eq(all.n, 200);
    for (int i = 0; i < 100; i++) {
        order_add(&a, all.record[i]);
        order_add(&b, all.record[100 + i]);
    }
    ck_assert_int_gt(differences(&a, &b), 50);
}
END_TEST

START_TEST(what_cannot_be_permuted_names_the_buffer)
{
    order_check_refused("plain:marked,45 | shuffle", LEAT_EUNSUPPORTED,
                        "expected shuffle:N");
    order_check_refused("plain:counted,45 | shuffle:block=5", LEAT_EUNSUPPORTED,
                        "expected shuffle:N");
    order_check_refused("plain:random,45 | repeat | shuffle", LEAT_EUNSUPPORTED,
                        "has no end");
    order_check_refused("plain:random,45 | shuffle:10,block=5", LEAT_EINVAL,
                        "expected one of them");
    order_check_refused("plain:random,45 | shuffle:0", LEAT_EINVAL, "buffer");
    order_check_refused("plain:random,45 | shuffle:-1", LEAT_EINVAL, "buffer");
    order_check_refused("plain:random,45 | shuffle:block=0", LEAT_EINVAL,
                        "block");
    order_check_refused("plain:random,45 | shuffle:seed=-1", LEAT_EINVAL,
                        "seed");
}
END_TEST

START_TEST(the_largest_counts_are_shuffled)
{
    static const char *const texts[] = {
        "range:9223372036854775806 | shuffle:seed=1",
        "range:9223372036854775806 | shuffle:seed=1,block=1000",
        "range:9223372036854775806 | shuffle:block=9223372036854775805"};
    leat_sample sample;
    leat_sample *out = &sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 3; i++) {
        leat_reader *reader = order_open(texts[i]);
        const int64_t indices[] = {0, 1, INT64_MAX / 2, INT64_MAX - 2};
        for (int k = 0; k < 4; k++) {
            const leat_position at = {INT64_MAX, indices[k]};
            int got;
            ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got),
                             LEAT_OK);
        }
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source = order_parse("plain:random,45");
    leat_pipeline *pipeline, *parsed;
    leat_shuffle_options options = {.size = sizeof(options)};
    ck_assert_int_eq(leat_pipeline_shuffle(&pipeline, source, NULL), LEAT_OK);
    parsed = order_parse("plain:random,45 | shuffle");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_shuffle_options_init(&options), LEAT_OK);
    options.buffer = 100;
    options.seed = 3;
    options.has_seed = 1;
    options.same_each_epoch = 1;
    ck_assert_int_eq(leat_pipeline_shuffle(&pipeline, source, &options),
                     LEAT_OK);
    parsed = order_parse("plain:random,45 | shuffle:100,seed=3,each_epoch=0");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    options = (leat_shuffle_options)LEAT_SHUFFLE_OPTIONS_INIT;
    options.block = 5;
    ck_assert_int_eq(leat_pipeline_shuffle(&pipeline, source, &options),
                     LEAT_OK);
    parsed = order_parse("plain:random,45 | shuffle:block=5");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    options.block = -5;
    ck_assert_int_eq(leat_pipeline_shuffle(&pipeline, source, &options),
                     LEAT_EINVAL);
    options.size = 0;
    ck_assert_int_eq(leat_pipeline_shuffle(&pipeline, source, &options),
                     LEAT_EINVAL);
    leat_pipeline_unref(source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shuffle");
    TCase *all = tcase_create("shuffle");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, all_samples_are_permuted);
    tcase_add_test(all, blocks_are_permuted_and_their_samples);
    tcase_add_loop_test(all, seed_and_epoch_choose_the_order, 0, 3);
    tcase_add_loop_test(
        all, the_same_order_in_each_epoch_where_that_is_asked_for, 0, 3);
    tcase_add_loop_test(all, epochs_never_mix_under_repeat, 0, 3);
    tcase_add_test(all, two_shuffles_of_one_pipeline_differ);
    tcase_add_test(all, what_cannot_be_permuted_names_the_buffer);
    tcase_add_test(all, the_largest_counts_are_shuffled);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
