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
 * - readers_mutex: see lmdb_slot.c.
 *
 * This struct is immutable once join has returned, except the references, whose
 * uses the caller serialises, and the data file's identity. That changes with
 * the table's transaction, and any thread reads the two together, so both are
 * under data_lock, which is taken last and held for no call of the system.
 *
 * fork: a lock of the open file lasts as long as any process has the file open
 * or mapped, so a child must have neither. `locks` lists all locks from before
 * their file is opened until it is closed, and no fork comes between opening,
 * mapping or closing the file and noting that (leat__fork_hold).
 *
 * No wait is longer than 5 seconds.
 */
#include "readers/lmdb/lmdb_lock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_lock_file.h"
#include "readers/lmdb/lmdb_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES (1 << 22) /* above Linux's largest process id */
#define NUMBERS_MAX 500     /* per process: they fit into 31 bits */

/* How often a writer may commit between two reads that belong together. */
#define TRIES_MAX 1000

struct leat__lmdb_lock {
    leat__lmdb_lock_file file;

    /* The data file that the table's txnid belongs to. Written by serialised
     * calls under data_lock, and read under either. */
    dev_t data_device;
    ino_t data_inode;

    int references; /* serialised by the caller */

    _Atomic(leat__lmdb_lock *) next; /* written by the serialised calls */
};

typedef _Atomic(leat__lmdb_lock *) lock_link;

/* All of this process; written by the calls that the caller serialises. */
static lock_link locks;

/* Protects the data files' identities with their transactions. */
static pthread_mutex_t data_lock = PTHREAD_MUTEX_INITIALIZER;

int leat__lmdb_lock_open(leat__lmdb_lock **out, const leat__lmdb_file *file,
                         int *code)
{
    leat__lmdb_lock *lock = leat__alloc_zero(1, sizeof(*lock));
    if (!lock)
        return LEAT_ENOMEM;
    lock->references = 1;
    lock->file.fd = -1;
    atomic_store(&lock->next, atomic_load(&locks));
    atomic_store(&locks, lock);
    *code = 0;
    int status = LEAT_OK;
    if (file->is_hidden)
        *code = ENOENT; /* a lock file beside the link is not the writers' */
    else
        status =
            leat__lmdb_lock_file_open(&lock->file, file->lock, file->fd, code);
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

static bool is_one(const leat__lmdb_lock *lock, const struct stat *found)
{
    return found->st_dev == lock->file.device &&
           found->st_ino == lock->file.inode;
}

bool leat__lmdb_lock_is_at(const leat__lmdb_lock *lock, const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && is_one(lock, &found);
}

/* The process's lock of that lock file; NULL: none. */
static leat__lmdb_lock *find_own(const struct stat *found)
{
    leat__lmdb_lock *at = atomic_load(&locks);
    while (at && !is_one(at, found))
        at = atomic_load(&at->next);
    return at;
}

static bool is_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOMEM;
}

int leat__lmdb_lock_find_user(const char *path, bool otherwise, bool *out)
{
    struct stat found;
    *out = false;
    /* Opening a device can have side effects, so the type is checked first. */
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode))
        return LEAT_OK;
    *out = otherwise;
    const leat__lmdb_lock *own = find_own(&found);
    int fd = own ? own->file.fd
                 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return is_shortage(errno) ? leat__error_system(errno, "%s", path)
                                  : LEAT_OK;
    int type = leat__lmdb_lock_file_find_lock(fd, 0);
    if (!own)
        close(fd);
    if (type >= 0)
        *out = type == F_RDLCK || type == F_WRLCK;
    return LEAT_OK;
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

static bool is_of(const leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    return lock->data_device == file->device && lock->data_inode == file->inode;
}

/* Whose transaction the table has; 0, 0: no file's. */
static void set_data(leat__lmdb_lock *lock, dev_t device, ino_t inode)
{
    pthread_mutex_lock(&data_lock);
    lock->data_device = device;
    lock->data_inode = inode;
    pthread_mutex_unlock(&data_lock);
}

/* No file's, until set_data. */
static void set_table(leat__lmdb_lock *lock, uint64_t latest)
{
    pthread_mutex_lock(&data_lock);
    lock->data_device = 0;
    lock->data_inode = 0;
    atomic_store(&lock->file.table->txnid, latest);
    pthread_mutex_unlock(&data_lock);
}

/* Whether the table has that of `file`, then *out. */
static bool find_latest(const leat__lmdb_lock *lock,
                        const leat__lmdb_file *file, uint64_t *out)
{
    if (!leat__lmdb_lock_is_held(lock))
        return false;
    pthread_mutex_lock(&data_lock);
    bool is_found = is_of(lock, file);
    if (is_found)
        *out = atomic_load(&lock->file.table->txnid);
    pthread_mutex_unlock(&data_lock);
    return is_found;
}

