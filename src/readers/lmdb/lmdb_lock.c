/*
 * DESIGN
 *
 * The file is a table in shared memory with the layout of liblmdb 0.9, which
 * test_lmdb_lock compares with the installed liblmdb. Three locks protect it:
 *
 * - Byte 0, by fcntl: shared by all users of the file, exclusive while it is
 *   initialised. The lock of the open file (F_OFD_SETLK) conflicts with
 *   liblmdb's, but is not lost when the process closes another descriptor of
 *   the file.
 * - The byte at a slot's process number, by fcntl: locked while the slot is in
 *   use. The number is the process id plus a multiple of PROCESSES, so that it
 *   differs from that of a liblmdb in the same process or of a process in
 *   another container.
 * - readers_mutex: held while a slot is taken or dead processes are cleared.
 *
 * A slot is written only by its owner. This struct is immutable once join has
 * returned, except the data file's identity, whose uses the caller serialises.
 *
 * No wait is longer than WAIT_SECONDS.
 */
#include "readers/lmdb/lmdb_lock.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_SECONDS 5
#define SECOND INT64_C(1000000000)

#define PROCESSES (1 << 22) /* above Linux's largest process id */
#define NUMBERS_MAX 500     /* per process: they fit into 31 bits */

/* How often a writer may commit between two reads that belong together. */
#define TRIES_MAX 1000

struct leat__lmdb_lock {
    leat__lmdb_lock_file file;
    pid_t number; /* process number in its slots */

    /* Serialised by the caller: the data file that the table's txnid belongs
     * to, and users. */
    dev_t data_device;
    ino_t data_inode;
    int references;
};

/* A bounded wait: pauses of growing length. */
typedef struct lock_wait {
    int64_t began;
    int64_t pause;
    bool logged;
} lock_wait;

/* Pauses once. LEAT_EIO after WAIT_SECONDS in all. */
static int wait_once(lock_wait *wait, const leat__lmdb_lock *lock,
                     const char *what)
{
    int64_t now = leat__clock_now();
    if (!wait->pause) {
        wait->began = now;
        wait->pause = SECOND / 20000;
    }
    int64_t waited = now - wait->began;
    if (waited > WAIT_SECONDS * SECOND)
        return leat__lmdb_lock_file_damaged(&lock->file, what);
    if (waited > SECOND && !wait->logged) {
        wait->logged = true;
        leat__log(LEAT_LOG_WARNING, "%s: %s; waiting for it", lock->file.path,
                  what);
    }
    struct timespec pause = leat__clock_timespec(wait->pause);
    nanosleep(&pause, NULL);
    if (wait->pause < SECOND / 50)
        wait->pause *= 2;
    return LEAT_OK;
}

/* 0, or the system's error. */
static int set_lock(const leat__lmdb_lock *lock, short type, off_t at)
{
    struct flock wanted = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int result;
    do
        result = fcntl(lock->file.fd, F_OFD_SETLK, &wanted);
    while (result != 0 && errno == EINTR);
    return result ? errno : 0;
}

/* The type of a lock of others on the byte: F_UNLCK if there is none; -1 if the
 * file system cannot say. */
static int find_lock(int fd, off_t at)
{
    struct flock found = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &found) == 0 ? found.l_type : -1;
}

static bool is_taken(int code)
{
    return code == EAGAIN || code == EACCES;
}

int leat__lmdb_lock_open(leat__lmdb_lock **out, const leat__lmdb_file *file,
                         int *code)
{
    leat__lmdb_lock *lock = leat__alloc_zero(1, sizeof(*lock));
    if (!lock)
        return LEAT_ENOMEM;
    lock->references = 1;
    *code = 0;
    int status = leat__lmdb_lock_file_open(&lock->file, file->lock, code);
    if (status || *code) {
        leat__lmdb_lock_close(lock);
        lock = NULL;
    }
    if (!status)
        *out = lock;
    return status;
}

