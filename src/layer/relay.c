/*
 * DESIGN. Batons come from a fixed set. Each is held by the run that fills it
 * and by the next one, and free again when both have left; the latest is held
 * for the run to come. Until it leaves open its filler alone writes it; then
 * the next run alone reads it, and may take the sample's box out. One lock
 * guards states and holders; no other is taken under it. Waits end because a
 * run waits only for those entered before it, and whoever entered one works on
 * it until it leaves.
 */
#include "layer/relay.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>

struct leat__relay {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* protected by lock */
    leat__baton *latest; /* of the run that entered last */
    int waiting;
    int n;
    leat__baton baton[];
};

static int create_samples(leat__relay *relay, const leat_allocator *boxes)
{
    for (int i = 0; i < relay->n; i++) {
        leat_sample *sample = leat__alloc_zero(1, sizeof(*sample));
        if (!sample)
            return LEAT_ENOMEM;
        leat_sample_init(sample);
        sample->allocator = boxes;
        relay->baton[i].sample = sample;
    }
    return LEAT_OK;
}

int leat__relay_create(leat__relay **out, int runs, const leat_allocator *boxes,
                       leat__baton_state begin)
{
    /* Each run in work holds two, which it may share with no other. */
    int n = 2 * runs + 1;
    leat__relay *relay = leat__alloc_zero(
        1, sizeof(*relay) + (size_t)n * sizeof(relay->baton[0]));
    if (!relay)
        return LEAT_ENOMEM;
    relay->n = n;
    int status = leat__mutex_init(&relay->lock);
    if (status)
        goto fail_relay;
    status = leat__cond_init(&relay->changed);
    if (status)
        goto fail_lock;
    status = create_samples(relay, boxes);
    if (status) {
        leat__relay_destroy(relay);
        return status;
    }
    relay->latest = &relay->baton[0];
    relay->latest->state = begin;
    relay->latest->holders = 1;
    *out = relay;
    return LEAT_OK;

fail_lock:
    pthread_mutex_destroy(&relay->lock);
fail_relay:
    leat__free(relay);
    return status;
}

void leat__relay_destroy(leat__relay *relay)
{
    if (!relay)
        return;
    for (int i = 0; i < relay->n; i++) {
        leat_sample_finish(relay->baton[i].sample);
        leat__free(relay->baton[i].sample);
    }
    pthread_cond_destroy(&relay->changed);
    pthread_mutex_destroy(&relay->lock);
    leat__free(relay);
}

static leat__baton *find_free_locked(leat__relay *relay)
{
    int i = 0;
    while (relay->baton[i].holders > 0) {
        i++;
        assert(i < relay->n);
    }
    return &relay->baton[i];
}

void leat__relay_enter(leat__relay *relay, leat__run *run)
{
    pthread_mutex_lock(&relay->lock);
    leat__baton *baton = find_free_locked(relay);
    baton->state = LEAT__BATON_OPEN;
    baton->holders = 2;
    run->taken = relay->latest;
    run->handed = baton;
    relay->latest = baton;
    pthread_mutex_unlock(&relay->lock);
}

const leat__baton *leat__relay_await(leat__relay *relay, const leat__run *run)
{
    pthread_mutex_lock(&relay->lock);
    while (run->taken->state == LEAT__BATON_OPEN) {
        relay->waiting++;
        pthread_cond_wait(&relay->changed, &relay->lock);
        relay->waiting--;
    }
    pthread_mutex_unlock(&relay->lock);
    return run->taken;
}

void leat__relay_leave(leat__relay *relay, leat__run *run,
                       leat__baton_state state)
{
    pthread_mutex_lock(&relay->lock);
    run->handed->state = state;
    run->handed->holders--;
    run->taken->holders--;
    if (relay->waiting > 0)
        pthread_cond_broadcast(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
}
