/*
 * DESIGN
 *
 * Whoever asks for records takes them from a ring, which is filled from the
 * salvaging walk, all under one lock. Where the file is not in memory, values
 * are asked for when they enter the ring, half a ring before they are given;
 * they are waited for when they leave it, so that storage that fails is an
 * error, not a signal. Damage that the walk meets stands behind the ring: no
 * more is put in until both were given. Behind the last record the list of free
 * pages is walked, which gives damage alone.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "readers/lmdb/check/lmdb_audit.h"
#include "readers/lmdb/check/lmdb_mend.h"
#include "readers/lmdb/lmdb_file.h"
#include "readers/lmdb/lmdb_snapshot.h"

#include <leat/survey.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Records in the ring, and bytes of values that it holds at most, but for the
   last. */
#define RING (2 * LEAT__LMDB_SPANS_MAX)
#define RING_BYTES ((size_t)64 << 20)

struct leat_survey {
    leat__lmdb_snapshot *snapshot; /* of a file that is whole; or */
    leat__lmdb_file file;          /* of one that is not, fd below 0: none */
    leat__lmdb_map map;            /* immutable, as is the next */
    leat__lmdb_storage storage;

    pthread_mutex_t lock; /* protects the rest */
    leat__lmdb_event mended[LEAT__LMDB_MEND_EVENTS];
    int at_mended, mended_n; /* those not yet given */
    leat__lmdb_salvage salvage;
    const leat__lmdb_event *damage; /* behind the ring; NULL: none */
    int is_over;                    /* nothing comes behind the ring */
    int is_damaged;                 /* damage was met */
    int is_walked;                  /* all records were */
    leat__lmdb_audit audit;         /* then */
    int has_audit;
    leat__lmdb_node ring[RING];
    int at, held;
    size_t held_bytes;
    int64_t record; /* the number of the next one; -1: not known */
};

static int open_whole(leat_survey *survey, const char *path)
{
    int status = leat__lmdb_snapshot_open(&survey->snapshot, path);
    if (status)
        return status;
    survey->map = *leat__lmdb_snapshot_map(survey->snapshot);
    survey->storage = *leat__lmdb_snapshot_storage(survey->snapshot);
    return LEAT_OK;
}

/* Maps what there is of the file. */
static int open_damaged(leat_survey *survey, const char *path)
{
    size_t size = 0;
    int status = leat__lmdb_file_find(&survey->file, path);
    if (!status)
        status = leat__lmdb_file_size(&survey->file, &size);
    if (status)
        return status;
    const char *name = survey->file.data;
    if (!size)
        return leat_error(LEAT_EFORMAT, "%s: empty, expected an LMDB", name);
    void *base = mmap(NULL, size, PROT_READ, MAP_SHARED, survey->file.fd, 0);
    if (base == MAP_FAILED)
        return leat__error_system(errno, "%s: %zu bytes cannot be mapped", name,
                                  size);
    status = leat__lmdb_mend(&survey->map, name, base, size, survey->mended,
                             &survey->mended_n);
    if (status) {
        munmap(base, size);
        survey->map.base = NULL;
        return status;
    }
    leat__lmdb_storage_init(&survey->storage, &survey->map, survey->file.fd);
    return LEAT_OK;
}

static void finish_source(leat_survey *survey)
{
    leat__lmdb_snapshot_close(survey->snapshot);
    if (survey->file.fd < 0)
        return;
    if (survey->map.base)
        munmap((void *)(uintptr_t)survey->map.base, survey->map.size);
    leat__lmdb_file_close(&survey->file);
}

int leat_survey_open(leat_survey **out, const char *path)
{
    leat_survey *survey = leat__alloc_zero(1, sizeof(*survey));
    if (!survey)
        return LEAT_ENOMEM;
    survey->file.fd = -1;
    int status = open_whole(survey, path);
    if (status == LEAT_EFORMAT)
        status = open_damaged(survey, path);
    if (status)
        goto fail_source;
    survey->storage.map = &survey->map;
    status = leat__lmdb_salvage_init(&survey->salvage, &survey->map,
                                     &survey->storage);
    if (status)
        goto fail_source;
    status = leat__mutex_init(&survey->lock);
    if (status)
        goto fail_salvage;
    *out = survey;
    return LEAT_OK;

fail_salvage:
    leat__lmdb_salvage_finish(&survey->salvage);
fail_source:
    finish_source(survey);
    leat__free(survey);
    return status;
}

