/*
 * Readers in a forked child, whatever their owner did at the fork: the child's
 * calls return LEAT_ESTATE, and cancel and close do not wait. A child opens
 * shared readers of its own.
 */
#include "support/record_sequence.h"
#include "support/sanitizer.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer's forks take long. */
enum { FORKS = IS_SANITIZED ? 100 : 400, CHILD_SECONDS = 20 };

static const char *const texts[] = {
    "range:90 | prefetch:4,threads=3",
    "range:90 | prefetch:4,threads=2,unordered=1",
    "(range:90) (range:50) (range:70) | merge:buffer=2",
    "range:90 | batch:3",
    "range:90 | window:3,2",
    "range:90 | share",
    "range:90 | share | prefetch:2",
    "text:names | interleave:(text:{})",
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

/* After two samples several of these hold what comes next. */
static const char *const held[] = {
    "range:90",
    "range:90 | batch:4 | unbatch",
    "range:90 | cache",
    "range:90 | shuffle:8",
    "range:90 | repeat",
    "range:2",
    "(range:9) (range:9) | interleave",
    "(range:9) (random:9,shape=1) | zip",
    "text:names | interleave:(text:{})",
    "range:90 | prefetch:2",
    "range:90 | share",
};
enum { HELD = sizeof(held) / sizeof(held[0]) };

static leat_pipeline *pipeline;
static _Atomic(leat_reader *) the_reader; /* NULL: none is open */
static atomic_bool is_over;

/* Two files, and a list of them. */
static void write_names(void)
{
    record_sequence_begin();
    record_sequence_write("one", "a\nb\nc\nd\n", 8);
    record_sequence_write("two", "e\nf\ng\nh\n", 8);
    record_sequence_write("names", "one\ntwo\n", 8);
}

/* Opens, reads and closes; before it closes, a fork no longer sees the reader.
 */
static void *read_and_close(void *unused)
{
    leat_sample sample;
    leat_sample_init(&sample);
    while (!atomic_load(&is_over)) {
        leat_reader *reader;
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        atomic_store(&the_reader, reader);
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        atomic_store(&the_reader, NULL);
        leat_reader_close(reader);
    }
    leat_sample_finish(&sample);
    return unused;
}

static void use_in_child(void)
{
    leat_reader *reader = atomic_load(&the_reader);
    leat_sample sample;
    if (!reader)
        _exit(0);
    alarm(CHILD_SECONDS);
    leat_sample_init(&sample);
    int status = leat_reader_next(reader, &sample);
    leat_reader_cancel(reader);
    leat_reader_close(reader);
    _exit(status == LEAT_ESTATE ? 0 : 1);
}

START_TEST(a_child_of_any_moment_is_refused_and_can_close)
{
    pthread_t thread;
    int ended;
    watchdog_start(120);
    atomic_store(&is_over, false);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, texts[_i]), LEAT_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_and_close, NULL), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0)
            use_in_child();
        ck_assert_int_eq(waitpid(child, &ended, 0), child);
        ck_assert_int_eq(ended, 0);
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Before its first sample it has no threads: the child's would be its own. */
START_TEST(so_is_a_child_of_a_reader_that_has_not_begun)
{
    leat_reader *reader;
    int ended;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, texts[_i]), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    atomic_store(&the_reader, reader);
    pid_t child = fork();
    if (child == 0)
        use_in_child();
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The number of the first call that is not refused; 0: all are. */
static int find_answered(leat_reader *reader)
{
    leat_sample sample, *samples = &sample;
    leat_token token;
    leat_blob *blob = NULL;
    const leat_position at = {0, 0};
    const leat_field_spec *fields;
    const int64_t *parts;
    int64_t number;
    int n;
    leat_sample_init(&sample);
    leat_token_init(&token);
    leat_reader_cancel(reader);
    leat_reader_advise(reader, &at, 1);
    const int statuses[] = {
        leat_reader_next(reader, &sample),
        leat_reader_next_batch(reader, &samples, 1, &n),
        leat_reader_pull(reader, &samples, 1, &n),
        leat_reader_materialize(reader, &samples, 1, &n),
        leat_read(reader, &blob, 1),
        leat_reader_skip(reader, 0, &number),
        leat_reader_skip(reader, 1, &number),
        leat_reader_fields(reader, &fields, &n),
        leat_reader_count(reader, &number),
        leat_reader_parts(reader, &parts, &number),
        leat_reader_read_at(reader, &at, &samples, 1, &n),
        leat_reader_seek(reader, at, NULL),
        leat_reader_mark(reader, &token),
        leat_reader_seek(reader, at, &token),
        leat_reader_save(reader, &token),
        leat_reader_identify(reader, &token),
        leat_reader_restore(reader, &token),
        leat_reader_check(reader),
    };
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i] != LEAT_ESTATE)
            return (int)i + 1;
    leat_sample_finish(&sample);
    leat_token_finish(&token);
    return leat_reader_may_block(reader) ? 100 : 0;
}

