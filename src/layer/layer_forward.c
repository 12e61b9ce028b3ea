/* Forward: a batch goes out to the tops, the one before it comes back. */
#include "base/cancel.h"
#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"
#include "base/trace.h"
#include "layer/diagnose/waiting.h"
#include "layer/layer_state.h"
#include "layer/tops/hand_off.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/*
 * A stream is checked when it is another one than the last. One that is lent to
 * is kept: its end is recorded by a later call. A device that fails is no wrong
 * call, which would change nothing.
 */
static int check_stream(leat_data_layer *layer, leat_stream stream)
{
    leat_device *device = layer->device;
    if (stream == layer->checked || stream == LEAT_HOST ||
        !device->ops->stream_check)
        return LEAT_OK;
    int status = device->ops->stream_check(
        device, stream, layer->values.top_mode == LEAT_TOP_LEND);
    if (!status)
        layer->checked = stream;
    return !status || status == LEAT_EINVAL
               ? status
               : leat__data_layer_stick(layer, status, leat_last_error());
}

static bool is_capturing(const leat_data_layer *layer, leat_stream stream)
{
    leat_device *device = layer->device;
    return stream != LEAT_HOST && device->ops->stream_is_capturing &&
           device->ops->stream_is_capturing(device, stream);
}

/* Streams of which a call alone records the end. */
static int check_further(const leat_data_layer *layer,
                         const leat_stream *streams, int n)
{
    leat_device *device = layer->device;
    int status = LEAT_OK;
    if (!layer->current || !device->ops->stream_check)
        return LEAT_OK;
    for (int i = 0; i < n && !status; i++)
        if (streams[i] != LEAT_HOST)
            status = device->ops->stream_check(device, streams[i], 0);
    return status;
}

/* What is recorded on a stream that is captured would become the graph's. */
static int check_release(const leat_data_layer *layer,
                         const leat_stream *streams, int n)
{
    bool is_one = layer->current && is_capturing(layer, layer->stream);
    for (int i = 0; i < n && !is_one && layer->current; i++)
        is_one = is_capturing(layer, streams[i]);
    if (!is_one)
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: a stream that uses the batch is being captured into "
                      "a graph; give the batch back outside the capture",
                      layer->name);
}

static int check_forward(leat_data_layer *layer, leat_blob *const top[],
                         int ntop, leat_stream stream)
{
    const char *name = layer->name;
    int want = layer->group->ntop;
    int status = leat__group_check_process(layer->group);
    if (status)
        return status;
    if (want == 0)
        return leat_error(LEAT_ESTATE, "%s: forward before setup", name);
    if (!top || ntop != want)
        return leat_error(LEAT_EINVAL, "%s: set up with %d tops, got %d", name,
                          want, top ? ntop : 0);
    for (int i = 0; i < ntop && !status; i++)
        status = leat__data_layer_check_top(layer, top, i);
    if (status)
        return status;
    /* First: to ask more about a captured stream may end the capture. */
    if (is_capturing(layer, stream))
        return leat_error(LEAT_ESTATE,
                          "%s: the stream is being captured into a graph; "
                          "call forward outside the capture, and capture what "
                          "comes after it",
                          name);
    /* One error: a device that failed is asked nothing more. */
    if (!layer->sticky)
        status = check_stream(layer, stream);
    if (status)
        return status;
    return layer->stream != stream ? check_release(layer, NULL, 0) : LEAT_OK;
}

static void recall(const leat__batch *batch)
{
    leat__slab_recall(batch->slab);
    if (batch->top_slab)
        leat__slab_recall(batch->top_slab);
}

void leat__data_layer_recall(const leat_data_layer *layer)
{
    if (layer->current)
        recall(layer->current);
}

/* After forward's own stream and the `n` further ones. */
static int give_back(leat_data_layer *layer, const leat_stream *further, int n)
{
    leat_stream streams[LEAT__STREAMS_MAX] = {layer->stream};
    int all = 1;
    leat__batch *batch = layer->current;
    if (!batch)
        return LEAT_OK;
    leat__data_layer_recall(layer);
    layer->current = NULL;
    for (int i = 0; i < n; i++)
        if (further[i] != layer->stream)
            streams[all++] = further[i];
    return leat__prefetcher_give(layer->group->prefetcher, batch, streams, all);
}

