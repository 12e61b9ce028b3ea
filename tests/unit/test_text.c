#include "support/record_sequence.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

static void setup(void)
{
    record_sequence_begin();
}

static void teardown(void)
{
    record_sequence_end();
}

static void write_text(const char *name, const char *text)
{
    record_sequence_write(name, text, strlen(text));
}

static void check_lines(const char *text, const char *const lines[], int n)
{
    known_record known[300];
    for (int i = 0; i < n; i++)
        known[i] = (known_record){lines[i], strlen(lines[i])};
    record_sequence_check(text, known, n);
}

/* TensorFlow's text_line_dataset_op_test. */
static const char *const tensorflow[] = {
    "hello world", "11223334455", "abcd, EFgH", "           ", "$%^&*()"};
static const char tensorflow_1[] = "hello world\n11223334455\n";
static const char tensorflow_2[] = "abcd, EFgH\n           \n$%^&*()\n";

START_TEST(the_lines_of_tensorflows_tests)
{
    write_text("1", tensorflow_1);
    write_text("2", tensorflow_2);
    check_lines("text:1,2", tensorflow, 5);
    record_sequence_pack("1.gz", tensorflow_1, strlen(tensorflow_1), 0);
    record_sequence_pack("2.gz", tensorflow_2, strlen(tensorflow_2), 0);
    check_lines("text:1.gz,2.gz", tensorflow, 5);
    check_lines("text:1.gz,2.gz,compression=GZIP", tensorflow, 5);
    check_lines("text:1,2.gz", tensorflow, 5);
    record_sequence_pack("1.z", tensorflow_1, strlen(tensorflow_1), 1);
    record_sequence_pack("2.z", tensorflow_2, strlen(tensorflow_2), 1);
    check_lines("text:?.z,compression=ZLIB", tensorflow, 5);
    write_text("list", "1.gz\n2\n");
    check_lines("text:@list", tensorflow, 5);
}
END_TEST

START_TEST(line_ends_are_lf_cr_lf_or_the_files)
{
    static const char *const lines[] = {"a", "",     "b\r",  "\rc",
                                        "",  "0: 0", "1: 1", "d\r"};
    write_text("1", "a\r\n\nb\r\r\n\rc\n\r\n");
    write_text("2", "0: 0\r\n1: 1");
    write_text("3", "d\r");
    write_text("empty", "");
    check_lines("text:1,empty,2,3,empty", lines, 8);
    record_sequence_pack("1.gz", "a\r\n\nb\r\r\n\rc\n\r\n", 13, 0);
    record_sequence_pack("2.gz", "0: 0\r\n1: 1", 10, 0);
    check_lines("text:1.gz,empty,2.gz,3", lines, 8);
}
END_TEST

START_TEST(files_that_a_pattern_finds_are_read_whatever_their_names)
{
    static const char *const lines[] = {"a", "b"};
    int good, bad;
    write_text("-", "a\n");
    write_text("@list", "b\n");
    check_lines("text:*", lines, 2);
    ck_assert_int_eq(
        record_sequence_read("files:* | interleave:(text:{})", &good, &bad),
        LEAT_END);
    ck_assert_int_eq(good, 2);
}
END_TEST

START_TEST(no_line_at_all)
{
    write_text("empty", "");
    check_lines("text:empty", NULL, 0);
    record_sequence_pack("empty.gz", "", 0, 0);
    check_lines("text:empty.gz,empty", NULL, 0);
    static const char *const one[] = {""};
    write_text("newline", "\n");
    check_lines("text:newline", one, 1);
}
END_TEST

START_TEST(many_lines_of_all_lengths)
{
    static char text[200000];
    known_record known[300];
    size_t used = 0;
    for (int i = 0; i < 300; i++) {
        size_t size = (size_t)(i * 37 % 1200);
        known[i] = (known_record){text + used, size};
        memset(text + used, 'a' + i % 26, size);
        text[used + size] = '\n';
        used += size + 1;
    }
    record_sequence_pack("lines.gz", text, used, 0);
    record_sequence_check("text:lines.gz", known, 300);
    record_sequence_write("lines", text, used);
    record_sequence_check("text:lines", known, 300);
}
END_TEST

