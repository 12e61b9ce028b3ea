/*
 * command_bench_h2d.c: `leat bench h2d`: copies between host memory and
 * devices over their buses, by the method of nvbandwidth.
 */
#include "base/suggestion.h"
#include "tools/bench/h2d_suite.h"
#include "tools/bench/host_device.h"
#include "tools/bench/report.h"
#include "tools/command.h"

#include <math.h>

struct options {
    const char *devices;
    int64_t streams; /* at most */
    bool has_tests;
    bool json;
};

static struct h2d_suite suite;

static void add_device(const char *name)
{
    leat_device *device;
    if (suite.ndevices == H2D_MOST_DEVICES)
        message_fail("more than %d devices", H2D_MOST_DEVICES);
    output_require(leat_device_find(&device, name));
    suite.column[suite.ndevices++].device = host_device_of(device);
}

/* cuda:0 and on, as far as there are any. */
static void add_all_devices(void)
{
    char name[16] = "cuda:0";
    leat_device *device;
    int status = LEAT_OK;
    for (int i = 1; !status && i <= H2D_MOST_DEVICES; i++) {
        add_device(name);
        snprintf(name, sizeof(name), "cuda:%d", i);
        status = leat_device_find(&device, name);
    }
    if (status && status != LEAT_EINVAL)
        output_require(status);
}

/* "cuda:0,cuda:1", or "all". */
static void add_devices(const char *list)
{
    char name[32];
    if (!strcmp(list, "all")) {
        add_all_devices();
        return;
    }
    for (size_t size; *list; list += size + (list[size] == ',')) {
        size = strcspn(list, ",");
        if (size == 0 || size >= sizeof(name) || !strcmp(list + size, ","))
            message_fail("\"%s\" is not a list of devices", list);
        snprintf(name, sizeof(name), "%.*s", (int)size, list);
        add_device(name);
    }
}

static int refuse_test(const char *word)
{
    char nearest[64];
    leat__suggestion suggestion = leat__suggestion_of(word);
    for (int test = 0; test < SUITE_TESTS; test++)
        leat__suggestion_consider(&suggestion, suite_tests[test].name);
    leat__suggestion_write(&suggestion, "", nearest, sizeof(nearest));
    (void)leat_error(LEAT_EINVAL,
                     "no test is called '%s'%s%s; leat help bench h2d has the "
                     "names of all",
                     word, *nearest ? "" : ", nor begins so", nearest);
    return OPTION_ERROR_LINE;
}

/* Names of tests, or how they begin, separated by commas. */
static int option_tests(const struct option_spec *spec, const char *text)
{
    char word[64];
    bool *has_tests = spec->out;
    for (size_t size; *text; text += size + (text[size] == ',')) {
        size = strcspn(text, ",");
        snprintf(word, sizeof(word), "%.*s", (int)size, text);
        bool is_known = false;
        for (int test = 0; size > 0 && test < SUITE_TESTS; test++)
            if (!strncmp(suite_tests[test].name, word, strlen(word)))
                suite.wanted[test] = is_known = true;
        if (!is_known)
            return refuse_test(word);
        *has_tests = true;
    }
    return *has_tests ? 0 : -1;
}

/* Without --test all tests that say something new. */
static void choose_tests(void)
{
    for (int test = 0; test < SUITE_TESTS; test++)
        suite.wanted[test] =
            !suite_tests[test].is_together || suite.ndevices > 1;
}

static void report_sizes(struct report *report,
                         const struct suite_device *column)
{
    int ways = suite_ways(&suite, column->device);
    for (int i = 0; i < suite.nsizes * ways; i++) {
        const struct h2d_case *one = &column->size[i / ways][i % ways];
        const struct figure figures[] = {
            {"kind", NULL, REPORT_TEXT, 0, one->pinned ? "pinned" : "pageable"},
            {"bytes", NULL, REPORT_BYTES, (double)one->bytes, NULL},
            {"streams", NULL, REPORT_COUNT, one->streams, NULL},
            {"gb_per_s", NULL, REPORT_REAL, one->gb_per_s, NULL},
            {"p10", NULL, REPORT_REAL, one->p10, NULL},
            {"p90", NULL, REPORT_REAL, one->p90, NULL},
            {"device", NULL, REPORT_TEXT, 0, leat_device_name(column->device)},
            {"copies", NULL, REPORT_COUNT, one->copies, NULL},
            {"samples", NULL, REPORT_COUNT, one->samples, NULL},
            {"held", NULL, REPORT_FLAG, one->held, NULL},
            {0}};
        report_row_of(report, "results", figures);
    }
}

