/*
 * h2d_suite.h: what `leat bench h2d` measures: copies by size, latencies, and
 * tests after those of nvbandwidth, on one device or on several.
 */
#ifndef LEAT_TOOLS_BENCH_H2D_SUITE_H
#define LEAT_TOOLS_BENCH_H2D_SUITE_H

#include "tools/bench/h2d.h"
#include "tools/bench/pci.h"

enum {
    SUITE_SIZES = 9,
    SUITE_WAYS = 10,      /* pinned and pageable, by 1 to 16 streams */
    SUITE_LATENCIES = 10, /* 4 bytes to 1 MiB */
    SUITE_TESTS = 11,
    SUITE_ROWS = 16, /* NUMA nodes */
    SUITE_NOTES = 16
};

/* The first two are tables of their own, the others a row for each node. */
enum { SUITE_TEST_SIZES, SUITE_TEST_LATENCY, SUITE_TEST_FIRST };

struct suite_test {
    const char *name; /* nvbandwidth's, where it has the test */
    const char *title;
    struct h2d_case what; /* without bytes */
    bool is_together;     /* all devices at once */
    bool is_host; /* for a device that computes in host memory, not others */
};

extern const struct suite_test suite_tests[SUITE_TESTS];

/* A device that is measured, a column of the tables. */
struct suite_device {
    leat_device *device;
    leat_device_description description;
    struct pci_device pci;
    int node;       /* of NUMA; below 0: unknown */
    int processors; /* of the node, on which the process ran; 0: on any */
    struct h2d_case size[SUITE_SIZES][SUITE_WAYS];  /* pinned ones first */
    struct h2d_latency latency[SUITE_LATENCIES][2]; /* to device, to host */
};

struct h2d_suite {
    /* set by the caller */
    bool wanted[SUITE_TESTS];
    int64_t bytes[2]; /* sizes of copies, from and to */
    int most_streams;
    int ndevices;
    struct suite_device column[H2D_MOST_DEVICES];
    /* the result */
    size_t most; /* bytes of the largest copies, which are those of the tests */
    int nsizes;
    size_t size[SUITE_SIZES];
    int nstreams;
    int streams[SUITE_WAYS / 2];
    int nlatencies;
    int nrows;
    int row[SUITE_ROWS]; /* NUMA nodes; below 0: the device's own */
    /* gb_per_s is NAN where nothing was measured. Tests of all devices at once
       have the first row alone. */
    struct h2d_case cell[SUITE_TESTS][SUITE_ROWS][H2D_MOST_DEVICES];
    int nnotes;
    char note[SUITE_NOTES][256]; /* what differs from what was asked for */
};

/* Whether the device takes part in the test. */
bool suite_is_for(int test, const leat_device *device);

/* Pinned and pageable copies, or those of memory alone, by so many streams. */
int suite_ways(const struct h2d_suite *suite, const leat_device *device);

/* Measures all that is wanted; errors end the program. */
void suite_measure(struct h2d_suite *suite, bool is_silent);

#endif
