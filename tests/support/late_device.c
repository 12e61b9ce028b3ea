/*
 * DESIGN. A device has a window of addresses that are never accessible, and
 * after it, at a fixed distance, the bytes themselves; both are handed out by
 * an atomic counter, so that no lock orders two callers by accident.
 *
 * A stream is a list of operations with numbers, and a thread that runs them in
 * order as far as `wanted`. A recorded event is a stream and a number. Waiting,
 * by the host or by another stream, raises `wanted` and sleeps until `done` has
 * come that far. A stream's lock is held for these numbers alone, never while
 * an operation runs, and never together with another's. Streams are kept until
 * the process ends, because events may still name them.
 *
 * Time is modelled, not measured: every stream has a clock that its copies and
 * what occupies it move, and a thread of the host the latest time that it has
 * waited for.
 *
 * Counters are relaxed atomics: they order nothing either.
 */
#include "support/late_device.h"

#include <leat/ext/reader.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define DEVICES 2
#define WINDOW ((size_t)8 << 30) /* addresses, of which few are backed */
#define PAGE ((size_t)4096)

typedef struct stream stream;

typedef struct operation {
    struct operation *next;
    /* A copy, or, with `other`, a wait for its operation `ticket`. */
    void *to;
    const void *from;
    size_t bytes;
    stream *other;
    int64_t ticket;
    int64_t cost;   /* nanoseconds */
    int64_t issued; /* at which the host had come to it */
    int64_t time;   /* that it really takes, nanoseconds */
} operation;

struct stream {
    struct late_device *device;
    stream *next; /* protected by the device's lock */
    pthread_t thread;
    atomic_int capturing;
    atomic_int destroyed; /* kept, but no longer to be named */
    int64_t now;          /* the thread's own: modelled nanoseconds */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* protected by lock */
    operation *first;
    operation **last;
    int64_t *stamps; /* when each operation ended */
    int64_t room;
    int64_t enqueued;
    int64_t done;
    int64_t wanted;
    int waiters; /* threads of the host */
    int held;
    int broken;
    int ending;
};

typedef struct event {
    int times;
    pthread_mutex_t lock;
    stream *on; /* protected by lock; NULL: never recorded */
    int64_t ticket;
} event;

typedef struct late_device {
    leat_device device;
    char *window; /* of addresses; the bytes lie WINDOW after them */
    char *pinned;
    atomic_size_t window_used;
    atomic_size_t pinned_used;
    atomic_int held;
    atomic_int_fast64_t copy_time;
    stream by_default;
    pthread_mutex_t lock;
    stream *streams; /* protected by lock; the latest first */
    int nstreams;    /* protected by lock; the default stream left out */
    atomic_int_fast64_t copies[3], bytes[3], records, stream_waits, event_syncs,
        stream_syncs, allocs, host_allocs, live_streams, live_events,
        live_bytes, live_host_bytes, destroyed_busy, used_destroyed;
} late_device;

static late_device late[DEVICES];
/* Calls until the one that fails; below 0: none. */
static atomic_int_fast64_t fault = -1;
static atomic_int_fast64_t breakage = -1;
static atomic_int has_failed;
static _Thread_local int64_t host_time;