static void report_latencies(struct report *report,
                             const struct suite_device *column)
{
    for (int i = 0; i < suite.nlatencies * 2; i++) {
        const struct h2d_latency *one = &column->latency[i / 2][i % 2];
        const struct figure figures[] = {
            {"direction", NULL, REPORT_TEXT, 0,
             one->to_host ? "to host" : "to device"},
            {"bytes", NULL, REPORT_BYTES, (double)one->bytes, NULL},
            {"device", NULL, REPORT_TEXT, 0, leat_device_name(column->device)},
            {"copy_us", NULL, REPORT_REAL, one->copy.median, NULL},
            {"copy_p10", NULL, REPORT_REAL, one->copy.p10, NULL},
            {"copy_p90", NULL, REPORT_REAL, one->copy.p90, NULL},
            {"submit_us", NULL, REPORT_REAL, one->submit.median, NULL},
            {"submit_p10", NULL, REPORT_REAL, one->submit.p10, NULL},
            {"submit_p90", NULL, REPORT_REAL, one->submit.p90, NULL},
            {0}};
        report_row_of(report, "latency", figures);
    }
}

/* Of that row, NAN where it has no single node. */
static double node_of(int test, int row)
{
    bool is_known = !suite_tests[test].is_together && suite.row[row] >= 0;
    return is_known ? suite.row[row] : NAN;
}

static void report_test(struct report *report, int test)
{
    for (int i = 0; i < suite.nrows * suite.ndevices; i++) {
        int row = i / suite.ndevices, column = i % suite.ndevices;
        const struct h2d_case *one = &suite.cell[test][row][column];
        const char *name = leat_device_name(suite.column[column].device);
        const struct figure figures[] = {
            {"name", NULL, REPORT_TEXT, 0, suite_tests[test].name},
            {"device", NULL, REPORT_TEXT, 0, name},
            {"node", NULL, REPORT_COUNT, node_of(test, row), NULL},
            {"bytes", NULL, REPORT_BYTES, (double)one->bytes, NULL},
            {"gb_per_s", NULL, REPORT_REAL, one->gb_per_s, NULL},
            {"p10", NULL, REPORT_REAL, one->p10, NULL},
            {"p90", NULL, REPORT_REAL, one->p90, NULL},
            {"copies", NULL, REPORT_COUNT, one->copies, NULL},
            {"samples", NULL, REPORT_COUNT, one->samples, NULL},
            {"held", NULL, REPORT_FLAG, one->held, NULL},
            {0}};
        if (!isnan(one->gb_per_s))
            report_row_of(report, "tests", figures);
    }
}

/* The first device, as an object of its own. */
static void report_device(struct report *report)
{
    const struct suite_device *first = &suite.column[0];
    const struct pci_device *pci = &first->pci;
    const leat_device_description *what = &first->description;
    const char *name = leat_device_name(first->device);
    const struct figure figures[] = {
        {"samples", NULL, REPORT_COUNT, H2D_SAMPLES, NULL},
        {"device.name", NULL, REPORT_TEXT, 0, name},
        {"device.model", NULL, REPORT_TEXT, 0, pci->model},
        {"device.bus_id", NULL, REPORT_TEXT, 0, what->bus_id},
        {"device.driver", NULL, REPORT_TEXT, 0, pci->driver},
        {"device.driver_cuda", NULL, REPORT_COUNT, what->driver_version, NULL},
        {"device.runtime_cuda", NULL, REPORT_COUNT, what->runtime_version,
         NULL},
        {"device.capability", NULL, REPORT_COUNT, what->capability, NULL},
        {"device.link.speed", NULL, REPORT_TEXT, 0, pci->link_speed},
        {"device.link.width", NULL, REPORT_COUNT, pci->link_width, NULL},
        {"device.link.most_speed", NULL, REPORT_TEXT, 0, pci->most_speed},
        {"device.link.most_width", NULL, REPORT_COUNT, pci->most_width, NULL},
        {0}};
    report_figures(report, figures);
}

