/* import_images.c: `leat import images`, as Caffe's convert_imageset. */
#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/command.h"
#include "tools/database/factory.h"
#include "tools/import/image_list.h"
#include "tools/import/image_record.h"
#include "tools/import/importer.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    KEY_DIGITS = 8,
    MOST_SIDE = 1 << 20,
    MOST_PIXELS = 1 << 29, /* three bytes each are a record's most */
    MOST_TOLD = 20         /* images of a kind that are named on stderr */
};

struct image_import {
    struct record_source source; /* first */
    struct image_record_options wanted;
    struct image_list *list;
    struct factory *factory;
    const char *path;   /* of the list, "-" is stdin */
    int64_t first;      /* line where this run begins */
    int64_t next;       /* line to be taken */
    int64_t images;     /* taken in this run, unreadable ones included */
    int64_t unreadable; /* of these */
    int64_t warned;     /* images whose codec warned */
    json_t *bad;        /* what is said of the unreadable; NULL: not wanted */
    json_t *dubious;    /* and of the others; likewise */
    int checks_size;    /* all images must have one shape */
    int shape[3];       /* of the first; channels 0: not known yet */
};

/* A thread makes its records of the list that all share. */
struct image_bench {
    const struct image_import *import;
    struct image_record_maker *maker;
};

static void close_bench(void *argument)
{
    struct image_bench *bench = argument;
    if (bench)
        image_record_maker_destroy(bench->maker);
    free(bench);
}

static int open_bench(void **out, const void *context)
{
    struct image_bench *bench = calloc(1, sizeof(*bench));
    if (!bench)
        return leat_error(LEAT_ENOMEM, "out of memory for images");
    bench->import = context;
    int status =
        image_record_maker_create(&bench->maker, &bench->import->wanted);
    if (status) {
        close_bench(bench);
        return status;
    }
    *out = bench;
    return LEAT_OK;
}

/* A blank line's record has no bytes. */
static int make_record(void *argument, int64_t line, struct factory_record *out)
{
    struct image_bench *bench = argument;
    const struct image_list *list = bench->import->list;
    const char *name = image_list_name(list, line);
    if (!name)
        return LEAT_OK;
    struct image_record record;
    struct image_label label = image_list_label(list, line);
    int status = image_record_make(bench->maker, name, &label, &record);
    if (status)
        return status;
    out->bytes = record.bytes;
    out->size = record.size;
    memcpy(out->shape, record.shape, sizeof(out->shape));
    snprintf(out->warning, sizeof(out->warning), "%s",
             record.warning ? record.warning : "");
    return LEAT_OK;
}

static int start(struct image_import *import)
{
    const struct factory_order order = {.first = import->first,
                                        .end = image_list_lines(import->list),
                                        .run = 1,
                                        .bytes = FACTORY_BYTES,
                                        .context = import,
                                        .open = open_bench,
                                        .close = close_bench,
                                        .make = make_record};
    import->next = import->first;
    return factory_open(&import->factory, &order);
}

/* Names the unreadable image of a line: the thread's error is about it. */
static void note_unreadable(struct image_import *import, int64_t line)
{
    const char *error = leat_last_error();
    if (++import->unreadable <= MOST_TOLD)
        message_error("%s", error);
    if (import->bad)
        json_array_append_new(
            import->bad,
            json_pack("{s:I, s:o, s:o}", "number", (json_int_t)line, "name",
                      output_text(image_list_name(import->list, line)), "error",
                      output_text(error)));
}

/* Says of a line's image what its codec said, which Caffe's tool prints too. */
static void note_warning(struct image_import *import, int64_t line,
                         const char *warning)
{
    const char *name = image_list_name(import->list, line);
    if (++import->warned <= MOST_TOLD)
        message_error("%s: kept, but its codec warns: %s", name, warning);
    if (import->dubious)
        json_array_append_new(
            import->dubious,
            json_pack("{s:I, s:o, s:o}", "number", (json_int_t)line, "name",
                      output_text(name), "warning", output_text(warning)));
}

static int check_size(struct image_import *import, int64_t line,
                      const int shape[3])
{
    int *first = import->shape;
    if (!import->checks_size)
        return LEAT_OK;
    if (!first[0])
        memcpy(first, shape, sizeof(import->shape));
    if (!memcmp(first, shape, sizeof(import->shape)))
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "%s: %dx%dx%d, where the first image is %dx%dx%d "
                      "(--check-size)",
                      image_list_name(import->list, line), shape[0], shape[1],
                      shape[2], first[0], first[1], first[2]);
}

static const char *list_name(const struct image_import *import)
{
    return strcmp(import->path, "-") != 0 ? import->path : "stdin";
}