static void add(atomic_int_fast64_t *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static int64_t get(atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Whether this call is the one that `counter` counts down to. */
static int is_turn(atomic_int_fast64_t *counter)
{
    int_fast64_t left = get(counter);
    while (left >= 0 && !atomic_compare_exchange_weak_explicit(
                            counter, &left, left - 1, memory_order_relaxed,
                            memory_order_relaxed))
        continue;
    return left == 0;
}

static int fails(const char *what)
{
    if (!is_turn(&fault))
        return LEAT_OK;
    atomic_store_explicit(&has_failed, 1, memory_order_relaxed);
    return leat_error(LEAT_EDEVICE, "the test device fails at %s", what);
}

static int may_run(const stream *self)
{
    if (self->done == self->enqueued)
        return 0;
    int held = self->held || atomic_load(&self->device->held);
    return self->ending || (self->done < self->wanted && !held);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Sleeps until operation `ticket` is done, and all before it: at `stamp`. */
static int wait_for(stream *self, int64_t ticket, int is_host, int64_t *stamp)
{
    pthread_mutex_lock(&self->lock);
    if (self->wanted < ticket)
        self->wanted = ticket;
    self->waiters += is_host;
    pthread_cond_broadcast(&self->changed);
    while (self->done < ticket)
        pthread_cond_wait(&self->changed, &self->lock);
    self->waiters -= is_host;
    int broken = self->broken;
    *stamp = ticket > 0 ? self->stamps[ticket - 1] : 0;
    pthread_mutex_unlock(&self->lock);
    if (is_host)
        host_time = later(host_time, *stamp);
    return broken ? leat_error(LEAT_EDEVICE, "an earlier copy failed") : 0;
}

static void take_time(int64_t nanoseconds)
{
    struct timespec rest = {(time_t)(nanoseconds / 1000000000),
                            (long)(nanoseconds % 1000000000)};
    while (nanoseconds > 0 && nanosleep(&rest, &rest))
        continue;
}

/* 1 if it broke the stream. */
static int execute(stream *self, const operation *one)
{
    int64_t begin = later(self->now, one->issued);
    if (one->other) {
        int64_t stamp;
        int status = wait_for(one->other, one->ticket, 0, &stamp);
        self->now = later(begin, stamp);
        return status != LEAT_OK;
    }
    self->now = begin + one->cost;
    take_time(one->time);
    if (!one->to)
        return 0;
    if (is_turn(&breakage))
        return 1;
    memcpy(one->to, one->from, one->bytes);
    return 0;
}

static void *run(void *argument)
{
    stream *self = argument;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (!may_run(self) && !self->ending)
            pthread_cond_wait(&self->changed, &self->lock);
        operation *one = self->first;
        if (!one)
            break;
        self->first = one->next;
        if (!self->first)
            self->last = &self->first;
        int broken = self->broken;
        pthread_mutex_unlock(&self->lock);
        broken = broken || execute(self, one);
        free(one);
        pthread_mutex_lock(&self->lock);
        self->broken = broken;
        self->stamps[self->done++] = self->now;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static int start(stream *self, late_device *device)
{
    self->device = device;
    self->last = &self->first;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    if (pthread_create(&self->thread, NULL, run, self))
        return leat_error(LEAT_EDEVICE, "no thread for a stream");
    pthread_mutex_lock(&device->lock);
    self->next = device->streams;
    device->streams = self;
    device->nstreams += self != &device->by_default;
    pthread_mutex_unlock(&device->lock);
    return LEAT_OK;
}

static stream *stream_of(leat_device *device, leat_stream handle)
{
    late_device *self = (late_device *)device;
    stream *named = handle ? (stream *)handle : &self->by_default;
    add(&self->used_destroyed, atomic_load(&named->destroyed));
    return named;
}

static int enqueue(stream *self, operation what)
{
    operation *one = malloc(sizeof(*one));
    if (!one)
        return leat_error(LEAT_ENOMEM, "no memory for an operation");
    *one = what;
    one->next = NULL;
    one->issued = host_time;
    pthread_mutex_lock(&self->lock);
    if (self->enqueued == self->room) {
        int64_t room = self->room ? 2 * self->room : 64;
        void *grown =
            realloc(self->stamps, (size_t)room * sizeof(*self->stamps));
        if (!grown) {
            pthread_mutex_unlock(&self->lock);
            free(one);
            return leat_error(LEAT_ENOMEM, "no memory for a time");
        }
        self->stamps = grown;
        self->room = room;
    }
    *self->last = one;
    self->last = &one->next;
    self->enqueued++;
    pthread_mutex_unlock(&self->lock);
    return LEAT_OK;
}

static int64_t enqueued(stream *self)
{
    pthread_mutex_lock(&self->lock);
    int64_t ticket = self->enqueued;
    pthread_mutex_unlock(&self->lock);
    return ticket;
}

static int late_stream_create(leat_device *device, leat_stream *out)
{
    late_device *self = (late_device *)device;
    int status = fails("stream_create");
    if (status)
        return status;
    stream *created = calloc(1, sizeof(*created));
    if (!created)
        return leat_error(LEAT_ENOMEM, "no memory for a stream");
    status = start(created, self);
    if (status) {
        free(created);
        return status;
    }
    add(&self->live_streams, 1);
    *out = (leat_stream)created;
    return LEAT_OK;
}

static void late_stream_destroy(leat_device *device, leat_stream handle)
{
    late_device *self = (late_device *)device;
    stream *ended = (stream *)handle;
    pthread_mutex_lock(&ended->lock);
    add(&self->destroyed_busy, ended->done < ended->enqueued);
    ended->ending = 1;
    pthread_cond_broadcast(&ended->changed);
    pthread_mutex_unlock(&ended->lock);
    pthread_join(ended->thread, NULL);
    atomic_store(&ended->destroyed, 1);
    add(&self->live_streams, -1);
}

static int late_stream_synchronize(leat_device *device, leat_stream handle)
{
    add(&((late_device *)device)->stream_syncs, 1);
    int status = fails("stream_synchronize");
    if (status)
        return status;
    stream *self = stream_of(device, handle);
    int64_t stamp;
    return wait_for(self, enqueued(self), 1, &stamp);
}

static int late_stream_is_capturing(leat_device *device, leat_stream handle)
{
    return atomic_load(&stream_of(device, handle)->capturing);
}

static int create_event(leat_device *device, int times, leat_event *out)
{
    int status = fails("event_create");
    if (status)
        return status;
    event *created = calloc(1, sizeof(*created));
    if (!created)
        return leat_error(LEAT_ENOMEM, "no memory for an event");
    created->times = times;
    pthread_mutex_init(&created->lock, NULL);
    add(&((late_device *)device)->live_events, 1);
    *out = (leat_event)created;
    return LEAT_OK;
}

static int late_event_create(leat_device *device, leat_event *out)
{
    return create_event(device, 0, out);
}

static int late_timer_create(leat_device *device, leat_event *out)
{
    return create_event(device, 1, out);
}

static void late_event_destroy(leat_device *device, leat_event handle)
{
    event *ended = (event *)handle;
    pthread_mutex_destroy(&ended->lock);
    free(ended);
    add(&((late_device *)device)->live_events, -1);
}

static int late_event_record(leat_device *device, leat_event handle,
                             leat_stream on)
{
    add(&((late_device *)device)->records, 1);
    int status = fails("event_record");
    if (status)
        return status;
    event *self = (event *)handle;
    stream *recorded = stream_of(device, on);
    int64_t ticket = enqueued(recorded);
    pthread_mutex_lock(&self->lock);
    self->on = recorded;
    self->ticket = ticket;
    pthread_mutex_unlock(&self->lock);
    return LEAT_OK;
}

/* The event's latest record; NULL where there is none. */
static stream *latest(leat_event handle, int64_t *ticket)
{
    event *self = (event *)handle;
    pthread_mutex_lock(&self->lock);
    stream *on = self->on;
    *ticket = self->ticket;
    pthread_mutex_unlock(&self->lock);
    return on;
}

static int late_stream_wait(leat_device *device, leat_stream handle,
                            leat_event what)
{
    add(&((late_device *)device)->stream_waits, 1);
    int status = fails("stream_wait");
    if (status)
        return status;
    int64_t ticket;
    stream *on = latest(what, &ticket);
    stream *self = stream_of(device, handle);
    if (!on || on == self)
        return LEAT_OK;
    return enqueue(self, (operation){.other = on, .ticket = ticket});
}

static int late_event_synchronize(leat_device *device, leat_event handle)
{
    add(&((late_device *)device)->event_syncs, 1);
    int status = fails("event_synchronize");
    if (status)
        return status;
    int64_t ticket, stamp;
    stream *on = latest(handle, &ticket);
    return on ? wait_for(on, ticket, 1, &stamp) : LEAT_OK;
}

static int late_event_elapsed(leat_device *device, leat_event from,
                              leat_event to, double *out)
{
    (void)device;
    int status = fails("event_elapsed");
    if (status)
        return status;
    int64_t ticket[2], stamp[2];
    stream *on[2] = {latest(from, &ticket[0]), latest(to, &ticket[1])};
    if (!on[0] || !on[1] || !((event *)from)->times || !((event *)to)->times)
        return leat_error(LEAT_EDEVICE, "an event has no time");
    for (int i = 0; i < 2 && status == LEAT_OK; i++)
        status = wait_for(on[i], ticket[i], 1, &stamp[i]);
    if (status == LEAT_OK)
        *out = 1e-9 * (double)(stamp[1] - stamp[0]);
    return status;
}

static int late_occupy(leat_device *device, double seconds, leat_stream handle)
{
    int status = fails("occupy");
    if (status)
        return status;
    operation what = {.cost = (int64_t)(1e9 * seconds)};
    if (get(&((late_device *)device)->copy_time) > 0)
        what.time = what.cost;
    return enqueue(stream_of(device, handle), what);
}

static size_t whole_pages(size_t bytes)
{
    return bytes ? (bytes + PAGE - 1) / PAGE * PAGE : PAGE;
}

/* Where `bytes` begin in a window, with a page after them that faults. */
static int take(atomic_size_t *used, size_t bytes, size_t *out)
{
    if (bytes > WINDOW / 2)
        return leat_error(LEAT_ENOMEM, "%zu bytes are too many", bytes);
    size_t whole = whole_pages(bytes) + PAGE;
    size_t offset =
        atomic_fetch_add_explicit(used, whole, memory_order_relaxed);
    if (offset + whole > WINDOW)
        return leat_error(LEAT_ENOMEM, "the test device's memory is used up");
    *out = offset;
    return LEAT_OK;
}

static int back(char *place, size_t bytes)
{
    if (mprotect(place, whole_pages(bytes), PROT_READ | PROT_WRITE))
        return leat_error(LEAT_ENOMEM, "mprotect failed");
    return LEAT_OK;
}

static void drop(char *place, size_t bytes)
{
    madvise(place, whole_pages(bytes), MADV_DONTNEED);
    mprotect(place, whole_pages(bytes), PROT_NONE);
}

static int late_alloc(leat_device *device, size_t bytes, void **out)
{
    late_device *self = (late_device *)device;
    add(&self->allocs, 1);
    size_t offset = 0;
    int status = fails("alloc");
    if (status == LEAT_OK)
        status = take(&self->window_used, bytes, &offset);
    if (status == LEAT_OK)
        status = back(self->window + WINDOW + offset, bytes);
    if (status)
        return status;
    add(&self->live_bytes, (int64_t)bytes);
    *out = self->window + offset;
    return LEAT_OK;
}

static void late_free(leat_device *device, void *memory, size_t bytes)
{
    drop((char *)memory + WINDOW, bytes);
    add(&((late_device *)device)->live_bytes, -(int64_t)bytes);
}

static int late_host_alloc(leat_device *device, size_t bytes, void **out)
{
    late_device *self = (late_device *)device;
    add(&self->host_allocs, 1);
    size_t offset = 0;
    int status = fails("host_alloc");
    if (status == LEAT_OK)
        status = take(&self->pinned_used, bytes, &offset);
    if (status == LEAT_OK)
        status = back(self->pinned + offset, bytes);
    if (status)
        return status;
    add(&self->live_host_bytes, (int64_t)bytes);
    *out = self->pinned + offset;
    return LEAT_OK;
}

static void late_host_free(leat_device *device, void *memory, size_t bytes)
{
    drop(memory, bytes);
    add(&((late_device *)device)->live_host_bytes, -(int64_t)bytes);
}

/* Whether the bytes lie in the window of that size at `base`. */
static int lies_in(const char *base, const void *memory, size_t bytes)
{
    uintptr_t first = (uintptr_t)base;
    uintptr_t place = (uintptr_t)memory;
    return place >= first && bytes <= WINDOW && place - first <= WINDOW - bytes;
}

static int late_copy(leat_device *device, void *to, const void *from,
                     size_t bytes, leat_copy_direction direction,
                     leat_stream handle)
{
    late_device *self = (late_device *)device;
    add(&self->copies[direction], 1);
    add(&self->bytes[direction], (int64_t)bytes);
    int status = fails("copy");
    if (status)
        return status;
    int is_to_host = direction == LEAT_COPY_TO_HOST;
    int is_from_host = direction == LEAT_COPY_TO_DEVICE;
    if (!lies_in(is_to_host ? self->pinned : self->window, to, bytes) ||
        !lies_in(is_from_host ? self->pinned : self->window, from, bytes))
        return leat_error(LEAT_EDEVICE,
                          "an address is not of the device, or not pinned");
    operation what = {.to = is_to_host ? to : (char *)to + WINDOW,
                      .from = is_from_host ? from : (const char *)from + WINDOW,
                      .bytes = bytes,
                      .cost = (int64_t)bytes};
    if (direction != LEAT_COPY_ON_DEVICE)
        what.time = get(&self->copy_time);
    return enqueue(stream_of(device, handle), what);
}

static char *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static const leat_device_ops late_ops;

static int late_open(int ordinal, leat_device **out)
{
    if (ordinal >= DEVICES)
        return leat_error(LEAT_EINVAL, "there are %d test devices", DEVICES);
    late_device *self = &late[ordinal];
    self->device.ops = &late_ops;
    pthread_mutex_init(&self->lock, NULL);
    self->window = reserve(2 * WINDOW);
    self->pinned = reserve(WINDOW);
    if (!self->window || !self->pinned)
        return leat_error(LEAT_ENOMEM, "no addresses for a test device");
    int status = start(&self->by_default, self);
    if (status == LEAT_OK)
        *out = &self->device;
    return status;
}

static const leat_device_ops late_ops = {
    .size = sizeof(leat_device_ops),
    .name = "late",
    .open = late_open,
    .host_alloc = late_host_alloc,
    .host_free = late_host_free,
    .alloc = late_alloc,
    .free = late_free,
    .copy = late_copy,
    .stream_create = late_stream_create,
    .stream_destroy = late_stream_destroy,
    .stream_synchronize = late_stream_synchronize,
    .stream_is_capturing = late_stream_is_capturing,
    .event_create = late_event_create,
    .event_destroy = late_event_destroy,
    .event_record = late_event_record,
    .stream_wait = late_stream_wait,
    .event_synchronize = late_event_synchronize,
    .timer_create = late_timer_create,
    .event_elapsed = late_event_elapsed,
    .occupy = late_occupy,
};

static void register_once(void)
{
    if (leat_device_register(&late_ops))
        abort();
}

void late_device_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}

late_device_counts late_device_count(leat_device *device)
{
    late_device *self = (late_device *)device;
    late_device_counts out = {
        .records = get(&self->records),
        .stream_waits = get(&self->stream_waits),
        .event_syncs = get(&self->event_syncs),
        .stream_syncs = get(&self->stream_syncs),
        .allocs = get(&self->allocs),
        .host_allocs = get(&self->host_allocs),
        .streams = get(&self->live_streams),
        .events = get(&self->live_events),
        .live_bytes = get(&self->live_bytes),
        .live_host_bytes = get(&self->live_host_bytes),
        .destroyed_busy = get(&self->destroyed_busy),
        .used_destroyed = get(&self->used_destroyed),
    };
    for (int direction = 0; direction < 3; direction++) {
        out.copies[direction] = get(&self->copies[direction]);
        out.bytes[direction] = get(&self->bytes[direction]);
    }
    return out;
}

static void set_held(stream *self, int held)
{
    pthread_mutex_lock(&self->lock);
    self->held = held;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

void late_device_hold(leat_device *device, leat_stream handle)
{
    set_held(stream_of(device, handle), 1);
}

void late_device_let_go(leat_device *device, leat_stream handle)
{
    set_held(stream_of(device, handle), 0);
}

void late_device_hold_all(leat_device *device)
{
    atomic_store(&((late_device *)device)->held, 1);
}

void late_device_let_go_all(leat_device *device)
{
    late_device *self = (late_device *)device;
    atomic_store(&self->held, 0);
    pthread_mutex_lock(&self->lock);
    for (stream *one = self->streams; one; one = one->next)
        set_held(one, 0);
    pthread_mutex_unlock(&self->lock);
}

void late_device_take_time(leat_device *device, int64_t copy)
{
    atomic_store(&((late_device *)device)->copy_time, copy);
}

leat_stream late_device_stream(leat_device *device, int i)
{
    late_device *self = (late_device *)device;
    pthread_mutex_lock(&self->lock);
    int back_from_latest = self->nstreams - 1 - i;
    stream *one = back_from_latest < 0 ? NULL : self->streams;
    while (one && back_from_latest-- > 0)
        one = one->next;
    pthread_mutex_unlock(&self->lock);
    return (leat_stream)one;
}

void late_device_await(leat_device *device, leat_stream handle, int n)
{
    stream *self = stream_of(device, handle);
    pthread_mutex_lock(&self->lock);
    while (self->waiters < n)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

void late_device_set_capturing(leat_device *device, leat_stream handle,
                               int capturing)
{
    atomic_store(&stream_of(device, handle)->capturing, capturing);
}

void late_device_fail_at(int64_t n)
{
    atomic_store(&has_failed, 0);
    atomic_store(&fault, n);
}

int late_device_has_failed(void)
{
    return atomic_load(&has_failed);
}

void late_device_break_at(int64_t n)
{
    atomic_store(&breakage, n);
}

void late_device_peek(void *out, const void *address, size_t bytes)
{
    memcpy(out, (const char *)address + WINDOW, bytes);
}

void late_device_poke(void *address, const void *bytes, size_t size)
{
    memcpy((char *)address + WINDOW, bytes, size);
}
