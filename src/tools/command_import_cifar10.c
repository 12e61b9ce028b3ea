/* command_import_cifar10.c: `leat import cifar10`, as convert_cifar_data. */
#include "tools/command.h"
#include "tools/import/importer.h"
#include "tools/import/record_file.h"

#include <leat/datum.h>

enum { KEY_DIGITS = 5, MOST_BATCHES = 10, MOST_RECORDS = 100000 };

struct cifar10 {
    struct importer importer; /* first */
    char *const *path;        /* of the batches */
    int batches;
    int opened;    /* batches so far */
    int64_t count; /* records of each; 0: any number */
    struct record_file batch;
    int64_t next; /* record to be read, over all batches */
    unsigned char record[CIFAR10_IMAGE + 64];
};

/* The next record, of this batch or of the one after it. */
static int read_record(struct cifar10 *cifar10, const unsigned char **record)
{
    int status = LEAT_END;
    if (cifar10->batch.record)
        status = record_file_next(&cifar10->batch, record);
    while (status == LEAT_END && cifar10->opened < cifar10->batches) {
        record_file_close(&cifar10->batch);
        status =
            record_file_open(&cifar10->batch, cifar10->path[cifar10->opened++],
                             CIFAR10_BATCH, cifar10->count);
        if (!status)
            status = record_file_next(&cifar10->batch, record);
    }
    cifar10->next += !status;
    return status;
}

static int next_record(struct importer *importer, struct record *out)
{
    struct cifar10 *cifar10 = (struct cifar10 *)importer;
    const unsigned char *record;
    int status = read_record(cifar10, &record);
    if (status)
        return status;
    const leat_datum datum = {.channels = CIFAR10_CHANNELS,
                              .height = CIFAR10_SIDE,
                              .width = CIFAR10_SIDE,
                              .label = record[0],
                              .data = record + 1,
                              .data_size = CIFAR10_IMAGE};
    out->number = cifar10->next - 1;
    out->name = NULL;
    out->value = cifar10->record;
    out->size = leat_datum_write(&datum, cifar10->record);
    return LEAT_OK;
}

static void add_arguments(struct cifar10 *cifar10)
{
    struct importer *importer = &cifar10->importer;
    output_require(importer_add(importer, "cifar10, %lld records a file",
                                (long long)cifar10->count));
    for (int i = 0; i < cifar10->batches; i++)
        output_require(importer_add_file(importer, cifar10->path[i]));
}

int command_import_cifar10(int argc, char **argv)
{
    struct cifar10 cifar10 = {.importer = {.unit = "images",
                                           .count = -1,
                                           .digits = KEY_DIGITS,
                                           .next = next_record},
                              .count = CIFAR10_COUNT};
    const struct option_spec specs[] = {
        {"count", "N", "records in each file (10000); 0: as many as it has",
         option_int, &cifar10.count, 0, MOST_RECORDS},
        {0}};
    struct usage usage = {
        .command = "import cifar10",
        .arguments = "[options] FILE... OUT",
        .about = "Makes the LMDB that Caffe's convert_cifar_data makes of\n"
                 "CIFAR-10's binary version: data_batch_1.bin and so on, in\n"
                 "this order, or test_batch.bin. They may be gzipped.",
        .options = specs,
        .least_arguments = 2,
        .most_arguments = MOST_BATCHES + 1,
    };
    char **path = importer_parse(&cifar10.importer, &usage, argc, argv);
    interrupt_catch();
    cifar10.path = path;
    while (path[cifar10.batches + 1])
        cifar10.batches++;
    if (cifar10.batches * cifar10.count > MOST_RECORDS)
        message_misuse(usage.command,
                       "%d files of %lld records: keys of %d digits "
                       "end at %d records",
                       cifar10.batches, (long long)cifar10.count, KEY_DIGITS,
                       MOST_RECORDS);
    if (cifar10.count)
        cifar10.importer.count = cifar10.batches * cifar10.count;
    importer_check(&cifar10.importer, path[cifar10.batches]);
    add_arguments(&cifar10);
    int status = importer_run(&cifar10.importer, path[cifar10.batches]);
    record_file_close(&cifar10.batch);
    return status;
}
