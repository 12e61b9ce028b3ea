/* recording_device.h: a device that does nothing but write its calls down. */
#ifndef LEAT_TESTS_RECORDING_DEVICE_H
#define LEAT_TESTS_RECORDING_DEVICE_H

#include <leat/ext/device.h>

/*
 * Streams are numbered from 1 and events from 101, in the order in which they
 * are made. It is in no registry; one thread uses it. The device is `unified`
 * where that is set before use.
 */
typedef struct recording_device {
    struct leat_device base;
    leat_device_ops ops;
    char calls[4096]; /* each ends in "; " */
    int streams;
    int events;
    int fail_at;       /* calls that can fail until one does; below 0: none */
    void (*act)(void); /* called in each copy and event_synchronize; or NULL */
    leat_device_transform what; /* of the latest transform */
    int answers;                /* of queries of events */
} recording_device;

void recording_device_init(recording_device *device);

/* The calls since the last look, until the next call. */
const char *recording_device_look(recording_device *device);

#endif
