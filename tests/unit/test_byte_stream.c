#include "base/fork.h"
#include "base/memory.h"
#include "readers/stream/byte_stream.h"
#include "support/child.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define LIMIT ((size_t)1 << 20)

static char folder[64];
static char path[128];

static void setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/leat-stream-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/file", folder);
}

static void teardown(void)
{
    remove(path);
    rmdir(folder);
}

static void write_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Compresses into `out`, and returns the size. */
static size_t pack(unsigned char *out, size_t room, const void *bytes,
                   size_t size, leat__compression compression)
{
    z_stream z = {0};
    int window = compression == LEAT__COMPRESSION_GZIP ? 15 + 16 : 15;
    deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)size;
    z.next_out = out;
    z.avail_out = (unsigned)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t packed = room - z.avail_out;
    deflateEnd(&z);
    return packed;
}

static void fill_pattern(unsigned char *bytes, size_t size)
{
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)("abcdefgh"[state >> 29]);
    }
}

/* Reads all by windows of `step`, compares it with `expected` as far as it
   goes, and returns the status; *total bytes came. */
static int read_all(leat__compression compression, size_t step,
                    const unsigned char *expected, size_t size, size_t *total)
{
    leat__byte_stream stream;
    leat__byte_stream_init(&stream, LIMIT, NULL);
    *total = 0;
    int status = leat__byte_stream_open(&stream, path, compression);
    while (!status) {
        status = leat__byte_stream_need(&stream, step);
        size_t n = stream.left < step ? stream.left : step;
        /* Asserts of Check that hold cost a system call each, unlike this. */
        if (*total + n > size || stream.offset != (int64_t)*total)
            ck_abort_msg("after %zu bytes: %zu more, at %lld", *total, n,
                         (long long)stream.offset);
        if (n == 0)
            break;
        if (memcmp(stream.next, expected + *total, n) != 0)
            ck_abort_msg("after %zu bytes: %zu others", *total, n);
        leat__byte_stream_consume(&stream, n);
        *total += n;
        if (status)
            break;
    }
    leat__byte_stream_finish(&stream);
    return status;
}

static unsigned char data[300000], packed[400000];

static const leat__compression all[] = {
    LEAT__COMPRESSION_NONE, LEAT__COMPRESSION_GZIP, LEAT__COMPRESSION_ZLIB};

START_TEST(any_window_gives_the_same_bytes)
{
    static const size_t steps[] = {1, 2, 3, 10, 4096, 70000, 131072, 299999};
    leat__compression compression = all[_i];
    size_t total;
    fill_pattern(data, sizeof(data));
    size_t n = sizeof(data);
    if (compression == LEAT__COMPRESSION_NONE)
        write_file(data, n);
    else
        write_file(packed, pack(packed, sizeof(packed), data, n, compression));
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(read_all(compression, steps[i], data, n, &total),
                         LEAT_OK);
        ck_assert_uint_eq(total, n);
    }
    if (compression == LEAT__COMPRESSION_ZLIB)
        return; /* not found by itself */
    ck_assert_int_eq(read_all(LEAT__COMPRESSION_AUTO, 777, data, n, &total),
                     LEAT_OK);
    ck_assert_uint_eq(total, n);
}
END_TEST

START_TEST(short_files_are_no_gzip)
{
    size_t total;
    for (size_t n = 0; n < 4; n++) {
        write_file("\x1f\x8b\x07?", n);
        ck_assert_int_eq(read_all(LEAT__COMPRESSION_AUTO, 10,
                                  (const unsigned char *)"\x1f\x8b\x07?", n,
                                  &total),
                         LEAT_OK);
        ck_assert_uint_eq(total, n);
    }
}
END_TEST

START_TEST(a_file_cut_anywhere_is_an_error_after_what_is_good)
{
    leat__compression compression = all[1 + _i];
    size_t total;
    fill_pattern(data, 3000);
    size_t n = pack(packed, sizeof(packed), data, 3000, compression);
    for (size_t cut = 1; cut < n; cut++) {
        write_file(packed, cut);
        int status = read_all(compression, 1, data, 3000, &total);
        ck_assert_msg(status == LEAT_EFORMAT, "cut %zu: status %d", cut,
                      status);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "ends early"));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
    }
    write_file(packed, n);
    ck_assert_int_eq(read_all(compression, 1, data, 3000, &total), LEAT_OK);
    ck_assert_uint_eq(total, 3000);
}
END_TEST

