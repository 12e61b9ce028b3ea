#include "pipeline/reader_chain.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/fork.h"
#include "base/thread.h"
#include "base/trace.h"
#include "pipeline/pipeline.h"

#include <stdio.h>
#include <string.h>

/* The calls of readers that run on this thread, the innermost one. */
static _Thread_local leat__reader_call *running;

enum { LAST = LEAT_MAX_READER_STATS - 1 };

/* Whether the lock is this process's own. */
static bool is_own(const leat__reader_chain *chain)
{
    return chain->generation == leat__fork_generation();
}

/* `owner/name`, or `owner/number/name`; of a long one the end. */
static void write_path(leat_reader_figures *figures)
{
    const leat_reader_figures *owner = figures->owner;
    char path[sizeof(figures->path) + sizeof(figures->name) + 16];
    char number[16] = "";
    if (figures->number >= 0)
        snprintf(number, sizeof(number), "%d/", figures->number);
    int n = snprintf(path, sizeof(path), "%s%s%s%s", owner ? owner->path : "",
                     owner ? "/" : "", number, figures->name);
    size_t cut = (size_t)n < sizeof(figures->path)
                     ? 0
                     : (size_t)n + 1 - sizeof(figures->path);
    memcpy(figures->path, path + cut, (size_t)n + 1 - cut);
    if (cut > 0)
        memcpy(figures->path, "...", 3);
}

static leat_reader_figures *fill(leat__reader_chain *chain, int i,
                                 const leat_reader_figures *owner,
                                 const char *name, int number)
{
    leat_reader_figures *figures = &chain->reader[i];
    figures->chain = chain;
    figures->owner = owner;
    figures->number = number;
    snprintf(figures->name, sizeof(figures->name), "%s", name);
    write_path(figures);
    return figures;
}

int leat__reader_chain_create(leat__reader_chain **out, const char *name)
{
    int status = leat__fork_watch();
    if (status)
        return status;
    leat__reader_chain *chain = leat__alloc_aligned_zero(sizeof(*chain));
    if (!chain)
        return LEAT_ENOMEM;
    status = leat__mutex_init(&chain->lock);
    if (status) {
        leat__free(chain);
        return status;
    }
    chain->generation = leat__fork_generation();
    fill(chain, 0, NULL, name, -1);
    fill(chain, LAST, NULL, "others", -1);
    atomic_store(&chain->n, 1);
    *out = chain;
    return LEAT_OK;
}

void leat__reader_chain_destroy(leat__reader_chain *chain)
{
    if (!chain)
        return;
    if (is_own(chain))
        pthread_mutex_destroy(&chain->lock);
    leat__free(chain);
}

bool leat__reader_chain_abandon(leat__reader_chain *chain, leat_reader *reader)
{
    static _Atomic(leat__reader_chain *) abandoned;
    if (is_own(chain))
        return false;
    chain->abandoned = reader;
    chain->next_abandoned = atomic_load(&abandoned);
    while (!atomic_compare_exchange_weak(&abandoned, &chain->next_abandoned,
                                         chain))
        ;
    return true;
}

int leat__reader_check_process(const leat_reader *reader)
{
    if (is_own(reader->state->figures->chain))
        return LEAT_OK;
    return leat_error(LEAT_ESTATE,
                      "%s: was opened in another process; open the pipeline "
                      "after fork()",
                      reader->ops->name);
}

static leat_reader_figures *add_locked(leat_reader_figures *owner,
                                       const char *name, int number)
{
    leat__reader_chain *chain = owner->chain;
    int n = atomic_load(&chain->n);
    for (int i = 1; i < n; i++) {
        leat_reader_figures *one = &chain->reader[i];
        if (one->owner == owner && one->number == number &&
            strncmp(one->name, name, sizeof(one->name) - 1) == 0)
            return one;
    }
    if (n < LAST)
        fill(chain, n, owner, name, number);
    if (n <= LAST)
        atomic_store(&chain->n, n + 1);
    return &chain->reader[n < LAST ? n : LAST];
}

leat_reader_figures *leat__reader_chain_add(leat_reader_figures *owner,
                                            const char *name, int number)
{
    leat__reader_chain *chain = owner->chain;
    if (!is_own(chain))
        return owner;
    pthread_mutex_lock(&chain->lock);
    leat_reader_figures *figures = add_locked(owner, name, number);
    pthread_mutex_unlock(&chain->lock);
    return figures;
}

void leat__reader_chain_attach(leat_reader *reader)
{
    struct leat_reader_state *state = reader->state;
    leat__reader_chain *chain = state->figures->chain;
    if (!LEAT__HAS(reader, memory) || !is_own(chain))
        return;
    pthread_mutex_lock(&chain->lock);
    state->reader = reader;
    state->next = chain->first;
    if (state->next)
        state->next->previous = state;
    chain->first = state;
    pthread_mutex_unlock(&chain->lock);
}

