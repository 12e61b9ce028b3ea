#include "base/memory.h"
#include "support/process_memory.h"
#include "support/suite.h"
#include "tools/image/image_writer.h"
#include "tools/import/image_record.h"

#include <leat/datum.h>
#include <leat/image.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEIGHT = 5, WIDTH = 7, PIXELS = HEIGHT * WIDTH };

static char folder[] = "/tmp/leat-image-record-XXXXXX";
static unsigned char planes[3 * PIXELS];
static leat_image_decoder *decoder;

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void write_images(void)
{
    unsigned char *bytes;
    size_t size;
    struct canvas colour = {3, HEIGHT, WIDTH, planes, NULL};
    struct canvas gray = {1, HEIGHT, WIDTH, planes, NULL};
    ck_assert_int_eq(
        image_writer_encode(&colour, image_writer_png, 0, NULL, &bytes, &size),
        LEAT_OK);
    write_file("colour.png", bytes, size);
    write_file("colour.PNG", bytes, size);
    write_file("colour.jpg", bytes, size);
    write_file("cut.png", bytes, size / 2);
    /* Bytes after the end tell the file from what our writer would make. */
    bytes = realloc(bytes, size + 1);
    bytes[size] = 0;
    write_file("colour", bytes, size + 1);
    free(bytes);
    ck_assert_int_eq(
        image_writer_encode(&gray, image_writer_png, 0, NULL, &bytes, &size),
        LEAT_OK);
    write_file("gray.png", bytes, size);
    free(bytes);
    ck_assert_int_eq(
        image_writer_encode(&gray, image_writer_jpeg, 50, NULL, &bytes, &size),
        LEAT_OK);
    write_file("gray.jpeg", bytes, size);
    free(bytes);
    ck_assert_int_eq(image_writer_encode(&colour, image_writer_jpeg, 90, NULL,
                                         &bytes, &size),
                     LEAT_OK);
    write_file("photo.jpeg", bytes, size);
    write_file("photo", bytes, size);
    free(bytes);
    write_file("empty.jpg", "", 0);
    write_file("text.jpg", "no image\n", 9);
}

static void make_folder(void)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < 3 * PIXELS; i++)
        planes[i] = (unsigned char)(i * 2 + i % 3);
    write_images();
    char path[256];
    snprintf(path, sizeof(path), "%s/pipe.png", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(leat_image_decoder_create(&decoder), LEAT_OK);
}

static void remove_folder(void)
{
    leat_image_decoder_destroy(decoder);
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* A record with its Datum; made by a maker that lives until `finish`. */
struct made {
    struct image_record_maker *maker;
    struct pool_record record;
    leat_datum datum;
};

static int try_record(struct made *made,
                      const struct image_record_options *options,
                      const char *name)
{
    ck_assert_int_eq(image_record_maker_create(&made->maker, options), LEAT_OK);
    int status = image_record_make(
        made->maker, name, &(struct image_label){.class = 9}, &made->record);
    if (!status)
        ck_assert_int_eq(leat_datum_parse(&made->datum, made->record.bytes,
                                          made->record.size),
                         LEAT_OK);
    return status;
}

static void make_record(struct made *made,
                        const struct image_record_options *options,
                        const char *name)
{
    int status = try_record(made, options, name);
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert_int_eq(made->datum.label, 9);
}

static void finish(struct made *made)
{
    image_record_maker_destroy(made->maker);
}

START_TEST(an_image_over_the_bound_is_unreadable)
{
    struct image_record_options options = {.root = folder,
                                           .max_image_bytes = 1000};
    struct made made;
    ck_assert_int_eq(try_record(&made, &options, "colour.png"), LEAT_EDATA);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "colour.png: decoding the image takes"));
    finish(&made);
    options.max_image_bytes = 1000000;
    make_record(&made, &options, "colour.png");
    finish(&made);
}
END_TEST

