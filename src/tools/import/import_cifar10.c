/* import_cifar10.c: `leat import cifar10`, as Caffe's convert_cifar_data. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/command.h"
#include "tools/import/cifar_batch.h"
#include "tools/import/importer.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <stdlib.h>

enum { KEY_DIGITS = 5, MOST_BATCHES = 10, MOST_RECORDS = 100000 };

struct cifar10 {
    struct record_source source; /* first */
    char *const *path;           /* of the batches */
    int batches;
    int64_t batch_records; /* of each; 0: any number */
    int opened;            /* batches so far */
    struct cifar_batch *batch;
    int64_t next; /* record to be read, over all batches */
    unsigned char record[CIFAR_BATCH_IMAGE + 64];
};

/* The next image, of this batch or of the one behind it. */
static int read_image(struct cifar10 *cifar10, const unsigned char **image,
                      int *label)
{
    int status = LEAT_END;
    if (cifar10->batch)
        status = cifar_batch_next(cifar10->batch, image, label);
    while (status == LEAT_END && cifar10->opened < cifar10->batches) {
        cifar_batch_close(cifar10->batch);
        cifar10->batch = NULL;
        status =
            cifar_batch_open(&cifar10->batch, cifar10->path[cifar10->opened++],
                             cifar10->batch_records);
        if (!status)
            status = cifar_batch_next(cifar10->batch, image, label);
    }
    if (!status)
        cifar10->next++;
    return status;
}

static int next_record(struct record_source *source, struct record *out)
{
    struct cifar10 *cifar10 = (struct cifar10 *)source;
    leat_datum datum = {0};
    int label;
    int status = read_image(cifar10, &datum.data, &label);
    if (status)
        return status;
    datum.channels = CIFAR_BATCH_CHANNELS;
    datum.height = datum.width = CIFAR_BATCH_SIDE;
    datum.label = label;
    datum.data_size = CIFAR_BATCH_IMAGE;
    out->number = cifar10->next - 1;
    out->name = NULL;
    out->value = cifar10->record;
    out->size = leat_datum_write(&datum, cifar10->record);
    return LEAT_OK;
}

static int seek_record(struct record_source *source, int64_t number)
{
    struct cifar10 *cifar10 = (struct cifar10 *)source;
    const unsigned char *image;
    int label;
    int status = LEAT_OK;
    while (!status && cifar10->next < number)
        status = read_image(cifar10, &image, &label);
    return status < 0 ? status : LEAT_OK;
}

static int describe(const struct cifar10 *cifar10,
                    struct import_arguments *arguments)
{
    int status = import_arguments_add(arguments, "cifar10");
    /* Left out where it is the usual one, as imports begun by 0.1.0 have it. */
    if (!status && cifar10->batch_records != CIFAR_BATCH_RECORDS)
        status = import_arguments_add(arguments, "%lld records a file",
                                      (long long)cifar10->batch_records);
    for (int i = 0; i < cifar10->batches && !status; i++)
        status = import_arguments_add_file(arguments, cifar10->path[i]);
    return status;
}

int command_import_cifar10(int argc, char **argv)
{
    interrupt_catch();
    struct importer_options options = {0};
    struct option_spec shared[IMPORTER_OPTIONS];
    importer_list_options(shared, &options);
    int64_t records = CIFAR_BATCH_RECORDS;
    const struct option_spec specs[] = {
        {"count", "N", "records in each file (10000); 0: as many as it has",
         option_int, &records, 0, MOST_RECORDS},
        {0}};
    const struct usage usage = {
        .command = "import cifar10",
        .arguments = "[options] FILE... OUT",
        .about = "Makes the LMDB that Caffe's convert_cifar_data makes of\n"
                 "CIFAR-10's binary version: data_batch_1.bin and so on, one\n"
                 "behind the other, or test_batch.bin. They may be gzipped.",
        .options = specs,
        .least_arguments = 2,
        .most_arguments = MOST_BATCHES + 1,
        .shared = shared,
        .removed = &importer_removed,
    };
    char **path;
    int n;
    int status = option_parse(&usage, argc, argv, &path, &n);
    if (status == OPTION_GO && (n - 1) * records > MOST_RECORDS)
        status =
            message_misuse(usage.command,
                           "%d files of %lld records: keys of %d digits "
                           "end at %d records",
                           n - 1, (long long)records, KEY_DIGITS, MOST_RECORDS);
    if (status != OPTION_GO)
        return status;

    struct cifar10 cifar10 = {.source = {.unit = "images",
                                         .digits = KEY_DIGITS,
                                         .next = next_record,
                                         .seek = seek_record},
                              .path = path,
                              .batches = n - 1,
                              .batch_records = records};
    cifar10.source.count = records ? cifar10.batches * records : -1;
    struct import_arguments arguments = {0};
    status =
        describe(&cifar10, &arguments)
            ? message_last_error()
            : importer_run(&options, &cifar10.source, &arguments, path[n - 1]);
    import_arguments_finish(&arguments);
    cifar_batch_close(cifar10.batch);
    return status;
}
