/*
 * DESIGN
 *
 * Callers take records from a ring that the recovery scan fills, all under one
 * lock. If the file is not in memory, values are prefetched as they enter the
 * ring, half a ring before they are returned, and awaited as they leave it, so
 * that a storage failure is an error and not a signal. Damage found by the scan
 * comes after the ring: the ring is refilled only once both have been returned.
 * After the last record the freelist is walked, which returns damage only.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "readers/lmdb/check/lmdb_freelist_check.h"
#include "readers/lmdb/check/lmdb_header_repair.h"
#include "readers/lmdb/lmdb_file.h"
#include "readers/lmdb/lmdb_snapshot.h"

#include <leat/lmdb_check.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* Capacity of the ring in records, and in bytes of values; the last value may
 * exceed it. */
#define RING (2 * LEAT__SPANS_MAX)
#define RING_BYTES ((size_t)64 << 20)

struct leat_lmdb_check {
    leat__lmdb_snapshot *snapshot; /* of an intact file; or */
    leat__lmdb_file file;          /* of a damaged one; fd below 0: none */
    leat__lmdb_map map;            /* immutable, as is the next */
    leat__lmdb_storage storage;

    pthread_mutex_t lock; /* protects the rest */
    leat__lmdb_event header[LEAT__LMDB_HEADER_EVENTS];
    int header_at, header_n; /* not yet returned */
    leat__lmdb_recovery recovery;
    const leat__lmdb_event *damage;     /* after the ring; NULL: none */
    bool is_over;                       /* nothing follows the ring */
    bool is_damaged;                    /* damage was found */
    bool is_walked;                     /* all records were returned */
    leat__lmdb_freelist_check freelist; /* valid once has_freelist */
    bool has_freelist;
    leat__lmdb_node ring[RING];
    int at, held;
    size_t held_bytes;
    int64_t record; /* number of the next one; -1: unknown */
};

static int open_whole(leat_lmdb_check *check, const char *path)
{
    int status = leat__lmdb_snapshot_open(&check->snapshot, path);
    if (status)
        return status;
    check->map = *leat__lmdb_snapshot_map(check->snapshot);
    check->storage = *leat__lmdb_snapshot_storage(check->snapshot);
    return LEAT_OK;
}

/* Maps the file as far as it reaches. */
static int open_damaged(leat_lmdb_check *check, const char *path)
{
    size_t size = 0;
    int status = leat__lmdb_file_find(&check->file, path);
    if (!status)
        status = leat__lmdb_file_size(&check->file, &size);
    if (status)
        return status;
    const char *name = check->file.data;
    if (!size)
        return leat_error(LEAT_EFORMAT, "%s: empty, expected an LMDB", name);
    void *base = mmap(NULL, size, PROT_READ, MAP_SHARED, check->file.fd, 0);
    if (base == MAP_FAILED)
        return leat__error_system(errno, "%s: %zu bytes cannot be mapped", name,
                                  size);
    status = leat__lmdb_header_repair(&check->map, name, base, size,
                                      check->header, &check->header_n);
    if (status) {
        munmap(base, size);
        check->map.base = NULL;
        return status;
    }
    leat__lmdb_storage_init(&check->storage, &check->map, check->file.fd);
    return LEAT_OK;
}

static void finish_source(leat_lmdb_check *check)
{
    leat__lmdb_snapshot_close(check->snapshot);
    if (check->file.fd < 0)
        return;
    if (check->map.base)
        munmap((void *)(uintptr_t)check->map.base, check->map.size);
    leat__lmdb_file_close(&check->file);
}

int leat_lmdb_check_open(leat_lmdb_check **out, const char *path)
{
    leat_lmdb_check *check = leat__alloc_zero(1, sizeof(*check));
    if (!check)
        return LEAT_ENOMEM;
    check->file.fd = -1;
    int status = open_whole(check, path);
    if (status == LEAT_EFORMAT)
        status = open_damaged(check, path);
    if (status)
        goto fail_source;
    check->storage.map = &check->map;
    status = leat__lmdb_recovery_init(&check->recovery, &check->map,
                                      &check->storage);
    if (status)
        goto fail_source;
    status = leat__mutex_init(&check->lock);
    if (status)
        goto fail_recovery;
    *out = check;
    return LEAT_OK;

fail_recovery:
    leat__lmdb_recovery_finish(&check->recovery);
fail_source:
    finish_source(check);
    leat__free(check);
    return status;
}

