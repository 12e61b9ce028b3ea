#include "tools/bench/report.h"

#include "base/thread.h"
#include "tools/bench/bench.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"

#include <leat/status.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The narrowest column; the first one has room for a name. */
enum { COLUMN = 9, FIRST_COLUMN = 25 };

/* What the first processor is called, such as "AMD EPYC". */
static const char *processor_name(void)
{
    static char name[128] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "model name : %127[^\n]", name) == 1)
            break;
    if (file)
        fclose(file);
    return name;
}

void report_begin(struct report *report, int json)
{
    *report = (struct report){.object = json ? json_object() : NULL};
    if (!json)
        printf("%s, %s, leat %s\n", processor_name(),
               output_count(leat__thread_cores(), "core", "cores"),
               leat_version());
}

static json_t *json_value(const struct figure *figure)
{
    if (isnan(figure->value))
        return json_null();
    switch (figure->unit) {
    case REPORT_TEXT:
        return figure->text ? output_text(figure->text) : json_null();
    case REPORT_FLAG:
        return json_boolean(figure->value != 0);
    case REPORT_COUNT:
    case REPORT_BYTES:
        return json_integer((json_int_t)figure->value);
    default:
        return json_real(figure->value);
    }
}

static void set_value(json_t *object, const struct figure *figure)
{
    const char *key = figure->key;
    for (size_t size; key[size = strcspn(key, ".")]; key += size + 1) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)size, key);
        if (!json_object_get(object, name))
            json_object_set_new(object, name, json_object());
        object = json_object_get(object, name);
    }
    json_object_set_new(object, key, json_value(figure));
}

static const char *text_value(const struct figure *figure)
{
    static char text[32];
    double value = figure->value;
    if (isnan(value))
        return "-";
    switch (figure->unit) {
    case REPORT_TEXT:
        return figure->text;
    case REPORT_FLAG:
        return value != 0 ? "yes" : "no";
    case REPORT_COUNT:
        snprintf(text, sizeof(text), "%.0f", value);
        return text;
    case REPORT_REAL:
        snprintf(text, sizeof(text), "%.2f", value);
        return text;
    case REPORT_RATE:
        return output_scaled(value);
    case REPORT_SHARE:
        snprintf(text, sizeof(text), "%.1f", 100 * value);
        return text;
    case REPORT_BYTES:
        return output_bytes((int64_t)value);
    case REPORT_BANDWIDTH:
        return output_bandwidth(value);
    case REPORT_SECONDS:
        return output_time(value);
    case REPORT_MS:
        return output_time(1e-3 * value);
    case REPORT_US:
        return output_time(1e-6 * value);
    case REPORT_NS:
        return output_time(1e-9 * value);
    }
    return "";
}

static void print_line(const struct figure *figure)
{
    if (isnan(figure->value))
        return;
    printf("%-17s %12s", figure->label, text_value(figure));
    if (figure->unit == REPORT_SHARE)
        printf(" %%");
    if (figure->unit != REPORT_TEXT && figure->text)
        printf("%s%s", *figure->text == ',' ? "" : " ", figure->text);
    printf("\n");
}

static int is_end(const struct figure *figure)
{
    return !figure->key && !figure->label;
}

void report_add(struct report *report, const struct figure figures[])
{
    for (; !is_end(figures); figures++)
        if (report->object && figures->key)
            set_value(report->object, figures);
        else if (!report->object && figures->label)
            print_line(figures);
}

/* The labels, or the values below them. */
static int print_cells(const struct figure figures[], int are_labels)
{
    int n = 0;
    for (; !is_end(figures); figures++) {
        if (!figures->label)
            continue;
        int width = (int)strlen(figures->label);
        width = width < COLUMN ? COLUMN : width;
        const char *text = are_labels ? figures->label : text_value(figures);
        if (!n++)
            printf("%-*s", FIRST_COLUMN, text);
        else
            printf(" | %*s", width, text);
    }
    if (n)
        printf("\n");
    return n;
}

void report_row(struct report *report, const char *array,
                const struct figure figures[])
{
    if (!report->object) {
        if (!report->rows)
            report->rows += print_cells(figures, 1);
        print_cells(figures, 0);
        return;
    }
    json_t *rows = json_object_get(report->object, array);
    if (!rows) {
        rows = json_array();
        json_object_set_new(report->object, array, rows);
    }
    json_t *row = json_object();
    for (; !is_end(figures); figures++)
        if (figures->key)
            set_value(row, figures);
    json_array_append_new(rows, row);
}

void report_waits(struct report *report, const struct latency *waits)
{
    report_add(report, (struct figure[]){{"wait_us.p50", "wait p50", REPORT_US,
                                          latency_percentile(waits, .5), NULL},
                                         {"wait_us.p99", "wait p99", REPORT_US,
                                          latency_percentile(waits, .99), NULL},
                                         {"wait_us.max", "wait max", REPORT_US,
                                          latency_longest(waits), NULL},
                                         {0}});
}

void report_allocations(struct report *report, int64_t allocations)
{
    if (bench_allocations() >= 0)
        report_add(report,
                   (struct figure[]){{"steady_allocations", "allocations",
                                      REPORT_COUNT, (double)allocations, NULL},
                                     {0}});
}

void report_verdict(struct report *report, const leat_stats *now,
                    const leat_stats *before)
{
    char verdict[LEAT_VERDICT_MAX];
    int has_one = leat_stats_verdict(now, before, verdict) == LEAT_OK;
    const char *word = has_one ? leat_stats_bound_by(now, before) : NULL;
    report_add(report,
               (struct figure[]){
                   {"bound_by", NULL, REPORT_TEXT, 0, word},
                   {"verdict", NULL, REPORT_TEXT, 0, has_one ? verdict : NULL},
                   {0}});
    if (has_one && !report->object)
        printf("%s\n", plain_text(verdict));
}

int report_end(struct report *report)
{
    if (!report->object)
        return 0;
    report_add(report,
               (struct figure[]){
                   {"cpu", NULL, REPORT_TEXT, 0, processor_name()},
                   {"cores", NULL, REPORT_COUNT, leat__thread_cores(), NULL},
                   {"version", NULL, REPORT_TEXT, 0, leat_version()},
                   {0}});
    return output_json(report->object);
}
