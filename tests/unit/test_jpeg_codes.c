/*
 * Baseline JPEGs symbol by symbol: whatever Huffman tables and coefficients a
 * clean file may have, the fast path takes it and has libjpeg's pixels.
 */
#include "support/jpeg_pair.h"
#include "support/jpeg_source.h"
#include "support/jpeg_writer.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS (IS_SANITIZED ? 300 : 6000)
#define SIDE_MAX 70
/* A DC coefficient below it gives samples that all of libjpeg's variants clamp
   alike, even without others. */
#define FLAT_MAX 4080
/* Of how much of the file the decoder has in its window at once. */
#define WINDOW 16384

static jpeg_pair pair;

/* The tests run once for each instruction set. */
static bool open_decoders(int isa)
{
    if (jpeg_pair_open(&pair, jpeg_isas[isa]))
        return true;
    printf("skipped: no %s here\n", jpeg_isas[isa]);
    return false;
}

static void check_file(jpeg_writer *file, const char *name, int i,
                       jpeg_path expected)
{
    char text[128];
    snprintf(text, sizeof(text), "%s, %d", name, i);
    jpeg_put_end(file);
    jpeg_verdict verdict = jpeg_pair_check(&pair, text, file->bytes, file->size,
                                           (leat_color)(i % 3), (uint64_t)i);
    if (verdict.status != LEAT_OK)
        ck_abort_msg("%s: %s", text, leat_last_error());
    if (expected != JPEG_NOT_DECODED && verdict.path != expected)
        ck_abort_msg("%s: %s", text,
                     verdict.path == JPEG_FAST ? "is fast" : "is not fast");
    free(file->bytes);
}

/* Samplings by the factors of their components. */
static const struct {
    int components, h, v; /* of luma */
    unsigned char factors[3];
} samplings[] = {
    {1, 1, 1, {0x11}},
    {3, 1, 1, {0x11, 0x11, 0x11}},
    {3, 2, 1, {0x21, 0x11, 0x11}},
    {3, 1, 2, {0x12, 0x11, 0x11}},
    {3, 2, 2, {0x22, 0x11, 0x11}},
};
#define SAMPLINGS (int)(sizeof(samplings) / sizeof(samplings[0]))

/* A file up to its data, with two tables of each class. */
typedef struct plan {
    int width, height, sampling, quantum, interval;
    jpeg_codes dc[2], ac[2];
    unsigned char tables[3]; /* of each component */
} plan;

static plan plan_of(int width, int height, int sampling, int shape,
                    int rotation)
{
    plan plan = {.width = width,
                 .height = height,
                 .sampling = sampling,
                 .quantum = 1,
                 .tables = {0x00, 0x11, 0x10}};
    for (int i = 0; i < 2; i++) {
        plan.dc[i] = jpeg_codes_make(JPEG_DC, 0, rotation + 5 * i);
        plan.ac[i] = jpeg_codes_make(JPEG_AC, (shape + i) % 2, rotation + i);
    }
    return plan;
}

static jpeg_writer begin_file(const plan *plan)
{
    jpeg_writer file = {0};
    int components = samplings[plan->sampling].components;
    jpeg_put_marker(&file, 0xd8);
    jpeg_put_quantum(&file, 0, plan->quantum);
    for (int i = 0; i < 2; i++) {
        jpeg_put_codes(&file, JPEG_DC, i, &plan->dc[i]);
        jpeg_put_codes(&file, JPEG_AC, i, &plan->ac[i]);
    }
    jpeg_put_frame(&file, plan->width, plan->height, components,
                   samplings[plan->sampling].factors);
    if (plan->interval)
        jpeg_put_interval(&file, plan->interval);
    jpeg_put_scan(&file, components, plan->tables);
    return file;
}

/* A DC coefficient that differs from the last one by a value of that size. */
static int dc_of_size(int last, int size, uint64_t *state)
{
    if (!size)
        return last;
    int least = 1 << (size - 1);
    int difference = least + jpeg_random_below(state, least);
    return last < 0 ? last + difference : last - difference;
}

/* The least and the greatest value of a size, and their negatives. */
static int value_of_size(int size, int which)
{
    int value = which & 1 ? (1 << size) - 1 : 1 << (size - 1);
    return which & 2 ? -value : value;
}

/* 160 blocks: each run with a value of each size after it. */
static void put_each_symbol(jpeg_writer *file, int which)
{
    uint64_t state = (uint64_t)which;
    int dc = 0;
    for (int i = 0; i < 160; i++) {
        int block[64] = {0};
        block[0] = dc = dc_of_size(dc, (i + which) % 12, &state);
        block[i / 10 + 1] = value_of_size(i % 10 + 1, i / 10 + which);
        jpeg_put_block(file, 0, 0, block);
    }
}