void leat_lmdb_check_close(leat_lmdb_check *check)
{
    if (!check)
        return;
    pthread_mutex_destroy(&check->lock);
    leat__lmdb_freelist_check_finish(&check->freelist);
    leat__lmdb_recovery_finish(&check->recovery);
    finish_source(check);
    leat__free(check);
}

int64_t leat_lmdb_check_count(const leat_lmdb_check *check)
{
    int64_t records = (int64_t)check->map.meta.entries;
    for (int i = 0; i < check->header_n; i++)
        records += check->header[i].lost;
    return records;
}

static leat__lmdb_node *ring_node(leat_lmdb_check *check, int i)
{
    return &check->ring[(check->at + i) % RING];
}

/* The value's bytes in the file; values inside leaves were read with them. */
static leat__span value_span(const leat_lmdb_check *check,
                             const leat__lmdb_node *node)
{
    return (leat__span){(size_t)(node->value - check->map.base),
                        node->value_size};
}

static int give_damage_locked(leat_lmdb_check *check,
                              const leat__lmdb_event *event,
                              leat_lmdb_check_entry *out)
{
    bool is_record = event->lost == 1 && event->page != LEAT__LMDB_NO_PAGE;
    check->is_damaged = true;
    *out = (leat_lmdb_check_entry){.record = check->record,
                                   .page = (int64_t)event->page,
                                   .lost = event->lost,
                                   .key = event->node.key,
                                   .key_size = event->node.key_size,
                                   .value_size = event->node.value_size};
    if (is_record && check->record >= 0)
        check->record++;
    return leat_error(event->status, "%s", event->line);
}

/* After a jump some pages were not reached, and others may be reached again. */
static int begin_freelist_locked(leat_lmdb_check *check)
{
    if (check->is_walked || check->recovery.jumps)
        return LEAT_OK;
    int status = leat__lmdb_freelist_check_init(&check->freelist, &check->map,
                                                &check->storage,
                                                check->recovery.use.bits);
    if (status == LEAT_ENOMEM)
        return status;
    check->is_walked = true;
    check->has_freelist = !status;
    return status;
}

/* The next damage of the freelist. LEAT_ENOMEM: unknown. */
static int freelist_locked(leat_lmdb_check *check, leat_lmdb_check_entry *out)
{
    const leat__lmdb_event *event;
    int status = begin_freelist_locked(check);
    if (status == LEAT_EFORMAT) {
        check->is_damaged = true;
        *out = (leat_lmdb_check_entry){.record = check->record, .page = -1};
        return status;
    }
    if (status)
        return status;
    if (!check->has_freelist ||
        leat__lmdb_freelist_check_next(&check->freelist, &event) == LEAT_END)
        return LEAT_END;
    return give_damage_locked(check, event, out);
}

/* Refills the ring once half of it has been returned. */
static void fill_locked(leat_lmdb_check *check)
{
    leat__span spans[LEAT__SPANS_MAX];
    int n = 0;
    if (check->held > RING / 2)
        return;
    while (!check->damage && !check->is_over && n < LEAT__SPANS_MAX &&
           check->held < RING && check->held_bytes < RING_BYTES) {
        const leat__lmdb_event *event;
        if (leat__lmdb_recovery_next(&check->recovery, &event)) {
            check->is_over = true;
        } else if (event->status) {
            check->damage = event;
        } else {
            *ring_node(check, check->held++) = event->node;
            check->held_bytes += event->node.value_size;
            if (event->node.overflow)
                spans[n++] = value_span(check, &event->node);
        }
    }
    if (n && check->recovery.is_cold)
        leat__mapped_file_ask(&check->storage.file, spans, n);
}

/* Returns the first record of the ring. */
static void give_locked(leat_lmdb_check *check, leat_lmdb_check_entry *out)
{
    const leat__lmdb_node *node = ring_node(check, 0);
    *out = (leat_lmdb_check_entry){.record = check->record,
                                   .page = (int64_t)(node->address >> 16),
                                   .key = node->key,
                                   .key_size = node->key_size,
                                   .value = node->value,
                                   .value_size = node->value_size};
    check->held_bytes -= node->value_size;
    check->at = (check->at + 1) % RING;
    check->held--;
    check->record += check->record >= 0;
}

