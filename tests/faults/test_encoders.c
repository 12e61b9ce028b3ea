/* Images are encoded while memory runs out, at each allocation in turn. */
#include "faults/faults.h"
#include "support/suite.h"
#include "tools/image/image_writer.h"

#include <leat/status.h>

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS_MAX = 1000 };

static struct canvas canvas;

static void set_up(void)
{
    /* Its JPEG does not fit into the room that is taken first, or next. */
    static const int shape[3] = {3, 128, 128};
    ck_assert_int_eq(canvas_init(&canvas, shape), LEAT_OK);
    int label;
    ck_assert_int_eq(canvas_draw_noise(&canvas, 1, 0, NULL, &label), LEAT_OK);
}

static void tear_down(void)
{
    canvas_finish(&canvas);
}

static int encode_jpeg(unsigned char **out, size_t *size)
{
    return image_writer_encode(&canvas, image_writer_jpeg, 95, NULL, out, size);
}

static int encode_png(unsigned char **out, size_t *size)
{
    return image_writer_encode(&canvas, image_writer_png, 0, NULL, out, size);
}

/* How many allocations failed; libjpeg makes do with less of some. */
static int fail_each(int (*encode)(unsigned char **out, size_t *size))
{
    for (int n = 0;; n++) {
        unsigned char *bytes = NULL;
        size_t size = 0;
        ck_assert_int_lt(n, CALLS_MAX);
        fault_arm(FAULT_MEMORY, n, ENOMEM, 0);
        int status = encode(&bytes, &size);
        int has_struck = fault_disarm();
        ck_assert_msg(!status || (has_struck && status == LEAT_ENOMEM),
                      "allocation %d: status %d, %s", n, status,
                      leat_last_error());
        ck_assert_int_eq(bytes != NULL, !status);
        free(bytes);
        if (has_struck)
            continue;
        ck_assert_uint_gt(size, 8192);
        return n;
    }
}

START_TEST(a_jpeg_may_want_for_memory)
{
    int n = fail_each(encode_jpeg);
    if (!n)
        printf("left out: allocations are the sanitizer's\n");
}
END_TEST

START_TEST(a_png_may_want_for_memory)
{
    (void)fail_each(encode_png);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("encoders");
    TCase *tcase = tcase_create("encoders");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_jpeg_may_want_for_memory);
    tcase_add_test(tcase, a_png_may_want_for_memory);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
