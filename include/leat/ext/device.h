/* leat/ext/device.h: the device table, for those who add a device. */
#ifndef LEAT_EXT_DEVICE_H
#define LEAT_EXT_DEVICE_H

#include <leat/device.h>
#include <leat/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The table of a type of device. */
typedef struct leat_device_ops leat_device_ops;

/** An event of the device's own, as a plain handle. */
typedef uintptr_t leat_event;

/** The first member of every device's own struct. */
struct leat_device {
    const leat_device_ops *ops; /* set by the registry after open */
    char name[32];              /* "cpu", "cuda:0"; set by the registry */
};

/** Between which memories a copy goes. */
typedef enum leat_copy_direction {
    LEAT_COPY_TO_DEVICE, /* from host memory */
    LEAT_COPY_TO_HOST,   /* from the device's */
    LEAT_COPY_ON_DEVICE  /* within the device's */
} leat_copy_direction;

/** What a device is, for those who name it beside a measurement. */
typedef struct leat_device_description {
    char bus_id[32];     /* on PCI, as in sysfs: "0000:65:00.0"; "": unknown */
    int driver_version;  /* the driver's CUDA: 12040 is 12.4; 0: none such */
    int runtime_version; /* of CUDA's runtime, likewise; 0: none such */
    int capability;      /* of the processor: 90 is 9.0; 0: none such */
    int64_t l2_bytes;    /* of the cache in front of its memory; 0: unknown */
} leat_device_description;

/** What was chosen for one image; lies behind the crops in a batch's slot. */
typedef struct leat_device_choice {
    int32_t h_off;    /* first row of the crop, for the mean image */
    int32_t w_off;    /* first column of the crop, for the mean image */
    uint32_t mirror;  /* 1: columns are written in reverse order */
    uint32_t is_zero; /* the place of a bad record: all elements are 0 */
} leat_device_choice;

/**
 * A batch's way from uint8 crops to its top: mirror, mean, scale, cast, layout.
 * All pointers are to memory of the device; top and choices, and in leat's own
 * slots the pixels too, begin at multiples of 256 bytes. leat/transform.h has
 * the rule; top[...] of FLOAT16 and BFLOAT16 is the float rounded to nearest,
 * ties to even.
 */
typedef struct leat_device_transform {
    const unsigned char *pixels;       /* the crops without gaps */
    const leat_device_choice *choices; /* one for each image */
    void *top;                /* images of height x width, without gaps */
    const float *mean;        /* channels x mean_height x mean_width; or NULL */
    const float *mean_value;  /* mean_values of them, 1 or channels; or NULL */
    int mean_values;          /* how many: 1 or channels */
    int mean_height;          /* rows of the mean image */
    int mean_width;           /* columns of the mean image */
    float scale;              /* the factor after the mean is subtracted */
    leat_dtype top_type;      /* FLOAT32, FLOAT16, BFLOAT16 or UINT8 */
    leat_layout pixel_layout; /* of the crops */
    leat_layout layout;       /* of the top */
    int64_t images;           /* in the batch */
    int channels;             /* of crop and top */
    int height;               /* of crop and top */
    int width;                /* of crop and top */
} leat_device_transform;

/**
 * What a device can do. Obligatory are size, name, open, host_alloc and
 * host_free, and where `unified` is 0 all but those that say "May be NULL";
 * leat_device_register looks for them. All operations may be called from any
 * thread, and by several at a time, on one stream too. They return LEAT_OK or
 * an error (LEAT_ENOMEM, LEAT_EDEVICE) with its line set by leat_error.
 */
struct leat_device_ops {
    size_t size;      /* sizeof(leat_device_ops) */
    const char *name; /* the type: "cpu", "cuda" */

    /**
     * 1: the device computes in host memory. Of what follows only open,
     * host_alloc and host_free are then needed; the rest may be NULL.
     */
    int unified;

    /**
     * Opens the device of that ordinal; called until it succeeds, once for
     * each, and kept until the process ends.
     */
    int (*open)(int ordinal, leat_device **out);

    /**
     * Host memory that the device can reach by DMA (pinned); zeroed.
     * LEAT_ENOMEM when it cannot be had: leat then copies from memory that is
     * not pinned.
     */
    int (*host_alloc)(leat_device *device, size_t bytes, void **out);
    /** Frees it; `bytes` as it was asked for. */
    void (*host_free)(leat_device *device, void *memory, size_t bytes);

    /** Memory of the device; zeroed. */
    int (*alloc)(leat_device *device, size_t bytes, void **out);
    /** Frees it; `bytes` as it was asked for. */
    void (*free)(leat_device *device, void *memory, size_t bytes);

    /**
     * Enqueues a copy. The host side is from host_alloc, or pageable: then the
     * call may wait, and has read all of it when it returns.
     */
    int (*copy)(leat_device *device, void *to, const void *from, size_t bytes,
                leat_copy_direction direction, leat_stream stream);

    /** A stream that does not synchronise with the default stream. */
    int (*stream_create)(leat_device *device, leat_stream *out);
    /** Lets go of an idle stream. */
    void (*stream_destroy)(leat_device *device, leat_stream stream);
    /** Waits on the host until the stream is idle. */
    int (*stream_synchronize)(leat_device *device, leat_stream stream);
    /** 1 if the stream is being captured into a graph. May be NULL. */
    int (*stream_is_capturing)(leat_device *device, leat_stream stream);

    /** An event without timing; waiting for it on the host sleeps. */
    int (*event_create)(leat_device *device, leat_event *out);
    /** Lets go of the event. */
    void (*event_destroy)(leat_device *device, leat_event event);
    /** The event comes when the stream has passed this point. */
    int (*event_record)(leat_device *device, leat_event event,
                        leat_stream stream);
    /** What comes behind on `stream` waits for the event's latest record. */
    int (*stream_wait)(leat_device *device, leat_stream stream,
                       leat_event event);
    /** Waits on the host; at once if the event was never recorded. */
    int (*event_synchronize)(leat_device *device, leat_event event);

    /**
     * Enqueues a transform. May be NULL: leat refuses transform_on DEVICE then.
     */
    int (*transform)(leat_device *device, const leat_device_transform *what,
                     leat_stream stream);

    /**
     * An event as of event_create that also keeps the device's time when it
     * comes; let go of by event_destroy. May be NULL, together with
     * event_elapsed.
     */
    int (*timer_create)(leat_device *device, leat_event *out);
    /**
     * The seconds between two events of timer_create that have come.
     * LEAT_EDEVICE where one was never recorded.
     */
    int (*event_elapsed)(leat_device *device, leat_event from, leat_event to,
                         double *out);
    /** Says what the device is. May be NULL. */
    int (*describe)(leat_device *device, leat_device_description *out);

    /**
     * Enqueues work that takes so long and touches no memory, for those who
     * measure what goes on beside it. May be NULL.
     */
    int (*occupy)(leat_device *device, double seconds, leat_stream stream);
    /**
     * The NUMA node that the device is next to, on which host_alloc puts its
     * memory if it can; below 0: not known. May be NULL.
     */
    int (*numa_node)(leat_device *device);
};

/**
 * Adds a type of device; `ops` is borrowed for ever.
 * Errors: LEAT_EINVAL when the name is taken, malformed (1 to 20 letters, no
 * colon) or the table too short, when an obligatory entry is NULL, which is
 * named, or when there are 16 types already.
 * Thread safety: any thread.
 */
LEAT_API int leat_device_register(const leat_device_ops *ops);

#ifdef __cplusplus
}
#endif
#endif
