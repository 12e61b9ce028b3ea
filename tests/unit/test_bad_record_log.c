/* The log of bad records, and the lines of its file. */
#include "layer/on_error/bad_record_log.h"
#include "support/protected_open.h"

#include <leat/log.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[] = "/tmp/leat-log-XXXXXX";
static char path[sizeof(directory) + 16];
static leat_data_layer_options options;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    snprintf(path, sizeof(path), "%s/bad", directory);
}

static void tear_down(void)
{
    (void)remove(path);
}

static void read_file(char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

/* A crash may leave zeros behind the lines that were on disk. */
START_TEST(zeros_after_lines_are_no_trouble)
{
    static const char torn[] = "planted\t17\t\t0\t17\tzeros\tbad\n\0\0\0\0";
    leat__bad_record_file list;
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(torn, 1, sizeof(torn) - 1, file),
                      sizeof(torn) - 1);
    ck_assert_int_eq(fclose(file), 0);
    leat__bad_record_file_init(&list, "layer", path);
    ck_assert_int_eq(leat__bad_record_file_open(&list), LEAT_OK);
    leat__bad_record_file_finish(&list);
}
END_TEST

static leat__bad make_bad(int record, const char *source, const char *key,
                          const char *line)
{
    static char text[LEAT__ERROR_MAX];
    leat__bad bad;
    leat_provenance from = {.source = source,
                            .record = record,
                            .key = key,
                            .key_size = key ? strlen(key) : 0};
    snprintf(text, sizeof(text), "%s", line);
    leat__bad_set(&bad, record, &from, text);
    return bad;
}

static leat__bad_record_log *make_log(void)
{
    leat__bad_record_log *log = calloc(1, sizeof(*log));
    options.bad_record_file = path;
    options.name = "data";
    leat__bad_record_log_init(log, &options);
    return log;
}

static leat__bad_record_log *open_log(void)
{
    leat__bad_record_log *log = make_log();
    ck_assert_int_eq(leat__bad_record_log_open(log), LEAT_OK);
    return log;
}

/* Its file is then as expected. */
static void close_log(leat__bad_record_log *log, const char *expected)
{
    static char text[64 * 1024];
    leat__bad_record_log_finish(log);
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, expected);
    free(log);
}

static void add(leat__bad_record_log *log, int record, const char *source,
                const char *key, const char *line)
{
    leat__bad bad = make_bad(record, source, key, line);
    ck_assert_int_eq(leat__bad_record_log_note(log, &bad), LEAT_OK);
}

/* Standard input was closed: the file's descriptor is 0. */
START_TEST(any_descriptor_may_be_the_files)
{
    leat__bad_record_log *log = make_log();
    int kept = dup(0);
    (void)close(0);
    ck_assert_int_eq(leat__bad_record_log_open(log), LEAT_OK);
    ck_assert_int_eq(log->file.file, 0);
    /* It is open, and not opened again. */
    ck_assert_int_eq(leat__bad_record_log_open(log), LEAT_OK);
    ck_assert_int_eq(log->file.file, 0);
    add(log, 1, "s", NULL, "bad");
    leat__bad_record_log_finish(log);
    ck_assert_int_eq(log->file.file, -1);
    ck_assert_int_eq(fcntl(0, F_GETFD), -1);
    if (kept >= 0)
        ck_assert_int_eq(dup2(kept, 0), 0);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "s\t1\t\t0\t0\tnone\tbad\n");
    free(log);
}
END_TEST

START_TEST(a_file_is_new_for_all_whom_the_mask_lets)
{
    struct stat about;
    leat__bad_record_log *log = make_log();
    mode_t mask = umask(0);
    ck_assert_int_eq(leat__bad_record_log_open(log), LEAT_OK);
    umask(mask);
    ck_assert_int_eq(fstat(log->file.file, &about), 0);
    ck_assert_int_eq(about.st_mode & 07777, 0666);
    /* It does not go on in another program. */
    ck_assert_int_eq(fcntl(log->file.file, F_GETFD), FD_CLOEXEC);
    leat__bad_record_log_finish(log);
    free(log);
}
END_TEST

