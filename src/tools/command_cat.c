/* command_cat.c: `leat cat`, the samples of a pipeline as text. */
#include "tools/cli/cleanup.h"
#include "tools/cli/interrupt.h"
#include "tools/command.h"
#include "tools/database/database.h"
#include "tools/database/inspection.h"
#include "tools/delivery/image_reader.h"
#include "tools/delivery/npy_header.h"

#include <leat/image.h>
#include <leat/reader.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cat_options {
    int64_t skip;
    int64_t count; /* below 0: all */
    bool values;
    bool json;
};

struct cat {
    const struct cat_options *options;
    leat_reader *reader;
    leat_image_decoder *decoder;
    leat_sample sample;
    const leat_field_spec *spec;
    int nspec;
    int64_t bad;
    char first_bad[512];
};

enum { REAL_TEXT = 48 };

/* As few digits as read back as the same value: 9 are enough for float32. */
static const char *write_real(char out[REAL_TEXT],
                              const struct npy_header *type, long double value)
{
    bool is_wide = type->bytes > 4;
    int digits = is_wide ? 15 : 9;
    do
        snprintf(out, REAL_TEXT, "%.*Lg", digits, value);
    while (is_wide && digits++ < 17 && strtod(out, NULL) != (double)value);
    return out;
}

/* An element; of bfloat16 the bits. In JSON a real number shows that it is one.
 */
static void print_element(const struct cat *cat, const struct npy_header *type,
                          const void *data, size_t i)
{
    long double value = npy_header_value(type, data, i);
    char text[REAL_TEXT];
    bool is_json = cat->options->json;
    if (type->kind != 'f') {
        printf("%lld", (long long)value);
    } else if (is_json && !isfinite(value)) {
        printf("null");
    } else {
        printf("%s", write_real(text, type, value));
        if (is_json && !text[strspn(text, "-0123456789")])
            printf(".0");
    }
}

/* The kind and shape of an encoded image, from its header; NULL: unreadable. */
static const char *describe_image(struct cat *cat, const leat_field *field,
                                  char *out, size_t size)
{
    leat_image image;
    if (field->dtype != LEAT_BYTES || !field->bytes)
        return NULL;
    int status = leat_image_probe(cat->decoder, field->data, field->bytes,
                                  LEAT_COLOR_NATIVE, &image);
    if (status == LEAT_EDATA)
        return NULL;
    output_require(status);
    snprintf(out, size, "%s %dx%dx%d", image_reader_encoding(field),
             image.channels, image.height, image.width);
    return out;
}

static const char *field_name(const struct cat *cat, int i)
{
    return i < cat->nspec && cat->spec[i].name ? cat->spec[i].name : "?";
}

static void print_elements(const struct cat *cat, const struct npy_header *type,
                           const void *data, const char *separator)
{
    for (size_t i = 0; i < type->count; i++) {
        printf("%s", i ? separator : "");
        print_element(cat, type, data, i);
    }
}

static void print_field(struct cat *cat, int i)
{
    const leat_field *field = &cat->sample.field[i];
    struct npy_header type =
        npy_header_of(field->dtype, field->ndim, field->shape);
    char image[64];
    printf("\t%s=", plain_text(field_name(cat, i)));
    if (!field->ndim) {
        print_element(cat, &type, field->data, 0);
        return;
    }
    printf("%s", leat_dtype_name(field->dtype));
    for (int k = 0; k < field->ndim; k++)
        printf("%c%lld", k ? 'x' : ' ', (long long)field->shape[k]);
    if (describe_image(cat, field, image, sizeof(image)))
        printf(" %s", image);
    if (!cat->options->values)
        return;
    printf("%s", type.count ? ": " : "");
    print_elements(cat, &type, field->data, " ");
}

/* Prints it, an object without its braces with JSON_EMBED, and frees it. */
static void print_value(json_t *value, size_t flags)
{
    bool failed = !value || output_json_write(value, flags);
    json_decref(value);
    if (failed && !output_has_failed())
        message_fail("out of memory for a line of JSON");
}

/* Elements are many: they are printed one by one. */
static void print_json_field(struct cat *cat, int i)
{
    const leat_field *field = &cat->sample.field[i];
    struct npy_header type =
        npy_header_of(field->dtype, field->ndim, field->shape);
    char image[64];
    print_value(output_text(field_name(cat, i)), JSON_ENCODE_ANY);
    printf(": ");
    if (!field->ndim) {
        print_element(cat, &type, field->data, 0);
        return;
    }
    json_t *shape = json_array();
    for (int k = 0; k < field->ndim; k++)
        json_array_append_new(shape, json_integer(field->shape[k]));
    json_t *out = json_pack(
        "{s:s, s:o, s:s*}", "dtype", leat_dtype_name(field->dtype), "shape",
        shape, "image", describe_image(cat, field, image, sizeof(image)));
    putchar('{');
    print_value(out, JSON_EMBED);
    if (cat->options->values) {
        printf(", \"values\": [");
        print_elements(cat, &type, field->data, ", ");
        putchar(']');
    }
    putchar('}');
}

/* The members that a line has of its own. */
static bool is_member(const char *name)
{
    static const char *const members[] = {"record", "key", "bad", "fields"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, members[i]))
            return true;
    return false;
}

/* Prints the fields that have the name of a member, or the others. */
static void print_fields(struct cat *cat, bool are_members, const char *before)
{
    for (int i = 0; i < cat->sample.nfields; i++) {
        if (is_member(field_name(cat, i)) != are_members)
            continue;
        printf("%s", before);
        print_json_field(cat, i);
        before = ", ";
    }
}

