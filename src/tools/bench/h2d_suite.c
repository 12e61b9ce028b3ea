#include "tools/bench/h2d_suite.h"

#include "tools/bench/host.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

#include <leat/ext/reader.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* No copy is larger. */
static const size_t most_bytes = (size_t)512 << 20;
/* Sizes are this times powers of 4; less memory than this is none. */
enum { LEAST_BYTES = 4096 };
/* Sizes of latencies are 4 times powers of 4. */
enum { LATENCY_BYTES = 4 };
/* Buffers in host memory for each device: pinned, fetched back, pageable. */
enum { HOST_BUFFERS = 3 };

#define ONE(...)                                                               \
    {                                                                          \
        .pinned = true, .streams = 1, __VA_ARGS__                              \
    }

const struct suite_test suite_tests[SUITE_TESTS] = {
    [SUITE_TEST_SIZES] = {.name = "sizes"},
    [SUITE_TEST_LATENCY] = {.name = "latency"},
    {.name = "host_to_device_memcpy_ce",
     .title = "memcpy CE CPU(row) -> GPU(column)",
     .what = ONE(.to_host = false)},
    {.name = "device_to_host_memcpy_ce",
     .title = "memcpy CE CPU(row) <- GPU(column)",
     .what = ONE(.to_host = true)},
    {.name = "host_to_device_bidirectional_memcpy_ce",
     .title = "memcpy CE CPU(row) <-> GPU(column)",
     .what = ONE(.both = true)},
    {.name = "device_to_host_bidirectional_memcpy_ce",
     .title = "memcpy CE CPU(row) <-> GPU(column)",
     .what = ONE(.to_host = true, .both = true)},
    {.name = "host_to_all_memcpy_ce",
     .title = "memcpy CE CPU(row) -> GPU(column)",
     .what = ONE(.to_host = false),
     .is_together = true},
    {.name = "all_to_host_memcpy_ce",
     .title = "memcpy CE CPU(row) <- GPU(column)",
     .what = ONE(.to_host = true),
     .is_together = true},
    {.name = "host_to_device_memcpy_sm",
     .title = "memcpy SM CPU(row) -> GPU(column)",
     .what = ONE(.by_kernel = true)},
    {.name = "device_to_host_memcpy_sm",
     .title = "memcpy SM CPU(row) <- GPU(column)",
     .what = ONE(.to_host = true, .by_kernel = true)},
    {.name = "host_memcpy",
     .title = "memcpy CPU(row) -> CPU(column)",
     .what = ONE(.to_host = false),
     .is_host = true},
};

/* Once, however often it is so. */
__attribute__((format(printf, 2, 3))) static void
add_note(struct h2d_suite *suite, const char *format, ...)
{
    va_list arguments;
    if (suite->nnotes == SUITE_NOTES)
        return;
    char *note = suite->note[suite->nnotes++];
    va_start(arguments, format);
    vsnprintf(note, sizeof(suite->note[0]), format, arguments);
    va_end(arguments);
    for (int i = 0; i < suite->nnotes - 1; i++)
        if (!strcmp(suite->note[i], note)) {
            suite->nnotes--;
            return;
        }
}

bool suite_is_for(int test, const leat_device *device)
{
    const leat_device_ops *ops = device->ops;
    const struct suite_test *one = &suite_tests[test];
    if (test < SUITE_TEST_FIRST)
        return true;
    return one->is_host == (ops->unified != 0) &&
           (!one->what.by_kernel || ops->kernel_copy);
}

int suite_ways(const struct h2d_suite *suite, const leat_device *device)
{
    return device->ops->unified ? 1 : 2 * suite->nstreams;
}

/* There is something to measure. */
static void check_tests(const struct h2d_suite *suite)
{
    for (int i = 0; i < suite->ndevices; i++)
        for (int test = 0; test < SUITE_TESTS; test++)
            if (suite->wanted[test] &&
                suite_is_for(test, suite->column[i].device))
                return;
    message_fail("no test that was asked for is for %s",
                 leat_device_name(suite->column[0].device));
}

