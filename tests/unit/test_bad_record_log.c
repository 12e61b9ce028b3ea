/* Bad records are counted, listed and written down in the order of places. */
#include "layer/on_error/bad_record_log.h"
#include "support/bad_records.h"
#include "support/layer_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/leat-log-XXXXXX";
static char path[sizeof(directory) + 16];
static leat_data_layer_options options;
static bad_records plan;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const bad_records none = {.count = 20};
    options = defaults;
    options.batch_size = 4;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    plan = none;
    snprintf(path, sizeof(path), "%s/bad", directory);
}

static void tear_down(void)
{
    (void)remove(path);
}

static int open_layer(layer_fixture *fixture)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    ck_assert_int_eq(
        leat_data_layer_create(&fixture->layer, pipeline, &options), LEAT_OK);
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture->top[i], NULL), LEAT_OK);
    return leat_data_layer_setup(fixture->layer, fixture->top, 2);
}

static leat_stats read_stats(const layer_fixture *fixture)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture->layer, &stats), LEAT_OK);
    return stats;
}

static void read_file(char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

START_TEST(more_than_max_errors_end_the_layer_after_the_good_batches)
{
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    plan.kind[9] = BAD_RECORDS_SHORT;
    plan.kind[11] = BAD_RECORDS_SHORT;
    options.max_errors = 2;
    for (int workers = 1; workers < 4; workers++)
        for (int prefetch = 1; prefetch < 6; prefetch += 2) {
            options.workers = workers;
            options.prefetch = prefetch;
            layer_fixture fixture;
            leat_token token;
            leat_token_init(&token);
            ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            ck_assert_int_eq(read_stats(&fixture).bad_records, 1);
            ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token),
                             LEAT_OK);
            for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ELIMIT);
                ck_assert_ptr_nonnull(
                    strstr(leat_last_error(),
                           "3 bad records, max_errors allows 2; the first one: "
                           "planted: record 2 cannot be read"));
            }
            ck_assert_int_eq(read_stats(&fixture).bad_records, 3);
            /* What was met before the token's position stays counted. */
            ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                             LEAT_OK);
            ck_assert_int_eq(read_stats(&fixture).bad_records, 0);
            ck_assert_int_eq(read_stats(&fixture).distinct_bad, 1);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ELIMIT);
            ck_assert_int_eq(read_stats(&fixture).bad_records, 2);
            leat_token_finish(&token);
            layer_fixture_close(&fixture);
        }
}
END_TEST

START_TEST(a_record_counts_once_however_often_it_comes_back)
{
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    plan.kind[9] = BAD_RECORDS_SHORT;
    options.max_errors = 2;
    options.bad_record_file = path;
    leat_token start;
    leat_token_init(&start);
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &start), LEAT_OK);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).bad_records, 20);
    ck_assert_int_eq(read_stats(&fixture).distinct_bad, 2);
    /* From the start nothing was met yet, and all of it is met again. */
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &start), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).distinct_bad, 0);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).distinct_bad, 2);
    layer_fixture_close(&fixture);
    /* Another layer knows what the file lists. */
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &start), LEAT_OK);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_token_finish(&start);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "planted\t2\t\t0\t2\trecord\tcannot be read\n"
                           "planted\t9\t\t0\t9\trecord\tan image of 2 x 5 x "
                           "6 uint8 needs 60 bytes, there are 59\n");
}
END_TEST

