#include "tools/bench/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a file that begins so, without that beginning. */
static int find_line(const char *path, const char *begin, char *out, int size)
{
    char line[256];
    size_t length = strlen(begin);
    int found = 0;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, begin, length) != 0)
            continue;
        const char *value = line + length + strspn(line + length, " \t");
        int end = (int)strcspn(value, "\n");
        found = snprintf(out, (size_t)size, "%.*s", end, value) > 0;
    }
    if (file)
        fclose(file);
    return found;
}

static void read_attribute(const char *root, const char *bus_id,
                           const char *name, char *out, int size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/%s", root, bus_id,
             name);
    if (!find_line(path, "", out, size))
        snprintf(out, (size_t)size, "unknown");
}

static int read_width(const char *root, const char *bus_id, const char *name)
{
    char text[32];
    read_attribute(root, bus_id, name, text, sizeof(text));
    long lanes = strtol(text, NULL, 10);
    /* A suspended device reports 63 or 255. */
    return lanes > 0 && lanes <= 32 ? (int)lanes : 0;
}

void pci_read(struct pci_device *out, const char *root, const char *bus_id)
{
    char path[512];
    *out = (struct pci_device){.model = "unknown", .driver = "unknown"};
    snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/%s/information",
             root, bus_id);
    (void)find_line(path, "Model:", out->model, sizeof(out->model));
    snprintf(path, sizeof(path), "%s/sys/module/nvidia/version", root);
    (void)find_line(path, "", out->driver, sizeof(out->driver));
    read_attribute(root, bus_id, "current_link_speed", out->link_speed,
                   sizeof(out->link_speed));
    read_attribute(root, bus_id, "max_link_speed", out->most_speed,
                   sizeof(out->most_speed));
    out->link_width = read_width(root, bus_id, "current_link_width");
    out->most_width = read_width(root, bus_id, "max_link_width");
}
