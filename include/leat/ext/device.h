/* leat/ext/device.h: the device table, for adding a device. */
#ifndef LEAT_EXT_DEVICE_H
#define LEAT_EXT_DEVICE_H

#include <leat/device.h>
#include <leat/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The operations of a type of device. */
typedef struct leat_device_ops leat_device_ops;

/** An event of the device, as a plain handle. */
typedef uintptr_t leat_event;

/** The first member of every device's own struct. */
struct leat_device {
    const leat_device_ops *ops; /* set by the registry after open */
    char name[32];              /* "cpu", "cuda:0"; set by the registry */
};

/** The direction of a copy. */
typedef enum leat_copy_direction {
    LEAT_COPY_TO_DEVICE, /* from host memory */
    LEAT_COPY_TO_HOST,   /* from the device's */
    LEAT_COPY_ON_DEVICE  /* within the device's */
} leat_copy_direction;

/** A device's description, for reports of measurements. */
typedef struct leat_device_description {
    char bus_id[32];    /* on PCI, as in sysfs: "0000:65:00.0"; "": unknown */
    int driver_version; /* CUDA version of the driver: 12040 is 12.4; 0: none */
    int runtime_version; /* of CUDA's runtime, likewise; 0: none */
    int capability;      /* compute capability: 90 is 9.0; 0: none */
    int64_t l2_bytes;    /* size of the L2 cache; 0: unknown */
} leat_device_description;

/** The random choices for one image; stored after the crops in a batch's
 * memory. */
typedef struct leat_device_choice {
    int32_t h_off;    /* first row of the crop, for the mean image */
    int32_t w_off;    /* first column of the crop, for the mean image */
    uint32_t mirror;  /* 1: columns are written in reverse order */
    uint32_t is_zero; /* a bad record: all elements are 0 */
} leat_device_choice;

/**
 * The transform of a batch, or of several, from uint8 crops to their tops:
 * mirror, mean, scale, cast, layout. All pointers are to device memory; top and
 * choices, and in leat's own batches the pixels too, are aligned to 256 bytes,
 * in further batches too. leat/transform.h has the formula; top[...] of FLOAT16
 * and BFLOAT16 is the float rounded to nearest, ties to even.
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
    int64_t images;           /* in a batch */
    int channels;             /* of crop and top */
    int height;               /* of crop and top */
    int width;                /* of crop and top */
    int further;              /* batches after this one, at most 65534: each */
    size_t stride;            /* so many bytes after the last, and their */
    size_t top_stride;        /* tops so many */
} leat_device_transform;

/**
 * The operations of a device. size, name, open, host_alloc and host_free are
 * required; so are, if `unified` is 0, all others but those marked "May be
 * NULL". leat_device_register checks them. Operations may be called from any
 * thread, also concurrently and on one stream. They return LEAT_OK or an error
 * (LEAT_ENOMEM, LEAT_EDEVICE) whose line leat_error has set.
 */
struct leat_device_ops {
    size_t size;      /* sizeof(leat_device_ops) */
    const char *name; /* the type: "cpu", "cuda" */

    /**
     * 1: the device computes in host memory, and is the type's only one. Then
     * only open, host_alloc and host_free are required of the following.
     */
    int unified;

    /**
     * Opens the device of that ordinal, which stays open until the process
     * ends. Called again only after a failure.
     */
    int (*open)(int ordinal, leat_device **out);

    /**
     * Allocates pinned host memory, zeroed. LEAT_ENOMEM if there is none: leat
     * then copies from pageable memory.
     */
    int (*host_alloc)(leat_device *device, size_t bytes, void **out);
    /** Frees it; `bytes` are those of its allocation. */
    void (*host_free)(leat_device *device, void *memory, size_t bytes);

    /** Allocates device memory, zeroed. */
    int (*alloc)(leat_device *device, size_t bytes, void **out);
    /** Frees it; `bytes` as it was asked for. */
    void (*free)(leat_device *device, void *memory, size_t bytes);

    /**
     * Enqueues a copy. The host side is from host_alloc or pageable; from
     * pageable memory the call may block. Whether it has read that when it
     * returns is the device's: the memory stays as it is until the stream is
     * past the copy.
     */
    int (*copy)(leat_device *device, void *to, const void *from, size_t bytes,
                leat_copy_direction direction, leat_stream stream);

    /** Creates a stream that does not synchronise with the default stream. */
    int (*stream_create)(leat_device *device, leat_stream *out);
    /** Destroys an idle stream. */
    void (*stream_destroy)(leat_device *device, leat_stream stream);
    /** Blocks the host until the stream is idle. */
    int (*stream_synchronize)(leat_device *device, leat_stream stream);
    /** 1 if the stream is being captured into a graph. May be NULL. */
    int (*stream_is_capturing)(leat_device *device, leat_stream stream);

