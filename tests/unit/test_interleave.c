/* interleave: some samples of each of several readers in turn. */
#include "support/counted_source.h"
#include "support/sequence_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Input i of these tests has the numbers from 1000 i on. */
enum { EACH = 1000, INPUTS_MOST = 12 };

static const char *const forms[] = {"index", "stream", "deferred"};
enum { FORMS = 3 };

/* tf.data's InterleaveDataset, as its kernel has it. */
static int model(int64_t out[], const int64_t count[], int n, int cycle,
                 int64_t block)
{
    int current[INPUTS_MOST], given = 0, open = 0, next = 0, at = 0;
    int64_t index[INPUTS_MOST] = {0}, in_block = 0;
    for (int i = 0; i < cycle; i++)
        current[i] = -1;
    while (next < n || open > 0) {
        int input = current[at];
        if (input >= 0 && index[input] < count[input]) {
            out[given++] = EACH * input + index[input]++;
            if (++in_block < block)
                continue;
        } else if (input >= 0) {
            current[at] = -1;
            open--;
        } else if (next < n) {
            current[at] = next++;
            open++;
            continue;
        }
        in_block = 0;
        at = (at + 1) % cycle;
    }
    return given;
}

static void write_inputs(char *text, const int64_t count[], int n,
                         const char *form)
{
    text[0] = 0;
    for (int i = 0; i < n; i++)
        sprintf(text + strlen(text), "(counted:%lld,first=%d,form=%s) ",
                (long long)count[i], EACH * i, form);
}

static void check_model(const int64_t count[], int n, int cycle, int block)
{
    int64_t expected[SEQUENCE_MOST];
    char text[1200];
    int all = model(expected, count, n, cycle, block);
    for (int form = 0; form < FORMS; form++) {
        write_inputs(text, count, n, forms[form]);
        sprintf(text + strlen(text), "| interleave:cycle=%d,block=%d", cycle,
                block);
        sequence_is(text, 0, expected, all);
        sequence_is(text, 1, expected, all);
    }
}

START_TEST(tensorflows_orders)
{
    static const struct {
        int cycle, block;
        int64_t order[9];
    } cases[] = {{1, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8}},
                 {2, 1, {0, 3, 1, 4, 2, 5, 6, 7, 8}},
                 {3, 1, {0, 3, 6, 1, 4, 7, 2, 5, 8}},
                 {7, 1, {0, 3, 6, 1, 4, 7, 2, 5, 8}},
                 {2, 2, {0, 1, 3, 4, 2, 5, 6, 7, 8}},
                 {2, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8}},
                 {2, 9, {0, 1, 2, 3, 4, 5, 6, 7, 8}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int form = 0; form < FORMS; form++) {
            char text[400];
            snprintf(text, sizeof(text),
                     "(counted:3,form=%s) (counted:3,first=3,form=%s) "
                     "(counted:3,first=6,form=%s) | "
                     "interleave:cycle=%d,block=%d",
                     forms[form], forms[form], forms[(form + 1) % FORMS],
                     cases[i].cycle, cases[i].block);
            sequence_is(text, 0, cases[i].order, 9);
            sequence_holds(text);
        }
    sequence_is("(range:9223372036854775807) (range:9223372036854775807) | "
                "interleave:block=9223372036854775807 | take:3",
                0, (const int64_t[]){0, 1, 2}, 3);
    counted_source_refused("(counted:3) (counted:3) | interleave:cycle=0",
                           LEAT_EINVAL, "cycle");
    counted_source_refused("(counted:3) (counted:3) | interleave:block=-1",
                           LEAT_EINVAL, "block");
}
END_TEST

