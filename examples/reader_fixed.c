/*
 * reader_fixed: the reader `cifar`, a file of records of one size, a byte of
 * label and then channels x height x width pixels, as CIFAR-10's binary files
 * have them.
 */
#include "own_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixed_reader {
    leat_reader reader; /* first: all that leat sees of it */
    const char *path;   /* borrowed from the arguments */
    int file;
    int64_t record_size; /* bytes */
    int64_t classes;     /* labels are below */
    int64_t count;
    leat_field_spec spec[2];
    leat_position next; /* of the one caller at a time */
    atomic_int cancelled;
} fixed_reader;

static int bad_record(const fixed_reader *fixed, int status, int64_t record,
                      const char *what)
{
    return leat_error(status, "%s: record %lld: %s", fixed->path,
                      (long long)record, what);
}

static int read_bytes(const fixed_reader *fixed, int64_t record,
                      unsigned char *to)
{
    int64_t done = 0;
    while (done < fixed->record_size) {
        ssize_t n =
            pread(fixed->file, to + done, (size_t)(fixed->record_size - done),
                  (off_t)(record * fixed->record_size + done));
        if (n < 0 && errno != EINTR)
            return bad_record(fixed, LEAT_EIO, record, strerror(errno));
        if (n == 0)
            return bad_record(fixed, LEAT_EIO, record, "the file has shrunk");
        done += n > 0 ? n : 0;
    }
    return LEAT_OK;
}

/* Straight into the sample's own buffer, where its fields then point. */
static int read_record(fixed_reader *fixed, int64_t record, leat_sample *sample)
{
    sample->from.source = fixed->path;
    sample->from.record = record;
    sample->stable = 0;
    if (atomic_load(&fixed->cancelled))
        return bad_record(fixed, LEAT_ECANCELLED, record, "cancelled");
    unsigned char *buffer =
        leat_sample_take(sample, (size_t)fixed->record_size);
    if (!buffer)
        return LEAT_ENOMEM;
    int status = read_bytes(fixed, record, buffer);
    if (status)
        return status;
    if (buffer[0] >= fixed->classes)
        return bad_record(fixed, LEAT_EDATA, record, "no such label");
    status = leat_sample_set(sample, sample->nfields, LEAT_UINT8, 3,
                             fixed->spec[0].shape, buffer + 1);
    return status ? status
                  : leat_sample_set(sample, sample->nfields, LEAT_UINT8, 0,
                                    NULL, buffer);
}

/* The good samples, and the status that ended them. */
static int fixed_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    int done = 0;
    int status = LEAT_OK;
    while (done < n && status == LEAT_OK) {
        status = read_record((fixed_reader *)reader, at[done].index, out[done]);
        done += status == LEAT_OK;
    }
    *got = done;
    return status;
}

/* One at a time is allowed. A bad record is stepped over. */
static int fixed_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    fixed_reader *fixed = (fixed_reader *)reader;
    (void)n;
    if (fixed->next.index == fixed->count)
        return LEAT_END;
    int status = fixed_read_at(reader, &fixed->next, out, 1, got);
    fixed->next.index += status == LEAT_OK || status == LEAT_EDATA;
    return status;
}

static int fixed_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    *out = ((const fixed_reader *)reader)->spec;
    *n = 2;
    return LEAT_OK;
}

static int fixed_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    fixed_reader *fixed = (fixed_reader *)reader;
    (void)mark;
    if (position.index > fixed->count)
        return leat_error(LEAT_EINVAL, "position %lld: expected 0 to %lld",
                          (long long)position.index, (long long)fixed->count);
    fixed->next = position;
    return LEAT_OK;
}

static int fixed_count(leat_reader *reader, int64_t *out)
{
    *out = ((const fixed_reader *)reader)->count;
    return LEAT_OK;
}

/* What tells this data set from another; the place in it is the layer's. */
static int fixed_save(leat_reader *reader, leat_token *token)
{
    const fixed_reader *fixed = (const fixed_reader *)reader;
    const int64_t identity[2] = {fixed->count, fixed->record_size};
    return leat_token_put(token, identity, sizeof(identity));
}

