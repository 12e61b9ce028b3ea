/* fuzz_image_list.c: any bytes as a list of images. */
#include "tools/import/image_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a list must be, whatever it was read from. */
static int64_t check(const struct image_list *list, size_t count)
{
    int64_t images = 0, labels = 0;
    for (int64_t i = 0; i < image_list_lines(list); i++) {
        const char *name = image_list_name(list, i);
        struct image_label label = image_list_label(list, i);
        labels += label.class;
        if (!name)
            continue;
        if (label.count != count)
            abort();
        for (size_t k = 0; k < count; k++) {
            if (!isfinite(label.value[k]))
                abort();
            labels += label.value[k] > 0;
        }
        images++;
        if (!*name || strlen(name) > IMAGE_NAME_MOST || strchr(name, '\n'))
            abort();
    }
    if (images != image_list_images(list) || images < 1)
        abort();
    return labels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("list", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct image_list *list;
    for (int count = 0; count < 3; count++) {
        if (image_list_open(&list, path, count))
            continue;
        int64_t labels = check(list, (size_t)count);
        uint64_t digest = image_list_digest(list);
        image_list_shuffle(list, size);
        if (check(list, (size_t)count) != labels)
            abort();
        /* The digest of one line cannot change. */
        if (image_list_lines(list) == 1 && image_list_digest(list) != digest)
            abort();
        image_list_close(list);
    }
    close(fd);
    return 0;
}
