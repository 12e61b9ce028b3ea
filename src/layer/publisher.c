#include "layer/publisher.h"
#include "base/memory.h"
#include "base/thread.h"

int leat__publisher_init(leat__publisher *self, leat__queue *full,
                         leat__uploader *uploader, int slots)
{
    self->full = full;
    self->uploader = uploader;
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

void leat__publisher_finish(leat__publisher *self)
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

/* Hands on what is finished, in sequence. */
static void publish(leat__publisher *self, leat__batch *done)
{
    int slots = self->slots;
    pthread_mutex_lock(&self->lock);
    self->finished[done->number % slots] = done;
    leat__batch *batch;
    while ((batch = self->finished[self->next % slots]) != NULL) {
        self->finished[self->next % slots] = NULL;
        self->next++;
        if (batch->failed < 0) {
            int status = leat__uploader_upload(self->uploader, batch);
            if (status)
                fail_batch(batch, status);
        }
        /* There is room for every slot: only a closed queue refuses. */
        (void)leat__queue_push(self->full, batch);
    }
    pthread_mutex_unlock(&self->lock);
}

void leat__publisher_place(leat__publisher *self, leat__batch *batch, int n)
{
    if (atomic_fetch_sub(&batch->outstanding, n) == n)
        publish(self, batch);
}
