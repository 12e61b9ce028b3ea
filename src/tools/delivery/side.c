#include "tools/delivery/side.h"

#include "base/file.h"
#include "tools/cli/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows of no elements that an array may have. */
enum { EMPTY_ROWS_MOST = 1 << 24 };

static void set_key(struct side_record *record, const leat_provenance *from)
{
    record->key = from->key;
    record->key_size = from->key_size;
    record->key_cut = from->key_cut;
}

static int next_of_database(struct side *side)
{
    struct side_record *record = &side->record;
    const leat_sample *sample = &side->database.sample;
    const leat_field *label = &sample->field[1];
    int shape[3];
    int status =
        leat_reader_next(side->database.reader, &side->database.sample);
    if (status && status != LEAT_EDATA)
        return status;
    record->number = sample->from.record;
    set_key(record, &sample->from);
    if (!status)
        status = image_reader_decode(&side->database, shape);
    if (status)
        return status;
    const int64_t dim[3] = {shape[0], shape[1], shape[2]};
    record->arrays = 2;
    record->array[0] = (struct side_array){
        "data", npy_header_of(LEAT_FLOAT32, 3, dim), side->database.image};
    record->array[1] = (struct side_array){
        "label", npy_header_of(label->dtype, label->ndim, label->shape),
        label->data};
    return LEAT_OK;
}

void side_open_database(struct side *out, const char *path,
                        size_t max_image_bytes)
{
    *out = (struct side){.next = next_of_database};
    output_require(image_reader_open(&out->database, path, max_image_bytes));
    output_require(leat_reader_count(out->database.reader, &out->count));
}

static int is_npy(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && !strcmp(entry->d_name + length - 4, ".npy");
}

