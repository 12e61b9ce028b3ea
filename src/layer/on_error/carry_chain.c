/*
 * DESIGN. Carries come from a fixed set. Each is held by the chunk that fills
 * it and by the next one, and free again when both have left; the latest is
 * held for the chunk to come. While it is open, the worker of its chunk alone
 * writes it; then the next chunk alone reads it, and may take the sample's
 * buffer out. One lock guards states and holders; no other is taken under it.
 * Waits end because a chunk waits only for those entered before it, and the
 * thread that entered one works on it until it leaves.
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

static int create_samples(leat__carry_chain *chain,
                          const leat_allocator *buffers)
{
    for (int i = 0; i < chain->n; i++) {
        leat_sample *sample = leat__alloc_zero(1, sizeof(*sample));
        if (!sample)
            return LEAT_ENOMEM;
        leat_sample_init(sample);
        sample->allocator = buffers;
        chain->carry[i].sample = sample;
    }
    return LEAT_OK;
}

int leat__carry_chain_create(leat__carry_chain **out, int chunks,
                             const leat_allocator *buffers,
                             leat__carry_state begin)
{
    /* Each chunk in work holds two, which it may share with no other. */
    int n = 2 * chunks + 1;
    leat__carry_chain *chain = leat__alloc_zero(
        1, sizeof(*chain) + (size_t)n * sizeof(chain->carry[0]));
    if (!chain)
        return LEAT_ENOMEM;
    chain->n = n;
    int status = leat__mutex_init(&chain->lock);
    if (status)
        goto fail_self;
    status = leat__cond_init(&chain->changed);
    if (status)
        goto fail_lock;
    status = create_samples(chain, buffers);
    if (status) {
        leat__carry_chain_destroy(chain);
        return status;
    }
    chain->latest = &chain->carry[0];
    chain->latest->state = begin;
    chain->latest->holders = 1;
    *out = chain;
    return LEAT_OK;

fail_lock:
    pthread_mutex_destroy(&chain->lock);
fail_self:
    leat__free(chain);
    return status;
}

void leat__carry_chain_destroy(leat__carry_chain *chain)
{
    if (!chain)
        return;
    for (int i = 0; i < chain->n; i++) {
        leat_sample_finish(chain->carry[i].sample);
        leat__free(chain->carry[i].sample);
    }
    pthread_cond_destroy(&chain->changed);
    pthread_mutex_destroy(&chain->lock);
    leat__free(chain);
}

static leat__carry *find_free_locked(leat__carry_chain *chain)
{
    int i = 0;
    while (chain->carry[i].holders > 0) {
        i++;
        assert(i < chain->n);
    }
    return &chain->carry[i];
}

/* Samples were left out after the latest one: they may be nearer. */
static void break_locked(leat__carry_chain *chain)
{
    leat__carry *carry = find_free_locked(chain);
    carry->state = LEAT__CARRY_UNKNOWN;
    carry->is_mixed = false;
    carry->look.is_known = false;
    carry->holders = 1;
    chain->latest->holders--;
    chain->latest = carry;
}

void leat__carry_chain_enter(leat__carry_chain *chain, leat__chunk *chunk)
{
    pthread_mutex_lock(&chain->lock);
    if (chunk->follows_gap)
        break_locked(chain);
    leat__carry *carry = find_free_locked(chain);
    carry->state = LEAT__CARRY_OPEN;
    carry->holders = 2;
    chunk->taken = chain->latest;
    chunk->handed = carry;
    chain->latest = carry;
    pthread_mutex_unlock(&chain->lock);
}

const leat__carry *leat__carry_chain_await(leat__carry_chain *chain,
                                           const leat__chunk *chunk)
{
    pthread_mutex_lock(&chain->lock);
    while (chunk->taken->state == LEAT__CARRY_OPEN) {
        chain->waiting++;
        pthread_cond_wait(&chain->changed, &chain->lock);
        chain->waiting--;
    }
    pthread_mutex_unlock(&chain->lock);
    return chunk->taken;
}

void leat__carry_chain_leave(leat__carry_chain *chain, leat__chunk *chunk,
                             leat__carry_state state)
{
    pthread_mutex_lock(&chain->lock);
    chunk->handed->state = state;
    chunk->handed->holders--;
    chunk->taken->holders--;
    if (chain->waiting > 0)
        pthread_cond_broadcast(&chain->changed);
    pthread_mutex_unlock(&chain->lock);
}
