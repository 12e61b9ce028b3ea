#include "support/jpeg_writer.h"

#include <stdlib.h>
#include <string.h>

enum { DHT = 0xc4, RST0 = 0xd0, EOI = 0xd9, SOF0 = 0xc0, SOS = 0xda };
enum { DQT = 0xdb, DRI = 0xdd };

static int ac_symbol(int number)
{
    if (number < 2)
        return number ? JPEG_ZERO_RUN : JPEG_END_OF_BLOCK;
    return (number - 2) / 10 << 4 | ((number - 2) % 10 + 1);
}

jpeg_codes jpeg_codes_make(jpeg_class class, int shape, int rotation)
{
    static const unsigned char counts[3][16] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {1, 1, 1, 1, 1, 1, 1, 1, [15] = JPEG_AC_SYMBOLS - 8},
        {0, 1, 1, 1, 1, 1, 1, 1, JPEG_AC_SYMBOLS - 14, 1, 1, 1, 1, 1, 1, 1},
    };
    int n = class == JPEG_DC ? JPEG_DC_SYMBOLS : JPEG_AC_SYMBOLS;
    jpeg_codes codes = {0};
    memcpy(codes.counts, counts[class == JPEG_DC ? 0 : 1 + shape], 16);
    for (int i = 0; i < n; i++) {
        int number = (i + rotation) % n;
        codes.symbols[i] =
            (unsigned char)(class == JPEG_DC ? number : ac_symbol(number));
    }
    return codes;
}

void jpeg_put(jpeg_writer *writer, const void *bytes, size_t size)
{
    if (size > writer->capacity - writer->size) {
        writer->capacity = 2 * (writer->size + size) + 1024;
        writer->bytes = realloc(writer->bytes, writer->capacity);
        if (!writer->bytes)
            abort();
    }
    memcpy(writer->bytes + writer->size, bytes, size);
    writer->size += size;
}

static void put_byte(jpeg_writer *writer, int byte)
{
    jpeg_put(writer, &(unsigned char){(unsigned char)byte}, 1);
}

void jpeg_put_marker(jpeg_writer *writer, int marker)
{
    put_byte(writer, 0xff);
    put_byte(writer, marker);
}

void jpeg_put_segment(jpeg_writer *writer, int marker, const void *bytes,
                      size_t size)
{
    jpeg_put_marker(writer, marker);
    put_byte(writer, (int)((size + 2) >> 8));
    put_byte(writer, (int)(size + 2));
    jpeg_put(writer, bytes, size);
}

void jpeg_put_quantum(jpeg_writer *writer, int table, int value)
{
    unsigned char bytes[65] = {(unsigned char)table};
    memset(bytes + 1, value, 64);
    jpeg_put_segment(writer, DQT, bytes, sizeof(bytes));
}

void jpeg_put_codes(jpeg_writer *writer, jpeg_class class, int table,
                    const jpeg_codes *codes)
{
    unsigned char bytes[17 + 256] = {(unsigned char)(class << 4 | table)};
    memcpy(bytes + 1, codes->counts, 16);
    memset(writer->codes[class][table], 0, sizeof(writer->codes[0][0]));
    unsigned code = 0, n = 0;
    for (int length = 1; length <= 16; length++, code <<= 1)
        for (int i = 0; i < codes->counts[length - 1]; i++, n++, code++) {
            unsigned char symbol = codes->symbols[n];
            bytes[17 + n] = symbol;
            writer->codes[class][table][symbol].code = (uint16_t)code;
            writer->codes[class][table][symbol].length = (unsigned char)length;
        }
    jpeg_put_segment(writer, DHT, bytes, 17 + n);
}

void jpeg_put_frame(jpeg_writer *writer, int width, int height, int components,
                    const unsigned char *factors)
{
    unsigned char bytes[6 + 3 * 4] = {8,
                                      (unsigned char)(height >> 8),
                                      (unsigned char)height,
                                      (unsigned char)(width >> 8),
                                      (unsigned char)width,
                                      (unsigned char)components};
    for (int i = 0; i < components; i++) {
        bytes[6 + 3 * i] = (unsigned char)(i + 1);
        bytes[7 + 3 * i] = factors[i];
    }
    jpeg_put_segment(writer, SOF0, bytes, 6 + 3 * (size_t)components);
}

