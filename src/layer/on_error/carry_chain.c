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

static int create_samples(leat__carry_chain *self,
                          const leat_allocator *buffers)
{
    for (int i = 0; i < self->n; i++) {
        leat_sample *sample = leat__alloc_zero(1, sizeof(*sample));
        if (!sample)
            return LEAT_ENOMEM;
        leat_sample_init(sample);
        sample->allocator = buffers;
        self->carry[i].sample = sample;
    }
    return LEAT_OK;
}

int leat__carry_chain_create(leat__carry_chain **out, int chunks,
                             const leat_allocator *buffers,
                             leat__carry_state begin)
{
    /* Each chunk in work holds two, which it may share with no other. */
    int n = 2 * chunks + 1;
    leat__carry_chain *self =
        leat__alloc_zero(1, sizeof(*self) + (size_t)n * sizeof(self->carry[0]));
    if (!self)
        return LEAT_ENOMEM;
    self->n = n;
    int status = leat__mutex_init(&self->lock);
    if (status)
        goto fail_self;
    status = leat__cond_init(&self->changed);
    if (status)
        goto fail_lock;
    status = create_samples(self, buffers);
    if (status) {
        leat__carry_chain_destroy(self);
        return status;
    }
    self->latest = &self->carry[0];
    self->latest->state = begin;
    self->latest->holders = 1;
    *out = self;
    return LEAT_OK;

fail_lock:
    pthread_mutex_destroy(&self->lock);
fail_self:
    leat__free(self);
    return status;
}

void leat__carry_chain_destroy(leat__carry_chain *self)
{
    if (!self)
        return;
    for (int i = 0; i < self->n; i++) {
        leat_sample_finish(self->carry[i].sample);
        leat__free(self->carry[i].sample);
    }
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
}

static leat__carry *find_free_locked(leat__carry_chain *self)
{
    int i = 0;
    while (self->carry[i].holders > 0) {
        i++;
        assert(i < self->n);
    }
    return &self->carry[i];
}

void leat__carry_chain_enter(leat__carry_chain *self, leat__chunk *chunk)
{
    pthread_mutex_lock(&self->lock);
    leat__carry *carry = find_free_locked(self);
    carry->state = LEAT__CARRY_OPEN;
    carry->holders = 2;
    chunk->taken = self->latest;
    chunk->handed = carry;
    self->latest = carry;
    pthread_mutex_unlock(&self->lock);
}

const leat__carry *leat__carry_chain_await(leat__carry_chain *self,
                                           const leat__chunk *chunk)
{
    pthread_mutex_lock(&self->lock);
    while (chunk->taken->state == LEAT__CARRY_OPEN) {
        self->waiting++;
        pthread_cond_wait(&self->changed, &self->lock);
        self->waiting--;
    }
    pthread_mutex_unlock(&self->lock);
    return chunk->taken;
}

void leat__carry_chain_leave(leat__carry_chain *self, leat__chunk *chunk,
                             leat__carry_state state)
{
    pthread_mutex_lock(&self->lock);
    chunk->handed->state = state;
    chunk->handed->holders--;
    chunk->taken->holders--;
    if (self->waiting > 0)
        pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}
