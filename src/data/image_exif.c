#include "data/image_exif.h"

#include <stdbool.h>
#include <stdint.h>

#define TIFF_MARK 0x2a
#define ENTRY_BYTES 12

enum exif_tag {
    TAG_DESCRIPTION = 0x10e,
    TAG_MAKE = 0x10f,
    TAG_MODEL = 0x110,
    TAG_ORIENTATION = 0x112,
    TAG_X_RESOLUTION = 0x11a,
    TAG_Y_RESOLUTION = 0x11b,
    TAG_RESOLUTION_UNIT = 0x128,
    TAG_SOFTWARE = 0x131,
    TAG_DATE_TIME = 0x132,
    TAG_WHITE_POINT = 0x13e,
    TAG_PRIMARY_CHROMATICITIES = 0x13f,
    TAG_YCBCR_COEFFICIENTS = 0x211,
    TAG_YCBCR_POSITIONING = 0x213,
    TAG_REFERENCE_BLACK_WHITE = 0x214,
    TAG_COPYRIGHT = 0x8298
};

typedef struct exif_block {
    const unsigned char *bytes;
    size_t size;
    bool is_little;
} exif_block;

/* Each returns false if the block is too short. */
static bool read_u16(const exif_block *block, uint64_t offset, uint32_t *out)
{
    if (offset + 2 > block->size)
        return false;
    const unsigned char *p = block->bytes + offset;
    *out = block->is_little ? (uint32_t)(p[0] | p[1] << 8)
                            : (uint32_t)(p[0] << 8 | p[1]);
    return true;
}

static bool read_u32(const exif_block *block, uint64_t offset, uint32_t *out)
{
    uint32_t first, second;
    if (offset + 4 > block->size || !read_u16(block, offset, &first) ||
        !read_u16(block, offset + 2, &second))
        return false;
    *out = block->is_little ? second << 16 | first : first << 16 | second;
    return true;
}

/* A text of up to 4 bytes is read at offset 8, as in OpenCV. */
static bool has_text(const exif_block *block, uint64_t entry)
{
    uint32_t bytes, offset = 8;
    if (!read_u32(block, entry + 4, &bytes))
        return false;
    if (bytes > 4 && !read_u32(block, entry + 8, &offset))
        return false;
    return (uint64_t)offset + bytes <= block->size;
}

static bool has_rationals(const exif_block *block, uint64_t entry, unsigned n)
{
    uint32_t offset;
    return read_u32(block, entry + 8, &offset) &&
           offset + (uint64_t)8 * n <= block->size;
}

/*
 * Whether OpenCV can read the entry's value: it stops at the first entry that
 * points outside the block, and never reaches a later orientation.
 */
static bool is_readable(const exif_block *block, uint64_t entry, uint32_t tag)
{
    uint32_t value;
    switch (tag) {
    case TAG_DESCRIPTION:
    case TAG_MAKE:
    case TAG_MODEL:
    case TAG_SOFTWARE:
    case TAG_DATE_TIME:
    case TAG_COPYRIGHT:
        return has_text(block, entry);
    case TAG_X_RESOLUTION:
    case TAG_Y_RESOLUTION:
        return has_rationals(block, entry, 1);
    case TAG_WHITE_POINT:
        return has_rationals(block, entry, 2);
    case TAG_YCBCR_COEFFICIENTS:
        return has_rationals(block, entry, 3);
    case TAG_PRIMARY_CHROMATICITIES:
    case TAG_REFERENCE_BLACK_WHITE:
        return has_rationals(block, entry, 6);
    case TAG_RESOLUTION_UNIT:
    case TAG_YCBCR_POSITIONING:
        return read_u16(block, entry + 8, &value);
    default:
        return true;
    }
}

/* The value of the first orientation entry; 0 if it is not reached. */
static uint32_t find_orientation(const exif_block *block)
{
    uint32_t mark, directory, entries, tag, value;
    if (!read_u16(block, 2, &mark) || mark != TIFF_MARK ||
        !read_u32(block, 4, &directory) ||
        !read_u16(block, directory, &entries))
        return 0;
    uint64_t entry = (uint64_t)directory + 2;
    for (uint32_t i = 0; i < entries; i++, entry += ENTRY_BYTES) {
        if (!read_u16(block, entry, &tag))
            return 0;
        if (tag == TAG_ORIENTATION)
            return read_u16(block, entry + 8, &value) ? value : 0;
        if (!is_readable(block, entry, tag))
            return 0;
    }
    return 0;
}

int leat__exif_orientation(const void *tiff, size_t size)
{
    exif_block block = {.bytes = tiff, .size = size};
    /* Anything but "II" is read as big-endian, "MM" or not. */
    block.is_little =
        size > 1 && block.bytes[0] == 'I' && block.bytes[1] == 'I';
    uint32_t value = find_orientation(&block);
    return value >= 1 && value <= 8 ? (int)value : 1;
}
