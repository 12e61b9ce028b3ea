/* mix: samples of several readers, each as often as it weighs. */
#include "decorators/mix/draw_table.h"
#include "support/counted_source.h"
#include "support/sequence_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Input i of these tests has the numbers from 1000 i on. */
enum { EACH = 1000, INPUTS_MOST = 8 };

static void write_inputs(char *text, const int64_t count[], int n,
                         const char *rest)
{
    text[0] = 0;
    for (int i = 0; i < n; i++)
        sprintf(text + strlen(text), "(counted:%lld,first=%d%s) ",
                (long long)count[i], EACH * i, rest);
    strcat(text, "| ");
}

/* Each input's samples come in its own order, pass by pass. */
static void check_order(const sequence *all, const int64_t count[])
{
    int64_t next[INPUTS_MOST] = {0};
    for (int t = 0; t < all->n; t++) {
        int64_t number = all->item[t].number[0];
        int i = (int)(number / EACH);
        ck_assert_int_eq(number % EACH, next[i] % count[i]);
        next[i]++;
    }
}

static int64_t count_of(const sequence *all, int input)
{
    int64_t count = 0;
    for (int t = 0; t < all->n; t++)
        count += all->item[t].number[0] / EACH == input;
    return count;
}

START_TEST(an_even_order_is_within_one_of_the_weights_at_every_place)
{
    static const int64_t weights[][INPUTS_MOST] = {{7, 3},
                                                   {1},
                                                   {1, 1, 1},
                                                   {1000, 1, 1},
                                                   {999, 1000, 1},
                                                   {5, 0, 3, 2},
                                                   {2, 3, 5, 7, 11},
                                                   {1, 2, 4, 8, 16, 32},
                                                   {90, 1, 1, 1, 1},
                                                   {33, 33, 34},
                                                   {6, 6, 6, 1, 1, 1, 1, 1}};
    for (size_t k = 0; k < sizeof(weights) / sizeof(weights[0]); k++) {
        leat__draw_table *table;
        int64_t drawn[INPUTS_MOST] = {0}, sum = 0;
        ck_assert_int_eq(
            leat__draw_table_create(&table, weights[k], INPUTS_MOST, true, 0),
            LEAT_OK);
        for (int i = 0; i < INPUTS_MOST; i++)
            sum += weights[k][i];
        for (int64_t t = 0; t < 3 * sum; t++) {
            leat__draw_block block = leat__draw_table_block(table, 0, t);
            leat__draw draw = block.draw[t - block.first];
            int i = draw.input;
            ck_assert_int_eq(draw.rank + block.number * table->weight[i],
                             drawn[i]);
            ck_assert_int_eq(leat__draw_table_find(table, i, drawn[i]), t);
            drawn[i]++;
            for (i = 0; i < INPUTS_MOST; i++) {
                double wanted =
                    (double)weights[k][i] * (double)(t + 1) / (double)sum;
                ck_assert_double_lt(fabs((double)drawn[i] - wanted), 1);
                ck_assert_int_eq(leat__draw_table_count(table, i, t + 1),
                                 drawn[i]);
            }
        }
        leat__draw_table_destroy(table);
    }
}
END_TEST

START_TEST(random_draws_are_exact_in_blocks_and_differ_each_epoch)
{
    const int64_t count[] = {900, 900};
    char text[300];
    sequence *all = malloc(sizeof(*all)), *other = malloc(sizeof(*other));
    write_inputs(text, count, 2, "");
    strcat(text, "mix:0.7,.3,seed=5");
    sequence_of(all, text, 0);
    /* The even order ends where the 900th of 7 in 10 would come. */
    ck_assert_int_ge(all->n, 1284);
    ck_assert_int_le(all->n, 1287);
    check_order(all, count);
    for (int block = 0; block + 260 <= all->n; block += 260) {
        int drawn = 0, same = 0;
        for (int t = 0; t < 260; t++) {
            drawn += all->item[block + t].number[0] < EACH;
            same += all->item[block + t].number[0] / EACH ==
                    all->item[t].number[0] / EACH;
        }
        ck_assert_int_eq(drawn, 182);
        ck_assert(block == 0 || same < 220);
    }
    sequence_of(other, text, 1);
    ck_assert_int_eq(other->n, all->n);
    int same = 0;
    for (int t = 0; t < all->n; t++)
        same +=
            all->item[t].number[0] / EACH == other->item[t].number[0] / EACH;
    ck_assert_int_lt(same, all->n * 3 / 4);
    free(all);
    free(other);
}
END_TEST