START_TEST(a_flipped_bit_is_an_error_or_changes_no_byte)
{
    leat__compression compression = all[1 + _i];
    size_t total;
    fill_pattern(data, 200);
    size_t n = pack(packed, sizeof(packed), data, 200, compression);
    for (size_t bit = 0; bit < n * 8; bit++) {
        leat__byte_stream stream;
        unsigned char out[4096];
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(packed, n);
        leat__byte_stream_init(&stream, LIMIT, NULL);
        ck_assert_int_eq(leat__byte_stream_open(&stream, path, compression),
                         LEAT_OK);
        int status = leat__byte_stream_read(&stream, out, sizeof(out), &total);
        ck_assert_msg(status == LEAT_EFORMAT ||
                          (status == LEAT_OK && total == 200 &&
                           memcmp(out, data, 200) == 0),
                      "bit %zu: status %d, %zu bytes", bit, status, total);
        leat__byte_stream_finish(&stream);
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

START_TEST(members_follow_each_other_and_zeros_the_last)
{
    leat__compression compression = all[1 + _i];
    size_t total;
    fill_pattern(data, 2000);
    size_t n = pack(packed, sizeof(packed), data, 1000, compression);
    n += pack(packed + n, sizeof(packed) - n, "", 0, compression);
    n += pack(packed + n, sizeof(packed) - n, data + 1000, 1000, compression);
    memset(packed + n, 0, 512);
    for (size_t zeros = 0; zeros <= 512; zeros += 128) {
        write_file(packed, n + zeros);
        ck_assert_int_eq(read_all(compression, 999, data, 2000, &total),
                         LEAT_OK);
        ck_assert_uint_eq(total, 2000);
    }
    memcpy(packed + n + 256, "garbage", 7);
    write_file(packed, n + 300);
    ck_assert_int_eq(read_all(compression, 1, data, 2000, &total),
                     LEAT_EFORMAT);
    ck_assert_uint_eq(total, 2000);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "other bytes follow"));
    memcpy(packed + n, "garbage", 7);
    write_file(packed, n + 7);
    ck_assert_int_eq(read_all(compression, 1, data, 2000, &total),
                     LEAT_EFORMAT);
    ck_assert_uint_eq(total, 2000);
}
END_TEST

START_TEST(a_bomb_takes_no_more_than_the_window)
{
    static unsigned char zeros[1 << 20];
    leat__byte_stream stream;
    size_t n = 0;
    for (int i = 0; i < 64; i++)
        n += pack(packed + n, sizeof(packed) - n, zeros, sizeof(zeros),
                  LEAT__COMPRESSION_GZIP);
    write_file(packed, n);
    leat__byte_stream_init(&stream, 1 << 20, NULL);
    ck_assert_int_eq(
        leat__byte_stream_open(&stream, path, LEAT__COMPRESSION_AUTO), LEAT_OK);
    ck_assert_int_eq(leat__byte_stream_need(&stream, 1 << 20), LEAT_OK);
    ck_assert_int_eq(leat__byte_stream_need(&stream, (2 << 20)), LEAT_ELIMIT);
    ck_assert_int_lt(leat__byte_stream_memory(&stream), 2 << 20);
    int64_t skipped;
    ck_assert_int_eq(leat__byte_stream_skip(&stream, INT64_MAX, &skipped),
                     LEAT_OK);
    ck_assert_int_eq(skipped, 64 << 20);
    leat__byte_stream_finish(&stream);
}
END_TEST