/* 4 KiB to 256 MiB by fours, and streams by twos, as far as is asked for. */
static void choose_cases(struct h2d_suite *suite)
{
    const int64_t *bytes = suite->bytes;
    for (size_t size = LEAST_BYTES; size <= most_bytes; size *= 4)
        if ((int64_t)size >= bytes[0] && (int64_t)size <= bytes[1])
            suite->size[suite->nsizes++] = size;
    for (int n = 1; n <= suite->most_streams; n *= 2)
        suite->streams[suite->nstreams++] = n;
    if (!suite->nsizes && suite->wanted[SUITE_TEST_SIZES])
        message_fail("no size to measure lies in --bytes %lld:%lld; they are "
                     "4K, 16K and so on to 256M",
                     (long long)bytes[0], (long long)bytes[1]);
    suite->most =
        bytes[1] < (int64_t)most_bytes ? (size_t)bytes[1] : most_bytes;
    if (suite->most < LEAST_BYTES)
        message_fail("--bytes %lld:%lld: copies have %d bytes and more",
                     (long long)bytes[0], (long long)bytes[1], LEAST_BYTES);
    suite->most -= suite->most % LEAST_BYTES;
}

/* The least size that is worth measuring. */
static size_t least_bytes(const struct h2d_suite *suite)
{
    return suite->wanted[SUITE_TEST_SIZES] ? suite->size[0] : LEAST_BYTES;
}

/* Half of what the host can give is left to others. */
static void spare_memory(struct h2d_suite *suite)
{
    int64_t available = host_available("");
    int64_t buffers = (int64_t)HOST_BUFFERS * suite->ndevices;
    size_t before = suite->most;
    while ((int64_t)suite->most > available / 2 / buffers &&
           suite->most / 2 >= least_bytes(suite))
        suite->most = suite->most / 2 / LEAST_BYTES * LEAST_BYTES;
    if (suite->most < before)
        add_note(suite, "copies of up to %s, not %s: the host has %s available",
                 output_size((int64_t)suite->most),
                 output_size((int64_t)before), output_bytes(available));
}

/* The rows: nodes with memory, if the device can pin memory on each. */
static void choose_rows(struct h2d_suite *suite)
{
    bool has_choice = true;
    for (int i = 0; i < suite->ndevices; i++)
        if (!suite->column[i].device->ops->host_alloc_on)
            has_choice = false;
    suite->nrows = has_choice ? host_nodes("", suite->row, SUITE_ROWS) : 0;
    if (suite->nrows == 0)
        suite->row[suite->nrows++] = -1;
    for (int test = 0; test < SUITE_TESTS; test++)
        for (int row = 0; row < SUITE_ROWS; row++)
            for (int i = 0; i < H2D_MOST_DEVICES; i++)
                suite->cell[test][row][i] =
                    (struct h2d_case){.gb_per_s = NAN, .p10 = NAN, .p90 = NAN};
}

/* On the device's node, so that neither the host's calls nor its memcpy cross
   to another one. */
static void run_on_node(struct h2d_suite *suite, struct suite_device *column)
{
    const char *name = leat_device_name(column->device);
    const leat_device_ops *ops = column->device->ops;
    column->node = ops->numa_node ? ops->numa_node(column->device) : -1;
    column->processors = host_run_on("", column->node);
    if (ops->unified)
        return;
    if (column->node < 0)
        add_note(suite,
                 "%s: its NUMA node is unknown: the process ran anywhere",
                 name);
    else if (column->processors == 0)
        add_note(suite,
                 "%s: the process may not run on its NUMA node %d, and ran "
                 "elsewhere",
                 name, column->node);
}

static bool is_wanted(const struct h2d_suite *suite, int test,
                      const struct suite_device *column)
{
    return suite->wanted[test] && suite_is_for(test, column->device);
}

/* Whether that, or any of the tests of a single device with a row for each
   node. */
static bool has_single_tests(const struct h2d_suite *suite,
                             const struct suite_device *column)
{
    for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++)
        if (is_wanted(suite, test, column) && !suite_tests[test].is_together)
            return true;
    return false;
}