START_TEST(the_limit_is_passed_by_the_first_record_above_it)
{
    for (int64_t most = -1; most < 3; most++) {
        options.max_errors = most;
        options.has_max_errors = 1;
        leat__bad_record_log *log = make_log();
        log->file.path = NULL;
        ck_assert_int_eq(leat__bad_record_log_open(log), LEAT_OK);
        ck_assert_int_eq(log->file.file, -1);
        for (int64_t n = 1; n <= 4; n++) {
            char line[128];
            snprintf(line, sizeof(line), "reason %d", (int)n);
            leat__bad bad = make_bad((int)n, "s", NULL, line);
            leat__bad_record_log_note(log, &bad);
            int is_over = most >= 0 && n > most;
            ck_assert_int_eq(leat__bad_record_log_check(log),
                             is_over ? LEAT_ELIMIT : LEAT_OK);
            snprintf(line, sizeof(line),
                     "data: %d bad record%s, max_errors allows %d; the first "
                     "one: reason 1",
                     (int)n, n == 1 ? "" : "s", (int)most);
            if (is_over)
                ck_assert_str_eq(leat_last_error(), line);
        }
        /* After a restore it begins anew. */
        leat__bad_record_log_begin(log, 0, 0);
        ck_assert_int_eq(log->count, 0);
        ck_assert_int_eq(log->listed, 0);
        ck_assert_int_eq(log->unwritten, 0);
        ck_assert_int_eq(leat__bad_record_log_check(log), LEAT_OK);
        leat__bad_record_log_finish(log);
        free(log);
    }
}
END_TEST

static char logged[8][512];
static int lines;

static void keep_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    ck_assert_int_eq(level, LEAT_LOG_WARNING);
    if (lines < 8)
        snprintf(logged[lines], sizeof(logged[0]), "%s", line);
    lines++;
}

START_TEST(each_record_of_the_list_is_logged_and_then_that_there_are_more)
{
    static const struct {
        leat_replacement kind;
        const char *text;
    } kinds[] = {
        {LEAT_REPLACEMENT_NONE, "data: bad record, its batch is lost: why"},
        {LEAT_REPLACEMENT_ZEROS, "data: bad record, zeros replace it: why"},
        {LEAT_REPLACEMENT_RECORD,
         "data: bad record, an earlier one replaces it: why"},
    };
    leat__bad_record_log *log = make_log();
    log->file.path = NULL;
    leat_log_set(keep_line, NULL, LEAT_LOG_WARNING);
    lines = 0;
    for (int i = 0; i < LEAT_BAD_RECORDS_MAX + 5; i++) {
        leat__bad bad = make_bad(i, "s", NULL, "why");
        bad.from.replacement = kinds[i % 3].kind;
        leat__bad_record_log_note(log, &bad);
        if (i < 3)
            ck_assert_str_eq(logged[i], kinds[i].text);
        ck_assert_int_eq(lines, i < LEAT_BAD_RECORDS_MAX - 1
                                    ? i + 1
                                    : LEAT_BAD_RECORDS_MAX + 1);
    }
    ck_assert_int_eq(log->listed, LEAT_BAD_RECORDS_MAX);
    ck_assert_int_eq(log->count, LEAT_BAD_RECORDS_MAX + 5);
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
    leat__bad_record_log_finish(log);
    free(log);
}
END_TEST

/* Three are remembered, of five that come in each of three epochs. */
START_TEST(what_is_not_remembered_is_neither_counted_nor_listed)
{
    options.max_errors = -1;
    leat__bad_record_log *log = open_log();
    log->known.limit = log->file.listed.limit = 3;
    leat_log_set(keep_line, NULL, LEAT_LOG_WARNING);
    lines = 0;
    for (int i = 0; i < 15; i++)
        add(log, i % 5, "s", NULL, "why");
    ck_assert_int_eq(lines, 15 + 1);
    ck_assert_ptr_nonnull(strstr(logged[4], "lists 3 records"));
    ck_assert_ptr_nonnull(strstr(logged[4], path));
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
    ck_assert_int_eq(log->count, 15);
    ck_assert_uint_eq(log->known.n, 3);
    ck_assert_int_eq(log->unwritten, 6);
    ck_assert_int_eq(leat__bad_record_log_check(log), LEAT_OK);
    close_log(log, "s\t0\t\t0\t0\tnone\twhy\n"
                   "s\t1\t\t0\t0\tnone\twhy\n"
                   "s\t2\t\t0\t0\tnone\twhy\n");
}
END_TEST