START_TEST(reads_and_skips_agree_with_windows)
{
    leat__byte_stream stream;
    leat__compression compression = all[_i];
    unsigned char *out = malloc(sizeof(data));
    size_t at = 0, got;
    int64_t skipped;
    fill_pattern(data, sizeof(data));
    size_t n = sizeof(data);
    if (compression == LEAT__COMPRESSION_NONE)
        write_file(data, n);
    else
        write_file(packed, pack(packed, sizeof(packed), data, n, compression));
    leat__byte_stream_init(&stream, LIMIT, NULL);
    ck_assert_int_eq(leat__byte_stream_open(&stream, path, compression),
                     LEAT_OK);
    for (size_t step = 1; at < n; step = step * 7 % 60000 + 1) {
        ck_assert_int_eq(leat__byte_stream_read(&stream, out, step, &got),
                         LEAT_OK);
        ck_assert_uint_eq(got, step < n - at ? step : n - at);
        ck_assert_int_eq(memcmp(out, data + at, got), 0);
        at += got;
        ck_assert_int_eq(
            leat__byte_stream_skip(&stream, (int64_t)step / 2, &skipped),
            LEAT_OK);
        at += (size_t)skipped;
        ck_assert_int_eq(stream.offset, (int64_t)at);
    }
    ck_assert_int_eq(leat__byte_stream_read(&stream, out, 1, &got), LEAT_OK);
    ck_assert_uint_eq(got, 0);
    leat__byte_stream_finish(&stream);
    free(out);
}
END_TEST

static void *write_later(void *argument)
{
    int fd = open(path, O_WRONLY);
    (void)argument;
    ck_assert_int_eq(write(fd, data, 1000), 1000);
    ck_assert_int_eq(write(fd, data + 1000, 1000), 1000);
    close(fd);
    return NULL;
}

START_TEST(a_named_pipe_is_waited_for)
{
    pthread_t thread;
    size_t total;
    fill_pattern(data, 2000);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, NULL, write_later, NULL);
        ck_assert_int_eq(
            read_all(i % 2 ? LEAT__COMPRESSION_AUTO : LEAT__COMPRESSION_NONE,
                     100, data, 2000, &total),
            LEAT_OK);
        ck_assert_uint_eq(total, 2000);
        pthread_join(thread, NULL);
    }
}
END_TEST

static void *cancel_later(void *argument)
{
    leat__byte_stream_cancel(argument);
    return NULL;
}

enum { PACKETS = 100, PACKET = 4096 };

static void *write_packets(void *end)
{
    unsigned char packet[PACKET];
    int fd = *(int *)end;
    for (int i = 0; i < PACKETS; i++) {
        memset(packet, i, sizeof(packet));
        ck_assert_int_eq(write(fd, packet, sizeof(packet)), PACKET);
    }
    close(fd);
    return NULL;
}

/* Of each packet the pipe drops what a read has no room for. */
START_TEST(a_pipe_of_packets_loses_none)
{
    int ends[2];
    pthread_t writer;
    leat__byte_stream stream;
    size_t n = 0, step = (size_t)_i;
    ck_assert_int_eq(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    leat__byte_stream_init(&stream, LIMIT, NULL);
    ck_assert_int_eq(
        leat__byte_stream_open(&stream, path, LEAT__COMPRESSION_AUTO), 0);
    pthread_create(&writer, NULL, write_packets, &ends[1]);
    for (;;) {
        ck_assert_int_eq(leat__byte_stream_need(&stream, step), 0);
        size_t some = stream.left < step ? stream.left : step;
        for (size_t i = 0; i < some; i++, n++)
            ck_assert_uint_eq(stream.next[i], n / PACKET);
        if (some == 0)
            break;
        leat__byte_stream_consume(&stream, some);
    }
    pthread_join(writer, NULL);
    ck_assert_uint_eq(n, (size_t)PACKETS * PACKET);
    leat__byte_stream_finish(&stream);
    close(ends[0]);
    snprintf(path, sizeof(path), "%s/file", folder);
}
END_TEST

START_TEST(cancel_wakes_a_read_of_a_pipe)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    for (int i = 0; i < 100; i++) {
        leat__byte_stream stream;
        pthread_t thread;
        leat__byte_stream_init(&stream, LIMIT, NULL);
        ck_assert_int_eq(
            leat__byte_stream_open(&stream, path, LEAT__COMPRESSION_AUTO),
            LEAT_OK);
        pthread_create(&thread, NULL, cancel_later, &stream);
        ck_assert_int_eq(leat__byte_stream_need(&stream, 1), LEAT_ECANCELLED);
        pthread_join(thread, NULL);
        ck_assert_int_eq(leat__byte_stream_need(&stream, 1), LEAT_ECANCELLED);
        leat__byte_stream_finish(&stream);
    }
}
END_TEST

static void *read_source(void *argument)
{
    char byte;
    size_t got;
    int status = leat__byte_source_read(argument, &byte, 1, &got);
    return (void *)(intptr_t)status;
}

