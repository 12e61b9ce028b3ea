#include "decorators/decorator.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static leat__decorator *decorator_of(leat_reader *reader)
{
    return (leat__decorator *)reader;
}

/* The array follows the struct in one allocation. */
void *leat__decorator_new(const leat_open *open, const leat_reader_ops *ops,
                          size_t size)
{
    const size_t unit = _Alignof(max_align_t);
    size_t begin = (size + unit - 1) / unit * unit;
    size_t n = (size_t)open->nupstream;
    leat__decorator *decorator =
        leat__alloc_zero(1, begin + n * sizeof(leat_reader *));
    if (!decorator)
        return NULL;
    decorator->reader.ops = ops;
    decorator->nupstream = open->nupstream;
    decorator->upstream = (leat_reader **)(void *)((char *)decorator + begin);
    memcpy(decorator->upstream, open->upstream, n * sizeof(leat_reader *));
    return decorator;
}

int leat__decorator_check_running(const leat__decorator *decorator)
{
    if (!atomic_load_explicit(&decorator->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                      decorator->reader.ops->name);
}

int leat__decorator_fields(leat_reader *reader, const leat_field_spec **out,
                           int *n)
{
    return leat_reader_fields(decorator_of(reader)->upstream[0], out, n);
}

int leat__decorator_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    return leat_reader_pull(decorator_of(reader)->upstream[0], out, n, got);
}

int leat__decorator_seek(leat_reader *reader, leat_position position,
                         leat_token *mark)
{
    return leat_reader_seek(decorator_of(reader)->upstream[0], position, mark);
}

int leat__decorator_mark(leat_reader *reader, leat_token *token)
{
    return leat_reader_mark(decorator_of(reader)->upstream[0], token);
}

void leat__decorator_cancel(leat_reader *reader)
{
    leat__decorator *decorator = decorator_of(reader);
    atomic_store(&decorator->cancelled, true);
    for (int i = 0; i < decorator->nupstream; i++)
        leat_reader_cancel(decorator->upstream[i]);
}

void leat__decorator_close(leat_reader *reader)
{
    leat__decorator *decorator = decorator_of(reader);
    for (int i = 0; i < decorator->nupstream; i++)
        leat_reader_close(decorator->upstream[i]);
    leat__free(decorator);
}

int leat__decorator_can_seek(leat_reader *reader)
{
    const leat__decorator *decorator = decorator_of(reader);
    int can = 1;
    for (int i = 0; i < decorator->nupstream && can; i++)
        can = leat_reader_can_seek(decorator->upstream[i]);
    return can;
}

/*
 * Saves or restores each upstream reader. One without an identity adds nothing,
 * and hides no other, which may have one, or may not be resumed at all.
 */
static int call_each(const leat__decorator *decorator, leat_token *token,
                     int (*call)(leat_reader *, leat_token *))
{
    char line[LEAT__ERROR_MAX];
    bool lacks_one = false;
    for (int i = 0; i < decorator->nupstream; i++) {
        int status = call(decorator->upstream[i], token);
        if (status && status != LEAT_EUNSUPPORTED)
            return status;
        if (status && !lacks_one)
            leat__error_save(line);
        lacks_one |= status != LEAT_OK;
    }
    return lacks_one ? leat_error(LEAT_EUNSUPPORTED, "%s", line) : LEAT_OK;
}

int leat__decorator_save(leat_reader *reader, leat_token *token)
{
    return call_each(decorator_of(reader), token, leat_reader_save);
}

int leat__decorator_restore(leat_reader *reader, leat_token *token)
{
    return call_each(decorator_of(reader), token, leat_reader_restore);
}

int leat__decorator_may_block(leat_reader *reader)
{
    const leat__decorator *decorator = decorator_of(reader);
    int blocks = 0;
    for (int i = 0; i < decorator->nupstream && !blocks; i++)
        blocks = leat_reader_may_block(decorator->upstream[i]);
    return blocks;
}

/* Pipes and devices that were opened below a reader that was open already. */
static atomic_uint pipes_opened;

void leat__block_probe_expire(void)
{
    atomic_fetch_add(&pipes_opened, 1);
}

bool leat__block_probe_ask(leat__block_probe *probe, leat_reader *reader, int n)
{
    enum { SAMPLES = 1024 };
    unsigned opened = atomic_load(&pipes_opened);
    probe->left -= n;
    if (probe->left <= 0 || probe->opened != opened) {
        probe->opened = opened;
        probe->blocks = leat_reader_may_block(reader);
        probe->left = SAMPLES;
    }
    return probe->blocks;
}

int leat__decorator_check(leat_reader *reader)
{
    const leat__decorator *decorator = decorator_of(reader);
    int status = LEAT_OK;
    for (int i = 0; i < decorator->nupstream && !status; i++)
        status = leat_reader_check(decorator->upstream[i]);
    return status;
}

static int count_endless(const leat__decorator *decorator)
{
    int n = 0;
    for (int i = 0; i < decorator->nupstream; i++)
        n += leat_reader_is_endless(decorator->upstream[i]);
    return n;
}

int leat__decorator_is_any_endless(leat_reader *reader)
{
    return count_endless(decorator_of(reader)) > 0;
}

int leat__decorator_are_all_endless(leat_reader *reader)
{
    const leat__decorator *decorator = decorator_of(reader);
    return count_endless(decorator) == decorator->nupstream;
}