START_TEST(a_limit_of_errors_is_counted_up_to)
{
    options.max_errors = (int64_t)LEAT__RECORD_SET_MAX + 5;
    options.has_max_errors = 1;
    leat__bad_record_log *log = make_log();
    log->file.path = NULL;
    leat__bad bad = make_bad(0, "s", NULL, "why");
    int64_t n = 0;
    for (; !leat__bad_record_log_check(log) && n <= options.max_errors; n++) {
        bad.from.record = n;
        ck_assert_int_eq(leat__bad_record_log_note(log, &bad), LEAT_OK);
    }
    ck_assert_int_eq(leat__bad_record_log_check(log), LEAT_ELIMIT);
    ck_assert_int_eq(n, options.max_errors + 1);
    leat__bad_record_log_finish(log);
    free(log);
}
END_TEST

/* Ranks, members of a group and earlier runs share a file. */
START_TEST(what_others_have_listed_is_not_listed_again)
{
    enum { LINES = 2000 };
    leat__bad_record_log *one = make_log();
    leat__bad_record_log *other = make_log();
    ck_assert_int_eq(leat__bad_record_log_open(one), LEAT_OK);
    ck_assert_int_eq(leat__bad_record_log_open(other), LEAT_OK);
    for (int i = 0; i < 3000; i++) {
        add(i % 2 ? one : other, i / 3, "d\tb", NULL, "bad");
        add(one, i / 3, i % 2 ? "d\tb" : "second", NULL, "bad");
    }
    ck_assert_int_eq((int)one->known.n, LINES);
    leat__bad_record_log_finish(one);
    FILE *file = fopen(path, "r");
    char line[256];
    int found = 0;
    while (fgets(line, sizeof(line), file))
        found++;
    fclose(file);
    ck_assert_int_eq(found, LINES);
    /* A file that was cut begins anew. */
    ck_assert_int_eq(truncate(path, 0), 0);
    add(other, 5000, "d\tb", NULL, "bad");
    leat__bad_record_log_finish(other);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "d\\x09b\t5000\t\t0\t0\tnone\tbad\n");
    free(one);
    free(other);
}
END_TEST

/* Their end is that of the memory into which they are read. */
START_TEST(lines_of_others_list_nothing_and_are_read_to_their_end)
{
    static const char line[] = "db\tx\t\t\t\t\t\ndb\t0\t\t0\t\t\t\n"
                               "db\t7\t\t0\t7\tnone\tbad\n";
    static const char last[] = "\n\t\t\t\t\t\t\n";
    enum { BYTES = 64 << 10 };
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(line, file), 0);
    for (size_t i = strlen(line) + strlen(last); i < BYTES; i++)
        ck_assert_int_eq(fputc('x', file), 'x');
    ck_assert_int_ge(fputs(last, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    leat__bad_record_log *log = open_log();
    ck_assert_uint_eq(log->file.listed.n, 1);
    ck_assert_int_eq(log->file.read, BYTES);
    add(log, 0, "db", NULL, "bad");
    leat__bad_record_log_finish(log);
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_gt(about.st_size, BYTES);
    free(log);
}
END_TEST

enum { WRITERS = 4, LINES_EACH = 400 };

/* Lines of several pages, which are seen in parts while they are written. */
static void append_long_lines(int source)
{
    static char name[3000];
    memset(name, 1, sizeof(name) - 1);
    name[0] = (char)('a' + source);
    leat__bad_record_log *log = open_log();
    for (int i = 0; i < LINES_EACH; i++)
        add(log, i, name, NULL, "bad");
    ck_assert_int_eq(log->unwritten, 0);
    leat__bad_record_log_finish(log);
    free(log);
}

START_TEST(lines_of_several_processes_follow_each_other)
{
    static char line[16 * 1024];
    pid_t child[WRITERS];
    int status, n = 0;
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        ck_assert_int_ge(child[i], 0);
        if (child[i] > 0)
            continue;
        append_long_lines(i);
        _exit(0);
    }
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
        ck_assert_int_eq(status, 0);
    }
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (; fgets(line, sizeof(line), file); n++)
        ck_assert_msg(line[0] != '\n', "line %d is empty", n);
    fclose(file);
    ck_assert_int_eq(n, WRITERS * LINES_EACH);
}
END_TEST