static void report_devices(struct report *report)
{
    for (int i = 0; i < suite.ndevices; i++) {
        const struct suite_device *one = &suite.column[i];
        const struct figure figures[] = {
            {"name", NULL, REPORT_TEXT, 0, leat_device_name(one->device)},
            {"model", NULL, REPORT_TEXT, 0, one->pci.model},
            {"bus_id", NULL, REPORT_TEXT, 0, one->description.bus_id},
            {"node", NULL, REPORT_COUNT, one->node < 0 ? NAN : one->node, NULL},
            {"processors", NULL, REPORT_COUNT,
             one->processors ? one->processors : NAN, NULL},
            {0}};
        report_row_of(report, "devices", figures);
    }
}

static int print_json(struct report *report)
{
    for (int i = 0; i < suite.ndevices; i++)
        if (suite.wanted[SUITE_TEST_SIZES])
            report_sizes(report, &suite.column[i]);
    for (int i = 0; i < suite.ndevices; i++)
        report_latencies(report, &suite.column[i]);
    for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++)
        report_test(report, test);
    for (int i = 0; i < suite.nnotes; i++) {
        const struct figure figures[] = {
            {"text", NULL, REPORT_TEXT, 0, suite.note[i]}, {0}};
        report_row_of(report, "notes", figures);
    }
    report_devices(report);
    report_device(report);
    return report_end(report);
}

static void print_device(const struct suite_device *column)
{
    const struct pci_device *pci = &column->pci;
    const leat_device_description *what = &column->description;
    const char *name = leat_device_name(column->device);
    if (column->device->ops->unified) {
        printf("%s: computes in host memory; its copies are memcpy\n", name);
        return;
    }
    printf("%s: %s at %s, driver %s (CUDA %d.%d), runtime %d.%d\n", name,
           pci->model, what->bus_id[0] ? what->bus_id : "an unknown address",
           pci->driver, what->driver_version / 1000,
           what->driver_version % 1000 / 10, what->runtime_version / 1000,
           what->runtime_version % 1000 / 10);
    printf("link: %s, %d lanes, of %s, %d lanes\n", pci->link_speed,
           pci->link_width, pci->most_speed, pci->most_width);
    if (column->node >= 0)
        printf("NUMA node %d, %s\n", column->node,
               column->processors
                   ? output_count(column->processors, "processor", "processors")
                   : "on none of its processors");
}

/* A table of its own, with a header, after an empty line. */
static void begin_table(struct report *report, const char *title,
                        const struct suite_device *column)
{
    report->rows = 0;
    printf("\n%s%s%s\n", title, suite.ndevices > 1 && column ? ", " : "",
           suite.ndevices > 1 && column ? leat_device_name(column->device)
                                        : "");
}

static void print_sizes(struct report *report,
                        const struct suite_device *column)
{
    bool is_host = column->device->ops->unified;
    begin_table(report,
                is_host ? "memcpy CPU -> CPU bandwidth (GB/s)"
                        : "memcpy CE CPU -> GPU bandwidth (GB/s)",
                column);
    for (int size = 0; size < suite.nsizes; size++) {
        report_row(report, "results");
        report_line(report, NULL, "bytes", REPORT_TEXT, 0,
                    output_size((int64_t)suite.size[size]));
        for (int way = 0; way < suite_ways(&suite, column->device); way++) {
            char name[32];
            snprintf(name, sizeof(name), "%s x%d",
                     way < suite.nstreams && !is_host ? "pinned" : "pageable",
                     suite.streams[way % suite.nstreams]);
            report_line(report, NULL, name, REPORT_REAL,
                        column->size[size][way].gb_per_s, NULL);
        }
        report_row_end(report);
    }
}

static void print_latencies(struct report *report,
                            const struct suite_device *column)
{
    begin_table(report, "latency of a copy, and of its call alone (us)",
                column);
    for (int i = 0; i < suite.nlatencies; i++) {
        const struct h2d_latency *way = column->latency[i];
        const struct figure figures[] = {
            {NULL, "bytes", REPORT_TEXT, 0, output_size((int64_t)way[0].bytes)},
            {NULL, "to device", REPORT_REAL, way[0].copy.median, NULL},
            {NULL, "call", REPORT_REAL, way[0].submit.median, NULL},
            {NULL, "to host", REPORT_REAL, way[1].copy.median, NULL},
            {NULL, "call", REPORT_REAL, way[1].submit.median, NULL},
            {0}};
        report_row_of(report, "latency", figures);
    }
}