/* A slow model of an even mixture: what comes, from the draws alone. */
static int model(int64_t out[], const int64_t weight[], const int64_t count[],
                 int n, leat_mix_end on_end)
{
    int64_t drawn[INPUTS_MOST] = {0}, left[INPUTS_MOST], at = 0;
    int ended[INPUTS_MOST] = {0}, all = 0, given = 0;
    leat__draw_table *table;
    memcpy(left, weight, sizeof(left));
    ck_assert_int_eq(leat__draw_table_create(&table, left, n, true, 0),
                     LEAT_OK);
    for (;;) {
        leat__draw_block block = leat__draw_table_block(table, 0, at);
        int i = block.draw[at - block.first].input;
        if (drawn[i] > 0 ? drawn[i] % count[i] == 0 && !ended[i]
                         : count[i] == 0) {
            all += !ended[i];
            ended[i] = 1;
            if (on_end == LEAT_MIX_STOP || all == n)
                break;
            if (on_end == LEAT_MIX_DROP) {
                left[i] = 0;
                at = 0;
                leat__draw_table_destroy(table);
                ck_assert_int_eq(
                    leat__draw_table_create(&table, left, n, true, 0), LEAT_OK);
                continue;
            }
        }
        out[given++] = EACH * i + drawn[i]++ % count[i];
        at++;
    }
    leat__draw_table_destroy(table);
    return given;
}

START_TEST(an_input_that_ends_stops_is_dropped_or_begun_again)
{
    static const char *const ends[] = {"stop", "drop", "repeat"};
    static const char *const forms[] = {"", ",form=stream", ",form=deferred"};
    static const int64_t counts[][3] = {
        {20, 20, 20}, {3, 50, 9}, {40, 1, 2}, {7, 6, 5}};
    static const int64_t weights[][INPUTS_MOST] = {
        {1, 1, 1}, {5, 3, 2}, {1, 20, 2}};
    int64_t expected[SEQUENCE_MOST];
    char text[400];
    for (int end = 0; end < 3; end++)
        for (int form = 0; form < 3; form++)
            for (int c = 0; c < 4; c++)
                for (int w = 0; w < 3; w++) {
                    int n = model(expected, weights[w], counts[c], 3,
                                  (leat_mix_end)end);
                    write_inputs(text, counts[c], 3, forms[form]);
                    sprintf(text + strlen(text),
                            "mix:%lld,%lld,%lld,even=1,on_end=%s",
                            (long long)weights[w][0], (long long)weights[w][1],
                            (long long)weights[w][2], ends[end]);
                    sequence_is(text, 0, expected, n);
                    sequence_is(text, 3, expected, n);
                }
}
END_TEST

START_TEST(dropping_gives_every_sample_once)
{
    const int64_t count[] = {300, 7, 100};
    char text[400];
    sequence *all = malloc(sizeof(*all));
    for (int form = 0; form < 2; form++) {
        write_inputs(text, count, 3, form ? ",form=stream" : "");
        strcat(text, "mix:2,1,1,on_end=drop");
        sequence_of(all, text, 1);
        ck_assert_int_eq(all->n, 407);
        check_order(all, count);
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(count_of(all, i), count[i]);
    }
    free(all);
}
END_TEST

