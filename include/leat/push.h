/* leat/push.h: a queue that your own threads fill with samples. */
#ifndef LEAT_PUSH_H
#define LEAT_PUSH_H

#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A bounded queue of samples, first in, first out: threads send, and the
 * readers of leat_pipeline_push receive, any number of each. Shared (reference
 * counted).
 *
 * A pass ends with leat_push_close: what was sent is still received, then
 * LEAT_END. leat_push_reopen begins the next one. A queue belongs to the
 * process that made it: a forked child must not use it, and leat_push_unref
 * does nothing there.
 */
typedef struct leat_push leat_push;

/**
 * Creates a queue of at most `capacity` samples with these fields, which are
 * copied. It takes the memory of all of them, sizeof(leat_sample) each, at
 * once, their buffers as they are sent. `name` is the source of its samples;
 * NULL: "push". Owned by the caller: leat_push_unref. Errors: LEAT_EINVAL for a
 * capacity below 1, fields fewer than 1 or more than LEAT_MAX_FIELDS, names
 * that are missing, longer than 63 letters or alike, and unknown types;
 * LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_push_create(leat_push **out, const char *name,
                              const leat_field_spec fields[], int nfields,
                              int capacity);

/** Takes a reference. Thread safety: any thread. */
LEAT_API void leat_push_ref(leat_push *push);

/**
 * Drops a reference; the last one frees the queue and what is in it. Takes
 * NULL. Thread safety: any thread, when no thread uses this reference.
 */
LEAT_API void leat_push_unref(leat_push *push);

/**
 * Sends a sample, and waits while the queue is full. What its fields and key
 * point to is copied, unless it lies in the sample's own buffer
 * (leat_sample_take), which is handed over. The sample comes back cleared, with
 * another buffer to be filled, and the allocator of that; or with its own,
 * where that is far too large for the contents, which are copied then.
 *
 * LEAT_END once the queue is closed; the sample then stays as it was. Errors:
 * LEAT_EINVAL for a sample whose fields are not those of the queue, which names
 * the field; LEAT_ENOMEM; after leat_push_kill its status.
 * Blocks until there is room; woken by a reader, close, reopen and kill.
 * Thread safety: any threads, each with a sample of its own.
 */
LEAT_API int leat_push_send(leat_push *push, leat_sample *sample);

/**
 * The same without waiting: LEAT_AGAIN where the queue is full; the sample then
 * stays as it was. Thread safety: any threads, each with a sample of its own.
 */
LEAT_API int leat_push_try_send(leat_push *push, leat_sample *sample);

/**
 * Ends the pass: no sample can be sent, those in the queue are still received.
 * Thread safety: any thread.
 */
LEAT_API void leat_push_close(leat_push *push);

/**
 * Empties the queue and opens it again, also after kill. A reader that had
 * samples of the pass before, or its end, gets LEAT_END until it seeks to an
 * epoch's beginning, so that passes do not mix. A thread that waits in
 * leat_push_send goes on. Thread safety: any thread.
 */
LEAT_API void leat_push_reopen(leat_push *push);

/**
 * Ends the pass with an error, for a sender that cannot go on: sends and
 * receives, waiting ones too, return `status` with this line, and what is in
 * the queue is not received. Errors: LEAT_EINVAL for a status that is no error.
 * Thread safety: any thread.
 */
LEAT_API int leat_push_kill(leat_push *push, int status, const char *line);

/** The most samples in the queue. Thread safety: any thread. */
LEAT_API int leat_push_capacity(const leat_push *push);

/** The samples in the queue now. Thread safety: any thread. */
LEAT_API int leat_push_size(leat_push *push);

/** Whether it is closed or killed: 1 or 0. Thread safety: any thread. */
LEAT_API int leat_push_is_closed(leat_push *push);

/**
 * A pipeline over the queue (shared). Each sample goes to one of its readers.
 * They have a single pass, unless the queue is reopened, no count and no
 * position: leat_data_layer_save is refused. With several ranks each has a
 * queue of its own, to which the same samples have to be sent. A record's
 * number is that in its pass. Waiting for samples is woken by
 * leat_reader_cancel.
 *
 * Owned by the caller: leat_pipeline_unref. Errors: LEAT_ENOMEM. Thread safety:
 * any thread.
 */
LEAT_API int leat_pipeline_push(leat_pipeline **out, leat_push *push);

#ifdef __cplusplus
}
#endif
#endif