START_TEST(a_line_that_is_too_long_is_passed_by)
{
    static char text[400000];
    int good, bad;
    memset(text, 'x', sizeof(text));
    memcpy(text, "one\n", 4);
    text[300000] = '\n';
    memcpy(text + 300001, "two\n", 4);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "long.gz" : "long";
        char pipeline[64];
        if (i)
            record_sequence_pack(name, text, sizeof(text), 0);
        else
            record_sequence_write(name, text, sizeof(text));
        snprintf(pipeline, sizeof(pipeline), "text:%s,max_record=100", name);
        ck_assert_int_eq(record_sequence_read(pipeline, &good, &bad), LEAT_END);
        ck_assert_int_eq(good, 2);
        ck_assert_int_eq(bad, 2);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_record"));
        snprintf(pipeline, sizeof(pipeline), "text:%s", name);
        ck_assert_int_eq(record_sequence_read(pipeline, &good, &bad), LEAT_END);
        ck_assert_int_eq(good, 4);
    }
}
END_TEST

/* With its end it may have max_record bytes; the last one has none. */
START_TEST(a_line_of_the_longest_size_is_good)
{
    int good, bad;
    record_sequence_write("exact", "abc\nabcd\nabcd", 13);
    record_sequence_pack("exact.gz", "abc\nabcd\nabcd", 13, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(record_sequence_read(i ? "text:exact.gz,max_record=4"
                                                : "text:exact,max_record=4",
                                              &good, &bad),
                         LEAT_END);
        ck_assert_int_eq(good, 2);
        ck_assert_int_eq(bad, 1);
    }
}
END_TEST

/* Longer than what a walk over a mapped file sees at first, which ends in a
   line, in what is passed by, and at a line's end. */
START_TEST(lines_longer_than_a_window_are_whole)
{
    enum { WINDOW = 32 << 20, LONG = 48 << 20 };
    int good, bad;
    char *text = malloc(2 * (size_t)LONG);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', 2 * (size_t)LONG);
    text[WINDOW - 1] = text[WINDOW + LONG] = '\n';
    known_record known[] = {{text, WINDOW - 1},
                            {text + WINDOW, LONG},
                            {text + WINDOW + LONG + 1, LONG - WINDOW - 1}};
    record_sequence_write("wide", text, 2 * (size_t)LONG);
    record_sequence_check("text:wide", known, 3);
    ck_assert_int_eq(
        record_sequence_read("text:wide,max_record=32M", &good, &bad),
        LEAT_END);
    ck_assert_int_eq(good, 2);
    ck_assert_int_eq(bad, 1);
    free(text);
}
END_TEST

static leat_reader *open_reader(const char *text)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    return reader;
}

START_TEST(a_bad_line_is_named)
{
    write_text("long", "ab\nabcdefgh\ncd");
    leat_sample sample;
    leat_sample_init(&sample);
    leat_reader *reader = open_reader("text:long,max_record=4");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "long: record 1 at byte 3"));
    ck_assert_int_eq(sample.from.record, 1);
    ck_assert_str_eq(sample.from.source, "long");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(sample.from.record, 2);
    ck_assert_uint_eq(sample.field[0].bytes, 2);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(what_is_missing_is_known_when_it_is_opened)
{
    static const struct {
        const char *text;
        int status;
        const char *says;
    } cases[] = {
        {"text:there,missing", LEAT_EIO, "missing: "},
        {"text:*.txt", LEAT_EIO, "*.txt: no file matches"},
        {"text:@missing", LEAT_EIO, "missing"},
        {"text:.", LEAT_EIO, ".: "},
        {"text:", LEAT_EINVAL, "files"},
        {"text:there,compression=LZ4", LEAT_EINVAL, "compression"},
    };
    int good, bad;
    write_text("there", "a\n");
    for (int i = 0; i < LENGTH(cases); i++) {
        ck_assert_int_eq(record_sequence_read(cases[i].text, &good, &bad),
                         cases[i].status);
        ck_assert_msg(strstr(leat_last_error(), cases[i].says), "%s",
                      leat_last_error());
    }
    /* This is no gzip. */
    ck_assert_int_eq(
        record_sequence_read("text:there,compression=GZIP", &good, &bad),
        LEAT_EFORMAT);
}
END_TEST