/* At the end: a list of which nothing could be read is wrong itself. What is
   wrong with each image has been told. */
static int finish(const struct image_import *import)
{
    if (import->first || import->unreadable < import->images)
        return LEAT_END;
    if (import->images == 1)
        return leat_error(LEAT_EDATA, "%s: its only image cannot be read",
                          list_name(import));
    return leat_error(LEAT_EDATA,
                      "%s: none of its %lld images can be read; do their names "
                      "begin in --root?",
                      list_name(import), (long long)import->images);
}

static int next_record(struct record_source *source, struct record *out)
{
    struct image_import *import = (struct image_import *)source;
    int status = import->factory ? LEAT_OK : start(import);
    while (!status) {
        struct factory_record record;
        status = factory_take(import->factory, &record);
        if (status == LEAT_END)
            return finish(import);
        int64_t line = import->next++;
        if (status == LEAT_EDATA) {
            import->images++;
            note_unreadable(import, line);
            status = interrupt_check();
        } else if (!status && record.size) {
            import->images++;
            if (*record.warning)
                note_warning(import, line, record.warning);
            *out = (struct record){line, image_list_name(import->list, line),
                                   record.bytes, record.size};
            return check_size(import, line, record.shape);
        }
    }
    return status;
}

/* Finds the first image's shape again, which a run before has seen. */
static int find_shape(struct image_import *import)
{
    void *bench = NULL;
    int status = open_bench(&bench, import);
    if (!bench)
        return status;
    status = LEAT_EDATA;
    for (int64_t i = 0; i < import->first && status == LEAT_EDATA; i++) {
        struct factory_record record = {0};
        status = make_record(bench, i, &record);
        if (!status && !record.size)
            status = LEAT_EDATA;
        if (!status)
            memcpy(import->shape, record.shape, sizeof(import->shape));
    }
    close_bench(bench);
    return status == LEAT_EDATA ? LEAT_OK : status;
}

static int seek_record(struct record_source *source, int64_t number)
{
    struct image_import *import = (struct image_import *)source;
    import->first = number;
    return import->checks_size ? find_shape(import) : LEAT_OK;
}

static int report(struct record_source *source, int64_t records, json_t *object)
{
    struct image_import *import = (struct image_import *)source;
    int64_t images = image_list_images(import->list);
    int64_t missing = images - records;
    if (object) {
        json_object_set_new(object, "unreadable", json_integer(missing));
        json_object_set(object, "unreadable_images", import->bad);
        json_object_set_new(object, "warned", json_integer(import->warned));
        json_object_set(object, "warned_images", import->dubious);
    }
    if (import->warned)
        message_error("%s: %s kept, but made %s codec warn", list_name(import),
                      output_count(import->warned, "image is", "images are"),
                      import->warned == 1 ? "its" : "their");
    if (!missing)
        return 0;
    char before[96] = "";
    if (missing > import->unreadable)
        snprintf(before, sizeof(before), ", %lld of them found before",
                 (long long)(missing - import->unreadable));
    return message_found("%s: %lld of its %s cannot be read and %s left out%s",
                         list_name(import), (long long)missing,
                         output_count(images, "image", "images"),
                         missing == 1 ? "is" : "are", before);
}

struct image_options {
    struct importer_options importer;
    const char *root;
    int size[2];
    int64_t labels; /* 0: a class */
    int gray;
    int encoded;
    const char *encode_type;
    int shuffle;
    int64_t seed; /* below 0: not given */
    int check_size;
    int64_t max_image_bytes; /* 0: the default */
};

/* The place that names are relative to, in words that do not depend on it. */
static int add_root(struct import_arguments *arguments, const char *root)
{
    char *path = realpath(root ? root : ".", NULL);
    if (!path)
        return leat_error(LEAT_EIO, "%s: %s", root ? root : ".",
                          strerror(errno));
    int status = import_arguments_add(arguments, "in %s", path);
    free(path);
    return status;
}

static int open_list(struct image_import *import,
                     struct import_arguments *arguments,
                     const struct image_options *options)
{
    int status = add_root(arguments, options->root);
    if (!status)
        status =
            image_list_open(&import->list, import->path, (int)options->labels);
    if (status)
        return status;
    if (options->shuffle)
        image_list_shuffle(import->list,
                           options->seed < 0 ? 1 : (uint64_t)options->seed);
    import->source.count = image_list_lines(import->list);
    const struct image_record_options *wanted = &import->wanted;
    if (wanted->max_image_bytes)
        status = import_arguments_add(arguments, "max image bytes %zu",
                                      wanted->max_image_bytes);
    if (!status && options->labels)
        status = import_arguments_add(arguments, "%lld labels",
                                      (long long)options->labels);
    if (status)
        return status;
    return import_arguments_add(
        arguments,
        "%lld lines %016llx, size %d,%d, gray %d, encoding %d, "
        "check %d",
        (long long)import->source.count,
        (unsigned long long)image_list_digest(import->list), wanted->size[0],
        wanted->size[1], wanted->gray, (int)wanted->encoding,
        import->checks_size);
}

