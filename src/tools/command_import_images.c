/* command_import_images.c: `leat import images`, as Caffe's convert_imageset.
 */
#include "base/file_place.h"
#include "tools/command.h"
#include "tools/import/image_record.h"
#include "tools/import/importer.h"

#include <errno.h>
#include <malloc.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_SIDE = 1 << 20,
    MOST_PIXELS = 1 << 29, /* three bytes each are a record's most */
    MOST_NAMED = 20,       /* images of a kind that are named on stderr */
    HEAP_KEEPS = 32 << 20  /* bytes of a block; glibc's most */
};

/* Images of one kind that this run met. */
struct named {
    int64_t count;
    json_t *list; /* NULL: not wanted */
};

struct image_import {
    struct importer importer; /* first */
    const char *path;         /* of the list, "-" is stdin */
    int64_t labels;           /* 0: a class */
    const char *encode_type;
    bool encoded;
    bool shuffle;
    int64_t seed; /* below 0: not given */
    int64_t max_image_bytes;
    bool check_size; /* all images must have one shape */
    struct image_record_options options;

    struct image_list *list;
    uint64_t files; /* digest of them at the beginning */
    struct worker_pool *pool;
    int64_t first;  /* line where this run begins */
    int64_t next;   /* line to be taken */
    bool resumes;   /* line `first` was taken by an earlier run, too */
    int64_t images; /* taken in this run, unreadable ones included */
    struct named unreadable;
    struct named warned; /* by their codecs */
    int shape[3];        /* of the first image; channels 0: not known yet */
};

static void close_maker(void *maker)
{
    image_record_maker_destroy(maker);
}

static int open_maker(void **out, const void *context)
{
    const struct image_import *import = context;
    struct image_record_maker *maker;
    int status = image_record_maker_create(&maker, &import->options);
    if (!status)
        *out = maker;
    return status;
}

/* A blank line's record has no bytes. */
static int make_record(void *maker, const void *context, int64_t line,
                       struct pool_record *out)
{
    const struct image_import *import = context;
    const char *name = image_list_name(import->list, line);
    struct image_label label = image_list_label(import->list, line);
    return name ? image_record_make(maker, name, &label, out) : LEAT_OK;
}

static int open_pool(struct image_import *import)
{
    const struct pool_options options = {.first = import->first,
                                         .end = image_list_lines(import->list),
                                         .job_records = 1,
                                         .most_bytes = POOL_BYTES,
                                         .context = import,
                                         .open = open_maker,
                                         .close = close_maker,
                                         .make = make_record};
    import->next = import->first;
    /* Codecs take some 100 KB for each image. From the system, each page of it
       would be a fault. */
    mallopt(M_MMAP_THRESHOLD, HEAP_KEEPS);
    mallopt(M_TRIM_THRESHOLD, 2 * HEAP_KEEPS);
    return worker_pool_open(&import->pool, &options);
}

/* Counts an image, names it on stderr if it is one of the first, and lists it
   with its text. */
static void add_named(struct image_import *import, struct named *named,
                      int64_t line, const char *key, const char *text)
{
    const char *name = image_list_name(import->list, line);
    bool is_named = ++named->count <= MOST_NAMED;
    if (is_named && named == &import->warned)
        message_error("%s: kept, but its codec warns: %s", name, text);
    else if (is_named)
        message_error("%s", text);
    if (named->list)
        json_array_append_new(named->list, json_pack("{s:I, s:o, s:o}",
                                                     "number", (json_int_t)line,
                                                     "name", output_text(name),
                                                     key, output_text(text)));
}

