#include "tools/import/image_list.h"

#include "tools/cli/input.h"
#include "tools/cli/splitmix.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_MOST = 4096,
    SHOWN_MOST = 80,
    LABEL_TEXT_MOST = 12,
    EXACT_MOST = 1 << 24, /* whole numbers up to here are floats */
    BLANK = -1
};

/* Keys of eight digits ascend up to here. */
static const int64_t most_lines = 100000000;

struct image_line {
    int64_t name;  /* where it begins in `names`, or BLANK */
    int32_t label; /* with several, the image's number in `values` */
};

struct image_list {
    struct image_line *line;
    int64_t lines;
    int64_t line_room;
    int64_t images; /* lines that are not blank */
    char *names;    /* each ended by a NUL */
    int64_t name_bytes;
    int64_t name_room;
    size_t labels; /* numbers in each line; 0: a class */
    float *values; /* `labels` for each image */
    int64_t value_room;
};

static int memory_error(void)
{
    return leat_error(LEAT_ENOMEM, "out of memory for a list of images");
}

/* Room for `wanted` items of `size`; returns the block, NULL when short. */
static void *make_room(void *block, int64_t *room, int64_t wanted, size_t size)
{
    if (wanted <= *room)
        return block;
    int64_t most = wanted + wanted / 2 + 64;
    void *moved = realloc(block, (size_t)most * size);
    if (moved)
        *room = most;
    return moved;
}

/* A label is a whole number of 32 bits, and nothing else. */
static int read_label(const char *text, int32_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    size_t length = strlen(digits);
    if (!length || length > LABEL_TEXT_MOST ||
        strspn(digits, "0123456789") != length)
        return -1;
    long long value = strtoll(text, NULL, 10);
    if (value < INT32_MIN || value > INT32_MAX)
        return -1;
    *out = (int32_t)value;
    return 0;
}

/* Ends the name at the space behind it. Returns what is wrong with it. */
static const char *cut_name(const char *text, char *space)
{
    if (space - text > IMAGE_NAME_MOST)
        return "the name is longer than 502 bytes, which a key can hold";
    *space = 0;
    return NULL;
}

/* Splits a line in two at its last space. Returns what is wrong with it. */
static const char *split_line(char *text, size_t length, int32_t *label)
{
    if (memchr(text, 0, length))
        return "holds a NUL byte";
    char *space = strrchr(text, ' ');
    if (!space || space == text)
        return "expected a name, a space and a label";
    if (read_label(space + 1, label))
        return "expected a label, a whole number of 32 bits, behind its last "
               "space (--labels N takes N numbers of any kind)";
    return cut_name(text, space);
}

/* Numbers of at most so many letters; a text for what is wrong with one. */
static const char *read_number(const char *text, float *out)
{
    enum { NUMBER_TEXT_MOST = 64 };
    size_t length = strlen(text);
    char *end;
    if (!length || length > NUMBER_TEXT_MOST ||
        strspn(text, "+-.0123456789eE") != length)
        return "expected as many numbers behind the name as --labels says";
    double value = strtod(text, &end);
    *out = (float)value;
    if (*end)
        return "expected as many numbers behind the name as --labels says";
    if (!isfinite(*out))
        return "a label is larger than the floats in which a Datum holds "
               "several";
    if (strspn(text, "+-0123456789") == length && fabs(value) > EXACT_MOST)
        return "a label is a whole number over 16777216, of which the floats "
               "in which a Datum holds several cannot hold each";
    return NULL;
}

/* The same of a line with `n` numbers, the last ones. */
static const char *split_numbers(char *text, size_t length, float *out,
                                 size_t n)
{
    if (memchr(text, 0, length))
        return "holds a NUL byte";
    char *space = NULL;
    for (size_t i = n; i-- > 0;) {
        /* Blanks between numbers are one; before the first, the name's. */
        for (char *end = space; end && end > text && end[-1] == ' ';)
            *--end = 0;
        space = strrchr(text, ' ');
        if (!space || space == text)
            return "expected a name and as many numbers as --labels says, with "
                   "spaces between them";
        const char *wrong = read_number(space + 1, &out[i]);
        if (wrong)
            return wrong;
        *space = 0;
    }
    return cut_name(text, space);
}

