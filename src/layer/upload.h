/* upload.h: batches that are copied to a device together, and transformed. */
#ifndef LEAT_LAYER_UPLOAD_H
#define LEAT_LAYER_UPLOAD_H

#include "layer/device_copy.h"

/* Uploads of a device copy are one caller's at a time. */

/*
 * How many of `n` batches one upload takes, at least the first: those that
 * follow it are like it, next to it in memory, and used by nobody any more.
 */
int leat__upload_run(leat__device_copy *copy, leat__batch *const batch[],
                     int n);

/*
 * Enqueues the upload of that many batches after the last use of their memory's
 * former contents, and their transform after that. Errors: LEAT_EDEVICE; what
 * was enqueued is then over.
 */
int leat__upload_enqueue(leat__device_copy *copy, leat__batch *const batch[],
                         int n);

/*
 * Waits until LEAT__UPLOAD_BYTES are under way, or no more than one upload, so
 * that batches which are finished meanwhile share the next one. Errors:
 * LEAT_EDEVICE.
 */
int leat__upload_pace(leat__device_copy *copy);

#endif
