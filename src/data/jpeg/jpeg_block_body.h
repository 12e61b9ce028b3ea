/*
 * jpeg_block_body.h: entropy decoding (ITU T.81, F.2.2) of the blocks of a row
 * of MCUs, and their inverse DCT. The including file defines COEFFICIENT_ORDER,
 * the index of each coefficient in a block, by its index in zigzag order, and
 *
 *     void transform_block(short *block, unsigned char *to, ptrdiff_t pitch,
 *                          irregular_bits *irregular)
 *     void fill_block(int dc, unsigned char *to, ptrdiff_t pitch)
 *     uint32_t irregular_value(const irregular_bits *irregular)
 *
 * The time goes to the chain from one symbol to the next: shift, look-up,
 * shift. So values are computed from the bits without a branch, beside it.
 */
#include "data/jpeg/jpeg_kernels.h"

#include <string.h>

#define BLOCK_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Coefficients above this are beyond what libjpeg's variants agree on. */
#define COEFFICIENT_BITS 14
/* The same for a block of nothing but a DC coefficient. */
#define FLAT_MAX 4091

#define SPARE_16                                                               \
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64
#define SPARE_64 SPARE_16, SPARE_16, SPARE_16, SPARE_16

/* By index in zigzag order plus 1; what is past a block goes to a spare one. */
static const unsigned char order[64 + LEAT__HUFFMAN_END + 1] = {
    64, COEFFICIENT_ORDER, SPARE_64, SPARE_64};

/* The reader of a scan in registers. */
typedef struct bit_reader {
    uint64_t bits;
    unsigned count;
    const unsigned char *next;
} bit_reader;

