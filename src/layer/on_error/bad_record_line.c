#include "layer/on_error/bad_record_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a line consists of, with tabs between. */
enum { SOURCE, RECORD, KEY, EPOCH, POSITION, REPLACEMENT, REASON, COLUMNS };

static const char *const replacement_name[] = {"none", "zeros", "record"};

/* A record without a source is known by its position in the epoch. */
static leat__record_mark make_mark(const char *source, size_t size,
                                   int64_t record, int64_t position)
{
    return (leat__record_mark){.source = leat__record_set_source(source, size),
                               .record = size > 0 ? record : position};
}

/* The number from `text` up to `end`; 0: there is none. */
static bool read_number(const char *text, const char *end, int64_t *out)
{
    char digits[24] = "";
    char *stop;
    size_t size = (size_t)(end - text);
    if (size == 0 || size >= sizeof(digits))
        return false;
    memcpy(digits, text, size);
    *out = strtoll(digits, &stop, 10);
    return stop == digits + size;
}

/* Whether the text from `text` up to `end` names a replacement. */
static bool is_replacement(const char *text, const char *end)
{
    size_t n = sizeof(replacement_name) / sizeof(*replacement_name);
    size_t size = (size_t)(end - text);
    for (size_t i = 0; i < n; i++)
        if (strlen(replacement_name[i]) == size &&
            memcmp(replacement_name[i], text, size) == 0)
            return true;
    return false;
}

bool leat__bad_record_line_read(const char *line, const char *end,
                                leat__record_mark *out)
{
    int64_t record, epoch, position;
    const char *column[COLUMNS] = {line};
    for (int i = 1; i < COLUMNS; i++) {
        const char *from = column[i - 1];
        const char *tab = memchr(from, '\t', (size_t)(end - from));
        if (!tab)
            return false;
        column[i] = tab + 1;
    }
    if (!read_number(column[RECORD], column[KEY] - 1, &record) ||
        !read_number(column[EPOCH], column[POSITION] - 1, &epoch) ||
        !read_number(column[POSITION], column[REPLACEMENT] - 1, &position) ||
        !is_replacement(column[REPLACEMENT], column[REASON] - 1))
        return false;
    *out =
        make_mark(line, (size_t)(column[RECORD] - 1 - line), record, position);
    return true;
}

/*
 * Tabs and line ends would break the line; the rest stays as it is. So does a
 * sentence's backslash; of a name it is written out, to be read back.
 */
static size_t put_text(char *out, const char *text, size_t size,
                       bool is_sentence)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool plain = byte >= 0x20 && byte != 0x7f;
        if (byte == '\\')
            plain = is_sentence;
        used += (size_t)sprintf(out + used, plain ? "%c" : "\\x%02x", byte);
    }
    out[used++] = '\t';
    return used;
}

/* After `text` if the line begins with it, else the line. */
static const char *after(const char *line, const char *text)
{
    size_t size = strlen(text);
    return strncmp(line, text, size) == 0 ? line + size : line;
}

/* The error line without the source, record and key that columns name. */
static const char *reason_of(const leat__bad *bad, const leat_provenance *from)
{
    char text[LEAT__KEY_TEXT_MAX];
    char record[32 + LEAT__KEY_TEXT_MAX];
    const char *line = bad->line;
    size_t size = from->source ? strlen(from->source) : 0;
    if (size > 0 && strncmp(line, from->source, size) == 0 &&
        strncmp(line + size, ": ", 2) == 0)
        line += size + 2;
    snprintf(record, sizeof(record), "record %lld", (long long)from->record);
    const char *rest = after(line, record);
    if (rest == line)
        return line;
    if (from->key) {
        snprintf(
            record, sizeof(record), ", key %s",
            leat__key_text(text, from->key, from->key_size + from->key_cut));
        rest = after(rest, record);
    }
    if (strncmp(rest, ": ", 2) == 0)
        return rest + 2;
    return *rest == ' ' ? rest + 1 : line;
}

size_t leat__bad_record_line_format(char line[LEAT__BAD_RECORD_LINE_MAX],
                                    const leat__bad *bad,
                                    leat__record_mark *mark)
{
    leat_provenance from = leat__bad_from(bad);
    const char *source = from.source ? from.source : "";
    const char *reason = reason_of(bad, &from);
    size_t used = put_text(line, source, strnlen(source, 4096), 0);
    *mark = make_mark(line, used - 1, from.record, from.position);
    used += (size_t)sprintf(line + used, "%lld\t", (long long)from.record);
    used += put_text(line + used, from.key ? from.key : "",
                     from.key ? from.key_size : 0, 0);
    if (from.key && from.key_cut)
        used += (size_t)sprintf(line + used - 1, "... (%zu bytes)\t",
                                from.key_size + from.key_cut) -
                1;
    used += (size_t)sprintf(line + used, "%lld\t%lld\t%s\t",
                            (long long)from.epoch, (long long)from.position,
                            replacement_name[from.replacement]);
    /* The key in it has such letters already. */
    used += put_text(line + used, reason, strlen(reason), 1);
    line[used - 1] = '\n';
    return used;
}
