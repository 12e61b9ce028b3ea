/*
 * The table's readers_mutex is held while a slot is taken and while those of
 * dead processes are cleared. A slot is written only by its owner.
 */
#include "readers/lmdb/lmdb_slot.h"
#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Whether no process holds the byte of that number. */
static bool is_dead(const leat__lmdb_lock_file *lock, pid_t number)
{
    if (number == lock->number)
        return false;
    return number < 0 ||
           leat__lmdb_lock_file_find_lock(lock->fd, number) == F_UNLCK;
}

static uint32_t count_used(const leat__lmdb_lock_file *lock)
{
    uint32_t n = atomic_load(&lock->table->readers);
    return n < lock->capacity ? n : lock->capacity;
}

/* The first `ready` slots. */
static void clear_dead(leat__lmdb_lock_file *lock, int64_t ready)
{
    leat__lmdb_lock_slot *slot = lock->table->slot;
    uint32_t n = count_used(lock);
    for (uint32_t i = 0; i < n && i < ready; i++) {
        pid_t number = atomic_load(&slot[i].number);
        if (number && is_dead(lock, number))
            atomic_store(&slot[i].number, 0);
    }
}

/* Other processes may have used slots for which this one has seen no blocks. */
static void reserve_used(leat__lmdb_lock_file *lock)
{
    int64_t used = count_used(lock);
    if (used > 0 && !leat__lmdb_lock_file_has_slot(lock, used - 1))
        (void)leat__lmdb_lock_file_reserve_slot(lock, used - 1);
}

/*
 * *ready: the slots that may be stored to meanwhile, from the first one. They
 * are made ready before: a refusal would write the mutex's page to the disk,
 * and its unlocking would raise SIGBUS. *full: there is no room to lock them,
 * ENOSPC.
 */
static int lock_slots(leat__lmdb_lock_file *lock, int64_t began, int64_t *ready,
                      int *full)
{
    pthread_mutex_t *mutex = &lock->table->readers_mutex;
    leat__lmdb_lock_wait wait = {.began = began};
    int code = 0;
    int status = leat__lmdb_lock_file_check(lock);
    *full = 0;
    if (!status)
        reserve_used(lock);
    while (!status &&
           !(*full = leat__lmdb_lock_file_ready_slots(
                 lock, (int64_t)count_used(lock) + 1, ready)) &&
           (code = pthread_mutex_trylock(mutex)) == EBUSY)
        status =
            leat__lmdb_lock_wait_once(&wait, lock->path, "its mutex is locked");
    if (status || *full)
        return status;
    if (code == EOWNERDEAD) {
        clear_dead(lock, *ready);
        code = pthread_mutex_consistent(mutex);
    }
    return code ? leat__lmdb_lock_file_damaged(lock->path,
                                               "its mutex cannot be locked")
                : LEAT_OK;
}

/* Fails only if the table was overwritten, which the next caller detects. */
static void unlock_slots(leat__lmdb_lock_file *lock)
{
    (void)pthread_mutex_unlock(&lock->table->readers_mutex);
}

/* 0, or ENOSPC where some are left: those beyond the first `ready`. */
static int clear_own(leat__lmdb_lock_file *lock, int64_t ready)
{
    leat__lmdb_lock_table *table = lock->table;
    uint32_t n = count_used(lock);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load(&table->slot[i].number) != lock->number)
            continue;
        if (i >= ready)
            return ENOSPC;
        atomic_store(&table->slot[i].number, 0);
    }
    return 0;
}

/*
 * Right after its number's byte was locked, a slot with this number belongs to
 * a dead process that had the same id, as in a restarted container. Later,
 * is_dead takes it for this process's own.
 */
int leat__lmdb_slot_clear_own(leat__lmdb_lock_file *lock, int64_t began,
                              int *code)
{
    lock->unreleased =
        leat__alloc_zero(lock->capacity, sizeof(*lock->unreleased));
    if (!lock->unreleased)
        return LEAT_ENOMEM;
    int64_t ready;
    int status = lock_slots(lock, began, &ready, code);
    if (status || *code)
        return status;
    *code = clear_own(lock, ready);
    unlock_slots(lock);
    return LEAT_OK;
}

