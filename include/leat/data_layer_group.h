/* leat/data_layer_group.h: several devices in one process, one reader. */
#ifndef LEAT_DATA_LAYER_GROUP_H
#define LEAT_DATA_LAYER_GROUP_H

#include <leat/data_layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Data layers, one for each device, that one reader and one set of workers
 * feed: the data is read, decoded and transformed once.
 *
 * Order: the group's batches are, one after the other, those that one layer
 * with the same options would deliver. Batch k, counted from 0 at setup or
 * restore, is member k mod n's: n forwards, one of each member, are a step over
 * n x batch_size samples. With several ranks these are this rank's. The last
 * batch of an epoch, which epoch_end may make a smaller one, is any member's.
 *
 * Each member has its own memory on its own device, and up to `prefetch`
 * batches ready in it. Batches are begun in sequence, so a member that takes
 * none brings the others to rest once its memory is full; they go on as soon as
 * it does. Nothing is dropped and nothing changes order; leat_log names the
 * member that is waited for.
 *
 * Errors: LEAT_EDATA concerns a batch, and so the member whose it is. Any other
 * error, and LEAT_END, ends the sequence: each member delivers what comes
 * before it, and from then on returns that error, until the group is restored.
 * What fails at a member's own forward (its stream, a top's memory, max_errors,
 * which is for each member) ends it for the others too, after what was made
 * for them by then.
 *
 * What leat/data_layer.h says of fork(), pthread_cancel() and stacks holds for
 * groups too.
 *
 * A member is a data layer: forward, try_forward, release, batch and stats are
 * those of leat/data_layer.h. Different members may be called by different
 * threads at the same time. What concerns them all is asked of the group:
 * setup, save and restore of a member are LEAT_ESTATE, its cancel is the
 * group's. leat_data_layer_destroy of a member cancels the group; the member
 * goes with it.
 */
typedef struct leat_data_layer_group leat_data_layer_group;

/** The most members. */
#define LEAT_GROUP_MAX 64

/**
 * Makes a group that reads from `pipeline` (shared) as `options` say (copied):
 * a member for each of the `n` names in `devices`, such as "cuda:0" and
 * "cuda:1"; one may be there twice. Owned by the caller:
 * leat_data_layer_group_destroy. Starts nothing.
 *
 * Of the options `device` is not looked at, `batch_size` and `prefetch` are of
 * each member, `max_memory` of all together, in equal shares, and `name` gets
 * the member's number in log and errors: "data[1]".
 * Errors: those of leat_data_layer_create; LEAT_EINVAL for `n` out of range, or
 * transform_on DEVICE where only some devices compute in host memory.
 * Thread safety: any thread.
 */
LEAT_API int leat_data_layer_group_create(
    leat_data_layer_group **out, const leat_pipeline *pipeline,
    const leat_data_layer_options *options, const char *const devices[], int n);

/**
 * Makes the group that a Caffe net file describes for `phase`, as
 * leat_data_layer_create_from_net makes a layer: what the file says wins,
 * `options` (may be NULL) give what it leaves open and choose among several
 * data layers. batch_size and prefetch of the file are of each member;
 * `devices` and `n` are as for leat_data_layer_group_create. Owned by the
 * caller. Errors: those of both; LEAT_EINVAL names file, line and column where
 * the file is at fault, else the file. Thread safety: any thread.
 */
LEAT_API int leat_data_layer_group_create_from_net(
    leat_data_layer_group **out, const char *prototxt, leat_phase phase,
    const leat_data_layer_options *options, const char *const devices[], int n);

/** The number of members. Thread safety: any thread. */
LEAT_API int leat_data_layer_group_size(const leat_data_layer_group *group);

/**
 * Member `i`, borrowed until the group is destroyed; NULL out of range. Its
 * statistics are of the whole group for reader and workers, its own for the
 * rest. Thread safety: any thread.
 */
LEAT_API leat_data_layer *
leat_data_layer_group_member(const leat_data_layer_group *group, int i);

/**
 * leat_data_layer_setup for all members: `top` has `ntop` blobs for each, those
 * of member 0 first, each on its member's device. With `top` NULL and `ntop` 0
 * each member makes its own: leat_data_layer_top.
 *
 * Blocks until the first sample is read; woken by cancel.
 * Errors: those of leat_data_layer_setup. Thread safety: one caller, and no
 * other call but cancel at the same time.
 */
LEAT_API int leat_data_layer_group_setup(leat_data_layer_group *group,
                                         leat_blob *const top[], int ntop);

/**
 * Writes where the group goes on into an initialised token: between two steps,
 * or anywhere else where the members have taken the batches up to some k and
 * none after it.
 *
 * It is the token of a layer: a group of any size, or a layer by itself, goes
 * on with batch k, and nothing is lost or comes twice.
 * Errors: LEAT_ESTATE before setup, or where a member is behind, which the line
 * names; LEAT_ENOMEM; the token is then as it was. Thread safety: one caller,
 * and no other call but cancel at the same time.
 */
LEAT_API int leat_data_layer_group_save(leat_data_layer_group *group,
                                        leat_token *token);

/**
 * leat_data_layer_restore for the whole group, whatever it was saved from; the
 * batch at that place is member 0's. Clears errors and cancel of all members,
 * and gives their batches back.
 * Errors: those of leat_data_layer_restore. Blocks as setup does; woken by
 * cancel. Thread safety: one caller, and no other call but cancel at the same
 * time.
 */
LEAT_API int leat_data_layer_group_restore(leat_data_layer_group *group,
                                           leat_token *token);

/**
 * Makes every setup and forward that waits, and every later one, return
 * LEAT_ECANCELLED until restore.
 * Thread safety: any thread, at any time before destroy.
 */
LEAT_API void leat_data_layer_group_cancel(leat_data_layer_group *group);

/**
 * Stops and joins every thread and frees everything, the members too, in any
 * state, but memory that lent blobs still share. Takes NULL. Waits as
 * leat_data_layer_destroy does.
 * Thread safety: one caller, and no other call at the same time.
 */
LEAT_API void leat_data_layer_group_destroy(leat_data_layer_group *group);

#ifdef __cplusplus
}
#endif
#endif
