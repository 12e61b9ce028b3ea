/*
 * Bytes as an entry of a cache, and as its index file; with the first bit set
 * the checksums are made right first, as no chance finds them.
 */
#include "base/crc32c.h"
#include "base/memory.h"
#include "decorators/cache/cache_directory.h"
#include "decorators/cache/cache_writer.h"

#include <leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_CRC = 32, HEADER_CRC = 36, HEADER = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void touch(const leat_sample *sample)
{
    volatile unsigned char sum = 0;
    for (int i = 0; i < sample->nfields; i++)
        for (size_t k = 0; k < sample->field[i].bytes; k++)
            sum ^= ((const unsigned char *)sample->field[i].data)[k];
    (void)sum;
}

static void read_entry(const void *bytes, size_t size)
{
    leat_sample sample;
    leat_token mark;
    leat_sample_init(&sample);
    leat_token_init(&mark);
    leat_sample_clear(&sample);
    if (!leat__cache_entry_view(bytes, size, &sample))
        touch(&sample);
    (void)leat__cache_entry_mark(bytes, size, &mark);
    leat_token_finish(&mark);
    leat_sample_finish(&sample);
}

static void put(const char *path, const void *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes, 1, size, out) != size)
        abort();
    fclose(out);
}

static void read_directory(uint8_t *bytes, size_t size)
{
    static char root[] = "/tmp/leat-fuzz-cache-XXXXXX";
    static char index[64], data[64];
    static const char zeros[256];
    leat_token identity;
    leat__cache_directory *directory;
    if (!index[0]) {
        if (!mkdtemp(root))
            abort();
        snprintf(index, sizeof(index), "%s/index", root);
        snprintf(data, sizeof(data), "%s/data", root);
    }
    put(index, bytes, size);
    put(data, zeros, sizeof(zeros));
    leat_token_init(&identity);
    if (!leat__cache_directory_open(&directory, root, &identity, 0)) {
        const void *entry;
        size_t n;
        for (int64_t i = 0; i < leat__cache_directory_count(directory); i++)
            if (!leat__cache_directory_at(directory, i, &entry, &n))
                read_entry(entry, n);
        leat__cache_directory_close(directory);
    }
    leat_token_finish(&identity);
    unlink(index);
    unlink(data);
    rmdir(root);
    index[0] = 0;
    memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    size_t n = size - 1;
    uint8_t *copy = leat__alloc_aligned(n);
    if (n > 0)
        memcpy(copy, bytes + 1, n);
    read_entry(copy, n);
    if (bytes[0] & 1 && n >= HEADER) {
        uint32_t crc = leat__crc32c(0, copy + HEADER, n - HEADER);
        memcpy(copy + BODY_CRC, &crc, sizeof(crc));
        crc = leat__crc32c(0, copy, HEADER_CRC);
        memcpy(copy + HEADER_CRC, &crc, sizeof(crc));
    }
    read_directory(copy, n);
    leat__free(copy);
    return 0;
}
