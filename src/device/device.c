/*
 * The registry of devices: the only file that names the built-in ones.
 *
 * DESIGN
 *
 * Types and open devices are appended under `lock` and never removed, so both
 * may be used without it once they were found. A device is opened under the
 * lock, so that each is opened once; the opening thread cannot be cancelled
 * meanwhile. A forked child resets the lock: an entry is written before it is
 * counted.
 */
#include "device/device.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TYPES_MAX 16
#define DEVICES_MAX 64
#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))
#define OPERATION(member) LEAT__TABLE_ENTRY(leat_device_ops, member)
/* The ordinal after it fits into leat_device.name. */
#define NAME_MAX_SIZE 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Protected by lock. Open devices are never closed. */
#ifdef LEAT_CUDA
#define CUDA_HINT ""
static const leat_device_ops *types[TYPES_MAX] = {&leat__cpu_device_ops,
                                                  &leat__cuda_device_ops};
static atomic_int ntypes = 2;
#else
#define CUDA_HINT " (this build of leat is for the CPU alone)"
static const leat_device_ops *types[TYPES_MAX] = {&leat__cpu_device_ops};
static atomic_int ntypes = 1;
#endif
static leat_device *devices[DEVICES_MAX];
static atomic_int ndevices;

static const leat_device_ops *find_type_locked(const char *name, size_t size)
{
    for (int i = 0; i < ntypes; i++) {
        if (strlen(types[i]->name) == size &&
            memcmp(types[i]->name, name, size) == 0)
            return types[i];
    }
    return NULL;
}

static int add_locked(const leat_device_ops *ops)
{
    if (find_type_locked(ops->name, strlen(ops->name)))
        return leat_error(LEAT_EINVAL, "a device \"%s\" is registered already",
                          ops->name);
    if (ntypes == TYPES_MAX)
        return leat_error(LEAT_EINVAL, "%d devices are registered already",
                          TYPES_MAX);
    types[ntypes] = ops;
    ntypes++;
    return LEAT_OK;
}

/* Entries that leat calls without a check. */
static const leat__table_entry host_entries[] = {
    OPERATION(open), OPERATION(host_alloc), OPERATION(host_free)};

/* The same for a device with its own memory. */
static const leat__table_entry own_entries[] = {OPERATION(alloc),
                                                OPERATION(free),
                                                OPERATION(copy),
                                                OPERATION(stream_create),
                                                OPERATION(stream_destroy),
                                                OPERATION(stream_synchronize),
                                                OPERATION(event_create),
                                                OPERATION(event_destroy),
                                                OPERATION(event_record),
                                                OPERATION(stream_wait),
                                                OPERATION(event_synchronize)};

/* The name of a missing required entry; NULL: none is missing. */
static const char *missing_entry(const leat_device_ops *ops)
{
    size_t size = ops->size;
    const char *name = leat__table_first_missing(ops, size, host_entries,
                                                 LENGTH(host_entries));
    if (name || ops->unified)
        return name;
    if (!ops->timer_create != !ops->event_elapsed)
        return ops->timer_create ? "event_elapsed" : "timer_create";
    return leat__table_first_missing(ops, size, own_entries,
                                     LENGTH(own_entries));
}

static int check_table(const leat_device_ops *ops)
{
    if (!ops)
        return leat_error(LEAT_EINVAL, "the device table is NULL");
    if (ops->size < sizeof(*ops))
        return leat_error(LEAT_EINVAL,
                          "the table of a device has \"size\" %zu, expected "
                          "%zu",
                          ops->size, sizeof(*ops));
    if (!ops->name)
        return leat_error(LEAT_EINVAL, "a device lacks \"name\"");
    if (ops->unified != 0 && ops->unified != 1)
        return leat_error(LEAT_EINVAL,
                          "the device \"%s\": unified is %d: expected 0 or 1",
                          ops->name, ops->unified);
    const char *missing = missing_entry(ops);
    if (missing)
        return leat_error(LEAT_EINVAL,
                          "the device \"%s\" lacks \"%s\", which is not "
                          "optional",
                          ops->name, missing);
    return LEAT_OK;
}

int leat_device_register(const leat_device_ops *ops)
{
    int status = check_table(ops);
    if (status)
        return status;
    size_t size = strlen(ops->name);
    if (size == 0 || size > NAME_MAX_SIZE || strchr(ops->name, ':'))
        return leat_error(
            LEAT_EINVAL,
            "invalid device name \"%s\": expected 1 to %d letters, "
            "no colon",
            ops->name, NAME_MAX_SIZE);
    leat__fork_reset_mutex(&lock);
    pthread_mutex_lock(&lock);
    status = add_locked(ops);
    pthread_mutex_unlock(&lock);
    return status;
}

/* `type` or `type:ordinal`. */
static int parse_ordinal(const char *name, size_t *type_size, int *ordinal)
{
    const char *colon = strchr(name, ':');
    *type_size = colon ? (size_t)(colon - name) : strlen(name);
    *ordinal = 0;
    if (!colon)
        return LEAT_OK;
    const char *digits = colon + 1;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 4 || digits[n])
        return leat_error(LEAT_EINVAL,
                          "device \"%s\": expected a number after the colon",
                          name);
    for (size_t i = 0; i < n; i++)
        *ordinal = *ordinal * 10 + (digits[i] - '0');
    return LEAT_OK;
}

static int unknown_locked(const char *name)
{
    char names[128] = "";
    for (int i = 0; i < ntypes; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                 types[i]->name);
    }
    const char *hint = strncmp(name, "cuda", 4) == 0 ? CUDA_HINT : "";
    return leat_error(LEAT_EINVAL, "there is no device \"%s\"%s; there are: %s",
                      name, hint, names);
}

static int find_locked(leat_device **out, const char *name)
{
    size_t size;
    int ordinal;
    int status = parse_ordinal(name, &size, &ordinal);
    if (status)
        return status;
    const leat_device_ops *type = find_type_locked(name, size);
    if (!type)
        return unknown_locked(name);
    if (type->unified && ordinal > 0)
        return leat_error(LEAT_EINVAL,
                          "there is no device \"%s\": there is one \"%s\", "
                          "which computes in host memory",
                          name, type->name);
    char full[32];
    if (type->unified)
        snprintf(full, sizeof(full), "%s", type->name);
    else
        snprintf(full, sizeof(full), "%s:%d", type->name, ordinal);
    for (int i = 0; i < ndevices; i++) {
        if (strcmp(devices[i]->name, full) == 0) {
            *out = devices[i];
            return LEAT_OK;
        }
    }
    if (ndevices == DEVICES_MAX)
        return leat_error(LEAT_EINVAL, "%d devices are open already",
                          DEVICES_MAX);
    leat_device *device = NULL;
    status = type->open(ordinal, &device);
    if (status)
        return status;
    if (!device)
        return leat_error(LEAT_EDEVICE,
                          "device \"%s\": open returned no device", name);
    device->ops = type;
    snprintf(device->name, sizeof(device->name), "%s", full);
    devices[ndevices] = device;
    ndevices++;
    *out = device;
    return LEAT_OK;
}

int leat_device_find(leat_device **out, const char *name)
{
    if (!name)
        return leat_error(LEAT_EINVAL, "a device is found by its name");
    leat__fork_reset_mutex(&lock);
    int cancel = leat__cancel_disable();
    pthread_mutex_lock(&lock);
    int status = find_locked(out, name);
    pthread_mutex_unlock(&lock);
    leat__cancel_restore(cancel);
    return status;
}

const char *leat_device_name(const leat_device *device)
{
    return device->name;
}
