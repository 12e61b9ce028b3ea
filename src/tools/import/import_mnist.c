/* import_mnist.c: `leat import mnist`, as Caffe's convert_mnist_data. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/command.h"
#include "tools/import/idx.h"
#include "tools/import/importer.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <stdlib.h>

enum { KEY_DIGITS = 8 };

struct mnist {
    struct record_source source; /* first */
    struct idx_file *images;
    struct idx_file *labels;
    int64_t range[2];      /* images, from and up to */
    int64_t next;          /* image to be read */
    unsigned char *record; /* room for one */
};

/* The next pair of both files, from the first image on. */
static int read_pair(struct mnist *mnist, const unsigned char **image,
                     const unsigned char **label)
{
    int status = idx_next(mnist->images, image);
    if (status < 0)
        return status;
    int other = idx_next(mnist->labels, label);
    if (other < 0)
        return other;
    mnist->next++;
    return status;
}

/* Bytes of such a record with any label, of which some take one more. */
static size_t most_bytes(const leat_datum *datum)
{
    leat_datum longest = *datum;
    longest.label = UINT8_MAX;
    return leat_datum_size(&longest);
}

/* Reads both files to their ends, so that damage behind the range shows. */
static int next_record(struct record_source *source, struct record *out)
{
    struct mnist *mnist = (struct mnist *)source;
    const unsigned char *image, *label;
    do {
        int status = read_pair(mnist, &image, &label);
        if (status)
            return status;
    } while (mnist->next <= mnist->range[0] || mnist->next > mnist->range[1]);

    leat_datum datum = {0};
    datum.channels = 1;
    datum.height = idx_rows(mnist->images);
    datum.width = idx_columns(mnist->images);
    datum.label = label[0];
    datum.data = image;
    datum.data_size = (size_t)datum.height * (size_t)datum.width;
    if (!mnist->record)
        mnist->record = malloc(most_bytes(&datum));
    if (!mnist->record)
        return leat_error(LEAT_ENOMEM, "out of memory for a record");
    out->number = mnist->next - 1 - mnist->range[0];
    out->name = NULL;
    out->value = mnist->record;
    out->size = leat_datum_write(&datum, mnist->record);
    return LEAT_OK;
}

static int seek_record(struct record_source *source, int64_t number)
{
    struct mnist *mnist = (struct mnist *)source;
    const unsigned char *image, *label;
    int status = LEAT_OK;
    while (!status && mnist->next < mnist->range[0] + number)
        status = read_pair(mnist, &image, &label);
    return status < 0 ? status : LEAT_OK;
}

static int check_counts(struct mnist *mnist, char *const path[])
{
    int64_t images = idx_count(mnist->images);
    int64_t labels = idx_count(mnist->labels);
    if (images != labels)
        return leat_error(LEAT_EFORMAT, "%s: %s, but %s: %s", path[0],
                          output_count(images, "image", "images"), path[1],
                          output_count(labels, "label", "labels"));
    int64_t *range = mnist->range;
    if (range[1] == INT64_MAX)
        range[1] = images;
    if (range[1] > images || (range[0] && range[0] >= images))
        return leat_error(LEAT_EINVAL, "--range: %s has only %s", path[0],
                          output_count(images, "image", "images"));
    mnist->source.count = range[1] - range[0];
    return LEAT_OK;
}

static int open_files(struct mnist *mnist, struct import_arguments *arguments,
                      char *const path[])
{
    int status = idx_open(&mnist->images, path[0], IDX_IMAGES);
    if (!status)
        status = idx_open(&mnist->labels, path[1], IDX_LABELS);
    if (!status)
        status = check_counts(mnist, path);
    if (!status)
        status = import_arguments_add(arguments, "mnist, images %lld to %lld",
                                      (long long)mnist->range[0],
                                      (long long)mnist->range[1] - 1);
    for (int i = 0; i < 2 && !status; i++)
        status = import_arguments_add_file(arguments, path[i]);
    return status;
}

int command_import_mnist(int argc, char **argv)
{
    interrupt_catch();
    struct importer_options options = {0};
    struct mnist mnist = {
        {"images", 0, KEY_DIGITS, next_record, seek_record, NULL},
        NULL,
        NULL,
        {0, INT64_MAX},
        0,
        NULL};
    struct option_spec shared[IMPORTER_OPTIONS];
    importer_list_options(shared, &options);
    const struct option_spec specs[] = {
        {"range", "A:B", "only images A to B-1; keys begin at 0 all the same",
         option_range, mnist.range, 0, 0},
        {0}};
    const struct usage usage = {
        .command = "import mnist",
        .arguments = "[options] IMAGES LABELS OUT",
        .about = "Makes the LMDB that Caffe's convert_mnist_data makes of\n"
                 "MNIST's IDX files, which may be gzipped.",
        .options = specs,
        .least_arguments = 3,
        .most_arguments = 3,
        .shared = shared,
        .removed = &importer_removed,
    };
    char **path;
    int n;
    int status = option_parse(&usage, argc, argv, &path, &n);
    if (status != OPTION_GO)
        return status;

    struct import_arguments arguments = {0};
    status = open_files(&mnist, &arguments, path)
                 ? message_last_error()
                 : importer_run(&options, &mnist.source, &arguments, path[2]);
    import_arguments_finish(&arguments);
    idx_close(mnist.labels);
    idx_close(mnist.images);
    free(mnist.record);
    return status;
}
