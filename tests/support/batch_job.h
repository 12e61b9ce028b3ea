/* batch_job.h: random batches for a device's transform, and what they become.
 */
#ifndef LEAT_TESTS_BATCH_JOB_H
#define LEAT_TESTS_BATCH_JOB_H

#include <leat/ext/device.h>

/*
 * A batch in host memory. Pixels and means begin at random addresses, of bytes
 * and of floats, in blocks that end with them.
 */
typedef struct batch_job {
    leat_device_transform what; /* top is left to the user */
    size_t pixel_bytes;
    size_t pixels_over; /* what a multiple of 16 bytes the pixels are behind */
    size_t mean_floats; /* 0: no mean file */
    size_t mean_over;   /* likewise, in floats */
    size_t top_bytes;
    void *expected; /* the top, by leat__transform_reference */
    void *block[5];
    int nblocks;
} batch_job;

/*
 * The batch of that number, always the same: 1 to 5 channels, heights and
 * widths from 1 to beyond what a thread does, every type and layout, with and
 * without means, mirrored images and places of bad records.
 */
void batch_job_init(batch_job *self, uint32_t number);
void batch_job_finish(batch_job *self);

/* What it is, for a message. Static. */
const char *batch_job_text(const batch_job *self);

#endif
