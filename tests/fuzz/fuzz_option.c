/* fuzz_option.c: any text as the value of any option. What is taken is a value
 * that the option may have; what is not leaves the struct as it was, and the
 * error line begins with the option's name. */
#include "base/option_list.h"

#include <leat/data_layer.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set(const leat_option list[], int n, int i, void *options,
                size_t bytes, const char *text)
{
    char before[sizeof(leat_data_layer_options)];
    const leat_option *option = &list[i];
    memcpy(before, options, bytes);
    if (leat_option_set(option, options, text) == LEAT_OK) {
        if (leat__option_check(list, n, options))
            abort();
        return;
    }
    size_t length = strlen(option->name);
    if (memcmp(before, options, bytes) != 0 ||
        strncmp(leat_last_error(), option->name, length) != 0 ||
        leat_last_error()[length] != ':')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_data_layer_options layer = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_top top = {.size = sizeof(top)};
    int layers, transforms, tops;
    const leat_option *list = leat_data_layer_option_list(&layers);
    const leat_option *others = leat_transform_option_list(&transforms);
    const leat_option *of_tops = leat_top_option_list(&tops);
    if (size == 0)
        return 0;
    char *text = calloc(1, size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    int i = data[0] % (layers + transforms + tops);
    if (i < layers)
        set(list, layers, i, &layer, sizeof(layer), text);
    else if (i < layers + transforms)
        set(others, transforms, i - layers, &transform, sizeof(transform),
            text);
    else
        set(of_tops, tops, i - layers - transforms, &top, sizeof(top), text);
    free(text);
    return 0;
}
