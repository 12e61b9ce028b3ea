/* What is too long for a contact sheet is cut with an ellipsis. */
#include "support/suite.h"
#include "tools/delivery/contact_sheet.h"
#include "tools/image/image_writer.h"

#include <check.h>
#include <string.h>

/* A sheet's pixels with a title; its letters are twice as large as small. */
static void draw(struct contact_sheet *sheet, const char *title,
                 const char *subtitle)
{
    ck_assert_int_eq(contact_sheet_init(sheet, 1, 112, 0), LEAT_OK);
    contact_sheet_title(sheet, title, subtitle);
}

static void assert_same(const char *title, const char *subtitle,
                        const char *as_title, const char *as_subtitle)
{
    struct contact_sheet found, expected;
    draw(&found, title, subtitle);
    draw(&expected, as_title, as_subtitle);
    ck_assert_int_eq(found.raster.width, 420);
    ck_assert_mem_eq(found.raster.pixels, expected.raster.pixels,
                     (size_t)found.raster.width * (size_t)found.raster.height *
                         3);
    raster_finish(&found.raster);
    raster_finish(&expected.raster);
}

/* 32 letters have room in 388 pixels, 65 small ones. */
#define TEN "0123456789"

START_TEST(of_a_long_title_the_end_is_shown_after_an_ellipsis)
{
    assert_same("/a/long/way/" TEN TEN TEN, "", "...123456789" TEN TEN, "");
}
END_TEST

START_TEST(of_a_long_subtitle_the_beginning)
{
    assert_same("", TEN TEN TEN TEN TEN TEN TEN, "",
                TEN TEN TEN TEN TEN TEN "01...");
}
END_TEST

START_TEST(what_fits_is_whole)
{
    struct contact_sheet whole, cut;
    draw(&whole, TEN TEN TEN "01", "");
    draw(&cut, TEN TEN TEN "012", "");
    ck_assert_int_ne(
        memcmp(whole.raster.pixels, cut.raster.pixels, (size_t)420 * 60 * 3),
        0);
    raster_finish(&whole.raster);
    raster_finish(&cut.raster);
}
END_TEST

START_TEST(a_name_says_the_format)
{
    ck_assert(contact_sheet_writer("sheet.png") == image_writer_png);
    ck_assert(contact_sheet_writer("a.b/sheet") == image_writer_png);
    ck_assert(contact_sheet_writer(".hidden") == image_writer_png);
    ck_assert(contact_sheet_writer("x.jpg") == image_writer_jpeg);
    ck_assert(contact_sheet_writer("a/x.JPEG") == image_writer_jpeg);
    ck_assert(contact_sheet_writer("x.gif") == NULL);
    ck_assert(contact_sheet_writer("x.") == NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("contact_sheet");
    TCase *tcase = tcase_create("sheets");
    tcase_add_test(tcase, of_a_long_title_the_end_is_shown_after_an_ellipsis);
    tcase_add_test(tcase, of_a_long_subtitle_the_beginning);
    tcase_add_test(tcase, what_fits_is_whole);
    tcase_add_test(tcase, a_name_says_the_format);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
