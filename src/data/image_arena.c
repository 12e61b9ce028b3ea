#include "data/image_arena.h"
#include "base/error.h"

#include <string.h>

/* Kept from image to image at most; a rare giant gives its memory back. */
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

void *leat__arena_alloc(leat__arena *arena, size_t bytes)
{
    /* Beyond half the address space sums could overflow, and none has it. */
    if (bytes > SIZE_MAX / 2) {
        leat__error_memory(bytes);
        return NULL;
    }
    size_t whole = (bytes + LEAT__ALIGNMENT) & ~(size_t)(LEAT__ALIGNMENT - 1);
    void *memory;
    if (whole <= arena->size - arena->used) {
        memory = arena->block + arena->used;
        arena->latest = arena->used;
        arena->used += whole;
    } else {
        memory = alloc_spill(arena, whole);
    }
    if (arena->used + arena->spilled > arena->peak)
        arena->peak = arena->used + arena->spilled;
    return memory;
}

void leat__arena_free(leat__arena *arena, const void *memory)
{
    if (arena->spills && memory == spill_memory(arena->spills))
        free_spill(arena);
    else if (arena->used && memory == arena->block + arena->latest)
        arena->used = arena->latest;
}

void leat__arena_reset(leat__arena *arena)
{
    while (arena->spills)
        free_spill(arena);
    size_t wanted = arena->peak;
    arena->used = arena->latest = arena->peak = 0;
    if (wanted <= arena->size || wanted > KEPT_MAX)
        return;
    leat__free(arena->block);
    arena->block = leat__alloc_aligned(wanted);
    /* Without a block the arena still works, by spilling. */
    arena->size = arena->block ? wanted : 0;
}

void leat__arena_finish(leat__arena *arena)
{
    while (arena->spills)
        free_spill(arena);
    leat__free(arena->block);
    memset(arena, 0, sizeof(*arena));
}
