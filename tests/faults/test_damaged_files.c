/*
 * Databases on disk, damaged bit by bit and page by page, and read as users do.
 * Whatever is damaged, a pass ends with an error or
 * with as many records as there are, without a signal and without hanging.
 */
#include "base/random.h"
#include "lmdb_fixture.h"
#include "support/layer_fixture.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/datum.h>

#include <fcntl.h>

enum { RECORDS = 60, PAGE = 4096, SECONDS = 110 };

static char directory[FIXTURE_PATH];
static char path[FIXTURE_PATH + 16];
static unsigned char *bytes; /* of the sound file */
static size_t size;
static leat_pipeline *pipeline;
static int fd;
static int refused, survived;

/* Images of 300 bytes in leaves, and some of 5000 on pages of their own; the
   keys are long enough for two levels. */
static void make_record(int number, fixture_record *out)
{
    static unsigned char pixels[5000];
    int side = number % 20 == 7 ? 50 : 3;
    int rows = 100;
    leat_datum datum = {
        1, rows, side, number, 0, pixels, (size_t)side * (size_t)rows, NULL, 0};
    memset(pixels, number, sizeof(pixels));
    out->key_size = (size_t)sprintf(out->key, "%0200d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

static void begin(void)
{
    watchdog_start(SECONDS);
    fixture_directory(directory);
    fixture_write(directory, make_record, RECORDS);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    bytes = fixture_load(path, &size);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), LEAT_OK);
    refused = survived = 0;
}

static void end(void)
{
    leat_pipeline_unref(pipeline);
    close(fd);
    free(bytes);
    fixture_remove(directory);
    watchdog_stop();
}

static void put(size_t at, const void *data, size_t n)
{
    ck_assert_int_eq(pwrite(fd, data, n, (off_t)at), (ssize_t)n);
}

static void note(int status, int64_t records, const char *what)
{
    if (status == LEAT_END) {
        ck_assert_msg(records == RECORDS, "%s: %lld records and no error", what,
                      (long long)records);
        survived++;
        return;
    }
    ck_assert_msg(status < 0 && leat_last_error()[0], "%s: status %d", what,
                  status);
    refused++;
}

/* A pass in order. Bad records are counted: they are there. */
static void walk(leat_reader *reader)
{
    leat_sample sample;
    int64_t n = 0;
    int status;
    leat_sample_init(&sample);
    do {
        status = leat_reader_next(reader, &sample);
        n += status == LEAT_OK || status == LEAT_EDATA;
        ck_assert_int_le(n, RECORDS);
    } while (status == LEAT_OK || status == LEAT_EDATA);
    note(status, n, "a walk");
    leat_sample_finish(&sample);
}

/* The same by number, for which the index is made. */
static void look_up(leat_reader *reader)
{
    leat_sample sample, *out = &sample;
    int64_t n = 0;
    int status = LEAT_OK, got;
    leat_sample_init(&sample);
    while (n < RECORDS && (status == LEAT_OK || status == LEAT_EDATA)) {
        status =
            leat_reader_read_at(reader, &(leat_position){0, n}, &out, 1, &got);
        n += status == LEAT_OK || status == LEAT_EDATA;
    }
    note(status < 0 && status != LEAT_EDATA ? status : LEAT_END, n,
         "a look-up");
    leat_sample_finish(&sample);
}

static void read_file(void)
{
    leat_reader *reader;
    leat_sample sample, *out = &sample;
    int status = leat_pipeline_open(pipeline, &reader);
    if (status) {
        note(status, 0, "opening");
        return;
    }
    walk(reader);
    look_up(reader);
    const leat_position last = {0, RECORDS - 1};
    int got;
    leat_sample_init(&sample);
    (void)leat_reader_seek(reader, last, NULL);
    (void)leat_reader_next_batch(reader, &out, 1, &got);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}

/* A layer's threads over the same file, for an epoch and a half. */
static void feed_from_file(void)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_blob *top[2];
    options.batch_size = 1; /* images of two shapes */
    options.workers = 2;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], NULL), LEAT_OK);
    int status = leat_data_layer_setup(layer, top, 2);
    for (int i = 0; i < RECORDS * 3 / 2 && !status; i++) {
        status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
        if (!status)
            ck_assert_int_eq(leat_data_layer_batch(layer)->from[0].record,
                             i % RECORDS);
        if (status == LEAT_EDATA)
            status = LEAT_OK;
    }
    ck_assert_int_le(status, 0);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
}