/* A field is a member by its name, unless a member of the line has that name:
   then it is one of "fields". */
static void print_json(struct cat *cat, const char *key)
{
    const leat_sample *sample = &cat->sample;
    bool has_fields = false;
    putchar('{');
    print_value(json_pack("{s:I, s:s*}", "record",
                          (json_int_t)sample->from.record, "key", key),
                JSON_EMBED);
    print_fields(cat, false, ", ");
    for (int i = 0; i < sample->nfields; i++)
        has_fields |= is_member(field_name(cat, i));
    if (has_fields) {
        printf(", \"fields\": {");
        print_fields(cat, true, "");
        putchar('}');
    }
    printf("}\n");
}

static void print_sample(struct cat *cat)
{
    const leat_sample *sample = &cat->sample;
    const leat_provenance *from = &sample->from;
    char text[KEY_TEXT];
    const char *key = from->key ? inspection_key(text, from->key,
                                                 from->key_size, from->key_cut)
                                : NULL;
    if (cat->options->json) {
        print_json(cat, key);
        return;
    }
    printf("%lld\t%s", (long long)from->record, key ? plain_text(key) : "-");
    for (int i = 0; i < sample->nfields; i++)
        print_field(cat, i);
    printf("\n");
}

/* A bad record has a line, too. */
static void print_bad(struct cat *cat)
{
    const char *line = leat_last_error();
    long long record = (long long)cat->sample.from.record;
    if (!cat->bad++)
        snprintf(cat->first_bad, sizeof(cat->first_bad), "%s", line);
    if (cat->options->json) {
        print_value(json_pack("{s:I, s:o}", "record", (json_int_t)record, "bad",
                              output_text(line)),
                    0);
        putchar('\n');
    } else {
        printf("%lld\tbad\t%s\n", record, plain_text(line));
    }
}

/* Reads the next sample; a bad one is LEAT_EDATA. Other errors end the program.
 */
static int read_sample(struct cat *cat)
{
    int status = leat_reader_next(cat->reader, &cat->sample);
    if (interrupt_check())
        output_exit(EXIT_FAILED);
    if (status != LEAT_EDATA)
        output_require_sound(status);
    return status;
}

/* Seeks, or reads where the reader cannot seek, or may end before that. */
static void skip(struct cat *cat)
{
    int64_t count, skipped = cat->options->skip;
    int status = LEAT_EUNSUPPORTED;
    if (!skipped)
        return;
    if (!leat_reader_count(cat->reader, &count)) {
        skipped = skipped < count ? skipped : count;
        status =
            leat_reader_seek(cat->reader, (leat_position){0, skipped}, NULL);
    }
    if (status == LEAT_EUNSUPPORTED)
        status = leat_reader_skip(cat->reader, skipped, &skipped);
    if (status != LEAT_END)
        output_require_sound(status);
}

static void print_samples(struct cat *cat)
{
    int64_t left = cat->options->count;
    int status = database_fields(cat->reader, &cat->spec, &cat->nspec);
    output_require_sound(status);
    for (; status != LEAT_END && left != 0; left--) {
        status = read_sample(cat);
        if (!status)
            print_sample(cat);
        else if (status == LEAT_EDATA)
            print_bad(cat);
        if (output_has_failed())
            output_require(output_flush());
    }
}

static void cancel_reader(void *reader)
{
    leat_reader_cancel(reader);
}

static void close_reader(void *reader)
{
    interrupt_unwatch(reader);
    leat_reader_close(reader);
}

static int cat_pipeline(const struct cat_options *options, const char *text)
{
    struct cat cat = {.options = options};
    leat_pipeline *pipeline;
    leat_sample_init(&cat.sample);
    output_require(leat_image_decoder_create(&cat.decoder));
    output_require(database_pipeline(&pipeline, text));
    output_require(leat_pipeline_open(pipeline, &cat.reader));
    interrupt_watch(cancel_reader, cat.reader);
    cleanup_add(close_reader, cat.reader);
    skip(&cat);
    print_samples(&cat);
    leat_sample_finish(&cat.sample);
    cleanup_remove(cat.reader);
    close_reader(cat.reader);
    leat_pipeline_unref(pipeline);
    leat_image_decoder_destroy(cat.decoder);
    if (!cat.bad)
        return 0;
    return message_found("%s bad; the first: %s",
                         output_count(cat.bad, "record is", "records are"),
                         cat.first_bad);
}

int command_cat(int argc, char **argv)
{
    struct cat_options options = {.count = -1};
    const struct option_spec specs[] = {
        {"skip", "N", "start with sample N (0)", option_int, &options.skip, 0,
         INT64_MAX},
        {"count", "N", "stop after N samples", option_int, &options.count, 0,
         INT64_MAX},
        option_flag("values", "also print all elements", &options.values),
        option_flag("json", "print one JSON object a line", &options.json),
        {0}};
    const struct usage usage = {
        .command = "cat",
        .arguments = "[options] DB|PIPELINE",
        .about = "Prints the samples of an LMDB, or of a pipeline such as\n"
                 "lmdb:mnist_test_lmdb, one a line: record, key, and each\n"
                 "field with its type and shape, or its value if it is a\n"
                 "single number. A bad record has a line with the reason;\n"
                 "the status is then 1.",
        .options = specs,
        .least_arguments = 1,
        .most_arguments = 1,
    };
    char **arguments = option_parse(&usage, argc, argv);
    interrupt_catch_opening();
    return cat_pipeline(&options, arguments[0]);
}
