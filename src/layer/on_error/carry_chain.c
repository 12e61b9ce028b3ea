/*
 * DESIGN. Carries come from a fixed set. Each is held by the chunk that fills
 * it and by the next one, and free again when both have left; the latest is
 * held for the chunk to come. Until it leaves open its sampler alone writes it;
 * then the next chunk alone reads it, and may take the sample's buffer out. One
 * lock guards states and holders; no other is taken under it. Waits end because
 * a chunk waits only for those entered before it, and whoever entered one works
 * on it until it leaves.
 */
#include "layer/on_error/carry_chain.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>

struct leat__carry_chain {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* protected by lock */
    leat__carry *latest; /* of the chunk that entered last */
    int waiting;
    int n;
    leat__carry carry[];
};

static int create_samples(leat__carry_chain *carry_chain,
                          const leat_allocator *buffers)
{
    for (int i = 0; i < carry_chain->n; i++) {
        leat_sample *sample = leat__alloc_zero(1, sizeof(*sample));
        if (!sample)
            return LEAT_ENOMEM;
        leat_sample_init(sample);
        sample->allocator = buffers;
        carry_chain->carry[i].sample = sample;
    }
    return LEAT_OK;
}

int leat__carry_chain_create(leat__carry_chain **out, int chunks,
                             const leat_allocator *buffers,
                             leat__carry_state begin)
{
    /* Each chunk in work holds two, which it may share with no other. */
    int n = 2 * chunks + 1;
    leat__carry_chain *carry_chain = leat__alloc_zero(
        1, sizeof(*carry_chain) + (size_t)n * sizeof(carry_chain->carry[0]));
    if (!carry_chain)
        return LEAT_ENOMEM;
    carry_chain->n = n;
    int status = leat__mutex_init(&carry_chain->lock);
    if (status)
        goto fail_relay;
    status = leat__cond_init(&carry_chain->changed);
    if (status)
        goto fail_lock;
    status = create_samples(carry_chain, buffers);
    if (status) {
        leat__carry_chain_destroy(carry_chain);
        return status;
    }
    carry_chain->latest = &carry_chain->carry[0];
    carry_chain->latest->state = begin;
    carry_chain->latest->holders = 1;
    *out = carry_chain;
    return LEAT_OK;

fail_lock:
    pthread_mutex_destroy(&carry_chain->lock);
fail_relay:
    leat__free(carry_chain);
    return status;
}

void leat__carry_chain_destroy(leat__carry_chain *carry_chain)
{
    if (!carry_chain)
        return;
    for (int i = 0; i < carry_chain->n; i++) {
        leat_sample_finish(carry_chain->carry[i].sample);
        leat__free(carry_chain->carry[i].sample);
    }
    pthread_cond_destroy(&carry_chain->changed);
    pthread_mutex_destroy(&carry_chain->lock);
    leat__free(carry_chain);
}

static leat__carry *find_free_locked(leat__carry_chain *carry_chain)
{
    int i = 0;
    while (carry_chain->carry[i].holders > 0) {
        i++;
        assert(i < carry_chain->n);
    }
    return &carry_chain->carry[i];
}

void leat__carry_chain_enter(leat__carry_chain *carry_chain, leat__chunk *chunk)
{
    pthread_mutex_lock(&carry_chain->lock);
    leat__carry *carry = find_free_locked(carry_chain);
    carry->state = LEAT__CARRY_OPEN;
    carry->holders = 2;
    chunk->taken = carry_chain->latest;
    chunk->handed = carry;
    carry_chain->latest = carry;
    pthread_mutex_unlock(&carry_chain->lock);
}

const leat__carry *leat__carry_chain_await(leat__carry_chain *carry_chain,
                                           const leat__chunk *chunk)
{
    pthread_mutex_lock(&carry_chain->lock);
    while (chunk->taken->state == LEAT__CARRY_OPEN) {
        carry_chain->waiting++;
        pthread_cond_wait(&carry_chain->changed, &carry_chain->lock);
        carry_chain->waiting--;
    }
    pthread_mutex_unlock(&carry_chain->lock);
    return chunk->taken;
}

void leat__carry_chain_leave(leat__carry_chain *carry_chain, leat__chunk *chunk,
                             leat__carry_state state)
{
    pthread_mutex_lock(&carry_chain->lock);
    chunk->handed->state = state;
    chunk->handed->holders--;
    chunk->taken->holders--;
    if (carry_chain->waiting > 0)
        pthread_cond_broadcast(&carry_chain->changed);
    pthread_mutex_unlock(&carry_chain->lock);
}
