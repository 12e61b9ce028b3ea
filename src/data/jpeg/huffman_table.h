/* huffman_table.h: a Huffman table of a JPEG, prepared for look-up. */
#ifndef LEAT_DATA_JPEG_HUFFMAN_TABLE_H
#define LEAT_DATA_JPEG_HUFFMAN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Codes of up to this length are found in one look-up. */
#define LEAT__HUFFMAN_BITS 10
/* Of an entry: its code is longer, or none, or its symbol is irregular. */
#define LEAT__HUFFMAN_ESCAPE ((uint32_t)1 << 31)
/* Advance of an end-of-block symbol: past every coefficient of a block. */
#define LEAT__HUFFMAN_END 128

/*
 * An entry, which is never 0, describes a code and the value bits after it:
 *
 *     bits 0 to 7    the code's length and the value's
 *     bits 8 to 15   coefficients by which it advances in its block
 *     bits 16 to 23  the code's length
 *     bits 24 to 30  63 less the value's length
 */
typedef struct leat__huffman_table {
    uint32_t entry[1 << LEAT__HUFFMAN_BITS]; /* by the next bits */
    /* Codes of all lengths, in canonical order (ITU T.81, F.2.2.3). */
    uint32_t code[256];  /* entries; 0: an irregular symbol */
    int32_t largest[17]; /* code by its length; -1: there is none */
    int32_t offset[17];  /* from a code to its index in `code` */
    /* What it was made from. */
    bool is_made;
    unsigned char counts[17];
    unsigned char symbols[256];
} leat__huffman_table;

/*
 * Makes the table from the `counts` of codes of each length (1 to 16) and their
 * symbols, as a DHT segment has them; does nothing if it has been made from the
 * same. `is_ac`: of AC coefficients. False: not a code, or not of coefficients
 * of 8-bit samples. Symbols that these cannot have are kept as irregular.
 */
bool leat__huffman_table_make(leat__huffman_table *table,
                              const unsigned char counts[17],
                              const unsigned char symbols[256], bool is_ac);

#endif
