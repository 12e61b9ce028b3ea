/*
 * DESIGN
 *
 * Records are made in runs. Run r lies in box r mod boxes, which is empty,
 * being filled, or full. A worker claims the next run when its box is empty
 * and the full ones do not hold too much; the run that the taker waits for is
 * always claimed. The taker empties the boxes in order. One lock guards who
 * does what, none is held while records are made or taken; every change of a
 * box is broadcast. A worker that fails leaves its error in the box and the
 * others go on, so that errors come in order, too.
 */
#include "tools/database/factory.h"
#include "base/thread.h"

#include <leat/ext/reader.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_WORKERS = 64,
    BOXES_PER_WORKER = 3,
    MOST_KEPT = 4 << 20 /* bytes of an empty box */
};

struct box {
    int full;        /* guarded by the factory's lock */
    int status;      /* what follows belongs to whoever has the box */
    int made;        /* records; the status is of the one behind them */
    char error[512]; /* of a run that failed */
    struct factory_record record[FACTORY_RUN_MOST];
    unsigned char *bytes; /* of all its records */
    size_t size;
    size_t capacity;
};

struct factory {
    struct factory_order order;
    int nworkers;
    int nboxes;
    pthread_t worker[MOST_WORKERS];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t claimed; /* runs given to workers */
    int64_t emptied; /* runs taken */
    size_t held;     /* bytes of full boxes */
    int stopping;

    int64_t run;      /* the one to take from; the taker's own */
    struct box *open; /* its box, once found full */
    int taken;        /* records of it */
    struct box box[];
};

static int64_t run_count(const struct factory *factory)
{
    const struct factory_order *order = &factory->order;
    return (order->end - order->first + order->run - 1) / order->run;
}

/* Appends a record to its box; the bytes may still move. */
static int pack(struct box *box, const struct factory_record *record)
{
    size_t end = box->size + record->size;
    if (end > box->capacity) {
        size_t capacity = end + end / 4;
        unsigned char *bytes = realloc(box->bytes, capacity);
        if (!bytes)
            return leat_error(LEAT_ENOMEM, "out of memory for records");
        box->bytes = bytes;
        box->capacity = capacity;
    }
    if (record->size)
        memcpy(box->bytes + box->size, record->bytes, record->size);
    box->size = end;
    box->record[box->made++] = *record;
    return LEAT_OK;
}

static void make_run(const struct factory *factory, void *bench, int64_t run,
                     struct box *box)
{
    const struct factory_order *order = &factory->order;
    int64_t number = order->first + run * order->run;
    box->size = 0;
    box->made = 0;
    box->status = LEAT_OK;
    for (int i = 0; i < order->run && number < order->end; i++, number++) {
        struct factory_record record = {0};
        box->status = order->make(bench, number, &record);
        if (!box->status)
            box->status = pack(box, &record);
        if (box->status) {
            snprintf(box->error, sizeof(box->error), "%s", leat_last_error());
            break;
        }
    }
    size_t begin = 0;
    for (int i = 0; i < box->made; i++) {
        struct factory_record *record = &box->record[i];
        record->bytes = record->size ? box->bytes + begin : NULL;
        begin += record->size;
    }
}

/* Whether the next run has to wait for boxes to be emptied. */
static int is_crowded(const struct factory *factory)
{
    int64_t ahead = factory->claimed - factory->emptied;
    return ahead >= factory->nboxes ||
           (ahead && factory->held >= factory->order.bytes);
}

/* The next run to make; -1 when there is none. */
static int64_t claim(struct factory *factory)
{
    int64_t runs = run_count(factory);
    pthread_mutex_lock(&factory->lock);
    while (!factory->stopping && factory->claimed < runs && is_crowded(factory))
        pthread_cond_wait(&factory->changed, &factory->lock);
    int none = factory->stopping || factory->claimed >= runs;
    int64_t run = none ? -1 : factory->claimed++;
    pthread_mutex_unlock(&factory->lock);
    return run;
}