/* Of a row there are figures, or not. Returns their sum. */
static double print_row(struct report *report, int test, int row)
{
    char label[32] = "own node";
    double sum = 0;
    if (!isnan(node_of(test, row)))
        snprintf(label, sizeof(label), "node %d", suite.row[row]);
    report_row(report, "tests");
    report_line(report, NULL, "", REPORT_TEXT, 0, label);
    for (int i = 0; i < suite.ndevices; i++) {
        double rate = suite.cell[test][row][i].gb_per_s;
        report_line(report, NULL, leat_device_name(suite.column[i].device),
                    REPORT_REAL, rate, NULL);
        sum += isnan(rate) ? 0 : rate;
    }
    report_row_end(report);
    return sum;
}

static void print_test(struct report *report, int test)
{
    double sum = 0;
    bool is_measured = false;
    for (int row = 0; row < suite.nrows; row++)
        for (int i = 0; i < suite.ndevices; i++)
            is_measured |= !isnan(suite.cell[test][row][i].gb_per_s);
    if (!is_measured)
        return;
    begin_table(report, suite_tests[test].name, NULL);
    printf("%s bandwidth (GB/s)\n", suite_tests[test].title);
    for (int row = 0; row < suite.nrows; row++)
        if (row == 0 || !suite_tests[test].is_together)
            sum += print_row(report, test, row);
    printf("SUM %s %.2f\n", suite_tests[test].name, sum);
}

static int print_tables(struct report *report)
{
    for (int i = 0; i < suite.ndevices; i++)
        print_device(&suite.column[i]);
    for (int i = 0; i < suite.ndevices; i++) {
        if (suite.wanted[SUITE_TEST_SIZES])
            print_sizes(report, &suite.column[i]);
        if (suite.wanted[SUITE_TEST_LATENCY])
            print_latencies(report, &suite.column[i]);
    }
    for (int test = SUITE_TEST_FIRST; test < SUITE_TESTS; test++)
        print_test(report, test);
    printf("\n");
    for (int i = 0; i < suite.nnotes; i++)
        printf("note: %s\n", plain_text(suite.note[i]));
    printf("medians of %d to %d samples by the device's clock, data verified\n",
           H2D_LEAST_SAMPLES, H2D_SAMPLES);
    return report_end(report);
}

static int run(const struct options *options)
{
    struct report report;
    interrupt_catch();
    add_devices(options->devices);
    if (!options->has_tests)
        choose_tests();
    suite.most_streams = (int)options->streams;
    suite_measure(&suite, options->json);
    report_begin(&report, options->json);
    return options->json ? print_json(&report) : print_tables(&report);
}

int command_bench_h2d(int argc, char **argv)
{
    struct options options = {.devices = "cuda:0", .streams = 4};
    suite.bytes[0] = 4096;
    suite.bytes[1] = INT64_C(1) << 29;
    const struct option_spec specs[] = {
        {"device", "NAMES", "where to: cuda:0, cuda:0,cuda:1, all (cuda:0)",
         option_text, &options.devices, 0, 0},
        {"bytes", "A:B", "copies of A to B bytes (4K:512M)", option_byte_range,
         suite.bytes, 0, 0},
        {"streams", "N", "by up to so many streams (4)", option_int,
         &options.streams, 1, H2D_MOST_STREAMS},
        {"test", "NAMES", "these tests only, or those that begin so (all)",
         option_tests, &options.has_tests, 0, 0},
        option_flag("json", "print one JSON object", &options.json),
        {0}};
    const struct usage usage = {
        .command = "bench h2d",
        .arguments = "[options]",
        .about = "Measures copies between host memory, pinned, pageable and\n"
                 "mapped, and devices, comparably with nvbandwidth. Tests:\n"
                 "sizes, latency, host_to_device_memcpy_ce,\n"
                 "device_to_host_memcpy_ce,\n"
                 "host_to_device_bidirectional_memcpy_ce,\n"
                 "device_to_host_bidirectional_memcpy_ce,\n"
                 "host_to_all_memcpy_ce, all_to_host_memcpy_ce,\n"
                 "host_to_device_memcpy_sm, device_to_host_memcpy_sm; of the\n"
                 "device cpu: sizes, latency, host_memcpy.",
        .options = specs,
    };
    option_parse(&usage, argc, argv);
    return run(&options);
}