START_TEST(raw_pixels_are_planes_blue_first)
{
    struct image_record_options options = {.root = folder};
    struct made made;
    make_record(&made, &options, "colour.png");
    ck_assert_int_eq(made.datum.channels, 3);
    ck_assert_int_eq(made.datum.height, HEIGHT);
    ck_assert_int_eq(made.datum.width, WIDTH);
    ck_assert_int_eq(made.datum.encoded, 0);
    ck_assert_uint_eq(made.datum.data_size, sizeof(planes));
    ck_assert_mem_eq(made.datum.data, planes, sizeof(planes));
    /* Caffe writes that encoded is false. */
    static const unsigned char end[] = {5 << 3, 9, 7 << 3, 0};
    ck_assert_mem_eq((const char *)made.record.bytes + made.record.size -
                         sizeof(end),
                     end, sizeof(end));
    ck_assert_int_eq(made.record.shape[0], 3);
    ck_assert_int_eq(made.record.shape[1], HEIGHT);
    ck_assert_int_eq(made.record.shape[2], WIDTH);
    finish(&made);
}
END_TEST

START_TEST(a_gray_file_becomes_colour_and_a_colour_one_gray)
{
    struct image_record_options options = {.root = folder};
    struct made made;
    make_record(&made, &options, "gray.png");
    ck_assert_int_eq(made.datum.channels, 3);
    for (int c = 0; c < 3; c++)
        ck_assert_mem_eq(made.datum.data + (ptrdiff_t)c * PIXELS, planes,
                         PIXELS);
    finish(&made);
    options.gray = 1;
    make_record(&made, &options, "gray.png");
    ck_assert_int_eq(made.datum.channels, 1);
    ck_assert_mem_eq(made.datum.data, planes, PIXELS);
    finish(&made);
    make_record(&made, &options, "colour.png");
    ck_assert_int_eq(made.datum.channels, 1);
    ck_assert_uint_eq(made.datum.data_size, PIXELS);
    finish(&made);
}
END_TEST

START_TEST(a_size_is_height_first)
{
    struct image_record_options options = {.root = folder, .size = {3, 11}};
    struct made made;
    make_record(&made, &options, "colour.png");
    ck_assert_int_eq(made.datum.height, 3);
    ck_assert_int_eq(made.datum.width, 11);
    ck_assert_uint_eq(made.datum.data_size, 3 * 3 * 11);
    ck_assert_int_eq(made.record.shape[1], 3);
    ck_assert_int_eq(made.record.shape[2], 11);
    finish(&made);
}
END_TEST

/* Whether a record holds the very bytes of a file of ours. */
static int holds_file(const struct made *made, const char *name)
{
    char path[256];
    static unsigned char bytes[1 << 16];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    return size == made->datum.data_size &&
           !memcmp(bytes, made->datum.data, size);
}

