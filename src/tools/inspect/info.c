/* info.c: `leat info`, what is in a database. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/option.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/progress.h"
#include "tools/command.h"
#include "tools/database/database.h"
#include "tools/database/inspection.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>
#include <leat/lmdb_check.h>
#include <leat/reader.h>
#include <leat/transform.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMED_BAD = 5 };

/* Of more records than these, runs from all over the database are read. */
enum { MOST_RECORDS = 100000, SAMPLED_RUNS = 500, SAMPLED_RUN = 100 };

/* What was found, counted under names. */
struct survey {
    int64_t records; /* bad ones included */
    int64_t bad;
    char bad_line[NAMED_BAD][512];
    char first_key[KEY_TEXT];
    char last_key[KEY_TEXT];
    int64_t sampled; /* of the records; 0: all were read */
    json_t *shapes;  /* objects of name: count */
    json_t *encodings;
    json_t *labels;
};

static int count_name(json_t *counts, const char *name)
{
    json_t *count = json_object_get(counts, name);
    int failed = count ? json_integer_set(count, json_integer_value(count) + 1)
                       : json_object_set_new(counts, name, json_integer(1));
    return failed ? leat_error(LEAT_ENOMEM, "out of memory") : LEAT_OK;
}

static const char *encoding_of(const leat_field *field)
{
    if (field->dtype == LEAT_UINT8)
        return "raw";
    if (field->dtype != LEAT_BYTES)
        return "float";
    if (field->bytes >= 2 && !memcmp(field->data, "\xff\xd8", 2))
        return "jpeg";
    if (field->bytes >= 4 && !memcmp(field->data, "\x89PNG", 4))
        return "png";
    return "other";
}

static int count_record(struct survey *survey, leat_transformer *transformer,
                        const leat_sample *sample)
{
    const leat_field *data = &sample->field[0];
    int shape[3];
    int status = leat_transformer_shape(transformer, data, shape);
    if (status)
        return status;
    char name[64];
    snprintf(name, sizeof(name), "%dx%dx%d", shape[0], shape[1], shape[2]);
    status = count_name(survey->shapes, name);
    if (!status)
        status = count_name(survey->encodings, encoding_of(data));
    if (status || sample->nfields < 2)
        return status;
    return count_name(survey->labels,
                      inspection_label(name, sizeof(name), &sample->field[1],
                                       /*values=*/0));
}

/* Puts the record's number, unless below 0, and its key before the line. */
static void name_record(int64_t number, const void *key, size_t key_size)
{
    char line[512], which[32] = "", text[KEY_TEXT];
    snprintf(line, sizeof(line), "%s", leat_last_error());
    if (number >= 0)
        snprintf(which, sizeof(which), "record %lld, ", (long long)number);
    leat_error(LEAT_EDATA, "%skey %s: %s", which,
               inspection_short_key(text, key, key_size), line);
}

static void note_bad(struct survey *survey)
{
    if (survey->bad < NAMED_BAD)
        snprintf(survey->bad_line[survey->bad], sizeof(survey->bad_line[0]),
                 "%s", leat_last_error());
    survey->bad++;
}

static int count_records(struct survey *survey, leat_reader *reader,
                         leat_transformer *transformer, int quiet)
{
    int64_t total = -1;
    leat_reader_count(reader, &total);
    struct progress progress;
    progress_start(&progress, "records", total, quiet);
    leat_sample sample;
    leat_sample_init(&sample);
    int status = LEAT_OK;
    while (!status) {
        status = leat_reader_next(reader, &sample);
        if (!status || status == LEAT_EDATA) {
            inspection_key(survey->last_key, sample.from.key,
                           sample.from.key_size, 0);
            if (!survey->records++)
                memcpy(survey->first_key, survey->last_key, KEY_TEXT);
        }
        if (!status) {
            status = count_record(survey, transformer, &sample);
            if (status == LEAT_EDATA)
                name_record(sample.from.record, sample.from.key,
                            sample.from.key_size);
        }
        if (status == LEAT_EDATA) {
            note_bad(survey);
            status = LEAT_OK;
        }
        if (!status)
            status = interrupt_check();
        progress_update(&progress, survey->records);
    }
    leat_sample_finish(&sample);
    progress_finish(&progress);
    return status == LEAT_END ? LEAT_OK : status;
}

