/* command_import_mnist.c: `leat import mnist`, as Caffe's convert_mnist_data.
 */
#include "tools/command.h"
#include "tools/import/importer.h"
#include "tools/import/record_file.h"

#include <leat/datum.h>

struct mnist {
    struct importer importer; /* first */
    struct record_file images;
    struct record_file labels;
    int64_t range[2];      /* images, from and up to */
    int64_t next;          /* image to be read */
    unsigned char *record; /* room for one */
};

/* The next image and label, from the first ones on. */
static int read_pair(struct mnist *mnist, leat_datum *datum)
{
    const unsigned char *label;
    int end = record_file_next(&mnist->images, &datum->data);
    int status = end < 0 ? end : record_file_next(&mnist->labels, &label);
    if (status < 0)
        return status;
    mnist->next++;
    if (!end)
        datum->label = *label;
    return end;
}

/* Reads both files to their ends, so that damage past the range shows. */
static int next_record(struct importer *importer, struct record *out)
{
    struct mnist *mnist = (struct mnist *)importer;
    leat_datum datum = {.channels = 1,
                        .height = mnist->images.rows,
                        .width = mnist->images.columns,
                        .data_size = mnist->images.size};
    do {
        int status = read_pair(mnist, &datum);
        if (status)
            return status;
    } while (mnist->next <= mnist->range[0] || mnist->next > mnist->range[1]);
    out->number = mnist->next - 1 - mnist->range[0];
    out->name = NULL;
    out->value = mnist->record;
    out->size = leat_datum_write(&datum, mnist->record);
    return LEAT_OK;
}

static void check_counts(struct mnist *mnist)
{
    int64_t images = mnist->images.count, *range = mnist->range;
    if (images != mnist->labels.count)
        message_fail("%s: %s, but %s: %s", mnist->images.path,
                     output_count(images, "image", "images"),
                     mnist->labels.path,
                     output_count(mnist->labels.count, "label", "labels"));
    if (range[1] == INT64_MAX)
        range[1] = images;
    if (range[1] > images || (range[0] && range[0] >= images))
        message_fail("--range: %s has only %s", mnist->images.path,
                     output_count(images, "image", "images"));
    mnist->importer.count = range[1] - range[0];
}

static void open_files(struct mnist *mnist, char *const path[])
{
    /* Before they are opened: one that is replaced meanwhile is another file
       for a rerun. */
    for (int i = 0; i < 2; i++)
        output_require(importer_add_file(&mnist->importer, path[i]));
    output_require(record_file_open(&mnist->images, path[0], IDX_IMAGES, 0));
    output_require(record_file_open(&mnist->labels, path[1], IDX_LABELS, 0));
    check_counts(mnist);
    /* The label that takes most bytes. */
    const leat_datum longest = {.channels = 1,
                                .height = mnist->images.rows,
                                .width = mnist->images.columns,
                                .label = UINT8_MAX,
                                .data = mnist->images.record,
                                .data_size = mnist->images.size};
    mnist->record = malloc(leat_datum_size(&longest));
    if (!mnist->record)
        message_fail("out of memory for a record");
    output_require(importer_add(&mnist->importer, "mnist, images %lld to %lld",
                                (long long)mnist->range[0],
                                (long long)mnist->range[1] - 1));
}

int command_import_mnist(int argc, char **argv)
{
    struct mnist mnist = {
        .importer = {.unit = "images", .digits = 8, .next = next_record},
        .range = {0, INT64_MAX}};
    const struct option_spec specs[] = {
        {"range", "A:B", "only images A to B-1; keys still begin at 0",
         option_range, mnist.range, 0, 0},
        {0}};
    struct usage usage = {
        .command = "import mnist",
        .arguments = "[options] IMAGES LABELS OUT",
        .about = "Makes the LMDB that Caffe's convert_mnist_data makes of\n"
                 "MNIST's IDX files, which may be gzipped.",
        .options = specs,
        .least_arguments = 3,
        .most_arguments = 3,
    };
    char **path = importer_parse(&mnist.importer, &usage, argc, argv);
    interrupt_catch();
    importer_check(&mnist.importer, path[2]);
    open_files(&mnist, path);
    int status = importer_run(&mnist.importer, path[2]);
    record_file_close(&mnist.labels);
    record_file_close(&mnist.images);
    free(mnist.record);
    return status;
}