void leat_survey_close(leat_survey *survey)
{
    if (!survey)
        return;
    pthread_mutex_destroy(&survey->lock);
    leat__lmdb_audit_finish(&survey->audit);
    leat__lmdb_salvage_finish(&survey->salvage);
    finish_source(survey);
    leat__free(survey);
}

int64_t leat_survey_count(const leat_survey *survey)
{
    int64_t records = (int64_t)survey->map.meta.entries;
    for (int i = 0; i < survey->mended_n; i++)
        records += survey->mended[i].lost;
    return records;
}

static leat__lmdb_node *ring_node(leat_survey *survey, int i)
{
    return &survey->ring[(survey->at + i) % RING];
}

/* The value in the file; those in leaves have been read with them. */
static leat__lmdb_span value_span(const leat_survey *survey,
                                  const leat__lmdb_node *node)
{
    return (leat__lmdb_span){(size_t)(node->value - survey->map.base),
                             node->value_size};
}

static int give_damage_locked(leat_survey *survey,
                              const leat__lmdb_event *event,
                              leat_survey_entry *out)
{
    int is_record = event->lost == 1 && event->page != LEAT__LMDB_NO_PAGE;
    survey->is_damaged = 1;
    *out = (leat_survey_entry){.record = survey->record,
                               .page = (int64_t)event->page,
                               .lost = event->lost,
                               .key = event->node.key,
                               .key_size = event->node.key_size,
                               .value_size = event->node.value_size};
    if (is_record && survey->record >= 0)
        survey->record++;
    return leat_error(event->status, "%s", event->line);
}

/* Behind a jump some pages were not met, and others may be met again. */
static int begin_audit_locked(leat_survey *survey)
{
    if (survey->is_walked || survey->salvage.jumps)
        return LEAT_OK;
    int status = leat__lmdb_audit_init(&survey->audit, &survey->map,
                                       &survey->storage, survey->salvage.met);
    if (status == LEAT_ENOMEM)
        return status;
    survey->is_walked = 1;
    survey->has_audit = !status;
    return status;
}

/* The next damage of the list of free pages. LEAT_ENOMEM: it is not known. */
static int audit_locked(leat_survey *survey, leat_survey_entry *out)
{
    const leat__lmdb_event *event;
    int status = begin_audit_locked(survey);
    if (status == LEAT_EFORMAT) {
        survey->is_damaged = 1;
        *out = (leat_survey_entry){.record = survey->record, .page = -1};
        return status;
    }
    if (status)
        return status;
    if (!survey->has_audit ||
        leat__lmdb_audit_next(&survey->audit, &event) == LEAT_END)
        return LEAT_END;
    return give_damage_locked(survey, event, out);
}

/* Fills up the ring once half of it was given. */
static void fill_locked(leat_survey *survey)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    int n = 0;
    if (survey->held > RING / 2)
        return;
    while (!survey->damage && !survey->is_over && n < LEAT__LMDB_SPANS_MAX &&
           survey->held < RING && survey->held_bytes < RING_BYTES) {
        const leat__lmdb_event *event;
        if (leat__lmdb_salvage_next(&survey->salvage, &event)) {
            survey->is_over = 1;
        } else if (event->status) {
            survey->damage = event;
        } else {
            *ring_node(survey, survey->held++) = event->node;
            survey->held_bytes += event->node.value_size;
            if (event->node.overflow)
                spans[n++] = value_span(survey, &event->node);
        }
    }
    if (n && survey->salvage.is_cold)
        leat__lmdb_storage_ask(&survey->storage, spans, n);
}

