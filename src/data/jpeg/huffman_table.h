/* huffman_table.h: Huffman tables of a JPEG, prepared for look-up. */
#ifndef LEAT_DATA_JPEG_HUFFMAN_TABLE_H
#define LEAT_DATA_JPEG_HUFFMAN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Codes of up to this length are found in one look-up. */
#define LEAT__HUFFMAN_BITS 11
/* Advance of an end-of-block symbol: past every coefficient of a block. */
#define LEAT__HUFFMAN_END 128

/*
 * A symbol and the value bits after it, never 0:
 *
 *     bits 0 to 7    the code's length and the value's
 *     bits 8 to 15   coefficients by which it advances in its block
 *     bits 16 to 23  the code's length
 *     bits 24 to 30  63 less the value's length
 */
typedef uint32_t leat__huffman_symbol;

/*
 * One or two symbols with their values, which are all in LEAT__HUFFMAN_BITS:
 *
 *     bits 0 to 7    the length of both
 *     bits 8 to 15   the first one's advance
 *     bits 16 to 23  the second one's; 0: there is none
 *     bits 24 to 30  the first one's length
 *     bits 32 to 47  the first one's value
 *     bits 48 to 63  the second one's; the first one's if there is none
 *
 * With bit 31 the rest is a leat__huffman_symbol, whose value has more bits, or
 * 0: the code has, or there is none, or its symbol is irregular.
 */
typedef uint64_t leat__huffman_pair;
#define LEAT__HUFFMAN_SINGLE ((uint32_t)1 << 31)

/* Codes of all lengths, in canonical order (ITU T.81, F.2.2.3). */
typedef struct leat__huffman_code {
    leat__huffman_symbol symbol[256]; /* 0: irregular */
    int32_t largest[17]; /* code by its length; -1: there is none */
    int32_t offset[17];  /* from a code to its index in `symbol` */
    /* What it was made from. */
    bool is_made;
    unsigned char counts[17];
    unsigned char values[256];
} leat__huffman_code;

/* Tables by the next bits. */
typedef struct leat__huffman_dc {
    leat__huffman_code code;
    /* 0: a longer code, or none, or an irregular symbol */
    leat__huffman_symbol symbol[1 << LEAT__HUFFMAN_BITS];
} leat__huffman_dc;

typedef struct leat__huffman_ac {
    leat__huffman_code code;
    leat__huffman_pair pair[1 << LEAT__HUFFMAN_BITS];
} leat__huffman_ac;

/*
 * Make a table from the `counts` of codes of each length (1 to 16) and the
 * symbols' `values`, as a DHT segment has them; they do nothing if it has been
 * made from the same. False: not a code, or not of coefficients of 8-bit
 * samples. Symbols that these cannot have are kept as irregular.
 */
bool leat__huffman_dc_make(leat__huffman_dc *table,
                           const unsigned char counts[17],
                           const unsigned char values[256]);
bool leat__huffman_ac_make(leat__huffman_ac *table,
                           const unsigned char counts[17],
                           const unsigned char values[256]);

/* The symbol that the bits, highest first, begin with; 0: none, or irregular.
 */
leat__huffman_symbol leat__huffman_find(const leat__huffman_code *code,
                                        uint64_t bits);

/*
 * The value after the symbol's code (EXTEND in ITU T.81, F.2.2.1): its bits, or
 * if they begin with a 0, the complement of those of its magnitude.
 */
static inline int leat__huffman_value(leat__huffman_symbol symbol,
                                      uint64_t bits)
{
    uint64_t top = bits << (symbol >> 16 & 63);
    uint64_t sign = (uint64_t)((int64_t)~top >> 63);
    uint64_t magnitude = (top ^ sign) >> 1 >> (symbol >> 24 & 63);
    return (int)((magnitude ^ sign) - sign);
}

#endif
