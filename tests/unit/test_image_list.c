#include "support/suite.h"
#include "tools/import/image_list.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a list of these bytes; its path is the same for all. */
static int labels_of_a_line;

static int open_bytes(struct image_list **out, const char *bytes, size_t size)
{
    int fd = memfd_create("list", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int status = image_list_open(out, path, labels_of_a_line);
    close(fd);
    return status;
}

static struct image_list *open_text(const char *text)
{
    struct image_list *list = NULL;
    int status = open_bytes(&list, text, strlen(text));
    ck_assert_msg(!status, "%s", leat_last_error());
    return list;
}

static void assert_image(const struct image_list *list, int64_t line,
                         const char *name, int label)
{
    ck_assert_str_eq(image_list_name(list, line), name);
    ck_assert_int_eq(image_list_label(list, line).class, label);
    ck_assert_uint_eq(image_list_label(list, line).count, 0);
}

static void assert_refused(const char *text, const char *expected)
{
    struct image_list *list = NULL;
    ck_assert_int_eq(open_bytes(&list, text, strlen(text)), LEAT_EFORMAT);
    ck_assert_ptr_null(list);
    ck_assert_msg(strstr(leat_last_error(), expected) != NULL,
                  "'%s' is missing: %s", expected, leat_last_error());
}

static void assert_labels(const struct image_list *list, int64_t line,
                          const char *name, float first, float second)
{
    struct image_label label = image_list_label(list, line);
    ck_assert_str_eq(image_list_name(list, line), name);
    ck_assert_uint_eq(label.count, 2);
    ck_assert(label.value[0] == first && label.value[1] == second);
}

static void without_labels(void)
{
    labels_of_a_line = 0;
}

START_TEST(a_line_may_have_several_labels)
{
    labels_of_a_line = 2;
    struct image_list *list =
        open_text("a.jpg 3 -0.5\n\nb 1.jpg 1e3   16777216\r\nc  1 +2 \n");
    ck_assert_int_eq(image_list_lines(list), 4);
    ck_assert_int_eq(image_list_images(list), 3);
    assert_labels(list, 0, "a.jpg", 3, -0.5f);
    ck_assert_uint_eq(image_list_label(list, 1).count, 0);
    assert_labels(list, 2, "b 1.jpg", 1000, 16777216);
    assert_labels(list, 3, "c ", 1, 2);
    image_list_shuffle(list, 3);
    for (int64_t i = 0; i < 4; i++)
        if (image_list_name(list, i) && *image_list_name(list, i) == 'b')
            assert_labels(list, i, "b 1.jpg", 1000, 16777216);
    image_list_close(list);
}
END_TEST

START_TEST(a_list_that_another_file_replaces_is_noticed)
{
    struct image_list *list;
    char path[64];
    int fd = memfd_create("list", MFD_CLOEXEC);
    int other = memfd_create("other", MFD_CLOEXEC);
    ck_assert_int_eq(write(fd, "a 1\n", 4), 4);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(image_list_open(&list, path, 0), LEAT_OK);
    ck_assert_int_eq(image_list_check(list, path), LEAT_OK);
    ck_assert_int_eq(dup2(other, fd), fd);
    ck_assert_int_eq(image_list_check(list, path), LEAT_EFORMAT);
    close(fd);
    close(other);
    ck_assert_int_eq(image_list_check(list, path), LEAT_EFORMAT);
    image_list_close(list);
}
END_TEST

/* Archives give the lists of two releases one time. */
START_TEST(a_list_of_equal_size_and_time_is_read_again)
{
    static const struct timespec then[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    static const char *const texts[] = {"a 1\n", "b 1\n"};
    struct image_list *list;
    char path[64];
    int fd[2];
    for (int i = 0; i < 2; i++) {
        fd[i] = memfd_create("list", MFD_CLOEXEC);
        const char *text = texts[i && _i];
        ck_assert_int_eq(pwrite(fd[i], text, 4, 0), 4);
        ck_assert_int_eq(futimens(fd[i], then), 0);
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
    ck_assert_int_eq(image_list_open(&list, path, 0), LEAT_OK);
    ck_assert_int_eq(dup2(fd[1], fd[0]), fd[0]);
    ck_assert_int_eq(image_list_check(list, path), _i ? LEAT_EFORMAT : LEAT_OK);
    close(fd[0]);
    close(fd[1]);
    image_list_close(list);
}
END_TEST

START_TEST(labels_count_in_the_digest)
{
    labels_of_a_line = 2;
    static const char *const texts[] = {"a 1 2", "a 1 2.5", "a 2 1"};
    uint64_t digest[3];
    for (int i = 0; i < 3; i++) {
        struct image_list *list = open_text(texts[i]);
        digest[i] = image_list_digest(list);
        image_list_close(list);
    }
    ck_assert(digest[0] != digest[1] && digest[0] != digest[2]);
}
END_TEST

START_TEST(labels_that_a_datum_cannot_hold_are_refused)
{
    labels_of_a_line = 2;
    assert_refused("a 1 2\nb 1\n", "line 2: expected a name and as many");
    assert_refused("a 1 2\nb one 2\n", "line 2: expected as many numbers");
    assert_refused("a 1 2 \na 1 nan", "line 2: expected as many numbers");
    assert_refused("a 1 inf", "expected as many numbers");
    assert_refused("a 1 0x10", "expected as many numbers");
    assert_refused("a 1 1e", "expected as many numbers");
    assert_refused("a 1 --1", "expected as many numbers");
    assert_refused("1 2", "expected a name and as many");
    assert_refused(" 1 2", "expected a name and as many");
    assert_refused("a 1 1e39", "larger than the floats");
    assert_refused("a 0 0\nb 16777217 0", "line 2: a label is a whole number");
    assert_refused("a -16777217 0", "a label is a whole number over 16777216");
    labels_of_a_line = 0;
    assert_refused("a 0.5", "--labels N takes");
}
END_TEST

START_TEST(the_last_space_splits_a_line)
{
    struct image_list *list =
        open_text("a.jpg 3\ncat gray.jpg -1\nb  c  12\n/d/e.png +7");
    ck_assert_int_eq(image_list_lines(list), 4);
    ck_assert_int_eq(image_list_images(list), 4);
    assert_image(list, 0, "a.jpg", 3);
    assert_image(list, 1, "cat gray.jpg", -1);
    assert_image(list, 2, "b  c ", 12);
    assert_image(list, 3, "/d/e.png", 7);
    image_list_close(list);
}
END_TEST

START_TEST(line_ends_may_have_blanks_and_carriage_returns)
{
    struct image_list *list = open_text("a.jpg 1\r\nb.jpg 2 \t\r\nc.jpg 3\r");
    ck_assert_int_eq(image_list_lines(list), 3);
    assert_image(list, 0, "a.jpg", 1);
    assert_image(list, 1, "b.jpg", 2);
    assert_image(list, 2, "c.jpg", 3);
    image_list_close(list);
}
END_TEST

START_TEST(a_blank_line_counts_but_is_no_image)
{
    struct image_list *list = open_text("\na.jpg 1\n \r\n\nb.jpg 2\n\n");
    ck_assert_int_eq(image_list_lines(list), 6);
    ck_assert_int_eq(image_list_images(list), 2);
    ck_assert_ptr_null(image_list_name(list, 0));
    assert_image(list, 1, "a.jpg", 1);
    ck_assert_ptr_null(image_list_name(list, 2));
    assert_image(list, 4, "b.jpg", 2);
    ck_assert_ptr_null(image_list_name(list, 5));
    image_list_close(list);
}
END_TEST

START_TEST(labels_have_32_bits)
{
    struct image_list *list =
        open_text("a 2147483647\nb -2147483648\nc 0000000000\n");
    assert_image(list, 0, "a", INT32_MAX);
    assert_image(list, 1, "b", INT32_MIN);
    assert_image(list, 2, "c", 0);
    image_list_close(list);
    assert_refused("a 2147483648\n", "line 1");
    assert_refused("a -2147483649\n", "32 bits");
    assert_refused("a 99999999999999999999999\n", "32 bits");
}
END_TEST

START_TEST(a_line_that_is_no_image_is_named)
{
    assert_refused("a.jpg 1\nb.jpg\n", "line 2: expected a name");
    assert_refused("a.jpg\t1\n", "a space");
    assert_refused(" 1\n", "expected a name");
    assert_refused("a.jpg x\n", "expected a label");
    assert_refused("a.jpg 1x\n", "expected a label");
    assert_refused("a.jpg 1.0\n", "expected a label");
    assert_refused("a.jpg -\n", "expected a label");
    assert_refused("a.jpg +-1\n", "expected a label");
}
END_TEST

START_TEST(an_empty_list_is_refused)
{
    assert_refused("", "no images");
    assert_refused("\n\r\n  \n", "no images");
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
    struct image_list *list = NULL;
    static const char bytes[] = "a.jpg 1\nb\0c 2\n";
    ck_assert_int_eq(open_bytes(&list, bytes, sizeof(bytes) - 1), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "line 2"));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "NUL"));
    ck_assert_int_eq(image_list_open(&list, "/dev/zero", 0), LEAT_EFORMAT);
    ck_assert_int_eq(image_list_open(&list, "/", 0), LEAT_EIO);
    ck_assert_int_eq(image_list_open(&list, "/nowhere/list", 0), LEAT_EIO);
}
END_TEST

