/* What a cache keeps of a sample, and bytes that are no entry. */
#include "base/memory.h"
#include "decorators/cache/cache_entry.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <string.h>

static leat_sample sample;
static leat_sample again;
static const unsigned char pixels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void begin(void)
{
    const int64_t shape[] = {3, 2, 2};
    const int64_t none[] = {0};
    const int32_t label = 7;
    leat_sample_init(&sample);
    leat_sample_init(&again);
    leat_sample_clear(&again);
    leat_sample_set(&sample, 0, LEAT_UINT8, 3, shape, pixels);
    leat_sample_set(&sample, 1, LEAT_INT32, 0, NULL, &label);
    leat_sample_set(&sample, 2, LEAT_BYTES, 1, none, NULL);
    sample.from = (leat_provenance){
        .source = "a file", .record = 41, .key = "k\0y", .key_size = 3};
    ck_assert_int_eq(leat_sample_own(&sample), LEAT_OK);
}

static void end(void)
{
    leat_sample_finish(&sample);
    leat_sample_finish(&again);
}

static void *write_entry(const leat__cache_item *item, size_t *size)
{
    *size = leat__cache_entry_size(item);
    ck_assert_uint_eq(*size % LEAT__CACHE_ENTRY_UNIT, 0);
    void *entry = leat__alloc_aligned(*size);
    leat__cache_entry_write(item, entry);
    return entry;
}

START_TEST(a_sample_comes_back_as_it_was)
{
    size_t size;
    leat_token mark, read;
    leat_token_init(&mark);
    leat_token_init(&read);
    ck_assert_int_eq(leat_token_put(&mark, "12345", 5), LEAT_OK);
    const leat__cache_item item = {.sample = &sample, .mark = &mark};
    void *entry = write_entry(&item, &size);
    ck_assert_int_eq(leat__cache_entry_view(entry, size, &again), LEAT_OK);
    ck_assert_int_eq(again.nfields, 3);
    for (int i = 0; i < 3; i++) {
        const leat_field *a = &sample.field[i], *b = &again.field[i];
        ck_assert(a->dtype == b->dtype && a->ndim == b->ndim &&
                  a->bytes == b->bytes);
        ck_assert_mem_eq(a->shape, b->shape, sizeof(a->shape));
        ck_assert(a->bytes == 0 || !memcmp(a->data, b->data, a->bytes));
        ck_assert_uint_eq((uintptr_t)b->data % LEAT__CACHE_ENTRY_UNIT, 0);
    }
    ck_assert_str_eq(again.from.source, "a file");
    ck_assert_int_eq(again.from.record, 41);
    ck_assert_uint_eq(again.from.key_size, 3);
    ck_assert_mem_eq(again.from.key, "k\0y", 3);
    ck_assert_int_eq(leat__cache_entry_mark(entry, size, &read), LEAT_OK);
    ck_assert_uint_eq(read.size, 5);
    ck_assert_mem_eq(read.bytes, "12345", 5);
    leat_token_finish(&mark);
    leat_token_finish(&read);
    leat__free(entry);
}
END_TEST

START_TEST(fields_of_other_readers_stay_out_and_before)
{
    size_t size;
    const leat__cache_item item = {.sample = &sample, .first = 2};
    void *entry = write_entry(&item, &size);
    leat_sample_set(&again, 0, LEAT_UINT8, 0, NULL, pixels);
    ck_assert_int_eq(leat__cache_entry_view(entry, size, &again), LEAT_OK);
    ck_assert_int_eq(again.nfields, 2);
    ck_assert_ptr_eq(again.field[0].data, pixels);
    ck_assert_uint_eq(again.field[1].bytes, 0);
    leat__free(entry);
}
END_TEST

START_TEST(a_bad_record_keeps_its_line_and_name)
{
    size_t size;
    const leat__cache_item item = {.sample = &sample, .line = "it is bad"};
    sample.from.key_cut = 20;
    void *entry = write_entry(&item, &size);
    ck_assert_int_eq(leat__cache_entry_view(entry, size, &again), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "it is bad");
    ck_assert_int_eq(again.from.record, 41);
    ck_assert_uint_eq(again.from.key_size, 3);
    ck_assert_uint_eq(again.from.key_cut, 20);
    ck_assert_int_eq(again.nfields, 0);
    leat__free(entry);
}
END_TEST

/* Every bit flipped, every length: refused, or a sample within the bytes. */
START_TEST(damaged_bytes_stay_inside)
{
    size_t size;
    const leat__cache_item item = {.sample = &sample,
                                   .line = _i ? "it is bad" : NULL};
    unsigned char *entry = write_entry(&item, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        unsigned char *copy = leat__alloc_aligned(size);
        memcpy(copy, entry, size);
        copy[bit / 8] ^= (unsigned char)(1 << bit % 8);
        leat_sample_clear(&again);
        int status = leat__cache_entry_view(copy, size, &again);
        ck_assert(!status || status == LEAT_EDATA || status == LEAT_EFORMAT);
        for (int i = 0; i < again.nfields && !status; i++) {
            const char *data = again.field[i].data;
            ck_assert(data >= (char *)copy &&
                      data + again.field[i].bytes <= (char *)copy + size);
        }
        leat__free(copy);
    }
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *copy = leat__alloc_aligned(cut);
        memcpy(copy, entry, cut);
        leat_sample_clear(&again);
        ck_assert_int_eq(leat__cache_entry_view(copy, cut, &again),
                         LEAT_EFORMAT);
        leat__free(copy);
    }
    leat__free(entry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_entry");
    TCase *tcase = tcase_create("cache_entry");
    tcase_add_checked_fixture(tcase, begin, end);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_sample_comes_back_as_it_was);
    tcase_add_test(tcase, fields_of_other_readers_stay_out_and_before);
    tcase_add_test(tcase, a_bad_record_keeps_its_line_and_name);
    tcase_add_loop_test(tcase, damaged_bytes_stay_inside, 0, 2);
    return suite_run(suite);
}
