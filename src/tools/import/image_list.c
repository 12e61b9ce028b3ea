#include "tools/import/image_list.h"

#include "tools/input.h"
#include "tools/splitmix.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MOST = 4096, SHOWN_MOST = 80, LABEL_TEXT_MOST = 12, BLANK = -1 };

/* Keys of eight digits ascend up to here. */
static const int64_t most_lines = 100000000;

struct image_line {
    int64_t name; /* where it begins in `names`, or BLANK */
    int32_t label;
};

struct image_list {
    struct image_line *line;
    int64_t lines;
    int64_t line_room;
    int64_t images; /* lines that are not blank */
    char *names;    /* each ended by a NUL */
    int64_t name_bytes;
    int64_t name_room;
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
               "space";
    if (space - text > IMAGE_NAME_MOST)
        return "the name is longer than 502 bytes, which a key can hold";
    *space = 0;
    return NULL;
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
    const char *wrong = split_line(text, length, &label);
    if (wrong)
        return leat_error(LEAT_EFORMAT, "%s: line %lld: %s; found '%s'", path,
                          (long long)list->lines + 1, wrong,
                          show_line(shown, text));
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

int image_list_open(struct image_list **out, const char *path)
{
    int standard = !strcmp(path, "-");
    const char *name = standard ? "stdin" : path;
    int fd = STDIN_FILENO;
    int status = standard ? LEAT_OK : input_open(&fd, path);
    if (status)
        return status;
    struct image_list *list = calloc(1, sizeof(*list));
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

int32_t image_list_label(const struct image_list *list, int64_t i)
{
    return list->line[i].label;
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
        hash = add_bytes(hash, &list->line[i].label, sizeof(int32_t));
    }
    return hash;
}

void image_list_close(struct image_list *list)
{
    if (!list)
        return;
    free(list->line);
    free(list->names);
    free(list);
}
