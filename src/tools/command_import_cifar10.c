/* command_import_cifar10.c: `leat import cifar10`, as convert_cifar_data. */
#include "tools/cli/message.h"
#include "tools/command.h"
#include "tools/import/importer.h"
#include "tools/import/record_file.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

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
static int read_record(struct cifar10 *self, const unsigned char **record)
{
    int status = LEAT_END;
    if (self->batch.stream)
        status = record_file_next(&self->batch, record);
    while (status == LEAT_END && self->opened < self->batches) {
        record_file_close(&self->batch);
        status = record_file_open(&self->batch, self->path[self->opened++],
                                  CIFAR10_BATCH, self->count);
        if (!status)
            status = record_file_next(&self->batch, record);
    }
    self->next += !status;
    return status;
}

static int next_record(struct importer *importer, struct record *out)
{
    struct cifar10 *self = (struct cifar10 *)importer;
    const unsigned char *record;
    int status = read_record(self, &record);
    if (status)
        return status;
    const leat_datum datum = {.channels = CIFAR10_CHANNELS,
                              .height = CIFAR10_SIDE,
                              .width = CIFAR10_SIDE,
                              .label = record[0],
                              .data = record + 1,
                              .data_size = CIFAR10_IMAGE};
    out->number = self->next - 1;
    out->name = NULL;
    out->value = self->record;
    out->size = leat_datum_write(&datum, self->record);
    return LEAT_OK;
}

static int seek_record(struct importer *importer, int64_t number)
{
    struct cifar10 *self = (struct cifar10 *)importer;
    const unsigned char *record;
    int status = LEAT_OK;
    while (!status && self->next < number)
        status = read_record(self, &record);
    return status < 0 ? status : LEAT_OK;
}

static int add_arguments(struct cifar10 *self)
{
    int status = importer_add(&self->importer, "cifar10, %lld records a file",
                              (long long)self->count);
    for (int i = 0; i < self->batches && !status; i++)
        status = importer_add_file(&self->importer, self->path[i]);
    return status;
}

int command_import_cifar10(int argc, char **argv)
{
    struct cifar10 self = {.importer = {.unit = "images",
                                        .count = -1,
                                        .digits = KEY_DIGITS,
                                        .next = next_record,
                                        .seek = seek_record},
                           .count = CIFAR10_COUNT};
    const struct option_spec specs[] = {
        {"count", "N", "records in each file (10000); 0: as many as it has",
         option_int, &self.count, 0, MOST_RECORDS},
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
    char **path;
    int n;
    int status = importer_parse(&self.importer, &usage, argc, argv, &path, &n);
    if (status != OPTION_GO)
        return status;
    self.path = path;
    self.batches = n - 1;
    if (self.batches * self.count > MOST_RECORDS)
        return message_misuse(usage.command,
                              "%d files of %lld records: keys of %d digits "
                              "end at %d records",
                              self.batches, (long long)self.count, KEY_DIGITS,
                              MOST_RECORDS);
    if (self.count)
        self.importer.count = self.batches * self.count;
    status = importer_run(&self.importer, path[n - 1], add_arguments(&self));
    record_file_close(&self.batch);
    return status;
}
