#include "decorators/group_pool.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"

#include <string.h>

int leat__group_pool_init(leat__group_pool *pool, const char *name,
                          const leat_open *open, int room)
{
    memset(pool, 0, sizeof(*pool));
    pool->name = name;
    pool->allocator = open->allocator;
    pool->max_memory = open->max_memory;
    pool->room = room;
    int code = pthread_mutex_init(&pool->lock, NULL);
    return code ? leat__error_system(code, "%s: no mutex", name) : LEAT_OK;
}

static void destroy(leat__group *group)
{
    for (int i = 0; i < group->room && group->sample[i]; i++) {
        leat_sample_finish(group->sample[i]);
        leat__free(group->sample[i]);
    }
    leat__free(group->sample);
    leat__free(group);
}

void leat__group_pool_finish(leat__group_pool *pool)
{
    for (int i = 0; i < pool->n; i++)
        destroy(pool->group[i]);
    leat__free(pool->group);
    leat__free(pool->bound);
    pthread_mutex_destroy(&pool->lock);
}

static leat__group *create(int room)
{
    leat__group *group = leat__alloc_zero(1, sizeof(*group));
    if (!group)
        return NULL;
    group->room = room;
    group->kept.index = -1;
    group->sample = leat__alloc_zero((size_t)room, sizeof(*group->sample));
    if (group->sample)
        return group;
    leat__free(group);
    return NULL;
}

/* Under the lock: the list that a group which is bound to the buffer is in. */
static leat__group **list_of(const leat__group_pool *pool, const void *buffer)
{
    uint64_t hash = (uint64_t)(uintptr_t)buffer * UINT64_C(0x9e3779b97f4a7c15);
    return &pool->bound[(hash >> 32) & (uint64_t)(pool->capacity - 1)];
}

/* Under the lock: lists a group that is bound. */
static void list(leat__group_pool *pool, leat__group *group)
{
    leat__group **first = list_of(pool, group->buffer);
    group->next = *first;
    *first = group;
}

/* Under the lock: the group that was bound to the buffer, or NULL. */
static leat__group *release(leat__group_pool *pool, const void *buffer)
{
    leat__group **at = list_of(pool, buffer);
    while (*at && (*at)->buffer != buffer)
        at = &(*at)->next;
    leat__group *group = *at;
    if (!group)
        return NULL;
    *at = group->next;
    group->buffer = NULL;
    return group;
}

/* Under the lock: room for one group more. */
static bool grow(leat__group_pool *pool)
{
    if (pool->n < pool->capacity)
        return true;
    int capacity = pool->capacity ? 2 * pool->capacity : 8;
    leat__group **grown =
        leat__realloc(pool->group, (size_t)capacity * sizeof(*grown));
    if (!grown)
        return false;
    pool->group = grown;
    leat__group **bound = leat__alloc_zero((size_t)capacity, sizeof(*bound));
    if (!bound)
        return false;
    leat__free(pool->bound);
    pool->bound = bound;
    pool->capacity = capacity;
    for (int i = 0; i < pool->n; i++)
        if (pool->group[i]->buffer)
            list(pool, pool->group[i]);
    return true;
}

static leat__group *add(leat__group_pool *pool)
{
    if (!grow(pool))
        return NULL;
    leat__group *group = create(pool->room);
    if (!group)
        return NULL;
    group->index = pool->n;
    pool->group[pool->n++] = group;
    return group;
}

static bool keeps(const leat__group *group, leat_position at)
{
    return group->kept.epoch == at.epoch && group->kept.index == at.index;
}

/* Under the lock: the link to the free group that keeps `at`, else to the one
 * that was given back longest ago; NULL there: none is free. */
static leat__group **find_kept(leat__group_pool *pool, leat_position at)
{
    leat__group **link = &pool->free, **last = link;
    for (; *link && !keeps(*link, at); link = &(*link)->next)
        last = link;
    return *link ? link : last;
}

/* A free group, by preference the one that keeps `at`; or a new one. */
static int take(leat__group_pool *pool, const leat_position *at,
                leat__group **out)
{
    pthread_mutex_lock(&pool->lock);
    leat__group **link = at ? find_kept(pool, *at) : &pool->free;
    leat__group *group = *link;
    if (group)
        *link = group->next;
    else
        group = add(pool);
    pthread_mutex_unlock(&pool->lock);
    *out = group;
    return group ? LEAT_OK : LEAT_ENOMEM;
}

static void begin(leat__group *group)
{
    group->n = 0;
    group->length = -1;
    group->kept.index = -1;
    group->line = NULL;
    group->summed = 0;
}

int leat__group_pool_take(leat__group_pool *pool, leat__group **out)
{
    int status = take(pool, NULL, out);
    if (!status)
        begin(*out);
    return status;
}

int leat__group_pool_take_kept(leat__group_pool *pool, leat_position at,
                               leat__group **out)
{
    int status = take(pool, &at, out);
    if (!status && !keeps(*out, at))
        begin(*out);
    return status;
}

void leat__group_pool_count(leat__group_pool *pool, leat__group *group)
{
    int64_t bytes = (int64_t)(sizeof(*group) +
                              (size_t)group->room * sizeof(*group->sample));
    for (int i = 0; i < group->room && group->sample[i]; i++)
        bytes += (int64_t)(sizeof(leat_sample) + group->sample[i]->buffer_size);
    atomic_fetch_add_explicit(&pool->bytes, bytes - group->bytes,
                              memory_order_relaxed);
    group->bytes = bytes;
}