/* A thread that waits in its process's own eventfd. */
static pthread_t wait_for_byte(leat__byte_source *source)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_source, source), 0);
    while (atomic_load(&source->wake) < 0 ||
           atomic_load(&source->generation) != leat__fork_generation())
        sched_yield();
    return thread;
}

static int cancel_and_join(leat__byte_source *source, pthread_t thread)
{
    void *status;
    leat__byte_source_cancel(source);
    pthread_join(thread, &status);
    return (int)(intptr_t)status;
}

static void cancel_in_child(void *source)
{
    leat__byte_source_cancel(source);
    leat__byte_source_finish(source);
}

static void wait_and_cancel_in_child(void *source)
{
    child_check(cancel_and_join(source, wait_for_byte(source)) ==
                LEAT_ECANCELLED);
    leat__byte_source_finish(source);
}

START_TEST(cancel_in_a_forked_child_wakes_the_child_alone)
{
    leat__byte_source source;
    uint64_t woken;
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int feed = open(path, O_RDWR);
    leat__byte_source_init(&source, NULL);
    ck_assert_int_eq(leat__byte_source_open(&source, path), LEAT_OK);
    pthread_t thread = wait_for_byte(&source);
    child_run(_i ? wait_and_cancel_in_child : cancel_in_child, &source);
    ck_assert_int_eq(read(atomic_load(&source.wake), &woken, sizeof(woken)),
                     -1);
    ck_assert_int_eq(cancel_and_join(&source, thread), LEAT_ECANCELLED);
    leat__byte_source_finish(&source);
    close(feed);
}
END_TEST

static atomic_int waits;        /* that poll began, without a limit of time */
static atomic_bool interrupted; /* whether the first of them is */

int __real_poll(struct pollfd *on, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *on, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *on, nfds_t n, int timeout)
{
    if (timeout < 0 && atomic_fetch_add(&waits, 1) == 0 &&
        atomic_load(&interrupted)) {
        errno = EINTR;
        return -1;
    }
    return __real_poll(on, n, timeout);
}

static leat__byte_source *empty; /* cancelled by the second look at it */
static int looks;

ssize_t __real_pread(int fd, void *bytes, size_t size, off_t from);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t from);

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t from)
{
    if (!empty || fd != empty->fd)
        return __real_pread(fd, bytes, size, from);
    if (++looks == 2)
        leat__byte_source_cancel(empty);
    errno = EAGAIN;
    return -1;
}

/* As /proc/kmsg and files of FUSE may, which are regular. */
START_TEST(cancel_ends_the_wait_for_a_regular_file_that_has_nothing_yet)
{
    leat__byte_source source;
    char byte;
    size_t got;
    write_file("x", 1);
    leat__byte_source_init(&source, NULL);
    ck_assert_int_eq(leat__byte_source_open(&source, path), LEAT_OK);
    empty = &source;
    looks = 0;
    ck_assert_int_eq(leat__byte_source_read(&source, &byte, 1, &got),
                     LEAT_ECANCELLED);
    ck_assert_int_eq(looks, 2);
    empty = NULL;
    leat__byte_source_finish(&source);
}
END_TEST