START_TEST(a_name_is_as_long_as_a_key_allows)
{
    char text[600];
    memset(text, 'x', sizeof(text));
    snprintf(text + IMAGE_NAME_MOST, 8, " 1\n");
    struct image_list *list = open_text(text);
    ck_assert_uint_eq(strlen(image_list_name(list, 0)), IMAGE_NAME_MOST);
    image_list_close(list);
    memset(text, 'x', sizeof(text));
    snprintf(text + IMAGE_NAME_MOST + 1, 8, " 1\n");
    assert_refused(text, "502 bytes");
}
END_TEST

/* Which line each image stood in. */
static void take_order(int order[100], uint64_t seed, int shuffled)
{
    char text[2000];
    size_t length = 0;
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "%d.jpg %d\n", i, i);
    struct image_list *list = open_text(text);
    if (shuffled)
        image_list_shuffle(list, seed);
    for (int i = 0; i < 100; i++) {
        order[i] = image_list_label(list, i).class;
        ck_assert_int_eq(atoi(image_list_name(list, i)), order[i]);
    }
    image_list_close(list);
}

START_TEST(a_shuffled_list_is_a_permutation_that_its_seed_decides)
{
    int plain[100], one[100], again[100], two[100], seen[100] = {0};
    take_order(plain, 0, 0);
    take_order(one, 1, 1);
    take_order(again, 1, 1);
    take_order(two, 2, 1);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(plain[i], i);
        seen[one[i]]++;
    }
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert_mem_eq(one, again, sizeof(one));
    ck_assert_mem_ne(one, two, sizeof(one));
    ck_assert_mem_ne(one, plain, sizeof(one));
    /* Recorded: a shuffle that was begun must be resumable. */
    ck_assert_int_eq(one[0], 16);
}
END_TEST