static void *work(void *argument)
{
    struct factory *factory = argument;
    const struct factory_order *order = &factory->order;
    void *bench = NULL;
    char error[512] = "";
    int status = order->open(&bench, order->context);
    if (status)
        snprintf(error, sizeof(error), "%s", leat_last_error());
    for (int64_t run; (run = claim(factory)) >= 0;) {
        struct box *box = &factory->box[run % factory->nboxes];
        if (!status) {
            make_run(factory, bench, run, box);
        } else {
            box->status = status;
            box->made = 0;
            memcpy(box->error, error, sizeof(error));
        }
        pthread_mutex_lock(&factory->lock);
        box->full = 1;
        factory->held += box->capacity;
        pthread_cond_broadcast(&factory->changed);
        pthread_mutex_unlock(&factory->lock);
    }
    order->close(bench);
    return NULL;
}

/* Signals go to the main thread, which tidies up. */
static int start_worker(struct factory *factory)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&factory->worker[factory->nworkers], NULL, work,
                              factory);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code)
        return leat_error(LEAT_EIO, "cannot start a thread: %s",
                          strerror(code));
    pthread_setname_np(factory->worker[factory->nworkers], "leat-records");
    factory->nworkers++;
    return LEAT_OK;
}

int factory_open(struct factory **out, const struct factory_order *order)
{
    int workers = leat__thread_cores();
    if (workers > MOST_WORKERS)
        workers = MOST_WORKERS;
    int boxes = workers * BOXES_PER_WORKER;
    struct factory *factory =
        calloc(1, sizeof(*factory) + (size_t)boxes * sizeof(struct box));
    if (!factory)
        return leat_error(LEAT_ENOMEM, "out of memory for records");
    factory->order = *order;
    factory->nboxes = boxes;
    pthread_mutex_init(&factory->lock, NULL);
    pthread_cond_init(&factory->changed, NULL);
    int status = LEAT_OK;
    while (!status && factory->nworkers < workers)
        status = start_worker(factory);
    if (status && !factory->nworkers) {
        factory_close(factory);
        return status;
    }
    *out = factory;
    return LEAT_OK;
}

static void wait_for_box(struct factory *factory)
{
    struct box *box = &factory->box[factory->run % factory->nboxes];
    pthread_mutex_lock(&factory->lock);
    while (!box->full)
        pthread_cond_wait(&factory->changed, &factory->lock);
    pthread_mutex_unlock(&factory->lock);
    factory->open = box;
    factory->taken = 0;
}

static void give_back_box(struct factory *factory)
{
    struct box *box = factory->open;
    size_t held = box->capacity;
    if (box->capacity > MOST_KEPT) {
        free(box->bytes);
        box->bytes = NULL;
        box->capacity = 0;
    }
    pthread_mutex_lock(&factory->lock);
    box->full = 0;
    factory->held -= held;
    factory->emptied = ++factory->run;
    pthread_cond_broadcast(&factory->changed);
    pthread_mutex_unlock(&factory->lock);
    factory->open = NULL;
}

int factory_take(struct factory *factory, struct factory_record *out)
{
    int64_t runs = run_count(factory);
    while (factory->open || factory->run < runs) {
        if (!factory->open)
            wait_for_box(factory);
        struct box *box = factory->open;
        if (factory->taken < box->made) {
            *out = box->record[factory->taken++];
            return LEAT_OK;
        }
        /* It was read to its end, and so is what was lent out of it. */
        int status = box->status;
        if (status)
            leat_error(status, "%s", box->error);
        give_back_box(factory);
        if (status)
            return status;
    }
    return LEAT_END;
}

void factory_close(struct factory *factory)
{
    if (!factory)
        return;
    pthread_mutex_lock(&factory->lock);
    factory->stopping = 1;
    pthread_cond_broadcast(&factory->changed);
    pthread_mutex_unlock(&factory->lock);
    for (int i = 0; i < factory->nworkers; i++)
        pthread_join(factory->worker[i], NULL);
    for (int i = 0; i < factory->nboxes; i++)
        free(factory->box[i].bytes);
    pthread_cond_destroy(&factory->changed);
    pthread_mutex_destroy(&factory->lock);
    free(factory);
}