START_TEST(repeating_begins_passes_of_other_epochs)
{
    const int64_t count[] = {5, 64};
    char text[400];
    sequence *all = malloc(sizeof(*all));
    for (int form = 0; form < 2; form++) {
        int64_t last = -1;
        write_inputs(text, count, 2, form ? ",form=stream" : "");
        strcat(text, "mix:on_end=repeat");
        sequence_of(all, text, 2);
        /* Over a stream the last draws are as the seed has them. */
        ck_assert_int_ge(all->n, form ? 65 : 128);
        ck_assert_int_eq(count_of(all, 1), 64);
        check_order(all, count);
        for (int t = 0, drawn = 0; t < all->n; t++) {
            if (all->item[t].number[0] >= EACH)
                continue;
            if (drawn++ % 5 == 0)
                ck_assert_int_ne(all->item[t].epoch, last);
            else
                ck_assert_int_eq(all->item[t].epoch, last);
            last = all->item[t].epoch;
        }
    }
    free(all);
    counted_source_refused("(counted:5) (counted:0) | mix:on_end=repeat",
                           LEAT_EFORMAT, "input 2 (counted:0) has no samples");
    leat_reader *reader = counted_source_reader(
        "(counted:5) (counted:0,form=stream) | mix:on_end=repeat");
    leat_sample sample;
    leat_sample_init(&sample);
    int status;
    while (!(status = leat_reader_next(reader, &sample)))
        continue;
    ck_assert_int_eq(status, LEAT_EFORMAT);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(every_form_resumes_anywhere)
{
    static const char *const inputs[] = {
        "(counted:70,bad=3) (counted:20,first=1000) (counted:9,first=2000) | ",
        "(counted:70,bad=3,form=stream) (counted:20,first=1000,form=deferred)"
        " (counted:9,first=2000,bad=5) | "};
    static const char *const ends[] = {"stop", "drop", "repeat"};
    for (int form = 0; form < 2; form++)
        for (int even = 0; even < 2; even++)
            for (int end = 0; end < 3; end++) {
                char text[400];
                snprintf(text, sizeof(text), "%smix:6,2,1,even=%d,on_end=%s",
                         inputs[form], even, ends[end]);
                sequence_holds(text);
                if (even || end == LEAT_MIX_DROP)
                    sequence_survives(text);
                sequence_settles(text);
            }
    sequence_holds("(counted:40,bad=3) | mix");
    sequence_holds("(counted:0,form=stream) (counted:0) | mix:on_end=drop");
    sequence_holds("(counted:0) (counted:3) | mix:on_end=drop");
}
END_TEST

/* Over streams an input's end is found when it is drawn. */
START_TEST(a_token_of_the_other_form_is_refused)
{
    static const char *const text[] = {
        "(counted:9) (counted:9,first=1000) | mix:7,3",
        "(counted:9,form=stream) (counted:9,first=1000) | mix:7,3"};
    leat_reader *reader[2];
    counted_source_register();
    for (int i = 0; i < 2; i++) {
        leat_pipeline *pipeline;
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text[i]), LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader[i]), LEAT_OK);
        leat_pipeline_unref(pipeline);
    }
    for (int i = 0; i < 2; i++) {
        leat_token token;
        leat_token_init(&token);
        int saved = leat_reader_save(reader[i], &token);
        ck_assert(saved == LEAT_OK || saved == LEAT_EUNSUPPORTED);
        ck_assert_int_eq(leat_reader_restore(reader[1 - i], &token),
                         LEAT_EINVAL);
        token.cursor = 0;
        ck_assert_int_eq(leat_reader_restore(reader[i], &token), saved);
        leat_token_finish(&token);
    }
    for (int i = 0; i < 2; i++)
        leat_reader_close(reader[i]);
}
END_TEST

START_TEST(a_zip_and_a_mixture_over_mixtures)
{
    sequence_holds("((counted:50,bad=3,form=deferred) (counted:50,first=1000) |"
                   " mix:3,1) ((counted:20,form=deferred,first=2000) "
                   "(counted:50,first=3000,form=deferred) | mix:even=1) | "
                   "mix:0.5,0.5");
    sequence_holds("((counted:50,bad=3) (counted:50,first=1000) | mix:3,1) | "
                   "take:33 | mix");
    sequence_holds("(counted:30,form=stream,bad=2) ((counted:20,field=y,"
                   "form=deferred) (counted:9,field=y,first=1000) | "
                   "mix:on_end=drop) | zip:align=0");
}
END_TEST

START_TEST(what_cannot_be_mixed_is_refused)
{
    counted_source_refused("(counted:5) (counted:5) | mix:0.5", LEAT_EINVAL,
                           "mix: 1 weights for 2 inputs");
    counted_source_refused("(counted:5) | mix:1,2", LEAT_EINVAL,
                           "mix: more weights than inputs, which are 1");
    static const char *const bad[] = {
        "0",         "-1", "x",   "1.2.3",
        "0.1234567", ".",  "1e3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[80], part[80];
        snprintf(text, sizeof(text), "(counted:5) | mix:%s", bad[i]);
        snprintf(part, sizeof(part), "the weight \"%s\" is none", bad[i]);
        counted_source_refused(text, LEAT_EINVAL, part);
    }
    counted_source_refused("(counted:5) (counted:5) | mix:1000000,1",
                           LEAT_EINVAL, "expected fewer digits");
    counted_source_refused("(counted:5) (counted:5,field=y) | mix", LEAT_EINVAL,
                           "mix: input 2 (counted:5,field=y): a field is "
                           "\"y\", but that of the first input is \"x\"");
    counted_source_refused("(counted:5) ((counted:5) (counted:5,field=y) | "
                           "zip) | mix",
                           LEAT_EINVAL, "it has 2 fields, but");
    char many[8000] = "";
    for (int i = 0; i < 33; i++)
        strcat(many, "(counted:5,form=stream) ");
    strcat(many, "| mix");
    counted_source_refused(many, LEAT_EUNSUPPORTED, "expected at most 32");
}
END_TEST

START_TEST(shapes_that_differ_vary)
{
    leat_reader *reader =
        counted_source_reader("(counted:5,size=4) (counted:5,size=9) | mix");
    const leat_field_spec *fields;
    int n;
    ck_assert_int_eq(leat_reader_fields(reader, &fields, &n), LEAT_OK);
    ck_assert_int_eq(fields[0].ndim, 1);
    ck_assert_int_eq(fields[0].shape[0], -1);
    leat_reader_close(reader);
}
END_TEST

