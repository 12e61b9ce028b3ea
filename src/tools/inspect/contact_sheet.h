/* contact_sheet.h: pictures in rows, each with its caption. */
#ifndef LEAT_TOOLS_INSPECT_CONTACT_SHEET_H
#define LEAT_TOOLS_INSPECT_CONTACT_SHEET_H

#include "tools/image/raster.h"
#include "tools/inspect/thumbnail.h"

/* What stands below a picture; NULL: nothing. */
struct caption {
    const char *label;  /* large */
    const char *number; /* at its right */
    const char *key;
    const char *kind;
};

struct contact_sheet {
    struct raster raster;
    int side; /* of a picture's square */
    int columns;
    int cell_width, cell_height;
};

/*
 * An empty sheet for `n` pictures of `side` pixels in so many columns, 0: as
 * many as look good. Errors: LEAT_EINVAL for a sheet too large, LEAT_ENOMEM.
 */
int contact_sheet_init(struct contact_sheet *out, int64_t n, int side,
                       int columns);
void contact_sheet_finish(struct contact_sheet *sheet);

/* What stands above all. */
void contact_sheet_title(struct contact_sheet *sheet, const char *title,
                         const char *subtitle);

/* Draws picture `i`. */
void contact_sheet_draw(struct contact_sheet *sheet, int64_t i,
                        const struct thumbnail *thumbnail,
                        const struct caption *caption);

/* Writes in its place why there is none. */
void contact_sheet_refuse(struct contact_sheet *sheet, int64_t i,
                          const char *reason, const struct caption *caption);

#endif