START_TEST(each_symbol_may_have_a_code_of_each_length)
{
    if (!open_decoders(_i))
        return;
    for (int i = 0; i < JPEG_AC_SYMBOLS * 2; i++) {
        plan plan = plan_of(128, 80, 0, i % 2, i / 2);
        jpeg_writer file = begin_file(&plan);
        put_each_symbol(&file, i / 2);
        check_file(&file, "rotation", i, JPEG_FAST);
    }
    jpeg_pair_close(&pair);
}
END_TEST

/* A block of one or two coefficients, or of all from one on. */
static void draw_runs(int block[64], int first, int second, int value)
{
    memset(block, 0, 64 * sizeof(block[0]));
    block[0] = value;
    block[first] = value;
    if (second <= 63)
        block[second] = -value;
    for (int i = first; second == 64 && i < 64; i++)
        block[i] = value;
}

START_TEST(each_run_of_zeros_may_begin_and_end_anywhere)
{
    if (!open_decoders(_i))
        return;
    for (int first = 1; first < 64; first++) {
        plan plan = plan_of(64, 72, 0, first % 2, first);
        jpeg_writer file = begin_file(&plan);
        for (int second = 0; second < 72; second++) {
            int block[64];
            draw_runs(block, first, second < first ? first : second,
                      second % 2 ? 3 : -2);
            jpeg_put_block(&file, 0, 0, block);
        }
        check_file(&file, "first coefficient", first, JPEG_FAST);
    }
    jpeg_pair_close(&pair);
}
END_TEST

/* A value at `index`, then zero runs, then the end of block if asked for. */
static void put_zero_runs(jpeg_writer *file, int index, int runs, bool has_end)
{
    int rest = index - 1;
    jpeg_put_dc(file, 0, 0, 0);
    for (; rest > 15; rest -= 16)
        jpeg_put_symbol(file, JPEG_AC, 0, JPEG_ZERO_RUN);
    jpeg_put_symbol(file, JPEG_AC, 0, rest << 4 | 2);
    jpeg_put_value(file, 3, 2);
    for (int i = 0; i < runs; i++)
        jpeg_put_symbol(file, JPEG_AC, 0, JPEG_ZERO_RUN);
    if (has_end)
        jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
}

START_TEST(zero_runs_may_reach_the_end_of_a_block_or_stop_before)
{
    if (!open_decoders(_i))
        return;
    for (int index = 1; index < 64; index++)
        for (int runs = 0; index + 16 * runs < 64; runs++) {
            plan plan = plan_of(16, 8, 0, index % 2, index);
            jpeg_writer file = begin_file(&plan);
            put_zero_runs(&file, index, runs, index + 16 * runs < 63);
            put_zero_runs(&file, 63 - 16 * runs, runs, false);
            check_file(&file, "zero runs", index * 4 + runs, JPEG_FAST);
        }
    jpeg_pair_close(&pair);
}
END_TEST

/* Sparse or dense; sizes up to `size_max`, or of ones to be stuffed. */
static void draw_block(int block[64], int size_max, uint64_t *state)
{
    int density = 1 + jpeg_random_below(state, 64);
    bool has_ones = jpeg_random_below(state, 4) == 0;
    block[0] = jpeg_random_below(state, 1024) - 512;
    for (int i = 1; i < 64; i++) {
        int size = 1 + jpeg_random_below(state, size_max);
        block[i] = 0;
        if (jpeg_random_below(state, 64) < density)
            block[i] = has_ones
                           ? (1 << size) - 1
                           : jpeg_random_below(state, 2 << size) - (1 << size);
    }
}

/* All MCUs, with restarts as planned. */
static void put_mcus(jpeg_writer *file, const plan *plan, int size_max,
                     uint64_t *state)
{
    int h = samplings[plan->sampling].h, v = samplings[plan->sampling].v;
    int columns = (plan->width + 8 * h - 1) / (8 * h);
    int rows = (plan->height + 8 * v - 1) / (8 * v);
    int block[64];
    for (int mcu = 0; mcu < columns * rows; mcu++) {
        if (plan->interval && mcu && mcu % plan->interval == 0)
            jpeg_put_restart(file, mcu / plan->interval - 1,
                             jpeg_random_below(state, 2));
        for (int i = 0; i < samplings[plan->sampling].components; i++)
            for (int n = i ? 1 : h * v; n > 0; n--) {
                draw_block(block, size_max, state);
                jpeg_put_block(file, i, plan->tables[i], block);
            }
    }
}

START_TEST(random_coefficients_tables_and_restarts)
{
    if (!open_decoders(_i))
        return;
    for (int i = 0; i < ROUNDS / 3; i++) {
        uint64_t state = (uint64_t)i;
        plan plan = plan_of(5 + jpeg_random_below(&state, SIDE_MAX),
                            1 + jpeg_random_below(&state, SIDE_MAX),
                            i % SAMPLINGS, jpeg_random_below(&state, 2),
                            jpeg_random_below(&state, JPEG_AC_SYMBOLS));
        plan.interval = jpeg_random_below(&state, 5);
        jpeg_writer file = begin_file(&plan);
        put_mcus(&file, &plan, 6, &state);
        check_file(&file, "random", i, JPEG_FAST);
    }
    jpeg_pair_close(&pair);
}
END_TEST