START_TEST(endless_and_huge_inputs_are_counted)
{
    /* Arithmetic alone: nothing of these is read. */
    leat__draw_table *table;
    const int64_t weight[] = {2, 1};
    ck_assert_int_eq(leat__draw_table_create(&table, weight, 2, true, 0),
                     LEAT_OK);
    ck_assert_int_eq(leat__draw_table_find(table, 0, LEAT_ENDLESS),
                     LEAT_ENDLESS);
    ck_assert_int_eq(leat__draw_table_find(table, 1, INT64_MAX - 1),
                     LEAT_ENDLESS);
    ck_assert_int_eq(leat__draw_table_find(table, 1, INT64_MAX / 4) / 3,
                     INT64_MAX / 4);
    leat__draw_table_destroy(table);
}
END_TEST

START_TEST(an_endless_order_has_no_last_block)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline, "(range:10 | repeat) (range:20 | repeat)"
                                       " | mix:seed=3"),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(
        leat_reader_seek(reader, (leat_position){0, INT64_MAX - 1}, NULL),
        LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* 1000 samples of each input, bad ones in the second. */
START_TEST(samples_beside_bad_ones_are_seldom_made_again)
{
    int calls, more;
    ck_assert_int_le(
        sequence_cost("(counted:1000,counts=1) (counted:1000,bad=1,"
                      "every=2) | mix:even=1",
                      &calls),
        2000);
    ck_assert_int_le(sequence_cost("(counted:1000,counts=1) (counted:1000,"
                                   "bad=3) | mix:even=1",
                                   &calls),
                     2000);
    ck_assert_int_le(
        sequence_cost("(counted:1000,counts=1) (counted:1000,bad=1,"
                      "every=2) | mix:seed=5",
                      &calls),
        2000);
    ck_assert_int_eq(sequence_cost("(counted:1000,counts=1) (counted:1000) | "
                                   "mix:even=1",
                                   &calls),
                     1000);
    ck_assert_int_le(sequence_cost("(counted:1000,counts=1) (counted:1000,"
                                   "bad=64,every=2000) | mix:even=1",
                                   &more),
                     1032);
    ck_assert_int_le(more, calls + 8);
}
END_TEST

START_TEST(code_and_text_make_the_same_pipeline)
{
    leat_pipeline *input[2], *mix;
    const double weight[] = {0.7, 0.3}, wrong[] = {1, -1};
    input[0] = counted_source_parse("counted:10");
    input[1] = counted_source_parse("counted:20");
    leat_mix_options options = {.size = sizeof(options)};
    ck_assert_int_eq(leat_mix_options_init(&options), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_mix(&mix, input, 2, NULL), LEAT_OK);
    sequence_same_pipeline("(counted:10) (counted:20) | mix", mix);
    options.weight = weight;
    options.even = 1;
    options.on_end = LEAT_MIX_REPEAT;
    options.has_seed = 1;
    options.seed = 9;
    ck_assert_int_eq(leat_pipeline_mix(&mix, input, 2, &options), LEAT_OK);
    sequence_same_pipeline("(counted:10) (counted:20) | mix:0.700000,"
                           "0.300000,even=1,on_end=repeat,seed=9",
                           mix);
    options.weight = wrong;
    ck_assert_int_eq(leat_pipeline_mix(&mix, input, 2, &options), LEAT_EINVAL);
    options.weight = NULL;
    options.on_end = (leat_mix_end)3;
    ck_assert_int_eq(leat_pipeline_mix(&mix, input, 2, &options), LEAT_EINVAL);
    leat_pipeline_unref(input[0]);
    leat_pipeline_unref(input[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mix");
    TCase *tcase = tcase_create("mix");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase,
                   an_even_order_is_within_one_of_the_weights_at_every_place);
    tcase_add_test(tcase,
                   random_draws_are_exact_in_blocks_and_differ_each_epoch);
    tcase_add_test(tcase, an_input_that_ends_stops_is_dropped_or_begun_again);
    tcase_add_test(tcase, dropping_gives_every_sample_once);
    tcase_add_test(tcase, repeating_begins_passes_of_other_epochs);
    tcase_add_test(tcase, every_form_resumes_anywhere);
    tcase_add_test(tcase, a_token_of_the_other_form_is_refused);
    tcase_add_test(tcase, a_zip_and_a_mixture_over_mixtures);
    tcase_add_test(tcase, what_cannot_be_mixed_is_refused);
    tcase_add_test(tcase, shapes_that_differ_vary);
    tcase_add_test(tcase, endless_and_huge_inputs_are_counted);
    tcase_add_test(tcase, an_endless_order_has_no_last_block);
    tcase_add_test(tcase, samples_beside_bad_ones_are_seldom_made_again);
    tcase_add_test(tcase, code_and_text_make_the_same_pipeline);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
