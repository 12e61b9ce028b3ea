#include "base/memory.h"
#include "readers/lmdb/lmdb_index.h"
#include "support/lmdb_walk.h"
#include "support/page_image.h"
#include "support/suite.h"

#include <sys/mman.h>

START_TEST(index_and_seek_touch_no_value_on_overflow_pages)
{
    static leat__lmdb_walker walker;
    page_image made;
    leat__lmdb_map map;
    leat__lmdb_index *index;
    page_image_build(&made, 4096, 1000);
    size_t size = (size_t)made.pages * 4096;
    unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    memcpy(bytes, made.bytes, size);
    for (uint64_t page = 2; page < made.pages; page++) {
        if (made.bytes[page * 4096 + 10] == 4)
            ck_assert_int_eq(
                mprotect(bytes + page * 4096, (size_t)3 * 4096, PROT_NONE), 0);
    }
    ck_assert_int_eq(leat__lmdb_map_latest(&map, "memory", bytes, size), 0);
    ck_assert_int_eq(leat__lmdb_index_create(&index, &map, NULL), LEAT_OK);
    ck_assert_int_eq(index->count, 1000);
    leat__lmdb_walker_init(&walker, &map);
    for (int64_t i = 0; i <= 1000; i++)
        ck_assert_int_eq(leat__lmdb_walker_seek(&walker, i), LEAT_OK);
    leat__lmdb_index_destroy(index);
    munmap(bytes, size);
    free(made.bytes);
}
END_TEST

START_TEST(an_index_survives_every_failing_allocation)
{
    size_t size;
    leat__lmdb_map map;
    leat__lmdb_index *index = NULL;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    ck_assert_int_eq(leat__lmdb_map_latest(&map, "memory", bytes, size), 0);
    int status = LEAT_ENOMEM, n = 0;
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = leat__lmdb_index_create(&index, &map, NULL);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    leat__alloc_fail_at(-1);
    ck_assert_int_gt(n, 1);
    leat__lmdb_index_destroy(index);
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_index");
    TCase *tcase = tcase_create("lmdb_index");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, index_and_seek_touch_no_value_on_overflow_pages);
    tcase_add_test(tcase, an_index_survives_every_failing_allocation);
    return suite_run(suite);
}
