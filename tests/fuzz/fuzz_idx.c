/* fuzz_idx.c: any bytes as an IDX file, gzipped or not. */
#include "tools/import/record_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const char *path, enum record_format format)
{
    static volatile unsigned sink;
    struct record_file file;
    const unsigned char *item;
    int status = record_file_open(&file, path, format, 0);
    /* A gzip bomb of a few bytes may hold more than is worth reading. */
    for (int i = 0; !status && i < 1000; i++) {
        status = record_file_next(&file, &item);
        if (!status)
            sink = sink + item[0] + item[file.size - 1];
    }
    record_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("idx", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    read_all(path, IDX_IMAGES);
    read_all(path, IDX_LABELS);
    close(fd);
    return 0;
}
