/*
 * fuzz_groups.c: any bytes as the arguments of the decorators that make groups,
 * over samples of several lengths: they are refused with a line, or make groups
 * whose fields are what they promise and have the bytes of their shapes.
 */
#include <leat.h>
#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAMPLES = 11, TEXT_MAX = 256, READ_MAX = 30 };

/* x, int32, of 0 to 4 elements; y, uint8, of 2 x 3; z, a scalar. */
static int next(void *pass, leat_sample *sample)
{
    static const int32_t numbers[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t shape[] = {2, 3};
    const int64_t length = sample->from.record * 7 % 5;
    (void)pass;
    if (sample->from.record == SAMPLES)
        return LEAT_END;
    sample->stable = 1;
    if (leat_sample_set(sample, 0, LEAT_INT32, 1, &length, numbers) ||
        leat_sample_set(sample, 1, LEAT_UINT8, 2, shape, numbers))
        abort();
    return leat_sample_set(sample, 2, LEAT_FLOAT32, 0, NULL, numbers);
}

static int reset(void *pass)
{
    (void)pass;
    return LEAT_OK;
}

static leat_pipeline *make_source(void)
{
    static const leat_field_spec fields[] = {
        {.name = "x", .dtype = LEAT_INT32, .ndim = 1, .shape = {-1}},
        {.name = "y", .dtype = LEAT_UINT8, .ndim = 2, .shape = {2, 3}},
        {.name = "z", .dtype = LEAT_FLOAT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 3,
                                      .next = next,
                                      .reset = reset};
    leat_pipeline *made;
    if (leat_pipeline_callback(&made, &callbacks, NULL))
        abort();
    return made;
}

static const leat_reader_type *find_type(const char *name)
{
    const leat_reader_type *type;
    for (int i = 0; (type = leat_reader_type_at(i)) != NULL; i++)
        if (strcmp(type->name, name) == 0)
            return type;
    abort();
}

/* Shapes of any size may be asked for: no memory is an error like others. */
static void *allocate(void *user, size_t bytes, size_t alignment)
{
    const size_t most = (size_t)64 << 20;
    (void)user;
    return bytes > most ? NULL
                        : aligned_alloc(alignment, (bytes + alignment - 1) /
                                                       alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(memory);
}

static const leat_allocator little = {
    .size = sizeof(little), .alloc = allocate, .free = release};

/* The field is as the spec says, and all of its bytes are there. */
static void check_field(const leat_field_spec *spec, const leat_field *field)
{
    size_t bytes = leat_dtype_size(field->dtype);
    if (field->dtype != spec->dtype || field->ndim != spec->ndim)
        abort();
    for (int i = 0; i < field->ndim; i++) {
        if (spec->shape[i] >= 0 && field->shape[i] != spec->shape[i])
            abort();
        bytes *= (size_t)field->shape[i];
    }
    for (size_t i = 0; i < bytes; i++)
        (void)*((const volatile unsigned char *)field->data + i);
}

static void read_groups(leat_reader *reader)
{
    const leat_field_spec *spec;
    leat_sample sample;
    int n, status = leat_reader_fields(reader, &spec, &n);
    leat_sample_init(&sample);
    sample.allocator = &little;
    for (int i = 0; i < READ_MAX && !status; i++) {
        status = leat_reader_next(reader, &sample);
        for (int k = 0; k < n && !status; k++)
            check_field(&spec[k], &sample.field[k]);
        if (!status && sample.nfields != n)
            abort();
        if (status == LEAT_EDATA && leat_last_error()[0])
            status = LEAT_OK;
    }
    if (status && status != LEAT_END && !leat_last_error()[0])
        abort();
    leat_sample_finish(&sample);
}

/* The first byte is the decorator, the rest its arguments. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"batch", "window", "bucket", "unbatch"};
    char text[TEXT_MAX];
    leat_pipeline *source = make_source(), *made;
    leat_reader *reader;
    if (size > 0 && size < TEXT_MAX) {
        memcpy(text, data + 1, size - 1);
        text[size - 1] = 0;
        if (leat_pipeline_create(&made, find_type(names[data[0] % 4]), text,
                                 NULL, NULL, &source, 1) == LEAT_OK) {
            leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
            options.allocator = &little;
            if (leat_pipeline_open_with(made, &options, &reader) == LEAT_OK) {
                read_groups(reader);
                leat_reader_close(reader);
            }
            leat_pipeline_unref(made);
        }
    }
    leat_pipeline_unref(source);
    return 0;
}
