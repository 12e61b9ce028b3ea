#include "tools/inspect/contact_sheet.h"

#include "tools/image/font.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Distances in pixels. */
enum {
    MARGIN = 16,
    GAP = 8,     /* between cells */
    PADDING = 6, /* between a cell's edge and what is in it */
    HEAD = 52,
    LABEL_SCALE = 2,
    LINE = 11, /* of small letters */
    CAPTION = LABEL_SCALE * FONT_HEIGHT + 2 * LINE + 2,
    MOST_PIXELS = 200000000
};

static const raster_color paper = 0xeceff1, white = 0xffffff, line = 0xcfd8dc,
                          ink = 0x263238, faded = 0x607d8b, faint = 0x90a4ae,
                          rose = 0xfdecea, red = 0xb71c1c;

/* A sheet somewhat wider than high. */
static int good_columns(int64_t n, int cell_width, int cell_height)
{
    double columns = ceil(sqrt(1.5 * (double)n * cell_height / cell_width));
    return columns < 1 ? 1 : columns > (double)n ? (int)n : (int)columns;
}

int contact_sheet_init(struct contact_sheet *out, int64_t n, int side,
                       int columns)
{
    out->side = side;
    out->cell_width = side + 2 * PADDING;
    out->cell_height = side + 3 * PADDING + CAPTION;
    if (n < 1)
        n = 1;
    if (columns > n)
        columns = (int)n;
    if (!columns)
        columns = good_columns(n, out->cell_width, out->cell_height);
    out->columns = columns;
    int64_t rows = (n + columns - 1) / columns;
    int64_t width = (int64_t)columns * (out->cell_width + GAP) - GAP;
    int64_t height = rows * (out->cell_height + GAP) - GAP;
    width += 2 * MARGIN;
    height += 2 * MARGIN + HEAD;
    width = width < 420 ? 420 : width;
    if (height > MOST_PIXELS / width)
        return leat_error(LEAT_EINVAL,
                          "a sheet of %lld pictures would have %lld x %lld "
                          "pixels; ask for fewer or smaller ones",
                          (long long)n, (long long)width, (long long)height);
    return raster_init(&out->raster, (int)width, (int)height, paper);
}

void contact_sheet_finish(struct contact_sheet *sheet)
{
    raster_finish(&sheet->raster);
}

/* Of a path or a key too long the end tells more than the beginning. */
static void write_end(struct raster *raster, int x, int y, const char *text,
                      int scale, int room, raster_color color)
{
    char shown[512];
    int most = raster_letters(room, scale), length = (int)strlen(text);
    if (length > most && most > 3 && most < (int)sizeof(shown)) {
        snprintf(shown, sizeof(shown), "...%s", text + length - most + 3);
        text = shown;
    }
    raster_write(raster, x, y, text, scale, room, color);
}

void contact_sheet_title(struct contact_sheet *sheet, const char *title,
                         const char *subtitle)
{
    struct raster *raster = &sheet->raster;
    int room = raster->width - 2 * MARGIN;
    write_end(raster, MARGIN, MARGIN, title, 2, room, ink);
    raster_write(raster, MARGIN, MARGIN + 24, subtitle, 1, room, faded);
}

/* The upper left corner of what is in cell `i`. */
static void begin_cell(struct contact_sheet *sheet, int64_t i,
                       raster_color color, int *x, int *y)
{
    *x = MARGIN + (int)(i % sheet->columns) * (sheet->cell_width + GAP);
    *y = MARGIN + HEAD + (int)(i / sheet->columns) * (sheet->cell_height + GAP);
    raster_fill(&sheet->raster, *x, *y, sheet->cell_width, sheet->cell_height,
                color);
    raster_frame(&sheet->raster, *x, *y, sheet->cell_width, sheet->cell_height,
                 line);
    *x += PADDING;
    *y += PADDING;
}

static void write_caption(struct contact_sheet *sheet, int x, int y,
                          const struct caption *caption, raster_color color)
{
    struct raster *raster = &sheet->raster;
    int room = sheet->side, label = 0;
    y += sheet->side + PADDING;
    if (caption->label)
        label = raster_write(raster, x, y, caption->label, LABEL_SCALE, room,
                             color);
    if (caption->number) {
        int wide = (int)strlen(caption->number) * FONT_ADVANCE - 1;
        if (wide + label <= room)
            raster_write(raster, x + room - wide, y + FONT_HEIGHT - LABEL_SCALE,
                         caption->number, 1, room, faded);
    }
    y += LABEL_SCALE * FONT_HEIGHT + 2;
    if (caption->key)
        write_end(raster, x, y, caption->key, 1, room, faded);
    if (caption->kind)
        raster_write(raster, x, y + LINE, caption->kind, 1, room, faint);
}

void contact_sheet_draw(struct contact_sheet *sheet, int64_t i,
                        const struct thumbnail *thumbnail,
                        const struct caption *caption)
{
    int x, y;
    begin_cell(sheet, i, white, &x, &y);
    thumbnail_draw(thumbnail, &sheet->raster, x, y, sheet->side);
    write_caption(sheet, x, y, caption, ink);
}

/* How many letters of the text go on a line: whole words where they fit. */
static int line_length(const char *text, int most)
{
    int length = (int)strlen(text), end = most;
    if (length <= most)
        return length;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : most;
}

void contact_sheet_refuse(struct contact_sheet *sheet, int64_t i,
                          const char *reason, const struct caption *caption)
{
    int x, y;
    begin_cell(sheet, i, rose, &x, &y);
    int most = raster_letters(sheet->side, 1), end = y + sheet->side;
    for (int top = y + 2; *reason && most > 0 && top + LINE <= end;
         top += LINE) {
        char text[512];
        int is_last = top + 2 * LINE > end;
        int length = line_length(reason, most);
        snprintf(text, sizeof(text), "%.*s", is_last ? 511 : length, reason);
        raster_write(&sheet->raster, x, top, text, 1, sheet->side, red);
        reason += length;
        while (*reason == ' ')
            reason++;
    }
    write_caption(sheet, x, y, caption, red);
}