START_TEST(no_bad_record_at_all_may_be_allowed)
{
    options.max_errors = 0;
    options.has_max_errors = 1;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    plan.kind[5] = BAD_RECORDS_UNLABELED;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ELIMIT);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(the_list_is_in_order_and_bounded_and_the_rest_is_counted)
{
    for (int i = 1; i < plan.count; i++)
        plan.kind[i] = i % 2 ? BAD_RECORDS_UNREADABLE : BAD_RECORDS_SHORT;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_stats stats = read_stats(&fixture);
    ck_assert_int_eq(stats.bad_records, 190);
    ck_assert_int_eq(stats.nbad, LEAT_BAD_RECORDS_MAX);
    for (int i = 0; i < stats.nbad; i++) {
        int64_t record = 1 + i % 19;
        ck_assert_int_eq(stats.bad[i].from.record, record);
        ck_assert_int_eq(stats.bad[i].from.position, record);
        ck_assert_int_eq(stats.bad[i].from.epoch, i / 19);
        ck_assert_str_eq(stats.bad[i].from.source, "planted");
        ck_assert_int_eq(stats.bad[i].from.replacement,
                         LEAT_REPLACEMENT_RECORD);
        ck_assert_ptr_nonnull(strstr(stats.bad[i].reason,
                                     record % 2 ? "cannot be read" : "needs"));
    }
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(batches_that_fail_are_listed_too)
{
    options.on_error = LEAT_ON_ERROR_FAIL;
    options.bad_record_file = path;
    plan.kind[5] = BAD_RECORDS_UNREADABLE;
    plan.kind[6] = BAD_RECORDS_SHORT;
    plan.kind[15] = BAD_RECORDS_SHORT;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture),
                         i == 1 || i == 3 ? LEAT_EDATA : LEAT_OK);
    leat_stats stats = read_stats(&fixture);
    ck_assert_int_eq(stats.bad_records, 2);
    ck_assert_int_eq(stats.nbad, 2);
    ck_assert_int_eq(stats.bad[0].from.record, 5);
    ck_assert_int_eq(stats.bad[1].from.record, 15);
    ck_assert_int_eq(stats.bad[1].from.replacement, LEAT_REPLACEMENT_NONE);
    layer_fixture_close(&fixture);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "planted\t5\t\t0\t5\tnone\tcannot be read\n"
                           "planted\t15\t\t0\t15\tnone\tan image of 2 x 5 x 6 "
                           "uint8 needs 60 bytes, there are 59\n");
}
END_TEST

START_TEST(the_file_gets_a_line_each_behind_what_is_there)
{
    FILE *file = fopen(path, "w");
    ck_assert_int_ge(fputs("before\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    options.bad_record_file = path;
    options.on_error = LEAT_ON_ERROR_ZERO;
    plan.kind[17] = BAD_RECORDS_UNREADABLE;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 11; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).unwritten, 0);
    layer_fixture_close(&fixture);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "before\n"
                           "planted\t17\t\t0\t17\tzeros\tcannot be read\n");
}
END_TEST

static void write_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Such as --bad-record-file with the name of the database itself. */
START_TEST(a_file_that_is_no_text_is_refused_and_left_as_it_is)
{
    static const struct {
        const char *bytes;
        size_t size;
    } files[] = {
        {"\0\0\0\0\0\0\0\0\0\0\x08\0\0\0\0\0\xde\xc0\xef\xbe", 20},
        {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16},
        {"\xff\xd8\xff\xe0\0\x10JFIF\0", 11},
        {"\x93NUMPY\x01\0", 8},
        {"\x08\x01\x10\x01\x18\x1c", 6},
    };
    options.bad_record_file = path;
    options.on_error = LEAT_ON_ERROR_ZERO;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char bytes[64];
        write_file(files[i].bytes, files[i].size);
        layer_fixture fixture;
        ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "is no text"));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
        layer_fixture_close(&fixture);
        FILE *file = fopen(path, "rb");
        ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), file), files[i].size);
        fclose(file);
        ck_assert_mem_eq(bytes, files[i].bytes, files[i].size);
    }
}
END_TEST

/* A crash may leave zeros behind the lines that were on disk. */
START_TEST(zeros_behind_lines_are_no_trouble)
{
    static const char torn[] = "planted\t17\t\t0\t17\tzeros\tbad\n\0\0\0\0";
    leat__bad_record_file list;
    write_file(torn, sizeof(torn) - 1);
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

START_TEST(nothing_in_a_line_breaks_it)
{
    leat__bad_record_log *log = open_log();
    add(log, 3, "a\tb", "k\n\x01\\\xc3\xa4", "one\ttwo, key k\\x0a");
    close_log(log, "a\\x09b\t3\tk\\x0a\\x01\\x5c\xc3\xa4\t0\t0\tnone\t"
                   "one\\x09two, key k\\x0a\n");
}
END_TEST

/* Of bytes that take four letters each, as many as a line may have. */
START_TEST(the_longest_line_is_written_whole)
{
    enum { NAME = 4096, LETTERS = 4 };
    static char name[NAME + 10], key[LEAT__KEY_MAX + 1], line[LEAT__ERROR_MAX];
    static char text[64 * 1024], expected[64 * 1024];
    char *at = expected;
    memset(name, 1, sizeof(name) - 1);
    memset(key, 1, LEAT__KEY_MAX);
    memset(line, 1, sizeof(line) - 1);
    leat__bad_record_log *log = open_log();
    leat__bad bad = make_bad(2000000000, name, key, line);
    bad.from.key_cut = 1000000;
    bad.from.epoch = bad.from.position = INT64_MAX;
    leat__bad_record_log_note(log, &bad);
    leat__bad_record_log_finish(log);
    for (int i = 0; i < NAME; i++)
        at += sprintf(at, "\\x01");
    at += sprintf(at, "\t2000000000\t");
    for (int i = 0; i < LEAT__KEY_MAX; i++)
        at += sprintf(at, "\\x01");
    at += sprintf(at, "... (%d bytes)\t%lld\t%lld\tnone\t",
                  LEAT__KEY_MAX + 1000000, (long long)INT64_MAX,
                  (long long)INT64_MAX);
    for (size_t i = 0; i < strlen(bad.line); i++)
        at += sprintf(at, "\\x01");
    sprintf(at, "\n");
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, expected);
    free(log);
}
END_TEST

