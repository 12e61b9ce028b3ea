/*
 * jpeg_block_body.h: entropy decoding (ITU T.81, F.2.2) of the blocks of a row
 * of MCUs, and their inverse DCT. The including file defines COEFFICIENT_ORDER,
 * the index of each coefficient in a block, by its index in zigzag order, and
 *
 *     void transform_block(short *block,
 *                          const leat__jpeg_multipliers *multipliers,
 *                          unsigned char *to, ptrdiff_t pitch,
 *                          irregular_bits *irregular)
 *     void fill_block(int dc, unsigned char *to, ptrdiff_t pitch)
 *     uint32_t irregular_value(const irregular_bits *irregular)
 *
 * The time goes to the chain from one look-up to the next: shift, load, shift.
 * So a look-up finds two coefficients where they are short enough, and what is
 * done with them has no branch. A block is transformed after the next one is
 * decoded: vectors that were written word by word just before are late.
 */
#include "data/jpeg/jpeg_kernels.h"

#include <string.h>

#define BLOCK_INLINE static inline __attribute__((always_inline))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* A block of nothing but a DC coefficient up to it, dequantised, is regular. */
#define FLAT_MAX 4091
/* Of coefficients of 8-bit samples. */
#define DC_MAX 2047
/* One more takes what is past a block, and the next is aligned. */
#define BLOCK_WORDS (64 + 32)

#define SPARE_16 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64
#define SPARE_64 SPARE_16, SPARE_16, SPARE_16, SPARE_16

/*
 * By index in zigzag order plus 1, which is where an advance leads to; what is
 * past a block goes to the spare word.
 */
static const unsigned char order[64 + 2 * LEAT__HUFFMAN_END + 1] = {
    64, COEFFICIENT_ORDER, SPARE_64, SPARE_64, SPARE_64, SPARE_64};

/* The reader of a scan in registers. */
typedef struct bit_reader {
    uint64_t bits;
    unsigned count;
    const unsigned char *next;
} bit_reader;

/* A block that is decoded, but not yet transformed; `block` may be NULL. */
typedef struct pending_block {
    short *block;
    const leat__jpeg_multipliers *multipliers;
    unsigned char *to;
    ptrdiff_t pitch;
} pending_block;

/* What a run of MCUs is decoded with. */
typedef struct decoding {
    leat__jpeg_scan *scan;
    bit_reader in;
    pending_block pending;
    irregular_bits irregular;
    short *block; /* zeros: of the next one */
} decoding;

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

BLOCK_INLINE void consume(bit_reader *in, unsigned length)
{
    in->bits <<= length & 63;
    in->count -= length & 63;
}

/*
 * False: irregular. The code and its value take 27 bits at most, coefficients
 * of 8-bit samples 12.
 */
BLOCK_INLINE bool decode_dc(decoding *d, const leat__jpeg_block *block)
{
    leat__huffman_symbol symbol =
        block->dc->symbol[d->in.bits >> (64 - LEAT__HUFFMAN_BITS)];
    if (UNLIKELY(!symbol))
        symbol = leat__huffman_find(&block->dc->code, d->in.bits);
    if (UNLIKELY(!symbol))
        return false;
    int *dc = &d->scan->predicted[block->component];
    *dc += leat__huffman_value(symbol, d->in.bits);
    consume(&d->in, symbol);
    return *dc >= -DC_MAX - 1 && *dc <= DC_MAX;
}

/* A symbol that is not in a pair, of at most 26 bits; 0: irregular. */
BLOCK_INLINE unsigned decode_single(bit_reader *in,
                                    const leat__huffman_ac *table,
                                    uint32_t found, unsigned index, short *to)
{
    leat__huffman_symbol symbol = found & ~LEAT__HUFFMAN_SINGLE;
    if (!symbol)
        symbol = leat__huffman_find(&table->code, in->bits);
    if (!symbol)
        return 0;
    index += symbol >> 8 & 0xff;
    if (to)
        to[order[index]] = (short)leat__huffman_value(symbol, in->bits);
    consume(in, symbol);
    return index;
}

/*
 * The AC coefficients of a block into `to`, or nowhere (NULL). Returns the
 * index past the last one, or 0: irregular.
 */