static uint64_t digest_of(const char *text)
{
    struct image_list *list = open_text(text);
    uint64_t digest = image_list_digest(list);
    image_list_close(list);
    return digest;
}

START_TEST(the_digest_tells_lists_apart)
{
    uint64_t digest = digest_of("a 1\nb 2\n");
    ck_assert_uint_eq(digest, digest_of("a 1\r\nb +2\n"));
    ck_assert_uint_ne(digest, digest_of("b 2\na 1\n"));
    ck_assert_uint_ne(digest, digest_of("a 1\nb 3\n"));
    ck_assert_uint_ne(digest, digest_of("a 1\n\nb 2\n"));
    ck_assert_uint_ne(digest, digest_of("a 1\nB 2\n"));
}
END_TEST

static int written = -1; /* at the second read of anything */
static int reads;

ssize_t __real_read(int fd, void *out, size_t size);
ssize_t __wrap_read(int fd, void *out, size_t size);

ssize_t __wrap_read(int fd, void *out, size_t size)
{
    if (written >= 0 && ++reads == 2)
        ck_assert_int_eq(pwrite(written, "b", 1, 0), 1);
    return __real_read(fd, out, size);
}

/* Half of the lines are read before, half of them after. */
START_TEST(a_list_that_is_written_while_it_is_read_is_refused)
{
    enum { LINES = 8000, BYTES = 4 };
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char path[64];
    struct image_list *list = NULL;
    int fd = memfd_create("list", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < LINES; i++)
        ck_assert_int_eq(write(fd, "a 1\n", BYTES), BYTES);
    ck_assert_int_eq(futimens(fd, long_ago), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(image_list_open(&list, path, 0), LEAT_OK);
    image_list_close(list);
    written = fd;
    ck_assert_int_eq(image_list_open(&list, path, 0), LEAT_EFORMAT);
    written = -1;
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "was written while it was read"));
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image_list");
    TCase *lists = tcase_create("lists");
    tcase_add_checked_fixture(lists, NULL, without_labels);
    tcase_add_test(lists, a_line_may_have_several_labels);
    tcase_add_test(lists, a_list_that_another_file_replaces_is_noticed);
    tcase_add_loop_test(lists, a_list_of_equal_size_and_time_is_read_again, 0,
                        2);
    tcase_add_test(lists, labels_count_in_the_digest);
    tcase_add_test(lists, labels_that_a_datum_cannot_hold_are_refused);
    tcase_add_test(lists, the_last_space_splits_a_line);
    tcase_add_test(lists, line_ends_may_have_blanks_and_carriage_returns);
    tcase_add_test(lists, a_blank_line_counts_but_is_no_image);
    tcase_add_test(lists, labels_have_32_bits);
    tcase_add_test(lists, a_line_that_is_no_image_is_named);
    tcase_add_test(lists, an_empty_list_is_refused);
    tcase_add_test(lists, bytes_that_are_no_text_are_refused);
    tcase_add_test(lists, a_name_is_as_long_as_a_key_allows);
    tcase_add_test(lists,
                   a_shuffled_list_is_a_permutation_that_its_seed_decides);
    tcase_add_test(lists, the_digest_tells_lists_apart);
    tcase_add_test(lists, a_list_that_is_written_while_it_is_read_is_refused);
    suite_add_tcase(suite, lists);
    return suite_run(suite);
}