START_TEST(files_keep_their_bytes_where_these_are_what_is_asked_for)
{
    static const struct {
        const char *name;
        enum image_encoding encoding;
        int gray;
        int resized;
        int kept;
        int first; /* byte of the encoded image */
    } cases[] = {
        {"colour.png", IMAGE_BY_NAME, 0, 0, 1, 0x89},
        {"colour.PNG", IMAGE_PNG, 0, 0, 1, 0x89},
        {"colour.png", IMAGE_JPEG, 0, 0, 0, 0xff},
        {"colour", IMAGE_BY_NAME, 0, 0, 1, 0x89},
        {"colour", IMAGE_PNG, 0, 0, 0, 0x89},
        {"photo.jpeg", IMAGE_JPEG, 0, 0, 1, 0xff},
        {"photo.jpeg", IMAGE_PNG, 0, 0, 0, 0x89},
        {"photo", IMAGE_BY_NAME, 0, 0, 1, 0xff},
        /* The name counts, as in Caffe, not what is in the file. */
        {"colour.jpg", IMAGE_JPEG, 0, 0, 1, 0x89},
        {"gray.png", IMAGE_BY_NAME, 0, 0, 1, 0x89},
        {"gray.png", IMAGE_BY_NAME, 1, 0, 1, 0x89},
        {"colour.png", IMAGE_BY_NAME, 1, 0, 0, 0x89},
        {"photo.jpeg", IMAGE_BY_NAME, 1, 0, 0, 0xff},
        {"colour.png", IMAGE_BY_NAME, 0, 1, 0, 0x89},
        {"colour.jpg", IMAGE_BY_NAME, 0, 1, 0, 0xff},
        {"photo", IMAGE_BY_NAME, 0, 1, 0, 0xff},
        {"colour", IMAGE_BY_NAME, 0, 1, 0, 0x89},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct image_record_options options = {.root = folder,
                                               .gray = cases[i].gray,
                                               .encoding = cases[i].encoding};
        if (cases[i].resized)
            options.size[0] = options.size[1] = 6;
        struct made made;
        make_record(&made, &options, cases[i].name);
        ck_assert_msg(holds_file(&made, cases[i].name) == cases[i].kept,
                      "case %zu, %s", i, cases[i].name);
        ck_assert_msg(made.datum.data[0] == cases[i].first, "case %zu, %s", i,
                      cases[i].name);
        ck_assert_int_eq(made.datum.encoded, 1);
        ck_assert_int_eq(made.datum.channels, 0);
        leat_image image;
        ck_assert_int_eq(leat_image_decode(decoder, made.datum.data,
                                           made.datum.data_size,
                                           LEAT_COLOR_NATIVE, &image),
                         LEAT_OK);
        ck_assert_int_eq(image.height, cases[i].resized ? 6 : HEIGHT);
        if (cases[i].gray)
            ck_assert_int_eq(image.channels, 1);
        finish(&made);
    }
}
END_TEST

/* Whatever allocation fails, a gray file is not encoded anew. */
START_TEST(memory_that_is_short_changes_no_record)
{
    const struct image_record_options options = {
        .root = folder, .encoding = IMAGE_BY_NAME, .gray = true};
    struct made whole;
    make_record(&whole, &options, "gray.jpeg");
    bool failed = true;
    for (int n = 0; failed; n++) {
        struct image_record_maker *maker;
        struct pool_record record;
        ck_assert_int_eq(image_record_maker_create(&maker, &options), LEAT_OK);
        leat__alloc_fail_at(n);
        int status = image_record_make(
            maker, "gray.jpeg", &(struct image_label){.class = 9}, &record);
        failed = leat__alloc_fail_at(-1) < 0;
        ck_assert_msg(!status || (failed && status == LEAT_ENOMEM),
                      "allocation %d: status %d", n, status);
        if (!status) {
            ck_assert_uint_eq(record.size, whole.record.size);
            ck_assert_mem_eq(record.bytes, whole.record.bytes, record.size);
        }
        image_record_maker_destroy(maker);
    }
    finish(&whole);
}
END_TEST

START_TEST(a_png_holds_the_pixels_without_loss)
{
    struct image_record_options options = {.root = folder,
                                           .encoding = IMAGE_PNG};
    struct made made;
    make_record(&made, &options, "colour");
    leat_image image;
    ck_assert_int_eq(leat_image_decode(decoder, made.datum.data,
                                       made.datum.data_size, LEAT_COLOR_NATIVE,
                                       &image),
                     LEAT_OK);
    ck_assert_int_eq(image.channels, 3);
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < 3; c++)
            ck_assert_int_eq(image.pixels[i * 3 + c], planes[c * PIXELS + i]);
    finish(&made);
}
END_TEST

START_TEST(a_root_is_a_directory_with_or_without_a_slash)
{
    char root[64];
    snprintf(root, sizeof(root), "%s/", folder);
    struct image_record_options options = {.root = root};
    struct made made;
    make_record(&made, &options, "colour.png");
    finish(&made);
    make_record(&made, &options, "/colour.png");
    finish(&made);
    char path[128];
    snprintf(path, sizeof(path), "%s/colour.png", folder);
    options.root = NULL;
    make_record(&made, &options, path);
    finish(&made);
}
END_TEST

