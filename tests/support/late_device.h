/* late_device.h: a device "late" whose streams run late and out of step. */
#ifndef LEAT_TESTS_LATE_DEVICE_H
#define LEAT_TESTS_LATE_DEVICE_H

#include <leat/ext/device.h>

/*
 * "late:0" and "late:1" keep their memory where the host must not touch it: a
 * device address faults when it is read or written. A stream is a thread that
 * runs nothing before somebody waits for it, and then no further than is waited
 * for; so a copy takes the bytes that are there at the latest moment allowed,
 * and a slot that is refilled too early shows. The host side of a copy must be
 * of host_alloc. Freed memory faults, and addresses are never used again.
 *
 * Its time is modelled: a copy takes a nanosecond for each byte, an operation
 * that occupies the stream what it says, all else nothing.
 *
 * No lock is shared by two streams, so the thread sanitizer sees what is not
 * ordered by streams and events.
 */

/* Adds the type to the registry, once a process. */
void late_device_register(void);

/* What a device was asked for since it was opened. */
typedef struct late_device_counts {
    int64_t copies[3];       /* by leat_copy_direction */
    int64_t bytes[3];        /* copied, by leat_copy_direction */
    int64_t records;         /* event_record */
    int64_t stream_waits;    /* stream_wait */
    int64_t event_syncs;     /* event_synchronize */
    int64_t stream_syncs;    /* stream_synchronize */
    int64_t allocs;          /* alloc */
    int64_t host_allocs;     /* host_alloc */
    int64_t streams;         /* alive */
    int64_t events;          /* alive */
    int64_t live_bytes;      /* of the device's memory */
    int64_t live_host_bytes; /* pinned */
    int64_t destroyed_busy;  /* streams destroyed with work left */
    int64_t used_destroyed;  /* calls that name a stream that is gone */
} late_device_counts;

late_device_counts late_device_count(leat_device *device);

/*
 * Holds the stream back, whoever waits for it, until it is let go; destroying
 * it lets it go too. Stream 0 is the device's default stream.
 */
void late_device_hold(leat_device *device, leat_stream stream);
void late_device_let_go(leat_device *device, leat_stream stream);

/* The same for all streams, those to come included. */
void late_device_hold_all(leat_device *device);
void late_device_let_go_all(leat_device *device);

/* The stream created as number `i` from 0, or 0 while there is none. */
leat_stream late_device_stream(leat_device *device, int i);

/* Returns once `n` threads of the host wait for the stream. */
void late_device_await(leat_device *device, leat_stream stream, int n);

/* What stream_is_capturing will say of the stream. */
void late_device_set_capturing(leat_device *device, leat_stream stream,
                               int capturing);

/*
 * From now on what is enqueued takes time: copies over the bus so many
 * nanoseconds, what occupies a stream what it says. 0: not any more.
 */
void late_device_take_time(leat_device *device, int64_t copy);

/*
 * Call number `n` from now on, of all that can fail and on all devices, counted
 * from 0, fails with LEAT_EDEVICE; only that one. Below 0: none.
 */
void late_device_fail_at(int64_t n);

/* 1 once the call that was to fail has done so. */
int late_device_has_failed(void);

/*
 * Copy number `n` from now on breaks its stream when it runs: waiting for what
 * comes after it gives LEAT_EDEVICE for ever. Below 0: none.
 */
void late_device_break_at(int64_t n);

/* Reads and writes the device's memory, at once and behind its back. */
void late_device_peek(void *out, const void *address, size_t bytes);
void late_device_poke(void *address, const void *bytes, size_t size);

#endif
