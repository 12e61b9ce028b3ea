/* h2d_setup.h: the memory and the streams that copies are measured with. */
#ifndef LEAT_TOOLS_BENCH_H2D_SETUP_H
#define LEAT_TOOLS_BENCH_H2D_SETUP_H

#include <leat/ext/device.h>

#include <stdbool.h>

enum { H2D_MOST_STREAMS = 16 };

/* The memory that copies need. */
struct h2d_options {
    size_t bytes;  /* of the largest copy */
    int streams;   /* at most */
    bool pageable; /* pageable memory, too */
    bool to_host;  /* copies from the device, too */
    bool has_node;
    int node; /* of NUMA, for pinned memory; else where the device puts it */
};

struct h2d {
    leat_device *device;
    struct h2d_options options;
    void *pinned;
    void *back; /* pinned */
    void *pageable;
    void *memory; /* the device's, that copies go to */
    void *source; /* the device's, that copies come from */
    uint32_t *release;
    bool holds;        /* a stream can be held while the host goes on */
    int most_enqueued; /* copies in a sample, of all streams */
    int nstreams;
    leat_stream stream[H2D_MOST_STREAMS];
    leat_event joined[H2D_MOST_STREAMS]; /* untimed */
    leat_event done[H2D_MOST_STREAMS];
    leat_event start;
    uint64_t seed;
};

/*
 * Takes memory and streams. NULL, with an error line: there is not enough
 * memory. As in the rest, other errors end the program, also those of a device
 * that does not time its events.
 */
struct h2d *h2d_open(leat_device *device, const struct h2d_options *options);
void h2d_close(struct h2d *h2d);

/*
 * Copies for some tenths of a second: an idle device has slow clocks and a slow
 * link, and the first cases are over before these have risen.
 */
void h2d_warm_up(struct h2d *h2d);

/* The NUMA node of the pinned, or of the pageable memory; below 0: unknown. */
int h2d_node(const struct h2d *h2d, bool pinned);

/* Whether streams are held until all is enqueued: the device can do so, and its
   launches do not block. */
bool h2d_holds(const struct h2d *h2d);

/* Writes the word in pinned memory on which held streams wait: 1 releases them.
 */
void h2d_release(struct h2d *h2d, uint32_t value);

/* As output_require, which must not leave a kernel waiting. */
void h2d_require(struct h2d *h2d, int status);

#endif
