#include "data/image_arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <string.h>

/* The most memory kept from image to image; that of a rare huge image is freed.
 */
#define KEPT_MAX ((size_t)64 << 20)

/* A piece that did not fit; its memory follows at LEAT__ALIGNMENT. */
typedef struct leat__arena_spill {
    struct leat__arena_spill *next;
    size_t bytes;
} spill;

static void *spill_memory(spill *piece)
{
    return (unsigned char *)piece + LEAT__ALIGNMENT;
}

static void *alloc_spill(leat__arena *arena, size_t bytes)
{
    spill *piece = leat__alloc_aligned(bytes + LEAT__ALIGNMENT);
    if (!piece)
        return NULL;
    piece->next = arena->spills;
    piece->bytes = bytes;
    arena->spills = piece;
    arena->spilled += bytes;
    return spill_memory(piece);
}

static void free_spill(leat__arena *arena)
{
    spill *piece = arena->spills;
    arena->spills = piece->next;
    arena->spilled -= piece->bytes;
    leat__free(piece);
}

static size_t in_use(const leat__arena *arena)
{
    return arena->used + arena->spilled;
}

/* Checks the limit for `bytes` more; sets `status` and the error line if it is
 * exceeded. */
static bool is_allowed(leat__arena *arena, size_t bytes)
{
    size_t taken = in_use(arena) + arena->reserved;
    if (arena->limit && (taken > arena->limit || bytes > arena->limit - taken))
        arena->status =
            leat_error(LEAT_EDATA,
                       "decoding the image takes more than %llu bytes of "
                       "memory; max_image_bytes allows %zu",
                       (unsigned long long)taken + bytes - 1, arena->limit);
    /* Above half the address space sums could overflow. */
    else if (bytes > SIZE_MAX / 2)
        arena->status = leat__error_memory(bytes);
    else
        return true;
    return false;
}

static void *alloc_piece(leat__arena *arena, size_t bytes)
{
    if (bytes > arena->size - arena->used)
        return alloc_spill(arena, bytes);
    void *memory = arena->block + arena->used;
    arena->used += bytes;
    return memory;
}

void *leat__arena_alloc(leat__arena *arena, size_t bytes)
{
    size_t whole = bytes;
    if (bytes <= SIZE_MAX / 2)
        whole = (bytes + LEAT__ALIGNMENT) & ~(size_t)(LEAT__ALIGNMENT - 1);
    if (!is_allowed(arena, whole))
        return NULL;
    void *memory = alloc_piece(arena, whole);
    if (!memory) {
        arena->status = LEAT_ENOMEM;
        return NULL;
    }
    arena->latest = memory;
    arena->latest_bytes = whole;
    if (in_use(arena) > arena->peak)
        arena->peak = in_use(arena);
    return memory;
}

void leat__arena_free(leat__arena *arena, const void *memory)
{
    if (!memory || memory != arena->latest)
        return;
    arena->latest = NULL;
    if (arena->spills && memory == spill_memory(arena->spills))
        free_spill(arena);
    else
        arena->used -= arena->latest_bytes;
}

void leat__arena_reset(leat__arena *arena)
{
    while (arena->spills)
        free_spill(arena);
    size_t wanted = arena->peak;
    arena->used = arena->peak = 0;
    arena->latest = NULL;
    size_t kept = leat__demand_record(&arena->demand, wanted, arena->size);
    if (kept == arena->size && (wanted <= kept || wanted > KEPT_MAX))
        return;
    leat__free(arena->block);
    arena->size = kept < arena->size ? kept : wanted;
    arena->block = arena->size ? leat__alloc_aligned(arena->size) : NULL;
    /* Without a block the arena still works, by spilling. */
    if (!arena->block)
        arena->size = 0;
}

void leat__arena_finish(leat__arena *arena)
{
    while (arena->spills)
        free_spill(arena);
    leat__free(arena->block);
    memset(arena, 0, sizeof(*arena));
}