int leat_data_layer_release(leat_data_layer *layer, const leat_stream *streams,
                            int n)
{
    int most = LEAT__STREAMS_MAX - 1;
    int status = leat__group_check_process(layer->group);
    if (status)
        return status;
    if (n < 0 || n > most || (n > 0 && !streams))
        return leat_error(LEAT_EINVAL, "%s: 0 to %d streams, got %d",
                          layer->name, most, n);
    if (layer->device->ops->unified)
        return give_back(layer, streams, n);
    int cancel = leat__cancel_disable();
    status = check_release(layer, streams, n);
    if (!status)
        status = check_further(layer, streams, n);
    if (!status)
        status = give_back(layer, streams, n);
    leat__cancel_restore(cancel);
    return status;
}

/* A resume goes on after this batch. */
static void note_after(leat_data_layer *layer, const leat__batch *batch)
{
    layer->after = batch->after;
    leat__mark_copy(&layer->mark, &batch->mark);
    layer->taken++;
}

/*
 * A batch that could not be handed out keeps its position: save and restore
 * deliver it again.
 */
static int deliver(leat_data_layer *layer, leat__batch *batch,
                   leat_blob *const top[], int ntop, leat_stream stream)
{
    int status = leat__data_layer_hand_off(layer, batch, top, ntop, &stream);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        recall(batch);
        (void)leat__prefetcher_give(layer->group->prefetcher, batch, &stream,
                                    1);
        return leat__data_layer_stick(layer, status, line);
    }
    layer->current = batch;
    layer->stream = stream;
    layer->view = (leat_batch){
        .number = layer->group->first_number + batch->number,
        .epoch = batch->valid > 0 ? batch->from[0].epoch
                                  : leat__batch_cut_epoch(batch),
        .n = batch->n,
        .valid = batch->valid,
        .from = batch->from,
        .bad = batch->bad.n,
        .slot = batch->slot,
    };
    note_after(layer, batch);
    layer->batches++;
    layer->samples += batch->valid;
    leat__inline_mode_leave(&layer->mode);
    return LEAT_OK;
}

/* A batch with an error is consumed; all but LEAT_EDATA stay. */
static int refuse(leat_data_layer *layer, leat__batch *batch)
{
    char line[LEAT__ERROR_MAX];
    int status = batch->status;
    memcpy(line, batch->culprit.line, sizeof(line));
    if (status == LEAT_EDATA &&
        leat__bad_record_log_note(&layer->bad_records, &batch->culprit)) {
        status = LEAT_ENOMEM;
        leat__error_save(line);
    }
    if (status == LEAT_EDATA)
        note_after(layer, batch);
    (void)leat__prefetcher_give(layer->group->prefetcher, batch, NULL, 0);
    return status == LEAT_EDATA ? leat_error(status, "%s", line)
                                : leat__data_layer_stick(layer, status, line);
}

/* Counts the batch's bad records, in order. LEAT_ELIMIT: one too many. */
static int count_bad(leat_data_layer *layer, leat__batch *batch)
{
    if (batch->bad.n == 0)
        return LEAT_OK;
    leat__bad_list_sort(&batch->bad);
    int status = LEAT_OK;
    for (int i = 0; i < batch->bad.n && !status; i++)
        status =
            leat__bad_record_log_note(&layer->bad_records, &batch->bad.item[i]);
    if (!status)
        status = leat__bad_record_log_check(&layer->bad_records);
    if (!status)
        return LEAT_OK;
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    (void)leat__prefetcher_give(layer->group->prefetcher, batch, NULL, 0);
    return leat__data_layer_stick(layer, status, line);
}

/* The caller works for the group meanwhile, where it may help. */
static int wait_until(leat_data_layer *layer, leat__batch **out, int64_t end)
{
    leat_data_layer_group *group = layer->group;
    const void *owner = leat__thread_set_owner(group);
    int status = leat__prefetcher_next(group->prefetcher, layer->number, out,
                                       end, group->may_help);
    (void)leat__thread_set_owner(owner);
    return status;
}

