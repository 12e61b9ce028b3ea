/*
 * DESIGN
 *
 * Records are made in runs. Run r lies in box r mod boxes, which is empty,
 * being filled, or full. A worker claims the next run when its box is empty;
 * the taker empties the boxes in order. One lock guards who does what, none is
 * held while records are made or taken; every change of a box is broadcast. A
 * worker that fails leaves its error in the box and the others go on, so that
 * errors come in order, too.
 */
#include "tools/factory.h"

#include "tools/jpeg_writer.h"
#include "tools/processor.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 32, MOST_WORKERS = 64, BOXES_PER_WORKER = 3 };

struct box {
    int full;        /* guarded by the factory's lock */
    int status;      /* what follows belongs to whoever has the box */
    char error[256]; /* of a run that failed */
    size_t end[RUN]; /* where each record ends in bytes */
    unsigned char *bytes;
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
    int stopping;

    int64_t taken; /* records; the taker's own */
    struct box box[];
};

static int64_t run_length(const struct factory *factory, int64_t run)
{
    int64_t left = factory->order.count - run * RUN;
    return left < RUN ? left : RUN;
}

/* Appends record `i` of a run to its box. */
static int pack(struct box *box, int i, const leat_datum *datum)
{
    size_t begin = i ? box->end[i - 1] : 0;
    size_t end = begin + leat_datum_size(datum);
    if (end > box->capacity) {
        size_t capacity = end + end / 2;
        unsigned char *bytes = realloc(box->bytes, capacity);
        if (!bytes)
            return leat_error(LEAT_ENOMEM, "out of memory for records");
        box->bytes = bytes;
        box->capacity = capacity;
    }
    box->end[i] = begin + leat_datum_write(datum, box->bytes + begin);
    return LEAT_OK;
}

static int make_record(const struct factory_order *order, struct canvas *canvas,
                       int64_t index, struct box *box, int i)
{
    leat_datum datum = {0};
    datum.label = order->draw(canvas, order->seed, index);
    if (!order->quality) {
        datum.channels = canvas->channels;
        datum.height = canvas->height;
        datum.width = canvas->width;
        datum.data = canvas->pixels;
        datum.data_size = canvas_bytes(canvas);
        return pack(box, i, &datum);
    }
    unsigned char *image;
    int status =
        jpeg_writer_encode(canvas, order->quality, &image, &datum.data_size);
    if (status)
        return status;
    datum.encoded = 1;
    datum.data = image;
    status = pack(box, i, &datum);
    free(image);
    return status;
}

static void make_run(const struct factory *factory, struct canvas *canvas,
                     int64_t run, struct box *box)
{
    int n = (int)run_length(factory, run);
    box->status = LEAT_OK;
    for (int i = 0; i < n && !box->status; i++)
        box->status =
            make_record(&factory->order, canvas, run * RUN + i, box, i);
    if (box->status)
        snprintf(box->error, sizeof(box->error), "%s", leat_last_error());
}

/* The next run to make, when its box is empty; -1 when there is none. */
static int64_t claim(struct factory *factory)
{
    int64_t runs = (factory->order.count + RUN - 1) / RUN;
    pthread_mutex_lock(&factory->lock);
    while (!factory->stopping && factory->claimed < runs &&
           factory->claimed - factory->emptied >= factory->nboxes)
        pthread_cond_wait(&factory->changed, &factory->lock);
    int none = factory->stopping || factory->claimed >= runs;
    int64_t run = none ? -1 : factory->claimed++;
    pthread_mutex_unlock(&factory->lock);
    return run;
}

static void *work(void *argument)
{
    struct factory *factory = argument;
    struct canvas canvas;
    int status = canvas_init(&canvas, factory->order.shape);
    for (int64_t run; (run = claim(factory)) >= 0;) {
        struct box *box = &factory->box[run % factory->nboxes];
        if (!status) {
            make_run(factory, &canvas, run, box);
        } else {
            box->status = status;
            snprintf(box->error, sizeof(box->error), "out of memory");
        }
        pthread_mutex_lock(&factory->lock);
        box->full = 1;
        pthread_cond_broadcast(&factory->changed);
        pthread_mutex_unlock(&factory->lock);
    }
    if (!status)
        canvas_finish(&canvas);
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
    pthread_setname_np(factory->worker[factory->nworkers], "leat-synth");
    factory->nworkers++;
    return LEAT_OK;
}

int factory_open(struct factory **out, const struct factory_order *order)
{
    int workers = processor_count(MOST_WORKERS);
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

int factory_take(struct factory *factory, const void **record, size_t *size)
{
    if (factory->taken >= factory->order.count)
        return LEAT_END;
    int64_t run = factory->taken / RUN;
    int i = (int)(factory->taken % RUN);
    struct box *box = &factory->box[run % factory->nboxes];
    if (!i) {
        pthread_mutex_lock(&factory->lock);
        /* The run before was read to its end, so its box is free. */
        if (run) {
            factory->box[(run - 1) % factory->nboxes].full = 0;
            factory->emptied = run;
            pthread_cond_broadcast(&factory->changed);
        }
        while (!box->full)
            pthread_cond_wait(&factory->changed, &factory->lock);
        pthread_mutex_unlock(&factory->lock);
    }
    if (box->status)
        return leat_error(box->status, "%s", box->error);
    size_t begin = i ? box->end[i - 1] : 0;
    *record = box->bytes + begin;
    *size = box->end[i] - begin;
    factory->taken++;
    return LEAT_OK;
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
