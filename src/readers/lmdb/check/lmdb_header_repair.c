#include "readers/lmdb/check/lmdb_header_repair.h"
#include "readers/lmdb/lmdb_freelist.h"

#include <stdbool.h>
#include <string.h>

/* The two meta pages, as far as they can be read. */
typedef struct meta_pages {
    const char *name;
    const unsigned char *base;
    size_t size;
    leat__lmdb_meta meta[2];
    bool is_read[2];
    leat__lmdb_event *event;
    int *n;
} meta_pages;

static void add_event(meta_pages *pages, int status, uint64_t page)
{
    leat__lmdb_event *event = &pages->event[(*pages->n)++];
    memset(event, 0, sizeof(*event));
    event->status = status;
    event->page = page;
    leat__error_save(event->line);
}

static int too_short(const meta_pages *pages)
{
    return leat_error(LEAT_EFORMAT, "%s: truncated: it has %zu bytes",
                      pages->name, pages->size);
}

/* An intact page of a database that leat cannot read is an error, not damage.
 */
static int read_meta(meta_pages *pages, int number, size_t offset)
{
    const char *name = pages->name;
    const unsigned char *bytes = pages->base + offset;
    int status = offset + LEAT__LMDB_META_BYTES > pages->size
                     ? too_short(pages)
                     : leat__lmdb_meta_check_page(name, number, bytes);
    if (status) {
        add_event(pages, status, (uint64_t)number);
        return LEAT_OK;
    }
    status = leat__lmdb_meta_parse(&pages->meta[number], name, number, bytes);
    pages->is_read[number] = !status;
    return status;
}

/* The offset of the second meta page is the page size. */
static int find_second(meta_pages *pages)
{
    for (size_t at = 256; at <= 65536; at *= 2) {
        leat__lmdb_meta meta;
        if (at + LEAT__LMDB_META_BYTES > pages->size)
            break;
        if (leat__lmdb_meta_parse(&meta, pages->name, 1, pages->base + at) ||
            meta.page_size != at)
            continue;
        return read_meta(pages, 1, at);
    }
    return LEAT_OK;
}

/* For a snapshot that is valid except for its number of records. */
static int cut_count(const meta_pages *pages, leat__lmdb_meta *meta,
                     leat__lmdb_map *out)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    meta->entries = 0;
    int status =
        leat__lmdb_map_init(out, pages->name, pages->base, pages->size, meta);
    /* The line has the number that the meta page has. */
    return status ? leat_error(status, "%s", line) : LEAT_OK;
}

/* Cuts the tree to the pages that the file has, if its root is among them. */
static int cut(meta_pages *pages, int number, leat__lmdb_map *out)
{
    leat__lmdb_meta meta = pages->meta[number];
    const char *name = pages->name;
    uint64_t there = pages->size / meta.page_size;
    int status = leat__lmdb_freelist_cut(&meta, name, pages->base, pages->size);
    if (!status)
        status =
            leat__lmdb_map_init(out, name, pages->base, pages->size, &meta);
    if (!status || there < 2)
        return status;
    bool is_short = meta.last_page >= there;
    add_event(pages, status, is_short ? there : (uint64_t)number);
    if (is_short) {
        meta.last_page = there - 1;
        status =
            leat__lmdb_map_init(out, name, pages->base, pages->size, &meta);
    }
    return status ? cut_count(pages, &meta, out) : LEAT_OK;
}

/* Whether the file was truncated: its meta page would be valid for the whole
 * file. */
static bool is_cut_off(const meta_pages *pages, const leat__lmdb_meta *meta)
{
    size_t whole = (size_t)(meta->last_page + 1) * meta->page_size;
    return whole > pages->size && pages->size >= 2 * meta->page_size &&
           !leat__lmdb_meta_check(meta, pages->name, whole);
}

/* Two empty trees, for a file that lacks even the root of the records' tree. */
static int cut_all(const meta_pages *pages, const leat__lmdb_meta *wanted,
                   leat__lmdb_map *out)
{
    leat__lmdb_meta meta = *wanted;
    meta.last_page = pages->size / meta.page_size - 1;
    meta.root = meta.free_root = LEAT__LMDB_NO_PAGE;
    meta.depth = meta.free_depth = 0;
    meta.entries = meta.free_entries = 0;
    return leat__lmdb_map_init(out, pages->name, pages->base, pages->size,
                               &meta);
}

int leat__lmdb_header_repair(leat__lmdb_map *out, const char *name,
                             const void *base, size_t size,
                             leat__lmdb_event event[], int *n)
{
    meta_pages pages = {
        .name = name, .base = base, .size = size, .event = event, .n = n};
    *n = 0;
    int status = read_meta(&pages, 0, 0);
    if (!status && pages.is_read[0])
        status = read_meta(&pages, 1, pages.meta[0].page_size);
    else if (!status)
        status = find_second(&pages);
    if (status)
        return status;
    if (!pages.is_read[0] && !pages.is_read[1])
        return leat_error(LEAT_EFORMAT, "%s", event[0].line);
    if (pages.is_read[0] && pages.is_read[1] &&
        (status = leat__lmdb_meta_check_pair(pages.meta, name))) {
        add_event(&pages, status, 1);
        pages.is_read[1] &= pages.meta[0].page_size == pages.meta[1].page_size;
    }
    int first = !pages.is_read[0] ||
                (pages.is_read[1] && pages.meta[0].txnid < pages.meta[1].txnid);
    leat__lmdb_event *cuts = &event[*n];
    const leat__lmdb_meta *wanted = &pages.meta[first];
    status = cut(&pages, first, out);
    if (status && pages.is_read[!first])
        status = cut(&pages, !first, out);
    if (!is_cut_off(&pages, wanted))
        return status;
    if (status)
        status = cut_all(&pages, wanted, out);
    if (!status && wanted->entries > out->meta.entries) {
        cuts->page = LEAT__LMDB_NO_PAGE;
        cuts->lost = (int64_t)(wanted->entries - out->meta.entries);
    }
    return status;
}