/* 0, or ENOSPC where it is left for later. */
static int release(leat__lmdb_lock_file *lock, int64_t at)
{
    leat__lmdb_lock_slot *slot = &lock->table->slot[at];
    int code = leat__lmdb_lock_file_ready_slot(lock, at);
    if (code) {
        atomic_store(&lock->unreleased[at], true);
        return code;
    }
    atomic_store(&slot->txnid, LEAT__LMDB_NO_TXN);
    atomic_store(&slot->number, 0);
    return 0;
}

/* Those that were left, each by the one thread that clears its mark. */
static void release_left(leat__lmdb_lock_file *lock)
{
    uint32_t n = atomic_load(&lock->table->readers);
    int code = 0;
    for (uint32_t i = 0; i < n && i < lock->capacity && !code; i++)
        if (atomic_load(&lock->unreleased[i]) &&
            atomic_exchange(&lock->unreleased[i], false))
            code = release(lock, i);
}

void leat__lmdb_slot_release(leat__lmdb_lock_file *lock, int64_t at)
{
    if (!release(lock, at))
        release_left(lock);
}

void leat__lmdb_slot_release_all(leat__lmdb_lock_file *lock)
{
    if (!lock->table || !lock->number)
        return;
    uint32_t n = count_used(lock);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&lock->table->slot[i].number) == lock->number &&
            !leat__lmdb_lock_file_ready_slot(lock, i))
            atomic_store(&lock->table->slot[i].number, 0);
}

/* The index of a free slot; -1: none. */
static int64_t find_free(const leat__lmdb_lock_file *lock)
{
    leat__lmdb_lock_table *table = lock->table;
    uint32_t n = atomic_load(&table->readers);
    for (uint32_t i = 0; i < n && i < lock->capacity; i++)
        if (atomic_load(&table->slot[i].number) == 0)
            return i;
    return n < lock->capacity ? (int64_t)n : -1;
}

/* Other processes read slots below `readers` without the mutex, so it is raised
 * last but one; the number, which marks the owner, is stored last. */
static void claim(leat__lmdb_lock_file *lock, int64_t at)
{
    leat__lmdb_lock_table *table = lock->table;
    leat__lmdb_lock_slot *slot = &table->slot[at];
    atomic_store(&slot->number, 0);
    atomic_store(&slot->txnid, LEAT__LMDB_NO_TXN);
    slot->thread = pthread_self();
    if ((uint32_t)at == atomic_load(&table->readers))
        atomic_store(&table->readers, (uint32_t)at + 1);
    atomic_store(&slot->number, lock->number);
}

/* Takes a free slot, *at; -1: none is free. LEAT_AGAIN: it has no block yet, or
 * was not made ready; *full, if it was the one tried before, ENOSPC. */
static int take_locked(leat__lmdb_lock_file *lock, int64_t ready, int64_t *at,
                       int *full)
{
    int64_t tried = *at;
    *at = find_free(lock);
    if (*at < 0) {
        clear_dead(lock, ready);
        *at = find_free(lock);
    }
    if (*at < 0)
        return LEAT_OK;
    if (!leat__lmdb_lock_file_has_slot(lock, *at) ||
        (*at >= ready && *at != tried))
        return LEAT_AGAIN;
    if (*at >= ready)
        *full = ENOSPC;
    else
        claim(lock, *at);
    return LEAT_OK;
}

int leat__lmdb_slot_check(leat__lmdb_lock_file *lock, int64_t began)
{
    int64_t ready;
    int full;
    release_left(lock);
    int status = lock_slots(lock, began, &ready, &full);
    if (!status && !full)
        unlock_slots(lock);
    return status;
}

int leat__lmdb_slot_take(leat__lmdb_lock_file *lock, int64_t began,
                         int64_t *out, int *code)
{
    int64_t at = -1, ready;
    int status;
    release_left(lock);
    do {
        *code = at < 0 ? 0 : leat__lmdb_lock_file_reserve_slot(lock, at);
        status = *code ? LEAT_OK : lock_slots(lock, began, &ready, code);
        if (status || *code)
            return status;
        status = take_locked(lock, ready, &at, code);
        unlock_slots(lock);
    } while (status == LEAT_AGAIN);
    if (*code)
        return LEAT_OK;
    if (at < 0)
        return leat_error(LEAT_EIO,
                          "%s: all %u slots for readers are taken "
                          "(MDB_READERS_FULL); close other readers, or raise "
                          "maxreaders where the database is first opened",
                          lock->path, lock->capacity);
    *out = at;
    return LEAT_OK;
}