bool side_is_dump(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool is_dump = false, is_database = false;
    if (!directory && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
        message_fail("%s: %s", path, strerror(errno));
    if (!directory)
        return false;
    while ((entry = readdir(directory))) {
        is_dump |= is_npy(entry);
        is_database |= !strcmp(entry->d_name, "data.mdb");
    }
    closedir(directory);
    return is_dump && !is_database;
}

/* The length of the array's name in a file's: without .npy, and a number. */
static size_t name_length(const char *file)
{
    size_t length = strlen(file) - 4, digits = 0;
    while (digits < length && file[length - 1 - digits] >= '0' &&
           file[length - 1 - digits] <= '9')
        digits++;
    bool is_numbered =
        digits >= 4 && digits + 1 < length && file[length - 1 - digits] == '.';
    return is_numbered ? length - 1 - digits : length;
}

/* Maps a file, which may be empty, and reads its header. */
static void map_file(struct dump_file *file)
{
    struct stat found;
    const char *path = file->path;
    int fd = leat__file_open_regular(AT_FDCWD, path, 0);
    bool failed = fd < 0 || fstat(fd, &found);
    if (failed && errno == ENXIO)
        message_fail("%s: expected a regular file, as leat dump writes it",
                     path);
    file->size = failed ? 0 : (size_t)found.st_size;
    if (file->size) {
        file->bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
        failed = file->bytes == MAP_FAILED;
    }
    if (failed)
        message_fail("%s: %s", path, strerror(errno));
    close(fd);
    output_require(
        npy_header_parse(&file->header, path, file->bytes, file->size));
    if (!file->header.ndim)
        message_fail("%s: a lone number has no rows", path);
}

static void unmap_file(struct dump_file *file)
{
    if (file->bytes)
        munmap(file->bytes, file->size);
    file->bytes = NULL;
}

/* Files are mapped one at a time: the kernel counts the maps of a process. */
static void map_again(struct dump_file *file)
{
    int64_t rows = file->header.dim[0];
    if (file->bytes)
        return;
    map_file(file);
    if (file->header.dim[0] != rows)
        message_fail("%s: was written to while it was compared", file->path);
}

/* The array of that name, made if need be. */
static struct dump_array *find_array(struct side *side, const char *directory,
                                     const char *name, size_t length)
{
    for (int i = 0; i < side->dumps; i++)
        if (strlen(side->dump[i].name) == length &&
            !strncmp(side->dump[i].name, name, length))
            return &side->dump[i];
    if (side->dumps == LEAT_MAX_FIELDS)
        message_fail("%s: has files of more names than the %d tops of a layer",
                     directory, LEAT_MAX_FIELDS);
    struct dump_array *array = &side->dump[side->dumps++];
    array->name = strndup(name, length);
    if (!array->name)
        message_fail("%s: out of memory", directory);
    return array;
}

static void add_file(struct side *side, const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct dump_array *array =
        find_array(side, directory, name, name_length(name));
    array->file =
        realloc(array->file, (size_t)(array->files + 1) * sizeof(*array->file));
    if (!array->file)
        message_fail("%s: out of memory", directory);
    struct dump_file *file = &array->file[array->files++];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    *file = (struct dump_file){.path = strdup(path)};
    if (!file->path)
        message_fail("%s: out of memory", directory);
    map_file(file);
    unmap_file(file);
    /* Rows of no elements may be as many as a header claims. */
    if (__builtin_add_overflow(array->rows, file->header.dim[0], &array->rows))
        message_fail("%s: more rows than can be counted", path);
}

/* Rows of no elements are as many as headers claim, not as files have room for.
 */
static int64_t empty_rows(const struct dump_array *array)
{
    int64_t rows = 0;
    for (int i = 0; i < array->files; i++)
        if (!array->file[i].header.count)
            rows += array->file[i].header.dim[0];
    return rows;
}

/* Whether it is NAME.offsets beside NAME, as dumps of ragged tops have them. */
static bool is_offsets(const struct side *side, const char *name)
{
    const char *end = strstr(name, ".offsets");
    for (int i = 0; end && i < side->dumps; i++)
        if (strlen(side->dump[i].name) == (size_t)(end - name) &&
            !strncmp(side->dump[i].name, name, (size_t)(end - name)))
            return true;
    return false;
}

static void check_rows(const struct side *side, const char *directory)
{
    const struct dump_array *first = &side->dump[0];
    for (const struct dump_array *one = first; one < first + side->dumps; one++)
        if (empty_rows(one) > EMPTY_ROWS_MOST)
            message_fail("%s: %s has %lld rows without an element", directory,
                         one->name, (long long)empty_rows(one));
        else if (is_offsets(side, one->name))
            message_fail("%s: %s are the offsets of a ragged top; compare "
                         "takes tops with a row for each sample",
                         directory, one->name);
        else if (one->rows != first->rows)
            message_fail("%s: %s has %s, %s has %lld", directory, first->name,
                         output_count(first->rows, "row", "rows"), one->name,
                         (long long)one->rows);
    if (!side->dumps)
        message_fail("%s: has no .npy files", directory);
}

/* The next row of an array that has one. */
static void take_row(struct dump_array *dump, struct side_array *out)
{
    while (dump->current_row == dump->file[dump->current].header.dim[0]) {
        unmap_file(&dump->file[dump->current++]);
        dump->current_row = 0;
    }
    struct dump_file *file = &dump->file[dump->current];
    map_again(file);
    struct npy_header *header = &out->header;
    *header = file->header;
    header->ndim--;
    memmove(header->dim, header->dim + 1,
            (size_t)header->ndim * sizeof(header->dim[0]));
    header->count /= (size_t)file->header.dim[0];
    out->name = dump->name;
    out->data =
        (const char *)file->bytes + header->offset +
        (size_t)dump->current_row++ * header->count * (size_t)header->bytes;
}

static int next_of_dump(struct side *side)
{
    if (side->step == side->count)
        return LEAT_END;
    side->record.arrays = side->dumps;
    for (int i = 0; i < side->dumps; i++)
        take_row(&side->dump[i], &side->record.array[i]);
    return LEAT_OK;
}

void side_open_dump(struct side *out, const char *directory)
{
    struct dirent **entry;
    *out = (struct side){.next = next_of_dump};
    int n = scandir(directory, &entry, is_npy, versionsort);
    if (n < 0)
        message_fail("%s: %s", directory, strerror(errno));
    for (int i = 0; i < n; i++) {
        add_file(out, directory, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    check_rows(out, directory);
    out->count = out->dump[0].rows;
}

/* Rows are compared sample by sample, and those of ragged tops are no samples.
 */
static int check_samples(const struct layer_source *source)
{
    const leat_batch *batch = leat_data_layer_batch(source->layer);
    for (int i = 0; batch && i < source->ntop; i++)
        if (leat_blob_dim(source->top[i], 0) != batch->n)
            return leat_error(
                LEAT_EUNSUPPORTED,
                "top %s has %lld rows for %lld samples; compare takes tops "
                "with a row for each sample: leat dump writes others",
                leat_data_layer_top_name(source->layer, i),
                (long long)leat_blob_dim(source->top[i], 0),
                (long long)batch->n);
    return LEAT_OK;
}

/* The next batch; a bad one has at least one row. */
static int next_batch(struct side *side)
{
    int status = layer_source_forward(&side->source);
    if (!status)
        status = check_samples(&side->source);
    if (status && status != LEAT_EDATA)
        return status;
    snprintf(side->bad, sizeof(side->bad), "%s",
             status ? leat_last_error() : "");
    side->row = 0;
    side->rows = leat_blob_dim(side->source.top[0], 0);
    if (status && !side->rows)
        side->rows = 1;
    return LEAT_OK;
}

static int next_of_layer(struct side *side)
{
    struct side_record *record = &side->record;
    const struct layer_source *source = &side->source;
    /* A rank's last batch of an epoch may be empty. */
    while (side->row == side->rows) {
        int status = next_batch(side);
        if (status)
            return status;
    }
    int64_t row = side->row++;
    if (side->bad[0])
        return leat_error(LEAT_EDATA, "%s", side->bad);
    const leat_batch *batch = leat_data_layer_batch(source->layer);
    if (batch && row < batch->valid)
        set_key(record, &batch->from[row]);
    record->arrays = source->ntop;
    for (int i = 0; i < source->ntop; i++) {
        leat_blob *top = source->top[i];
        struct side_array *array = &record->array[i];
        const char *data = leat_blob_cpu_data(top);
        if (!data)
            return LEAT_ENOMEM;
        array->name = side->name[i];
        array->header =
            npy_header_of(leat_blob_dtype(top), leat_blob_ndim(top) - 1,
                          leat_blob_shape(top) + 1);
        array->data = data + (size_t)row * array->header.count *
                                 (size_t)array->header.bytes;
    }
    return LEAT_OK;
}

/* Tops are named as dump_writer_add names their files. */
void side_open_layer(struct side *out,
                     const struct layer_source_options *options)
{
    *out = (struct side){.next = next_of_layer, .count = -1};
    output_require(layer_source_create(&out->source, options));
    output_require(layer_source_setup(&out->source));
    for (int i = 0; i < out->source.ntop; i++) {
        out->name[i] = strdup(leat_data_layer_top_name(out->source.layer, i));
        if (!out->name[i])
            message_fail("out of memory");
        for (char *c = out->name[i]; *c; c++)
            if (*c == '/')
                *c = '_';
    }
}

bool side_next(struct side *side)
{
    struct side_record *record = &side->record;
    record->number = side->step;
    record->key = NULL;
    record->arrays = 0;
    record->bad[0] = 0;
    int status = side->next(side);
    if (status == LEAT_EDATA)
        snprintf(record->bad, sizeof(record->bad), "%s", leat_last_error());
    else
        output_require(status);
    side->step++;
    return status != LEAT_END;
}

void side_close(struct side *side)
{
    image_reader_close(&side->database);
    for (struct dump_array *one = side->dump; one < side->dump + side->dumps;
         one++) {
        for (int i = 0; i < one->files; i++) {
            unmap_file(&one->file[i]);
            free(one->file[i].path);
        }
        free(one->file);
        free(one->name);
    }
    layer_source_destroy(&side->source);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        free(side->name[i]);
}