/* With as much memory as there is: copies are halved until it is enough. */
static struct h2d *open_device(struct h2d_suite *suite, leat_device *device,
                               struct h2d_options options)
{
    size_t before = suite->most;
    for (;;) {
        options.bytes = suite->most;
        struct h2d *h2d = h2d_open(device, &options);
        if (h2d && suite->most < before)
            add_note(suite,
                     "copies of up to %s, not %s: there is no more memory",
                     output_size((int64_t)suite->most),
                     output_size((int64_t)before));
        if (h2d && !h2d_holds(h2d) && !device->ops->unified)
            add_note(suite,
                     "%s: the host's calls count: a stream cannot be held, or "
                     "launches block",
                     leat_device_name(device));
        if (h2d) {
            h2d_warm_up(h2d);
            return h2d;
        }
        if (suite->most / 2 < least_bytes(suite))
            message_fail("%s", leat_last_error());
        suite->most = suite->most / 2 / LEAST_BYTES * LEAST_BYTES;
    }
}

/* Counts the cases for a progress bar, and measures them. */
struct cases {
    struct progress progress;
    int64_t done;
};

static void note_fewer_copies(struct h2d_suite *suite,
                              const struct h2d_case *what)
{
    if (what->has_fewer)
        add_note(suite, "samples of fewer copies: the host did not enqueue "
                        "more of them in time");
}

static void measure_case(struct h2d_suite *suite, struct cases *cases,
                         struct h2d *h2d, struct h2d_case *what)
{
    h2d_measure(h2d, what);
    note_fewer_copies(suite, what);
    progress_update(&cases->progress, ++cases->done);
}

static void measure_sizes(struct h2d_suite *suite, struct cases *cases,
                          struct suite_device *column)
{
    int ways = suite_ways(suite, column->device);
    struct h2d *h2d = open_device(
        suite, column->device,
        (struct h2d_options){.streams = suite->streams[suite->nstreams - 1],
                             .pageable = true});
    while (suite->nsizes && suite->size[suite->nsizes - 1] > suite->most)
        suite->nsizes--;
    for (int i = 0; i < suite->nsizes * ways; i++) {
        int way = i % ways;
        struct h2d_case *what = &column->size[i / ways][way];
        *what = (struct h2d_case){
            .pinned = ways > 1 && way < suite->nstreams,
            .bytes = suite->size[i / ways],
            .streams = suite->streams[way % suite->nstreams],
        };
        measure_case(suite, cases, h2d, what);
    }
    int node = h2d_node(h2d, false);
    if (column->node >= 0 && node >= 0 && node != column->node)
        add_note(suite, "%s: pageable memory lies on NUMA node %d, not %d",
                 leat_device_name(column->device), node, column->node);
    h2d_close(h2d);
}

static void measure_latencies(struct h2d_suite *suite, struct cases *cases,
                              struct suite_device *column)
{
    size_t bytes = LATENCY_BYTES;
    struct h2d *h2d =
        open_device(suite, column->device,
                    (struct h2d_options){.streams = 1, .to_host = true});
    for (suite->nlatencies = 0;
         suite->nlatencies < SUITE_LATENCIES && bytes <= suite->most;
         bytes *= 4, suite->nlatencies++)
        for (int way = 0; way < 2; way++) {
            struct h2d_latency *what = &column->latency[suite->nlatencies][way];
            *what = (struct h2d_latency){.bytes = bytes, .to_host = way == 1};
            h2d_measure_latency(h2d, what);
        }
    h2d_close(h2d);
    progress_update(&cases->progress, ++cases->done);
}

/* Whether pinned memory is known to lie on another node than was asked for. */
static bool lies_elsewhere(struct h2d_suite *suite, const struct h2d *h2d,
                           const leat_device *device, int node)
{
    int found = h2d_node(h2d, true);
    bool is_elsewhere = node >= 0 && found >= 0 && found != node;
    if (is_elsewhere)
        add_note(suite, "%s: memory for NUMA node %d lies on node %d",
                 leat_device_name(device), node, found);
    else if (node >= 0 && found < 0 && suite->nrows > 1)
        add_note(suite,
                 "%s: whether memory for NUMA node %d lies there is unknown",
                 leat_device_name(device), node);
    return is_elsewhere;
}

