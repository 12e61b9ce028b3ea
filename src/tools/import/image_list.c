#include "tools/import/image_list.h"

#include "base/file_version.h"
#include "tools/cli/buffer.h"
#include "tools/cli/input.h"
#include "tools/cli/plain_text.h"
#include "tools/cli/splitmix.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 16 << 10,
    SHOWN_MOST = 80,
    LABEL_TEXT_MOST = 12,
    NUMBER_TEXT_MOST = 64,
    NAME_LINE_MOST = 4096, /* bytes of a line but for several labels */
    EXACT_MOST = 1 << 24   /* whole numbers up to here are floats */
};

/* Keys of eight digits ascend up to here. */
static const int64_t most_lines = 100000000;

struct line {
    int64_t name;  /* where it begins in the text; -1: a blank line */
    int32_t label; /* a class, or the image's index in the values */
};

struct image_list {
    int64_t lines;
    int64_t images; /* lines that are not blank */
    size_t labels;  /* of each line; 0: a class */
    struct stat file;
    uint64_t digest; /* as it was read */
    struct buffer text;
    struct buffer line;   /* struct line, `lines` of them */
    struct buffer values; /* float, `labels` for each image */
};

static struct line *line_at(const struct image_list *list, int64_t i)
{
    return (struct line *)(void *)list->line.bytes + i;
}

static float *values_at(const struct image_list *list, int64_t image)
{
    return (float *)(void *)list->values.bytes + (size_t)image * list->labels;
}

/* A whole number of 32 bits. Returns its fault, or NULL. */
static const char *read_class(const char *text, int32_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    size_t length = strlen(digits);
    long long value = strtoll(text, NULL, 10);
    if (!length || length > LABEL_TEXT_MOST ||
        strspn(digits, "0123456789") != length || value < INT32_MIN ||
        value > INT32_MAX)
        return "expected a label, a whole number of 32 bits, after its last "
               "space (--labels N takes N numbers of any kind)";
    *out = (int32_t)value;
    return NULL;
}

/* A decimal number that a float holds. Returns its fault, or NULL. */
static const char *read_number(const char *text, float *out)
{
    size_t length = strlen(text);
    char *end = NULL;
    bool is_number = length && length <= NUMBER_TEXT_MOST &&
                     strspn(text, "+-.0123456789eE") == length;
    double value = is_number ? strtod(text, &end) : 0;
    if (!is_number || *end)
        return "expected as many numbers after the name as --labels says";
    *out = (float)value;
    if (!isfinite(*out))
        return "a label is larger than the floats in which a Datum holds "
               "several";
    if (strspn(text, "+-0123456789") == length && fabs(value) > EXACT_MOST)
        return "a label is a whole number over 16777216, of which the floats "
               "in which a Datum holds several cannot hold each";
    return NULL;
}

/* Cuts the labels off a line, from the last one. Returns what is wrong with it:
   NULL, and the name is left. */
static const char *split(const struct image_list *list, char *text,
                         int32_t *label)
{
    float *values = list->labels ? values_at(list, list->images) : NULL;
    char *space = NULL;
    *label = (int32_t)list->images;
    for (size_t i = list->labels ? list->labels : 1; i-- > 0;) {
        /* Between numbers, any spaces are one; before the first one, all but
           the last are the name's. */
        for (char *end = space; end && end > text && end[-1] == ' ';)
            *--end = 0;
        space = strrchr(text, ' ');
        if (!space || space == text)
            return list->labels
                       ? "expected a name and as many numbers as --labels "
                         "says, with spaces between them"
                       : "expected a name, a space and a label";
        const char *wrong = list->labels ? read_number(space + 1, &values[i])
                                         : read_class(space + 1, label);
        if (wrong)
            return wrong;
        *space = 0;
    }
    return space - text > IMAGE_NAME_MOST
               ? "the name is longer than 502 bytes, which a key can hold"
               : NULL;
}

/* Bytes of a line: of several labels, each has room for its longest text. */
static size_t line_most(const struct image_list *list)
{
    return NAME_LINE_MOST + list->labels * (1 + NUMBER_TEXT_MOST);
}

/* Takes a line, of the list's text, that begins and ends there. */
static int take_line(struct image_list *list, const char *path, size_t begin,
                     size_t end)
{
    long long number = list->lines + 1;
    if (number > most_lines)
        return leat_error(LEAT_EFORMAT, "%s: more than %lld lines", path,
                          (long long)most_lines);
    if (end - begin > line_most(list))
        return leat_error(LEAT_EFORMAT, "%s: line %lld: longer than %zu bytes",
                          path, number, line_most(list));
    int status =
        buffer_reserve(&list->line, (size_t)number * sizeof(struct line));
    if (!status)
        status =
            buffer_reserve(&list->values, (size_t)(list->images + 1) *
                                              list->labels * sizeof(float));
    if (status)
        return status;
    char *text = (char *)list->text.bytes + begin;
    struct line line = {(int64_t)begin, 0};
    while (end > begin && strchr("\r \t", text[end - begin - 1]) &&
           text[end - begin - 1])
        end--;
    text[end - begin] = 0;
    if (end > begin) {
        char shown[SHOWN_MOST];
        plain_text_write(shown, sizeof(shown), text);
        const char *wrong = strlen(text) < end - begin
                                ? "holds a NUL byte"
                                : split(list, text, &line.label);
        if (wrong)
            return leat_error(LEAT_EFORMAT, "%s: line %lld: %s; found '%s'",
                              path, number, wrong, shown);
        list->images++;
    } else {
        line.name = -1;
    }
    *line_at(list, list->lines++) = line;
    return LEAT_OK;
}

