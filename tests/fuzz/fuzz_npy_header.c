/* fuzz_npy_header.c: any bytes as a .npy file. */
#include "tools/delivery/npy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile long double sink;
    struct npy_header header;
    if (npy_header_parse(&header, "fuzz", data, size))
        return 0;
    if (header.count) {
        sink = sink + npy_header_value(&header, data + header.offset, 0);
        sink =
            npy_header_value(&header, data + header.offset, header.count - 1);
    }
    return 0;
}
