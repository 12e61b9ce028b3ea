/* cache:dir=PATH: made whole or not at all, and refused when it is not. */
#include "base/memory.h"
#include "decorators/cache/cache_directory.h"
#include "decorators/cache/cache_writer.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 200, FORKS = 500 };

static leat_sample sample;
static char root[64];
static char path[80];
static char logged[4096];
static float pixels[MANY][16];
static int32_t labels[MANY];

static void note_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(logged, sizeof(logged), "%s", line);
}

static void begin(void)
{
    leat_sample_init(&sample);
    snprintf(root, sizeof(root), "/tmp/leat-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/kept", root);
    for (int i = 0; i < MANY; i++) {
        labels[i] = i;
        pixels[i][0] = pixels[i][15] = (float)i;
    }
    logged[0] = 0;
    leat_log_set(note_line, NULL, LEAT_LOG_WARNING);
}

static void remove_all(const char *name)
{
    char command[200];
    snprintf(command, sizeof(command), "rm -rf '%s'", name);
    ck_assert_int_eq(system(command), 0);
}

static void end(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
    leat_sample_finish(&sample);
    remove_all(root);
}

/* A reader that saves an identity, and tells whether it was read. */
typedef struct source {
    leat_reader reader;
    leat_reader *upstream;
} source;

static int reads;
static int64_t identity = 1;
static int64_t bad = -1;
static int kills = -1; /* the sample at which the process dies */

static int source_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    return leat_reader_fields(((source *)reader)->upstream, out, n);
}

static int check_record(leat_sample *one)
{
    if (one->from.record == kills)
        raise(SIGKILL);
    if (one->from.record != bad)
        return LEAT_OK;
    return leat_error(LEAT_EDATA, "record %d is bad", (int)bad);
}

static int source_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    (void)n;
    int status = leat_reader_pull(((source *)reader)->upstream, out, 1, got);
    if (status)
        return status;
    reads++;
    status = check_record(out[0]);
    *got -= status != LEAT_OK;
    return status;
}

static int source_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    (void)n;
    int status =
        leat_reader_pull_at(((source *)reader)->upstream, at, out, 1, got);
    if (!status) {
        __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
        status = check_record(out[0]);
        *got -= status != LEAT_OK;
    }
    return status;
}

static int source_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(((source *)reader)->upstream, out);
}

static int source_seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    return leat_reader_seek(((source *)reader)->upstream, at, mark);
}

static void source_cancel(leat_reader *reader)
{
    leat_reader_cancel(((source *)reader)->upstream);
}

static void source_close(leat_reader *reader)
{
    leat_reader_close(((source *)reader)->upstream);
    free(reader);
}

static int source_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    return leat_token_put(token, &identity, sizeof(identity));
}

static int source_restore(leat_reader *reader, leat_token *token)
{
    int64_t found;
    (void)reader;
    return leat_token_get(token, &found, sizeof(found));
}

#define SOURCE_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "source",                         \
    .fields = source_fields, .next = source_next, .seek = source_seek,         \
    .cancel = source_cancel, .close = source_close, .save = source_save,       \
    .restore = source_restore

static const leat_reader_ops stream_ops = {SOURCE_OPS};
static const leat_reader_ops index_ops = {SOURCE_OPS, .count = source_count,
                                          .read_at = source_read_at};

static int is_stream;

static int source_open(const leat_open *open, leat_reader **out)
{
    source *self = calloc(1, sizeof(*self));
    ck_assert_ptr_nonnull(self);
    self->reader.ops = is_stream ? &stream_ops : &index_ops;
    self->upstream = open->upstream[0];
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type source_type = {.size = sizeof(leat_reader_type),
                                             .name = "source",
                                             .min_upstream = 1,
                                             .max_upstream = 1,
                                             .open = source_open};

static leat_pipeline *source_pipeline(int64_t count)
{
    const int64_t shape[] = {16};
    leat_memory_field fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32, .ndim = 1, .data = pixels},
        {.name = "label", .dtype = LEAT_INT32, .data = labels},
    };
    leat_pipeline *memory, *pipeline;
    memcpy(fields[0].shape, shape, sizeof(shape));
    ck_assert_msg(!leat_pipeline_memory(&memory, fields, 2, count), "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &source_type, NULL, NULL,
                                          NULL, &memory, 1),
                     LEAT_OK);
    leat_pipeline_unref(memory);
    reads = 0;
    return pipeline;
}

