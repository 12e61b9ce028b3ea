#include "layer/batch_order.h"
#include "base/clock.h"
#include "base/thread.h"

#include <string.h>

int leat__batch_order_init(leat__batch_order *self, leat__lane *lanes,
                           int nlanes, int slots)
{
    self->lanes = lanes;
    self->nlanes = nlanes;
    self->slots = slots;
    self->finished = leat__alloc_zero((size_t)slots, sizeof(leat__batch *));
    if (!self->finished)
        return LEAT_ENOMEM;
    int status = leat__mutex_init(&self->lock);
    if (status) {
        leat__free(self->finished);
        self->finished = NULL;
    }
    return status;
}

void leat__batch_order_finish(leat__batch_order *self)
{
    if (!self->finished)
        return;
    pthread_mutex_destroy(&self->lock);
    leat__free(self->finished);
}

static void fail_batch(leat__batch *batch, int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    leat__batch_fail(batch, 0, status, NULL, line);
}

/* What is in the queues can still be taken. */
static void close_lanes(leat__batch_order *self)
{
    for (int i = 0; i < self->nlanes; i++)
        leat__queue_close(self->lanes[i].full);
}

static void note_end(leat__batch_order *self, int status, const char *line)
{
    self->ended = status;
    memcpy(self->line, line, sizeof(self->line));
}

/* Nothing comes behind a batch that failed so. */
static int ends_all(const leat__batch *batch)
{
    return batch->failed >= 0 && batch->status != LEAT_EDATA;
}

static void hand_on(leat__batch_order *self, leat__batch *batch)
{
    leat__lane *lane = batch->lane;
    if (batch->failed < 0) {
        int status = leat__device_copy_upload(&lane->device_copy, batch);
        if (status)
            fail_batch(batch, status);
    }
    if (ends_all(batch))
        note_end(self, batch->status, batch->culprit.line);
    /* There is room for every slot: only a closed queue refuses. From now on
       the batch is the caller's. */
    (void)leat__queue_push(lane->full, batch);
    if (self->ended)
        close_lanes(self);
}

/* Hands on what is finished, in sequence. */
static void publish(leat__batch_order *self, leat__batch *done)
{
    int slots = self->slots;
    pthread_mutex_lock(&self->lock);
    self->finished[done->number % slots] = done;
    leat__batch *batch;
    while (!self->ended &&
           (batch = self->finished[self->next % slots]) != NULL) {
        self->finished[self->next % slots] = NULL;
        self->next++;
        hand_on(self, batch);
    }
    pthread_mutex_unlock(&self->lock);
}

int64_t leat__batch_order_place(leat__batch_order *self, leat__batch *batch,
                                int n)
{
    /* From the last sample on the batch may be another's. */
    int may_copy = !batch->lane->device->ops->unified;
    if (atomic_fetch_sub(&batch->outstanding, n) != n)
        return 0;
    int64_t begin = may_copy ? leat__clock_now() : 0;
    publish(self, batch);
    return may_copy ? leat__clock_now() - begin : 0;
}

void leat__batch_order_end(leat__batch_order *self, int status,
                           const char *line)
{
    pthread_mutex_lock(&self->lock);
    if (!self->ended) {
        note_end(self, status, line);
        close_lanes(self);
    }
    pthread_mutex_unlock(&self->lock);
}

int leat__batch_order_ended(leat__batch_order *self)
{
    pthread_mutex_lock(&self->lock);
    int status = self->ended;
    if (status)
        (void)leat_error(status, "%s", self->line);
    pthread_mutex_unlock(&self->lock);
    return status;
}