/* Another layer made it, and its setup failed. */
START_TEST(a_file_that_was_removed_while_empty_is_made_again)
{
    leat__bad_record_log *made = open_log();
    leat__bad_record_log *log = open_log();
    leat__bad_record_log_close(made);
    ck_assert_int_eq(access(path, F_OK), -1);
    add(log, 1, "s", NULL, "bad");
    add(log, 2, "s", NULL, "bad");
    close_log(log, "s\t1\t\t0\t0\tnone\tbad\ns\t2\t\t0\t0\tnone\tbad\n");
    ck_assert_int_eq(leat__bad_record_log_open(made), LEAT_OK);
    leat__bad_record_log_close(made);
    ck_assert_int_eq(access(path, F_OK), 0);
    free(made);
}
END_TEST

/* This is put in front of libc's by the linker. */
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

static int removed_at; /* the call before which the file is removed; 0: none */

int __wrap_flock(int fd, int operation)
{
    if (removed_at > 0 && --removed_at == 0)
        (void)unlink(path);
    return __real_flock(fd, operation);
}

START_TEST(a_file_of_another_user_is_opened_where_all_may_write)
{
    protected_open = 1;
    leat__bad_record_log *log = open_log();
    add(log, 1, "db", NULL, "cut");
    leat__bad_record_log_finish(log);
    free(log);
    log = open_log();
    add(log, 2, "db", NULL, "cut");
    protected_open = 0;
    close_log(log, "db\t1\t\t0\t0\tnone\tcut\n"
                   "db\t2\t\t0\t0\tnone\tcut\n");
}
END_TEST

/* As by a failing setup, between its opening and the lock. */
START_TEST(a_file_that_is_removed_before_the_lock_is_had_is_made_again)
{
    for (int call = 1; call < 3; call++) {
        leat__bad_record_log *log = open_log();
        ck_assert_int_eq(remove(path), 0);
        removed_at = call;
        add(log, 1, "s", NULL, "bad");
        ck_assert_int_eq(removed_at, 0);
        close_log(log, "s\t1\t\t0\t0\tnone\tbad\n");
        ck_assert_int_eq(remove(path), 0);
    }
}
END_TEST

START_TEST(a_file_that_never_had_a_name_is_written_to)
{
    char text[200] = "", list[sizeof(path)];
    int fd = open(directory, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) {
        printf("skipped: no files without a name here\n");
        return;
    }
    memcpy(list, path, sizeof(path));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    leat__bad_record_log *log = open_log();
    alarm(20);
    add(log, 1, "s", NULL, "bad");
    add(log, 2, "s", NULL, "bad");
    alarm(0);
    ck_assert_int_eq(log->unwritten, 0);
    ck_assert_int_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
    ck_assert_str_eq(text,
                     "s\t1\t\t0\t0\tnone\tbad\ns\t2\t\t0\t0\tnone\tbad\n");
    leat__bad_record_log_finish(log);
    free(log);
    close(fd);
    memcpy(path, list, sizeof(path));
}
END_TEST

/* By the user, who wants no more of these lines; but those that follow. */
START_TEST(a_list_that_was_removed_is_begun_again)
{
    leat__bad_record_log *log = open_log();
    add(log, 1, "s", NULL, "bad");
    ck_assert_int_eq(remove(path), 0);
    add(log, 2, "s", NULL, "bad");
    add(log, 3, "s", NULL, "bad");
    ck_assert_int_eq(log->unwritten, 0);
    close_log(log, "s\t2\t\t0\t0\tnone\tbad\ns\t3\t\t0\t0\tnone\tbad\n");
}
END_TEST