START_TEST(inputs_of_any_lengths)
{
    static const int64_t counts[][INPUTS_MOST] = {
        {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {0, 2, 0, 0, 7, 0, 1, 0, 0, 0, 3, 0},
        {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8},
        {1, 30, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {40, 1, 1, 2, 1, 1, 1, 12, 1, 1, 1, 1}};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (int n = 1; n <= INPUTS_MOST; n += 3)
            for (int cycle = 1; cycle <= n; cycle += 2)
                for (int block = 1; block < 10; block += 1 + block / 2)
                    check_model(counts[c], n, cycle, block);
}
END_TEST

START_TEST(every_form_resumes_anywhere)
{
    static const char *const texts[] = {
        "(counted:30,bad=3) (counted:9,first=1000) (counted:17,first=2000,"
        "bad=0) (counted:1,first=3000) | interleave:cycle=2,block=3",
        "(counted:30,bad=3,form=stream) (counted:9,first=1000,form=deferred) "
        "(counted:17,first=2000,bad=0,form=deferred) (counted:1,first=3000) | "
        "interleave:cycle=2,block=3",
        "(counted:30,bad=3,form=deferred) (counted:9,first=1000,"
        "form=deferred) | interleave",
        "numbered:13,form=stream | interleave:(counted:{},first={}000,"
        "form=deferred,bad=2),cycle=3,block=2",
        "numbered:13 | interleave:(counted:{},first={}000,stable=1),block=3,"
        "ahead=0",
        "numbered:9,bad=4 | interleave:(counted:{},first={}000,bad=2,"
        "form=stream,key=5,name=file-{}),cycle=20,ahead=7",
        "numbered:6,form=deferred | interleave:(numbered:3|interleave:"
        "(counted:1{}\\,first={}000)),cycle=2"};
    for (size_t i = 0; i < 6; i++) {
        sequence_holds(texts[i]);
        sequence_survives(texts[i]);
        if (!strstr(texts[i], "numbered"))
            sequence_settles(texts[i]);
    }
}
END_TEST

/* Slot 0 comes after three numbers of the whole; its index is its first. */
START_TEST(a_mark_of_an_index_near_two_to_the_sixty_three_is_refused)
{
    enum { INDEX_AT = 3 * sizeof(int64_t) };
    static const int64_t most = INT64_MAX;
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_token mark;
    static sequence seen;
    counted_source_register();
    ck_assert_int_eq(leat_pipeline_parse(&pipeline,
                                         "(counted:9,form=stream) "
                                         "(counted:9,first=1000,form=stream) | "
                                         "interleave:cycle=2,block=2"),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    sequence_read(&seen, reader, 1, 5);
    leat_token_init(&mark);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    ck_assert_uint_gt(mark.size, INDEX_AT + sizeof(most));
    memcpy(mark.bytes + INDEX_AT, &most, sizeof(most));
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 5}, &mark),
                     LEAT_EINVAL);
    leat_token_finish(&mark);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_template_gives_what_its_readers_give)
{
    int64_t count[INPUTS_MOST], expected[SEQUENCE_MOST];
    char text[200];
    for (int i = 0; i < INPUTS_MOST; i++)
        count[i] = i;
    for (int cycle = 1; cycle < 16; cycle += 4)
        for (int ahead = 0; ahead < 4; ahead++)
            for (int form = 0; form < FORMS; form++) {
                int n = model(expected, count, INPUTS_MOST,
                              cycle < INPUTS_MOST ? cycle : INPUTS_MOST, 2);
                snprintf(text, sizeof(text),
                         "numbered:%d | interleave:(counted:{},first={}000,"
                         "form=%s),cycle=%d,block=2,ahead=%d",
                         INPUTS_MOST, forms[form], cycle, ahead);
                counted_source_reset();
                sequence_is(text, 0, expected, n);
                int most = cycle + ahead + (ahead == 0) + 1;
                ck_assert_int_le(counted_source_most_open(), most);
                sequence_is(text, 5, expected, n);
                ck_assert_int_eq(counted_source_open(), 0);
            }
}
END_TEST

START_TEST(a_template_of_readers_that_cannot_be_resumed_says_so)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_token token;
    leat_token_init(&token);
    counted_source_register();
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline, "numbered:3 | interleave:((counted:{}) "
                                       "(counted:5) | merge)"),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "merge"));
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_token_finish(&token);
}
END_TEST