/* Awaits up to `n` values at the head of the ring. Returns the number read; the
 * value after them is the one that the storage failed to read. */
static int await_locked(leat_lmdb_check *check, int n, int *status)
{
    leat__span spans[LEAT__SPANS_MAX];
    int used = 0;
    for (int i = 0; i < n; i++)
        if (ring_node(check, i)->overflow)
            spans[used++] = value_span(check, ring_node(check, i));
    *status = leat__mapped_file_await(&check->storage.file, spans, used, NULL);
    for (int i = 0; *status && i < n; i++) {
        const leat__lmdb_node *node = ring_node(check, i);
        spans[0] = value_span(check, node);
        if (node->overflow &&
            leat__mapped_file_await(&check->storage.file, spans, 1, NULL))
            return i;
    }
    *status = LEAT_OK;
    return n;
}

static int next_locked(leat_lmdb_check *check, leat_lmdb_check_entry out[],
                       int n, int *got)
{
    if (check->header_at < check->header_n)
        return give_damage_locked(check, &check->header[check->header_at++],
                                  out);
    fill_locked(check);
    if (!check->held && check->damage) {
        const leat__lmdb_event *damage = check->damage;
        check->damage = NULL;
        return give_damage_locked(check, damage, out);
    }
    if (!check->held)
        return freelist_locked(check, out);
    int status;
    n = n < check->held ? n : check->held;
    n = await_locked(check, n < LEAT__SPANS_MAX ? n : LEAT__SPANS_MAX, &status);
    for (; *got < n; ++*got)
        give_locked(check, &out[*got]);
    if (n)
        return LEAT_OK;
    give_locked(check, out);
    out->value = NULL;
    out->lost = 1;
    return status;
}

/* Whether a writer may have overwritten what no slot protects. */
static bool is_overtaken(const leat_lmdb_check *check)
{
    return check->snapshot && leat__lmdb_snapshot_is_exposed(check->snapshot) &&
           leat__lmdb_snapshot_check(check->snapshot);
}

int leat_lmdb_check_next(leat_lmdb_check *check, leat_lmdb_check_entry out[],
                         int n, int *got)
{
    *got = 0;
    if (n < 1)
        return leat_error(LEAT_EINVAL, "expected at least 1 record, got %d", n);
    pthread_mutex_lock(&check->lock);
    int status = next_locked(check, out, n, got);
    pthread_mutex_unlock(&check->lock);
    if (!is_overtaken(check))
        return status;
    *got = 0;
    return LEAT_ESTATE;
}

int leat_lmdb_check_page_use(leat_lmdb_check *check, leat_lmdb_page_use *out)
{
    const leat__lmdb_meta *meta = &check->map.meta;
    uint64_t used, listed;
    size_t size = out->size;
    if (size < sizeof(*out))
        return leat_error(LEAT_EINVAL, "leat_lmdb_page_use has no size");
    pthread_mutex_lock(&check->lock);
    bool is_known =
        check->is_walked && check->has_freelist && !check->freelist.is_cut;
    bool is_damaged = check->is_damaged;
    if (is_known)
        leat__lmdb_freelist_check_count(&check->freelist, &used, &listed);
    pthread_mutex_unlock(&check->lock);
    if (!is_known)
        return leat_error(
            LEAT_ESTATE,
            "%s: the use of its pages is unknown until all of them "
            "have been checked",
            check->map.name);
    *out = (leat_lmdb_page_use){.size = size,
                                .all = (int64_t)meta->last_page + 1,
                                .used = (int64_t)used,
                                .free = (int64_t)listed,
                                .leaked = -1};
    if (!is_damaged)
        out->leaked = out->all - out->used - out->free;
    return LEAT_OK;
}

void leat_lmdb_check_jump(leat_lmdb_check *check, double share)
{
    check->header_at = check->header_n;
    check->damage = NULL;
    check->is_over = false;
    check->held = 0;
    check->held_bytes = 0;
    check->record = -1;
    /* Also maps NaN to 0. */
    leat__lmdb_recovery_jump(&check->recovery, share > 0 ? share : 0);
}
