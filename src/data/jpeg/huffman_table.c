#include "data/jpeg/huffman_table.h"

#include <string.h>

/* The most value bits of a coefficient of 8-bit samples (ITU T.81, F.1.2). */
#define DC_BITS_MAX 11
#define AC_BITS_MAX 10
#define DC_CATEGORY_MAX 15
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

/* A symbol of a DC or an AC code. */
typedef leat__huffman_symbol symbol_maker(unsigned length, unsigned symbol);

/* The symbols by the next bits, of which a code is the first ones. */
static void fill_symbols(leat__huffman_symbol *symbols, unsigned code,
                         unsigned length, leat__huffman_symbol symbol)
{
    if (length > LEAT__HUFFMAN_BITS)
        return;
    unsigned n = 1u << (LEAT__HUFFMAN_BITS - length);
    for (unsigned i = 0; i < n; i++)
        symbols[code * n + i] = symbol;
}

static bool fill_code(leat__huffman_code *out, symbol_maker *make,
                      leat__huffman_symbol *symbols)
{
    unsigned code = 0, index = 0;
    for (unsigned length = 1; length <= 16; length++, code <<= 1) {
        out->offset[length] = (int32_t)index - (int32_t)code;
        out->largest[length] = -1;
        for (int i = out->counts[length]; i > 0; i--, index++, code++) {
            if (index == 256 || code >> length)
                return false;
            out->symbol[index] = make(length, out->values[index]);
            out->largest[length] = (int32_t)code;
            fill_symbols(symbols, code, length, out->symbol[index]);
        }
        /* No code is all ones. */
        if (code >> length)
            return false;
    }
    return true;
}

static bool is_same(const leat__huffman_code *code,
                    const unsigned char counts[17],
                    const unsigned char values[256])
{
    return code->is_made && !memcmp(code->counts, counts, 17) &&
           !memcmp(code->values, values, 256);
}

static bool make_code(leat__huffman_code *out, const unsigned char counts[17],
                      const unsigned char values[256], symbol_maker *make,
                      leat__huffman_symbol symbols[1 << LEAT__HUFFMAN_BITS])
{
    memcpy(out->counts, counts, 17);
    memcpy(out->values, values, 256);
    memset(symbols, 0, sizeof(*symbols) << LEAT__HUFFMAN_BITS);
    out->is_made = fill_code(out, make, symbols);
    return out->is_made;
}

/* libjpeg refuses DC tables with other categories, met or not. */
static bool has_categories_only(const unsigned char counts[17],
                                const unsigned char values[256])
{
    unsigned n = 0;
    for (int length = 1; length <= 16; length++)
        n += counts[length];
    for (unsigned i = 0; i < n && i < 256; i++)
        if (values[i] > DC_CATEGORY_MAX)
            return false;
    return true;
}

bool leat__huffman_dc_make(leat__huffman_dc *table,
                           const unsigned char counts[17],
                           const unsigned char values[256])
{
    return is_same(&table->code, counts, values) ||
           (has_categories_only(counts, values) &&
            make_code(&table->code, counts, values, dc_symbol, table->symbol));
}

/* What the look-up `index` finds. */
static leat__huffman_pair make_pair(const leat__huffman_symbol *symbols,
                                    unsigned index)
{
    leat__huffman_symbol first = symbols[index];
    unsigned length = first & 0xff;
    if (!first || length > LEAT__HUFFMAN_BITS)
        return first | LEAT__HUFFMAN_SINGLE;
    uint64_t bits = (uint64_t)index << (64 - LEAT__HUFFMAN_BITS);
    unsigned advance = first >> 8 & 0xff, next_advance = 0, next_length = 0;
    uint16_t value = (uint16_t)leat__huffman_value(first, bits);
    uint16_t next_value = value;
    bits <<= length;
    leat__huffman_symbol next = symbols[bits >> (64 - LEAT__HUFFMAN_BITS)];
    bool fits = next && length + (next & 0xff) <= LEAT__HUFFMAN_BITS;
    if (fits && advance != LEAT__HUFFMAN_END) {
        next_length = next & 0xff;
        next_advance = next >> 8 & 0xff;
        next_value = (uint16_t)leat__huffman_value(next, bits);
    }
    return (length + next_length) | advance << 8 | next_advance << 16 |
           length << 24 | (uint64_t)value << 32 | (uint64_t)next_value << 48;
}

bool leat__huffman_ac_make(leat__huffman_ac *table,
                           const unsigned char counts[17],
                           const unsigned char values[256])
{
    leat__huffman_symbol symbols[1 << LEAT__HUFFMAN_BITS];
    if (is_same(&table->code, counts, values))
        return true;
    if (!make_code(&table->code, counts, values, ac_symbol, symbols))
        return false;
    for (unsigned i = 0; i < 1 << LEAT__HUFFMAN_BITS; i++)
        table->pair[i] = make_pair(symbols, i);
    return true;
}

leat__huffman_symbol leat__huffman_find(const leat__huffman_code *code,
                                        uint64_t bits)
{
    for (int length = 1; length <= 16; length++) {
        int32_t next = (int32_t)(bits >> (64 - length));
        if (next <= code->largest[length])
            return code->symbol[next + code->offset[length]];
    }
    return 0;
}