/* At rest, at its end or not; the parent's goes on as if nothing was. */
START_TEST(each_call_of_a_child_is_refused)
{
    leat_reader *reader;
    leat_sample sample;
    int ended;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, held[_i]), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        int answered = find_answered(reader);
        leat_reader_close(reader);
        _exit(answered);
    }
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    bool is_at_end = strcmp(held[_i], "range:2") == 0;
    ck_assert_int_eq(leat_reader_next(reader, &sample),
                     is_at_end ? LEAT_END : LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

static int open_slowly(void *user, void **pass)
{
    *pass = user;
    usleep(100);
    return LEAT_OK;
}

static int give_one(void *pass, leat_sample *sample)
{
    return leat_sample_set(sample, 0, LEAT_INT64, 0, NULL, pass);
}

static atomic_bool is_inside, may_leave;
static int closed;

static int wait_inside(void *pass, leat_sample *sample)
{
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave))
        usleep(100);
    return give_one(pass, sample);
}

static void note_close(void *pass)
{
    (void)pass;
    closed++;
}

static void *read_one(void *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_sample_finish(&sample);
    return NULL;
}

/* What a thread of the parent's was changing is not freed. */
START_TEST(a_child_leaves_a_reader_that_a_thread_was_inside_of)
{
    static const leat_field_spec field = {.name = "value", .dtype = LEAT_INT64};
    leat_callbacks callbacks = {.size = sizeof(callbacks)};
    callbacks.fields = &field;
    callbacks.nfields = 1;
    callbacks.next = wait_inside;
    callbacks.close = note_close;
    int64_t value = 1;
    leat_reader *reader;
    pthread_t thread;
    int ended;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &value),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_one, reader), 0);
    while (!atomic_load(&is_inside))
        usleep(100);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        leat_reader_close(reader);
        _exit(closed);
    }
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    atomic_store(&may_leave, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    leat_reader_close(reader);
    ck_assert_int_eq(closed, 1);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void *open_and_close(void *unused)
{
    leat_reader *reader;
    while (!atomic_load(&is_over)) {
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        leat_reader_close(reader);
    }
    return unused;
}

static void open_in_child(void)
{
    leat_reader *reader;
    leat_sample sample;
    int status = LEAT_OK;
    alarm(CHILD_SECONDS);
    leat_sample_init(&sample);
    for (int i = 0; i < 3 && !status; i++) {
        status = leat_pipeline_open(pipeline, &reader);
        if (status)
            break;
        status = leat_reader_next(reader, &sample);
        leat_reader_close(reader);
    }
    _exit(status == LEAT_OK ? 0 : 1);
}

/* Of the process's workspace, and of one of its own. */
static void share_slow_callback(int has_own)
{
    static int64_t value;
    const leat_field_spec field = {.name = "value", .dtype = LEAT_INT64};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .open = open_slowly,
                                      .next = give_one};
    leat_pipeline *source;
    leat_workspace *own = NULL;
    if (has_own)
        ck_assert_int_eq(leat_workspace_create(&own), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_callback(&source, &callbacks, &value),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_share(&pipeline, source, "forked", own),
                     LEAT_OK);
    leat_pipeline_unref(source);
    leat_workspace_unref(own);
}

START_TEST(a_child_of_any_moment_opens_shared_readers)
{
    enum { OPENERS = 4 };
    pthread_t thread[OPENERS];
    int ended;
    watchdog_start(120);
    atomic_store(&is_over, false);
    share_slow_callback(_i);
    for (int i = 0; i < OPENERS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, open_and_close, NULL),
                         0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0)
            open_in_child();
        ck_assert_int_eq(waitpid(child, &ended, 0), child);
        ck_assert_int_eq(ended, 0);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < OPENERS; i++)
        pthread_join(thread[i], NULL);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Whether the next line of standard input can be read. */
static bool reads_a_line(leat_reader *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    bool is_read = leat_reader_next(reader, &sample) == LEAT_OK;
    leat_sample_finish(&sample);
    return is_read;
}

/* Beside its parent's, which stays the only one there. */
START_TEST(a_child_reads_standard_input_of_its_own)
{
    int input[2], ended;
    leat_reader *reader = NULL, *second = NULL;
    ck_assert(pipe(input) == 0 && dup2(input[0], STDIN_FILENO) == 0);
    ck_assert_int_eq(write(input[1], "a\nb\nc\n", 6), 6);
    close(input[1]);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "text:-"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert(reads_a_line(reader));
    pid_t child = fork();
    if (child == 0) {
        int own[2];
        if (pipe(own) || dup2(own[0], STDIN_FILENO) ||
            write(own[1], "d\n", 2) != 2 || close(own[1]) ||
            leat_pipeline_open(pipeline, &second) || !reads_a_line(second))
            _exit(1);
        leat_reader_close(reader);
        reader = NULL;
        bool is_taken =
            leat_pipeline_open(pipeline, &reader) || !reads_a_line(reader);
        leat_reader_close(second);
        _exit(!is_taken);
    }
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader_fork");
    TCase *tcase = tcase_create("reader_fork");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, write_names, record_sequence_end);
    tcase_add_loop_test(tcase, a_child_of_any_moment_is_refused_and_can_close,
                        0, TEXTS);
    tcase_add_loop_test(tcase, so_is_a_child_of_a_reader_that_has_not_begun, 0,
                        TEXTS);
    tcase_add_loop_test(tcase, each_call_of_a_child_is_refused, 0, HELD);
    tcase_add_test(tcase, a_child_leaves_a_reader_that_a_thread_was_inside_of);
    tcase_add_test(tcase, a_child_reads_standard_input_of_its_own);
    /* A child of a moment in which another thread allocates waits for a lock of
       a sanitizer's. */
    if (!IS_SANITIZED)
        tcase_add_loop_test(tcase, a_child_of_any_moment_opens_shared_readers,
                            0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
