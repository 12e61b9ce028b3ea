/* command_info.c: `leat info`, what is in a database or a pipeline. */
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/command.h"
#include "tools/database/database.h"
#include "tools/database/feature_table.h"
#include "tools/database/inspection.h"
#include "tools/delivery/image_reader.h"

#include <leat/datum.h>
#include <leat/lmdb_check.h>

#include <errno.h>
#include <sys/stat.h>

enum { NAMED_BAD = 5 };

/* Of more records than these, chunks from all over the database are read. */
enum { MAX_RECORDS = 100000, CHUNKS = 500, CHUNK = 100 };

enum { FIELDS, SHAPES, ENCODINGS, LABELS, COUNTS };
static const char *const count_names[COUNTS] = {"fields", "shapes", "encodings",
                                                "labels"};

/* Of each list; names that are met later are left out. */
enum { MAX_NAMES = 100000 };

struct info {
    struct image_reader reader;
    const leat_field_spec *spec; /* of a pipeline; NULL: a database */
    int nspec;
    int64_t payload; /* bytes of the samples of a pipeline */
    int64_t records; /* bad ones included */
    int64_t bad;
    char bad_line[NAMED_BAD][512];
    bool has_first_key, has_last_key;
    char first_key[KEY_TEXT];
    char last_key[KEY_TEXT];
    int64_t sampled;       /* of the records; 0: all were read */
    json_t *count[COUNTS]; /* objects of name: count */
    bool has_more[COUNTS]; /* names were left out */
    struct feature_table features;
};

static void count_name(struct info *info, int list, const char *name)
{
    json_t *counts = info->count[list];
    json_t *count = json_object_get(counts, name);
    if (!count && json_object_size(counts) == MAX_NAMES)
        info->has_more[list] = true;
    else if (count ? json_integer_set(count, json_integer_value(count) + 1)
                   : json_object_set_new(counts, name, json_integer(1)))
        message_fail("out of memory");
}

/* "label int32", "data uint8 3x32x32". */
static void count_fields(struct info *info)
{
    const leat_sample *sample = &info->reader.sample;
    for (int i = 0; i < sample->nfields && i < info->nspec; i++) {
        const leat_field *field = &sample->field[i];
        char name[256];
        int n = snprintf(name, sizeof(name), "%.80s %s", info->spec[i].name,
                         leat_dtype_name(field->dtype));
        for (int k = 0; k < field->ndim && field->dtype != LEAT_BYTES; k++)
            n += snprintf(name + n, sizeof(name) - (size_t)n, "%c%lld",
                          k ? 'x' : ' ', (long long)field->shape[k]);
        json_t *text = output_text(name);
        if (!text)
            message_fail("out of memory");
        count_name(info, FIELDS, json_string_value(text));
        json_decref(text);
        info->payload += (int64_t)field->bytes;
    }
}

/* Of the field that `example` reads unless another is named. */
static void count_features(struct info *info)
{
    const leat_sample *sample = &info->reader.sample;
    int n = info->nspec < sample->nfields ? info->nspec : sample->nfields;
    int i = 0;
    while (i < n && info->spec[i].dtype != LEAT_BYTES)
        i++;
    if (i < n && sample->field[i].dtype == LEAT_BYTES)
        feature_table_add(&info->features, &sample->field[i]);
}

/* Whether the first field may be an image, of a type that images have, and the
   second its label. */
static bool is_image(const struct info *info)
{
    const leat_field *data = &info->reader.sample.field[0];
    if (!info->spec)
        return true;
    if (data->dtype == LEAT_BYTES)
        return strcmp(image_reader_encoding(data), "other") != 0;
    return data->ndim == 3 && !info->spec[0].is_batch &&
           (data->dtype == LEAT_UINT8 || data->dtype == LEAT_FLOAT32);
}

