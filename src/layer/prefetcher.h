/* prefetcher.h: workers that make batches ahead of the caller. */
#ifndef LEAT_LAYER_PREFETCHER_H
#define LEAT_LAYER_PREFETCHER_H

#include "layer/diagnose/activity.h"
#include "layer/prefetcher_options.h"

typedef struct leat__prefetcher leat__prefetcher;

/*
 * Takes all memory and starts the threads.
 * Errors: LEAT_ENOMEM, LEAT_EIO, LEAT_EDEVICE.
 */
int leat__prefetcher_create(leat__prefetcher **out,
                            const leat__prefetcher_options *options);
/*
 * Cancels the reader, joins all threads, waits for copies under way and frees
 * all but lent slabs. Takes NULL.
 */
void leat__prefetcher_destroy(leat__prefetcher *prefetcher);

/*
 * The lane's next batch, in sequence, until `deadline` (as leat__queue_pop's);
 * first tried with deadline 0, for whoever comes with another found nothing
 * ready. With `help` the caller works while none is ready. LEAT_AGAIN;
 * LEAT_ECANCELLED without an error line; behind a batch of another lane that
 * failed for good, its status and line. One caller at a time a lane.
 */
int leat__prefetcher_next(leat__prefetcher *prefetcher, int lane,
                          leat__batch **out, int64_t deadline, int help);

/*
 * While workers rest, who finds nothing ready and helps wakes none of them;
 * they are woken where next has to wait. The caller's.
 */
void leat__prefetcher_rest(leat__prefetcher *prefetcher, int lane, int rest);

/*
 * Gives a delivered batch back; it is refilled once the `n` streams have passed
 * this point. Errors: LEAT_EDEVICE; it is given back all the same.
 */
int leat__prefetcher_give(leat__batch *batch, const leat_stream *streams,
                          int n);

/*
 * Notes that the streams read a delivered batch that is not given back: destroy
 * waits for them, and its contents stay. Errors: LEAT_EDEVICE.
 */
int leat__prefetcher_mark(leat__batch *batch, const leat_stream *streams,
                          int n);

/*
 * Ends the sequence: a lane whose batches nobody takes any more would hold up
 * the others. Theirs that are made are still to be had, then `status`. Any
 * thread.
 */
void leat__prefetcher_end(leat__prefetcher *prefetcher, int status,
                          const char *line);

/* Wakes everybody; next gives LEAT_ECANCELLED from now on. Any thread. */
void leat__prefetcher_cancel(leat__prefetcher *prefetcher);

/* The lane's stream, on which its batches are uploaded. */
leat_stream leat__prefetcher_stream(const leat__prefetcher *prefetcher,
                                    int lane);

/* Where its threads are just now, the callers left out. */
leat__activity leat__prefetcher_activity(const leat__prefetcher *prefetcher);

/* Reader and workers are all lanes', the rest is the lane's. */
void leat__prefetcher_stats(const leat__prefetcher *prefetcher, int lane,
                            leat_stats *stats);

#endif