/* A row of the matrix, in the device's column. */
static void measure_row(struct h2d_suite *suite, struct cases *cases, int row,
                        int column)
{
    leat_device *device = suite->column[column].device;
    int node = suite->row[row];
    struct h2d *h2d = open_device(suite, device,
                                  (struct h2d_options){.streams = 2,
                                                       .to_host = true,
                                                       .has_node = node >= 0,
                                                       .node = node});
    bool is_elsewhere = lies_elsewhere(suite, h2d, device, node);
    for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++) {
        if (!is_wanted(suite, test, &suite->column[column]) ||
            suite_tests[test].is_together || is_elsewhere)
            continue;
        struct h2d_case *what = &suite->cell[test][row][column];
        *what = suite_tests[test].what;
        what->bytes = suite->most;
        measure_case(suite, cases, h2d, what);
    }
    h2d_close(h2d);
}

/* Of all devices at once, with the memory of each on its own node. */
static void measure_together(struct h2d_suite *suite, struct cases *cases,
                             int test)
{
    struct h2d *h2d[H2D_MOST_DEVICES];
    struct h2d_case what[H2D_MOST_DEVICES];
    int column[H2D_MOST_DEVICES];
    int n = 0;
    for (int i = 0; i < suite->ndevices; i++)
        if (is_wanted(suite, test, &suite->column[i])) {
            column[n] = i;
            h2d[n++] = open_device(
                suite, suite->column[i].device,
                (struct h2d_options){.streams = 1, .to_host = true});
        }
    for (int i = 0; i < n; i++) {
        what[i] = suite_tests[test].what;
        what[i].bytes = suite->most;
    }
    if (n > 0)
        h2d_measure_together(h2d, what, n);
    for (int i = 0; i < n; i++) {
        suite->cell[test][0][column[i]] = what[i];
        note_fewer_copies(suite, &what[i]);
        h2d_close(h2d[i]);
    }
    progress_update(&cases->progress, ++cases->done);
}

static int64_t count_cases(const struct h2d_suite *suite)
{
    int64_t n = 0;
    for (int i = 0; i < suite->ndevices; i++) {
        const struct suite_device *column = &suite->column[i];
        if (suite->wanted[SUITE_TEST_SIZES])
            n += (int64_t)suite->nsizes * suite_ways(suite, column->device);
        n += suite->wanted[SUITE_TEST_LATENCY];
        for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++)
            if (is_wanted(suite, test, column) &&
                !suite_tests[test].is_together)
                n += suite->nrows;
    }
    for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++)
        n += suite->wanted[test] && suite_tests[test].is_together;
    return n;
}

static void measure_column(struct h2d_suite *suite, struct cases *cases, int i)
{
    struct suite_device *column = &suite->column[i];
    leat_device *device = column->device;
    run_on_node(suite, column);
    if (device->ops->describe)
        output_require(device->ops->describe(device, &column->description));
    if (suite->wanted[SUITE_TEST_SIZES])
        measure_sizes(suite, cases, column);
    if (suite->wanted[SUITE_TEST_LATENCY])
        measure_latencies(suite, cases, column);
    for (int row = 0; row < suite->nrows; row++)
        if (has_single_tests(suite, column))
            measure_row(suite, cases, row, i);
    /* Only now: the link of an idle device may be at a lower speed. */
    pci_read(&column->pci, "", column->description.bus_id);
}

void suite_measure(struct h2d_suite *suite, bool is_silent)
{
    struct cases cases = {.done = 0};
    check_tests(suite);
    choose_cases(suite);
    spare_memory(suite);
    choose_rows(suite);
    progress_start(&cases.progress, "cases", count_cases(suite), is_silent);
    for (int i = 0; i < suite->ndevices; i++)
        measure_column(suite, &cases, i);
    for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++)
        if (suite->wanted[test] && suite_tests[test].is_together)
            measure_together(suite, &cases, test);
    progress_finish(&cases.progress);
}
