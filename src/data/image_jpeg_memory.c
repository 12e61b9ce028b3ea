#include "data/image_jpeg_memory.h"

#include <jerror.h>
#include <string.h>

/*
 * A whole image of coefficients, which progressive files are gathered in. It
 * always lies in memory; the tag is libjpeg's name for it, the fields are ours.
 */
struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION blocks; /* of a row */
    JDIMENSION height;
    JDIMENSION cleared; /* rows zeroed so far, from the first on */
};

static void *alloc_bytes(j_common_ptr codec, int pool, size_t bytes)
{
    (void)pool;
    leat__jpeg_memory *memory = (leat__jpeg_memory *)codec->mem;
    void *piece = leat__arena_alloc(memory->arena, bytes);
    if (!piece)
        ERREXIT1(codec, JERR_OUT_OF_MEMORY, 0);
    return piece;
}

/* Rows of `pitch` bytes, and an array of their addresses. */
static void *alloc_rows(j_common_ptr codec, int pool, size_t pitch, size_t n)
{
    size_t index_bytes, bytes;
    if (leat__multiply(n, sizeof(void *), &index_bytes))
        index_bytes = SIZE_MAX;
    if (leat__multiply(n, pitch, &bytes))
        bytes = SIZE_MAX;
    void **rows = alloc_bytes(codec, pool, index_bytes);
    unsigned char *first = alloc_bytes(codec, pool, bytes);
    for (size_t i = 0; i < n; i++)
        rows[i] = first + i * pitch;
    return rows;
}

/* libjpeg's vector code reads and writes a row up to its padded end. */
static JSAMPARRAY alloc_sarray(j_common_ptr codec, int pool, JDIMENSION samples,
                               JDIMENSION n)
{
    size_t pitch = ((size_t)samples + LEAT__ALIGNMENT - 1) &
                   ~(size_t)(LEAT__ALIGNMENT - 1);
    return alloc_rows(codec, pool, pitch, n);
}

static JBLOCKARRAY alloc_barray(j_common_ptr codec, int pool, JDIMENSION blocks,
                                JDIMENSION n)
{
    return alloc_rows(codec, pool, blocks * sizeof(JBLOCK), n);
}

static jvirt_barray_ptr request_barray(j_common_ptr codec, int pool,
                                       boolean is_zeroed, JDIMENSION blocks,
                                       JDIMENSION n, JDIMENSION access_max)
{
    (void)is_zeroed, (void)access_max;
    jvirt_barray_ptr array = alloc_bytes(codec, pool, sizeof(*array));
    array->rows = alloc_barray(codec, pool, blocks, n);
    array->blocks = blocks;
    array->height = n;
    array->cleared = 0;
    return array;
}

/* Rows are zeroed when first reached, so unreached memory stays untouched. */
static JBLOCKARRAY access_barray(j_common_ptr codec, jvirt_barray_ptr array,
                                 JDIMENSION first, JDIMENSION n,
                                 boolean is_written)
{
    (void)is_written;
    if (first > array->height || n > array->height - first)
        ERREXIT(codec, JERR_BAD_VIRTUAL_ACCESS);
    for (; array->cleared < first + n; array->cleared++)
        memset(array->rows[array->cleared], 0, array->blocks * sizeof(JBLOCK));
    return array->rows + first;
}

/* Whole images of samples serve colour quantization, which is never asked for.
 */
static jvirt_sarray_ptr request_sarray(j_common_ptr codec, int pool,
                                       boolean is_zeroed, JDIMENSION samples,
                                       JDIMENSION n, JDIMENSION access_max)
{
    (void)pool, (void)is_zeroed, (void)samples, (void)n, (void)access_max;
    ERREXIT(codec, JERR_NOT_COMPILED);
    return NULL;
}

static JSAMPARRAY access_sarray(j_common_ptr codec, jvirt_sarray_ptr array,
                                JDIMENSION first, JDIMENSION n,
                                boolean is_written)
{
    (void)array, (void)first, (void)n, (void)is_written;
    ERREXIT(codec, JERR_NOT_COMPILED);
    return NULL;
}

static void realize_arrays(j_common_ptr codec)
{
    (void)codec; /* request_barray did it */
}

static void free_pool(j_common_ptr codec, int pool)
{
    (void)codec, (void)pool; /* the arena's reset does it */
}

static void self_destruct(j_common_ptr codec)
{
    (void)codec; /* the manager is part of its owner */
}

void leat__jpeg_memory_init(leat__jpeg_memory *memory, leat__arena *arena)
{
    *memory =
        (leat__jpeg_memory){.manager = {.alloc_small = alloc_bytes,
                                        .alloc_large = alloc_bytes,
                                        .alloc_sarray = alloc_sarray,
                                        .alloc_barray = alloc_barray,
                                        .request_virt_sarray = request_sarray,
                                        .request_virt_barray = request_barray,
                                        .realize_virt_arrays = realize_arrays,
                                        .access_virt_sarray = access_sarray,
                                        .access_virt_barray = access_barray,
                                        .free_pool = free_pool,
                                        .self_destruct = self_destruct},
                            .arena = arena};
}