bool leat__lmdb_lock_is_same(const leat__lmdb_lock *a, const leat__lmdb_lock *b)
{
    if (!a || !b)
        return a == b;
    return a->file.device == b->file.device && a->file.inode == b->file.inode;
}

bool leat__lmdb_lock_is_at(const leat__lmdb_lock *lock, const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && found.st_dev == lock->file.device &&
           found.st_ino == lock->file.inode;
}

bool leat__lmdb_lock_is_used(const char *path, const leat__lmdb_lock *own)
{
    struct stat found;
    /* Opening a device can have side effects, so the type is checked first. */
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode))
        return false;
    int fd = own ? own->file.fd
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    int type = find_lock(fd, 0);
    if (!own)
        close(fd);
    return type == F_RDLCK || type == F_WRLCK;
}

bool leat__lmdb_lock_is_held(const leat__lmdb_lock *lock)
{
    return lock && lock->file.table;
}

static int read_latest(const leat__lmdb_file *file, uint64_t txnid[2])
{
    leat__lmdb_meta meta[2] = {{0}};
    int status = leat__lmdb_file_meta(file, 0, 0, &meta[0]);
    if (!status)
        status = leat__lmdb_file_meta(file, 1, meta[0].page_size, &meta[1]);
    txnid[0] = meta[0].txnid;
    txnid[1] = meta[1].txnid;
    return status;
}

static int set_latest(leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    uint64_t txnid[2];
    int status = read_latest(file, txnid);
    if (status)
        return status;
    atomic_store(&lock->file.table->txnid, txnid[txnid[0] < txnid[1]]);
    return LEAT_OK;
}

/*
 * The table's transaction must be one of the data file's two. A writer may
 * commit between the two reads.
 */
static int check_latest(const leat__lmdb_lock *lock,
                        const leat__lmdb_file *file)
{
    uint64_t txnid[2], latest = 0;
    for (int i = 0; i < TRIES_MAX; i++) {
        latest = leat__lmdb_lock_latest(lock);
        int status = read_latest(file, txnid);
        if (status)
            return status;
        if (latest == txnid[0] || latest == txnid[1])
            return LEAT_OK;
    }
    return leat_error(LEAT_EIO,
                      "%s: is at transaction %llu, which %s does not have: it "
                      "is damaged, or the data file was replaced while another "
                      "program has the old one open; end all programs that "
                      "have the database open, then remove this file",
                      lock->file.path, (unsigned long long)latest, file->data);
}

/* Locks byte 0: exclusively if possible, else shared. */
static int lock_file(leat__lmdb_lock *lock, bool *is_alone, int *code)
{
    lock_wait wait = {0};
    for (;;) {
        *code = set_lock(lock, F_WRLCK, 0);
        *is_alone = !*code;
        if (is_taken(*code))
            *code = set_lock(lock, F_RDLCK, 0);
        if (!is_taken(*code))
            return LEAT_OK;
        int status = wait_once(&wait, lock,
                               "another program has locked it, and opens the "
                               "database");
        if (status)
            return status;
    }
}

static int join(leat__lmdb_lock *lock, const leat__lmdb_file *file, int *code)
{
    bool is_alone = false;
    int status = lock_file(lock, &is_alone, code);
    if (!status && !*code && !is_alone) {
        status = leat__lmdb_lock_file_map(&lock->file, code);
        /* The process that initialised it may have died meanwhile. */
        if (status && set_lock(lock, F_WRLCK, 0) == 0) {
            leat__lmdb_lock_file_unmap(&lock->file);
            is_alone = true;
            status = LEAT_OK;
        }
    }
    if (status || *code)
        return status;
    if (!is_alone)
        return check_latest(lock, file);
    status = leat__lmdb_lock_file_make(&lock->file, code);
    if (!status && !*code)
        status = set_latest(lock, file);
    if (!status && !*code)
        *code = set_lock(lock, F_RDLCK, 0);
    return status;
}