static int check_options(const struct image_options *options,
                         const char *command, enum image_encoding *encoding)
{
    const char *type = options->encode_type;
    *encoding = options->encoded ? IMAGE_BY_NAME : IMAGE_RAW;
    if (type && (!strcasecmp(type, "jpg") || !strcasecmp(type, "jpeg")))
        *encoding = IMAGE_JPEG;
    else if (type && !strcasecmp(type, "png"))
        *encoding = IMAGE_PNG;
    else if (type)
        return message_misuse(command,
                              "--encode-type: expected jpg or png, "
                              "found '%s'",
                              type);
    if ((int64_t)options->size[0] * options->size[1] > MOST_PIXELS)
        return message_misuse(command, "--resize: more than %d pixels",
                              MOST_PIXELS);
    if (options->seed >= 0 && !options->shuffle)
        return message_misuse(command, "--seed is that of --shuffle");
    return OPTION_GO;
}

static int run_import(const struct image_options *options,
                      enum image_encoding encoding, char *const path[])
{
    struct image_import import = {
        .source = {"images", 0, KEY_DIGITS, next_record, seek_record, report},
        .wanted = {options->root,
                   {options->size[0], options->size[1]},
                   options->gray,
                   encoding,
                   (size_t)options->max_image_bytes},
        .path = path[0],
        .checks_size = options->check_size,
        .bad = options->importer.json ? json_array() : NULL,
        .dubious = options->importer.json ? json_array() : NULL};
    struct import_arguments arguments = {0};
    int status = open_list(&import, &arguments, options);
    int exit_status = status ? message_last_error()
                             : importer_run(&options->importer, &import.source,
                                            &arguments, path[1]);
    factory_close(import.factory);
    image_list_close(import.list);
    json_decref(import.bad);
    json_decref(import.dubious);
    import_arguments_finish(&arguments);
    return exit_status;
}

int command_import_images(int argc, char **argv)
{
    interrupt_catch();
    struct image_options options = {.seed = -1};
    struct option_spec shared[IMPORTER_OPTIONS];
    importer_list_options(shared, &options.importer);
    const struct option_spec specs[] = {
        {"root", "DIR", "where the names in LIST begin", option_text,
         &options.root, 0, 0},
        {"labels", "N", "each line has N labels, whole numbers or not",
         option_int, &options.labels, 1, IMAGE_LABELS_MOST},
        {"resize", "HxW", "resize images to this height and width", option_size,
         options.size, 1, MOST_SIDE},
        {"gray", NULL, "make images gray", NULL, &options.gray, 0, 0},
        {"encoded", NULL, "keep images encoded, as their files are", NULL,
         &options.encoded, 0, 0},
        {"encode-type", "TYPE", "encode images as jpg or png", option_text,
         &options.encode_type, 0, 0},
        {"shuffle", NULL, "put the images into a random order", NULL,
         &options.shuffle, 0, 0},
        {"seed", "S", "the same seed gives the same order (1)", option_int,
         &options.seed, 0, INT64_MAX},
        {"check-size", NULL, "all images must have the first one's shape", NULL,
         &options.check_size, 0, 0},
        {"max-image-bytes", "N", "memory that decoding an image may take",
         option_bytes, &options.max_image_bytes, 1, INT64_MAX},
        {0}};
    const struct usage usage = {
        .command = "import images",
        .arguments = "[options] LIST OUT",
        .about = "Makes the LMDB that Caffe's convert_imageset makes of JPEG\n"
                 "and PNG files. Each line of LIST is a file's name, a space\n"
                 "and a label; - reads it from stdin. With --labels N there\n"
                 "are N numbers, which stand in float_data beside the image:\n"
                 "leat's layer gives them as N labels, Caffe's gives 0.",
        .options = specs,
        .least_arguments = 2,
        .most_arguments = 2,
        .shared = shared,
        .removed = &importer_removed,
    };
    char **path;
    int n;
    enum image_encoding encoding;
    int status = option_parse(&usage, argc, argv, &path, &n);
    if (status == OPTION_GO)
        status = check_options(&options, usage.command, &encoding);
    return status == OPTION_GO ? run_import(&options, encoding, path) : status;
}
