/* What a system may put around a database: odd paths, limits, other users. */
#include "support/images.h"
#include "support/layer_fixture.h"
#include "support/life_cycles.h"
#include "support/nobody.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { RECORDS = 40, SECONDS = 110 };

static char base[FIXTURE_PATH];

static void begin(void)
{
    watchdog_start(SECONDS);
    life_cycles_begin();
    fixture_directory(base);
}

static void end(void)
{
    fixture_remove(base);
    life_cycles_end();
    watchdog_stop();
}

static char *in(const char *name)
{
    static char path[4][2 * FIXTURE_PATH];
    static int at;
    char *out = path[at++ % 4];
    snprintf(out, sizeof(path[0]), "%s/%s", base, name);
    return out;
}

/* A copy of the life cycles' database. */
static void copy_to(const char *directory)
{
    char from[2 * FIXTURE_PATH], to[3 * FIXTURE_PATH];
    size_t size;
    snprintf(from, sizeof(from), "%s/raw/data.mdb", life_cycles_directory());
    snprintf(to, sizeof(to), "%s/data.mdb", directory);
    ck_assert_int_eq(mkdir(directory, 0755), 0);
    unsigned char *bytes = fixture_load(from, &size);
    fixture_store(to, bytes, size);
    free(bytes);
}

/* Reads everything: the records' number, or the first error. */
static int64_t count_records(const char *path)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    int64_t n = 0;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status)
        return status;
    leat_sample_init(&sample);
    while (!(status = leat_reader_next(reader, &sample)))
        n++;
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status == LEAT_END ? n : status;
}

/* The same by way of the pipeline's own text. */
static void check_path(const char *path)
{
    leat_pipeline *pipeline, *again;
    leat_reader *reader;
    ck_assert_int_eq(count_records(path), RECORDS);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    int status = leat_pipeline_parse(&again, leat_pipeline_text(pipeline));
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    status = leat_pipeline_open(again, &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_reader_close(reader);
    leat_pipeline_unref(again);
    leat_pipeline_unref(pipeline);
}

START_TEST(paths_of_any_letters_are_read)
{
    static const char *const names[] = {"with blanks in it",
                                        "grüße-数据",
                                        "a,b=c|d:e",
                                        "'quoted'",
                                        "\"twice\"",
                                        "back\\slash",
                                        "line\nbreak",
                                        "\xff\xfe",
                                        " ",
                                        "-n",
                                        "%s%n"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        copy_to(in(names[i]));
        check_path(in(names[i]));
    }
    char name[256];
    memset(name, 'x', 255);
    name[255] = 0;
    copy_to(in(name));
    check_path(in(name));
}
END_TEST

START_TEST(links_lead_to_the_database)
{
    copy_to(in("real"));
    ck_assert_int_eq(symlink("real", in("link")), 0);
    check_path(in("link"));
    check_path(in("link/"));
    check_path(in("link/data.mdb"));
    ck_assert_int_eq(mkdir(in("apart"), 0755), 0);
    ck_assert_int_eq(symlink("../real/data.mdb", in("apart/data.mdb")), 0);
    check_path(in("apart"));
    ck_assert_int_eq(symlink("nowhere", in("dangling")), 0);
    ck_assert_int_eq(count_records(in("dangling")), LEAT_EIO);
    ck_assert_int_eq(symlink("loop", in("loop")), 0);
    ck_assert_int_eq(count_records(in("loop")), LEAT_EIO);
}
END_TEST

/* Nobody writes into the pipe: whoever opened it would wait for ever. */
START_TEST(pipes_and_directories_in_the_place_of_files_are_refused)
{
    ck_assert_int_eq(mkfifo(in("pipe"), 0644), 0);
    ck_assert_int_eq(count_records(in("pipe")), LEAT_EIO);
    ck_assert_int_eq(mkdir(in("piped"), 0755), 0);
    ck_assert_int_eq(mkfifo(in("piped/data.mdb"), 0644), 0);
    ck_assert_int_eq(count_records(in("piped")), LEAT_EIO);
    copy_to(in("locked"));
    ck_assert_int_eq(mkfifo(in("locked/lock.mdb"), 0644), 0);
    ck_assert_int_eq(count_records(in("locked")), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "locked"));
    ck_assert_int_eq(unlink(in("locked/lock.mdb")), 0);
    ck_assert_int_eq(mkdir(in("locked/lock.mdb"), 0755), 0);
    ck_assert_int_eq(count_records(in("locked")), LEAT_EIO);
    ck_assert_int_eq(mkdir(in("inner"), 0755), 0);
    ck_assert_int_eq(mkdir(in("inner/data.mdb"), 0755), 0);
    ck_assert_int_eq(count_records(in("inner")), LEAT_EIO);
}
END_TEST