START_TEST(a_gzip_file_cut_anywhere_gives_lines_and_an_error)
{
    char text[2000], name[] = "cut.gz", packed[4096];
    size_t used = 0;
    int good, bad;
    for (int i = 0; used < sizeof(text) - 20; i++)
        used += (size_t)sprintf(text + used, "line %d\n", i * 7919);
    record_sequence_pack("whole.gz", text, used, 0);
    FILE *file = fopen("whole.gz", "rb");
    size_t size = fread(packed, 1, sizeof(packed), file);
    fclose(file);
    for (size_t cut = 1; cut < size; cut++) {
        record_sequence_write(name, packed, cut);
        int status =
            record_sequence_read("text:cut.gz,compression=GZIP", &good, &bad);
        ck_assert_int_eq(status, LEAT_EFORMAT);
        ck_assert_int_eq(bad, 0);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "cut.gz: "));
    }
}
END_TEST

static void *feed_pipe(void *name)
{
    int fd = open(name, O_WRONLY);
    ck_assert_int_eq(write(fd, tensorflow_1, strlen(tensorflow_1)),
                     (int)strlen(tensorflow_1));
    ck_assert_int_eq(write(fd, tensorflow_2, strlen(tensorflow_2)),
                     (int)strlen(tensorflow_2));
    close(fd);
    return NULL;
}

static leat_reader *open_pipe(void)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "text:fifo"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    return reader;
}

/* A mark restores a pipe's position if the same bytes come again. */
START_TEST(a_pipe_is_read_once)
{
    pthread_t thread;
    leat_token token;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    for (int i = 0; i <= 5; i++) {
        leat_token_init(&token);
        for (int pass = 0; pass < 2; pass++) {
            leat_reader *reader = open_pipe();
            ck_assert_int_eq(leat_reader_may_block(reader), 1);
            ck_assert_int_eq(
                leat_reader_seek(reader, (leat_position){0, 0}, NULL), LEAT_OK);
            pthread_create(&thread, NULL, feed_pipe, (void *)"fifo");
            if (pass == 1)
                ck_assert_int_eq(
                    leat_reader_seek(reader, (leat_position){0, i}, &token),
                    LEAT_OK);
            for (int k = pass ? i : 0; k < 5; k++) {
                if (pass == 0 && k == i)
                    ck_assert_int_eq(leat_reader_mark(reader, &token), LEAT_OK);
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                ck_assert_uint_eq(sample.field[0].bytes, strlen(tensorflow[k]));
                ck_assert_int_eq(sample.from.record, k);
            }
            if (pass == 0 && i == 5)
                ck_assert_int_eq(leat_reader_mark(reader, &token), LEAT_OK);
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
            ck_assert_int_eq(
                leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                LEAT_EUNSUPPORTED);
            pthread_join(thread, NULL);
            leat_reader_close(reader);
        }
        leat_token_finish(&token);
    }
    leat_sample_finish(&sample);
}
END_TEST

static void *cancel_reader(void *reader)
{
    leat_reader_cancel(reader);
    return NULL;
}

START_TEST(cancel_wakes_a_reader_of_a_silent_pipe)
{
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        leat_sample sample;
        leat_sample_init(&sample);
        leat_reader *reader = open_pipe();
        pthread_create(&thread, NULL, cancel_reader, reader);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
        pthread_join(thread, NULL);
        leat_reader_close(reader);
        leat_sample_finish(&sample);
    }
}
END_TEST

static atomic_size_t searched;

void *__real_memchr(const void *bytes, int wanted, size_t size);
void *__wrap_memchr(const void *bytes, int wanted, size_t size);

void *__wrap_memchr(const void *bytes, int wanted, size_t size)
{
    atomic_fetch_add(&searched, size);
    return __real_memchr(bytes, wanted, size);
}