/* Samples that are used after their readers were closed. */
START_TEST(samples_and_sources_outlive_their_readers)
{
    enum { ALL = 66 };
    static leat_sample sample[ALL];
    leat_reader *reader = counted_source_reader(
        "numbered:12 | interleave:(counted:{},first={}000,stable=1,key=40,"
        "name=file-{}),cycle=2");
    for (int i = 0; i < ALL; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample[i]), LEAT_OK);
    leat_sample last;
    leat_sample_init(&last);
    ck_assert_int_eq(leat_reader_next(reader, &last), LEAT_END);
    ck_assert_int_eq(counted_source_open(), 1);
    for (int i = 0; i < ALL; i++) {
        int64_t number = counted_source_number(&sample[i], 0);
        char source[20], key[24];
        sprintf(source, "file-%d", (int)(number / EACH));
        sprintf(key, "%d", (int)(40 + number % EACH));
        ck_assert_str_eq(sample[i].from.source, source);
        ck_assert_int_eq(sample[i].from.record, number % EACH);
        ck_assert_uint_eq(sample[i].from.key_size, strlen(key));
        ck_assert_int_eq(memcmp(sample[i].from.key, key, strlen(key)), 0);
        leat_sample_finish(&sample[i]);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(ten_thousand_files_need_few_descriptors)
{
    const struct rlimit few = {1024, 1024};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    leat_reader *reader = counted_source_reader(
        "numbered:10000 | interleave:(counted:3,holds=1,first={}000),"
        "cycle=64,ahead=8");
    leat_sample sample;
    leat_sample_init(&sample);
    int64_t all = 0, sum = 0;
    int status;
    while (!(status = leat_reader_next(reader, &sample))) {
        sum += counted_source_number(&sample, 0);
        all++;
    }
    ck_assert_int_eq(status, LEAT_END);
    ck_assert_int_eq(all, 30000);
    ck_assert_int_eq(sum, 3 * 1000 * INT64_C(49995000) + 30000);
    ck_assert_int_le(counted_source_most_open(), 64 + 8 + 1);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

static void write_lines(const char *path, const char *text)
{
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

/* By another epoch it would be noticed anyway; one of `two` is not open yet. */
START_TEST(a_file_that_is_written_while_a_template_reads_it_is_an_error)
{
    char directory[] = "/tmp/leat-interleave-XXXXXX", one[64], two[64];
    char text[160];
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(one, sizeof(one), "%s/one", directory);
    snprintf(two, sizeof(two), "%s/two", directory);
    write_lines(one, "a\nb\n");
    write_lines(two, "c\nd\n");
    snprintf(text, sizeof(text),
             "files:%s/* | interleave:(text:{}),cycle=1,ahead=0", directory);
    leat_reader *reader = counted_source_reader(text);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    FILE *file = fopen(one, "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 2, SEEK_SET), 0);
    ck_assert_int_eq(fputc('B', file), 'B');
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), one));
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "changed while it was read"));
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    ck_assert_int_eq(unlink(one) | unlink(two) | rmdir(directory), 0);
}
END_TEST

static void check_end(const char *text, int after, int status, const char *part)
{
    sequence *all = malloc(sizeof(*all));
    leat_reader *reader = counted_source_reader(text);
    sequence_read(all, reader, 3, SEQUENCE_MOST);
    ck_assert_msg(all->n == after && all->status == status &&
                      strstr(leat_last_error(), part),
                  "%s: %d samples, %d (%s)", text, all->n, all->status,
                  leat_last_error());
    leat_reader_close(reader);
    free(all);
}

START_TEST(errors_come_in_their_turn)
{
    /* Element 3 is opened ahead, and fails when its turn comes. */
    check_end("numbered:20,bad=3,fails=5 | interleave:(counted:2),cycle=1,"
              "ahead=9",
              9, LEAT_EIO, "record 5 cannot be read");
    check_end("numbered:20 | interleave:(counted:4,fails={}),cycle=1,ahead=2",
              0, LEAT_EIO, "record 0 cannot be read");
    check_end("numbered:3 | interleave:(counted:4,field=x{}),cycle=1", 4,
              LEAT_EINVAL, "interleave: 1: a field is \"x1\", but");
    counted_source_refused("numbered:0 | interleave:(counted:{})", LEAT_EFORMAT,
                           "there are no names in it");
    counted_source_refused("numbered:3 | interleave:(lmdb:no-such-{})",
                           LEAT_EIO, "no-such-0");
    counted_source_refused("counted:3 | interleave:(counted:{})", LEAT_EINVAL,
                           "expected one, of bytes");
    counted_source_refused("(numbered:3) (numbered:3) | interleave:(counted:"
                           "{})",
                           LEAT_EINVAL, "needs 1 upstream reader");
}
END_TEST

