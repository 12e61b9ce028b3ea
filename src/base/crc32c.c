/*
 * The instruction takes three cycles for 8 bytes, but begins one every cycle.
 * So long inputs are three streams at a time, whose checksums are joined: a
 * checksum is moved past n bytes by the linear map of n zero bytes, which is
 * four tables.
 */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* The polynomial, bits reversed. */
#define POLYNOMIAL UINT32_C(0x82f63b78)

/* Bytes of one of three streams: long ones, and what is left of them. */
#define LONG ((size_t)2048)
#define SHORT ((size_t)128)

typedef uint32_t crc_function(uint32_t crc, const void *bytes, size_t size);

/* Immutable once `once` is done. */
static uint32_t byte_table[8][256]; /* a byte, and 0 to 7 zero bytes after it */
static uint32_t long_shift[4][256]; /* byte i of a checksum, past LONG bytes */
static uint32_t short_shift[4][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t shift(uint32_t table[4][256], uint32_t crc)
{
    return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^
           table[2][crc >> 16 & 255] ^ table[3][crc >> 24];
}

/* Each bit of a checksum goes past `bytes` zero bytes; a byte's are summed. */
static void make_shift(uint32_t table[4][256], size_t bytes)
{
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = UINT32_C(1) << bit;
        for (size_t i = 0; i < bytes; i++)
            crc = crc >> 8 ^ byte_table[0][crc & 255];
        table[bit / 8][1 << bit % 8] = crc;
    }
    for (int i = 0; i < 4; i++)
        for (int value = 1; value < 256; value++)
            table[i][value] =
                table[i][value & (value - 1)] ^ table[i][value & -value];
}

static void make_tables(void)
{
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        byte_table[0][value] = crc;
    }
    for (int i = 1; i < 8; i++)
        for (int value = 0; value < 256; value++) {
            uint32_t before = byte_table[i - 1][value];
            byte_table[i][value] = before >> 8 ^ byte_table[0][before & 255];
        }
    make_shift(long_shift, LONG);
    make_shift(short_shift, SHORT);
}

/* 8 bytes, the first in the lowest bits whatever the processor's order. */
static uint64_t get_word(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint32_t get_half(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

uint32_t leat__crc32c_portable(uint32_t crc, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word = get_word(at) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= byte_table[7 - i][word >> 8 * i & 255];
    }
    for (; size > 0; at++, size--)
        crc = crc >> 8 ^ byte_table[0][(crc ^ *at) & 255];
    return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define CRC_WORD(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define CRC_HALF(crc, half) _mm_crc32_u32(crc, half)
#define CRC_BYTE(crc, byte) _mm_crc32_u8(crc, byte)

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define WITH_INSTRUCTION __attribute__((target("+crc")))
#define CRC_WORD(crc, word) __builtin_aarch64_crc32cx(crc, word)
#define CRC_HALF(crc, half) __builtin_aarch64_crc32cw(crc, half)
#define CRC_BYTE(crc, byte) __builtin_aarch64_crc32cb(crc, byte)
#define HAS_CRC32 (1UL << 7) /* HWCAP_CRC32 */

static bool has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HAS_CRC32) != 0;
}
#endif

#ifdef WITH_INSTRUCTION
/* Three streams of `stream` bytes each, while there are as many. */
WITH_INSTRUCTION static inline uint32_t
three_streams(uint32_t crc, const unsigned char **at, size_t *size,
              size_t stream, uint32_t table[4][256])
{
    while (*size >= 3 * stream) {
        const unsigned char *from = *at;
        uint32_t second = 0, third = 0;
        for (size_t i = 0; i < stream; i += 8) {
            crc = CRC_WORD(crc, get_word(from + i));
            second = CRC_WORD(second, get_word(from + stream + i));
            third = CRC_WORD(third, get_word(from + 2 * stream + i));
        }
        crc = shift(table, crc) ^ second;
        crc = shift(table, crc) ^ third;
        *at += 3 * stream;
        *size -= 3 * stream;
    }
    return crc;
}

WITH_INSTRUCTION static uint32_t by_instruction(uint32_t crc, const void *bytes,
                                                size_t size)
{
    const unsigned char *at = bytes;
    crc = ~crc;
    crc = three_streams(crc, &at, &size, LONG, long_shift);
    crc = three_streams(crc, &at, &size, SHORT, short_shift);
    for (; size >= 8; at += 8, size -= 8)
        crc = CRC_WORD(crc, get_word(at));
    if (size >= 4) {
        crc = CRC_HALF(crc, get_half(at));
        at += 4;
        size -= 4;
    }
    for (; size > 0; at++, size--)
        crc = CRC_BYTE(crc, *at);
    return ~crc;
}
#endif

static crc_function *choose(void)
{
#ifdef WITH_INSTRUCTION
    if (has_instruction())
        return by_instruction;
#endif
    return leat__crc32c_portable;
}

uint32_t leat__crc32c(uint32_t crc, const void *bytes, size_t size)
{
    static _Atomic(crc_function *) chosen;
    crc_function *function =
        atomic_load_explicit(&chosen, memory_order_acquire);
    if (__builtin_expect(!function, 0)) {
        pthread_once(&once, make_tables);
        function = choose();
        atomic_store_explicit(&chosen, function, memory_order_release);
    }
    return function(crc, bytes, size);
}