/* Chooses the process number for its slots, one whose byte is not locked. */
static int take_number(leat__lmdb_lock *lock)
{
    int code = 0;
    for (int i = 1; i <= NUMBERS_MAX; i++) {
        lock->number = getpid() + i * PROCESSES;
        code = set_lock(lock, F_WRLCK, lock->number);
        if (!is_taken(code))
            return code;
    }
    return code;
}

int leat__lmdb_lock_follow(leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    if (!lock->file.table ||
        (lock->data_device == file->device && lock->data_inode == file->inode))
        return LEAT_OK;
    bool is_alone = set_lock(lock, F_WRLCK, 0) == 0;
    int status = is_alone ? set_latest(lock, file) : check_latest(lock, file);
    int code = is_alone ? set_lock(lock, F_RDLCK, 0) : 0;
    if (!status && code)
        status =
            leat__error_system(code, "%s: cannot be shared", lock->file.path);
    if (status)
        return status;
    lock->data_device = file->device;
    lock->data_inode = file->inode;
    return LEAT_OK;
}

void leat__lmdb_lock_leave(leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    if (!lock || lock->data_device != file->device ||
        lock->data_inode != file->inode)
        return;
    lock->data_device = 0;
    lock->data_inode = 0;
}

leat__lmdb_lock *leat__lmdb_lock_ref(leat__lmdb_lock *lock)
{
    lock->references++;
    return lock;
}

void leat__lmdb_lock_close(leat__lmdb_lock *lock)
{
    if (!lock || --lock->references)
        return;
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    leat__lmdb_lock_file_unmap(&lock->file);
    if (lock->file.fd >= 0) {
        /* A child forked at this moment may have inherited the descriptor. */
        (void)fcntl(lock->file.fd, F_OFD_SETLK, &all);
        close(lock->file.fd);
    }
    leat__free(lock->file.path);
    leat__free(lock);
}

void leat__lmdb_lock_forget(leat__lmdb_lock *lock)
{
    if (!lock)
        return;
    leat__lmdb_lock_file_unmap(&lock->file);
    close(lock->file.fd);
}

uint64_t leat__lmdb_lock_latest(const leat__lmdb_lock *lock)
{
    return atomic_load(&lock->file.table->txnid);
}

/* Whether no process holds the byte of that number. */
static bool is_dead(const leat__lmdb_lock *lock, pid_t number)
{
    if (number == lock->number)
        return false;
    return number < 0 || find_lock(lock->file.fd, number) == F_UNLCK;
}

static void clear_dead(leat__lmdb_lock *lock)
{
    leat__lmdb_lock_slot *slot = lock->file.table->slot;
    uint32_t n = atomic_load(&lock->file.table->readers);
    for (uint32_t i = 0; i < n && i < lock->file.capacity; i++) {
        pid_t number = atomic_load(&slot[i].number);
        if (number && is_dead(lock, number))
            atomic_store(&slot[i].number, 0);
    }
}

static int lock_slots(leat__lmdb_lock *lock)
{
    pthread_mutex_t *mutex = &lock->file.table->readers_mutex;
    lock_wait wait = {0};
    int code = 0;
    int status = leat__lmdb_lock_file_check(&lock->file);
    while (!status && (code = pthread_mutex_trylock(mutex)) == EBUSY)
        status = wait_once(&wait, lock, "its mutex is locked");
    if (status)
        return status;
    if (code == EOWNERDEAD) {
        clear_dead(lock);
        code = pthread_mutex_consistent(mutex);
    }
    return code ? leat__lmdb_lock_file_damaged(&lock->file,
                                               "its mutex cannot be locked")
                : LEAT_OK;
}

/* Fails only if the table was overwritten, which the next caller detects. */
static void unlock_slots(leat__lmdb_lock *lock)
{
    (void)pthread_mutex_unlock(&lock->file.table->readers_mutex);
}

/*
 * Right after its number's byte was locked, a slot with this number belongs to
 * a dead process that had the same id, as in a restarted container. Later,
 * is_dead takes it for this process's own.
 */
