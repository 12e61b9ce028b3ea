/* crc32c.h: CRC-32C (Castagnoli), the checksum of TFRecord and of others. */
#ifndef LEAT_BASE_CRC32C_H
#define LEAT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * The checksum of bytes before, `crc`, and these after them; 0 if there are
 * none before. By the processor's instruction where it has one. Any threads.
 */
uint32_t leat__crc32c(uint32_t crc, const void *bytes, size_t size);

/* The same without the instruction. */
uint32_t leat__crc32c_portable(uint32_t crc, const void *bytes, size_t size);

/* Checksums of bytes that hold checksums themselves are stored masked. */
static inline uint32_t leat__crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

#endif