/* Counts the reader's sample. */
static int count_sample(struct info *info)
{
    const leat_sample *sample = &info->reader.sample;
    const leat_field *data = &sample->field[0];
    int shape[3];
    char name[64];
    if (info->spec) {
        count_fields(info);
        count_features(info);
    }
    if (!is_image(info))
        return LEAT_OK;
    int status = leat_transformer_shape(info->reader.transformer, data, shape);
    if (status)
        return status;
    snprintf(name, sizeof(name), "%dx%dx%d", shape[0], shape[1], shape[2]);
    count_name(info, SHAPES, name);
    count_name(info, ENCODINGS, image_reader_encoding(data));
    if (sample->nfields > 1 &&
        (!info->spec || sample->field[1].dtype == LEAT_INT32))
        count_name(info, LABELS,
                   inspection_label(name, sizeof(name), &sample->field[1],
                                    /*values=*/0));
    return LEAT_OK;
}

/* Counts a bad record, described by the thread's error line. Other errors end
   the program. */
static void count_bad(struct info *info, int status)
{
    if (status == LEAT_EDATA && info->bad < NAMED_BAD)
        snprintf(info->bad_line[info->bad], sizeof(info->bad_line[0]), "%s",
                 leat_last_error());
    if (status == LEAT_EDATA)
        info->bad++;
    else
        output_require(status);
}

static void read_all(struct info *info, int64_t total, bool quiet)
{
    leat_reader *reader = info->reader.reader;
    const leat_provenance *from = &info->reader.sample.from;
    struct progress progress;
    int status;
    progress_start(&progress, "records", total, quiet);
    while ((status = leat_reader_next(reader, &info->reader.sample)) !=
           LEAT_END) {
        if (interrupt_check())
            output_exit(EXIT_FAILED);
        if (status != LEAT_EDATA)
            output_require_sound(status);
        inspection_key(info->last_key, from->key, from->key_size, 0);
        info->has_last_key = from->key != NULL;
        if (!info->records++) {
            memcpy(info->first_key, info->last_key, KEY_TEXT);
            info->has_first_key = info->has_last_key;
        }
        if (!status) {
            status = count_sample(info);
            if (status == LEAT_EDATA)
                image_reader_name(status, NULL, from->record, from->key,
                                  from->key_size);
        }
        count_bad(info, status);
        progress_update(&progress, info->records);
    }
    progress_finish(&progress);
}

/* Reads up to `n` entries; returns how many, 0 at the end. */
static int read_entries(leat_lmdb_check *walk, leat_lmdb_check_entry *out,
                        int n)
{
    int got = 0;
    output_require_sound(leat_lmdb_check_next(walk, out, n, &got));
    return got;
}

/* What a sample of a database has read. */
struct samples {
    leat_lmdb_check *walk;
    const void *last; /* key of the latest record */
    int64_t *pages;   /* where its chunks began and went on, in order */
    size_t n;
};

/* Whether a leaf was read before. */
static bool is_read(const struct samples *samples, int64_t page)
{
    for (size_t i = samples->n; i-- > 0;)
        if (samples->pages[i] == page)
            return true;
    return false;
}

static void count_entry(struct info *info, const leat_lmdb_check_entry *entry)
{
    leat_sample_clear(&info->reader.sample);
    int status = leat_datum_fields(&info->reader.sample, entry->value,
                                   entry->value_size);
    if (!status)
        status = count_sample(info);
    if (status == LEAT_EDATA)
        image_reader_name(status, NULL, -1, entry->key, entry->key_size);
    count_bad(info, status);
    info->sampled++;
}

/* Reads a chunk of records from the leaf on to which the walk has jumped. Where
   the chunks before came as far as that, it begins after them. */
static void sample_chunk(struct info *info, struct samples *samples)
{
    leat_lmdb_check_entry entry;
    int n = 0;
    bool is_new = true;
    while (n < CHUNK && read_entries(samples->walk, &entry, 1)) {
        if (n == 0 && is_new)
            is_new = !is_read(samples, entry.page);
        if (!is_new) {
            is_new = entry.key == samples->last;
            continue;
        }
        count_entry(info, &entry);
        if (!samples->n || samples->pages[samples->n - 1] != entry.page)
            samples->pages[samples->n++] = entry.page;
        samples->last = entry.key;
        n++;
    }
}