static int clear_own(leat__lmdb_lock *lock)
{
    leat__lmdb_lock_table *table = lock->file.table;
    int status = lock_slots(lock);
    if (status)
        return status;
    uint32_t n = atomic_load(&table->readers);
    for (uint32_t i = 0; i < n && i < lock->file.capacity; i++)
        if (atomic_load(&table->slot[i].number) == lock->number)
            atomic_store(&table->slot[i].number, 0);
    unlock_slots(lock);
    return LEAT_OK;
}

int leat__lmdb_lock_join(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                         int *code)
{
    *code = leat__lmdb_lock_file_find_kind(&lock->file);
    if (*code)
        return leat__error_system(*code, "%s: cannot make a mutex",
                                  lock->file.path);
    int status = join(lock, file, code);
    if (!status && !*code)
        *code = take_number(lock);
    if (!status && !*code)
        status = clear_own(lock);
    if (status || *code) {
        leat__lmdb_lock_file_unmap(&lock->file);
        (void)set_lock(lock, F_UNLCK, 0);
        return status;
    }
    lock->data_device = file->device;
    lock->data_inode = file->inode;
    return LEAT_OK;
}

/* The index of a free slot; -1: none. */
static int64_t find_free(const leat__lmdb_lock *lock)
{
    leat__lmdb_lock_table *table = lock->file.table;
    uint32_t n = atomic_load(&table->readers);
    for (uint32_t i = 0; i < n && i < lock->file.capacity; i++)
        if (atomic_load(&table->slot[i].number) == 0)
            return i;
    return n < lock->file.capacity ? (int64_t)n : -1;
}

/* Other processes read slots below `readers` without the mutex, so it is raised
 * last but one; the number, which marks the owner, is stored last. */
static void claim(leat__lmdb_lock *lock, int64_t at)
{
    leat__lmdb_lock_table *table = lock->file.table;
    leat__lmdb_lock_slot *slot = &table->slot[at];
    atomic_store(&slot->number, 0);
    atomic_store(&slot->txnid, LEAT__LMDB_NO_TXN);
    slot->thread = pthread_self();
    if ((uint32_t)at == atomic_load(&table->readers))
        atomic_store(&table->readers, (uint32_t)at + 1);
    atomic_store(&slot->number, lock->number);
}

static int take_slot(leat__lmdb_lock *lock, int64_t *out)
{
    int status = lock_slots(lock);
    if (status)
        return status;
    int64_t at = find_free(lock);
    if (at < 0) {
        clear_dead(lock);
        at = find_free(lock);
    }
    status =
        at < 0 ? LEAT_OK : leat__lmdb_lock_file_reserve_slot(&lock->file, at);
    if (at >= 0 && !status)
        claim(lock, at);
    unlock_slots(lock);
    if (status)
        return status;
    if (at < 0)
        return leat_error(LEAT_EIO,
                          "%s: all %u slots for readers are taken "
                          "(MDB_READERS_FULL); close other readers, or raise "
                          "maxreaders where the database is first opened",
                          lock->file.path, lock->file.capacity);
    *out = at;
    return LEAT_OK;
}

int leat__lmdb_lock_pin(leat__lmdb_lock *lock, leat__lmdb_pin *out)
{
    int64_t at = -1;
    int status = take_slot(lock, &at);
    if (status)
        return status;
    /* A writer that commits in between may not see the slot. */
    leat__lmdb_lock_slot *slot = &lock->file.table->slot[at];
    size_t txnid;
    do {
        txnid = atomic_load(&lock->file.table->txnid);
        atomic_store(&slot->txnid, txnid);
    } while (txnid != atomic_load(&lock->file.table->txnid));
    *out = (leat__lmdb_pin){txnid, at};
    return LEAT_OK;
}

void leat__lmdb_lock_unpin(leat__lmdb_lock *lock, const leat__lmdb_pin *pin)
{
    leat__lmdb_lock_slot *slot = &lock->file.table->slot[pin->slot];
    atomic_store(&slot->txnid, LEAT__LMDB_NO_TXN);
    atomic_store(&slot->number, 0);
}
