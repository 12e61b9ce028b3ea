/* fuzz_cifar_batch.c: any bytes as a batch of CIFAR-10, gzipped or not. */
#include "tools/import/cifar_batch.h"

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
    const int64_t records[] = {0, 1, CIFAR_BATCH_RECORDS};
    struct cifar_batch *batch;
    for (int i = 0; i < 3 && !cifar_batch_open(&batch, path, records[i]); i++) {
        const unsigned char *image;
        int label;
        while (!cifar_batch_next(batch, &image, &label)) {
            if (label < 0 || label >= CIFAR_BATCH_LABELS)
                abort();
            sink = sink + image[0] + image[CIFAR_BATCH_IMAGE - 1];
        }
        cifar_batch_close(batch);
    }
    close(fd);
    return 0;
}
