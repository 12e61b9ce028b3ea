/* fuzz_file_list.c: any bytes as a list of files. */
#include "readers/file_list.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No path is empty, or has a line break in it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat__file_list list = {0};
    int status = leat__file_list_parse(&list, "fuzz", (const char *)data, size);
    if ((status == LEAT_OK) != (list.n > 0) && status != LEAT_ENOMEM)
        abort();
    for (int i = 0; i < list.n; i++)
        if (!*list.path[i] || strchr(list.path[i], '\n'))
            abort();
    leat__file_list_close(&list);
    return 0;
}
