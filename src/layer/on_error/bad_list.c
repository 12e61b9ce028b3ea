#include "layer/on_error/bad_list.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void leat__key_keep(char kept[LEAT__KEY_MAX], leat_provenance *from)
{
    if (from->key_size > LEAT__KEY_MAX) {
        size_t cut = from->key_size - LEAT__KEY_MAX;
        from->key_cut = cut < UINT32_MAX ? (uint32_t)cut : UINT32_MAX;
        from->key_size = LEAT__KEY_MAX;
    }
    memcpy(kept, from->key, from->key_size);
    from->key = kept;
}

void leat__bad_set(leat__bad *bad, int sample, const leat_provenance *from,
                   const char line[LEAT__ERROR_MAX])
{
    static const leat_provenance nowhere = {0};
    bad->sample = sample;
    bad->from = from ? *from : nowhere;
    memcpy(bad->line, line, sizeof(bad->line));
    if (bad->from.key)
        leat__key_keep(bad->key, &bad->from);
}

leat_provenance leat__bad_from(const leat__bad *bad)
{
    leat_provenance from = bad->from;
    /* Lists move, so the key may point to the old copy. */
    if (from.key)
        from.key = bad->key;
    return from;
}

static int make_room(leat__bad_list *list, int n)
{
    if (n <= list->capacity)
        return LEAT_OK;
    int capacity = list->capacity < 4 ? 4 : list->capacity;
    while (capacity < n)
        capacity += capacity / 2;
    size_t bytes = (size_t)capacity * sizeof(*list->item);
    leat__bad *item = leat__realloc(list->item, bytes);
    if (!item)
        return LEAT_ENOMEM;
    list->item = item;
    list->capacity = capacity;
    return LEAT_OK;
}

int leat__bad_list_add(leat__bad_list *list, int sample,
                       const leat_provenance *from)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    int status = make_room(list, list->n + 1);
    if (!status)
        leat__bad_set(&list->item[list->n++], sample, from, line);
    return status;
}

int leat__bad_list_append(leat__bad_list *list, const leat__bad_list *from,
                          int first)
{
    int status = make_room(list, list->n + from->n);
    for (int i = 0; i < from->n && !status; i++) {
        list->item[list->n] = from->item[i];
        list->item[list->n++].sample += first;
    }
    return status;
}

static int compare(const void *a, const void *b)
{
    return ((const leat__bad *)a)->sample - ((const leat__bad *)b)->sample;
}

void leat__bad_list_sort(leat__bad_list *list)
{
    if (list->n > 1)
        qsort(list->item, (size_t)list->n, sizeof(*list->item), compare);
}

void leat__bad_list_finish(leat__bad_list *list)
{
    leat__free(list->item);
    memset(list, 0, sizeof(*list));
}