void leat__reader_chain_detach(const leat_reader *reader)
{
    struct leat_reader_state *state = reader->state;
    leat__reader_chain *chain = state->figures->chain;
    if (!state->reader || !is_own(chain))
        return;
    pthread_mutex_lock(&chain->lock);
    if (state->next)
        state->next->previous = state->previous;
    if (state->previous)
        state->previous->next = state->next;
    else
        chain->first = state->next;
    pthread_mutex_unlock(&chain->lock);
}

bool leat__reader_chain_take_spare(leat_reader_figures *figures, int64_t bytes,
                                   int64_t most)
{
    atomic_int_fast64_t *spare = &figures->chain->spare_bytes;
    int_fast64_t taken = atomic_load(spare);
    while (bytes <= most - taken)
        if (atomic_compare_exchange_weak(spare, &taken, taken + bytes))
            return true;
    return false;
}

void leat__reader_chain_return_spare(leat_reader_figures *figures,
                                     int64_t bytes)
{
    atomic_fetch_sub(&figures->chain->spare_bytes, bytes);
}

void leat__reader_call_enter(leat__reader_call *call,
                             leat_reader_figures *figures)
{
    leat__trace_begin_named(figures->path);
    *call = (leat__reader_call){running, figures, leat__clock_now(), 0};
    running = call;
}

void leat__reader_call_leave(leat__reader_call *call)
{
    int64_t all = leat__clock_now() - call->begun;
    leat__reader_call *outer = call->outer;
    leat__counter_add(&call->figures->busy, all - call->inner);
    running = outer;
    if (outer && outer->figures->chain == call->figures->chain)
        outer->inner += all;
    leat__trace_end();
}

static int64_t bytes_of(const leat_sample *sample)
{
    size_t bytes = 0;
    for (int i = 0; i < sample->nfields; i++)
        bytes += sample->field[i].bytes;
    return (int64_t)bytes;
}

void leat__reader_count_given(leat_reader_figures *figures,
                              leat_sample *const out[], int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += out[i]->deferred ? 0 : bytes_of(out[i]);
    leat__counter_add(&figures->items, n);
    leat__counter_add(&figures->bytes, bytes);
}

void leat__reader_count_completed(leat_reader_figures *figures,
                                  leat_sample *const out[], int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += bytes_of(out[i]);
    leat__counter_add(&figures->bytes, bytes);
}

void leat_reader_add_blocked(leat_reader *reader, int64_t nanoseconds)
{
    leat_reader_figures *figures = reader->state->figures;
    if (nanoseconds <= 0)
        return;
    leat__counter_add(&figures->blocked, nanoseconds);
    if (running && running->figures == figures)
        running->inner += nanoseconds;
}

/* A reader's bytes, which cannot be fewer than none. */
static int64_t memory_of(leat_reader *reader)
{
    int64_t bytes = reader->ops->memory(reader);
    return bytes > 0 ? bytes : 0;
}

/* What setup leaves it. Who opened it again has what it reads ahead. */
static int64_t reserve_of(leat_reader *reader)
{
    if (!LEAT__HAS(reader, reserves))
        return memory_of(reader);
    if (reader->state->is_again && reader->pipeline->type->reads_ahead)
        return 0;
    int64_t bytes = reader->ops->reserves(reader);
    return bytes > 0 ? bytes : 0;
}

/* The figures of all paths, with `bytes` of their open readers. */
static int read_figures(leat_reader *reader, int64_t (*bytes)(leat_reader *),
                        leat_reader_stats out[LEAT_MAX_READER_STATS])
{
    leat__reader_chain *chain = reader->state->figures->chain;
    bool is_locked = is_own(chain);
    if (is_locked)
        pthread_mutex_lock(&chain->lock);
    int n = atomic_load(&chain->n);
    for (int i = 0; i < n; i++) {
        const leat_reader_figures *figures = &chain->reader[i];
        out[i] = (leat_reader_stats){
            .items = leat__counter_get(&figures->items),
            .bytes = leat__counter_get(&figures->bytes),
            .busy = leat__counter_seconds(&figures->busy),
            .blocked = leat__counter_seconds(&figures->blocked),
        };
        memcpy(out[i].path, figures->path, sizeof(out[i].path));
    }
    const struct leat_reader_state *at = is_locked ? chain->first : NULL;
    for (; at; at = at->next)
        out[at->figures - chain->reader].memory += bytes(at->reader);
    if (is_locked)
        pthread_mutex_unlock(&chain->lock);
    return n;
}

int leat_reader_chain_stats(leat_reader *reader,
                            leat_reader_stats out[LEAT_MAX_READER_STATS])
{
    return read_figures(reader, memory_of, out);
}

int leat__reader_chain_reserves(leat_reader *reader,
                                leat_reader_stats out[LEAT_MAX_READER_STATS])
{
    return read_figures(reader, reserve_of, out);
}