/* In a process of another user, whom permissions concern. */
static int as_nobody(int (*body)(void))
{
    int result;
    ck_assert_int_eq(chmod(base, 0755), 0);
    /* The thread sanitizer's processes may have no threads when they fork. */
    watchdog_stop();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (nobody_become())
            _exit(90);
        _exit(body());
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    watchdog_start(SECONDS);
    ck_assert_msg(WIFEXITED(result), "signal %d", WTERMSIG(result));
    return WEXITSTATUS(result);
}

static int is_denied(void)
{
    return count_records(in("closed")) == LEAT_EIO &&
                   strstr(leat_last_error(), "Permission denied")
               ? 0
               : 1;
}

static int is_read(void)
{
    return count_records(in("closed")) == RECORDS ? 0 : 1;
}

START_TEST(a_directory_without_permission_is_an_error_that_says_so)
{
    copy_to(in("closed"));
    ck_assert_int_eq(chmod(in("closed"), 0), 0);
    ck_assert_int_eq(as_nobody(is_denied), 0);
    ck_assert_int_eq(chmod(in("closed"), 0444), 0);
    ck_assert_int_eq(as_nobody(is_denied), 0);
    /* What may be read but not written to is read without a lock. */
    ck_assert_int_eq(chmod(in("closed"), 0555), 0);
    ck_assert_int_eq(as_nobody(is_read), 0);
}
END_TEST

/* Runs the layers' life cycle, from create to destroy. */
static int run_job(const char *name)
{
    int i = 0;
    while (strcmp(life_cycles[i].name, name) != 0)
        i++;
    return life_cycles[i].run();
}

START_TEST(a_limit_of_files_is_an_error_until_it_suffices)
{
    static const char *const names[] = {"layer, threaded",
                                        "layer of a net file", "mean file"};
    struct rlimit old, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (int i = 0; i < 3; i++) {
        int failures = 0, status = LEAT_EIO;
        limit = old;
        ck_assert_int_eq(run_job(names[i]), LEAT_OK);
        for (rlim_t n = 3; status; n++) {
            limit.rlim_cur = n;
            ck_assert_int_lt((int)n, 100);
            ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
            status = run_job(names[i]);
            setrlimit(RLIMIT_NOFILE, &old);
            ck_assert_msg(status == LEAT_OK || status == LEAT_EIO, "%s",
                          leat_last_error());
            failures += status != LEAT_OK;
        }
        ck_assert_int_gt(failures, 0);
    }
}
END_TEST

/* The superuser has no such limit, hence another user. */
static int meets_limit(void)
{
    const struct rlimit limit = {1, 1};
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_blob *top;
    options.batch_size = 2;
    options.workers = 3;
    if (setrlimit(RLIMIT_NPROC, &limit) ||
        leat_data_layer_create(&layer, pipeline, &options) ||
        leat_blob_create(&top, NULL))
        return 1;
    int status = leat_data_layer_setup(layer, &top, 1);
    int is_told = status == LEAT_EIO && strstr(leat_last_error(), "thread");
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
    return is_told ? 0 : 2;
}

START_TEST(a_limit_of_threads_is_an_error_that_says_so)
{
    ck_assert_int_eq(as_nobody(meets_limit), 0);
}
END_TEST

enum { PAGE = 4096 };

static void put(int fd, uint64_t page, size_t offset, const void *bytes,
                size_t size)
{
    ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)(page * PAGE + offset)),
                     (ssize_t)size);
}