static int open_cached(leat_pipeline *upstream, leat_reader **out)
{
    leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
    leat_pipeline *pipeline;
    options.dir = path;
    ck_assert_msg(!leat_pipeline_cache(&pipeline, upstream, &options), "%s",
                  leat_last_error());
    leat_pipeline_unref(upstream);
    int status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}

static leat_reader *open_source(int64_t count)
{
    leat_reader *reader = NULL;
    int status = open_cached(source_pipeline(count), &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return reader;
}

static void expect_epoch(leat_reader *reader, int64_t epoch, int count)
{
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                     LEAT_OK);
    for (int i = 0; i < count; i++) {
        int32_t label;
        int status = leat_reader_next(reader, &sample);
        if (i == bad) {
            ck_assert_int_eq(status, LEAT_EDATA);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "is bad"));
            continue;
        }
        ck_assert_msg(status == LEAT_OK, "%d: %s", i, leat_last_error());
        memcpy(&label, sample.field[1].data, sizeof(label));
        ck_assert_int_eq(label, i);
        ck_assert_int_eq(sample.from.record, i);
        ck_assert_str_eq(sample.from.source, "memory");
        ck_assert_mem_eq(sample.field[0].data, pixels[i], sizeof(pixels[i]));
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}

static bool is_there(const char *name)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", path, name);
    return access(file, F_OK) == 0;
}

static void make(int count)
{
    leat_reader *reader = open_source(count);
    expect_epoch(reader, 0, count);
    leat_reader_close(reader);
    ck_assert(is_there("/index") && !is_there(".partial"));
}

START_TEST(the_second_reader_reads_nothing_upstream)
{
    const int counts[] = {0, 1, 3, MANY};
    for (int i = 0; i < 8; i++) {
        int count = counts[i / 2];
        is_stream = i % 2;
        bad = count == MANY ? 7 : -1;
        remove_all(path);
        leat_reader *reader = open_source(count);
        ck_assert_int_eq(leat_reader_is_random_access(reader), !is_stream);
        for (int epoch = 0; epoch < 3; epoch++)
            expect_epoch(reader, epoch, count);
        ck_assert_int_eq(reads, count);
        leat_reader_close(reader);
        reader = open_source(count);
        ck_assert(leat_reader_is_random_access(reader));
        int64_t found;
        ck_assert_int_eq(leat_reader_count(reader, &found), LEAT_OK);
        ck_assert_int_eq(found, count);
        for (int epoch = 0; epoch < 2; epoch++)
            expect_epoch(reader, epoch, count);
        ck_assert_int_eq(reads, 0);
        ck_assert_int_eq(sample.stable, 1);
        leat_reader_close(reader);
        ck_assert_str_eq(logged, "");
    }
}
END_TEST

static void *read_half(void *reader)
{
    leat_sample own;
    leat_sample *out = &own;
    leat_sample_init(&own);
    for (int i = 0; i < MANY; i++) {
        int got;
        leat_position at = {0, i * 77 % MANY};
        if (leat_reader_read_at(reader, &at, &out, 1, &got))
            return reader;
    }
    leat_sample_finish(&own);
    return NULL;
}

