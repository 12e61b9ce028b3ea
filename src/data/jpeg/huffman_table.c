#include "data/jpeg/huffman_table.h"

#include <string.h>

/* The most value bits of a coefficient of 8-bit samples (ITU T.81, F.1.2). */
#define DC_BITS_MAX 11
#define AC_BITS_MAX 10
/* A run of 16 zeros. */
#define ZERO_RUN 0xf0

static leat__huffman_symbol make_symbol(unsigned length, unsigned value_bits,
                                        unsigned advance)
{
    return (length + value_bits) | advance << 8 | length << 16 |
           (63 - value_bits) << 24;
}

static leat__huffman_symbol dc_symbol(unsigned length, unsigned symbol)
{
    return symbol > DC_BITS_MAX ? 0 : make_symbol(length, symbol, 1);
}

static leat__huffman_symbol ac_symbol(unsigned length, unsigned symbol)
{
    unsigned run = symbol >> 4, value_bits = symbol & 15;
    if (symbol == 0)
        return make_symbol(length, 0, LEAT__HUFFMAN_END);
    if (value_bits > AC_BITS_MAX || (value_bits == 0 && symbol != ZERO_RUN))
        return 0;
    return make_symbol(length, value_bits, run + 1);
}

/* All look-ups whose bits begin with the code. */
static void fill_symbols(leat__huffman_table *table, unsigned code,
                         unsigned length, leat__huffman_symbol symbol)
{
    if (length > LEAT__HUFFMAN_BITS)
        return;
    unsigned n = 1u << (LEAT__HUFFMAN_BITS - length);
    for (unsigned i = 0; i < n; i++)
        table->symbol[code * n + i] = symbol;
}

/* What the look-up `index` finds. */
static leat__huffman_pair make_pair(const leat__huffman_table *table,
                                    unsigned index)
{
    leat__huffman_symbol first = table->symbol[index];
    unsigned length = first & 0xff;
    if (!first || length > LEAT__HUFFMAN_BITS)
        return first | LEAT__HUFFMAN_SINGLE;
    uint64_t bits = (uint64_t)index << (64 - LEAT__HUFFMAN_BITS);
    unsigned advance = first >> 8 & 0xff, next_advance = 0, next_length = 0;
    uint16_t value = (uint16_t)leat__huffman_value(first, bits);
    uint16_t next_value = value;
    bits <<= length;
    leat__huffman_symbol next =
        table->symbol[bits >> (64 - LEAT__HUFFMAN_BITS)];
    bool fits = next && length + (next & 0xff) <= LEAT__HUFFMAN_BITS;
    if (fits && advance != LEAT__HUFFMAN_END) {
        next_length = next & 0xff;
        next_advance = next >> 8 & 0xff;
        next_value = (uint16_t)leat__huffman_value(next, bits);
    }
    return (length + next_length) | advance << 8 | next_advance << 16 |
           length << 24 | (uint64_t)value << 32 | (uint64_t)next_value << 48;
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
            table->code[index] =
                is_ac ? ac_symbol(length, symbol) : dc_symbol(length, symbol);
            table->largest[length] = (int32_t)code;
            fill_symbols(table, code, length, table->code[index]);
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
    memset(table->symbol, 0, sizeof(table->symbol));
    table->is_made = fill_codes(table, is_ac);
    for (unsigned i = 0; is_ac && i < 1 << LEAT__HUFFMAN_BITS; i++)
        table->pair[i] = make_pair(table, i);
    return table->is_made;
}

leat__huffman_symbol leat__huffman_find(const leat__huffman_table *table,
                                        uint64_t bits)
{
    for (int length = 1; length <= 16; length++) {
        int32_t code = (int32_t)(bits >> (64 - length));
        if (code <= table->largest[length])
            return table->code[code + table->offset[length]];
    }
    return 0;
}