static size_t load16(size_t at)
{
    return bytes[at] | (size_t)bytes[at + 1] << 8;
}

/* Whether the byte belongs to a page's header, its offsets or a node's. */
static int is_structure(size_t at)
{
    size_t page = at / PAGE * PAGE, offset = at % PAGE;
    if (page < (size_t)2 * PAGE)
        return offset < 152;
    if (offset < 16)
        return 1;
    size_t flags = load16(page + 10), lower = load16(page + 12);
    if (!(flags & 3))
        return 0;
    if (offset < lower)
        return 1;
    for (size_t slot = 16; slot < lower; slot += 2) {
        size_t node = load16(page + slot);
        if (offset >= node && offset < node + 8)
            return 1;
    }
    return 0;
}

/* Pages of values have no structure but in the first of each run. */
static int is_inside_value(size_t page)
{
    uint64_t number;
    memcpy(&number, bytes + page, sizeof(number));
    return number != page / PAGE;
}

START_TEST(any_bit_of_the_structure_may_be_flipped)
{
    int flips = 0;
    for (size_t at = 0; at < size; at++) {
        size_t page = at / PAGE * PAGE;
        if (page >= (size_t)2 * PAGE && is_inside_value(page)) {
            at = page + PAGE - 1;
            continue;
        }
        if (!is_structure(at))
            continue;
        for (int bit = 0; bit < 8; bit++, flips++) {
            unsigned char flipped = (unsigned char)(bytes[at] ^ 1U << bit);
            put(at, &flipped, 1);
            if (flips % 2 == _i)
                read_file();
            if (flips % 32 == _i)
                feed_from_file();
            put(at, &bytes[at], 1);
        }
    }
    printf("%d flips, half of them here: %d passes refused, %d whole\n", flips,
           refused, survived);
    ck_assert_int_gt(refused, 500);
    read_file();
}
END_TEST

START_TEST(any_page_may_be_random_or_another)
{
    static leat__mt19937 random;
    unsigned char page[PAGE];
    leat__mt19937_seed(&random, 11);
    for (int round = 0; round < 400; round++) {
        size_t to = leat__mt19937_next(&random) % (size / PAGE) * PAGE;
        size_t from = leat__mt19937_next(&random) % (size / PAGE) * PAGE;
        /* A meta page as it was before is no damage that anybody could see. */
        int is_older = to < (size_t)2 * PAGE && from < (size_t)2 * PAGE;
        size_t keep = round % 4 < 2 || is_older ? 0 : 16;
        memcpy(page, bytes + (round % 2 ? from : to), PAGE);
        memcpy(page, bytes + to, keep);
        for (size_t i = keep; round % 2 == 0 && i < PAGE; i++)
            page[i] = (unsigned char)leat__mt19937_next(&random);
        put(to, page, PAGE);
        read_file();
        feed_from_file();
        put(to, bytes + to, PAGE);
    }
    printf("400 pages: %d passes refused, %d whole\n", refused, survived);
    ck_assert_int_gt(refused, 100);
    read_file();
}
END_TEST

/* It is made anew by whoever opens it alone, if it is one by its first bytes.
 */
START_TEST(any_byte_of_the_lock_file_may_be_wrong)
{
    enum { MAGIC_BYTES = 4 };
    char lock[FIXTURE_PATH + 16];
    size_t length;
    snprintf(lock, sizeof(lock), "%s/lock.mdb", directory);
    unsigned char *sound = fixture_load(lock, &length);
    for (size_t at = 0; at < length; at += at < 256 ? 1 : 61) {
        sound[at] ^= 0xff;
        fixture_store(lock, sound, length);
        read_file();
        sound[at] ^= 0xff;
    }
    ck_assert_int_eq(refused, MAGIC_BYTES);
    for (size_t cut = 0; cut < length; cut += 97) {
        fixture_store(lock, sound, cut);
        read_file();
    }
    ck_assert_int_eq(refused, MAGIC_BYTES);
    free(sound);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("damaged_files");
    TCase *tcase = tcase_create("damaged_files");
    tcase_add_checked_fixture(tcase, begin, end);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, any_bit_of_the_structure_may_be_flipped, 0, 2);
    tcase_add_test(tcase, any_page_may_be_random_or_another);
    tcase_add_test(tcase, any_byte_of_the_lock_file_may_be_wrong);
    return suite_run(suite);
}