static int sample_record(struct survey *survey, leat_transformer *transformer,
                         leat_sample *sample,
                         const leat_lmdb_check_entry *entry)
{
    int status = leat_datum_fields(sample, entry->value, entry->value_size);
    if (!status)
        status = count_record(survey, transformer, sample);
    survey->sampled++;
    if (status != LEAT_EDATA)
        return status;
    name_record(-1, entry->key, entry->key_size);
    note_bad(survey);
    return LEAT_OK;
}

/* The records from the leaf on at which the walk stands. */
static int sample_run(struct survey *survey, leat_lmdb_check *walk,
                      leat_transformer *transformer, leat_sample *sample)
{
    leat_lmdb_check_entry entry[SAMPLED_RUN];
    int got, status = leat_lmdb_check_next(walk, entry, SAMPLED_RUN, &got);
    for (int i = 0; i < got && !status; i++)
        status = sample_record(survey, transformer, sample, &entry[i]);
    return status == LEAT_END ? LEAT_OK : status;
}

static int find_keys(struct survey *survey, leat_lmdb_check *walk)
{
    leat_lmdb_check_entry entry;
    int got;
    leat_lmdb_check_jump(walk, 0);
    int status = leat_lmdb_check_next(walk, &entry, 1, &got);
    if (!status)
        inspection_key(survey->first_key, entry.key, entry.key_size, 0);
    leat_lmdb_check_jump(walk, 1);
    while (!status && !(status = leat_lmdb_check_next(walk, &entry, 1, &got)))
        inspection_key(survey->last_key, entry.key, entry.key_size, 0);
    return status == LEAT_END ? LEAT_OK : status;
}

/* Reads runs of records at even distances, from the first leaf to the last. */
static int sample_records(struct survey *survey, const char *path,
                          leat_transformer *transformer)
{
    leat_lmdb_check *walk;
    leat_sample sample;
    int status = leat_lmdb_check_open(&walk, path);
    if (status)
        return status;
    leat_sample_init(&sample);
    survey->records = leat_lmdb_check_count(walk);
    status = find_keys(survey, walk);
    for (int i = 0; !status && i < SAMPLED_RUNS; i++) {
        leat_lmdb_check_jump(walk, (double)i / (SAMPLED_RUNS - 1));
        status = sample_run(survey, walk, transformer, &sample);
        if (!status)
            status = interrupt_check();
    }
    leat_sample_finish(&sample);
    leat_lmdb_check_close(walk);
    return status;
}

static int survey_database(struct survey *survey, const char *path, int all,
                           int quiet)
{
    int64_t records = 0;
    leat_reader *reader = NULL;
    leat_transformer *transformer = NULL;
    int status = database_open(&reader, path);
    if (!status)
        status = leat_transformer_create(&transformer, NULL, LEAT_TEST,
                                         LEAT_FLOAT32, LEAT_NCHW);
    if (!status)
        status = leat_reader_count(reader, &records);
    if (!status && !all && records > MOST_RECORDS)
        status = sample_records(survey, path, transformer);
    else if (!status)
        status = count_records(survey, reader, transformer, quiet);
    leat_transformer_destroy(transformer);
    leat_reader_close(reader);
    return status;
}

