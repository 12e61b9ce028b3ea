/* contact_sheet.h: pictures in rows, each with its caption. */
#ifndef LEAT_TOOLS_DELIVERY_CONTACT_SHEET_H
#define LEAT_TOOLS_DELIVERY_CONTACT_SHEET_H

#include "tools/database/inspection.h"
#include "tools/delivery/thumbnail.h"
#include "tools/image/image_writer.h"

/* A record's picture, or the reason why there is none, and the text below. */
struct picture {
    struct thumbnail thumbnail;
    const char *type;   /* of its elements, or its encoding */
    const char *reason; /* NULL: there is a picture */
    char label[64];     /* large */
    char number[32];    /* at its right */
    char key[KEY_TEXT]; /* "": none */
};

/* The number and key of a record; `number` below 0 and no `key`: unknown. */
void picture_begin(struct picture *out, int64_t number, const void *key,
                   size_t size, size_t cut);

struct contact_sheet {
    struct raster raster;
    int side; /* of a picture's square */
    int columns;
    int cell_width, cell_height;
};

/*
 * An empty sheet for `n` pictures of `side` pixels in so many columns; 0: as
 * many as look good. raster_finish(&out->raster) frees it. Errors: LEAT_EINVAL
 * for a sheet too large, LEAT_ENOMEM.
 */
int contact_sheet_init(struct contact_sheet *out, int64_t n, int64_t side,
                       int64_t columns);

/* The two lines above the pictures. */
void contact_sheet_title(struct contact_sheet *sheet, const char *title,
                         const char *subtitle);

/* Draws picture `i`. */
void contact_sheet_draw(struct contact_sheet *sheet, int64_t i,
                        const struct picture *picture);

/*
 * What writes a sheet to a file of that name: a JPEG for .jpg and .jpeg, a PNG
 * for .png and without an extension; NULL for others.
 */
image_writer *contact_sheet_writer(const char *path);

/*
 * Saves it in the format of its name; "-" is stdout. A file appears whole or
 * not at all; an existing file that is not regular stays. Errors: LEAT_EINVAL
 * for that, and for a JPEG with a side over 65500; LEAT_EIO, LEAT_ENOMEM;
 * LEAT_ECANCELLED once a signal has arrived.
 */
int contact_sheet_save(const struct contact_sheet *sheet, const char *path);

#endif