/* A wait is interrupted to log its cause, if the log takes such lines. */
static int wait_for_batch(leat_data_layer *layer, leat__batch **out,
                          int64_t begin, int64_t deadline)
{
    int64_t pause = begin + LEAT__WAITING_PATIENCE;
    while (leat__waiting_is_logged() && pause < deadline) {
        int status = wait_until(layer, out, pause);
        if (status != LEAT_AGAIN)
            return status;
        leat__waiting_on(layer, begin, pause);
        pause += LEAT__WAITING_PATIENCE;
    }
    return wait_until(layer, out, deadline);
}

static int cancelled(const leat_data_layer *layer)
{
    return leat_error(LEAT_ECANCELLED, "%s: the layer was cancelled",
                      layer->name);
}

static int next_batch(leat_data_layer *layer, leat__batch **out,
                      int64_t deadline)
{
    leat__prefetcher *prefetcher = layer->group->prefetcher;
    int number = layer->number;
    if (leat__group_check_caller(layer->group))
        return LEAT_ESTATE;
    /* The first cancel may be under way when another one has returned. */
    if (atomic_load(&layer->group->cancelled))
        return cancelled(layer);
    leat__prefetcher_set_inline(prefetcher, number,
                                leat__inline_mode_enter(&layer->mode));
    int status = leat__prefetcher_next(prefetcher, number, out, 0, false);
    /* A caller that only polls does not work. */
    if (status == LEAT_AGAIN && deadline == 0)
        leat__prefetcher_set_inline(prefetcher, number, false);
    if (status == LEAT_AGAIN && deadline != 0) {
        int cancel = leat__cancel_disable();
        int64_t begin = leat__clock_now();
        leat__trace_begin(LEAT__SPAN_WAIT);
        status = wait_for_batch(layer, out, begin, deadline);
        leat__trace_end();
        int64_t end = leat__clock_now();
        layer->waited += end - begin;
        if (leat__waiting_is_logged())
            leat__waiting_over(layer, end);
        leat__cancel_restore(cancel);
    }
    if (status == LEAT_ECANCELLED)
        return cancelled(layer);
    /* Another member's batch has ended the sequence. */
    if (status && status != LEAT_AGAIN)
        return leat__data_layer_stick(layer, status, leat_last_error());
    return status;
}

static int take_next(leat_data_layer *layer, leat_blob *const top[], int ntop,
                     leat_stream stream, int64_t deadline)
{
    int status = check_forward(layer, top, ntop, stream);
    if (status)
        return status;
    assert(top);
    status = give_back(layer, NULL, 0);
    if (layer->sticky)
        return leat_error(layer->sticky, "%s", layer->sticky_line);
    if (status)
        return leat__data_layer_stick(layer, status, leat_last_error());
    leat__batch *batch;
    status = next_batch(layer, &batch, deadline);
    if (status)
        return status;
    if (batch->failed >= 0)
        return refuse(layer, batch);
    status = count_bad(layer, batch);
    return status ? status : deliver(layer, batch, top, ntop, stream);
}

/*
 * With a batch ready in host memory and no line logged there is no cancellation
 * point; all other paths hold cancellation themselves.
 */
static int forward(leat_data_layer *layer, leat_blob *const top[], int ntop,
                   leat_stream stream, int64_t deadline)
{
    if (!top && ntop == 0 && layer->top[0]) {
        top = layer->top;
        ntop = layer->group->ntop;
    }
    if (layer->device->ops->unified && !leat__waiting_is_logged())
        return take_next(layer, top, ntop, stream, deadline);
    int cancel = leat__cancel_disable();
    int status = take_next(layer, top, ntop, stream, deadline);
    leat__cancel_restore(cancel);
    return status;
}

int leat_data_layer_forward(leat_data_layer *layer, leat_blob *const top[],
                            int ntop, leat_stream stream)
{
    return forward(layer, top, ntop, stream, LEAT__FOREVER);
}

int leat_data_layer_try_forward(leat_data_layer *layer, leat_blob *const top[],
                                int ntop, leat_stream stream, int timeout_ms)
{
    int64_t deadline = 0;
    if (timeout_ms > 0)
        deadline = leat__clock_now() + (int64_t)timeout_ms * 1000000;
    return forward(layer, top, ntop, stream, deadline);
}

const leat_batch *leat_data_layer_batch(const leat_data_layer *layer)
{
    if (leat__group_check_process(layer->group))
        return NULL;
    return layer->current ? &layer->view : NULL;
}