static int fixed_restore(leat_reader *reader, leat_token *token)
{
    const fixed_reader *fixed = (const fixed_reader *)reader;
    int64_t identity[2];
    int status = leat_token_get(token, identity, sizeof(identity));
    if (status)
        return status;
    if (identity[0] != fixed->count || identity[1] != fixed->record_size)
        return leat_error(LEAT_EINVAL, "%s: the token is of another file",
                          fixed->path);
    return fixed_seek(reader, (leat_position){0, 0}, NULL);
}

static void fixed_cancel(leat_reader *reader)
{
    atomic_store(&((fixed_reader *)reader)->cancelled, 1);
}

static void fixed_close(leat_reader *reader)
{
    const fixed_reader *fixed = (const fixed_reader *)reader;
    if (fixed->file >= 0)
        close(fixed->file); /* only read from */
    free(reader);
}

static const leat_reader_ops fixed_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "cifar",
    .fields = fixed_fields,
    .next = fixed_next,
    .seek = fixed_seek,
    .cancel = fixed_cancel,
    .close = fixed_close,
    .count = fixed_count,
    .read_at = fixed_read_at,
    .save = fixed_save,
    .restore = fixed_restore,
};

/* The shape is told, and with it the size of a record. */
static void read_arguments(fixed_reader *fixed, const leat_args *args)
{
    static const char *const names[] = {"channels", "height", "width"};
    leat_field_spec *data = &fixed->spec[0];
    *data = (leat_field_spec){.name = "data", .dtype = LEAT_UINT8, .ndim = 3};
    fixed->spec[1] = (leat_field_spec){.name = "label", .dtype = LEAT_UINT8};
    fixed->path = leat_args_at(args, 0);
    fixed->classes = leat_args_number(args, "classes");
    fixed->record_size = 1;
    for (int i = 0; i < 3; i++) {
        data->shape[i] = leat_args_number(args, names[i]);
        fixed->record_size *= data->shape[i];
    }
    fixed->record_size += 1;
}

static int open_file(fixed_reader *fixed)
{
    struct stat found;
    fixed->file = open(fixed->path, O_RDONLY | O_CLOEXEC);
    if (fixed->file < 0 || fstat(fixed->file, &found) != 0)
        return leat_error(LEAT_EIO, "%s: %s", fixed->path, strerror(errno));
    fixed->count = found.st_size / fixed->record_size;
    if (found.st_size % fixed->record_size)
        return leat_error(LEAT_EFORMAT,
                          "%s: %lld bytes are not a number of records of %lld",
                          fixed->path, (long long)found.st_size,
                          (long long)fixed->record_size);
    return LEAT_OK;
}

static int fixed_open(const leat_open *open, leat_reader **out)
{
    fixed_reader *fixed = calloc(1, sizeof(*fixed));
    if (!fixed)
        return leat_error(LEAT_ENOMEM, "no memory for a reader");
    fixed->reader.ops = &fixed_ops;
    fixed->file = -1;
    read_arguments(fixed, open->args);
    int status = open_file(fixed);
    if (status) {
        fixed_close(&fixed->reader);
        return status;
    }
    *out = &fixed->reader;
    return LEAT_OK;
}

/* Another path may be that of the same file, which `save` recognises. */
static const leat_argument fixed_arguments[] = {
    {.name = "file",
     .positional = 1,
     .required = 1,
     .keeps_samples = 1,
     .help = "the file"},
    {.name = "channels",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "1",
     .min = 1,
     .max = 4096,
     .help = "of an image"},
    {.name = "height",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "1",
     .min = 1,
     .max = 4096,
     .help = "of an image, in pixels"},
    {.name = "width",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "1",
     .min = 1,
     .max = 4096,
     .help = "of an image, in pixels"},
    {.name = "classes",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "256",
     .min = 1,
     .max = 256,
     .help = "labels are below it"},
    {0},
};

const leat_reader_type reader_fixed = {
    .size = sizeof(leat_reader_type),
    .name = "cifar",
    .help = "records of one size: a byte of label, then pixels",
    .arguments = fixed_arguments,
    .argument_size = sizeof(leat_argument),
    .open = fixed_open,
};
