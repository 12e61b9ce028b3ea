/* device_copy_fixture.h: a device copy over a device that writes its calls
 * down, and a batch to upload.
 */
#ifndef LEAT_TESTS_DEVICE_COPY_FIXTURE_H
#define LEAT_TESTS_DEVICE_COPY_FIXTURE_H

#include "layer/upload.h"
#include "support/recording_device.h"

#include <check.h>
#include <string.h>

enum {
    ROOM = 51,
    READY = 52,
    COPIED = 53,
    CONSUMED = 61,
    TRANSFORMS = 5, /* the stream of transforms; that of copies is 1 */
    BYTES = 300,
    OFFSET = 100
};

static recording_device device;
static leat__device_copy device_copy;
static leat__slab slab;
static leat__batch batch;
static unsigned char host[1000], memory[1000];

static inline void begin_device_copy(void)
{
    static const leat__batch_shape plain;
    ck_assert_int_eq(
        leat__device_copy_init(&device_copy, &device.base, NULL, &plain),
        LEAT_OK);
    recording_device_look(&device);
}

static inline void end_device_copy(void)
{
    leat__device_copy_finish(&device_copy);
    memset(&device_copy, 0, sizeof(device_copy));
}

/* A batch of BYTES whose memory begins at OFFSET. */
static inline void set_up(void)
{
    recording_device_init(&device);
    memset(&device_copy, 0, sizeof(device_copy));
    memset(&batch, 0, sizeof(batch));
    memset(memory, 0, sizeof(memory));
    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (unsigned char)(i % 251 + 1);
    slab = (leat__slab){
        .device = &device.base, .host = host, .device_memory = memory};
    batch.slab = &slab;
    batch.offset = OFFSET;
    batch.shape.fixed = batch.shape.bytes = BYTES;
    batch.n = 7;
    batch.room = ROOM;
    batch.ready = READY;
    batch.copied = COPIED;
    for (int i = 0; i < LEAT__STREAMS_MAX; i++)
        batch.consumed[i] = (leat_event)CONSUMED + (leat_event)i;
    begin_device_copy();
}

static inline void tear_down(void)
{
    end_device_copy();
}

#define assert_calls(expected)                                                 \
    ck_assert_str_eq(recording_device_look(&device), expected)

static inline void use_streams(int n)
{
    batch.nconsumed = batch.events = n;
}

static inline int upload(void)
{
    leat__batch *const one[] = {&batch};
    return leat__upload_enqueue(&device_copy, one, 1);
}

/* Batches of crops, whose tops are in `memory`. */
static inline void transform_batches(void)
{
    static leat__slab top = {.device_memory = memory};
    batch.shape.is_cropped = 1;
    batch.top_slab = &top;
    device_copy.transforms = TRANSFORMS;
}

#endif