/* To at least 56 bits. Bits beyond `count` are those of the next bytes. */
BLOCK_INLINE void refill(bit_reader *in)
{
    uint64_t word;
    memcpy(&word, in->next, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    in->bits |= word >> in->count;
    in->next += (63 - in->count) >> 3;
    in->count |= 56;
}

BLOCK_INLINE void consume(bit_reader *in, uint32_t entry)
{
    in->bits <<= entry & 63;
    in->count -= entry & 63;
}

static __attribute__((noinline)) uint32_t
find_long(const leat__huffman_table *table, uint64_t bits)
{
    for (int length = 1; length <= 16; length++) {
        int32_t code = (int32_t)(bits >> (64 - length));
        if (code <= table->largest[length])
            return table->code[code + table->offset[length]];
    }
    return 0;
}

/* 0: no code, or an irregular symbol. */
BLOCK_INLINE uint32_t look_up(const leat__huffman_table *table,
                              const bit_reader *in)
{
    uint32_t entry = table->entry[in->bits >> (64 - LEAT__HUFFMAN_BITS)];
    return UNLIKELY(entry & LEAT__HUFFMAN_ESCAPE) ? find_long(table, in->bits)
                                                  : entry;
}

/*
 * The value after the entry's code (EXTEND in ITU T.81, F.2.2.1): its bits, or
 * if they begin with a 0, the complement of those of its magnitude.
 */
BLOCK_INLINE int value_of(uint64_t bits, uint32_t entry)
{
    uint64_t top = bits << (entry >> 16 & 63);
    uint64_t sign = (uint64_t)((int64_t)~top >> 63);
    uint64_t magnitude = (top ^ sign) >> 1 >> (entry >> 24 & 63);
    return (int)((magnitude ^ sign) - sign);
}

/*
 * False: irregular. The code and its value take 27 bits at most, coefficients
 * of 8-bit samples 12.
 */
BLOCK_INLINE bool decode_dc(leat__jpeg_scan *scan, bit_reader *in,
                            const leat__jpeg_block *block)
{
    uint32_t entry = look_up(block->dc, in);
    int *dc = &scan->predicted[block->component];
    *dc += value_of(in->bits, entry);
    consume(in, entry);
    return entry != 0 && *dc >= -2048 && *dc < 2048;
}

/* One symbol of at most 26 bits; returns the next index, or 0: irregular. */
BLOCK_INLINE unsigned decode_ac(bit_reader *in, const leat__jpeg_block *block,
                                unsigned index, short *to, uint32_t *irregular)
{
    uint32_t entry = look_up(block->ac, in);
    if (UNLIKELY(!entry))
        return 0;
    index += entry >> 8 & 0xff;
    if (to) {
        int value =
            value_of(in->bits, entry) * block->multipliers->of[index];
        to[order[index]] = (short)value;
        *irregular |= (uint32_t)(value + (1 << COEFFICIENT_BITS)) >>
                      (COEFFICIENT_BITS + 1);
    }
    consume(in, entry);
    return index;
}

/*
 * The AC coefficients of a block into `to`, or nowhere (NULL). Returns the
 * index past the last one, or 0: irregular.
 */
BLOCK_INLINE unsigned decode_acs(bit_reader *in, const leat__jpeg_block *block,
                                 short *to, uint32_t *irregular)
{
    unsigned index = 1;
    for (;;) {
        index = decode_ac(in, block, index, to, irregular);
        if (index - 1 >= 63)
            break;
        refill(in);
        index = decode_ac(in, block, index, to, irregular);
        if (index - 1 >= 63)
            break;
    }
    if (index == 64)
        return index;
    return index > LEAT__HUFFMAN_END ? index - LEAT__HUFFMAN_END : 0;
}

BLOCK_INLINE bool skip_block(leat__jpeg_scan *scan, bit_reader *in,
                             const leat__jpeg_block *block)
{
    refill(in);
    return decode_dc(scan, in, block) && decode_acs(in, block, NULL, NULL);
}

BLOCK_INLINE bool decode_block(leat__jpeg_scan *scan, bit_reader *in,
                               const leat__jpeg_block *block, int mcu,
                               short *coefficients, irregular_bits *bits)
{
    refill(in);
    if (UNLIKELY(!decode_dc(scan, in, block)))
        return false;
    uint32_t irregular = 0;
    unsigned end = decode_acs(in, block, coefficients, &irregular);
    if (UNLIKELY(!end))
        return false;
    const leat__jpeg_band *band = &scan->band[block->component];
    unsigned char *to = band->samples + block->offset +
                        (ptrdiff_t)mcu * block->step;
    int dc = scan->predicted[block->component];
    dc *= block->multipliers->of[1];
    if (end == 1) {
        /* A block whose every sample is alike, in eighths. */
        irregular |= (uint32_t)(dc + FLAT_MAX + 8) > 2 * FLAT_MAX + 8;
        fill_block(dc, to, band->pitch);
    } else {
        irregular |= (uint32_t)(dc + (1 << COEFFICIENT_BITS)) >>
                     (COEFFICIENT_BITS + 1);
        coefficients[0] = (short)dc;
        transform_block(coefficients, to, band->pitch, bits);
    }
    scan->irregular |= irregular;
    return true;
}

/* False: irregular. */
BLOCK_INLINE bool decode_mcu(leat__jpeg_scan *scan, bit_reader *in, int mcu,
                             short *coefficients, irregular_bits *bits)
{
    bool is_wanted = mcu >= scan->first_wanted && mcu < scan->end_wanted;
    for (int i = 0; i < scan->blocks; i++) {
        const leat__jpeg_block *block = &scan->block[i];
        bool is_regular =
            is_wanted && !block->is_dropped
                ? decode_block(scan, in, block, mcu, coefficients, bits)
                : skip_block(scan, in, block);
        if (UNLIKELY(!is_regular))
            return false;
    }
    return true;
}

static int decode_mcus(leat__jpeg_scan *scan, int first, int end)
{
    bit_reader in = {scan->bits, scan->count, scan->next};
    /* One coefficient more takes what is past a block. */
    _Alignas(64) short coefficients[64 + 32];
    memset(coefficients, 0, sizeof(coefficients));
    irregular_bits bits = {0};
    int mcu = first;
    for (; mcu < end && in.next <= scan->stop; mcu++)
        if (UNLIKELY(!decode_mcu(scan, &in, mcu, coefficients, &bits))) {
            scan->irregular = 1;
            break;
        }
    scan->irregular |= irregular_value(&bits);
    scan->bits = in.bits;
    scan->count = in.count;
    scan->next = in.next;
    return mcu;
}