/* Another file has its name meanwhile, or none can have it. */
START_TEST(lines_of_a_removed_list_that_find_no_other_are_counted)
{
    static const char others[] = "a net file\n";
    leat__bad_record_log *log = open_log();
    add(log, 1, "s", NULL, "bad");
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    add(log, 2, "s", NULL, "bad");
    ck_assert_int_eq(remove(path), 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(others, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    add(log, 3, "s", NULL, "bad");
    ck_assert_int_eq(log->unwritten, 2);
    close_log(log, others);
}
END_TEST

/* It stays so for ever: lines are written all the same, later ones at once. */
START_TEST(a_lock_that_another_holds_is_not_waited_for_long)
{
    leat__bad_record_log *log = open_log();
    int other = open(path, O_RDONLY);
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    for (int i = 0; i < 200; i++)
        add(log, i, "s", NULL, "bad");
    ck_assert_int_eq(log->unwritten, 0);
    ck_assert(log->file.is_held);
    ck_assert_int_eq(flock(other, LOCK_UN), 0);
    add(log, 200, "s", NULL, "bad");
    ck_assert(!log->file.is_held);
    close(other);
    leat__bad_record_log_finish(log);
    free(log);
}
END_TEST

static int pauses;

/* The wait's own, counted. */
int nanosleep(const struct timespec *pause, struct timespec *left)
{
    pauses++;
    return clock_nanosleep(CLOCK_MONOTONIC, 0, pause, left);
}

START_TEST(a_cancel_ends_the_wait_for_the_lock)
{
    leat__bad_record_log *log = open_log();
    atomic_bool cancelled = true;
    int other = open(path, O_RDONLY);
    log->file.cancelled = &cancelled;
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    pauses = 0;
    add(log, 1, "s", NULL, "bad");
    ck_assert_int_eq(pauses, 0);
    close(other);
    close_log(log, "s\t1\t\t0\t0\tnone\tbad\n");
}
END_TEST

static void ignore(int signal_number)
{
    (void)signal_number;
}

static void set_timer(int microseconds)
{
    const struct timeval every = {0, microseconds};
    const struct itimerval timer = {every, every};
    ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Another's child holds the lock for half a second. */
START_TEST(a_lock_is_waited_for_as_long_amid_signals)
{
    struct sigaction before, action = {.sa_handler = ignore};
    leat__bad_record_log *log = open_log();
    int other = open(path, O_RDONLY);
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    pid_t child = fork();
    if (child == 0) {
        const struct timespec half = {0, 500000000};
        nanosleep(&half, NULL);
        _exit(flock(other, LOCK_UN) != 0);
    }
    ck_assert_int_eq(sigaction(SIGALRM, &action, &before), 0);
    set_timer(20);
    add(log, 1, "s", NULL, "bad");
    set_timer(0);
    ck_assert_int_eq(sigaction(SIGALRM, &before, NULL), 0);
    ck_assert(!log->file.is_held);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(other);
    close_log(log, "s\t1\t\t0\t0\tnone\tbad\n");
}
END_TEST

/* A child that was forked has the file open, and keeps what is locked. */
START_TEST(a_file_that_is_not_used_after_all_is_not_locked)
{
    leat__bad_record_file file;
    leat__bad_record_file_init(&file, "layer", path);
    ck_assert_int_eq(leat__bad_record_file_open(&file), LEAT_OK);
    ck_assert(file.is_made);
    int childs = dup(file.file);
    /* What another has appended meanwhile stays. */
    ck_assert_int_eq(write(childs, "s\t1\t\t0\t0\tnone\tbad\n", 19), 19);
    leat__bad_record_file_discard(&file);
    int other = open(path, O_RDONLY);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    close(childs);
}
END_TEST

START_TEST(each_of_thousands_has_one_line)
{
    leat__bad_record_log *one = open_log();
    for (int i = 0; i < 6000; i++)
        add(one, i % 3000, "db", NULL, "bad");
    ck_assert_int_eq((int)one->known.n, 3000);
    leat__bad_record_log_finish(one);
    leat__bad_record_log_init(one, &options);
    ck_assert_int_eq(leat__bad_record_log_open(one), LEAT_OK);
    for (int i = 0; i < 3000; i++)
        add(one, i, "db", NULL, "bad");
    leat__bad_record_log_finish(one);
    free(one);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    char line[256];
    int n = 0;
    for (; fgets(line, sizeof(line), file); n++)
        ck_assert_int_eq(atoi(line + 3), n);
    fclose(file);
    ck_assert_int_eq(n, 3000);
}
END_TEST

/* A key of that many bytes, all the same letter. */
static const char *long_key(size_t size)
{
    static _Thread_local char key[301];
    memset(key, 'k', sizeof(key));
    key[size] = 0;
    return key;
}

START_TEST(a_key_that_is_cut_is_marked)
{
    static const size_t sizes[] = {63, 64, 65, 300};
    leat__bad_record_log *log = open_log();
    char expected[4096] = "";
    for (int i = 0; i < 4; i++) {
        size_t size = sizes[i], kept = size < 64 ? size : 64;
        leat__bad bad = make_bad(i, "a", long_key(size), "why");
        /* What is cut is not cut again. */
        leat_provenance once = leat__bad_from(&bad);
        leat__bad again;
        leat__bad_set(&again, i, &once, bad.line);
        leat__bad_record_log_note(log, &again);
        const leat_provenance *from = &log->list[i].from;
        ck_assert_uint_eq(from->key_size, kept);
        ck_assert_uint_eq(from->key_cut, size - kept);
        ck_assert_mem_eq(from->key, long_key(size), kept);
        char mark[32] = "";
        if (size > kept)
            snprintf(mark, sizeof(mark), "... (%zu bytes)", size);
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof(expected) - used,
                 "a\t%d\t%s%s\t0\t0\tnone\twhy\n", i, long_key(kept), mark);
    }
    close_log(log, expected);
}
END_TEST

/* The system ends a file at its limit as a disk does that is full, but by a
 * signal, which the library avoids. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    /* Check, which is to hear of it later, writes a file, too. */
    if (getrlimit(RLIMIT_FSIZE, &limit))
        return;
    limit.rlim_cur = bytes;
    (void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* Neither within the first line's source nor in a later line, which other runs
 * and ranks would take for another program's, or list once more. */
START_TEST(a_full_disk_is_counted_and_leaves_no_part_of_a_line)
{
    static const rlim_t limits[] = {1, RLIM_INFINITY, 21, 0, RLIM_INFINITY};
    leat__bad_record_log *log = open_log();
    for (int i = 0; i < 5; i++) {
        leat__bad bad = make_bad(i, "s", NULL, "bad");
        limit_files(limits[i]);
        leat__bad_record_log_note(log, &bad);
        limit_files(RLIM_INFINITY);
        leat__bad_record_file other;
        leat__bad_record_file_init(&other, "other", path);
        ck_assert_int_eq(leat__bad_record_file_open(&other), LEAT_OK);
        leat__bad_record_file_finish(&other);
    }
    ck_assert_int_eq(log->count, 5);
    ck_assert_int_eq(log->unwritten, 3);
    close_log(log, "s\t1\t\t0\t0\tnone\tbad\n"
                   "s\t4\t\t0\t0\tnone\tbad\n");
}
END_TEST

START_TEST(a_limit_of_file_sizes_is_no_full_disk)
{
    leat__bad_record_file file;
    leat__bad bad = make_bad(1, "s", NULL, "bad");
    leat__bad_record_file_init(&file, "data", path);
    ck_assert_int_eq(leat__bad_record_file_open(&file), LEAT_OK);
    for (rlim_t limit = 0; limit < 10; limit++) {
        limit_files(limit);
        int status = leat__bad_record_file_add(&file, &bad);
        limit_files(RLIM_INFINITY);
        ck_assert_int_eq(status, LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "File too large"));
    }
    leat__bad_record_file_finish(&file);
    unlink(path);
}
END_TEST

/* Who has no lock may have been written after. */
START_TEST(a_part_of_a_line_stays_where_another_has_the_lock)
{
    int other = open(path, O_RDWR | O_CREAT, 0666);
    ck_assert_int_ge(other, 0);
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    leat__bad_record_log *log = open_log();
    leat__bad bad = make_bad(1, "s", NULL, "bad");
    limit_files(3);
    leat__bad_record_log_note(log, &bad);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(close(other), 0);
    add(log, 2, "s", NULL, "bad");
    close_log(log, "s\t1\n"
                   "s\t2\t\t0\t0\tnone\tbad\n");
}
END_TEST

/* An earlier run crashed, or another rank. */
START_TEST(a_line_that_others_left_torn_is_not_gone_on_with)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("s\t1\t", file), 0);
    ck_assert_int_eq(fflush(file), 0);
    leat__bad_record_log *log = open_log();
    add(log, 2, "s", NULL, "bad");
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    ck_assert_int_ge(fputs("s\t3", file), 0);
    ck_assert_int_eq(fflush(file), 0);
    add(log, 4, "s", NULL, "bad");
    add(log, 5, "s", NULL, "bad");
    ck_assert_int_eq(fclose(file), 0);
    close_log(log, "s\t1\t\n"
                   "s\t2\t\t0\t0\tnone\tbad\n"
                   "s\t3\n"
                   "s\t4\t\t0\t0\tnone\tbad\n"
                   "s\t5\t\t0\t0\tnone\tbad\n");
}
END_TEST

