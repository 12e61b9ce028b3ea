/* What is too long for a contact sheet is cut with an ellipsis, and a signal
   ends its encoding. */
#include "support/suite.h"
#include "tools/cli/interrupt.h"
#include "tools/delivery/contact_sheet.h"
#include "tools/image/image_writer.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static int rows_left;

static int count_rows(void)
{
    return rows_left-- > 0 ? LEAT_OK : LEAT_ECANCELLED;
}

START_TEST(its_encoding_ends_within_a_row)
{
    image_writer *const writers[] = {image_writer_png, image_writer_jpeg};
    struct contact_sheet sheet;
    draw(&sheet, TEN, TEN);
    for (int row = 0; row <= sheet.raster.height; row++) {
        unsigned char *bytes = NULL;
        size_t size;
        rows_left = row;
        int status = image_writer_bytes(&sheet.raster, writers[_i], 92,
                                        count_rows, &bytes, &size);
        bool is_whole = row == sheet.raster.height;
        ck_assert_int_eq(status, is_whole ? LEAT_OK : LEAT_ECANCELLED);
        ck_assert_int_eq(rows_left, is_whole ? 0 : -1);
        ck_assert_int_eq(bytes != NULL, is_whole);
        free(bytes);
    }
    raster_finish(&sheet.raster);
}
END_TEST

START_TEST(after_a_signal_none_is_saved)
{
    static const char *const names[] = {"/signal.png", "/signal.jpg"};
    char path[] = "/tmp/leat-sheet-XXXXXX", name[64];
    struct contact_sheet sheet;
    int status;
    ck_assert_ptr_nonnull(mkdtemp(path));
    snprintf(name, sizeof(name), "%s%s", path, names[_i]);
    draw(&sheet, TEN, TEN);
    pid_t child = fork(); /* the signal stays with it */
    if (child == 0) {
        interrupt_catch();
        raise(SIGTERM);
        _exit(contact_sheet_save(&sheet, name) != LEAT_ECANCELLED);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(rmdir(path), 0); /* empty */
    raster_finish(&sheet.raster);
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
    tcase_add_loop_test(tcase, its_encoding_ends_within_a_row, 0, 2);
    tcase_add_loop_test(tcase, after_a_signal_none_is_saved, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