/* A leaf far out becomes the root: one record, and 2 TiB of nothing. */
START_TEST(a_sparse_database_of_two_tebibytes_is_read)
{
    const uint64_t last = ((uint64_t)2 << 40) / PAGE - 1;
    char from[2 * FIXTURE_PATH];
    size_t size;
    copy_to(in("sparse"));
    snprintf(from, sizeof(from), "%s/sparse/data.mdb", base);
    unsigned char *bytes = fixture_load(from, &size);
    uint64_t root;
    memcpy(&root, bytes + PAGE + 128, sizeof(root));
    int fd = open(from, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    if (ftruncate(fd, (off_t)2 << 40)) {
        printf("skipped: the file system takes no file of 2 TiB\n");
    } else {
        /* The root is a leaf already: so few records. */
        put(fd, last, 0, bytes + root * PAGE, PAGE);
        put(fd, last, 0, &last, sizeof(last));
        put(fd, 1, 128, &last, sizeof(last));
        put(fd, 1, 136, &last, sizeof(last));
        int64_t n = count_records(in("sparse"));
        if (n < 0 && strstr(leat_last_error(), "Cannot allocate memory"))
            printf("skipped: 2 TiB cannot be mapped here\n");
        else
            ck_assert_msg(n == RECORDS, "%lld: %s", (long long)n,
                          leat_last_error());
    }
    close(fd);
    free(bytes);
}
END_TEST

static leat_pipeline *shared_pipeline(void)
{
    leat_pipeline *pipeline;
    char path[2 * FIXTURE_PATH];
    snprintf(path, sizeof(path), "%s/raw", life_cycles_directory());
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    return pipeline;
}

enum { LAYERS = 50, CALLERS = 5, FORWARDS = 30, BATCH = 3 };

static layer_fixture feeds[LAYERS];

static void *take_turns(void *argument)
{
    int first = (int)(intptr_t)argument - LAYERS; /* no NULL */
    for (int k = 0; k < FORWARDS; k++) {
        for (int i = first; i < LAYERS; i += CALLERS) {
            if (layer_fixture_forward(&feeds[i]) ||
                layer_fixture_label(&feeds[i], 0) !=
                    (float)(k * BATCH % RECORDS))
                return NULL;
        }
    }
    return argument;
}

START_TEST(fifty_layers_read_one_database)
{
    leat_pipeline *pipeline = shared_pipeline();
    pthread_t thread[CALLERS];
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = BATCH;
    for (int i = 0; i < LAYERS; i++) {
        options.workers = 1 + i % 3;
        options.reader_thread = (leat_reader_thread)(i % 3);
        feeds[i] = layer_fixture_open(pipeline, &options);
    }
    for (intptr_t i = 0; i < CALLERS; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, take_turns, (void *)(i + LAYERS)),
            0);
    for (int i = 0; i < CALLERS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        ck_assert_ptr_nonnull(result);
    }
    for (int i = 0; i < LAYERS; i++)
        layer_fixture_close(&feeds[i]);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Hundred records a commit, until it is told to end. */
static void write_on(const char *directory, int end)
{
    char byte;
    MDB_env *env = fixture_env(directory, 0);
    for (int n = 100; read(end, &byte, 1) < 0; n += 100)
        fixture_put(env, images_record, n % 20000, n % 20000 + 100, 0);
    mdb_env_close(env);
    _exit(0);
}

/* An epoch of what there was when the layer was set up, and again. */
static void check_epochs(const leat_pipeline *pipeline, int number)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 100;
    options.workers = 1 + number % 3;
    options.reader_thread = (leat_reader_thread)(number % 3);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    int64_t records = 0;
    for (int k = 0; k < 20; k++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const leat_batch *batch = leat_data_layer_batch(fixture.layer);
        const float *pixels = leat_blob_cpu_data(fixture.top[0]);
        for (int i = 0; i < 100; i++) {
            const leat_provenance *from = &batch->from[i];
            if (from->epoch == 0)
                records = from->record + 1;
            ck_assert_int_eq(from->record, from->epoch == 0
                                               ? k * 100 + i
                                               : (k * 100 + i) % records);
            ck_assert_float_eq(layer_fixture_label(&fixture, i),
                               (float)from->record);
            ck_assert_float_eq(pixels[i * 20 + 19],
                               (float)(unsigned char)from->record);
        }
    }
    ck_assert_int_eq(records % 100, 0);
    layer_fixture_close(&fixture);
}

START_TEST(layers_read_while_another_process_writes)
{
    int ends[2], result;
    leat_pipeline *pipeline;
    ck_assert_int_eq(mkdir(in("growing"), 0755), 0);
    fixture_write(in("growing"), images_record, 100);
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(ends[1]);
        write_on(in("growing"), ends[0]);
    }
    close(ends[0]);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, in("growing"), NULL), 0);
    for (int number = 0; number < 60; number++)
        check_epochs(pipeline, number);
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("surroundings");
    TCase *tcase = tcase_create("surroundings");
    tcase_add_checked_fixture(tcase, begin, end);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, paths_of_any_letters_are_read);
    tcase_add_test(tcase, links_lead_to_the_database);
    tcase_add_test(tcase,
                   pipes_and_directories_in_the_place_of_files_are_refused);
    tcase_add_test(tcase,
                   a_directory_without_permission_is_an_error_that_says_so);
    tcase_add_test(tcase, a_limit_of_files_is_an_error_until_it_suffices);
    tcase_add_test(tcase, a_limit_of_threads_is_an_error_that_says_so);
    tcase_add_test(tcase, a_sparse_database_of_two_tebibytes_is_read);
    tcase_add_test(tcase, fifty_layers_read_one_database);
    tcase_add_test(tcase, layers_read_while_another_process_writes);
    return suite_run(suite);
}
