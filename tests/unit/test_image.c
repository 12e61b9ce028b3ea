#include "base/error.h"
#include "base/memory.h"
#include "data/image.h"
#include "data/image_codec.h"
#include "support/sanitizer.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static int64_t malloc_calls;

#if !IS_SANITIZED
/* glibc's own, below ours, which count what the codecs take behind our back. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes)
{
    malloc_calls++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size)
{
    malloc_calls++;
    return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t bytes)
{
    malloc_calls++;
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    malloc_calls++;
    return __libc_memalign(alignment, bytes);
}
#endif

/* A line of digests.txt: what OpenCV makes of a file. */
typedef struct digest {
    char name[256];
    leat_color color;
    int is_refused;
    int channels, height, width;
    unsigned long sum;
} digest;

typedef struct file_bytes {
    unsigned char *bytes;
    size_t size;
} file_bytes;

/* Of exactly its size, so that a sanitizer sees a read after the end. */
static int read_file(const char *path, file_bytes *out)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    fseek(file, 0, SEEK_END);
    out->size = (size_t)ftell(file);
    rewind(file);
    out->bytes = malloc(out->size + 1);
    ck_assert_uint_eq(fread(out->bytes, 1, out->size, file), out->size);
    fclose(file);
    return 1;
}

static int read_record(const char *key_text, file_bytes *out)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/lmdb/imagenet5_jpeg_lmdb",
             shared_folder());
    MDB_env *env;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    MDB_txn *transaction = NULL;
    MDB_dbi database;
    MDB_val key = {strlen(key_text), (void *)key_text}, value;
    int found = mdb_env_open(env, path, MDB_RDONLY | MDB_NOLOCK, 0) == 0 &&
                mdb_txn_begin(env, NULL, MDB_RDONLY, &transaction) == 0 &&
                mdb_dbi_open(transaction, NULL, 0, &database) == 0 &&
                mdb_get(transaction, database, &key, &value) == 0;
    if (found) {
        char *end = (char *)value.mv_data + value.mv_size;
        char *start = memmem(value.mv_data, value.mv_size, "\xff\xd8\xff", 3);
        out->size = (size_t)(end - start);
        out->bytes = malloc(out->size);
        memcpy(out->bytes, start, out->size);
    }
    if (transaction)
        mdb_txn_abort(transaction);
    mdb_env_close(env);
    return found;
}

static int read_named(const char *name, file_bytes *out)
{
    char path[1024];
    if (!strncmp(name, "record:", 7))
        return read_record(name + 7, out);
    if (!strncmp(name, "shared:", 7))
        snprintf(path, sizeof(path), "%s/%s", shared_folder(), name + 7);
    else
        snprintf(path, sizeof(path), "%s/images/%s", LEAT_TEST_DATA, name);
    return read_file(path, out);
}

static int parse_digest(const char *line, digest *out)
{
    char color[16], shape[64];
    int n = sscanf(line, "%255[^\t]\t%15s\t%63s\t%lx", out->name, color, shape,
                   &out->sum);
    if (line[0] == '#' || n < 3)
        return 0;
    out->color = !strcmp(color, "native")  ? LEAT_COLOR_NATIVE
                 : !strcmp(color, "color") ? LEAT_COLOR_BGR
                                           : LEAT_COLOR_GRAY;
    out->is_refused = !strcmp(shape, "refused");
    if (!out->is_refused)
        ck_assert_int_eq(sscanf(shape, "%dx%dx%d", &out->channels, &out->height,
                                &out->width),
                         3);
    return 1;
}

static size_t pixel_bytes(const leat_image *image)
{
    return (size_t)image->channels * (size_t)image->height *
           (size_t)image->width;
}

static unsigned long sum_of(const leat_image *image)
{
    return crc32_z(0, image->pixels, pixel_bytes(image));
}

