#include "support/jpeg_pair.h"
#include "device/transform_rows.h"
#include "support/jpeg_source.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS_MAX ((int64_t)1 << 20)

const char *const jpeg_isas[JPEG_ISAS] = {"c", "avx2", "avx512"};

static leat_image_decoder *decoder_by(const char *variable, const char *value)
{
    leat_image_decoder *decoder;
    setenv(variable, value, 1);
    ck_assert_int_eq(leat_image_decoder_create(&decoder), LEAT_OK);
    unsetenv(variable);
    return decoder;
}

leat_image_decoder *jpeg_decoder(const char *isa)
{
    if (!leat__row_kernels_find(isa))
        return NULL;
    return decoder_by("LEAT_ISA", isa);
}

jpeg_path jpeg_path_since(const leat_image_decoder *decoder,
                          leat__jpeg_counts before)
{
    leat__jpeg_counts now = leat__image_jpeg_counts(decoder);
    int64_t fast = now.fast - before.fast;
    int64_t library = now.library - before.library;
    if (fast < 0 || library < 0 || fast + library > 1)
        ck_abort_msg("one image counts as %d and %d", (int)fast, (int)library);
    return fast ? JPEG_FAST : library ? JPEG_LIBRARY : JPEG_NOT_DECODED;
}

bool jpeg_pair_open(jpeg_pair *out, const char *isa)
{
    out->whole = jpeg_decoder(isa);
    if (!out->whole)
        return false;
    out->part = jpeg_decoder(isa);
    out->library = decoder_by("LEAT_JPEG", "libjpeg");
    return true;
}

void jpeg_pair_close(jpeg_pair *pair)
{
    ck_assert_int_eq(leat__image_jpeg_counts(pair->library).fast, 0);
    leat_image_decoder_destroy(pair->whole);
    leat_image_decoder_destroy(pair->part);
    leat_image_decoder_destroy(pair->library);
}

leat__image_region jpeg_region_pick(int height, int width, uint64_t seed)
{
    leat__image_region region = {.rows = 1 + jpeg_random_below(&seed, height),
                                 .columns =
                                     1 + jpeg_random_below(&seed, width)};
    region.row = jpeg_random_below(&seed, height - region.rows + 1);
    region.column = jpeg_random_below(&seed, width - region.columns + 1);
    return region;
}

int jpeg_decode_region(leat_image_decoder *decoder, const void *bytes,
                       size_t size, leat_color color,
                       const leat__image_region *region, leat_image *out)
{
    int status = leat__image_open(decoder, bytes, size, color, out);
    return status ? status : leat__image_read(decoder, region, out);
}

int jpeg_other_row(const leat_image *whole, const leat_image *part,
                   const leat__image_region *region)
{
    if (part->channels != whole->channels || part->height != whole->height ||
        part->width != whole->width)
        return 0;
    size_t channels = (size_t)whole->channels;
    for (int row = region->row; row < region->row + region->rows; row++) {
        size_t offset =
            ((size_t)row * (size_t)whole->width + (size_t)region->column) *
            channels;
        if (memcmp(whole->pixels + offset, part->pixels + offset,
                   (size_t)region->columns * channels) != 0)
            return row;
    }
    return -1;
}

/* What a decoder returned for the latest image. */
typedef struct result {
    int status;
    char line[512]; /* of the error */
    char warning[256];
    leat_image image;
} result;

static void keep_lines(result *result, const leat_image_decoder *decoder)
{
    const char *warning = leat_image_warning(decoder);
    snprintf(result->line, sizeof(result->line), "%s",
             result->status < 0 ? leat_last_error() : "");
    snprintf(result->warning, sizeof(result->warning), "%s",
             warning ? warning : "");
}

/* Asserts of Check that hold cost a system call each. */
static void compare(const char *name, const result *own, const result *library,
                    const leat__image_region *region)
{
    if (own->status != library->status)
        ck_abort_msg("%s: %d (%s), not %d (%s)", name, own->status, own->line,
                     library->status, library->line);
    if (strcmp(own->line, library->line) != 0)
        ck_abort_msg("%s: error '%s', not '%s'", name, own->line,
                     library->line);
    if (strcmp(own->warning, library->warning) != 0)
        ck_abort_msg("%s: warning '%s', not '%s'", name, own->warning,
                     library->warning);
    if (own->status != LEAT_OK)
        return;
    int row = jpeg_other_row(&library->image, &own->image, region);
    if (row >= 0)
        ck_abort_msg("%s: %d x %d at %d, %d: row %d differs", name,
                     region->rows, region->columns, region->row, region->column,
                     row);
}

/*
 * Between restart markers, data that no pixel of a region takes from is not
 * decoded, and what is wrong there is not met.
 */
static bool has_restarts(const void *bytes, size_t size)
{
    return memmem(bytes, size, "\xff\xdd", 2) != NULL;
}

/* Returns the status. */
static int check_all(jpeg_pair *pair, const char *name, const void *bytes,
                     size_t size, leat_color color,
                     const leat__image_region *region)
{
    result library, whole, part;
    leat__image_region all = {.rows = 1, .columns = 1};
    library.status =
        leat_image_decode(pair->library, bytes, size, color, &library.image);
    keep_lines(&library, pair->library);
    whole.status =
        leat_image_decode(pair->whole, bytes, size, color, &whole.image);
    keep_lines(&whole, pair->whole);
    part.status =
        jpeg_decode_region(pair->part, bytes, size, color, region, &part.image);
    keep_lines(&part, pair->part);
    if (library.status == LEAT_OK) {
        all.rows = library.image.height;
        all.columns = library.image.width;
    }
    compare(name, &whole, &library, &all);
    if (!*part.warning && has_restarts(bytes, size))
        library.warning[0] = 0;
    compare(name, &part, &library, region);
    if (leat_image_warnings(pair->whole) != leat_image_warnings(pair->library))
        ck_abort_msg("%s: other warnings", name);
    return library.status;
}

jpeg_verdict jpeg_pair_check(jpeg_pair *pair, const char *name,
                             const void *bytes, size_t size, leat_color color,
                             uint64_t seed)
{
    unsigned char *copy = malloc(size + !size);
    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    leat_image header = {.height = 1, .width = 1};
    if (leat_image_probe(pair->library, copy, size, color, &header) ==
            LEAT_OK &&
        (int64_t)header.height * header.width > PIXELS_MAX) {
        free(copy);
        return (jpeg_verdict){.status = LEAT_END};
    }
    leat__image_region region =
        jpeg_region_pick(header.height, header.width, seed);
    leat__jpeg_counts before = leat__image_jpeg_counts(pair->whole);
    int64_t warnings = leat_image_warnings(pair->library);
    int status = check_all(pair, name, copy, size, color, &region);
    free(copy);
    return (jpeg_verdict){.status = status,
                          .is_warned =
                              leat_image_warnings(pair->library) > warnings,
                          .path = jpeg_path_since(pair->whole, before)};
}