static int64_t size_on_disk(const char *path)
{
    char file[4096];
    struct stat status;
    snprintf(file, sizeof(file), "%s/data.mdb", path);
    if (stat(file, &status) && stat(path, &status))
        return 0;
    return status.st_size;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* The same counts, names in order, numbers by their value. */
static json_t *sorted(const json_t *counts)
{
    json_t *out = json_object();
    size_t n = json_object_size(counts), i = 0;
    const char **names = malloc((n + 1) * sizeof(*names));
    const char *name;
    json_t *count;
    json_object_foreach((json_t *)counts, name, count) if (names) names[i++] =
        name;
    if (names)
        qsort(names, n, sizeof(*names), compare_names);
    for (i = 0; names && i < n; i++)
        json_object_set(out, names[i], json_object_get(counts, names[i]));
    free(names);
    return out;
}

static int print_json(const struct survey *survey, int64_t bytes)
{
    return output_json(
        json_pack("{s:I, s:o, s:o, s:o, s:I, s:[s, s], s:I, s:I}", "records",
                  (json_int_t)survey->records, "shapes", sorted(survey->shapes),
                  "encodings", sorted(survey->encodings), "labels",
                  sorted(survey->labels), "bad", (json_int_t)survey->bad,
                  "keys", survey->first_key, survey->last_key, "bytes",
                  (json_int_t)bytes, "sampled", (json_int_t)survey->sampled));
}

static void print_counts(const char *title, const json_t *counts)
{
    if (!json_object_size(counts))
        return;
    json_t *ordered = sorted(counts);
    printf("%s:\n", title);
    const char *name;
    json_t *count;
    json_object_foreach(ordered, name, count)
    {
        printf("  %-12s %lld\n", name, (long long)json_integer_value(count));
    }
    json_decref(ordered);
}

static int print_text(const struct survey *survey, const char *path,
                      int64_t bytes)
{
    printf("%s: %s, %s\n", plain_text(path),
           output_count(survey->records, "record", "records"),
           output_bytes(bytes));
    if (survey->records)
        printf("keys: %s to %s\n", survey->first_key, survey->last_key);
    if (survey->sampled)
        printf("of %lld records, sampled from all over (--all counts all):\n",
               (long long)survey->sampled);
    print_counts("shapes", survey->shapes);
    print_counts("encodings", survey->encodings);
    print_counts("labels", survey->labels);
    if (survey->bad)
        printf("bad records: %lld\n", (long long)survey->bad);
    for (int i = 0; i < survey->bad && i < NAMED_BAD; i++)
        printf("  %s\n", plain_text(survey->bad_line[i]));
    return 0;
}

int command_info(int argc, char **argv)
{
    int all = 0, json = 0;
    const struct option_spec specs[] = {
        {"all", NULL, "read every record of a large database", NULL, &all, 0,
         0},
        {"json", NULL, "print one JSON object", NULL, &json, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "info",
        .arguments = "[options] DB",
        .about = "Says how many records a database has, their shapes,\n"
                 "encodings and labels. Of images it reads the headers. Of\n"
                 "more than 100000 records it reads 50000 from all over, and\n"
                 "says so. Bad records are counted, the first ones named,\n"
                 "and make it end with status 1.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 1,
    };
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status != OPTION_GO)
        return status;
    interrupt_catch();
    struct survey survey = {.shapes = json_object(),
                            .encodings = json_object(),
                            .labels = json_object()};
    int exit_status = 0;
    if (survey_database(&survey, arguments[0], all, json))
        exit_status = message_last_error();
    else if (json)
        exit_status = print_json(&survey, size_on_disk(arguments[0]));
    else
        exit_status =
            print_text(&survey, arguments[0], size_on_disk(arguments[0]));
    if (!exit_status && survey.bad)
        exit_status = message_found(
            "%lld of %s %s bad; the first: %s", (long long)survey.bad,
            output_count(survey.sampled ? survey.sampled : survey.records,
                         "record", "records"),
            survey.bad == 1 ? "is" : "are", survey.bad_line[0]);
    json_decref(survey.shapes);
    json_decref(survey.encodings);
    json_decref(survey.labels);
    return exit_status;
}
