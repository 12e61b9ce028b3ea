#include "readers/lmdb/check/lmdb_freelist_check.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LIST ": freelist"

/* Damage that is returned. Damaged lists may have a fault in each 8 bytes. */
enum { EVENTS_MAX = 10000 };

/* Opens the tree of the freelist, under a name of its own for errors. */
static int find_list(leat__lmdb_freelist_check *freelist)
{
    const leat__lmdb_map *map = freelist->map;
    size_t size = strlen(map->name) + sizeof(LIST);
    freelist->name = leat__alloc(size);
    if (!freelist->name)
        return LEAT_ENOMEM;
    snprintf(freelist->name, size, "%s" LIST, map->name);
    return leat__lmdb_freelist_map(&freelist->list, freelist->name, map);
}

int leat__lmdb_freelist_check_init(leat__lmdb_freelist_check *out,
                                   const leat__lmdb_map *map,
                                   const leat__lmdb_storage *storage,
                                   unsigned char *met)
{
    memset(out, 0, sizeof(*out));
    out->map = map;
    out->listed = leat__lmdb_page_bits(map->meta.last_page);
    int status = out->listed ? find_list(out) : LEAT_ENOMEM;
    if (status) {
        leat__lmdb_freelist_check_finish(out);
        return status;
    }
    leat__lmdb_recovery_init_shared(&out->recovery, &out->list, storage, met);
    /* The meta pages are in use. */
    leat__lmdb_page_bit_set(met, 0);
    leat__lmdb_page_bit_set(met, 1);
    return LEAT_OK;
}

void leat__lmdb_freelist_check_finish(leat__lmdb_freelist_check *freelist)
{
    leat__lmdb_recovery_finish(&freelist->recovery);
    leat__free(freelist->listed);
    leat__free(freelist->name);
    memset(freelist, 0, sizeof(*freelist));
}

/* Why a page must not be on the freelist. */
typedef enum fault { SOUND, PAST_END, IN_USE, TWICE } fault;

static const char *const words[] = {
    [PAST_END] = "after the last page but on the freelist: a writer would "
                 "leave a hole",
    [IN_USE] = "in use but on the freelist: a writer would overwrite it",
    [TWICE] = "on the freelist twice: a writer would use it twice"};

static fault judge(const leat__lmdb_freelist_check *freelist, uint64_t page)
{
    const leat__lmdb_meta *meta = &freelist->map->meta;
    if (page > meta->last_promised)
        return PAST_END;
    /* Never written: not in the file. */
    if (page > meta->last_page)
        return SOUND;
    if (leat__lmdb_page_bit(freelist->recovery.use.bits, page))
        return IN_USE;
    return leat__lmdb_page_bit(freelist->listed, page) ? TWICE : SOUND;
}

/* Takes the next page of the open part and marks it as listed. */
static fault take(leat__lmdb_freelist_check *freelist, uint64_t *page)
{
    *page = leat__lmdb_freed_page(&freelist->freed, freelist->at++);
    fault found = judge(freelist, *page);
    if (found == SOUND && *page <= freelist->map->meta.last_page)
        leat__lmdb_page_bit_set(freelist->listed, *page);
    return found;
}

/* Whether page `page` is next and has the same fault. */
static bool continues(const leat__lmdb_freelist_check *freelist, uint64_t page,
                      fault found)
{
    return freelist->at < freelist->freed.n &&
           leat__lmdb_freed_page(&freelist->freed, freelist->at) == page &&
           judge(freelist, page) == found;
}

/* Reports a page together with the following ones of the same fault; the list
 * descends, and may repeat a page. */
