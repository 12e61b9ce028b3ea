/* fuzz_idx.c: any bytes as an IDX file, gzipped or not. */
#include "tools/import/idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const char *path, int magic)
{
    static volatile unsigned sink;
    struct idx_file *file;
    if (idx_open(&file, path, magic))
        return;
    size_t bytes = (size_t)idx_rows(file) * (size_t)idx_columns(file);
    const unsigned char *item;
    /* A gzip bomb of a few bytes may hold more than is worth reading. */
    for (int i = 0; i < 1000 && !idx_next(file, &item); i++)
        sink = sink + item[0] + item[bytes - 1];
    idx_close(file);
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