static void assert_unreadable(const struct image_record_options *options,
                              const char *name, const char *expected)
{
    struct made made;
    ck_assert_int_eq(try_record(&made, options, name), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), name) != NULL, "%s",
                  leat_last_error());
    ck_assert_msg(strstr(leat_last_error(), expected) != NULL,
                  "'%s' is missing: %s", expected, leat_last_error());
    /* The maker is as good as before. */
    struct pool_record record;
    ck_assert_int_eq(image_record_make(made.maker, "colour.png",
                                       &(struct image_label){.class = 1},
                                       &record),
                     LEAT_OK);
    finish(&made);
}

START_TEST(what_cannot_be_read_is_named_with_its_reason)
{
    const struct image_record_options options = {.root = folder};
    assert_unreadable(&options, "nothing.png", "No such file");
    assert_unreadable(&options, "", "a directory");
    assert_unreadable(&options, "pipe.png", "a pipe");
    assert_unreadable(&options, "colour.png/x", "Not a directory");
    assert_unreadable(&options, "empty.jpg", "no bytes");
    assert_unreadable(&options, "text.jpg", "neither JPEG nor PNG");
    assert_unreadable(&options, "cut.png", "PNG");
    char name[5000];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    struct made made;
    ck_assert_int_eq(try_record(&made, &options, name), LEAT_EDATA);
    finish(&made);
}
END_TEST

/* A hole of 256 MiB. */
START_TEST(a_large_file_that_is_no_image_is_not_read)
{
    const struct image_record_options options = {.root = folder};
    char path[256];
    write_file("hole.jpg", "", 0);
    snprintf(path, sizeof(path), "%s/hole.jpg", folder);
    ck_assert_int_eq(truncate(path, 256 << 20), 0);
    long before = process_memory_most();
    assert_unreadable(&options, "hole.jpg", "neither JPEG nor PNG");
    ck_assert_int_lt(process_memory_most() - before, 64 << 10);
}
END_TEST

START_TEST(an_image_that_cannot_be_encoded_is_unreadable)
{
    const struct image_record_options options = {
        .root = folder, .size = {1, 65501}, .encoding = IMAGE_JPEG};
    struct made made;
    ck_assert_int_eq(try_record(&made, &options, "colour.png"), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "colour.png: JPEG of"));
    finish(&made);
}
END_TEST

START_TEST(a_record_has_less_than_two_gibibytes)
{
    const struct image_record_options options = {.root = folder,
                                                 .size = {1 << 15, 1 << 15}};
    struct made made;
    ck_assert_int_eq(try_record(&made, &options, "colour.png"), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "more than the 2147"));
    finish(&made);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_record");
    TCase *records = tcase_create("records");
    tcase_add_checked_fixture(records, make_folder, remove_folder);
    tcase_add_test(records, an_image_over_the_bound_is_unreadable);
    tcase_add_test(records, raw_pixels_are_planes_blue_first);
    tcase_add_test(records, a_gray_file_becomes_colour_and_a_colour_one_gray);
    tcase_add_test(records, a_size_is_height_first);
    tcase_add_test(records,
                   files_keep_their_bytes_where_these_are_what_is_asked_for);
    tcase_add_test(records, memory_that_is_short_changes_no_record);
    tcase_add_test(records, a_png_holds_the_pixels_without_loss);
    tcase_add_test(records, a_root_is_a_directory_with_or_without_a_slash);
    tcase_add_test(records, what_cannot_be_read_is_named_with_its_reason);
    tcase_add_test(records, a_large_file_that_is_no_image_is_not_read);
    tcase_add_test(records, an_image_that_cannot_be_encoded_is_unreadable);
    tcase_add_test(records, a_record_has_less_than_two_gibibytes);
    suite_add_tcase(suite, records);
    return suite_run(suite);
}