/* The letters at the ends of what is printed as it is. */
START_TEST(letters_that_print_stay_as_they_are)
{
    leat__bad_record_log *log = open_log();
    add(log, 1, " ~", "\x1f\x20\x7e\x7f\x80\xff[]", "a\\b");
    close_log(log, " ~\t1\t\\x1f ~\\x7f\x80\xff[]\t0\t0\tnone\ta\\b\n");
}
END_TEST

START_TEST(columns_do_not_repeat_each_other)
{
    leat__bad_record_log *log = open_log();
    add(log, 1, "db", "k1", "db: record 1, key k1: it is cut");
    add(log, 2, "db", "k2", "db: record 2: it is cut");
    add(log, 3, "db", NULL, "db: record 3 is cut");
    add(log, 4, "db", "k\\", "db: record 4, key k\\x5c: it is cut");
    /* Another record's number, and what only looks like a prefix, stay. */
    add(log, 5, "db", NULL, "db: record 55: it is cut");
    add(log, 6, "db", NULL, "dbx: record 6: it is cut");
    add(log, 7, NULL, NULL, "it is cut");
    close_log(log, "db\t1\tk1\t0\t0\tnone\tit is cut\n"
                   "db\t2\tk2\t0\t0\tnone\tit is cut\n"
                   "db\t3\t\t0\t0\tnone\tis cut\n"
                   "db\t4\tk\\x5c\t0\t0\tnone\tit is cut\n"
                   "db\t5\t\t0\t0\tnone\trecord 55: it is cut\n"
                   "db\t6\t\t0\t0\tnone\tdbx: record 6: it is cut\n"
                   "\t7\t\t0\t0\tnone\tit is cut\n");
}
END_TEST

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
                     "data: %d bad records, max_errors allows %d; the first "
                     "one: reason 1",
                     (int)n, (int)most);
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
        {LEAT_REPLACEMENT_ZEROS, "data: bad record, zeros stand in: why"},
        {LEAT_REPLACEMENT_RECORD,
         "data: bad record, one before stands in: why"},
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
    static const char line[] = "db\tx\t\t\t\t\t\ndb\t0\t\t0\t\t\t\n";
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
    ck_assert_uint_eq(log->file.listed.n, 0);
    ck_assert_int_eq(log->file.read, BYTES);
    add(log, 0, "db", NULL, "bad");
    leat__bad_record_log_finish(log);
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_gt(about.st_size, BYTES);
    free(log);
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

/* A reader whose keys last until the next sample alone. */
static int next_with_long_key(void *pass, leat_sample *sample)
{
    int *number = pass;
    char *buffer = leat_sample_take(sample, 1 + 300);
    if (!buffer)
        return LEAT_ENOMEM;
    size_t size = (*number)++ % 2 ? 64 : 300;
    buffer[0] = 7;
    memcpy(buffer + 1, long_key(size), size);
    sample->nfields = 1;
    sample->stable = 0;
    sample->field[0] = (leat_field){LEAT_UINT8, 3, buffer, 1, {1, 1, 1}};
    sample->from.key = buffer + 1;
    sample->from.key_size = size;
    return LEAT_OK;
}

