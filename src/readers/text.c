/*
 * A record is a line, which ends with LF, CR LF, or the file. A walk finds the
 * ends, so that nothing is left to other threads.
 */
#include "readers/text.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"

#include <string.h>

typedef struct text_format {
    leat__record_format format;
    uint64_t max_line; /* bytes, with its end */
} text_format;

/* Of a walk: the offset of a line that is too long and being passed, plus 1;
   and the number of bytes, from the walk's own offset on, that have no LF. */
enum { LONG_LINE = 0, SEARCHED = 1 };

static int too_long(const text_format *text)
{
    return leat_error(LEAT_EDATA,
                      "the line has more than %llu bytes: give another "
                      "max_record= to read it",
                      (unsigned long long)text->max_line);
}

/* The line goes on beyond the window, of which `left` bytes are its. */
static int want_more(const text_format *text, leat__record_walk *walk,
                     size_t left)
{
    walk->needed = left + 1;
    walk->own[SEARCHED] = left;
    if (left <= text->max_line && !walk->own[LONG_LINE])
        return LEAT_AGAIN;
    if (!walk->own[LONG_LINE])
        walk->own[LONG_LINE] = walk->offset + 1;
    walk->offset += left;
    walk->own[SEARCHED] = 0;
    walk->needed = 1;
    return LEAT_AGAIN;
}

/* Past a line that is too long, of which the last `size` bytes are in sight. */
static int pass_long_line(const text_format *text, leat__record_walk *walk,
                          size_t size, leat__record_span *out)
{
    uint64_t begin =
        walk->own[LONG_LINE] ? walk->own[LONG_LINE] - 1 : walk->offset;
    *out = (leat__record_span){begin, walk->offset + size - begin};
    walk->own[LONG_LINE] = 0;
    walk->offset += size;
    walk->record++;
    return too_long(text);
}

static int text_walk(const leat__record_format *format,
                     const leat__record_file *file,
                     const leat__record_window *window, leat__record_walk *walk,
                     leat__record_span out[], int n, int *got)
{
    const text_format *text = (const text_format *)format;
    const unsigned char *end = window->bytes + window->size;
    const unsigned char *line = window->bytes + (walk->offset - window->offset);
    size_t searched = (size_t)walk->own[SEARCHED];
    int status = LEAT_OK;
    (void)file;
    *got = 0;
    walk->own[SEARCHED] = 0;
    while (*got < n) {
        size_t left = (size_t)(end - line);
        const unsigned char *newline =
            left > searched ? memchr(line + searched, '\n', left - searched)
                            : NULL;
        searched = 0;
        if (!newline && !window->is_last) {
            status = *got ? LEAT_OK : want_more(text, walk, left);
            break;
        }
        size_t size = newline ? (size_t)(newline - line) + 1 : left;
        if (size == 0 && !walk->own[LONG_LINE]) {
            status = *got ? LEAT_OK : LEAT_END;
            break;
        }
        if (size > text->max_line || walk->own[LONG_LINE]) {
            status = *got ? LEAT_OK : pass_long_line(text, walk, size, &out[0]);
            break;
        }
        out[(*got)++] = (leat__record_span){walk->offset, size};
        walk->offset += size;
        walk->record++;
        line += size;
    }
    return status;
}

/* Takes a line's end off its size. False: it has none, and the file goes on. */
static inline bool cut_end(const leat__record_window *window, uint64_t at,
                           uint64_t *size)
{
    const unsigned char *line = window->bytes + at;
    if (*size == 0 || line[*size - 1] != '\n')
        return at + *size == window->size;
    --*size;
    *size -= *size > 0 && line[*size - 1] == '\r';
    return true;
}

/* The file is not the one that was indexed. */
__attribute__((cold)) static int torn(void)
{
    return leat_error(LEAT_EDATA, "the line has changed since it was indexed: "
                                  "its ends are elsewhere");
}

static inline int read_line(const text_format *text,
                            const leat__record_window *window,
                            const leat__record_span *span, leat_sample *sample)
{
    uint64_t at = span->offset - window->offset;
    if (at > window->size || span->size > window->size - at)
        return leat_error(LEAT_EDATA, "the line is beyond the end of the file");
    const unsigned char *line = window->bytes + at;
    uint64_t size = span->size;
    if (size == 0) {
        uint64_t left = window->size - at;
        bool is_cut = left > text->max_line;
        left = is_cut ? text->max_line : left;
        const unsigned char *newline =
            left ? memchr(line, '\n', (size_t)left) : NULL;
        if (!newline && is_cut)
            return too_long(text);
        size = newline ? (uint64_t)(newline - line) + 1 : left;
    } else if (size > text->max_line) {
        return too_long(text);
    }
    if ((at > 0 && line[-1] != '\n') || !cut_end(window, at, &size))
        return torn();
    return leat__record_append_bytes(sample, line, (size_t)size);
}

static int text_read(const leat__record_format *format,
                     const leat__record_file *file, leat__record_window *window,
                     const leat__record_span span[], leat_sample *const out[],
                     int n, int *got)
{
    const text_format *text = (const text_format *)format;
    int status = LEAT_OK;
    (void)file;
    for (*got = 0; !status && *got < n; *got += !status)
        status = read_line(text, window, &span[*got], out[*got]);
    return status;
}

static const leat__record_format_ops text_ops = {
    .name = "text",
    .walk = text_walk,
    .read = text_read,
};

int leat__text_format_create(leat__record_format **out, uint64_t max_line)
{
    text_format *text = leat__alloc_zero(1, sizeof(*text));
    if (!text)
        return LEAT_ENOMEM;
    text->format.ops = &text_ops;
    text->format.nspec = 1;
    text->format.spec[0] = (leat_field_spec){.name = "line",
                                             .dtype = LEAT_BYTES,
                                             .ndim = 1,
                                             .shape = {-1},
                                             .content = LEAT_CONTENT_PLAIN};
    text->max_line = max_line;
    *out = &text->format;
    return LEAT_OK;
}

static int text_open(const leat_open *open, leat_reader **out)
{
    leat__record_format *format;
    uint64_t max_line = (uint64_t)leat_args_number(open->args, "max_record");
    int status = leat__text_format_create(&format, max_line);
    return status ? status : leat__record_reader_open(open, format, out);
}

static const leat_argument text_arguments[] = {
    LEAT__RECORD_ARGUMENTS,
    {0},
};

const leat_reader_type leat__text_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "text",
    .help = "lines of text, without their ends",
    .arguments = text_arguments,
    .argument_size = sizeof(leat_argument),
    .open = text_open,
};

int leat_pipeline_text_lines(leat_pipeline **out, const char *const path[],
                             int n, const leat_file_options *options)
{
    return leat__record_pipeline(out, &leat__text_reader_type, path, n, "",
                                 options);
}
