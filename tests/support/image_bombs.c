#include "support/image_bombs.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void bomb_put(bomb *out, const void *bytes, size_t size)
{
    out->bytes = realloc(out->bytes, out->size + size + 1);
    ck_assert_ptr_nonnull(out->bytes);
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

void bomb_zeros(bomb *out, size_t size)
{
    unsigned char *zeros = calloc(1, size + 1);
    ck_assert_ptr_nonnull(zeros);
    bomb_put(out, zeros, size);
    free(zeros);
}

static void put_segment(bomb *out, int marker, const void *bytes, size_t size)
{
    unsigned char head[4] = {0xff, (unsigned char)marker,
                             (unsigned char)((size + 2) >> 8),
                             (unsigned char)(size + 2)};
    bomb_put(out, head, sizeof(head));
    bomb_put(out, bytes, size);
}

void bomb_jpeg(bomb *out, int frame, int width, int height, int components)
{
    static const unsigned char dc[18] = {0x00, 1};
    static const unsigned char ac[18] = {0x10, 1, [17] = 0xe0};
    unsigned char table[65] = {0};
    memset(table + 1, 1, 64);
    bomb_put(out, "\xff\xd8", 2);
    put_segment(out, 0xdb, table, sizeof(table));
    put_segment(out, 0xc4, dc, sizeof(dc));
    put_segment(out, 0xc4, ac, sizeof(ac));
    unsigned char head[6 + 3 * 4] = {
        8,
        (unsigned char)(height >> 8),
        (unsigned char)height,
        (unsigned char)(width >> 8),
        (unsigned char)width,
        (unsigned char)components,
    };
    for (int i = 0; i < components && i < 4; i++) {
        head[6 + 3 * i] = (unsigned char)(i + 1);
        head[7 + 3 * i] = 0x11;
    }
    put_segment(out, frame, head, 6 + 3 * (size_t)components);
}

void bomb_scan(bomb *out, int components, int last, int high, int low)
{
    unsigned char head[1 + 2 * 4 + 3] = {(unsigned char)components};
    unsigned char *at = head + 1;
    for (int i = 0; i < components && i < 4; i++, at += 2)
        at[0] = (unsigned char)(i + 1);
    *at++ = last > 0;
    *at++ = (unsigned char)last;
    *at++ = (unsigned char)(high << 4 | low);
    put_segment(out, 0xda, head, (size_t)(at - head));
}

void bomb_jpeg_end(bomb *out)
{
    bomb_put(out, "\xff\xd9", 2);
}

static void put_u32(bomb *out, size_t value)
{
    uint32_t big = htonl((uint32_t)value);
    bomb_put(out, &big, sizeof(big));
}

void bomb_chunk(bomb *out, const char *name, const void *data, size_t size)
{
    put_u32(out, size);
    size_t start = out->size;
    bomb_put(out, name, 4);
    bomb_put(out, data, size);
    put_u32(out, crc32(0, out->bytes + start, (uInt)(4 + size)));
}

void bomb_png(bomb *out, int width, int height, int depth, int color_type)
{
    unsigned char head[13] = {0};
    uint32_t size[2] = {htonl((uint32_t)width), htonl((uint32_t)height)};
    memcpy(head, size, sizeof(size));
    head[8] = (unsigned char)depth;
    head[9] = (unsigned char)color_type;
    bomb_put(out, "\x89PNG\r\n\x1a\n", 8);
    bomb_chunk(out, "IHDR", head, sizeof(head));
}

void bomb_deflated_chunk(bomb *out, const char *name, const void *head,
                         size_t head_size, const void *data, size_t size)
{
    uLongf deflated = compressBound(size);
    unsigned char *chunk = malloc(head_size + deflated);
    ck_assert_ptr_nonnull(chunk);
    if (head_size)
        memcpy(chunk, head, head_size);
    ck_assert_int_eq(compress2(chunk + head_size, &deflated, data, size, 9),
                     Z_OK);
    bomb_chunk(out, name, chunk, head_size + deflated);
    free(chunk);
}

void bomb_black_png(bomb *out, int width, int height)
{
    size_t size = (1 + ((size_t)width + 7) / 8) * (size_t)height;
    unsigned char *rows = calloc(1, size);
    ck_assert_ptr_nonnull(rows);
    bomb_png(out, width, height, 1, 0);
    bomb_deflated_chunk(out, "IDAT", NULL, 0, rows, size);
    bomb_chunk(out, "IEND", "", 0);
    free(rows);
}