/* Each of many gzip members is a piece. */
/* Though much of what the file has is read and inflated already. */
START_TEST(a_compressed_file_gives_nothing_once_it_is_cancelled)
{
    static char text[200000];
    leat_sample sample;
    int64_t skipped;
    memset(text, '\n', sizeof(text));
    record_sequence_pack("ends.gz", text, sizeof(text), 0);
    leat_reader *reader = open_reader("text:ends.gz");
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_skip(reader, 10, &skipped), LEAT_ECANCELLED);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_line_in_small_pieces_is_searched_once)
{
    enum { PIECE = 1024, PIECES = 1024 };
    static char piece[PIECE], packed[PIECE];
    memset(piece, 'a', sizeof(piece));
    record_sequence_pack("piece.gz", piece, sizeof(piece), 0);
    FILE *file = fopen("piece.gz", "rb");
    size_t size = fread(packed, 1, sizeof(packed), file);
    fclose(file);
    file = fopen("line.gz", "wb");
    for (int i = 0; i < PIECES; i++)
        ck_assert_uint_eq(fwrite(packed, 1, size, file), size);
    fclose(file);
    int good, bad;
    atomic_store(&searched, 0);
    ck_assert_int_eq(record_sequence_read("text:line.gz", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, 1);
    ck_assert_uint_ge(atomic_load(&searched), (size_t)PIECE * PIECES);
    ck_assert_uint_le(atomic_load(&searched), (size_t)2 * PIECE * PIECES);
}
END_TEST

START_TEST(a_token_of_other_files_is_refused)
{
    leat_token token;
    leat_pipeline *pipeline;
    leat_reader *reader;
    record_sequence_pack("1.gz", "a\nb\n", 4, 0);
    leat_token_init(&token);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, "text:1.gz"), LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        if (i == 0)
            ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
        else
            ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        record_sequence_pack("1.gz", "a\nb\nsomething longer\n", 21, 0);
    }
    leat_token_finish(&token);
}
END_TEST

/* The fields of the samples up to the end, each in a line. */
static void join_rest(leat_reader *reader, char *to)
{
    leat_sample sample;
    int status;
    leat_sample_init(&sample);
    while (!(status = leat_reader_next(reader, &sample)))
        for (int i = 0; i < sample.nfields; i++)
            to += sprintf(to, "%.*s\n", (int)sample.field[i].bytes,
                          (const char *)sample.field[i].data);
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    leat_sample_finish(&sample);
}

/* Of two inputs the second alone refuses it. */
START_TEST(after_a_token_that_is_refused_a_seek_leads_back)
{
    static const char *const over[] = {"zip:prefix=(a,b)", "mix:1,1", "chain",
                                       "chain | cache", "chain | prefetch:1"};
    const leat_position first = {0, 0};
    char text[80], all[100] = "", again[100] = "";
    leat_token token;
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    leat_token_init(&token);
    leat_sample_init(&sample);
    record_sequence_pack("1.gz", "1\n2\n3\n4\n", 8, 0);
    snprintf(text, sizeof(text), "(text:1.gz) (text:2.gz) | %s", over[_i]);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        const char *lines = i ? "a\nb\nc\nd\n" : "others\n";
        record_sequence_pack("2.gz", lines, strlen(lines), 0);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        if (i == 0) {
            ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
            leat_reader_close(reader);
        }
    }
    join_rest(reader, all);
    ck_assert_int_eq(leat_reader_seek(reader, first, NULL), LEAT_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_seek(reader, first, NULL), LEAT_OK);
    join_rest(reader, again);
    ck_assert_str_eq(again, all);
    leat_sample_finish(&sample);
    leat_token_finish(&token);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Compressed files, by name, and after another took the place of one. */
START_TEST(a_stream_of_another_file_than_it_was_is_an_error)
{
    static const char *const texts[] = {"text:1,2.gz", "text:1.gz,2.gz"};
    leat_sample sample;
    leat_sample_init(&sample);
    write_text("1", "a\nb\n");
    record_sequence_pack("1.gz", "a\nb\n", 4, 0);
    record_sequence_pack("2.gz", "c\nd\n", 4, 0);
    leat_reader *reader = open_reader(texts[_i]);
    for (int epoch = 0; epoch < 3; epoch++) {
        const int is_new = epoch > 0;
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch, 0}, NULL), LEAT_OK);
        for (int i = 0; i < (is_new ? 2 : 4); i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample),
                         is_new ? LEAT_EIO : LEAT_END);
        if (is_new)
            ck_assert_ptr_nonnull(
                strstr(leat_last_error(), "2.gz: changed while it was read"));
        record_sequence_pack("new", "e\nf\ng\n", 6, 0);
        ck_assert_int_eq(rename("new", "2.gz"), 0);
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