static void check_digest(leat_image_decoder *decoder, const digest *expected,
                         const file_bytes *file)
{
    leat_image peeked, image = {0};
    int status = leat_image_decode(decoder, file->bytes, file->size,
                                   expected->color, &image);
    if (expected->is_refused) {
        ck_assert_msg(status == LEAT_EDATA, "%s: %d", expected->name, status);
        ck_assert_ptr_null(image.pixels);
        return;
    }
    ck_assert_msg(status == LEAT_OK, "%s: %s", expected->name,
                  leat_last_error());
    ck_assert_msg(
        image.channels == expected->channels &&
            image.height == expected->height &&
            image.width == expected->width && sum_of(&image) == expected->sum,
        "%s, color %d: other pixels", expected->name, expected->color);
    leat__image_memory memory = leat__image_memory_use(decoder);
    ck_assert_msg(memory.taken <= memory.expected, "%s: %lu bytes, not %lu",
                  expected->name, (unsigned long)memory.taken,
                  (unsigned long)memory.expected);
    ck_assert_int_eq(leat_image_probe(decoder, file->bytes, file->size,
                                      expected->color, &peeked),
                     LEAT_OK);
    ck_assert_ptr_null(peeked.pixels);
    ck_assert_int_eq(peeked.channels, image.channels);
    ck_assert_int_eq(peeked.height, image.height);
    ck_assert_int_eq(peeked.width, image.width);
}

static leat_image_decoder *new_decoder(void)
{
    leat_image_decoder *decoder;
    ck_assert_int_eq(leat_image_decoder_create(&decoder), LEAT_OK);
    return decoder;
}

/* Calls `check` for each line of digests.txt whose file there is. */
static void for_each_digest(void (*check)(leat_image_decoder *, const digest *,
                                          const file_bytes *),
                            int is_shared)
{
    leat_image_decoder *decoder = new_decoder();
    FILE *list = fopen(LEAT_TEST_DATA "/images/digests.txt", "r");
    ck_assert_ptr_nonnull(list);
    char line[512];
    int checked = 0;
    while (fgets(line, sizeof(line), list)) {
        digest expected;
        if (!parse_digest(line, &expected) ||
            (strchr(expected.name, ':') != NULL) != is_shared)
            continue;
        file_bytes file;
        if (!read_named(expected.name, &file)) {
            ck_assert_msg(is_shared, "%s is missing", expected.name);
            continue;
        }
        check(decoder, &expected, &file);
        free(file.bytes);
        checked++;
    }
    fclose(list);
    leat_image_decoder_destroy(decoder);
    if (is_shared && !checked)
        printf("skipped: no shared data in %s\n", shared_folder());
    else
        ck_assert_int_gt(checked, 50);
}

START_TEST(pixels_are_those_of_opencv)
{
    for_each_digest(check_digest, 0);
}
END_TEST

START_TEST(pixels_of_real_images_are_those_of_opencv)
{
    for_each_digest(check_digest, 1);
}
END_TEST

static void check_cuts(leat_image_decoder *decoder, const digest *expected,
                       const file_bytes *file)
{
    if (expected->is_refused || strstr(expected->name, "foreign"))
        return;
    /* The three colours share the lengths among them. */
    for (size_t size = expected->color; size < file->size; size += 3) {
        unsigned char *cut = malloc(size);
        if (size)
            memcpy(cut, file->bytes, size);
        leat_image image;
        int status =
            leat_image_decode(decoder, cut, size, expected->color, &image);
        if (status == LEAT_OK)
            ck_assert_msg(image.height == expected->height &&
                              image.width == expected->width &&
                              sum_of(&image) == expected->sum,
                          "%s after %zu bytes: other pixels", expected->name,
                          size);
        else
            ck_assert_int_eq(status, LEAT_EDATA);
        free(cut);
    }
}

START_TEST(a_cut_image_is_refused_unless_all_its_pixels_are_there)
{
    for_each_digest(check_cuts, 0);
}
END_TEST

