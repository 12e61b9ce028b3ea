#include "tools/import/cifar_batch.h"

#include "tools/import/gzip_file.h"

#include <leat/ext/reader.h>

#include <stdlib.h>

/* A record is a byte of label and an image. */
enum { RECORD_BYTES = 1 + CIFAR_BATCH_IMAGE };

struct cifar_batch {
    struct gzip_file *file;
    int64_t records; /* 0: any number but none */
    int64_t next;    /* record */
    unsigned char record[RECORD_BYTES];
};

int cifar_batch_open(struct cifar_batch **out, const char *path,
                     int64_t records)
{
    struct cifar_batch *batch = malloc(sizeof(*batch));
    if (!batch)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    batch->records = records;
    batch->next = 0;
    int status = gzip_file_open(&batch->file, path);
    if (status) {
        free(batch);
        return status;
    }
    *out = batch;
    return LEAT_OK;
}

/* That the file ends here. */
static int check_end(struct cifar_batch *batch)
{
    unsigned char byte;
    size_t got;
    int status = gzip_file_read(batch->file, &byte, 1, &got);
    if (status)
        return status;
    if (got)
        return leat_error(LEAT_EFORMAT,
                          "%s: goes on after the %lld records of %d bytes that "
                          "were expected; --count gives another number",
                          gzip_file_path(batch->file),
                          (long long)batch->records, RECORD_BYTES);
    return LEAT_END;
}

/* The file ended with `got` bytes of a record read. */
static int refuse_end(const struct cifar_batch *batch, size_t got)
{
    const char *path = gzip_file_path(batch->file);
    const char *where = got ? "in" : "before";
    if (!batch->records)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends %s record %lld, expected records of %d "
                          "bytes",
                          path, where, (long long)batch->next, RECORD_BYTES);
    return leat_error(LEAT_EFORMAT,
                      "%s: ends %s record %lld of the %lld that were expected; "
                      "--count gives another number",
                      path, where, (long long)batch->next,
                      (long long)batch->records);
}

int cifar_batch_next(struct cifar_batch *batch, const unsigned char **image,
                     int *label)
{
    if (batch->records && batch->next == batch->records)
        return check_end(batch);
    size_t got;
    int status = gzip_file_read(batch->file, batch->record, RECORD_BYTES, &got);
    if (status)
        return status;
    /* What is no batch at all shows here, before it shows in its size. */
    if (got && batch->record[0] >= CIFAR_BATCH_LABELS)
        return leat_error(LEAT_EFORMAT,
                          "%s: no batch of CIFAR-10's binary version: record "
                          "%lld has label %d, expected 0 to %d",
                          gzip_file_path(batch->file), (long long)batch->next,
                          batch->record[0], CIFAR_BATCH_LABELS - 1);
    if (!got && !batch->records && batch->next)
        return LEAT_END;
    if (got < RECORD_BYTES)
        return refuse_end(batch, got);
    batch->next++;
    *image = batch->record + 1;
    *label = batch->record[0];
    return LEAT_OK;
}

void cifar_batch_close(struct cifar_batch *batch)
{
    if (!batch)
        return;
    gzip_file_close(batch->file);
    free(batch);
}