int leat__lmdb_lock_latest(const leat__lmdb_lock *lock,
                           const leat__lmdb_file *file, uint64_t *out)
{
    uint64_t txnid[2];
    if (find_latest(lock, file, out))
        return LEAT_OK;
    int status = read_latest(file, txnid);
    if (!status)
        *out = txnid[txnid[0] < txnid[1]];
    return status;
}

static int set_latest(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                      int *code)
{
    uint64_t txnid[2];
    int status = read_latest(file, txnid);
    *code = status ? 0 : leat__lmdb_lock_file_ready(&lock->file);
    if (!status && !*code)
        set_table(lock, txnid[txnid[0] < txnid[1]]);
    return status;
}

/* `what` the data file does with that transaction. */
static int refuse_latest(const leat__lmdb_lock *lock, uint64_t latest,
                         const leat__lmdb_file *file, const char *what)
{
    return leat_error(
        LEAT_EIO,
        "%s: is at transaction %llu, which %s %s: it is damaged, or the data "
        "file was replaced or overwritten while a program has it open; end all "
        "programs that have the database open, then remove this file",
        lock->file.path, (unsigned long long)latest, file->data, what);
}

/* Whatever file the table's is. A writer may commit between the two reads. */
static int check_table(const leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    uint64_t txnid[2], latest = 0;
    for (int i = 0; i < TRIES_MAX; i++) {
        latest = atomic_load(&lock->file.table->txnid);
        int status = read_latest(file, txnid);
        if (status)
            return status;
        if (latest == txnid[0] || latest == txnid[1])
            return LEAT_OK;
    }
    return refuse_latest(lock, latest, file, "does not have");
}

int leat__lmdb_lock_check_latest(const leat__lmdb_lock *lock,
                                 const leat__lmdb_file *file)
{
    uint64_t latest;
    return find_latest(lock, file, &latest) ? check_table(lock, file) : LEAT_OK;
}

/*
 * A writer has the mutex from before it writes a meta page until the table has
 * that page's transaction. If it died between the two, the system has marked
 * the mutex, until the next writer has set the table right.
 */
int leat__lmdb_lock_check_overtaken(const leat__lmdb_lock *lock,
                                    const leat__lmdb_file *file, uint64_t id)
{
    const int *writer = &lock->file.table->writer_mutex.__data.__lock;
    bool is_free = __atomic_load_n(writer, __ATOMIC_ACQUIRE) == 0;
    uint64_t latest;
    if (!find_latest(lock, file, &latest) || latest != id)
        return LEAT_AGAIN;
    return is_free ? refuse_latest(lock, id, file,
                                   "is past, though no writer is at work")
                   : LEAT_OK;
}

/* Locks byte 0: exclusively if possible, else shared. */
static int lock_file(leat__lmdb_lock *lock, int64_t began, bool *is_alone,
                     int *code)
{
    leat__lmdb_lock_wait wait = {.began = began};
    for (;;) {
        *code = leat__lmdb_lock_file_set_lock(&lock->file, F_WRLCK, 0);
        *is_alone = !*code;
        if (leat__lmdb_lock_file_is_taken(*code))
            *code = leat__lmdb_lock_file_set_lock(&lock->file, F_RDLCK, 0);
        if (!leat__lmdb_lock_file_is_taken(*code))
            return LEAT_OK;
        int status = leat__lmdb_lock_wait_once(
            &wait, lock->file.path,
            "another program has locked it, and opens the "
            "database");
        if (status)
            return status;
    }
}

static int join(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                int64_t began, int *code)
{
    bool is_alone = false;
    int status = lock_file(lock, began, &is_alone, code);
    if (!status && !*code && !is_alone) {
        status = leat__lmdb_lock_file_map(&lock->file, code);
        /* The process that initialised it may have died meanwhile. */
        if (status &&
            leat__lmdb_lock_file_set_lock(&lock->file, F_WRLCK, 0) == 0) {
            leat__lmdb_lock_file_unmap(&lock->file);
            is_alone = true;
            status = LEAT_OK;
        }
    }
    if (status || *code)
        return status;
    if (!is_alone)
        return check_table(lock, file);
    status = leat__lmdb_lock_file_make(&lock->file, code);
    if (!status && !*code)
        status = set_latest(lock, file, code);
    if (!status && !*code)
        *code = leat__lmdb_lock_file_set_lock(&lock->file, F_RDLCK, 0);
    return status;
}

/* Chooses the process number for its slots, one whose byte is not locked. */
static int take_number(leat__lmdb_lock *lock)
{
    int code = 0;
    for (int i = 1; i <= NUMBERS_MAX; i++) {
        lock->file.number = getpid() + i * PROCESSES;
        code = leat__lmdb_lock_file_set_lock(&lock->file, F_WRLCK,
                                             lock->file.number);
        if (!leat__lmdb_lock_file_is_taken(code))
            return code;
    }
    return code;
}

