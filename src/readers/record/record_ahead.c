#include "readers/record/record_ahead.h"

#include <string.h>

/* Bytes that a probe covers, and the distance between two probes. */
#define PROBE_BYTES ((uint64_t)256 << 10)
#define PROBE_EVERY ((uint64_t)4 << 20)

/* The window starts at a 32nd, so that the first record is returned soon, and
 * goes on by an 8th of it. */
#define RAMP 5
#define STEPS 8

/* Bytes dropped at a time. */
#define DROP_BYTES ((uint64_t)2 << 20)

void leat__record_ahead_init(leat__record_ahead *out,
                             const leat__record_files *files, size_t window,
                             size_t kept)
{
    memset(out, 0, sizeof(*out));
    out->files = files;
    out->window = window < files->bytes ? window : (size_t)files->bytes;
    out->kept = kept;
    /* Dropping spares what is read ahead and what is kept. */
    if (kept >= files->bytes || out->window >= files->bytes - kept)
        out->kept = SIZE_MAX;
    out->is_fresh = true;
    out->ramp = RAMP;
    out->due = files->bytes > 0 ? 0 : UINT64_MAX;
}

/* Whether the next bytes are in memory; at first, the files as a whole. */
static bool is_resident(leat__record_ahead *ahead, uint64_t at)
{
    const leat__record_files *files = ahead->files;
    if (ahead->is_fresh) {
        ahead->is_fresh = false;
        return !leat__record_files_may_block(files);
    }
    const leat__record_source *source =
        &files->source[leat__record_files_find(files, at % files->bytes)];
    leat__span span = {(size_t)(at % files->bytes - source->begin), 0};
    size_t left = source->map.size - span.offset;
    span.bytes = left < PROBE_BYTES ? left : PROBE_BYTES;
    return leat__mapped_file_absent(&source->map, span) == 0;
}

/* Requests up to the window's end. */
static void request(leat__record_ahead *ahead, uint64_t at)
{
    uint64_t window = ahead->window >> ahead->ramp;
    if (ahead->asked < at) {
        ahead->asked = at;
        ahead->ramp = RAMP;
        ahead->resident = 0;
        window = ahead->window >> RAMP;
    }
    uint64_t until = at + (window > PROBE_BYTES ? window : PROBE_BYTES);
    if (until > ahead->asked) {
        if (leat__record_files_ask(ahead->files, ahead->asked, until))
            ahead->resident = 0;
        else
            ahead->resident += (size_t)(until - ahead->asked);
        ahead->asked = until;
    }
    ahead->ramp -= ahead->ramp > 0;
    ahead->due = at + window / STEPS - ahead->past;
}

static void drop(leat__record_ahead *ahead, uint64_t at)
{
    uint64_t until = at > ahead->kept ? at - ahead->kept : 0;
    if (until < ahead->from + DROP_BYTES)
        return;
    leat__record_files_drop(ahead->files, ahead->from, until);
    ahead->from = until;
}

void leat__record_ahead_extend(leat__record_ahead *ahead, uint64_t own)
{
    uint64_t at = ahead->past + own;
    ahead->due = own + PROBE_EVERY;
    if (ahead->kept != SIZE_MAX) {
        drop(ahead, at);
        ahead->due = own + DROP_BYTES;
    }
    /* Without a window only probes tell. */
    if (!ahead->is_cold || ahead->window == 0)
        ahead->is_cold = !is_resident(ahead, at);
    if (!ahead->is_cold || ahead->window == 0)
        return;
    request(ahead, at);
    if (ahead->resident >= 2 * ahead->window)
        ahead->is_cold = false;
}

void leat__record_ahead_restart(leat__record_ahead *ahead, uint64_t at,
                                uint64_t to, bool next_pass)
{
    const uint64_t bytes = ahead->files->bytes;
    if (bytes == 0)
        return;
    if (next_pass && at == bytes) {
        ahead->past += bytes;
    } else {
        ahead->asked = 0;
        ahead->ramp = RAMP;
        ahead->from = ahead->past + to;
    }
    ahead->due = 0;
}