START_TEST(a_batch_marks_the_keys_that_it_cut)
{
    static int number;
    const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, 1, 1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = next_with_long_key};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_blob *top;
    number = 0;
    options.on_error = LEAT_ON_ERROR_FAIL;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &number),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    for (int batch = 0; batch < 5; batch++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST),
                         LEAT_OK);
        for (int i = 0; i < 4; i++) {
            const leat_provenance *from =
                &leat_data_layer_batch(layer)->from[i];
            ck_assert_uint_eq(from->key_size, 64);
            ck_assert_uint_eq(from->key_cut, i % 2 ? 0 : 300 - 64);
            ck_assert_mem_eq(from->key, long_key(64), 64);
        }
    }
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The system ends a file at its limit as a disk does that is full. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_full_disk_is_counted_and_what_follows_stands_on_its_own_line)
{
    signal(SIGXFSZ, SIG_IGN);
    leat__bad_record_log *log = open_log();
    for (int i = 0; i < 4; i++) {
        leat__bad bad = make_bad(i, "s", NULL, "bad");
        limit_files(i == 1 ? 21 : i == 2 ? 0 : RLIM_INFINITY);
        leat__bad_record_log_note(log, &bad);
    }
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(log->count, 4);
    ck_assert_int_eq(log->unwritten, 2);
    close_log(log, "s\t0\t\t0\t0\tnone\tbad\ns\t1\n"
                   "s\t3\t\t0\t0\tnone\tbad\n");
}
END_TEST

/* An earlier run's disk was full, or another rank's. */
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

START_TEST(what_cannot_be_a_file_is_an_error_of_setup)
{
    layer_fixture fixture;
    char nowhere[sizeof(path) + 8];
    snprintf(nowhere, sizeof(nowhere), "%s/no/bad", directory);
    options.bad_record_file = nowhere;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), nowhere));
    layer_fixture_close(&fixture);
    options.bad_record_file = directory;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EIO);
    layer_fixture_close(&fixture);
    options.bad_record_file = "/dev/null";
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    options.bad_record_file = path;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_setup_that_failed_may_come_again)
{
    options.bad_record_file = path;
    layer_fixture fixture;
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EDATA);
    plan.kind[7] = BAD_RECORDS_GOOD;
    ck_assert_int_eq(leat_data_layer_setup(fixture.layer, fixture.top, 2),
                     LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).bad_records, 4);
    ck_assert_int_eq(read_stats(&fixture).bad[0].from.replacement,
                     LEAT_REPLACEMENT_ZEROS);
    layer_fixture_close(&fixture);
}
END_TEST

static void refuse(const char *word)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), word));
    leat_pipeline_unref(pipeline);
}

START_TEST(options_that_contradict_themselves_are_refused)
{
    options.max_errors = -2;
    refuse("max_errors");
    options.max_errors = 3;
    options.on_error = LEAT_ON_ERROR_FAIL;
    refuse("max_errors");
    options.on_error = (leat_on_error)7;
    refuse("on_error");
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
    tcase_add_test(tcase,
                   more_than_max_errors_end_the_layer_after_the_good_batches);
    tcase_add_test(tcase, a_record_counts_once_however_often_it_comes_back);
    tcase_add_test(tcase, no_bad_record_at_all_may_be_allowed);
    tcase_add_test(tcase, columns_do_not_repeat_each_other);
    tcase_add_test(tcase, what_others_have_listed_is_not_listed_again);
    tcase_add_test(tcase,
                   lines_of_others_list_nothing_and_are_read_to_their_end);
    tcase_add_test(tcase, each_of_thousands_has_one_line);
    tcase_add_test(tcase,
                   the_list_is_in_order_and_bounded_and_the_rest_is_counted);
    tcase_add_test(tcase, batches_that_fail_are_listed_too);
    tcase_add_test(tcase, the_file_gets_a_line_each_behind_what_is_there);
    tcase_add_test(tcase, a_file_that_is_no_text_is_refused_and_left_as_it_is);
    tcase_add_test(tcase, zeros_behind_lines_are_no_trouble);
    tcase_add_test(tcase, nothing_in_a_line_breaks_it);
    tcase_add_test(tcase, the_longest_line_is_written_whole);
    tcase_add_test(tcase, letters_that_print_stay_as_they_are);
    tcase_add_test(tcase, any_descriptor_may_be_the_files);
    tcase_add_test(tcase, a_file_is_new_for_all_whom_the_mask_lets);
    tcase_add_test(tcase, the_limit_is_passed_by_the_first_record_above_it);
    tcase_add_test(
        tcase, each_record_of_the_list_is_logged_and_then_that_there_are_more);
    tcase_add_test(tcase, a_key_that_is_cut_is_marked);
    tcase_add_test(tcase, a_batch_marks_the_keys_that_it_cut);
    tcase_add_test(
        tcase, a_full_disk_is_counted_and_what_follows_stands_on_its_own_line);
    tcase_add_test(tcase, a_line_that_others_left_torn_is_not_gone_on_with);
    tcase_add_test(tcase, what_cannot_be_a_file_is_an_error_of_setup);
    tcase_add_test(tcase, a_setup_that_failed_may_come_again);
    tcase_add_test(tcase, options_that_contradict_themselves_are_refused);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)remove(directory);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