void jpeg_put_interval(jpeg_writer *writer, int mcus)
{
    unsigned char bytes[2] = {(unsigned char)(mcus >> 8), (unsigned char)mcus};
    jpeg_put_segment(writer, DRI, bytes, sizeof(bytes));
}

void jpeg_put_scan(jpeg_writer *writer, int components,
                   const unsigned char *tables)
{
    unsigned char bytes[1 + 2 * 4 + 3] = {(unsigned char)components};
    for (int i = 0; i < components; i++) {
        bytes[1 + 2 * i] = (unsigned char)(i + 1);
        bytes[2 + 2 * i] = tables[i];
    }
    bytes[2 + 2 * components] = 63;
    jpeg_put_segment(writer, SOS, bytes, 4 + 2 * (size_t)components);
    memset(writer->predicted, 0, sizeof(writer->predicted));
}

void jpeg_put_bits(jpeg_writer *writer, unsigned bits, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        writer->bits = writer->bits << 1 | (bits >> i & 1);
        if (++writer->bit_count < 8)
            continue;
        writer->bit_count = 0;
        put_byte(writer, (int)(writer->bits & 0xff));
        if ((writer->bits & 0xff) == 0xff)
            put_byte(writer, 0);
    }
}

void jpeg_put_symbol(jpeg_writer *writer, jpeg_class class, int table,
                     int symbol)
{
    if (!writer->codes[class][table][symbol].length)
        abort();
    jpeg_put_bits(writer, writer->codes[class][table][symbol].code,
                  writer->codes[class][table][symbol].length);
}

int jpeg_size_of(int value)
{
    int size = 0;
    for (int rest = abs(value); rest; rest >>= 1)
        size++;
    return size;
}

void jpeg_put_value(jpeg_writer *writer, int value, int size)
{
    jpeg_put_bits(writer, (unsigned)(value < 0 ? value - 1 : value), size);
}

void jpeg_put_dc(jpeg_writer *writer, int component, int table, int value)
{
    int difference = value - writer->predicted[component];
    int size = jpeg_size_of(difference);
    writer->predicted[component] = value;
    jpeg_put_symbol(writer, JPEG_DC, table, size);
    jpeg_put_value(writer, difference, size);
}

void jpeg_put_acs(jpeg_writer *writer, int table, const int coefficients[64])
{
    int run = 0;
    for (int i = 1; i < 64; i++) {
        if (!coefficients[i]) {
            run++;
            continue;
        }
        for (; run > 15; run -= 16)
            jpeg_put_symbol(writer, JPEG_AC, table, JPEG_ZERO_RUN);
        int size = jpeg_size_of(coefficients[i]);
        jpeg_put_symbol(writer, JPEG_AC, table, run << 4 | size);
        jpeg_put_value(writer, coefficients[i], size);
        run = 0;
    }
    if (run)
        jpeg_put_symbol(writer, JPEG_AC, table, JPEG_END_OF_BLOCK);
}

void jpeg_put_block(jpeg_writer *writer, int component, int tables,
                    const int coefficients[64])
{
    jpeg_put_dc(writer, component, tables >> 4, coefficients[0]);
    jpeg_put_acs(writer, tables & 15, coefficients);
}

void jpeg_put_fill(jpeg_writer *writer, int fill)
{
    while (writer->bit_count)
        jpeg_put_bits(writer, (unsigned)fill, 1);
}

void jpeg_put_restart(jpeg_writer *writer, int n, int fill)
{
    jpeg_put_fill(writer, fill);
    jpeg_put_marker(writer, RST0 + n % 8);
    memset(writer->predicted, 0, sizeof(writer->predicted));
}

void jpeg_put_end(jpeg_writer *writer)
{
    jpeg_put_fill(writer, 1);
    jpeg_put_marker(writer, EOI);
}