    /** Creates an event without timing. */
    int (*event_create)(leat_device *device, leat_event *out);
    /** Destroys the event. */
    void (*event_destroy)(leat_device *device, leat_event event);
    /** The event completes when the stream has passed this point. */
    int (*event_record)(leat_device *device, leat_event event,
                        leat_stream stream);
    /** Later work on `stream` waits for the event's latest record. */
    int (*stream_wait)(leat_device *device, leat_stream stream,
                       leat_event event);
    /** Blocks the host until the event completes; returns at once if it was
     * never recorded. */
    int (*event_synchronize)(leat_device *device, leat_event event);

    /**
     * Enqueues a transform. May be NULL: leat then refuses transform_on DEVICE.
     */
    int (*transform)(leat_device *device, const leat_device_transform *what,
                     leat_stream stream);

    /**
     * Creates an event that also records the device's time when it completes;
     * destroyed by event_destroy. May be NULL, together with event_elapsed.
     */
    int (*timer_create)(leat_device *device, leat_event *out);
    /**
     * The seconds between two completed events of timer_create. LEAT_EDEVICE if
     * one was never recorded.
     */
    int (*event_elapsed)(leat_device *device, leat_event from, leat_event to,
                         double *out);
    /** Describes the device. May be NULL. */
    int (*describe)(leat_device *device, leat_device_description *out);

    /**
     * Enqueues work that lasts `seconds` and touches no memory, for
     * measurements of concurrent work. May be NULL.
     */
    int (*occupy)(leat_device *device, double seconds, leat_stream stream);
    /**
     * The NUMA node of the device, on which host_alloc places memory if it can;
     * below 0: unknown. May be NULL.
     */
    int (*numa_node)(leat_device *device);

    /**
     * Checks a stream that a caller names: whether it is the device's and, if
     * `is_kept`, whether the handle means the same stream in later calls and
     * other threads. leat asks only for streams that are not captured. Errors:
     * LEAT_EINVAL, with the reason. May be NULL.
     */
    int (*stream_check)(leat_device *device, leat_stream stream, int is_kept);

    /**
     * Creates a stream as stream_create does, whose kernels are scheduled
     * before those of other streams. May be NULL: leat calls stream_create.
     */
    int (*stream_create_high_priority)(leat_device *device, leat_stream *out);

    /**
     * Enqueues work that lasts until the word at `release`, in memory of
     * host_alloc, is not 0, and at most `seconds`: so what is enqueued after it
     * begins together, for measurements. May be NULL.
     */
    int (*stream_hold)(leat_device *device, const uint32_t *release,
                       double seconds, leat_stream stream);
    /**
     * Enqueues a copy TO_DEVICE or TO_HOST that a kernel makes, which reads or
     * writes memory of host_alloc over the bus itself, for measurements.
     * Addresses and `bytes` are multiples of 16. May be NULL.
     */
    int (*kernel_copy)(leat_device *device, void *to, const void *from,
                       size_t bytes, leat_copy_direction direction,
                       leat_stream stream);
    /**
     * The same as host_alloc, with the memory on that NUMA node if it can be
     * placed there; freed by host_free. May be NULL.
     */
    int (*host_alloc_on)(leat_device *device, int node, size_t bytes,
                         void **out);

    /**
     * Loads the code for transforms like `what`, whose pointers and sizes are
     * not set, so that the first transform finds it there. May be NULL.
     */
    int (*transform_load)(leat_device *device,
                          const leat_device_transform *what);

    /**
     * Creates an event as event_create does, on which the host sleeps while it
     * waits, although the device then has to interrupt it. May be NULL: leat
     * calls event_create.
     */
    int (*event_create_sleeping)(leat_device *device, leat_event *out);
    /**
     * Whether the event is complete: 1 too if it was never recorded. Does not
     * block. May be NULL: leat then waits for it.
     */
    int (*event_query)(leat_device *device, leat_event event, int *is_complete);
};

/**
 * Registers a type of device; `ops` is borrowed for the life of the process.
 * Errors: LEAT_EINVAL if the name is taken or malformed (1 to 20 letters, no
 * colon), the table is too short, a required entry, which the error names, is
 * NULL, or 16 types are registered. Thread safety: any thread.
 */
LEAT_API int leat_device_register(const leat_device_ops *ops);

#ifdef __cplusplus
}
#endif
#endif