/* Where another read would wait for more. */
START_TEST(a_terminal_ends_once)
{
    leat__byte_source source;
    char bytes[16];
    size_t got;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ck_assert_int_eq(dup2(slave, STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(write(master, "a\n\4", 3), 3);
    leat__byte_source_init(&source, NULL);
    ck_assert_int_eq(leat__byte_source_open(&source, "-"), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            leat__byte_source_read(&source, bytes, sizeof(bytes), &got),
            LEAT_OK);
        ck_assert_uint_eq(got, i == 0 ? 2 : 0);
    }
    leat__byte_source_finish(&source);
    close(slave);
    close(master);
}
END_TEST

/* Standard input is read in its own mode, in which cancel wakes no read. */
START_TEST(a_signal_does_not_end_the_wait_for_standard_input)
{
    leat__byte_source source;
    int ends[2], input = dup(STDIN_FILENO);
    ck_assert(pipe(ends) == 0 && dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    atomic_store(&waits, 0);
    atomic_store(&interrupted, true);
    leat__byte_source_init(&source, NULL);
    ck_assert_int_eq(leat__byte_source_open(&source, "-"), LEAT_OK);
    pthread_t thread = wait_for_byte(&source);
    while (atomic_load(&waits) < 2)
        sched_yield();
    ck_assert_int_eq(cancel_and_join(&source, thread), LEAT_ECANCELLED);
    leat__byte_source_finish(&source);
    dup2(input, STDIN_FILENO);
    close(input);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(standard_input_has_one_reader)
{
    leat__byte_stream first, second;
    int ends[2];
    leat__file_version version;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    leat__byte_stream_init(&first, LIMIT, NULL);
    leat__byte_stream_init(&second, LIMIT, NULL);
    ck_assert_int_eq(leat__byte_source_check("-", &version), LEAT_OK);
    ck_assert_int_eq(version.size, -1);
    ck_assert_int_eq(
        leat__byte_stream_open(&first, "-", LEAT__COMPRESSION_AUTO), LEAT_OK);
    ck_assert_int_eq(
        leat__byte_stream_open(&second, "-", LEAT__COMPRESSION_AUTO),
        LEAT_ESTATE);
    ck_assert_int_eq(leat__byte_stream_need(&first, 100), LEAT_OK);
    ck_assert_uint_eq(first.left, 5);
    ck_assert(first.ended);
    leat__byte_stream_finish(&first);
    ck_assert_int_eq(
        leat__byte_stream_open(&second, "-", LEAT__COMPRESSION_AUTO), LEAT_OK);
    leat__byte_stream_finish(&second);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    leat__byte_stream stream;
    leat__file_version version;
    leat__byte_stream_init(&stream, LIMIT, NULL);
    ck_assert_int_eq(
        leat__byte_stream_open(&stream, path, LEAT__COMPRESSION_AUTO),
        LEAT_EIO);
    ck_assert_int_eq(leat__byte_source_check(path, &version), LEAT_EIO);
    ck_assert_int_eq(
        leat__byte_stream_open(&stream, folder, LEAT__COMPRESSION_AUTO),
        LEAT_EIO);
    ck_assert_int_eq(leat__byte_source_check(folder, &version), LEAT_EIO);
    leat__byte_stream_finish(&stream);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    size_t total;
    fill_pattern(data, 100000);
    write_file(packed, pack(packed, sizeof(packed), data, 100000,
                            LEAT__COMPRESSION_GZIP));
    int status = LEAT_ENOMEM, n;
    for (n = 0; status == LEAT_ENOMEM; n++) {
        leat__alloc_fail_at(n);
        status = read_all(LEAT__COMPRESSION_AUTO, 90000, data, 100000, &total);
        leat__alloc_fail_at(-1);
        if (status == LEAT_ENOMEM)
            ck_assert_msg(strstr(leat_last_error(), path) != NULL,
                          "allocation %d: %s", n, leat_last_error());
    }
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_gt(n, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("byte_stream");
    TCase *tests = tcase_create("byte_stream");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, any_window_gives_the_same_bytes, 0, 3);
    tcase_add_test(tests, short_files_are_no_gzip);
    tcase_add_loop_test(
        tests, a_file_cut_anywhere_is_an_error_after_what_is_good, 0, 2);
    tcase_add_loop_test(tests, a_flipped_bit_is_an_error_or_changes_no_byte, 0,
                        2);
    tcase_add_loop_test(tests, members_follow_each_other_and_zeros_the_last, 0,
                        2);
    tcase_add_test(tests, a_bomb_takes_no_more_than_the_window);
    tcase_add_loop_test(tests, reads_and_skips_agree_with_windows, 0, 3);
    tcase_add_test(tests, a_named_pipe_is_waited_for);
    tcase_add_loop_test(tests, a_pipe_of_packets_loses_none, 129999, 130002);
    tcase_add_test(tests, cancel_wakes_a_read_of_a_pipe);
    tcase_add_test(
        tests, cancel_ends_the_wait_for_a_regular_file_that_has_nothing_yet);
    tcase_add_loop_test(tests, cancel_in_a_forked_child_wakes_the_child_alone,
                        0, 2);
    tcase_add_test(tests, a_signal_does_not_end_the_wait_for_standard_input);
    tcase_add_test(tests, standard_input_has_one_reader);
    tcase_add_test(tests, a_terminal_ends_once);
    tcase_add_test(tests, what_is_no_file_is_refused);
    tcase_add_test(tests, each_allocation_may_fail);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
