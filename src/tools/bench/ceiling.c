/*
 * A copy of a small batch pays for its beginning as the upload does, so the
 * ceiling of uploads is that of copies of their size. What larger ones reach
 * tells how much is lost by the size alone.
 */
#include "tools/bench/ceiling.h"

#include "tools/bench/h2d.h"

#include <leat/ext/reader.h>

#include <stdio.h>

enum { SAMPLES = 11 };

static const size_t large = (size_t)64 << 20;

static int measure(struct ceiling *out, struct h2d *h2d)
{
    struct h2d_case what = {
        .pinned = 1, .bytes = out->bytes, .streams = 1, .samples = SAMPLES};
    int status = h2d_measure(h2d, &what);
    out->samples = SAMPLES;
    out->rate = out->best = 1e9 * what.gb_per_s;
    out->p10 = 1e9 * what.p10;
    out->p90 = 1e9 * what.p90;
    if (status)
        return status;
    what.bytes = large;
    status = h2d_measure(h2d, &what);
    if (1e9 * what.gb_per_s > out->best)
        out->best = 1e9 * what.gb_per_s;
    return status;
}

int ceiling_measure(struct ceiling *out, leat_device *device, size_t bytes)
{
    *out = (struct ceiling){.bytes = bytes};
    if (!bytes) {
        snprintf(out->why, sizeof(out->why), "nothing was uploaded");
        return LEAT_OK;
    }
    struct h2d *h2d = NULL;
    int status = h2d_open(&h2d, device, bytes > large ? bytes : large, 1);
    if (!status)
        status = measure(out, h2d);
    h2d_close(h2d);
    if (status != LEAT_ENOMEM)
        return status;
    *out = (struct ceiling){.bytes = bytes};
    snprintf(out->why, sizeof(out->why), "%s", leat_last_error());
    return LEAT_OK;
}
