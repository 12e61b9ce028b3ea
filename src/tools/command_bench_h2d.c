/*
 * command_bench_h2d.c: `leat bench h2d`: the rate of copies to a device over
 * its bus, of pinned and of pageable memory, by one stream and by several.
 */
#include "tools/bench/h2d.h"
#include "tools/bench/pci.h"
#include "tools/bench/report.h"
#include "tools/command.h"

enum { MOST_SIZES = 9, MOST_WAYS = 10 };

struct h2d_options {
    const char *device;
    int64_t bytes[2]; /* sizes of copies, from and to */
    int64_t streams;  /* at most */
    bool json;
};

struct h2d_bench {
    leat_device *device;
    leat_device_description description;
    struct pci_device pci;
    int nsizes;
    size_t size[MOST_SIZES];
    int nstreams;
    int streams[MOST_WAYS / 2];
    struct h2d_case cases[MOST_SIZES][MOST_WAYS]; /* pinned, then pageable */
};

/* 4 KiB to 256 MiB by fours, and streams by twos, as far as is asked for. */
static void choose_cases(struct h2d_bench *bench,
                         const struct h2d_options *options)
{
    const int64_t *bytes = options->bytes;
    for (size_t size = 4096; size <= (size_t)256 << 20; size *= 4)
        if ((int64_t)size >= bytes[0] && (int64_t)size <= bytes[1])
            bench->size[bench->nsizes++] = size;
    for (int n = 1; n <= (int)options->streams; n *= 2)
        bench->streams[bench->nstreams++] = n;
    if (!bench->nsizes)
        message_fail("no size to measure lies in --bytes %lld:%lld; they are "
                     "4K, 16K and so on to 256M",
                     (long long)bytes[0], (long long)bytes[1]);
}

static void measure_cases(struct h2d_bench *bench, struct h2d *h2d, bool silent)
{
    struct progress progress;
    int ways = 2 * bench->nstreams;
    progress_start(&progress, "cases", (int64_t)bench->nsizes * ways, silent);
    for (int i = 0; i < bench->nsizes * ways; i++) {
        int way = i % ways;
        struct h2d_case *what = &bench->cases[i / ways][way];
        *what = (struct h2d_case){
            .pinned = way < bench->nstreams,
            .bytes = bench->size[i / ways],
            .streams = bench->streams[way % bench->nstreams],
        };
        h2d_measure(h2d, what);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
}

static void measure(struct h2d_bench *bench, const struct h2d_options *options)
{
    choose_cases(bench, options);
    output_require(leat_device_find(&bench->device, options->device));
    leat_device *device = bench->device;
    struct h2d *h2d = h2d_open(device, bench->size[bench->nsizes - 1],
                               bench->streams[bench->nstreams - 1]);
    if (!h2d)
        message_fail("%s", leat_last_error());
    if (device->ops->describe)
        output_require(device->ops->describe(device, &bench->description));
    measure_cases(bench, h2d, options->json);
    /* Only now: the link of an idle device may be at a lower speed. */
    pci_read(&bench->pci, "", bench->description.bus_id);
    h2d_close(h2d);
}

static void report_results(struct report *report, const struct h2d_bench *bench)
{
    for (int i = 0; i < bench->nsizes * 2 * bench->nstreams; i++) {
        const struct h2d_case *one =
            &bench->cases[i / (2 * bench->nstreams)][i % (2 * bench->nstreams)];
        const struct figure figures[] = {
            {"kind", NULL, REPORT_TEXT, 0, one->pinned ? "pinned" : "pageable"},
            {"bytes", NULL, REPORT_BYTES, (double)one->bytes, NULL},
            {"streams", NULL, REPORT_COUNT, one->streams, NULL},
            {"gb_per_s", NULL, REPORT_REAL, one->gb_per_s, NULL},
            {"p10", NULL, REPORT_REAL, one->p10, NULL},
            {"p90", NULL, REPORT_REAL, one->p90, NULL},
            {0}};
        report_row_of(report, "results", figures);
    }
}

static int print_json(struct report *report, const struct h2d_bench *bench)
{
    const struct pci_device *pci = &bench->pci;
    const leat_device_description *what = &bench->description;
    const char *name = leat_device_name(bench->device);
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
    report_results(report, bench);
    report_figures(report, figures);
    return report_end(report);
}

static void print_device(const struct h2d_bench *bench)
{
    const struct pci_device *pci = &bench->pci;
    const leat_device_description *what = &bench->description;
    printf("%s: %s at %s, driver %s (CUDA %d.%d), runtime %d.%d\n",
           leat_device_name(bench->device), pci->model,
           what->bus_id[0] ? what->bus_id : "an unknown address", pci->driver,
           what->driver_version / 1000, what->driver_version % 1000 / 10,
           what->runtime_version / 1000, what->runtime_version % 1000 / 10);
    printf("link: %s, %d lanes, of %s, %d lanes\n\n", pci->link_speed,
           pci->link_width, pci->most_speed, pci->most_width);
}

static int print_table(struct report *report, const struct h2d_bench *bench)
{
    print_device(bench);
    printf("memcpy CE CPU -> GPU bandwidth (GB/s)\n");
    for (int size = 0; size < bench->nsizes; size++) {
        report_row(report, "results");
        report_line(report, NULL, "bytes", REPORT_TEXT, 0,
                    output_size((int64_t)bench->size[size]));
        for (int way = 0; way < 2 * bench->nstreams; way++) {
            char name[32];
            snprintf(name, sizeof(name), "%s x%d",
                     way < bench->nstreams ? "pinned" : "pageable",
                     bench->streams[way % bench->nstreams]);
            report_line(report, NULL, name, REPORT_REAL,
                        bench->cases[size][way].gb_per_s, NULL);
        }
        report_row_end(report);
    }
    printf("\nmedians of %d samples by the device's clock, data verified\n",
           H2D_SAMPLES);
    return report_end(report);
}

static int run(const struct h2d_options *options)
{
    interrupt_catch();
    static struct h2d_bench bench;
    measure(&bench, options);
    struct report report;
    report_begin(&report, options->json);
    return options->json ? print_json(&report, &bench)
                         : print_table(&report, &bench);
}

int command_bench_h2d(int argc, char **argv)
{
    struct h2d_options options = {
        .device = "cuda:0", .bytes = {4096, INT64_C(1) << 28}, .streams = 4};
    const struct option_spec specs[] = {
        {"device", "NAME", "where to (cuda:0)", option_text, &options.device, 0,
         0},
        {"bytes", "A:B", "copies of A to B bytes (4K:256M)", option_byte_range,
         options.bytes, 0, 0},
        {"streams", "N", "by up to so many streams (4)", option_int,
         &options.streams, 1, 16},
        option_flag("json", "print one JSON object", &options.json),
        {0}};
    const struct usage usage = {
        .command = "bench h2d",
        .arguments = "[options]",
        .about = "Measures the bandwidth from host memory, pinned and\n"
                 "pageable, to a device, by one stream and by several.",
        .options = specs,
    };
    option_parse(&usage, argc, argv);
    return run(&options);
}