static void find_keys(struct info *info, leat_lmdb_check *walk)
{
    leat_lmdb_check_entry entry;
    leat_lmdb_check_jump(walk, 0);
    if (read_entries(walk, &entry, 1))
        inspection_key(info->first_key, entry.key, entry.key_size, 0);
    leat_lmdb_check_jump(walk, 1);
    while (read_entries(walk, &entry, 1)) {
        inspection_key(info->last_key, entry.key, entry.key_size, 0);
        info->has_first_key = info->has_last_key = true;
    }
}

/* Reads chunks of records at even distances, from the first leaf to the last.
 */
static void read_samples(struct info *info, const char *path)
{
    struct samples samples = {
        .pages = calloc((size_t)CHUNKS * CHUNK, sizeof(*samples.pages))};
    if (!samples.pages)
        message_fail("out of memory");
    output_require(leat_lmdb_check_open(&samples.walk, path));
    info->records = leat_lmdb_check_count(samples.walk);
    find_keys(info, samples.walk);
    for (int i = 0; i < CHUNKS; i++) {
        leat_lmdb_check_jump(samples.walk, (double)i / (CHUNKS - 1));
        sample_chunk(info, &samples);
    }
    leat_lmdb_check_close(samples.walk);
    free(samples.pages);
}

static void cancel_reader(void *reader)
{
    leat_reader_cancel(reader);
}

static void close_reader(void *object)
{
    struct info *info = object;
    interrupt_unwatch(info->reader.reader);
    image_reader_close(&info->reader);
}

static void read_database(struct info *info, const char *path, bool all,
                          bool quiet)
{
    int64_t records = 0;
    output_require(image_reader_open(&info->reader, path, 0));
    output_require(leat_reader_count(info->reader.reader, &records));
    if (!all && records > MAX_RECORDS)
        read_samples(info, path);
    else
        read_all(info, records, quiet);
}

static void read_pipeline(struct info *info, const char *text, bool quiet)
{
    int64_t count;
    leat_pipeline *pipeline;
    output_require(database_pipeline(&pipeline, text));
    output_require(image_reader_open_pipeline(&info->reader, pipeline));
    leat_pipeline_unref(pipeline);
    leat_reader *reader = info->reader.reader;
    interrupt_watch(cancel_reader, reader);
    cleanup_add(close_reader, info);
    if (leat_reader_count(reader, &count))
        count = 0;
    if (leat_reader_is_endless(reader))
        message_fail("the pipeline has no end: add | take:N");
    output_require_sound(database_fields(reader, &info->spec, &info->nspec));
    read_all(info, count, quiet);
}

