/*
 * jpeg_writer.h: baseline JPEGs of any Huffman tables and coefficients, symbol
 * by symbol, and of anything that an encoder would not write.
 */
#ifndef LEAT_TESTS_JPEG_WRITER_H
#define LEAT_TESTS_JPEG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of coefficients; the first half of a table's address. */
typedef enum jpeg_class { JPEG_DC, JPEG_AC } jpeg_class;

enum {
    JPEG_END_OF_BLOCK = 0x00,
    JPEG_ZERO_RUN = 0xf0,  /* 16 zeros */
    JPEG_DC_SYMBOLS = 16,  /* of which 12 are in use */
    JPEG_AC_SYMBOLS = 162, /* end, zero run, runs 0 to 15 of sizes 1 to 10 */
    JPEG_TABLES = 4
};

/* A Huffman table, as a DHT segment has it. */
typedef struct jpeg_codes {
    unsigned char counts[16]; /* of codes of 1 to 16 bits */
    unsigned char symbols[256];
} jpeg_codes;

/*
 * All DC symbols with codes of 1 to 16 bits, one of each; all AC symbols, of
 * which one has each of the lengths 1 to 8 and the others 16 (`shape` 0), or
 * one each of 2 to 16 and the others 9 (`shape` 1). The symbols in their order
 * begin with the one numbered `rotation`, so that rotations from 0 to before
 * the number of symbols give each symbol each length.
 */
jpeg_codes jpeg_codes_make(jpeg_class class, int shape, int rotation);

/* All zero is an empty file. Freed by free(bytes). */
typedef struct jpeg_writer {
    unsigned char *bytes;
    size_t size, capacity;
    uint32_t bits; /* not yet written, below those that were */
    int bit_count; /* of them, below 8 */
    struct {
        uint16_t code;
        unsigned char length; /* 0: none */
    } codes[2][JPEG_TABLES][256];
    int predicted[4]; /* DC coefficients, by component */
} jpeg_writer;

void jpeg_put(jpeg_writer *writer, const void *bytes, size_t size);
void jpeg_put_marker(jpeg_writer *writer, int marker);
/* A marker and its bytes after their length. */
void jpeg_put_segment(jpeg_writer *writer, int marker, const void *bytes,
                      size_t size);

/* A quantization table of one value. */
void jpeg_put_quantum(jpeg_writer *writer, int table, int value);
void jpeg_put_codes(jpeg_writer *writer, jpeg_class class, int table,
                    const jpeg_codes *codes);
/* A baseline frame; `factors` as 0x21. All components have quantum 0. */
void jpeg_put_frame(jpeg_writer *writer, int width, int height, int components,
                    const unsigned char *factors);
void jpeg_put_interval(jpeg_writer *writer, int mcus);
/* A scan of all components; `tables` as 0x01: DC 0, AC 1. */
void jpeg_put_scan(jpeg_writer *writer, int components,
                   const unsigned char *tables);

void jpeg_put_bits(jpeg_writer *writer, unsigned bits, int n);
void jpeg_put_symbol(jpeg_writer *writer, jpeg_class class, int table,
                     int symbol);
/* The bits of a value that takes `size` of them. */
void jpeg_put_value(jpeg_writer *writer, int value, int size);
/* The number of bits that a value takes. */
int jpeg_size_of(int value);

void jpeg_put_dc(jpeg_writer *writer, int component, int table, int value);
/* Coefficients 1 to 63 in zigzag order; the end of block only if needed. */
void jpeg_put_acs(jpeg_writer *writer, int table, const int coefficients[64]);
void jpeg_put_block(jpeg_writer *writer, int component, int tables,
                    const int coefficients[64]);

/* Fills the byte with bits of `fill`, and stuffs it. */
void jpeg_put_fill(jpeg_writer *writer, int fill);
/* Fills, writes the restart marker `n` modulo 8, forgets the predictions. */
void jpeg_put_restart(jpeg_writer *writer, int n, int fill);
/* Fills with ones and writes the end marker. */
void jpeg_put_end(jpeg_writer *writer);

#endif