/* A text of some hundred bytes took a gigabyte. */
START_TEST(names_that_grow_within_each_other_end)
{
    enum { DEPTH = 24 };
    static const char inner[] = "files:{}{} | interleave:(";
    char text[(DEPTH + 1) * sizeof(inner) + 64];
    size_t at = (size_t)sprintf(text, "files:name | interleave:(");
    for (int i = 0; i < DEPTH; i++)
        at += (size_t)sprintf(text + at, "%s", inner);
    at += (size_t)sprintf(text + at, "files:{}");
    for (int i = 0; i <= DEPTH; i++)
        text[at++] = ')';
    text[at] = 0;
    counted_source_refused(text, LEAT_EDATA,
                           "name 0 of files has 131072 bytes: expected at most "
                           "65536");
}
END_TEST

static void *read_on(void *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status;
    while (!(status = leat_reader_next(reader, &sample)))
        continue;
    leat_sample_finish(&sample);
    return (void *)(intptr_t)status;
}

START_TEST(cancel_wakes_whatever_is_read)
{
    static const char *const texts[] = {
        "numbered:20 | interleave:(counted:30,waits={}),cycle=3,ahead=2",
        "(counted:9) (counted:50,waits=20,form=stream) | interleave"};
    for (int i = 0; i < 2; i++) {
        void *status;
        pthread_t thread;
        leat_reader *reader = counted_source_reader(texts[i]);
        ck_assert_int_eq(pthread_create(&thread, NULL, read_on, reader), 0);
        leat_reader_cancel(reader);
        ck_assert_int_eq(pthread_join(thread, &status), 0);
        ck_assert_int_eq((int)(intptr_t)status, LEAT_ECANCELLED);
        leat_reader_close(reader);
    }
}
END_TEST

/* As `prefetch` and `cache` have asked about files of some hundred lines, which
 * are in memory, before the pipe is opened. */
START_TEST(lines_of_a_pipe_are_not_kept_waiting_for_others)
{
    static const char *const texts[] = {
        "files:fifo | interleave:(text:{}),cycle=1 | prefetch:100",
        "files:a,b,fifo | interleave:(text:{}),cycle=1,ahead=0 | prefetch:100",
        "files:a,b,fifo | interleave:(text:{}),cycle=2 | prefetch:100",
        "files:a,b,fifo | interleave:(text:{}),cycle=1 | cache | prefetch:100",
        ("(files:a,b,fifo | interleave:(text:{}),cycle=1) | interleave | "
         "prefetch:100")};
    enum { LINES = 300, OPENED_LATE = 1 };
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(i ? "b" : "a", "w");
        ck_assert_ptr_nonnull(file);
        for (int k = 0; k < LINES; k++)
            fprintf(file, "%d\n", k);
        ck_assert_int_eq(fclose(file), 0);
    }
    remove("fifo"); /* of a case that has failed */
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    int fd = open("fifo", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, texts[_i]), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    if (_i == OPENED_LATE)
        ck_assert_int_eq(write(fd, "line 0 of a pipe\n", 17), 17);
    for (int i = 0; i < (_i > 0 ? 2 * LINES : 0); i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    for (int i = 0; i < LINES; i++) {
        char line[40];
        int n = sprintf(line, "line %d of a pipe\n", i);
        if (i > 0 || _i != OPENED_LATE)
            ck_assert_int_eq(write(fd, line, (size_t)n), n);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_uint_eq(sample.field[0].bytes, n - 1);
        ck_assert_int_eq(memcmp(sample.field[0].data, line, (size_t)n - 1), 0);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&sample);
    close(fd);
    remove("fifo");
    remove("a");
    remove("b");
}
END_TEST

