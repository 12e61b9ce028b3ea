/* hand_off.h: a batch's tops go out to the blobs of its consumer. */
#ifndef LEAT_LAYER_TOPS_HAND_OFF_H
#define LEAT_LAYER_TOPS_HAND_OFF_H

#include "layer/layer_state.h"

/*
 * Lends the batch's memory to the layer's `ntop` blobs, or copies it into
 * theirs, as its top_mode says. Work that is enqueued on `*stream` later sees
 * the tops; LEAT_HOST: they are there at once. Where they are copies, their end
 * is recorded, and `*stream` becomes LEAT_HOST: nothing else reads the batch.
 * Thread safety: the layer's caller. Errors: those of leat_blob_reshape,
 * LEAT_EDEVICE.
 */
int leat__data_layer_hand_off(leat_data_layer *layer, leat__batch *batch,
                              leat_blob *const top[], int ntop,
                              leat_stream *stream);

#endif