static void check_flips(leat_image_decoder *decoder, const digest *expected,
                        const file_bytes *file)
{
    for (size_t i = expected->color; i < file->size; i += 3) {
        unsigned char was = file->bytes[i];
        file->bytes[i] ^= (unsigned char)(1u << i % 8);
        leat_image image, peeked;
        int status = leat_image_decode(decoder, file->bytes, file->size,
                                       expected->color, &image);
        ck_assert(status == LEAT_OK || status == LEAT_EDATA);
        if (status == LEAT_OK) {
            ck_assert_int_eq(leat_image_probe(decoder, file->bytes, file->size,
                                              expected->color, &peeked),
                             LEAT_OK);
            ck_assert_int_eq(peeked.channels, image.channels);
            ck_assert_int_eq(peeked.height, image.height);
            ck_assert_int_eq(peeked.width, image.width);
        }
        file->bytes[i] = was;
    }
    /* Whatever it went through, the decoder is as good as new. */
    check_digest(decoder, expected, file);
}

START_TEST(a_damaged_image_is_refused_or_has_the_shape_of_its_header)
{
    for_each_digest(check_flips, 0);
}
END_TEST

/* Baseline, coefficients of a whole image, arithmetic, CMYK, upright, PNG. */
static const char *const kinds[] = {
    "baseline-420.jpg",    "progressive-420.jpg", "arithmetic-420.jpg",
    "ycck-420.jpg",        "exif-6.jpg",          "rgba-8-interlaced.png",
    "palette-8-alpha.png", "exif-after-data.png", "gray-16.png",
};
#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

START_TEST(nothing_is_allocated_for_the_third_image_of_a_kind)
{
    leat_image_decoder *decoder = new_decoder();
    file_bytes file;
    ck_assert(read_named(kinds[_i], &file));
    leat_image image;
    const leat__image_region part = {3, 2, 2, 2};
    int64_t leat_calls = 0, all_calls = 0;
    /* Check allocates too: nothing is asserted in here. */
    int status = LEAT_OK;
    for (int i = 0; i < 4 && status == LEAT_OK; i++) {
        if (i == 2) {
            leat_calls = leat__alloc_count();
            all_calls = malloc_calls;
        }
        status = leat_image_decode(decoder, file.bytes, file.size,
                                   LEAT_COLOR_BGR, &image);
        if (status == LEAT_OK)
            status = leat__image_open(decoder, file.bytes, file.size,
                                      LEAT_COLOR_BGR, &image);
        if (status == LEAT_OK)
            status = leat__image_read(decoder, &part, &image);
    }
    leat_calls = leat__alloc_count() - leat_calls;
    all_calls = malloc_calls - all_calls;
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_eq(leat_calls, 0);
    ck_assert_int_eq(all_calls, 0);
    free(file.bytes);
    leat_image_decoder_destroy(decoder);
}
END_TEST

START_TEST(every_failed_allocation_is_reported_and_survived)
{
    file_bytes file;
    ck_assert(read_named(kinds[_i], &file));
    int status = LEAT_ENOMEM;
    for (int n = 0; status != LEAT_OK; n++) {
        ck_assert_int_lt(n, 200);
        leat_image_decoder *decoder = NULL;
        leat_image image;
        leat__alloc_fail_at(n);
        status = leat_image_decoder_create(&decoder);
        if (status == LEAT_OK)
            status = leat_image_decode(decoder, file.bytes, file.size,
                                       LEAT_COLOR_BGR, &image);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        if (decoder)
            ck_assert_int_eq(leat_image_decode(decoder, file.bytes, file.size,
                                               LEAT_COLOR_GRAY, &image),
                             LEAT_OK);
        leat_image_decoder_destroy(decoder);
    }
    free(file.bytes);
}
END_TEST

static void check_error(const void *bytes, size_t size, const char *text)
{
    leat_image_decoder *decoder = new_decoder();
    leat_image image;
    ck_assert_int_eq(
        leat_image_decode(decoder, bytes, size, LEAT_COLOR_NATIVE, &image),
        LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "'%s' lacks '%s'",
                  leat_last_error(), text);
    ck_assert_int_eq(
        leat_image_probe(decoder, bytes, size, LEAT_COLOR_NATIVE, &image),
        LEAT_EDATA);
    leat_image_decoder_destroy(decoder);
}

