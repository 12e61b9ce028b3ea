#include "decorators/shuffle/permutation.h"
#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEED = 7, FILES = 5 };

/* The parts of epoch `e` in their order. */
static void order_of(int e, int n, int out[])
{
    leat__permutation permutation;
    leat__permutation_key key;
    leat__permutation_init(&permutation, n);
    leat__permutation_key_init(&key, &permutation, SEED, e, 0);
    for (int i = 0; i < n; i++)
        out[i] = (int)leat__permutation_at(&permutation, &key, i);
}

START_TEST(the_readers_of_a_chain_change_places)
{
    static const int sizes[FILES] = {7, 0, 1, 20, 13};
    static order_epoch epoch[4];
    char text[600] = "";
    for (int i = 0; i < FILES; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "(plain:random,%d,first=%d,bad=%d) ", sizes[i], 100 * i, _i);
    strcat(text, "| chain | shuffle:files,seed=7");
    for (int e = 0; e < 4; e++) {
        int order[FILES];
        order_of(e, FILES, order);
        epoch[e].n = 0;
        for (int i = 0; i < FILES; i++)
            order_add_range(&epoch[e], 100 * order[i], sizes[order[i]]);
    }
    order_check(text, epoch, 4, _i);
    strcat(text, ",each_epoch=0");
    epoch[1] = epoch[2] = epoch[3] = epoch[0];
    order_check(text, epoch, 4, _i);
}
END_TEST

static char directory[] = "/tmp/leat_shuffle_files_XXXXXX";

static void path_of(char out[64], int file)
{
    snprintf(out, 64, "%s/%d.bin", directory, file);
}

/* File i has i + 2 records of 4 bytes. */
static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    for (int i = 0; i < FILES; i++) {
        char path[64];
        path_of(path, i);
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        for (int k = 0; k < i + 2; k++)
            ck_assert_int_eq(fwrite("abcd", 4, 1, file), 1);
        ck_assert_int_eq(fclose(file), 0);
    }
}

static void tear_down(void)
{
    for (int i = 0; i < FILES; i++) {
        char path[64];
        path_of(path, i);
        unlink(path);
    }
    rmdir(directory);
}

START_TEST(files_change_places_and_keep_their_own_order)
{
    char text[200];
    leat_sample sample;
    leat_sample_init(&sample);
    snprintf(text, sizeof(text),
             "fixed:%s/*.bin,record=4 | shuffle:files,seed=7", directory);
    leat_reader *reader = order_open(text);
    for (int e = 0; e < 4; e++) {
        int order[FILES];
        order_of(e, FILES, order);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){e, 0}, NULL),
                         LEAT_OK);
        for (int i = 0; i < FILES; i++) {
            char path[64];
            path_of(path, order[i]);
            for (int k = 0; k < order[i] + 2; k++) {
                ck_assert_msg(leat_reader_next(reader, &sample) == LEAT_OK,
                              "%s", leat_last_error());
                ck_assert_str_eq(sample.from.source, path);
                ck_assert_int_eq(sample.from.record, k);
            }
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(what_has_no_files_names_another_way)
{
    order_check_refused("plain:random,45 | shuffle:files", LEAT_EUNSUPPORTED,
                        "files:PATTERN | shuffle");
    order_check_refused("(plain:marked,45) (plain:marked,4) | chain | "
                        "shuffle:files",
                        LEAT_EUNSUPPORTED, "shuffle:N");
    order_check_refused("(plain:random,45 | repeat) (plain:random,4) | chain | "
                        "shuffle:files",
                        LEAT_EUNSUPPORTED, "shuffle:N");
    order_check_refused("plain:random,45 | shuffle:files,block=5", LEAT_EINVAL,
                        "expected one of them");
    order_check_refused("plain:random,45 | shuffle:-1", LEAT_EINVAL, "buffer");
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *source = order_parse("plain:random,45");
    leat_pipeline *pipeline;
    leat_shuffle_options options = LEAT_SHUFFLE_OPTIONS_INIT;
    options.files = 1;
    options.same_each_epoch = 1;
    ck_assert_int_eq(leat_pipeline_shuffle(&pipeline, source, &options),
                     LEAT_OK);
    leat_pipeline *parsed =
        order_parse("plain:random,45 | shuffle:files,each_epoch=0");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shuffle_files");
    TCase *all = tcase_create("shuffle_files");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, the_readers_of_a_chain_change_places, 0, 2);
    tcase_add_test(all, files_change_places_and_keep_their_own_order);
    tcase_add_test(all, what_has_no_files_names_another_way);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