/* Takes the first of the ring out of it. */
static void give_locked(leat_survey *survey, leat_survey_entry *out)
{
    const leat__lmdb_node *node = ring_node(survey, 0);
    *out = (leat_survey_entry){.record = survey->record,
                               .page = (int64_t)(node->place >> 16),
                               .key = node->key,
                               .key_size = node->key_size,
                               .value = node->value,
                               .value_size = node->value_size};
    survey->held_bytes -= node->value_size;
    survey->at = (survey->at + 1) % RING;
    survey->held--;
    survey->record += survey->record >= 0;
}

/* Waits for up to `n` values at the head of the ring. Returns how many came;
   the one behind them is the one that storage failed to give. */
static int await_locked(leat_survey *survey, int n, int *status)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    int used = 0;
    for (int i = 0; i < n; i++)
        if (ring_node(survey, i)->overflow)
            spans[used++] = value_span(survey, ring_node(survey, i));
    *status = leat__lmdb_storage_await(&survey->storage, spans, used);
    for (int i = 0; *status && i < n; i++) {
        const leat__lmdb_node *node = ring_node(survey, i);
        spans[0] = value_span(survey, node);
        if (node->overflow &&
            leat__lmdb_storage_await(&survey->storage, spans, 1))
            return i;
    }
    *status = LEAT_OK;
    return n;
}

static int next_locked(leat_survey *survey, leat_survey_entry out[], int n,
                       int *got)
{
    if (survey->at_mended < survey->mended_n)
        return give_damage_locked(survey, &survey->mended[survey->at_mended++],
                                  out);
    fill_locked(survey);
    if (!survey->held && survey->damage) {
        const leat__lmdb_event *damage = survey->damage;
        survey->damage = NULL;
        return give_damage_locked(survey, damage, out);
    }
    if (!survey->held)
        return audit_locked(survey, out);
    int status;
    n = n < survey->held ? n : survey->held;
    n = await_locked(
        survey, n < LEAT__LMDB_SPANS_MAX ? n : LEAT__LMDB_SPANS_MAX, &status);
    for (; *got < n; ++*got)
        give_locked(survey, &out[*got]);
    if (n)
        return LEAT_OK;
    give_locked(survey, out);
    out->value = NULL;
    out->lost = 1;
    return status;
}

int leat_survey_next(leat_survey *survey, leat_survey_entry out[], int n,
                     int *got)
{
    *got = 0;
    if (n < 1)
        return leat_error(LEAT_EINVAL, "%d records are wanted, at least 1", n);
    pthread_mutex_lock(&survey->lock);
    int status = next_locked(survey, out, n, got);
    pthread_mutex_unlock(&survey->lock);
    return status;
}

int leat_survey_page_use(leat_survey *survey, leat_page_use *out)
{
    const leat__lmdb_meta *meta = &survey->map.meta;
    uint64_t used, listed;
    size_t size = out->size;
    if (size < sizeof(*out))
        return leat_error(LEAT_EINVAL, "the numbers of pages have no size");
    pthread_mutex_lock(&survey->lock);
    int is_known = survey->is_walked && survey->has_audit;
    int is_damaged = survey->is_damaged;
    if (is_known)
        leat__lmdb_audit_count(&survey->audit, &used, &listed);
    pthread_mutex_unlock(&survey->lock);
    if (!is_known)
        return leat_error(LEAT_ESTATE,
                          "%s: what its pages are used for is not known before "
                          "all were walked over",
                          survey->map.name);
    *out = (leat_page_use){.size = size,
                           .all = (int64_t)meta->last_page + 1,
                           .used = (int64_t)used,
                           .free = (int64_t)listed,
                           .leaked = -1};
    if (!is_damaged)
        out->leaked = out->all - out->used - out->free;
    return LEAT_OK;
}

void leat_survey_jump(leat_survey *survey, double share)
{
    survey->at_mended = survey->mended_n;
    survey->damage = NULL;
    survey->is_over = 0;
    survey->held = 0;
    survey->held_bytes = 0;
    survey->record = -1;
    /* NaN is not above 0 either. */
    leat__lmdb_salvage_jump(&survey->salvage, share > 0 ? share : 0);
}
