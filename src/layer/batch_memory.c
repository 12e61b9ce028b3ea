/*
 * DESIGN. The memory of a batch is a part of a slab that its device's batches
 * share from the start: its home. One that needs more gets a slab of its own,
 * and keeps it, so that batches which are alike allocate nothing. Under
 * max_memory one that needs less than half of that gives it back, so that large
 * batches find room wherever they come: what is given back is a spare of the
 * budget, for the next batch that grows, and is freed when there is no room
 * without. Then idle batches give back theirs, too: those that are free, and
 * those that are to be filled and not prepared yet. A batch leaves its own slab
 * before it gets a larger one, unless it has to keep more than its home takes.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "layer/batch.h"

#include <string.h>

int leat__batch_budget_init(leat__batch_budget *budget)
{
    int status = leat__mutex_init(&budget->lock);
    if (status)
        return status;
    status = leat__cond_init(&budget->prepared);
    if (status)
        pthread_mutex_destroy(&budget->lock);
    return status;
}

static atomic_int_fast64_t *kind_of(leat__batch_grown *grown,
                                    const leat__slab *slab)
{
    if (slab->is_device_only)
        return &grown->tops;
    return slab->is_pageable ? &grown->pageable : &grown->bytes;
}

/* On the host and, if the device has memory of its own, there, too. */
static size_t sides(const leat__batch *batch)
{
    return batch->slab->device->ops->unified ? 1 : 2;
}

static size_t taken_by(const leat__slab *slab)
{
    bool has_both = !slab->is_device_only && !slab->device->ops->unified;
    return slab->bytes * (has_both ? 2 : 1);
}

static void count(leat__batch_budget *budget, const leat__slab *slab)
{
    atomic_int_fast64_t *grown = kind_of(&budget->grown, slab);
    atomic_int_fast64_t *most = kind_of(&budget->most, slab);
    int64_t now =
        atomic_fetch_add(grown, (int64_t)slab->bytes) + (int64_t)slab->bytes;
    if (now > atomic_load(most))
        atomic_store(most, now);
    atomic_fetch_add(&budget->growths, 1);
    budget->in_use += taken_by(slab);
    if (taken_by(slab) > budget->largest)
        budget->largest = taken_by(slab);
}

/* Blobs that it was lent to may share it, but reach it no more. */
static void free_slab(leat__batch_budget *budget, leat__slab *slab)
{
    atomic_fetch_sub(kind_of(&budget->grown, slab), (int64_t)slab->bytes);
    budget->in_use -= taken_by(slab);
    leat__slab_free_memory(slab);
    leat__slab_unref(slab);
}

static void free_spare(leat__batch_budget *budget)
{
    free_slab(budget, budget->spare[--budget->spares]);
}

void leat__batch_budget_finish(leat__batch_budget *budget)
{
    while (budget->spares > 0)
        free_spare(budget);
    pthread_cond_destroy(&budget->prepared);
    pthread_mutex_destroy(&budget->lock);
}

static void give_slab(leat__batch_budget *budget, leat__slab *slab)
{
    if (budget->limit == 0 || budget->spares == LEAT__SPARE_SLABS)
        free_slab(budget, slab);
    else
        budget->spare[budget->spares++] = slab;
}

/* The smallest spare with room for `bytes`, unless that is less than half of
 * it; or NULL. */