void leat__group_pool_complete(leat__group_pool *pool, leat__group *group)
{
    int_fast64_t none = 0;
    leat__group_pool_count(pool, group);
    if (group->number == 1)
        atomic_store(&pool->first, group->bytes);
    else
        atomic_compare_exchange_strong(&pool->first, &none, group->bytes);
}

static void put_free(leat__group_pool *pool, leat__group *group)
{
    group->next = pool->free;
    pool->free = group;
}

void leat__group_pool_give_back(leat__group_pool *pool, leat__group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&pool->lock);
    put_free(pool, group);
    pthread_mutex_unlock(&pool->lock);
}

int leat__group_pool_at_once(const leat__group_pool *pool, int left)
{
    enum { MOST = 256, MOST_LIMITED = 16, PART = 16 };
    int64_t each = atomic_load_explicit(&pool->largest, memory_order_relaxed);
    int64_t most = MOST;
    if (pool->max_memory > 0) {
        most = each > 0 ? pool->max_memory / PART / each : 1;
        most = most < 1 ? 1 : most < MOST_LIMITED ? most : MOST_LIMITED;
    }
    return left < most ? left : (int)most;
}

int64_t leat__group_pool_measure(leat__group_pool *pool,
                                 const leat_sample *sample)
{
    int64_t bytes = (int64_t)(sizeof(*sample) + sample->buffer_size);
    int64_t known = atomic_load_explicit(&pool->largest, memory_order_relaxed);
    /* Of two threads' at once either will do. */
    if (bytes > known && !sample->deferred)
        atomic_store_explicit(&pool->largest, bytes, memory_order_relaxed);
    return bytes;
}

int leat__group_pool_check(const leat__group_pool *pool, int n, int64_t bytes)
{
    if (pool->max_memory == 0 || bytes <= pool->max_memory)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "%s: a group of %d samples takes %lld bytes or more, but "
                      "max_memory is %lld: expected a smaller size",
                      pool->name, n, (long long)bytes,
                      (long long)pool->max_memory);
}

/* Before a group gets `n` samples more: what it has, and they take at least. */
static int check_group(leat__group_pool *pool, leat__group *group, int from,
                       int n)
{
    if (pool->max_memory == 0)
        return LEAT_OK;
    if (from < group->summed || group->summed == 0)
        group->held = group->summed = 0;
    for (; group->summed < from; group->summed++)
        group->held +=
            leat__group_pool_measure(pool, group->sample[group->summed]);
    return leat__group_pool_check(
        pool, from + n, group->held + n * (int64_t)sizeof(leat_sample));
}

void leat__group_pool_empty(const leat__group_pool *pool, leat_sample *sample)
{
    int64_t part = pool->max_memory / pool->room;
    if (pool->max_memory > 0 && (int64_t)sample->buffer_size > part)
        leat__sample_release(sample);
    leat__sample_clear(sample);
}

int leat__group_clear(leat__group_pool *pool, leat__group *group, int from,
                      int n)
{
    int status = check_group(pool, group, from, n);
    if (status)
        return status;
    for (int i = from; i < from + n; i++) {
        if (!group->sample[i]) {
            group->sample[i] = leat__alloc_zero(1, sizeof(leat_sample));
            if (!group->sample[i])
                return LEAT_ENOMEM;
            group->sample[i]->allocator = pool->allocator;
        }
        leat__group_pool_empty(pool, group->sample[i]);
    }
    return LEAT_OK;
}

int leat__group_pool_bind(leat__group_pool *pool, leat__group *group,
                          leat_sample *sample)
{
    /* Where groups are of one size the buffer then stays where it is. */
    size_t usual = atomic_load_explicit(&pool->usual, memory_order_relaxed);
    int status = leat__sample_reserve(
        sample, sample->taken + (usual ? usual : LEAT__ALIGNMENT));
    if (status)
        return status;
    leat__group_pool_count(pool, group);
    pthread_mutex_lock(&pool->lock);
    leat__group *dropped = release(pool, sample->buffer);
    if (dropped)
        put_free(pool, dropped);
    group->buffer = sample->buffer;
    sample->idle = LEAT__SAMPLE_BOUND;
    group->number = ++pool->bindings;
    list(pool, group);
    pthread_mutex_unlock(&pool->lock);
    sample->locator.record = group->number;
    sample->locator.where = (uint64_t)group->index;
    return LEAT_OK;
}

int leat__group_pool_unbind(leat__group_pool *pool, const leat_sample *sample,
                            leat__group **out)
{
    leat__group *group = NULL;
    pthread_mutex_lock(&pool->lock);
    if (sample->locator.where < (uint64_t)pool->n)
        group = pool->group[sample->locator.where];
    group = group && group->buffer && group->number == sample->locator.record
                ? release(pool, group->buffer)
                : NULL;
    pthread_mutex_unlock(&pool->lock);
    if (!group)
        return leat_error(LEAT_ESTATE,
                          "%s: a sample was completed twice, or its buffer was "
                          "given away",
                          pool->name);
    *out = group;
    return LEAT_OK;
}