static int read_lines(struct image_list *list, const char *path, int fd)
{
    size_t begin = 0, end = 0, got = 1; /* of the text that is no line yet */
    int status = LEAT_OK;
    while (!status && got) {
        status = buffer_reserve(&list->text, end + READ_BYTES + 1);
        if (!status)
            status =
                input_read(fd, path, list->text.bytes + end, READ_BYTES, &got);
        if (status)
            return status;
        end += got;
        if (!got && begin < end)
            list->text.bytes[end++] = '\n';
        const unsigned char *text = list->text.bytes, *newline;
        while (!status && (newline = memchr(text + begin, '\n', end - begin))) {
            size_t stop = (size_t)(newline - text);
            status = take_line(list, path, begin, stop);
            begin = stop + 1;
        }
        if (!status && end - begin > line_most(list))
            status = take_line(list, path, begin, end);
    }
    if (!status && !list->images)
        return leat_error(LEAT_EFORMAT, "%s: lists no images", path);
    return status;
}

static int read_list(struct image_list *list, const char *path, int fd)
{
    int status = input_look(fd, path, &list->file);
    if (status)
        return status;
    if (S_ISDIR(list->file.st_mode))
        return leat_error(LEAT_EIO,
                          "%s: expected a list of lines NAME LABEL, found a "
                          "directory; --root has the one that names are in",
                          path);
    status = read_lines(list, path, fd);
    list->digest = image_list_digest(list);
    return status ? status : input_check(fd, path, &list->file);
}

static bool reads_the_same(const struct image_list *list, const char *path)
{
    struct image_list *now;
    if (image_list_open(&now, path, (int)list->labels))
        return false;
    bool same = now->digest == list->digest;
    image_list_close(now);
    return same;
}

int image_list_check(const struct image_list *list, const char *path)
{
    struct stat now;
    if (!strcmp(path, "-") || !S_ISREG(list->file.st_mode))
        return LEAT_OK;
    /* Some file systems number a file anew, and archives give lists of two
     * releases one time. */
    if (!stat(path, &now) &&
        ((now.st_dev == list->file.st_dev && now.st_ino == list->file.st_ino) ||
         (leat__file_version_is_same(leat__file_version_of(&now),
                                     leat__file_version_of(&list->file)) &&
          reads_the_same(list, path))))
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT,
                      "%s: was removed or replaced while its images were "
                      "looked at; run the command again",
                      path);
}

int image_list_open(struct image_list **out, const char *path, int labels)
{
    bool standard = !strcmp(path, "-");
    int fd = STDIN_FILENO;
    int status = standard ? LEAT_OK : input_open(&fd, path);
    if (status)
        return status;
    struct image_list *list = calloc(1, sizeof(*list));
    if (list) {
        list->labels = (size_t)labels;
        status = read_list(list, standard ? "stdin" : path, fd);
    } else {
        status = leat_error(LEAT_ENOMEM, "out of memory for a list of images");
    }
    if (!standard)
        close(fd); /* Read-only: nothing is lost if it fails. */
    if (status)
        image_list_close(list);
    else
        *out = list;
    return status;
}

void image_list_shuffle(struct image_list *list, uint64_t seed)
{
    struct splitmix random = splitmix_start(seed, 0);
    for (int64_t i = list->lines - 1; i > 0; i--) {
        /* In [0, i], each as likely as the others but for 2^-32 or less. */
        int64_t other =
            (int64_t)((splitmix_next(&random) >> 1) % (uint64_t)(i + 1));
        struct line line = *line_at(list, i);
        *line_at(list, i) = *line_at(list, other);
        *line_at(list, other) = line;
    }
}

int64_t image_list_lines(const struct image_list *list)
{
    return list->lines;
}

int64_t image_list_images(const struct image_list *list)
{
    return list->images;
}

const char *image_list_name(const struct image_list *list, int64_t i)
{
    int64_t name = line_at(list, i)->name;
    return name < 0 ? NULL : (const char *)list->text.bytes + name;
}

struct image_label image_list_label(const struct image_list *list, int64_t i)
{
    const struct line *line = line_at(list, i);
    if (!list->labels || line->name < 0)
        return (struct image_label){line->label, NULL, 0};
    return (struct image_label){0, values_at(list, line->label), list->labels};
}

/* FNV-1a. */
uint64_t image_list_hash(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *byte = bytes; size--; byte++)
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t image_list_digest(const struct image_list *list)
{
    uint64_t hash = image_list_hash_start;
    for (int64_t i = 0; i < list->lines; i++) {
        const char *name = image_list_name(list, i);
        if (name)
            hash = image_list_hash(hash, name, strlen(name) + 1);
        struct image_label label = image_list_label(list, i);
        hash = image_list_hash(hash, &label.class, sizeof(label.class));
        hash = image_list_hash(hash, label.value, label.count * sizeof(float));
    }
    return hash;
}

void image_list_close(struct image_list *list)
{
    if (!list)
        return;
    free(list->text.bytes);
    free(list->line.bytes);
    free(list->values.bytes);
    free(list);
}