START_TEST(what_is_neither_jpeg_nor_png_is_named)
{
    static const char *const names[][2] = {{"foreign.gif", "GIF"},
                                           {"foreign.bmp", "BMP"},
                                           {"foreign.tiff", "TIFF"},
                                           {"foreign.webp", "WebP"},
                                           {"gray-16.png", "16 bits"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        file_bytes file;
        ck_assert(read_named(names[i][0], &file));
        check_error(file.bytes, file.size, names[i][1]);
        free(file.bytes);
    }
    check_error("", 0, "no bytes");
    check_error("hello, world", 12, "begins with 'hello, w'");
}
END_TEST

START_TEST(sizes_are_limited)
{
    ck_assert_int_eq(leat__image_check_size(1 << 20, 1 << 7), LEAT_OK);
    ck_assert_int_eq(leat__image_check_size(11585, 11585), LEAT_OK);
    ck_assert_int_eq(leat__image_check_size(1 << 20, (1 << 7) + 1), LEAT_EDATA);
    ck_assert_int_eq(leat__image_check_size(11586, 11586), LEAT_EDATA);
    ck_assert_int_eq(leat__image_check_size((1 << 20) + 1, 1), LEAT_EDATA);
    ck_assert_int_eq(leat__image_check_size(1, (1 << 20) + 1), LEAT_EDATA);
}
END_TEST

/* Where height and width stand in the header of that fixture. */
static unsigned char *jpeg_size(const file_bytes *file, int start_of_frame)
{
    char mark[] = {'\xff', (char)start_of_frame, 0};
    unsigned char *found = memmem(file->bytes, file->size, mark, 3);
    ck_assert_ptr_nonnull(found);
    return found + 5;
}

START_TEST(a_small_file_cannot_claim_a_huge_image)
{
    static const struct {
        const char *name;
        int start_of_frame;
    } claims[] = {{"baseline-420.jpg", 0xc0}, {"progressive-420.jpg", 0xc2}};
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        file_bytes file;
        ck_assert(read_named(claims[i].name, &file));
        unsigned char *size = jpeg_size(&file, claims[i].start_of_frame);
        memcpy(size, "\x20\x00\x20\x00", 4);
        check_error(file.bytes, file.size, "ends early");
        memcpy(size, "\xff\x00\xff\x00", 4);
        check_error(file.bytes, file.size, "65280 x 65280");
        free(file.bytes);
    }
}
END_TEST

/* Neither has as many bits as pixels: only the limit keeps memory. */
START_TEST(what_could_claim_a_huge_image_is_limited)
{
    file_bytes file;
    ck_assert(read_named("arithmetic-420.jpg", &file));
    memcpy(jpeg_size(&file, 0xc9), "\x70\x00\x70\x00", 4);
    check_error(file.bytes, file.size, "28672 x 28672 pixels; at most");
    free(file.bytes);
    ck_assert(read_named("gray-1.png", &file));
    unsigned char *header = file.bytes + 12;
    memcpy(header + 4, "\0\0\x70\0\0\0\x70\0", 8);
    uint32_t sum = htonl((uint32_t)crc32(0, header, 17));
    memcpy(header + 17, &sum, sizeof(sum));
    /* As many bytes as deflate needs for so many pixels at the least. */
    size_t size = (size_t)28672 * 28672 / 8 / 1000;
    unsigned char *bytes = calloc(1, size);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, file.bytes, file.size);
    check_error(bytes, size, "28672 x 28672 pixels; at most");
    free(bytes);
    free(file.bytes);
}
END_TEST