#define FILE_BYTES 1000

/* A file of lines of so many bytes, over what is there, an hour old or new. */
static void write_lines(size_t size, int is_old)
{
    char text[FILE_BYTES];
    struct timespec times[2];
    memset(text, 'x', sizeof(text));
    for (size_t end = size; end <= sizeof(text); end += size)
        text[end - 1] = '\n';
    record_sequence_write("lines", text, sizeof(text));
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= times[0].tv_sec % 86400 + (is_old ? 3600 : 0);
    times[0].tv_nsec = 0;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, "lines", times, 0), 0);
}

static const char *const ways_to_read[] = {
    "text:lines", "text:lines | shuffle",
    "text:lines | repeat:1 | shard:1,0 | shuffle"};

START_TEST(a_file_that_changes_is_an_error_in_the_next_epoch)
{
    leat_sample sample;
    leat_sample_init(&sample);
    write_lines(10, 1);
    leat_reader *reader = open_reader(ways_to_read[_i]);
    for (int i = 0; i < FILE_BYTES / 10; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_uint_eq(sample.field[0].bytes, 9);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    write_lines(10, 0);
    int status = leat_reader_seek(reader, (leat_position){1, 0}, NULL);
    for (int i = 0; i < 2; i++) {
        if (!status)
            status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, LEAT_EIO);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "lines: changed while it was read"));
        status = LEAT_OK;
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

/* Lines of 20 bytes where there were two of 10; what shows is the error of the
   file, and the line's alone where the time is the same. */
START_TEST(no_line_is_torn_by_a_file_that_changes)
{
    const int is_old = _i;
    leat_sample sample;
    leat_sample_init(&sample);
    write_lines(10, 1);
    leat_reader *reader = open_reader("text:lines | shuffle");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    write_lines(20, is_old);
    for (int i = 1; i < FILE_BYTES / 10; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample),
                         is_old ? LEAT_EDATA : LEAT_EIO);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(),
                   is_old ? "its ends are elsewhere" : "changed while"));
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("text");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_lines_of_tensorflows_tests);
    tcase_add_test(tests, line_ends_are_lf_cr_lf_or_the_files);
    tcase_add_test(tests,
                   files_that_a_pattern_finds_are_read_whatever_their_names);
    tcase_add_test(tests, no_line_at_all);
    tcase_add_test(tests, many_lines_of_all_lengths);
    tcase_add_test(tests, a_line_that_is_too_long_is_passed_by);
    tcase_add_test(tests, a_line_of_the_longest_size_is_good);
    tcase_add_test(tests, lines_longer_than_a_window_are_whole);
    tcase_add_test(tests, a_bad_line_is_named);
    tcase_add_test(tests, what_is_missing_is_known_when_it_is_opened);
    tcase_add_test(tests, a_gzip_file_cut_anywhere_gives_lines_and_an_error);
    tcase_add_test(tests, a_pipe_is_read_once);
    tcase_add_test(tests, cancel_wakes_a_reader_of_a_silent_pipe);
    tcase_add_test(tests, a_compressed_file_gives_nothing_once_it_is_cancelled);
    tcase_add_test(tests, a_line_in_small_pieces_is_searched_once);
    tcase_add_test(tests, a_token_of_other_files_is_refused);
    tcase_add_loop_test(tests, after_a_token_that_is_refused_a_seek_leads_back,
                        0, 5);
    tcase_add_loop_test(tests, a_stream_of_another_file_than_it_was_is_an_error,
                        0, 2);
    tcase_add_loop_test(tests,
                        a_file_that_changes_is_an_error_in_the_next_epoch, 0,
                        LENGTH(ways_to_read));
    tcase_add_loop_test(tests, no_line_is_torn_by_a_file_that_changes, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