BLOCK_INLINE unsigned decode_acs(bit_reader *in, const leat__huffman_ac *table,
                                 short *to)
{
    unsigned index = 1;
    uint64_t found;
    bit_reader before;
    /* A word of bits has two look-ups, or a DC symbol and one. */
    for (bool is_half_used = true;; is_half_used = !is_half_used) {
        if (!is_half_used)
            refill(in);
        before = *in;
        found = table->pair[in->bits >> (64 - LEAT__HUFFMAN_BITS)];
        if (UNLIKELY((uint32_t)found & LEAT__HUFFMAN_SINGLE)) {
            index = decode_single(in, table, (uint32_t)found, index, to);
        } else {
            consume(in, (unsigned)found);
            index += (unsigned)found >> 8 & 0xff;
            if (to)
                to[order[index]] = (short)(found >> 32);
            index += (unsigned)found >> 16 & 0xff;
            if (to)
                to[order[index]] = (short)(found >> 48);
        }
        if (index - 1 >= 63)
            break;
    }
    if (index > LEAT__HUFFMAN_END && index < LEAT__HUFFMAN_END + 64)
        return index - LEAT__HUFFMAN_END;
    if (index == 64)
        return index;
    /* The second of a pair may be of the next block. */
    if ((uint32_t)found & LEAT__HUFFMAN_SINGLE ||
        index - ((unsigned)found >> 16 & 0xff) != 64)
        return 0;
    in->bits = before.bits;
    in->count = before.count;
    consume(in, (unsigned)found >> 24);
    return 64;
}

BLOCK_INLINE void finish_pending(decoding *d)
{
    const pending_block *pending = &d->pending;
    if (pending->block)
        transform_block(pending->block, pending->multipliers, pending->to,
                        pending->pitch, &d->irregular);
}

BLOCK_INLINE bool skip_block(decoding *d, const leat__jpeg_block *block)
{
    refill(&d->in);
    return decode_dc(d, block) && decode_acs(&d->in, block->ac, NULL);
}

BLOCK_INLINE bool decode_block(decoding *d, const leat__jpeg_block *block,
                               int mcu)
{
    leat__jpeg_scan *scan = d->scan;
    refill(&d->in);
    if (UNLIKELY(!decode_dc(d, block)))
        return false;
    short *to = d->block;
    unsigned end = decode_acs(&d->in, block->ac, to);
    if (UNLIKELY(!end))
        return false;
    const leat__jpeg_band *band = &scan->band[block->component];
    unsigned char *samples =
        band->samples + block->offset + (ptrdiff_t)mcu * block->step;
    int dc = scan->predicted[block->component];
    if (end == 1) {
        dc *= block->multipliers->of[0];
        scan->irregular |= (unsigned)(dc + FLAT_MAX) > 2 * FLAT_MAX;
        fill_block(dc, samples, band->pitch);
        return true;
    }
    to[0] = (short)dc;
    finish_pending(d);
    /* Two blocks take turns. */
    d->block = d->pending.block ? d->pending.block : to + BLOCK_WORDS;
    d->pending = (pending_block){to, block->multipliers, samples, band->pitch};
    return true;
}

/* False: irregular. */
BLOCK_INLINE bool decode_mcu(decoding *d, int mcu)
{
    const leat__jpeg_scan *scan = d->scan;
    bool is_wanted = mcu >= scan->first_wanted && mcu < scan->end_wanted;
    for (int i = 0; i < scan->blocks; i++) {
        const leat__jpeg_block *block = &scan->block[i];
        bool is_regular = is_wanted && !block->is_dropped
                              ? decode_block(d, block, mcu)
                              : skip_block(d, block);
        if (UNLIKELY(!is_regular))
            return false;
    }
    return true;
}

static int decode_mcus(leat__jpeg_scan *scan, int first, int end)
{
    _Alignas(64) short blocks[2 * BLOCK_WORDS];
    memset(blocks, 0, sizeof(blocks));
    decoding d = {.scan = scan,
                  .in = {scan->bits, scan->count, scan->next},
                  .block = blocks};
    int mcu = first;
    for (; mcu < end && d.in.next <= scan->stop; mcu++)
        if (UNLIKELY(!decode_mcu(&d, mcu))) {
            scan->irregular = 1;
            break;
        }
    finish_pending(&d);
    scan->irregular |= irregular_value(&d.irregular);
    scan->bits = d.in.bits;
    scan->count = d.in.count;
    scan->next = d.in.next;
    return mcu;
}