static int check_size(struct image_import *import, int64_t line,
                      const int shape[3])
{
    int *first = import->shape;
    if (!import->check_size)
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

/* Depends on the size and the time of change of every file, and on which are
   missing. */
static int digest_files(struct image_import *import, uint64_t *out)
{
    void *maker;
    uint64_t hash = image_list_hash_start;
    int status = open_maker(&maker, import);
    if (status)
        return status;
    for (int64_t i = 0; i < image_list_lines(import->list) && !status; i++) {
        int64_t identity[3];
        const char *name = image_list_name(import->list, i);
        if (!name)
            continue;
        status = image_record_identify(maker, name, identity);
        hash = image_list_hash(hash, identity, sizeof(identity));
        if (!status)
            status = interrupt_check();
    }
    close_maker(maker);
    *out = hash;
    return status;
}

/* That the images are still those of the arguments. */
static int check_files(struct image_import *import)
{
    uint64_t files;
    int status = digest_files(import, &files);
    if (status || files == import->files)
        return status;
    return leat_error(LEAT_EFORMAT,
                      "%s: its images were written or removed while they were "
                      "read; run the command again",
                      list_name(import));
}

/* At the end: a list of which nothing could be read is wrong itself. Each image
   has been named. */
static int finish(struct image_import *import)
{
    int status = check_files(import);
    if (status)
        return status;
    if (import->first || import->unreadable.count < import->images)
        return LEAT_END;
    if (import->images == 1)
        return leat_error(LEAT_EDATA, "%s: its only image cannot be read",
                          list_name(import));
    return leat_error(LEAT_EDATA,
                      "%s: none of its %lld images can be read; do their names "
                      "begin in --root?",
                      list_name(import), (long long)import->images);
}

static int next_record(struct importer *importer, struct record *out)
{
    struct image_import *import = (struct image_import *)importer;
    int status = import->pool ? LEAT_OK : open_pool(import);
    while (!status) {
        struct pool_record record;
        status = worker_pool_take(import->pool, &record);
        if (status == LEAT_END)
            return finish(import);
        int64_t line = import->next++;
        if (status == LEAT_EDATA) {
            import->images++;
            add_named(import, &import->unreadable, line, "error",
                      leat_last_error());
            status = interrupt_check();
        } else if (!status && record.size) {
            import->images++;
            if (*record.warning && !(import->resumes && line == import->first))
                add_named(import, &import->warned, line, "warning",
                          record.warning);
            *out = (struct record){line, image_list_name(import->list, line),
                                   record.bytes, record.size};
            return check_size(import, line, record.shape);
        }
    }
    return status;
}

/* Finds the first image's shape again, which an earlier run has seen. */
static int find_shape(struct image_import *import)
{
    void *maker;
    int status = open_maker(&maker, import);
    if (status)
        return status;
    status = LEAT_EDATA;
    for (int64_t i = 0; i < import->first && status == LEAT_EDATA; i++) {
        struct pool_record record = {0};
        status = make_record(maker, import, i, &record);
        if (!status && !record.size)
            status = LEAT_EDATA;
        memcpy(import->shape, record.shape, sizeof(import->shape));
    }
    close_maker(maker);
    return status == LEAT_EDATA ? LEAT_OK : status;
}

static int seek_record(struct importer *importer, int64_t number)
{
    struct image_import *import = (struct image_import *)importer;
    import->first = number;
    import->resumes = true;
    return import->check_size ? find_shape(import) : LEAT_OK;
}

static int report(struct importer *importer, int64_t records, json_t *object)
{
    struct image_import *import = (struct image_import *)importer;
    int64_t images = image_list_images(import->list);
    int64_t missing = images - records;
    if (object) {
        json_object_set_new(object, "unreadable", json_integer(missing));
        json_object_set(object, "unreadable_images", import->unreadable.list);
        json_object_set_new(object, "warned",
                            json_integer(import->warned.count));
        json_object_set(object, "warned_images", import->warned.list);
    }
    if (import->warned.count)
        message_error(
            "%s: %s kept, but made %s codec warn", list_name(import),
            output_count(import->warned.count, "image is", "images are"),
            import->warned.count == 1 ? "its" : "their");
    if (!missing)
        return 0;
    char before[96] = "";
    if (missing > import->unreadable.count)
        snprintf(before, sizeof(before), ", %lld of them found before",
                 (long long)(missing - import->unreadable.count));
    return message_found("%s: %lld of its %s cannot be read and %s left out%s",
                         list_name(import), (long long)missing,
                         output_count(images, "image", "images"),
                         missing == 1 ? "is" : "are", before);
}

/* Each in a line of its own, by which an import of others is refused. */
static void add_options(struct image_import *import)
{
    static const char *const encodings[] = {[IMAGE_RAW] = "raw pixels",
                                            [IMAGE_BY_NAME] = "--encoded",
                                            [IMAGE_JPEG] = "--encode-type jpg",
                                            [IMAGE_PNG] = "--encode-type png"};
    const struct image_record_options *options = &import->options;
    struct importer *importer = &import->importer;
    output_require(
        importer_add(importer, "--labels %lld", (long long)import->labels));
    output_require(importer_add(importer, "--resize %dx%d", options->size[0],
                                options->size[1]));
    output_require(importer_add(importer, "--gray %d", options->gray));
    output_require(importer_add(importer, "%s", encodings[options->encoding]));
    output_require(
        importer_add(importer, "--check-size %d", import->check_size));
    output_require(importer_add(importer, "--max-image-bytes %zu",
                                options->max_image_bytes));
}

/* The directory that names are relative to, as an absolute path where that is
   known: it needs all directories above. */
static void add_root(struct image_import *import)
{
    struct stat found;
    const char *root = import->options.root ? import->options.root : ".";
    char *path = realpath(root, NULL);
    int code = path ? 0 : leat__file_access(root, X_OK);
    if (!code && !stat(root, &found) && !S_ISDIR(found.st_mode))
        code = ENOTDIR;
    int status = importer_add(&import->importer, "in %s", path ? path : root);
    free(path);
    if (code)
        message_fail("%s: %s", root, strerror(code));
    output_require(status);
}

static void open_list(struct image_import *import)
{
    struct importer *importer = &import->importer;
    add_root(import);
    output_require(
        image_list_open(&import->list, import->path, (int)import->labels));
    if (import->shuffle)
        image_list_shuffle(import->list,
                           import->seed < 0 ? 1 : (uint64_t)import->seed);
    importer->count = image_list_lines(import->list);
    output_require(
        importer_add(importer, "%lld lines %016llx", (long long)importer->count,
                     (unsigned long long)image_list_digest(import->list)));
    add_options(import);
    output_require(digest_files(import, &import->files));
    output_require(image_list_check(import->list, import->path));
    output_require(importer_add(importer, "files' sizes and times %016llx",
                                (unsigned long long)import->files));
}

static void check_options(struct image_import *import, const char *command)
{
    const char *type = import->encode_type;
    enum image_encoding *encoding = &import->options.encoding;
    const int *size = import->options.size;
    import->options.max_image_bytes = (size_t)import->max_image_bytes;
    *encoding = import->encoded ? IMAGE_BY_NAME : IMAGE_RAW;
    if (type && (!strcasecmp(type, "jpg") || !strcasecmp(type, "jpeg")))
        *encoding = IMAGE_JPEG;
    else if (type && !strcasecmp(type, "png"))
        *encoding = IMAGE_PNG;
    else if (type)
        message_misuse(command,
                       "--encode-type: expected jpg or png, found '%s'", type);
    if ((int64_t)size[0] * size[1] > MOST_PIXELS)
        message_misuse(command, "--resize: more than %d pixels", MOST_PIXELS);
    if (import->seed >= 0 && !import->shuffle)
        message_misuse(command, "--seed needs --shuffle");
}

int command_import_images(int argc, char **argv)
{
    struct image_import import = {.importer = {.unit = "images",
                                               .digits = 8,
                                               .next = next_record,
                                               .seek = seek_record,
                                               .report = report},
                                  .seed = -1};
    const struct option_spec specs[] = {
        {"root", "DIR", "where the names in LIST begin", option_text,
         &import.options.root, 0, 0},
        {"labels", "N", "each line has N labels, whole numbers or not",
         option_int, &import.labels, 1, IMAGE_LABELS_MOST},
        {"resize", "HxW", "resize images to this height and width", option_size,
         import.options.size, 1, MOST_SIDE},
        option_flag("gray", "make images gray", &import.options.gray),
        option_flag("encoded", "keep images encoded, as their files are",
                    &import.encoded),
        {"encode-type", "TYPE", "encode images as jpg or png", option_text,
         &import.encode_type, 0, 0},
        option_flag("shuffle", "put the images into a random order",
                    &import.shuffle),
        {"seed", "S", "the same seed gives the same order (1)", option_int,
         &import.seed, 0, INT64_MAX},
        option_flag("check-size", "all images must have the first one's shape",
                    &import.check_size),
        {"max-image-bytes", "N", "memory that decoding an image may take",
         option_bytes, &import.max_image_bytes, 1, INT64_MAX},
        {0}};
    struct usage usage = {
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
    };
    char **path = importer_parse(&import.importer, &usage, argc, argv);
    interrupt_catch();
    check_options(&import, usage.command);
    import.path = path[0];
    if (import.importer.json) {
        import.unreadable.list = json_array();
        import.warned.list = json_array();
    }
    importer_check(&import.importer, path[1]);
    open_list(&import);
    int status = importer_run(&import.importer, path[1]);
    worker_pool_close(import.pool);
    image_list_close(import.list);
    json_decref(import.unreadable.list);
    json_decref(import.warned.list);
    return status;
}
