/* fuzz_cifar_batch.c: any bytes as a batch of CIFAR-10, gzipped or not. */
#include "tools/import/record_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile unsigned sink;
    int fd = memfd_create("batch", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    /* Files of any number of records, of one and of Caffe's ten thousand. */
    const int64_t records[] = {0, 1, CIFAR10_COUNT};
    struct record_file batch;
    for (int i = 0; i < 3; i++) {
        const unsigned char *record;
        int status = record_file_open(&batch, path, CIFAR10_BATCH, records[i]);
        while (!status && !(status = record_file_next(&batch, &record))) {
            if (record[0] >= CIFAR10_LABELS)
                abort();
            sink = sink + record[1] + record[CIFAR10_IMAGE];
        }
        record_file_close(&batch);
    }
    close(fd);
    return 0;
}