/* Each process holds one of those bytes, so none is free only where another
 * program, such as a backup, has locked all of the file. */
static int await_number(leat__lmdb_lock *lock, int64_t began, int *code)
{
    leat__lmdb_lock_wait wait = {.began = began};
    int status = LEAT_OK;
    while (!status && leat__lmdb_lock_file_is_taken(*code = take_number(lock)))
        status = leat__lmdb_lock_wait_once(&wait, lock->file.path,
                                           "another program has locked all of "
                                           "it");
    return status;
}

int leat__lmdb_lock_follow(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                           int *code)
{
    *code = 0;
    if (!lock->file.table || is_of(lock, file))
        return LEAT_OK;
    bool is_alone = leat__lmdb_lock_file_set_lock(&lock->file, F_WRLCK, 0) == 0;
    int status =
        is_alone ? set_latest(lock, file, code) : check_table(lock, file);
    int shared =
        is_alone ? leat__lmdb_lock_file_set_lock(&lock->file, F_RDLCK, 0) : 0;
    if (!status && shared)
        status =
            leat__error_system(shared, "%s: cannot be shared", lock->file.path);
    if (!status && !*code)
        set_data(lock, file->device, file->inode);
    return status;
}

void leat__lmdb_lock_leave(leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    if (lock && is_of(lock, file))
        set_data(lock, 0, 0);
}

leat__lmdb_lock *leat__lmdb_lock_ref(leat__lmdb_lock *lock)
{
    lock->references++;
    return lock;
}

/* In a child that was forked while its lock was opened it is not listed. */
static void unlist(const leat__lmdb_lock *lock)
{
    lock_link *at = &locks;
    while (atomic_load(at) && atomic_load(at) != lock)
        at = &atomic_load(at)->next;
    if (atomic_load(at))
        atomic_store(at, atomic_load(&lock->next));
}

void leat__lmdb_lock_close(leat__lmdb_lock *lock)
{
    if (!lock || --lock->references)
        return;
    leat__fork_hold();
    unlist(lock);
    leat__lmdb_slot_release_all(&lock->file);
    leat__lmdb_lock_file_close(&lock->file);
    leat__fork_release();
    leat__free(lock->file.unreleased);
    leat__free(lock->file.path);
    leat__free(lock);
}

void leat__lmdb_lock_forget_all(void)
{
    for (leat__lmdb_lock *at = atomic_load(&locks); at;
         at = atomic_load(&at->next))
        leat__lmdb_lock_file_forget(&at->file);
    atomic_store(&locks, NULL);
    data_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int leat__lmdb_lock_join(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                         int64_t began, int *code)
{
    *code = leat__lmdb_lock_file_find_kind(&lock->file);
    if (*code)
        return leat__error_system(*code, "%s: cannot make a mutex",
                                  lock->file.path);
    int status = join(lock, file, began, code);
    if (!status && !*code)
        status = await_number(lock, began, code);
    if (!status && !*code)
        status = leat__lmdb_slot_clear_own(&lock->file, began, code);
    if (status || *code) {
        leat__lmdb_lock_file_unmap(&lock->file);
        (void)leat__lmdb_lock_file_set_lock(&lock->file, F_UNLCK, 0);
        return status;
    }
    set_data(lock, file->device, file->inode);
    return LEAT_OK;
}

int leat__lmdb_lock_check(leat__lmdb_lock *lock, int64_t began)
{
    return leat__lmdb_lock_is_held(lock)
               ? leat__lmdb_slot_check(&lock->file, began)
               : LEAT_OK;
}

int leat__lmdb_lock_pin(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                        int64_t began, leat__lmdb_pin *out, int *code)
{
    int64_t at = -1;
    uint64_t txnid = LEAT__LMDB_NO_TXN, latest = 0;
    int status = leat__lmdb_slot_take(&lock->file, began, &at, code);
    if (status || *code)
        return status;
    /* A writer that commits in between may not see the slot. */
    leat__lmdb_lock_slot *slot = &lock->file.table->slot[at];
    status = leat__lmdb_lock_latest(lock, file, &latest);
    while (!status && txnid != latest) {
        txnid = latest;
        atomic_store(&slot->txnid, txnid);
        status = leat__lmdb_lock_latest(lock, file, &latest);
    }
    if (status)
        leat__lmdb_slot_release(&lock->file, at);
    else
        *out = (leat__lmdb_pin){txnid, at};
    return status;
}

void leat__lmdb_lock_unpin(leat__lmdb_lock *lock, const leat__lmdb_pin *pin)
{
    leat__lmdb_slot_release(&lock->file, pin->slot);
}