int main(void)
{
    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    Suite *suite = suite_create("bad_record_log");
    TCase *tcase = tcase_create("bad_record_log");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_is_not_remembered_is_neither_counted_nor_listed);
    tcase_add_test(tcase, a_limit_of_errors_is_counted_up_to);
    tcase_add_test(tcase, what_others_have_listed_is_not_listed_again);
    tcase_add_test(tcase,
                   lines_of_others_list_nothing_and_are_read_to_their_end);
    tcase_add_test(tcase, lines_of_several_processes_follow_each_other);
    tcase_add_test(tcase, a_file_that_was_removed_while_empty_is_made_again);
    tcase_add_test(tcase, a_file_of_another_user_is_opened_where_all_may_write);
    tcase_add_test(tcase,
                   a_file_that_is_removed_before_the_lock_is_had_is_made_again);
    tcase_add_test(tcase, a_file_that_never_had_a_name_is_written_to);
    tcase_add_test(tcase, a_list_that_was_removed_is_begun_again);
    tcase_add_test(tcase,
                   lines_of_a_removed_list_that_find_no_other_are_counted);
    tcase_add_test(tcase, a_lock_that_another_holds_is_not_waited_for_long);
    tcase_add_test(tcase, a_cancel_ends_the_wait_for_the_lock);
    tcase_add_test(tcase, a_lock_is_waited_for_as_long_amid_signals);
    tcase_add_test(tcase, a_file_that_is_not_used_after_all_is_not_locked);
    tcase_add_test(tcase, each_of_thousands_has_one_line);
    tcase_add_test(tcase, zeros_after_lines_are_no_trouble);
    tcase_add_test(tcase, any_descriptor_may_be_the_files);
    tcase_add_test(tcase, a_file_is_new_for_all_whom_the_mask_lets);
    tcase_add_test(tcase, the_limit_is_passed_by_the_first_record_above_it);
    tcase_add_test(
        tcase, each_record_of_the_list_is_logged_and_then_that_there_are_more);
    tcase_add_test(tcase, a_key_that_is_cut_is_marked);
    tcase_add_test(tcase, a_full_disk_is_counted_and_leaves_no_part_of_a_line);
    tcase_add_test(tcase, a_limit_of_file_sizes_is_no_full_disk);
    tcase_add_test(tcase, a_part_of_a_line_stays_where_another_has_the_lock);
    tcase_add_test(tcase, a_line_that_others_left_torn_is_not_gone_on_with);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)remove(directory);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
