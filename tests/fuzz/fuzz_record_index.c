/*
 * fuzz_record_index.c: any bytes as what is kept of an index; also with their
 * checksums set right, so that what comes after these is reached.
 */
#include "base/crc32c.h"
#include "readers/record/record_index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 56, FILE_SIZE = 100000 };

/* The offsets of an index that is used ascend, and are in the file. */
static void parse(const unsigned char *bytes, size_t size)
{
    leat__record_offsets found = {0};
    if (!leat__record_index_parse(bytes, size, "tfrecord", FILE_SIZE, 7,
                                  &found))
        return;
    if (found.count < 0 || (size_t)found.count * 8 + HEADER != size)
        abort();
    for (int64_t i = 0; i < found.count; i++)
        if (found.offset[i] >= FILE_SIZE ||
            (i > 0 && found.offset[i] <= found.offset[i - 1]))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    parse(bytes, size);
    if (size >= HEADER) {
        const uint64_t header[] = {FILE_SIZE, 7, (size - HEADER) / 8};
        memset(bytes + 8, 0, 16);
        memcpy(bytes, "leatidx1tfrecord", 16);
        memcpy(bytes + 24, header, sizeof(header));
        uint32_t sum = leat__crc32c(0, bytes + HEADER, size - HEADER);
        memcpy(bytes + 48, &sum, 4);
        sum = leat__crc32c(0, bytes, 52);
        memcpy(bytes + 52, &sum, 4);
        parse(bytes, size);
    }
    free(bytes);
    return 0;
}
