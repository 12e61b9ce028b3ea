#include "decorators/prefetch/prefetch_buffer.h"
#include "base/counter.h"
#include "base/memory.h"
#include "data/sample.h"

static void destroy_slot(leat__prefetch_slot *slot)
{
    leat_sample_finish(&slot->sample);
    leat_token_finish(&slot->mark);
    leat__free(slot);
}

int leat__prefetch_buffer_init(leat__prefetch_buffer *buffer, int size, int n,
                               const leat_allocator *allocator)
{
    buffer->allocator = allocator;
    buffer->size = size;
    buffer->empty = leat__alloc_zero((size_t)size, sizeof(buffer->empty[0]));
    buffer->ring = leat__alloc_zero((size_t)size, sizeof(buffer->ring[0]));
    return buffer->empty && buffer->ring ? leat__prefetch_buffer_grow(buffer, n)
                                         : LEAT_ENOMEM;
}

void leat__prefetch_buffer_finish(leat__prefetch_buffer *buffer)
{
    leat__prefetch_buffer_clear(buffer);
    while (buffer->nempty > 0)
        destroy_slot(buffer->empty[--buffer->nempty]);
    leat__free(buffer->empty);
    leat__free(buffer->ring);
}

int leat__prefetch_buffer_grow(leat__prefetch_buffer *buffer, int n)
{
    for (; buffer->nslots < n; buffer->nslots++) {
        leat__prefetch_slot *slot = leat__alloc_zero(1, sizeof(*slot));
        if (!slot)
            return LEAT_ENOMEM;
        leat_sample_init(&slot->sample);
        leat_token_init(&slot->mark);
        slot->sample.allocator = buffer->allocator;
        buffer->empty[buffer->nempty++] = slot;
        leat__counter_add(&buffer->memory, (int64_t)sizeof(*slot));
    }
    return LEAT_OK;
}

leat__prefetch_slot *leat__prefetch_buffer_take(leat__prefetch_buffer *buffer)
{
    leat__prefetch_slot *slot = buffer->empty[--buffer->nempty];
    buffer->empty_bytes -= (int64_t)slot->counted;
    leat__sample_trim_ahead(&slot->sample);
    leat__sample_clear(&slot->sample);
    leat__prefetch_buffer_count(buffer, slot);
    slot->status = LEAT_OK;
    slot->is_ready = false;
    slot->mark.size = 0;
    return slot;
}

void leat__prefetch_buffer_give(leat__prefetch_buffer *buffer,
                                leat__prefetch_slot *slot)
{
    leat__prefetch_buffer_count(buffer, slot);
    buffer->empty[buffer->nempty++] = slot;
    buffer->empty_bytes += (int64_t)slot->counted;
}

void leat__prefetch_buffer_push(leat__prefetch_buffer *buffer,
                                leat__prefetch_slot *slot)
{
    buffer->ring[buffer->tail++ % buffer->size] = slot;
}

/* Slots that were taken out of the middle. */
static void pass_gaps(leat__prefetch_buffer *buffer)
{
    while (buffer->head < buffer->tail && !leat__prefetch_buffer_front(buffer))
        buffer->head++;
}

leat__prefetch_slot *leat__prefetch_buffer_pop(leat__prefetch_buffer *buffer,
                                               bool is_unordered)
{
    for (int64_t i = buffer->head; i < buffer->tail; i++) {
        leat__prefetch_slot **at = &buffer->ring[i % buffer->size];
        leat__prefetch_slot *slot = *at;
        bool is_sample = slot && (!slot->status || slot->status == LEAT_EDATA);
        if (slot && slot->is_ready && (is_sample || i == buffer->head)) {
            *at = NULL;
            pass_gaps(buffer);
            return slot;
        }
        if (!is_unordered || (slot && !is_sample))
            break;
    }
    return NULL;
}

void leat__prefetch_buffer_clear(leat__prefetch_buffer *buffer)
{
    for (; buffer->head < buffer->tail; buffer->head++) {
        leat__prefetch_slot *slot = leat__prefetch_buffer_front(buffer);
        if (slot)
            leat__prefetch_buffer_give(buffer, slot);
    }
}

void leat__prefetch_buffer_count(leat__prefetch_buffer *buffer,
                                 leat__prefetch_slot *slot)
{
    size_t bytes = slot->sample.buffer_size;
    if (bytes == slot->counted)
        return;
    leat__counter_add(&buffer->memory, (int64_t)bytes - (int64_t)slot->counted);
    slot->counted = bytes;
}

void leat__prefetch_buffer_trim(leat__prefetch_buffer *buffer, int64_t bytes)
{
    for (int i = 0; i < buffer->nempty - 1 && bytes > 0; i++) {
        leat__prefetch_slot *slot = buffer->empty[i];
        size_t freed = slot->counted;
        if (freed == 0 || slot->sample.idle < 0)
            continue;
        leat_sample_clear(&slot->sample);
        leat__sample_release(&slot->sample);
        leat__prefetch_buffer_count(buffer, slot);
        freed -= slot->counted;
        buffer->empty_bytes -= (int64_t)freed;
        bytes -= (int64_t)freed;
    }
}
