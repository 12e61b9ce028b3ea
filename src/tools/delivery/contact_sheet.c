#include "tools/delivery/contact_sheet.h"

#include "base/error.h"
#include "base/file.h"
#include "tools/cli/interrupt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Distances in pixels. */
enum {
    MARGIN = 16,
    GAP = 8,     /* between cells */
    PADDING = 6, /* between a cell's edge and its content */
    HEAD = 52,
    LABEL_SCALE = 2,
    LINE = 11, /* of small letters */
    CAPTION = LABEL_SCALE * FONT_HEIGHT + 2 * LINE + 2,
    MIN_WIDTH = 420,
    MAX_PIXELS = 200000000
};

static const raster_color paper = 0xeceff1, white = 0xffffff, line = 0xcfd8dc,
                          ink = 0x263238, faded = 0x607d8b, faint = 0x90a4ae,
                          rose = 0xfdecea, red = 0xb71c1c;

void picture_begin(struct picture *out, int64_t number, const void *key,
                   size_t size, size_t cut)
{
    memset(out, 0, sizeof(*out));
    if (number >= 0)
        snprintf(out->number, sizeof(out->number), "#%lld", (long long)number);
    if (key)
        inspection_key(out->key, key, size, cut);
}

int contact_sheet_init(struct contact_sheet *out, int64_t n, int64_t side,
                       int64_t columns)
{
    out->side = (int)side;
    out->cell_width = out->side + 2 * PADDING;
    out->cell_height = out->side + 3 * PADDING + CAPTION;
    if (n < 1)
        n = 1;
    /* By default the sheet is wider than high. */
    if (!columns)
        columns = thumbnail_columns(n, out->cell_width, 1.5 * out->cell_height);
    out->columns = (int)(columns < n ? columns : n);
    int64_t rows = (n + out->columns - 1) / out->columns;
    int64_t width =
        (int64_t)out->columns * (out->cell_width + GAP) - GAP + 2 * MARGIN;
    int64_t height = rows * (out->cell_height + GAP) - GAP + 2 * MARGIN + HEAD;
    width = width < MIN_WIDTH ? MIN_WIDTH : width;
    if (height > MAX_PIXELS / width)
        return leat_error(LEAT_EINVAL,
                          "a sheet of %lld pictures would have %lld x %lld "
                          "pixels, more than %lld in all; ask for fewer or "
                          "smaller ones",
                          (long long)n, (long long)width, (long long)height,
                          (long long)MAX_PIXELS);
    return raster_init(&out->raster, (int)width, (int)height, paper);
}

/* Which end of a text that is too long gives way. */
enum cut { CUT_START, CUT_END };

/* Writes the text, cut with "..." to `room` pixels. Returns its width. */
static int write_text(struct contact_sheet *sheet, int x, int y,
                      const char *text, int scale, int room, enum cut cut,
                      raster_color color)
{
    char shown[512];
    int max = (room + scale) / (FONT_ADVANCE * scale);
    int length = (int)strlen(text);
    if (max > (int)sizeof(shown) - 1)
        max = sizeof(shown) - 1;
    if (length > max && max < 4)
        return 0;
    if (length <= max)
        memcpy(shown, text, (size_t)length);
    else if (cut == CUT_START)
        snprintf(shown, sizeof(shown), "...%s", text + length - max + 3);
    else
        snprintf(shown, sizeof(shown), "%.*s...", max - 3, text);
    length = length < max ? length : max;
    raster_write(&sheet->raster, x, y, shown, length, scale, color);
    return length * FONT_ADVANCE * scale;
}

void contact_sheet_title(struct contact_sheet *sheet, const char *title,
                         const char *subtitle)
{
    int room = sheet->raster.width - 2 * MARGIN;
    write_text(sheet, MARGIN, MARGIN, title, 2, room, CUT_START, ink);
    write_text(sheet, MARGIN, MARGIN + 24, subtitle, 1, room, CUT_END, faded);
}

static void write_caption(struct contact_sheet *sheet, int x, int y,
                          const struct picture *picture)
{
    const struct thumbnail *shown = &picture->thumbnail;
    int room = sheet->side;
    int label = write_text(sheet, x, y, picture->label, LABEL_SCALE, room,
                           CUT_END, picture->reason ? red : ink);
    int number = (int)strlen(picture->number) * FONT_ADVANCE - 1;
    if (number + label <= room)
        write_text(sheet, x + room - number, y + FONT_HEIGHT - LABEL_SCALE,
                   picture->number, 1, room, CUT_END, faded);
    y += LABEL_SCALE * FONT_HEIGHT + 2;
    write_text(sheet, x, y, picture->key, 1, room, CUT_START, faded);
    char kind[96] = "";
    if (!picture->reason)
        snprintf(kind, sizeof(kind), "%dx%dx%d %s", shown->channels,
                 shown->height, shown->width, picture->type);
    write_text(sheet, x, y + LINE, kind, 1, room, CUT_END, faint);
}

/* How many letters of the text fill a line: whole words where they fit. */
static int line_length(const char *text, int max)
{
    int length = (int)strlen(text), end = max;
    if (length <= max)
        return length;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : max;
}

/* The reason in lines, as many as fit. */
static void write_reason(struct contact_sheet *sheet, int x, int y,
                         const char *reason)
{
    int max = (sheet->side + 1) / FONT_ADVANCE, end = y + sheet->side;
    for (y += 2; *reason && y + LINE <= end; y += LINE) {
        bool is_last = y + 2 * LINE > end;
        int length = line_length(reason, max);
        if (is_last)
            write_text(sheet, x, y, reason, 1, sheet->side, CUT_END, red);
        else
            raster_write(&sheet->raster, x, y, reason, length, 1, red);
        reason += length;
        reason += strspn(reason, " ");
    }
}

void contact_sheet_draw(struct contact_sheet *sheet, int64_t i,
                        const struct picture *picture)
{
    struct raster *raster = &sheet->raster;
    int width = sheet->cell_width, height = sheet->cell_height;
    int x = MARGIN + (int)(i % sheet->columns) * (width + GAP);
    int y = MARGIN + HEAD + (int)(i / sheet->columns) * (height + GAP);
    raster_fill(raster, x, y, width, height, line);
    raster_fill(raster, x + 1, y + 1, width - 2, height - 2,
                picture->reason ? rose : white);
    x += PADDING;
    y += PADDING;
    if (picture->reason)
        write_reason(sheet, x, y, picture->reason);
    else
        thumbnail_draw(&picture->thumbnail, raster, x, y, sheet->side);
    write_caption(sheet, x, y + sheet->side + PADDING, picture);
}

image_writer *contact_sheet_writer(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || !strcasecmp(dot, ".png"))
        return image_writer_png;
    if (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"))
        return image_writer_jpeg;
    return NULL;
}

int contact_sheet_save(const struct contact_sheet *sheet, const char *path)
{
    enum { QUALITY = 92 };
    unsigned char *bytes;
    size_t size;
    int status = image_writer_bytes(&sheet->raster, contact_sheet_writer(path),
                                    QUALITY, interrupt_check, &bytes, &size);
    if (status)
        return status;
    status = interrupt_check();
    errno = 0;
    if (!status && strcmp(path, "-") != 0)
        status = leat__file_write(path, bytes, size);
    else if (!status && fwrite(bytes, 1, size, stdout) != size)
        status = leat__error_system(errno ? errno : EIO, "stdout");
    free(bytes);
    return status;
}
