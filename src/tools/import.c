/* import.c: `leat import`, databases from other programs' files. */
#include "tools/command.h"
#include "tools/idx.h"
#include "tools/interrupt.h"
#include "tools/lmdb_writer.h"
#include "tools/message.h"
#include "tools/option.h"
#include "tools/output.h"
#include "tools/progress.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of eight digits ascend up to here. */
static const int64_t most_records = 100000000;

struct import_options {
    int64_t range[2]; /* images, from and up to */
    int force;
    int json;
};

/* An open import: what is read and where it goes. */
struct mnist_import {
    struct idx_file *images;
    struct idx_file *labels;
    struct lmdb_writer *writer;
    unsigned char *record; /* room for one */
    int64_t records;       /* written */
};

static int check_counts(const struct mnist_import *import, char *const path[],
                        struct import_options *options)
{
    int64_t images = idx_count(import->images);
    int64_t labels = idx_count(import->labels);
    if (images != labels)
        return leat_error(LEAT_EFORMAT, "%s: %lld images, but %s: %lld labels",
                          path[0], (long long)images, path[1],
                          (long long)labels);
    int64_t *range = options->range;
    if (range[1] == INT64_MAX)
        range[1] = images;
    if (range[1] > images || (range[0] && range[0] >= images))
        return leat_error(LEAT_EINVAL, "--range: %s has only %lld images",
                          path[0], (long long)images);
    if (range[1] - range[0] > most_records)
        return leat_error(LEAT_EINVAL, "%s: more than %lld records", path[0],
                          (long long)most_records);
    return LEAT_OK;
}

static int open_files(struct mnist_import *import, char *const path[],
                      struct import_options *options)
{
    int status = idx_open(&import->images, path[0], IDX_IMAGES);
    if (!status)
        status = idx_open(&import->labels, path[1], IDX_LABELS);
    if (!status)
        status = check_counts(import, path, options);
    if (!status)
        status = lmdb_writer_open(&import->writer, path[2], options->force);
    return status;
}

/* Writes a record with the next key: a database's keys begin at 0. */
static int write_record(struct mnist_import *import, const unsigned char *image,
                        int label)
{
    leat_datum datum = {0};
    datum.channels = 1;
    datum.height = idx_rows(import->images);
    datum.width = idx_columns(import->images);
    datum.label = label;
    datum.data = image;
    datum.data_size = (size_t)datum.height * (size_t)datum.width;
    if (!import->record)
        import->record = malloc(leat_datum_size(&datum));
    if (!import->record)
        return leat_error(LEAT_ENOMEM, "out of memory for a record");
    char key[24];
    snprintf(key, sizeof(key), "%08lld", (long long)import->records++);
    return lmdb_writer_put(import->writer, key, import->record,
                           leat_datum_write(&datum, import->record));
}

/* Reads both files to their ends, so that damage behind the range shows. */
static int copy_records(struct mnist_import *import, const int64_t range[2],
                        struct progress *progress)
{
    for (int64_t i = 0;; i++) {
        const unsigned char *image, *label;
        int status = idx_next(import->images, &image);
        if (status >= 0) {
            int other = idx_next(import->labels, &label);
            status = other < 0 ? other : status;
        }
        if (status == LEAT_END)
            return LEAT_OK;
        if (!status && i >= range[0] && i < range[1])
            status = write_record(import, image, label[0]);
        if (!status)
            status = interrupt_check();
        if (status)
            return status;
        progress_update(progress, i + 1);
    }
}

static int report(const struct mnist_import *import,
                  const struct import_options *options, const char *path,
                  double seconds)
{
    int64_t bytes = lmdb_writer_bytes(import->writer);
    if (options->json)
        return output_json(json_pack("{s:I, s:I, s:f}", "records",
                                     (json_int_t)import->records, "bytes",
                                     (json_int_t)bytes, "seconds", seconds));
    printf("%s: %lld records, %s\n", path, (long long)import->records,
           output_bytes(bytes));
    return 0;
}

static int import_mnist(char *const path[], struct import_options *options)
{
    struct mnist_import import = {0};
    struct progress progress = {0};
    int status = open_files(&import, path, options);
    if (!status) {
        progress_start(&progress, "images", idx_count(import.images),
                       options->json);
        status = copy_records(&import, options->range, &progress);
    }
    if (!status)
        status = lmdb_writer_publish(import.writer);
    double seconds = progress_finish(&progress);
    int exit_status = status ? message_last_error()
                             : report(&import, options, path[2], seconds);
    lmdb_writer_close(import.writer);
    idx_close(import.labels);
    idx_close(import.images);
    free(import.record);
    return exit_status;
}

int command_import(int argc, char **argv)
{
    struct import_options options = {{0, INT64_MAX}, 0, 0};
    const struct option_spec specs[] = {
        {"range", "A:B", "only images A to B-1; keys begin at 0 all the same",
         option_range, options.range, 0, 0},
        {"force", NULL, "replace a database that is there", NULL,
         &options.force, 0, 0},
        {"json", NULL, "print one JSON object", NULL, &options.json, 0, 0},
        {0}};
    const struct usage usage = {
        "import",
        "mnist [options] IMAGES LABELS OUT",
        "Makes the LMDB that Caffe's convert_mnist_data makes of MNIST's IDX\n"
        "files, which may be gzipped.",
        specs,
        1,
        4};
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status != OPTION_GO)
        return status;
    if (strcmp(arguments[0], "mnist") != 0)
        return message_misuse("import", "import knows mnist, not '%s'",
                              arguments[0]);
    if (n != 4)
        return message_misuse("import", "import mnist takes IMAGES LABELS OUT");
    interrupt_catch();
    return import_mnist(arguments + 1, &options);
}
