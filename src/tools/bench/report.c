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

void report_begin(struct report *report, bool json)
{
    *report = (struct report){.object = json ? json_object() : NULL};
    if (!json)
        printf("%s, %s, leat %s\n", processor_name(),
               output_count(leat__thread_cores(), "core", "cores"),
               leat_version());
}

/* Also of a value that no whole number is as large as. */
static int64_t whole(double value)
{
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static json_t *json_value(enum report_unit unit, double value, const char *text)
{
    if (isnan(value))
        return json_null();
    switch (unit) {
    case REPORT_TEXT:
        return text ? output_text(text) : json_null();
    case REPORT_FLAG:
        return json_boolean(value != 0);
    case REPORT_COUNT:
    case REPORT_BYTES:
        return json_integer(whole(value));
    default:
        return json_real(value);
    }
}

static void set_value(json_t *object, const char *key, json_t *value)
{
    for (size_t size; key[size = strcspn(key, ".")]; key += size + 1) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)size, key);
        if (!json_object_get(object, name))
            json_object_set_new(object, name, json_object());
        object = json_object_get(object, name);
    }
    json_object_set_new(object, key, value);
}

static const char *text_value(enum report_unit unit, double value,
                              const char *text)
{
    static char number[32];
    if (isnan(value))
        return "-";
    switch (unit) {
    case REPORT_TEXT:
        return text;
    case REPORT_FLAG:
        return value != 0 ? "yes" : "no";
    case REPORT_COUNT:
        snprintf(number, sizeof(number), "%.0f", value);
        return number;
    case REPORT_REAL:
        snprintf(number, sizeof(number), "%.2f", value);
        return number;
    case REPORT_RATE:
        return output_scaled(value);
    case REPORT_SHARE:
        snprintf(number, sizeof(number), "%.1f", 100 * value);
        return number;
    case REPORT_BYTES:
        return output_bytes(whole(value));
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

static void print_line(const char *label, enum report_unit unit, double value,
                       const char *text)
{
    if (isnan(value))
        return;
    printf("%-17s %12s", label, text_value(unit, value, text));
    if (unit == REPORT_SHARE)
        printf(" %%");
    if (unit != REPORT_TEXT && text)
        printf("%s%s", *text == ',' ? "" : " ", text);
    printf("\n");
}

/* Appends a cell to the row of labels and to that of values. */
static void add_cell(struct report *report, const char *label,
                     const char *value)
{
    size_t used = strlen(report->labels), filled = strlen(report->cells);
    int width = (int)strlen(label);
    width = width < COLUMN ? COLUMN : width;
    const char *format = used ? " | %*s" : "%-*s";
    width = used ? width : FIRST_COLUMN;
    snprintf(report->labels + used, sizeof(report->labels) - used, format,
             width, label);
    snprintf(report->cells + filled, sizeof(report->cells) - filled, format,
             width, value);
}

void report_line(struct report *report, const char *key, const char *label,
                 enum report_unit unit, double value, const char *text)
{
    json_t *object = report->row ? report->row : report->object;
    if (object && key)
        set_value(object, key, json_value(unit, value, text));
    else if (!object && label && report->in_row)
        add_cell(report, label, text_value(unit, value, text));
    else if (!object && label)
        print_line(label, unit, value, text);
}

void report_figures(struct report *report, const struct figure *figures)
{
    for (const struct figure *one = figures; one->key || one->label; one++)
        report_line(report, one->key, one->label, one->unit, one->value,
                    one->text);
}

void report_value(struct report *report, const char *key, enum report_unit unit,
                  double value)
{
    report_line(report, key, NULL, unit, value, NULL);
}

void report_text(struct report *report, const char *key, const char *text)
{
    report_line(report, key, NULL, REPORT_TEXT, 0, text);
}

void report_row(struct report *report, const char *array)
{
    report->in_row = 1;
    *report->labels = *report->cells = 0;
    if (!report->object)
        return;
    if (!json_object_get(report->object, array))
        json_object_set_new(report->object, array, json_array());
    report->row = json_object();
    json_array_append_new(json_object_get(report->object, array), report->row);
}

void report_row_end(struct report *report)
{
    report->in_row = 0;
    report->row = NULL;
    if (*report->labels && !report->rows++)
        puts(report->labels);
    if (*report->labels)
        puts(report->cells);
}

void report_row_of(struct report *report, const char *array,
                   const struct figure *figures)
{
    report_row(report, array);
    report_figures(report, figures);
    report_row_end(report);
}

void report_waits(struct report *report, const struct latency *waits)
{
    const struct figure figures[] = {
        {"wait_us.p50", "wait p50", REPORT_US, latency_percentile(waits, .5),
         NULL},
        {"wait_us.p99", "wait p99", REPORT_US, latency_percentile(waits, .99),
         NULL},
        {"wait_us.max", "wait max", REPORT_US, latency_longest(waits), NULL},
        {0}};
    report_figures(report, figures);
}

void report_allocations(struct report *report, int64_t allocations)
{
    if (bench_allocations() >= 0)
        report_line(report, "steady_allocations", "allocations", REPORT_COUNT,
                    (double)allocations, NULL);
}

void report_verdict(struct report *report, const leat_stats *now,
                    const leat_stats *before)
{
    char verdict[LEAT_VERDICT_MAX];
    bool has_one = leat_stats_verdict(now, before, verdict) == LEAT_OK;
    const char *word = has_one ? leat_stats_bound_by(now, before) : NULL;
    report_text(report, "bound_by", word);
    report_text(report, "verdict", has_one ? verdict : NULL);
    if (has_one && !report->object)
        printf("%s\n", plain_text(verdict));
}

static void print_reader(const leat_reader_stats *reader)
{
    printf("reader %s: %s, busy %.2f s", plain_text(reader->path),
           output_count(reader->items, "item", "items"), reader->busy);
    if (reader->items > 0)
        printf(", %s an item",
               output_time(reader->busy / (double)reader->items));
    if (reader->blocked > 0)
        printf(", waited %.2f s", reader->blocked);
    if (reader->memory > 0)
        printf(", holds %s", output_bytes(reader->memory));
    printf("\n");
}

void report_readers(struct report *report, const leat_reader_stats *reader,
                    int n)
{
    for (int i = 0; i < n; i++) {
        const struct figure figures[] = {
            {"path", NULL, REPORT_TEXT, 0, reader[i].path},
            {"items", NULL, REPORT_COUNT, (double)reader[i].items, NULL},
            {"bytes", NULL, REPORT_BYTES, (double)reader[i].bytes, NULL},
            {"busy", NULL, REPORT_SECONDS, reader[i].busy, NULL},
            {"blocked", NULL, REPORT_SECONDS, reader[i].blocked, NULL},
            {"memory", NULL, REPORT_BYTES, (double)reader[i].memory, NULL},
            {0}};
        report_row_of(report, "readers", figures);
        if (!report->object && n > 1)
            print_reader(&reader[i]);
    }
}

int report_end(struct report *report)
{
    if (!report->object)
        return 0;
    report_text(report, "cpu", processor_name());
    report_value(report, "cores", REPORT_COUNT, leat__thread_cores());
    report_text(report, "version", leat_version());
    return output_json(report->object);
}
