#include "support/suite.h"
#include "tools/image/canvas.h"
#include "tools/image/image_writer.h"

#include <leat/status.h>

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static canvas_draw *const draws[] = {canvas_draw_digit, canvas_draw_noise};

static struct canvas canvas;

static void set_up(void)
{
    static const int shape[3] = {3, 20, 24};
    ck_assert_int_eq(canvas_init(&canvas, shape), LEAT_OK);
}

static void tear_down(void)
{
    canvas_finish(&canvas);
}

static int rows_left;

static int count_rows(void)
{
    return rows_left-- > 0 ? LEAT_OK : LEAT_ECANCELLED;
}

/* How many rows are checked until all is drawn. */
static int draw_each_row(canvas_draw *draw)
{
    for (int row = 0;; row++) {
        int label = -1;
        rows_left = row;
        int status = draw(&canvas, 1, 3, count_rows, &label);
        if (status == LEAT_OK) {
            ck_assert_int_eq(rows_left, 0);
            ck_assert_int_ge(label, 0);
            return row;
        }
        ck_assert_int_eq(status, LEAT_ECANCELLED);
        ck_assert_int_eq(rows_left, -1);
        ck_assert_int_eq(label, -1);
    }
}

START_TEST(its_drawing_ends_within_a_row)
{
    int label;
    int rows = draw_each_row(draws[_i]);
    ck_assert_int_ge(rows, canvas.channels * canvas.height);
    unsigned char *checked = malloc(canvas_bytes(&canvas));
    ck_assert_ptr_nonnull(checked);
    memcpy(checked, canvas.pixels, canvas_bytes(&canvas));
    ck_assert_int_eq(draws[_i](&canvas, 1, 3, NULL, &label), LEAT_OK);
    ck_assert_mem_eq(checked, canvas.pixels, canvas_bytes(&canvas));
    free(checked);
}
END_TEST

START_TEST(its_encoding_ends_within_a_row)
{
    image_writer *const writers[] = {image_writer_png, image_writer_jpeg};
    int label;
    ck_assert_int_eq(canvas_draw_noise(&canvas, 1, 3, NULL, &label), LEAT_OK);
    for (int row = 0; row <= canvas.height; row++) {
        bool is_whole = row == canvas.height;
        unsigned char *bytes = NULL;
        size_t size;
        rows_left = row;
        int status = image_writer_encode(&canvas, writers[_i], 90, count_rows,
                                         &bytes, &size);
        ck_assert_int_eq(status, is_whole ? LEAT_OK : LEAT_ECANCELLED);
        ck_assert_int_eq(rows_left, is_whole ? 0 : -1);
        ck_assert_int_eq(bytes != NULL, is_whole);
        free(bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("canvas");
    TCase *tcase = tcase_create("rows");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, its_drawing_ends_within_a_row, 0, 2);
    tcase_add_loop_test(tcase, its_encoding_ends_within_a_row, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
