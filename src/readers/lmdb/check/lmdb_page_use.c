#include "readers/lmdb/check/lmdb_page_use.h"
#include "base/error.h"
#include "base/memory.h"

unsigned char *leat__lmdb_page_bits(uint64_t last)
{
    return leat__alloc_zero((size_t)(last / 8 + 1), 1);
}

int leat__lmdb_page_use_mark(leat__lmdb_page_use *use, uint64_t page,
                             uint64_t pages)
{
    for (uint64_t i = page; i < page + pages; i++) {
        if (leat__lmdb_page_bit(use->bits, i))
            return leat_error(LEAT_EFORMAT,
                              "%s: page %llu is damaged, or another one that "
                              "points to it: it is reached twice",
                              use->name, (unsigned long long)i);
        leat__lmdb_page_bit_set(use->bits, i);
    }
    return LEAT_OK;
}

int leat__lmdb_page_use_mark_value(leat__lmdb_page_use *use, uint64_t page,
                                   uint64_t needed, uint64_t pages)
{
    int status = leat__lmdb_page_use_mark(use, page, needed);
    if (status || pages == needed)
        return status;
    if (use->spares == use->room) {
        size_t room = use->room ? 2 * use->room : 64;
        leat__lmdb_spare *grown =
            leat__realloc(use->spare, room * sizeof(*grown));
        if (!grown)
            return LEAT_ENOMEM;
        use->spare = grown;
        use->room = room;
    }
    use->spare[use->spares++] =
        (leat__lmdb_spare){page, page + needed, page + pages};
    return LEAT_OK;
}

/* The first of the pages that is in use. */
static uint64_t first_used(const leat__lmdb_page_use *use, uint64_t page,
                           uint64_t end)
{
    while (page < end && !leat__lmdb_page_bit(use->bits, page))
        page++;
    return page;
}

int leat__lmdb_page_use_check(leat__lmdb_page_use *use, uint64_t *page)
{
    while (use->spares) {
        leat__lmdb_spare spare = use->spare[--use->spares];
        uint64_t used = first_used(use, spare.begin, spare.end);
        if (used == spare.end) {
            leat__lmdb_page_use_mark(use, spare.begin, spare.end - spare.begin);
            continue;
        }
        *page = spare.page;
        return leat_error(
            LEAT_EFORMAT,
            "%s: page %llu is damaged: it counts %llu overflow pages, but page "
            "%llu is another record's; its value needs only %llu",
            use->name, (unsigned long long)spare.page,
            (unsigned long long)(spare.end - spare.page),
            (unsigned long long)used,
            (unsigned long long)(spare.begin - spare.page));
    }
    return LEAT_OK;
}

void leat__lmdb_page_use_finish(leat__lmdb_page_use *use)
{
    if (!use->borrows_bits)
        leat__free(use->bits);
    leat__free(use->spare);
    use->bits = NULL;
    use->spare = NULL;
}