START_TEST(threads_write_it_in_any_order)
{
    pthread_t thread[4];
    leat_reader *reader = open_source(MANY);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_half, reader),
                         0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    leat_reader_close(reader);
    reader = open_source(MANY);
    expect_epoch(reader, 0, MANY);
    ck_assert_int_eq(reads, 0);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_part_of_an_epoch_leaves_nothing)
{
    for (is_stream = 0; is_stream < 2; is_stream++) {
        leat_reader *reader = open_source(MANY);
        for (int i = 0; i < MANY - 1; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert(is_there(".partial/data"));
        leat_reader_close(reader);
        ck_assert(!is_there("") && !is_there(".partial"));
    }
}
END_TEST

START_TEST(a_killed_writer_is_followed_by_another)
{
    for (is_stream = 0; is_stream < 2; is_stream++) {
        remove_all(path);
        pid_t child = fork();
        if (child == 0) {
            kills = MANY / 2;
            leat_reader *reader = open_source(MANY);
            while (!leat_reader_next(reader, &sample))
                ;
            _exit(0);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert(!is_there("") && is_there(".partial/data"));
        make(MANY);
    }
}
END_TEST

START_TEST(a_forked_child_leaves_it_to_its_parent)
{
    for (is_stream = 0; is_stream < 2; is_stream++) {
        remove_all(path);
        leat_reader *reader = open_source(MANY);
        for (int i = 0; i < 50; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        pid_t child = fork();
        if (child == 0) {
            int status = LEAT_OK;
            while (!status)
                status = leat_reader_next(reader, &sample);
            leat_reader_close(reader);
            _exit(status == LEAT_END ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        for (int i = 50; i < MANY; i++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        leat_reader_close(reader);
        reader = open_source(MANY);
        expect_epoch(reader, 0, MANY);
        ck_assert_int_eq(reads, 0);
        leat_reader_close(reader);
    }
}
END_TEST

/* Its child waits for the end of a pipe, as it does. */
static void write_with_child(int begun, int until)
{
    char byte = 0;
    leat_reader *reader = open_source(MANY);
    bool is_child = leat_reader_next(reader, &sample) == LEAT_OK && !fork();
    if (is_child && write(begun, &byte, 1) != 1)
        _exit(1);
    _exit(read(until, &byte, 1) != 0);
}

START_TEST(a_child_of_a_killed_writer_holds_no_lock)
{
    char byte = 0;
    int begun[2], until[2], status;
    ck_assert(!pipe(begun) && !pipe(until));
    pid_t writer = fork();
    if (writer == 0) {
        close(until[1]);
        write_with_child(begun[1], until[0]);
    }
    ck_assert_int_eq(read(begun[0], &byte, 1), 1);
    ck_assert_int_eq(kill(writer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(writer, &status, 0), writer);
    make(MANY);
    close(until[1]);
}
END_TEST

static _Atomic int stopped;

static void *create_and_destroy(void *status)
{
    leat_token none;
    leat_token_init(&none);
    while (!stopped) {
        leat__cache_writer *writer = NULL;
        *(int *)status |= leat__cache_writer_create(&writer, path, &none);
        leat__cache_writer_destroy(writer);
    }
    leat_token_finish(&none);
    return NULL;
}

/* Descriptors of the directory in this process, which is a child. */
static int count_partial(void)
{
    char name[32], target[PATH_MAX];
    int n = 0;
    for (int fd = 0; fd < 64; fd++) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(name, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = 0;
        n += strstr(target, "kept.partial") != NULL;
    }
    return n;
}

/* At whatever moment it was forked. */
START_TEST(a_child_has_no_file_of_its_parents)
{
    pthread_t thread;
    int status = LEAT_OK;
    ck_assert_int_eq(pthread_create(&thread, NULL, create_and_destroy, &status),
                     0);
    for (int i = 0; i < FORKS; i++) {
        int result;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            _exit(count_partial());
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert_int_eq(result, 0);
    }
    stopped = 1;
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(status, LEAT_OK);
}
END_TEST

START_TEST(another_writer_is_refused)
{
    leat_reader *other = NULL;
    leat_reader *reader = open_source(MANY);
    ck_assert_int_eq(open_cached(source_pipeline(MANY), &other), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
    ck_assert(is_there(".partial/data"));
    expect_epoch(reader, 0, MANY);
    other = open_source(MANY);
    expect_epoch(other, 0, MANY);
    leat_reader_close(other);
    leat_reader_close(reader);
}
END_TEST

START_TEST(another_data_set_or_pipeline_is_refused)
{
    leat_reader *reader = NULL;
    make(MANY);
    identity = 2;
    ck_assert_int_eq(open_cached(source_pipeline(MANY), &reader), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "another data set"));
    identity = 1;
    leat_pipeline *taken, *upstream = source_pipeline(MANY);
    ck_assert_int_eq(leat_pipeline_take(&taken, upstream, 5), LEAT_OK);
    leat_pipeline_unref(upstream);
    ck_assert_int_eq(open_cached(taken, &reader), LEAT_EINVAL);
    make(MANY);
}
END_TEST

static void write_lines(const char *name, const char *lines, int64_t seconds)
{
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    FILE *file = fopen(name, "w");
    ck_assert(file && fputs(lines, file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* In the middle of the file, where no token looks. */
START_TEST(data_that_were_written_since_are_refused)
{
    char lines[MANY + 1], name[80], text[200];
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    memset(lines, '\n', MANY);
    lines[MANY] = 0;
    snprintf(name, sizeof(name), "%s/lines", root);
    snprintf(text, sizeof(text), "text:%s | cache:dir=%s", name, path);
    for (int i = 0; i < 3; i++) {
        lines[MANY / 2] = i == 1 ? 'x' : '\n';
        write_lines(name, lines, 1000000000 + i % 2);
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
        int status = leat_pipeline_open(pipeline, &reader);
        ck_assert_msg(status == (i == 1 ? LEAT_EINVAL : LEAT_OK), "%d: %s", i,
                      leat_last_error());
        leat_pipeline_unref(pipeline);
        if (status) {
            ck_assert_ptr_nonnull(
                strstr(leat_last_error(), "before the data were written last"));
            continue;
        }
        while (!status)
            status = leat_reader_next(reader, &sample);
        ck_assert_int_eq(status, LEAT_END);
        leat_reader_close(reader);
        ck_assert(is_there("/index"));
    }
}
END_TEST

START_TEST(what_is_there_and_no_cache_is_left_alone)
{
    leat_reader *reader = NULL;
    char file[128];
    ck_assert_int_eq(mkdir(path, 0777), 0);
    snprintf(file, sizeof(file), "%s/mine", path);
    int fd = open(file, O_CREAT | O_WRONLY, 0666);
    close(fd);
    ck_assert_int_eq(open_cached(source_pipeline(MANY), &reader), LEAT_EINVAL);
    ck_assert(is_there("/mine") && !is_there(".partial"));
    ck_assert_int_eq(remove(file), 0);
    /* An empty directory stays until there is a cache. */
    reader = open_source(MANY);
    leat_reader_close(reader);
    ck_assert(is_there(""));
    make(MANY);
}
END_TEST

START_TEST(slashes_at_the_end_are_no_part_of_the_path)
{
    size_t size = strlen(path);
    for (int i = 0; i < 2; i++) {
        if (i)
            ck_assert_int_eq(mkdir(path, 0777), 0);
        strcat(path, "//");
        leat_reader *reader = open_source(MANY);
        expect_epoch(reader, 0, MANY);
        leat_reader_close(reader);
        path[size] = 0;
        ck_assert(is_there("/index") && !is_there(".partial"));
        remove_all(path);
    }
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(a_path_that_cannot_be_renamed_to_is_refused_at_open)
{
    static const char *const names[] = {"", "/", ".", "..", "./.", "x/..//"};
    ck_assert_int_eq(chdir(root), 0);
    for (int i = 0; i < 6; i++) {
        leat_reader *reader = NULL;
        snprintf(path, sizeof(path), "%s", names[i]);
        ck_assert_int_eq(open_cached(source_pipeline(MANY), &reader),
                         LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "own name"));
    }
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(so_is_a_mount_point)
{
    leat_reader *reader = NULL;
    ck_assert_int_eq(mkdir(path, 0777), 0);
    if (mount("none", path, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "skipped: cannot mount a tmpfs: %s\n", strerror(errno));
        return;
    }
    int status = open_cached(source_pipeline(MANY), &reader);
    ck_assert_int_eq(umount(path), 0);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "file system of its own"));
}
END_TEST

/* A victim, and a link to it or a pipe in the place of what a writer opens. */
START_TEST(a_writer_follows_no_link_and_waits_at_no_pipe)
{
    static const char *const names[] = {".partial/lock", ".partial/data",
                                        ".partial"};
    leat_reader *reader = NULL;
    char victim[128], place[128], read_back[8] = "";
    snprintf(victim, sizeof(victim), "%s/victim", root);
    FILE *file = fopen(victim, "w");
    ck_assert(file && fputs("mine", file) >= 0 && fclose(file) == 0);
    for (int i = 0; i < 3; i++)
        for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
            snprintf(place, sizeof(place), "%s.partial", path);
            if (i < 2)
                ck_assert_int_eq(mkdir(place, 0777), 0);
            snprintf(place, sizeof(place), "%s%s", path, names[i]);
            ck_assert_int_eq(is_pipe  ? mkfifo(place, 0666)
                             : i == 2 ? symlink(root, place)
                                      : symlink(victim, place),
                             0);
            alarm(20);
            int status = open_cached(source_pipeline(MANY), &reader);
            /* What a killed writer left is removed, whatever it is. */
            ck_assert_int_eq(status, i == 1 ? LEAT_OK : LEAT_EIO);
            if (status)
                ck_assert_ptr_nonnull(strstr(leat_last_error(), place));
            else
                leat_reader_close(reader);
            alarm(0);
            snprintf(place, sizeof(place), "%s.partial", path);
            remove_all(place);
        }
    file = fopen(victim, "r");
    ck_assert(file && fgets(read_back, sizeof(read_back), file));
    ck_assert_str_eq(read_back, "mine");
    fclose(file);
    snprintf(place, sizeof(place), "%s/lock", root);
    ck_assert_int_ne(access(place, F_OK), 0);
}
END_TEST

/* This is put in front of libc's by the linker. */
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static int no_sync; /* why directories cannot be synced; 0: they can */

int __wrap_fsync(int fd)
{
    struct stat about;
    if (!no_sync || fstat(fd, &about) || !S_ISDIR(about.st_mode))
        return __real_fsync(fd);
    errno = no_sync;
    return -1;
}

/* As on some network file systems, which need not. */
START_TEST(a_directory_that_cannot_be_synced_is_made)
{
    no_sync = EINVAL;
    make(MANY);
    no_sync = 0;
    ck_assert_str_eq(logged, "");
    leat_reader_close(open_source(MANY));
    ck_assert_int_eq(reads, 0);
    remove_all(path);
    no_sync = EIO;
    leat_reader *reader = open_source(MANY);
    expect_epoch(reader, 0, MANY);
    no_sync = 0;
    ck_assert_ptr_nonnull(strstr(logged, "cannot sync"));
    leat_reader_close(reader);
}
END_TEST

/* Into which all may put, and nobody may look. */
START_TEST(it_is_made_in_a_directory_that_cannot_be_read)
{
    ck_assert_int_eq(chmod(root, 0333), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        /* The superuser may read it. */
        if (getuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(77);
        make(MANY);
        _exit(logged[0] != 0);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_assert(WIFEXITED(result));
    if (WEXITSTATUS(result) == 77) {
        printf("skipped: the superuser cannot become another user\n");
        return;
    }
    ck_assert_int_eq(WEXITSTATUS(result), 0);
    ck_assert(is_there("/index"));
}
END_TEST

enum { ROUNDS = 120, RIVALS = 3 };
static pthread_barrier_t round_turns;

/* Each reads all, is told of the other writer, or closes half-way. */
static void *rival(void *argument)
{
    leat_sample own;
    leat_sample_init(&own);
    for (int i = 0; i < ROUNDS; i++) {
        leat_reader *reader = NULL;
        pthread_barrier_wait(&round_turns);
        leat_pipeline *pipeline = argument;
        int status = leat_pipeline_open(pipeline, &reader);
        ck_assert_msg(!status || (status == LEAT_ESTATE &&
                                  strstr(leat_last_error(), "another reader")),
                      "%d: %s", status, leat_last_error());
        int wanted = i % 3 == 0 ? 1 : 3;
        for (int k = 0; k < wanted && !status; k++)
            status = leat_reader_next(reader, &own);
        leat_reader_close(reader);
        pthread_barrier_wait(&round_turns);
    }
    leat_sample_finish(&own);
    return NULL;
}

START_TEST(writers_that_begin_at_once_are_one)
{
    leat_pipeline *pipeline;
    pthread_t thread[RIVALS];
    char text[128];
    snprintf(text, sizeof(text), "range:3 | cache:dir=%s", path);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    pthread_barrier_init(&round_turns, NULL, RIVALS + 1);
    for (int i = 0; i < RIVALS; i++)
        pthread_create(&thread[i], NULL, rival, pipeline);
    for (int i = 0; i < ROUNDS; i++) {
        static const char *const names[] = {"/data", "/index", "/lock", ""};
        char name[128];
        pthread_barrier_wait(&round_turns);
        pthread_barrier_wait(&round_turns);
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof(name), "%s%s", path, names[k]);
            (void)remove(name);
        }
    }
    for (int i = 0; i < RIVALS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&round_turns);
    leat_pipeline_unref(pipeline);
}
END_TEST

static int first_label(void *pass, leat_sample *out)
{
    (void)pass;
    return leat_sample_set(out, 0, LEAT_INT32, 0, NULL, &labels[0]);
}

START_TEST(a_reader_without_identity_is_refused)
{
    const leat_field_spec field = {.name = "x", .dtype = LEAT_INT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = first_label};
    leat_pipeline *upstream;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, NULL),
                     LEAT_OK);
    ck_assert_int_eq(open_cached(upstream, &reader), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "callback"));
    ck_assert(!is_there(".partial"));
}
END_TEST

static char *read_file(const char *name, size_t *size)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", path, name);
    FILE *in = fopen(file, "rb");
    ck_assert_ptr_nonnull(in);
    char *bytes = malloc(1 << 20);
    *size = fread(bytes, 1, 1 << 20, in);
    fclose(in);
    return bytes;
}

static void write_file(const char *name, const char *bytes, size_t size)
{
    char file[128];
    snprintf(file, sizeof(file), "%s%s", path, name);
    FILE *out = fopen(file, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
    fclose(out);
}

/* Every bit of the index, and every length of it. */
START_TEST(a_damaged_index_is_refused)
{
    size_t size;
    leat_reader *reader = NULL;
    make(3);
    char *bytes = read_file("/index", &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        write_file("/index", bytes, size);
        ck_assert_int_eq(open_cached(source_pipeline(3), &reader),
                         LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        write_file("/index", bytes, cut);
        ck_assert_int_eq(open_cached(source_pipeline(3), &reader),
                         LEAT_EFORMAT);
    }
    write_file("/index", bytes, size);
    free(bytes);
    make(3);
}
END_TEST

/* It is not read: the data's size bounds it. */
START_TEST(an_index_longer_than_the_data_can_have_is_refused)
{
    size_t size;
    leat_reader *reader = NULL;
    make(3);
    char *bytes = read_file("/index", &size);
    size_t longer = (size_t)8 << 20;
    char *padded = calloc(longer, 1);
    ck_assert_ptr_nonnull(padded);
    memcpy(padded, bytes, size);
    write_file("/index", padded, longer);
    ck_assert_int_eq(open_cached(source_pipeline(3), &reader), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "/index: expected at most"));
    write_file("/index", bytes, size);
    free(padded);
    free(bytes);
    make(3);
}
END_TEST

/* A copy elsewhere, to which a link leads, and a pipe. */
START_TEST(a_link_or_a_pipe_in_it_is_refused)
{
    static const char *const names[] = {"/index", "/data"};
    leat_reader *reader = NULL;
    char name[128], target[128];
    make(3);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s%s", path, names[i / 2]);
        snprintf(target, sizeof(target), "%s/elsewhere", root);
        ck_assert_int_eq(rename(name, target), 0);
        ck_assert_int_eq(i % 2 ? mkfifo(name, 0600) : symlink(target, name), 0);
        ck_assert_int_eq(open_cached(source_pipeline(3), &reader), LEAT_EIO);
        ck_assert_msg(strstr(leat_last_error(), name) &&
                          strstr(leat_last_error(), "that leat made"),
                      "%s", leat_last_error());
        ck_assert_int_eq(unlink(name), 0);
        ck_assert_int_eq(rename(target, name), 0);
    }
    leat_reader_close(open_source(3));
}
END_TEST

START_TEST(a_damaged_sample_is_a_bad_record)
{
    size_t size;
    make(3);
    char *bytes = read_file("/data", &size);
    for (size_t at = 0; at < size; at += 7) {
        bytes[at] ^= 16;
        write_file("/data", bytes, size);
        leat_reader *reader = open_source(3);
        int failed = 0;
        for (int i = 0; i < 3; i++) {
            int status = leat_reader_next(reader, &sample);
            failed += status == LEAT_EDATA;
            ck_assert(!status || status == LEAT_EDATA);
            if (status)
                ck_assert_ptr_nonnull(strstr(leat_last_error(), "at byte"));
        }
        ck_assert_int_eq(failed, 1);
        leat_reader_close(reader);
        bytes[at] ^= 16;
    }
    write_file("/data", bytes, size - 1);
    leat_reader *reader = NULL;
    ck_assert_int_eq(open_cached(source_pipeline(3), &reader), LEAT_EFORMAT);
    free(bytes);
}
END_TEST

/* A file system of 64 KiB, where the test may mount one. */
START_TEST(a_full_disk_is_said_and_reading_goes_on)
{
    if (mount("none", root, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "skipped: cannot mount a tmpfs: %s\n", strerror(errno));
        return;
    }
    for (is_stream = 0; is_stream < 2; is_stream++) {
        logged[0] = 0;
        leat_reader *reader = open_source(MANY);
        for (int epoch = 0; epoch < 2; epoch++)
            expect_epoch(reader, epoch, MANY);
        ck_assert_int_eq(reads, 2 * MANY);
        ck_assert_ptr_nonnull(strstr(logged, "is not made"));
        ck_assert_ptr_nonnull(strstr(logged, "No space left"));
        ck_assert(!is_there(".partial") && !is_there(""));
        leat_reader_close(reader);
        ck_assert(!is_there(".partial") && !is_there(""));
    }
    ck_assert_int_eq(umount(root), 0);
}
END_TEST

/* The process may write no file that large: it reads on, and lives. */
START_TEST(a_cache_beyond_the_limit_of_files_is_not_made)
{
    struct rlimit limit, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 4096;
    leat_reader *reader = open_source(MANY);
    int n = 0;
    /* Check writes a file, too. */
    int limited = setrlimit(RLIMIT_FSIZE, &small);
    while (leat_reader_next(reader, &sample) == LEAT_OK)
        n++;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(n, MANY);
    ck_assert_ptr_nonnull(strstr(logged, "is not made"));
    ck_assert_ptr_nonnull(strstr(logged, strerror(EFBIG)));
    ck_assert(!is_there(".partial") && !is_there(""));
    leat_reader_close(reader);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (int64_t n = 0; n < 60; n++) {
        leat_reader *reader = NULL;
        is_stream = n % 2;
        remove_all(path);
        leat_pipeline *upstream = source_pipeline(20);
        leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
        leat_pipeline *pipeline = NULL;
        options.dir = path;
        leat__alloc_fail_at(n / 2);
        int status = leat_pipeline_cache(&pipeline, upstream, &options);
        if (!status)
            status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < 21 && !status; i++)
            status = leat_reader_next(reader, &sample);
        leat__alloc_fail_at(-1);
        ck_assert_msg(status == LEAT_END || status == LEAT_ENOMEM, "%d: %s",
                      status, leat_last_error());
        if (reader)
            expect_epoch(reader, 1, 20);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(upstream);
        ck_assert(!is_there(".partial"));
    }
}
END_TEST

enum { BATCH = 7, STEPS = 60 };

/* A layer over a stream with marks, and what is kept of it. */
static leat_data_layer *open_layer(void)
{
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_cache_options cache = LEAT_CACHE_OPTIONS_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    is_stream = 1;
    leat_pipeline *marked =
        stream_decorators_take(STREAM_FILTER, source_pipeline(MANY));
    cache.dir = path;
    options.batch_size = BATCH;
    options.random_seed = 1;
    ck_assert_int_eq(leat_pipeline_cache(&pipeline, marked, &cache), LEAT_OK);
    leat_pipeline_unref(marked);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_pipeline_unref(pipeline);
    ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                  leat_last_error());
    return layer;
}

static void forward(leat_data_layer *layer, int64_t record[BATCH])
{
    leat_blob *top[] = {leat_data_layer_top(layer, 0),
                        leat_data_layer_top(layer, 1)};
    ck_assert_msg(!leat_data_layer_forward(layer, top, 2, LEAT_HOST), "%s",
                  leat_last_error());
    const leat_batch *batch = leat_data_layer_batch(layer);
    for (int i = 0; i < BATCH; i++)
        record[i] = batch->from[i].record;
}

/* Its tokens have marks while it is made, and it has none once it is there. */
START_TEST(a_layer_resumes_over_the_whole_directory)
{
    int64_t expected[STEPS][BATCH], record[BATCH];
    leat_token token[STEPS];
    leat_data_layer *layer = open_layer();
    for (int i = 0; i < STEPS; i++) {
        leat_token_init(&token[i]);
        ck_assert_int_eq(leat_data_layer_save(layer, &token[i]), LEAT_OK);
        forward(layer, expected[i]);
    }
    leat_data_layer_destroy(layer);
    ck_assert(is_there("/index"));
    layer = open_layer();
    for (int i = 0; i < STEPS; i++) {
        ck_assert_msg(!leat_data_layer_restore(layer, &token[i]), "%s",
                      leat_last_error());
        forward(layer, record);
        ck_assert_mem_eq(record, expected[i], sizeof(record));
        leat_token_finish(&token[i]);
    }
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(paths_are_written_as_text)
{
    leat_cache_options options = {
        .size = sizeof(options), .bytes = 5, .dir = "/a b|c,(d)\\"};
    leat_pipeline *upstream = source_pipeline(1), *pipeline, *again;
    ck_assert_msg(!leat_pipeline_cache(&pipeline, upstream, &options), "%s",
                  leat_last_error());
    const char *text = strstr(leat_pipeline_text(pipeline), "| cache:");
    char whole[128];
    snprintf(whole, sizeof(whole), "lmdb:x %s", text);
    ck_assert_int_eq(leat_pipeline_parse(&again, whole), LEAT_OK);
    ck_assert_ptr_nonnull(strstr(leat_pipeline_text(again), text));
    leat_pipeline_unref(again);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_directory");
    TCase *tcase = tcase_create("cache_directory");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_second_reader_reads_nothing_upstream);
    tcase_add_test(tcase, threads_write_it_in_any_order);
    tcase_add_test(tcase, a_part_of_an_epoch_leaves_nothing);
    tcase_add_test(tcase, a_killed_writer_is_followed_by_another);
    tcase_add_test(tcase, a_forked_child_leaves_it_to_its_parent);
    tcase_add_test(tcase, a_child_of_a_killed_writer_holds_no_lock);
    tcase_add_test(tcase, a_child_has_no_file_of_its_parents);
    tcase_add_test(tcase, another_writer_is_refused);
    tcase_add_test(tcase, another_data_set_or_pipeline_is_refused);
    tcase_add_test(tcase, data_that_were_written_since_are_refused);
    tcase_add_test(tcase, what_is_there_and_no_cache_is_left_alone);
    tcase_add_test(tcase, slashes_at_the_end_are_no_part_of_the_path);
    tcase_add_test(tcase, a_path_that_cannot_be_renamed_to_is_refused_at_open);
    tcase_add_test(tcase, so_is_a_mount_point);
    tcase_add_test(tcase, a_writer_follows_no_link_and_waits_at_no_pipe);
    tcase_add_test(tcase, writers_that_begin_at_once_are_one);
    tcase_add_test(tcase, a_reader_without_identity_is_refused);
    tcase_add_test(tcase, a_damaged_index_is_refused);
    tcase_add_test(tcase, an_index_longer_than_the_data_can_have_is_refused);
    tcase_add_test(tcase, a_link_or_a_pipe_in_it_is_refused);
    tcase_add_test(tcase, a_damaged_sample_is_a_bad_record);
    tcase_add_test(tcase, a_full_disk_is_said_and_reading_goes_on);
    tcase_add_test(tcase, a_cache_beyond_the_limit_of_files_is_not_made);
    tcase_add_test(tcase, a_directory_that_cannot_be_synced_is_made);
    tcase_add_test(tcase, it_is_made_in_a_directory_that_cannot_be_read);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, a_layer_resumes_over_the_whole_directory);
    tcase_add_test(tcase, paths_are_written_as_text);
    return suite_run(suite);
}