static void report(leat__lmdb_freelist_check *freelist, uint64_t last,
                   fault found)
{
    const char *name = freelist->map->name;
    leat__lmdb_event *event = &freelist->event;
    memset(event, 0, sizeof(*event));
    event->page = last;
    while (continues(freelist, event->page, found) ||
           (event->page > 0 && continues(freelist, event->page - 1, found)))
        (void)take(freelist, &event->page);
    event->status =
        event->page == last
            ? leat_error(LEAT_EFORMAT,
                         "%s: page %llu is %s; mdb_copy -c makes a sound copy",
                         name, (unsigned long long)last, words[found])
            : leat_error(LEAT_EFORMAT,
                         "%s: pages %llu to %llu are %s; mdb_copy -c makes a "
                         "sound copy",
                         name, (unsigned long long)event->page,
                         (unsigned long long)last, words[found]);
    leat__error_save(event->line);
}

/* Reports that the rest of the list is not checked. */
static void report_more(leat__lmdb_freelist_check *freelist)
{
    leat__lmdb_event *event = &freelist->event;
    freelist->is_cut = true;
    memset(event, 0, sizeof(*event));
    event->page = LEAT__LMDB_NO_PAGE;
    event->status = leat_error(LEAT_EFORMAT,
                               "%s: more than %d faults: the rest of the list "
                               "is not checked; mdb_copy -c makes a sound copy",
                               freelist->name, EVENTS_MAX);
    leat__error_save(event->line);
}

/* Reads the value of a transaction, which lists no page twice. */
static int read_part(leat__lmdb_freelist_check *freelist,
                     const leat__lmdb_node *node)
{
    leat__lmdb_freed *freed = &freelist->freed;
    int status =
        leat__lmdb_freed_read(freed, freelist->name, node->key, node->key_size,
                              node->value, node->value_size);
    if (status || freed->n <= freelist->map->meta.last_promised)
        return status;
    return leat_error(LEAT_EFORMAT,
                      "%s: damaged: transaction %llu lists %zu pages, more "
                      "than there are",
                      freelist->name, (unsigned long long)freed->txnid,
                      freed->n);
}

/* Opens the next part of the list; damage in it becomes an event. */
static int next_part(leat__lmdb_freelist_check *freelist)
{
    const leat__lmdb_event *event;
    if (leat__lmdb_recovery_next(&freelist->recovery, &event))
        return LEAT_END;
    freelist->event = *event;
    freelist->event.lost = 0;
    /* It has no record. */
    freelist->event.node.key = NULL;
    freelist->event.node.key_size = 0;
    if (!event->status) {
        freelist->at = 0;
        freelist->event.status = read_part(freelist, &event->node);
        leat__error_save(freelist->event.line);
    }
    if (freelist->event.status)
        freelist->freed.n = freelist->at = 0;
    return LEAT_OK;
}

/* Finds the next damage. */
static int find(leat__lmdb_freelist_check *freelist)
{
    for (;;) {
        while (freelist->at < freelist->freed.n) {
            uint64_t page;
            fault found = take(freelist, &page);
            if (found == SOUND)
                continue;
            report(freelist, page, found);
            return LEAT_OK;
        }
        if (next_part(freelist) == LEAT_END)
            return LEAT_END;
        if (freelist->event.status)
            return LEAT_OK;
    }
}

int leat__lmdb_freelist_check_next(leat__lmdb_freelist_check *freelist,
                                   const leat__lmdb_event **out)
{
    *out = &freelist->event;
    if (freelist->is_cut || find(freelist) == LEAT_END)
        return LEAT_END;
    if (freelist->events++ == EVENTS_MAX)
        report_more(freelist);
    return LEAT_OK;
}

static uint64_t count_bits(const unsigned char *bits, uint64_t last)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i <= last / 8; i++)
        n += (uint64_t)__builtin_popcount(bits[i]);
    return n;
}

void leat__lmdb_freelist_check_count(const leat__lmdb_freelist_check *freelist,
                                     uint64_t *used, uint64_t *listed)
{
    *used =
        count_bits(freelist->recovery.use.bits, freelist->map->meta.last_page);
    *listed = count_bits(freelist->listed, freelist->map->meta.last_page);
}