START_TEST(images_with_warnings_are_counted_once)
{
    leat_image_decoder *decoder = new_decoder();
    file_bytes clean, dirty;
    ck_assert(read_named("restart-420.jpg", &clean));
    ck_assert(read_named("junk-before-restart.jpg", &dirty));
    leat_image image;
    for (int i = 0; i < 3; i++)
        leat_image_decode(decoder, clean.bytes, clean.size, LEAT_COLOR_BGR,
                          &image);
    ck_assert_int_eq(leat_image_warnings(decoder), 0);
    ck_assert_ptr_null(leat_image_warning(decoder));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_image_decode(decoder, dirty.bytes, dirty.size,
                                           LEAT_COLOR_BGR, &image),
                         LEAT_OK);
    ck_assert_int_eq(leat_image_warnings(decoder), 3);
    ck_assert_str_eq(leat_image_warning(decoder),
                     "JPEG: Corrupt JPEG data: 3 extraneous bytes before "
                     "marker 0xd1");
    leat_image_decode(decoder, clean.bytes, clean.size, LEAT_COLOR_BGR, &image);
    ck_assert_ptr_null(leat_image_warning(decoder));
    leat_image_decode(decoder, dirty.bytes, dirty.size, LEAT_COLOR_BGR, &image);
    ck_assert_ptr_nonnull(leat_image_warning(decoder));
    leat_image_decode(decoder, "x", 1, LEAT_COLOR_BGR, &image);
    ck_assert_ptr_null(leat_image_warning(decoder));
    free(clean.bytes);
    free(dirty.bytes);
    leat_image_decoder_destroy(decoder);
}
END_TEST

START_TEST(a_jpeg_that_lacks_only_its_end_marker_gives_its_pixels)
{
    leat_image_decoder *decoder = new_decoder();
    file_bytes file;
    ck_assert(read_named("baseline-420.jpg", &file));
    leat_image image;
    ck_assert_int_eq(leat_image_decode(decoder, file.bytes, file.size,
                                       LEAT_COLOR_BGR, &image),
                     LEAT_OK);
    unsigned long sum = sum_of(&image);
    ck_assert_int_eq(leat_image_decode(decoder, file.bytes, file.size - 2,
                                       LEAT_COLOR_BGR, &image),
                     LEAT_OK);
    ck_assert_uint_eq(sum_of(&image), sum);
    ck_assert_int_eq(leat_image_warnings(decoder), 1);
    ck_assert_str_eq(leat_image_warning(decoder),
                     "JPEG: its end marker is missing");
    free(file.bytes);
    leat_image_decoder_destroy(decoder);
}
END_TEST

START_TEST(outputs_are_untouched_by_a_failure)
{
    leat_image_decoder *decoder = new_decoder();
    leat_image image = {.channels = 7, .height = 8, .width = 9};
    ck_assert_int_lt(
        leat_image_decode(decoder, "GIF89a", 6, LEAT_COLOR_BGR, &image), 0);
    ck_assert_int_eq(image.channels, 7);
    ck_assert_int_eq(image.height, 8);
    ck_assert_int_eq(image.width, 9);
    leat_image_decoder_destroy(decoder);
    leat_image_decoder_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image");
    TCase *tcase = tcase_create("image");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, pixels_are_those_of_opencv);
    tcase_add_test(tcase, pixels_of_real_images_are_those_of_opencv);
    tcase_add_test(tcase,
                   a_cut_image_is_refused_unless_all_its_pixels_are_there);
    tcase_add_test(tcase,
                   a_damaged_image_is_refused_or_has_the_shape_of_its_header);
    tcase_add_loop_test(
        tcase, nothing_is_allocated_for_the_third_image_of_a_kind, 0, KINDS);
    tcase_add_loop_test(tcase, every_failed_allocation_is_reported_and_survived,
                        0, KINDS);
    tcase_add_test(tcase, what_is_neither_jpeg_nor_png_is_named);
    tcase_add_test(tcase, sizes_are_limited);
    tcase_add_test(tcase, a_small_file_cannot_claim_a_huge_image);
    tcase_add_test(tcase, what_could_claim_a_huge_image_is_limited);
    tcase_add_test(tcase, images_with_warnings_are_counted_once);
    tcase_add_test(tcase,
                   a_jpeg_that_lacks_only_its_end_marker_gives_its_pixels);
    tcase_add_test(tcase, outputs_are_untouched_by_a_failure);
    return suite_run(suite);
}