START_TEST(endless_and_many_inputs)
{
    /* More turns than are planned: a stream then. */
    char *text = malloc(200000);
    int64_t count;
    text[0] = 0;
    for (int i = 0; i < 1500; i++)
        sprintf(text + strlen(text), "(counted:%d,stable=1) ", i);
    strcat(text, "| interleave");
    leat_reader *reader = counted_source_reader(text);
    ck_assert_int_eq(leat_reader_is_random_access(reader), 0);
    leat_reader_close(reader);
    strcat(text, ":cycle=100");
    reader = counted_source_reader(text);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 1500 * 1499 / 2);
    leat_reader_close(reader);
    free(text);
}
END_TEST

/* 1000 samples of each input, bad ones in the second. */
START_TEST(samples_beside_bad_ones_are_seldom_made_again)
{
    int calls, more;
    ck_assert_int_le(
        sequence_cost("(counted:1000,counts=1) (counted:1000,bad=1,"
                      "every=2) | interleave",
                      &calls),
        2000);
    ck_assert_int_le(sequence_cost("(counted:1000,counts=1) (counted:1000,"
                                   "bad=3) | interleave",
                                   &calls),
                     2000);
    ck_assert_int_eq(sequence_cost("(counted:1000,counts=1) (counted:1000) | "
                                   "interleave",
                                   &calls),
                     1000);
    ck_assert_int_le(sequence_cost("(counted:1000,counts=1) (counted:1000,"
                                   "bad=64,every=2000) | interleave",
                                   &more),
                     1032);
    ck_assert_int_le(more, calls + 8);
}
END_TEST

START_TEST(code_and_text_make_the_same_pipeline)
{
    leat_pipeline *input[2], *made;
    input[0] = counted_source_parse("counted:10");
    input[1] = counted_source_parse("counted:20");
    leat_interleave_options options = {.size = sizeof(options)};
    ck_assert_int_eq(leat_interleave_options_init(&options), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_interleave(&made, input, 2, NULL), LEAT_OK);
    sequence_same_pipeline("(counted:10) (counted:20) | interleave", made);
    options.cycle = 2;
    options.block = 7;
    ck_assert_int_eq(leat_pipeline_interleave(&made, input, 2, &options),
                     LEAT_OK);
    sequence_same_pipeline("(counted:10) (counted:20) | interleave:cycle=2,"
                           "block=7",
                           made);
    options.pipeline = "counted:{},first=4";
    options.ahead = -1;
    ck_assert_int_eq(leat_pipeline_interleave(&made, input, 1, &options),
                     LEAT_OK);
    sequence_same_pipeline("counted:10 | interleave:(counted:{},first=4),"
                           "cycle=2,block=7,ahead=0",
                           made);
    options.cycle = -1;
    ck_assert_int_eq(leat_pipeline_interleave(&made, input, 2, &options),
                     LEAT_EINVAL);
    leat_pipeline_unref(input[0]);
    leat_pipeline_unref(input[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interleave");
    TCase *tcase = tcase_create("interleave");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, tensorflows_orders);
    tcase_add_test(tcase, inputs_of_any_lengths);
    tcase_add_test(tcase, every_form_resumes_anywhere);
    tcase_add_test(tcase,
                   a_mark_of_an_index_near_two_to_the_sixty_three_is_refused);
    tcase_add_test(tcase, a_template_gives_what_its_readers_give);
    tcase_add_test(tcase, a_template_of_readers_that_cannot_be_resumed_says_so);
    tcase_add_test(
        tcase, a_file_that_is_written_while_a_template_reads_it_is_an_error);
    tcase_add_test(tcase, samples_and_sources_outlive_their_readers);
    tcase_add_test(tcase, ten_thousand_files_need_few_descriptors);
    tcase_add_test(tcase, errors_come_in_their_turn);
    tcase_add_test(tcase, names_that_grow_within_each_other_end);
    tcase_add_test(tcase, cancel_wakes_whatever_is_read);
    tcase_add_loop_test(tcase, lines_of_a_pipe_are_not_kept_waiting_for_others,
                        0, 5);
    tcase_add_test(tcase, endless_and_many_inputs);
    tcase_add_test(tcase, samples_beside_bad_ones_are_seldom_made_again);
    tcase_add_test(tcase, code_and_text_make_the_same_pipeline);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
