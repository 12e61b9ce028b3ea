#include "data/jpeg/huffman_table.h"

#include <string.h>

/* The most value bits of a coefficient of 8-bit samples (ITU T.81, F.1.2). */
#define DC_BITS_MAX 11
#define AC_BITS_MAX 10
/* A run of 16 zeros. */
#define ZERO_RUN 0xf0

static uint32_t make_entry(unsigned length, unsigned value_bits,
                           unsigned advance)
{
    return (length + value_bits) | advance << 8 | length << 16 |
           (63 - value_bits) << 24;
}

static uint32_t dc_entry(unsigned length, unsigned symbol)
{
    return symbol > DC_BITS_MAX ? 0 : make_entry(length, symbol, 1);
}

static uint32_t ac_entry(unsigned length, unsigned symbol)
{
    unsigned run = symbol >> 4, value_bits = symbol & 15;
    if (symbol == 0)
        return make_entry(length, 0, LEAT__HUFFMAN_END);
    if (value_bits > AC_BITS_MAX || (value_bits == 0 && symbol != ZERO_RUN))
        return 0;
    return make_entry(length, value_bits, run + 1);
}

/* All look-ups whose bits begin with the code. */
static void fill_entries(leat__huffman_table *table, unsigned code,
                         unsigned length, uint32_t entry)
{
    if (length > LEAT__HUFFMAN_BITS || !entry)
        return;
    unsigned n = 1u << (LEAT__HUFFMAN_BITS - length);
    for (unsigned i = 0; i < n; i++)
        table->entry[code * n + i] = entry;
}

static bool fill_codes(leat__huffman_table *table, bool is_ac)
{
    unsigned code = 0, index = 0;
    for (unsigned length = 1; length <= 16; length++, code <<= 1) {
        table->offset[length] = (int32_t)index - (int32_t)code;
        table->largest[length] = -1;
        for (int i = table->counts[length]; i > 0; i--, index++, code++) {
            if (index == 256 || code >> length)
                return false;
            unsigned symbol = table->symbols[index];
            if (!is_ac && symbol > 15)
                return false;
            uint32_t entry =
                is_ac ? ac_entry(length, symbol) : dc_entry(length, symbol);
            table->code[index] = entry;
            table->largest[length] = (int32_t)code;
            fill_entries(table, code, length, entry);
        }
    }
    return true;
}

bool leat__huffman_table_make(leat__huffman_table *table,
                              const unsigned char counts[17],
                              const unsigned char symbols[256], bool is_ac)
{
    if (table->is_made && !memcmp(table->counts, counts, 17) &&
        !memcmp(table->symbols, symbols, 256))
        return true;
    memcpy(table->counts, counts, 17);
    memcpy(table->symbols, symbols, 256);
    for (unsigned i = 0; i < 1 << LEAT__HUFFMAN_BITS; i++)
        table->entry[i] = LEAT__HUFFMAN_ESCAPE;
    table->is_made = fill_codes(table, is_ac);
    return table->is_made;
}