/* Few coefficients or many, up to a magnitude that is anywhere on a scale. */
static void draw_extremes(int block[64], uint64_t *state)
{
    int n = 1 + jpeg_random_below(state, jpeg_random_below(state, 2) ? 63 : 4);
    int size = 1 + jpeg_random_below(state, 10);
    memset(block, 0, 64 * sizeof(block[0]));
    block[0] = jpeg_random_below(state, 2048) - 1024;
    for (int i = 0; i < n; i++)
        block[jpeg_random_below(state, 64)] =
            value_of_size(size, jpeg_random_below(state, 4));
}

START_TEST(extreme_coefficients_have_the_pixels_of_libjpeg)
{
    if (!open_decoders(_i))
        return;
    leat__jpeg_counts before = leat__image_jpeg_counts(pair.whole);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t state = (uint64_t)i;
        plan plan = plan_of(8, 8, 0, 0, 0);
        plan.quantum =
            1 + jpeg_random_below(&state, 1 << jpeg_random_below(&state, 8));
        int block[64];
        draw_extremes(block, &state);
        jpeg_writer file = begin_file(&plan);
        jpeg_put_block(&file, 0, 0, block);
        check_file(&file, "extreme", i, JPEG_NOT_DECODED);
    }
    leat__jpeg_counts now = leat__image_jpeg_counts(pair.whole);
    ck_assert_int_gt(now.fast - before.fast, ROUNDS / 4);
    ck_assert_int_gt(now.library - before.library, ROUNDS / 50);
    jpeg_pair_close(&pair);
}
END_TEST

START_TEST(a_block_of_one_value_may_have_any)
{
    if (!open_decoders(_i))
        return;
    for (int value = -1024; value < 1024; value++)
        for (int quantum = 1; quantum < 64; quantum += 3 + value % 2) {
            plan plan = plan_of(8, 8, 0, 0, 0);
            plan.quantum = quantum;
            int block[64] = {value};
            jpeg_writer file = begin_file(&plan);
            jpeg_put_block(&file, 0, 0, block);
            check_file(&file, "DC", value * 64 + quantum + (1 << 20),
                       abs(value * quantum) < FLAT_MAX ? JPEG_FAST
                                                       : JPEG_NOT_DECODED);
        }
    jpeg_pair_close(&pair);
}
END_TEST

/*
 * Blocks of 63 symbols of 17 bits, most of them ones, then two that together
 * have `last` of them and another DC coefficient: with two bits more or fewer
 * from file to file the data ends on either side of the decoder's window.
 */
static void put_near_window(jpeg_writer *file, int blocks, int last, int dc)
{
    int block[64];
    for (int i = 0; i < 64; i++)
        block[i] = i > 0;
    for (int i = 0; i < blocks; i++)
        jpeg_put_block(file, 0, 0, block);
    block[0] = dc;
    for (int n = 0; n < 2; n++, last -= 63) {
        for (int i = 63; i > 0 && i > last; i--)
            block[i] = 0;
        for (int i = 1; i <= 63 && i <= last; i++)
            block[i] = 1;
        jpeg_put_block(file, 0, 0, block);
    }
}

START_TEST(data_may_end_anywhere_in_the_window)
{
    if (!open_decoders(_i))
        return;
    for (int i = 0; i < 8 * 127; i++) {
        int blocks = i & 1 ? WINDOW / 134 - 2 : 2 * WINDOW / 134 - 2;
        plan plan = plan_of((blocks + 2) * 8, 8, 0, 0, 9);
        jpeg_writer file = begin_file(&plan);
        put_near_window(&file, blocks, i / 8, (1 << i / 2 % 4 * 3) - 1);
        check_file(&file, "window", i, JPEG_FAST);
    }
    jpeg_pair_close(&pair);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jpeg_codes");
    TCase *tcase = tcase_create("jpeg_codes");
    tcase_set_timeout(tcase, 300);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_symbol_may_have_a_code_of_each_length, 0,
                        JPEG_ISAS);
    tcase_add_loop_test(tcase, each_run_of_zeros_may_begin_and_end_anywhere, 0,
                        JPEG_ISAS);
    tcase_add_loop_test(tcase,
                        zero_runs_may_reach_the_end_of_a_block_or_stop_before,
                        0, JPEG_ISAS);
    tcase_add_loop_test(tcase, random_coefficients_tables_and_restarts, 0,
                        JPEG_ISAS);
    tcase_add_loop_test(tcase, extreme_coefficients_have_the_pixels_of_libjpeg,
                        0, JPEG_ISAS);
    tcase_add_loop_test(tcase, a_block_of_one_value_may_have_any, 0, JPEG_ISAS);
    tcase_add_loop_test(tcase, data_may_end_anywhere_in_the_window, 0,
                        JPEG_ISAS);
    return suite_run(suite);
}