/* Bytes of the letter that begins here, if it is UTF-8; else 1. */
static size_t letter_bytes(const unsigned char *text)
{
    size_t size = *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
    if (*text < 0xc2 || *text > 0xf4)
        return 1;
    for (size_t i = 1; i < size; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 1;
    return size;
}

/* The beginning of a line; what cannot be seen as \t or \xNN. */
static const char *show_line(char *out, const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    char *to = out;
    for (size_t n = 0; *byte && n < SHOWN_MOST; n++) {
        size_t size = letter_bytes(byte);
        if (*byte == '\t')
            to += sprintf(to, "\\t");
        else if (size == 1 && (*byte < ' ' || *byte >= 127))
            to += sprintf(to, "\\x%02x", *byte);
        else
            to += sprintf(to, "%.*s", (int)size, (const char *)byte);
        byte += size;
    }
    *to = 0;
    return out;
}

static int add_line(struct image_list *list, const char *name, int32_t label)
{
    struct image_line *line =
        make_room(list->line, &list->line_room, list->lines + 1, sizeof(*line));
    if (!line)
        return memory_error();
    list->line = line;
    line += list->lines;
    *line = (struct image_line){BLANK, 0};
    if (name) {
        int64_t size = (int64_t)strlen(name) + 1;
        char *names = make_room(list->names, &list->name_room,
                                list->name_bytes + size, 1);
        if (!names)
            return memory_error();
        list->names = names;
        memcpy(names + list->name_bytes, name, (size_t)size);
        *line = (struct image_line){list->name_bytes, label};
        list->name_bytes += size;
        list->images++;
    }
    list->lines++;
    return LEAT_OK;
}

/* Room for the next image's labels, where it has several. */
static int reserve_values(struct image_list *list)
{
    int64_t wanted = (list->images + 1) * (int64_t)list->labels;
    if (!wanted)
        return LEAT_OK;
    float *values =
        make_room(list->values, &list->value_room, wanted, sizeof(*values));
    if (!values)
        return memory_error();
    list->values = values;
    return LEAT_OK;
}

/* Splits a line into a name and its labels. Returns what is wrong with it. */
static const char *take_line(struct image_list *list, char *text, size_t length,
                             int32_t *label)
{
    if (!list->labels)
        return split_line(text, length, label);
    *label = (int32_t)list->images;
    return split_numbers(text, length,
                         list->values + (size_t)*label * list->labels,
                         list->labels);
}

static int read_line(struct image_list *list, const char *path, char *text,
                     size_t length)
{
    if (list->lines >= most_lines)
        return leat_error(LEAT_EFORMAT, "%s: more than %lld lines", path,
                          (long long)most_lines);
    while (length && strchr("\r \t", text[length - 1]) && text[length - 1])
        length--;
    text[length] = 0;
    if (!length)
        return add_line(list, NULL, 0);
    int32_t label;
    char shown[4 * SHOWN_MOST + 1];
    int status = reserve_values(list);
    if (status)
        return status;
    /* Splitting may cut what is to be shown. */
    show_line(shown, text);
    const char *wrong = take_line(list, text, length, &label);
    if (wrong)
        return leat_error(LEAT_EFORMAT, "%s: line %lld: %s; found '%s'", path,
                          (long long)list->lines + 1, wrong, shown);
    return add_line(list, text, label);
}

/* What of a line was read so far. */
struct pending {
    char text[LINE_MOST + 1];
    size_t length;
};

static int take_bytes(struct image_list *list, const char *path,
                      struct pending *line, const char *bytes, size_t size)
{
    int status = LEAT_OK;
    for (size_t i = 0; i < size && !status; i++) {
        if (bytes[i] == '\n') {
            status = read_line(list, path, line->text, line->length);
            line->length = 0;
        } else if (line->length < LINE_MOST) {
            line->text[line->length++] = bytes[i];
        } else {
            status =
                leat_error(LEAT_EFORMAT, "%s: line %lld: longer than %d bytes",
                           path, (long long)list->lines + 1, LINE_MOST);
        }
    }
    return status;
}

static int read_lines(struct image_list *list, const char *path, int fd)
{
    char bytes[1 << 14];
    struct pending line = {.length = 0};
    size_t got;
    int status;
    do {
        status = input_read(fd, path, bytes, sizeof(bytes), &got);
        if (!status)
            status = take_bytes(list, path, &line, bytes, got);
    } while (!status && got);
    if (!status && line.length)
        status = read_line(list, path, line.text, line.length);
    if (!status && !list->images)
        return leat_error(LEAT_EFORMAT, "%s: lists no images", path);
    return status;
}

int image_list_open(struct image_list **out, const char *path, int labels)
{
    int standard = !strcmp(path, "-");
    const char *name = standard ? "stdin" : path;
    int fd = STDIN_FILENO;
    int status = standard ? LEAT_OK : input_open(&fd, path);
    if (status)
        return status;
    struct image_list *list = calloc(1, sizeof(*list));
    if (list)
        list->labels = (size_t)labels;
    status = list ? read_lines(list, name, fd) : memory_error();
    if (!standard)
        close(fd); /* Read-only: nothing is lost if it fails. */
    if (status) {
        image_list_close(list);
        return status;
    }
    *out = list;
    return LEAT_OK;
}

/* A number in [0, n), each as likely as the others but for 2^-32 or less. */
static int64_t draw_below(struct splitmix *random, int64_t n)
{
    return (int64_t)((splitmix_next(random) >> 1) % (uint64_t)n);
}

void image_list_shuffle(struct image_list *list, uint64_t seed)
{
    struct splitmix random = splitmix_start(seed, 0);
    for (int64_t i = list->lines - 1; i > 0; i--) {
        int64_t other = draw_below(&random, i + 1);
        struct image_line line = list->line[i];
        list->line[i] = list->line[other];
        list->line[other] = line;
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
    int64_t name = list->line[i].name;
    return name == BLANK ? NULL : list->names + name;
}

struct image_label image_list_label(const struct image_list *list, int64_t i)
{
    const struct image_line *line = &list->line[i];
    if (!list->labels || line->name == BLANK)
        return (struct image_label){line->label, NULL, 0};
    return (struct image_label){
        0, list->values + (size_t)line->label * list->labels, list->labels};
}

/* FNV-1a. */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *byte = bytes; size--; byte++)
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t image_list_digest(const struct image_list *list)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < list->lines; i++) {
        const char *name = image_list_name(list, i);
        if (name)
            hash = add_bytes(hash, name, strlen(name) + 1);
        struct image_label label = image_list_label(list, i);
        hash = add_bytes(hash, &label.class, sizeof(label.class));
        hash = add_bytes(hash, label.value, label.count * sizeof(float));
    }
    return hash;
}

void image_list_close(struct image_list *list)
{
    if (!list)
        return;
    free(list->line);
    free(list->names);
    free(list->values);
    free(list);
}