/* Or the text of a pipeline. */
static bool is_path(const char *text)
{
    struct stat found;
    return !stat(text, &found) ||
           (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

/* Of a database that was read. */
static int64_t size_on_disk(const char *path)
{
    char file[4096];
    struct stat found;
    snprintf(file, sizeof(file), "%s/data.mdb", path);
    if (stat(path, &found) || (S_ISDIR(found.st_mode) && stat(file, &found)))
        message_fail("%s: %s", path, strerror(errno));
    return found.st_size;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* Orders the names, numbers by their value. Jansson keeps that order. */
static void sort_names(json_t **counts)
{
    json_t *sorted = json_object(), *count;
    size_t n = json_object_size(*counts), i = 0;
    const char **names = calloc(n + 1, sizeof(*names)), *name;
    if (!names || !sorted)
        message_fail("out of memory");
    json_object_foreach(*counts, name, count)
    {
        names[i++] = name;
    }
    qsort(names, n, sizeof(*names), compare_names);
    for (i = 0; i < n; i++)
        json_object_set(sorted, names[i], json_object_get(*counts, names[i]));
    free(names);
    json_decref(*counts);
    *counts = sorted;
}

/* The names of the lists that lack some. */
static json_t *incomplete_lists(const struct info *info)
{
    json_t *lists = json_array();
    for (int i = 0; i < COUNTS; i++)
        if (info->has_more[i])
            json_array_append_new(lists, json_string(count_names[i]));
    if (info->features.has_more)
        json_array_append_new(lists, json_string("features"));
    return lists;
}

static int print_json(struct info *info, int64_t bytes)
{
    return output_json(json_pack(
        "{s:I, s:O*, s:O, s:O, s:O, s:o*, s:o, s:I, s:[s?, s?], s:I, s:I}",
        "records", (json_int_t)info->records, count_names[FIELDS],
        info->spec ? info->count[FIELDS] : NULL, count_names[SHAPES],
        info->count[SHAPES], count_names[ENCODINGS], info->count[ENCODINGS],
        count_names[LABELS], info->count[LABELS], "features",
        info->spec ? feature_table_json(&info->features) : NULL, "incomplete",
        incomplete_lists(info), "bad", (json_int_t)info->bad, "keys",
        info->has_first_key ? info->first_key : NULL,
        info->has_last_key ? info->last_key : NULL, "bytes", (json_int_t)bytes,
        "sampled", (json_int_t)info->sampled));
}

static void print_counts(const struct info *info, int list)
{
    const char *name;
    json_t *count;
    if (json_object_size(info->count[list]))
        printf("%s:\n", count_names[list]);
    json_object_foreach(info->count[list], name, count)
    {
        printf("  %-12s %lld\n", plain_text(name),
               (long long)json_integer_value(count));
    }
    if (info->has_more[list])
        printf("  ... (more than %d)\n", MAX_NAMES);
}

static int print_text(struct info *info, const char *path, int64_t bytes)
{
    printf("%s: %s, %s\n", plain_text(path),
           output_count(info->records, "record", "records"),
           output_bytes(bytes));
    if (info->has_first_key && info->has_last_key)
        printf("keys: %s to %s\n", plain_text(info->first_key),
               plain_text(info->last_key));
    if (info->sampled)
        printf("of %lld records, sampled from all over (--all counts all):\n",
               (long long)info->sampled);
    for (int i = 0; i < COUNTS; i++)
        print_counts(info, i);
    feature_table_print(&info->features);
    if (info->bad)
        printf("bad records: %lld\n", (long long)info->bad);
    for (int i = 0; i < info->bad && i < NAMED_BAD; i++)
        printf("  %s\n", plain_text(info->bad_line[i]));
    return 0;
}

int command_info(int argc, char **argv)
{
    bool all = false, json = false;
    const struct option_spec specs[] = {
        option_flag("all", "read every record of a large database", &all),
        option_flag("json", "print one JSON object", &json),
        {0}};
    const struct usage usage = {
        .command = "info",
        .arguments = "[options] DB|PIPELINE",
        .about = "Prints how many records a database has, their shapes,\n"
                 "encodings and labels; of a pipeline also its fields, and of\n"
                 "tf.train.Examples the features. Only the headers of images\n"
                 "are read, and of a database of more than 100000 records a\n"
                 "sample of 50000. Bad records are counted and the first ones\n"
                 "named; the status is then 1.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 1,
    };
    char **arguments = option_parse(&usage, argc, argv);
    interrupt_catch_opening();
    struct info info = {.records = 0};
    for (int i = 0; i < COUNTS; i++)
        info.count[i] = json_object();
    bool is_database = is_path(arguments[0]);
    if (is_database)
        read_database(&info, arguments[0], all, json);
    else
        read_pipeline(&info, arguments[0], json);
    int64_t bytes = is_database ? size_on_disk(arguments[0]) : info.payload;
    for (int i = 0; i < COUNTS; i++)
        sort_names(&info.count[i]);
    int exit_status = json ? print_json(&info, bytes)
                           : print_text(&info, arguments[0], bytes);
    if (!exit_status && info.bad)
        exit_status = message_found(
            "%lld of %s %s bad; the first: %s", (long long)info.bad,
            output_count(info.sampled ? info.sampled : info.records, "record",
                         "records"),
            info.bad == 1 ? "is" : "are", info.bad_line[0]);
    for (int i = 0; i < COUNTS; i++)
        json_decref(info.count[i]);
    feature_table_finish(&info.features);
    cleanup_remove(&info);
    close_reader(&info);
    return exit_status;
}
