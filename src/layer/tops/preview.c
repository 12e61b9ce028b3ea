#include "layer/tops/preview.h"
#include "base/error.h"
#include "base/memory.h"

/* Room for another chunk: there are few, but for batches without a sample. */
static int make_room(leat__previews *previews)
{
    leat__chunk_list *list = &previews->list;
    if (list->n < previews->room)
        return LEAT_OK;
    int room = previews->room ? previews->room * 2 : LEAT__PREVIEWS_MAX;
    leat__chunk **chunk =
        leat__realloc(list->chunk, (size_t)room * sizeof(leat__chunk *));
    if (!chunk)
        return LEAT_ENOMEM;
    list->chunk = chunk;
    previews->room = room;
    return LEAT_OK;
}

/* LEAT_END where no more samples may be had. */
static int check_limits(const leat__previews *previews)
{
    int n = previews->list.n;
    if (n >= LEAT__PREVIEWS_MAX && previews->empty > previews->most)
        return leat_error(LEAT_ELIMIT,
                          "of %d batches %d have no sample of this rank, and "
                          "take %zu bytes: expected fewer ranks, or epochs of "
                          "more samples",
                          n, n - previews->filled, previews->empty);
    bool is_full = previews->filled == LEAT__PREVIEWS_MAX ||
                   previews->held > previews->most;
    return is_full ? LEAT_END : LEAT_OK;
}

static void count(leat__previews *previews, const leat__chunk *chunk)
{
    previews->held += leat__chunk_buffers(chunk, 0);
    if (chunk->n > 0 || chunk->failed == 0)
        previews->filled++;
    else
        previews->empty +=
            sizeof(*chunk) + (size_t)chunk->capacity * sizeof(*chunk->all);
}

static int add(leat__previews *previews, leat__chunk_source *source, bool ahead,
               leat__chunk **out)
{
    const leat__chunk_source_options *options = &source->options;
    bool is_batch = leat__chunk_source_needs_batches(source);
    int status = check_limits(previews);
    if (!status)
        status = make_room(previews);
    if (!status)
        status = leat__chunk_create(out, is_batch ? options->batch_size : 1,
                                    options->draws, options->buffers);
    if (status)
        return status;
    previews->list.chunk[previews->list.n++] = *out;
    previews->shown = 0;
    leat__chunk_source_fill(source, *out, ahead);
    leat__chunk_read(*out, source->reader, options->collects);
    count(previews, *out);
    return LEAT_OK;
}

/* The chunk of the next sample, or of the failure before it. */
static int find_chunk(leat__previews *previews, leat__chunk_source *source,
                      bool ahead, leat__chunk **out)
{
    const leat__chunk_list *list = &previews->list;
    int status = LEAT_OK;
    bool has_one = false;
    if (list->n > 0) {
        *out = list->chunk[list->n - 1];
        has_one = previews->shown < (*out)->n;
    }
    /* A batch may end without one. */
    while (!status && !has_one) {
        status = add(previews, source, ahead, out);
        has_one = !status && ((*out)->n > 0 || (*out)->failed == 0);
    }
    return status;
}

int leat__previews_next(leat__previews *previews, leat__chunk_source *source,
                        bool ahead, const leat_sample **out)
{
    leat__chunk *chunk;
    int status = find_chunk(previews, source, ahead, &chunk);
    if (status)
        return status;
    int i = previews->shown++;
    if (chunk->failed == i)
        return leat_error(chunk->status, "%s", chunk->line);
    for (int k = 0; k < chunk->bad.n; k++)
        if (chunk->bad.item[k].sample == i)
            return leat_error(LEAT_EDATA, "%s", chunk->bad.item[k].line);
    *out = chunk->sample[i];
    return LEAT_OK;
}

int leat__previews_batch(const leat__previews *previews,
                         const leat_sample ***out, int *n)
{
    const leat__chunk *chunk = previews->list.chunk[previews->list.n - 1];
    *out = leat__alloc_zero((size_t)chunk->capacity, sizeof(leat_sample *));
    if (!*out)
        return LEAT_ENOMEM;
    *n = chunk->failed < 0 ? chunk->n : chunk->failed;
    for (int i = 0; i < *n; i++)
        (*out)[i] = chunk->sample[i];
    for (int i = 0; i < chunk->bad.n; i++)
        if (chunk->bad.item[i].sample < *n)
            (*out)[chunk->bad.item[i].sample] = NULL;
    return LEAT_OK;
}