static leat__slab *take_spare(leat__batch_budget *budget, size_t bytes)
{
    leat__slab **best = NULL;
    for (leat__slab **at = budget->spare; at < budget->spare + budget->spares;
         at++)
        if ((*at)->bytes >= bytes && (*at)->bytes / 2 <= bytes &&
            (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best)
        return NULL;
    leat__slab *slab = *best;
    *best = budget->spare[--budget->spares];
    return slab;
}

static bool has_room(const leat__batch_budget *budget, size_t bytes)
{
    return budget->limit == 0 || (budget->in_use <= budget->limit &&
                                  bytes <= budget->limit - budget->in_use);
}

static bool free_spares(leat__batch_budget *budget, size_t bytes)
{
    while (!has_room(budget, bytes) && budget->spares > 0)
        free_spare(budget);
    return has_room(budget, bytes);
}

static bool find_room(leat__batch_budget *budget, size_t bytes)
{
    if (free_spares(budget, bytes))
        return true;
    if (budget->trim)
        budget->trim(budget->owner);
    return free_spares(budget, bytes);
}

/*
 * Waits for threads that prepare batches, which hold what those had grown to:
 * one that all others wait for finds out that there is no room.
 */
static bool make_room(const leat__batch *batch, size_t bytes)
{
    leat__batch_budget *budget = batch->budget;
    const int own = batch->is_preparing;
    bool is_found = find_room(budget, bytes);
    while (!is_found && budget->preparing - budget->waiting > own) {
        budget->waiting += own;
        pthread_cond_wait(&budget->prepared, &budget->lock);
        budget->waiting -= own;
        is_found = find_room(budget, bytes);
    }
    return is_found;
}

bool leat__batch_budget_add(leat__batch_budget *budget, size_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    bool fits = has_room(budget, bytes + budget->largest);
    if (fits)
        budget->in_use += bytes;
    pthread_mutex_unlock(&budget->lock);
    return fits;
}

void leat__batch_set_top(leat__batch *batch, leat__slab *slab, size_t offset,
                         size_t capacity)
{
    leat__slab_ref(slab);
    leat__slab_unref(batch->top_slab);
    batch->top_slab = slab;
    batch->top_offset = offset;
    batch->top_capacity = capacity;
}

/* Streams may still use the memory about to be freed; one of them a transform
 * whose top nobody waited for. */
static int await_streams(leat__batch *batch)
{
    leat_device *device = batch->slab->device;
    int status = LEAT_OK;
    if (batch->is_transformed && !batch->is_awaited)
        status = device->ops->event_synchronize(device, batch->ready);
    for (int i = 0; i < batch->nconsumed && !status; i++)
        status = device->ops->event_synchronize(device, batch->consumed[i]);
    return status;
}

static int too_large(const leat__batch_budget *budget, size_t bytes)
{
    return leat_error(LEAT_ELIMIT,
                      "%s: max_memory leaves %zu bytes for a device's batches, "
                      "which take %zu, and one of larger samples needs %zu "
                      "more; expected more memory or a smaller prefetch",
                      budget->name, budget->limit, budget->in_use, bytes);
}

/* A slab of `wanted` bytes, where all batches may have as many, or of `bytes`.
 */
static int make_host(const leat__batch *batch, size_t bytes, size_t wanted,
                     leat__slab **out)
{
    leat__batch_budget *budget = batch->budget;
    size_t all = wanted * sides(batch);
    if (budget->limit == 0 || (all <= budget->share && has_room(budget, all)))
        bytes = wanted;
    if (!make_room(batch, bytes * sides(batch)))
        return too_large(budget, bytes * sides(batch));
    leat__slab *slab;
    int status = leat__slab_create(&slab, batch->slab->device, bytes);
    if (status)
        return status;
    slab->must_pin = batch->slab->must_pin;
    leat__slab_set_allocator(slab, leat__slab_allocator(batch->slab));
    status = leat__slab_ensure_host(slab);
    if (!status)
        status = leat__slab_ensure_device(slab);
    if (status) {
        leat__slab_unref(slab);
        return status;
    }
    count(budget, slab);
    *out = slab;
    return LEAT_OK;
}

static void copy_kept(leat__slab *to, size_t offset, const leat__batch *batch,
                      size_t kept)
{
    if (kept > 0)
        memcpy((char *)to->host + offset,
               (const char *)batch->slab->host + batch->offset, kept);
}

static void go_home(leat__batch *batch, size_t kept)
{
    leat__batch_home *home = &batch->home;
    copy_kept(home->slab, home->offset, batch, kept);
    give_slab(batch->budget, batch->slab);
    batch->slab = home->slab;
    batch->offset = home->offset;
    batch->capacity = home->capacity;
    home->slab = NULL;
}

static void move_to(leat__batch *batch, leat__slab *slab, size_t kept)
{
    copy_kept(slab, 0, batch, kept);
    if (batch->home.slab)
        give_slab(batch->budget, batch->slab);
    else
        batch->home =
            (leat__batch_home){batch->slab, batch->offset, batch->capacity};
    batch->slab = slab;
    batch->offset = 0;
    batch->capacity = slab->bytes;
}

/* Under the budget's lock, as resize_top. */
static int resize_host(leat__batch *batch, size_t bytes, size_t wanted,
                       size_t kept)
{
    if (batch->home.slab && kept <= batch->home.capacity)
        go_home(batch, kept);
    if (bytes <= batch->capacity && !batch->home.slab)
        return LEAT_OK;
    leat__slab *slab = take_spare(batch->budget, bytes);
    int status = slab ? LEAT_OK : make_host(batch, bytes, wanted, &slab);
    if (!status)
        move_to(batch, slab, kept);
    return status;
}

static void go_home_top(leat__batch *batch)
{
    leat__batch_home *home = &batch->top_home;
    free_slab(batch->budget, batch->top_slab);
    batch->top_slab = home->slab;
    batch->top_offset = home->offset;
    batch->top_capacity = home->capacity;
    home->slab = NULL;
}

static int make_top(leat__batch *batch, size_t bytes)
{
    leat__slab *slab;
    if (!make_room(batch, bytes))
        return too_large(batch->budget, bytes);
    int status = leat__slab_create(&slab, batch->slab->device, bytes);
    if (status)
        return status;
    if (batch->top_slab)
        leat__slab_set_tally(slab, batch->top_slab->tally);
    leat__slab_set_device_only(slab);
    status = leat__slab_ensure_device(slab);
    if (status) {
        leat__slab_unref(slab);
        return status;
    }
    count(batch->budget, slab);
    batch->top_home = (leat__batch_home){batch->top_slab, batch->top_offset,
                                         batch->top_capacity};
    batch->top_slab = slab;
    batch->top_offset = 0;
    batch->top_capacity = bytes;
    return LEAT_OK;
}

static int resize_top(leat__batch *batch, size_t bytes)
{
    if (batch->top_home.slab)
        go_home_top(batch);
    return bytes <= batch->top_capacity ? LEAT_OK : make_top(batch, bytes);
}

/* Whether others may need a slab of which the batch needs `bytes`. */
static bool is_spare(const leat__batch *batch, const leat__batch_home *home,
                     size_t capacity, size_t bytes)
{
    return home->slab && batch->budget->limit > 0 && bytes < capacity / 2;
}

/* Variable tops will need what they took of late, if there is room for it. They
 * come later: until then others may have what the batch had grown to. */
static int reserve_host(leat__batch *batch, size_t bytes)
{
    size_t all = bytes;
    if (batch->home.slab)
        go_home(batch, 0);
    if (bytes <= batch->capacity)
        return LEAT_OK;
    if (batch->extent)
        all += atomic_load(&batch->budget->variable);
    int status = resize_host(batch, all, all, 0);
    return status == LEAT_ELIMIT && all > bytes
               ? resize_host(batch, bytes, bytes, 0)
               : status;
}

void leat__batch_begin_prepare(leat__batch *batch)
{
    leat__batch_budget *budget = batch->budget;
    if (budget->limit == 0)
        return;
    pthread_mutex_lock(&budget->lock);
    atomic_store(&batch->is_idle, false);
    batch->is_preparing = true;
    budget->preparing++;
    pthread_mutex_unlock(&budget->lock);
}

void leat__batch_end_prepare(leat__batch *batch)
{
    leat__batch_budget *budget = batch->budget;
    if (budget->limit == 0)
        return;
    pthread_mutex_lock(&budget->lock);
    batch->is_preparing = false;
    budget->preparing--;
    pthread_cond_broadcast(&budget->prepared);
    pthread_mutex_unlock(&budget->lock);
}

void leat__batch_give_back(leat__batch *batch)
{
    if (batch->budget->limit == 0)
        return;
    pthread_mutex_lock(&batch->budget->lock);
    (void)leat__batch_trim(batch);
    pthread_mutex_unlock(&batch->budget->lock);
}

int leat__batch_reserve(leat__batch *batch, const leat__batch_shape *shape)
{
    bool is_host = shape->bytes > batch->capacity ||
                   is_spare(batch, &batch->home, batch->capacity, shape->bytes);
    bool is_top = shape->top_bytes > batch->top_capacity ||
                  is_spare(batch, &batch->top_home, batch->top_capacity,
                           shape->top_bytes);
    if (!is_host && !is_top)
        return LEAT_OK;
    int status = await_streams(batch);
    if (status)
        return status;
    pthread_mutex_lock(&batch->budget->lock);
    if (is_host)
        status = reserve_host(batch, shape->bytes);
    if (!status && is_top)
        status = resize_top(batch, shape->top_bytes);
    pthread_mutex_unlock(&batch->budget->lock);
    return status;
}

static void note_variable(leat__batch_budget *budget, size_t bytes)
{
    size_t before =
        atomic_load_explicit(&budget->variable, memory_order_relaxed);
    size_t rest = before - before / 8;
    size_t now = bytes > rest ? bytes : rest;
    if (now != before)
        atomic_store_explicit(&budget->variable, now, memory_order_relaxed);
}

int leat__batch_extend(leat__batch *batch, size_t bytes, size_t kept)
{
    note_variable(batch->budget, bytes - kept);
    if (bytes <= batch->capacity &&
        !is_spare(batch, &batch->home, batch->capacity, bytes))
        return LEAT_OK;
    int status = await_streams(batch);
    if (status)
        return status;
    pthread_mutex_lock(&batch->budget->lock);
    status = resize_host(batch, bytes, bytes + bytes / 4, kept);
    pthread_mutex_unlock(&batch->budget->lock);
    return bytes <= batch->capacity ? LEAT_OK : status;
}

int leat__batch_trim(leat__batch *batch)
{
    if (!batch->home.slab && !batch->top_home.slab)
        return LEAT_OK;
    int status = await_streams(batch);
    if (status)
        return status;
    if (batch->home.slab)
        go_home(batch, 0);
    if (batch->top_home.slab)
        go_home_top(batch);
    return LEAT_OK;
}
