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
 * No wait is longer than WAIT_SECONDS, and every value read from the table is
 * checked each time, since another process may have damaged it.
 */
#include "readers/lmdb/lmdb_lock.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Version 1 of the table: users lock the byte at their process number. */
#define MAGIC 0xBEEFC0DEu
#define FORMAT 0x00010001u

#define LINE 64 /* liblmdb's cache line in bytes */

/* Size of a lock file with liblmdb's default number of slots. */
#define LOCK_BYTES 8192
#define LOCK_BYTES_MAX ((off_t)64 << 20)

#define PROCESSES (1 << 22) /* above Linux's largest process id */
#define NUMBERS_MAX 500     /* per process: they fit into 31 bits */

#define WAIT_SECONDS 5
#define SECOND INT64_C(1000000000)

/* How often a writer may commit between two reads that belong together. */
#define TRIES_MAX 1000

typedef struct lock_slot {
    _Alignas(LINE) _Atomic size_t txnid; /* NO_TXN: protects no page */
    _Atomic pid_t number;                /* 0: the slot is free */
    pthread_t thread;
} lock_slot;

#define NO_TXN SIZE_MAX

typedef struct lock_table {
    uint32_t magic;
    uint32_t format;
    pthread_mutex_t readers_mutex;
    _Atomic size_t txnid;     /* the latest committed one */
    _Atomic uint32_t readers; /* slots ever used */
    _Alignas(LINE) pthread_mutex_t writer_mutex;
    lock_slot slot[];
} lock_table;

struct leat__lmdb_lock {
    char *path; /* owned */
    int fd;
    dev_t device;
    ino_t inode;
    size_t size; /* of the table in bytes */
    lock_table *table;
    uint32_t capacity; /* slots */
    pid_t number;      /* process number in its slots */
    int kind;          /* __kind of a mutex initialised as liblmdb's */

    /* Serialised by the caller: the data file that `table->txnid` belongs to,
     * and users. */
    dev_t data_device;
    ino_t data_inode;
    int references;
};

static int damaged(const leat__lmdb_lock *lock, const char *what)
{
    return leat_error(LEAT_EIO,
                      "%s: %s; end all programs that have the database open, "
                      "then remove this file",
                      lock->path, what);
}

static int foreign_file(const char *path, const char *what)
{
    return leat_error(LEAT_EIO,
                      "%s: %s, expected LMDB's lock file; it is left as it "
                      "is: move it away while no program has the database open",
                      path, what);
}

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
        return damaged(lock, what);
    if (waited > SECOND && !wait->logged) {
        wait->logged = true;
        leat__log(LEAT_LOG_WARNING, "%s: %s; waiting for it", lock->path, what);
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
        result = fcntl(lock->fd, F_OFD_SETLK, &wanted);
    while (result != 0 && errno == EINTR);
    return result ? errno : 0;
}

static bool is_taken(int code)
{
    return code == EAGAIN || code == EACCES;
}

static const char *type_of(mode_t mode)
{
    return S_ISLNK(mode)    ? "a symbolic link"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
                            : "not a regular file";
}

/* *code as in leat__lmdb_lock_open. */
static int open_file(leat__lmdb_lock *lock, int *code)
{
    struct stat found;
    /* Opening a device can have side effects, so the type is checked first. */
    if (lstat(lock->path, &found) == 0 && !S_ISREG(found.st_mode))
        return foreign_file(lock->path, type_of(found.st_mode));
    lock->fd =
        open(lock->path,
             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
             0664);
    if (lock->fd < 0 && errno == ELOOP)
        return foreign_file(lock->path, "a symbolic link");
    if (lock->fd < 0 || fstat(lock->fd, &found) != 0) {
        *code = errno;
        return LEAT_OK;
    }
    if (!S_ISREG(found.st_mode))
        return foreign_file(lock->path, type_of(found.st_mode));
    lock->device = found.st_dev;
    lock->inode = found.st_ino;
    return LEAT_OK;
}

int leat__lmdb_lock_open(leat__lmdb_lock **out, const leat__lmdb_file *file,
                         int *code)
{
    leat__lmdb_lock *lock = leat__alloc_zero(1, sizeof(*lock));
    if (!lock)
        return LEAT_ENOMEM;
    lock->fd = -1;
    lock->references = 1;
    lock->path = leat__strdup(file->lock);
    *code = 0;
    int status = lock->path ? open_file(lock, code) : LEAT_ENOMEM;
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
    return a->device == b->device && a->inode == b->inode;
}

bool leat__lmdb_lock_is_held(const leat__lmdb_lock *lock)
{
    return lock && lock->table;
}

/*
 * Allocates the file's blocks: a store through the map into a hole would raise
 * SIGBUS on a full file system. 0, or ENOSPC or EDQUOT.
 */
static int reserve(const leat__lmdb_lock *lock)
{
    struct stat found;
    /* The size determines the number of slots, so it is kept. */
    int code =
        fallocate(lock->fd, FALLOC_FL_KEEP_SIZE, 0, LOCK_BYTES) ? errno : 0;
    /* A file in use has its first blocks, with the slots of most readers. */
    if (code && fstat(lock->fd, &found) == 0 && found.st_blocks > 0)
        code = 0;
    return code == ENOSPC || code == EDQUOT ? code : 0;
}

/* 0, or the system's error. */
static int map_table(leat__lmdb_lock *lock, size_t size)
{
    void *base =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, lock->fd, 0);
    if (base == MAP_FAILED)
        return errno;
    lock->table = base;
    lock->size = size;
    lock->capacity =
        (uint32_t)((size - sizeof(lock_table)) / sizeof(lock_slot));
    return 0;
}

static void unmap_table(leat__lmdb_lock *lock)
{
    if (lock->table)
        munmap(lock->table, lock->size);
    lock->table = NULL;
}

/* As in liblmdb: shared between processes, and robust. */
static int make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    memset(mutex, 0, sizeof(*mutex));
    int code = pthread_mutexattr_init(&attributes);
    if (code)
        return code;
    code = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!code)
        code = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!code)
        code = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return code;
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
    atomic_store(&lock->table->txnid, txnid[txnid[0] < txnid[1]]);
    return LEAT_OK;
}

/* Whether all of its bytes are 0, as after a crash during its initialisation.
 */
static bool is_blank(const leat__lmdb_lock *lock, int *code)
{
    unsigned char bytes[4096];
    for (off_t at = 0;;) {
        ssize_t n = pread(lock->fd, bytes, sizeof(bytes), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            *code = errno;
        if (n <= 0)
            return n == 0;
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i])
                return false;
        at += n;
    }
}

/*
 * Only a lock file or an empty file is overwritten. A file of zeros with a
 * second link may be other data.
 */
static int check_own(const leat__lmdb_lock *lock, const struct stat *found,
                     int *code)
{
    uint32_t magic = 0;
    if (found->st_size > LOCK_BYTES_MAX)
        return foreign_file(lock->path, "too large");
    ssize_t n = pread(lock->fd, &magic, sizeof(magic), 0);
    if (n == (ssize_t)sizeof(magic) && magic == MAGIC)
        return LEAT_OK;
    bool is_own = found->st_size == 0 || found->st_nlink == 1;
    if ((is_own && is_blank(lock, code)) || *code)
        return LEAT_OK;
    return foreign_file(lock->path, "a file of something else");
}

/* The caller holds byte 0 exclusively: the table's contents are stale. */
static int make_table(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                      int *code)
{
    struct stat found;
    if (fstat(lock->fd, &found) != 0) {
        *code = errno;
        return LEAT_OK;
    }
    int status = check_own(lock, &found, code);
    if (!status && !*code)
        *code = reserve(lock);
    if (status || *code)
        return status;
    size_t size = (size_t)found.st_size;
    if (size < LOCK_BYTES) {
        size = LOCK_BYTES;
        if (ftruncate(lock->fd, LOCK_BYTES) != 0)
            *code = errno;
    }
    if (!*code)
        *code = map_table(lock, size);
    lock_table *table = lock->table;
    if (!table)
        return LEAT_OK;
    /* First: it marks the file as one that may be initialised again. */
    table->magic = MAGIC;
    table->format = FORMAT;
    *code = make_mutex(&table->readers_mutex);
    if (!*code)
        *code = make_mutex(&table->writer_mutex);
    if (*code)
        return LEAT_OK;
    atomic_store(&table->readers, 0);
    return set_latest(lock, file);
}

/* A table in use must be as liblmdb 0.9 initialises it. */
static int check_table(const leat__lmdb_lock *lock)
{
    const lock_table *table = lock->table;
    if (table->magic != MAGIC)
        return damaged(lock, "not LMDB's lock file, or damaged, while another "
                             "program uses it");
    if (table->format != FORMAT)
        return leat_error(LEAT_EIO,
                          "%s: of lock format %#x, expected %#x: another "
                          "version of LMDB uses it; end that program first",
                          lock->path, table->format, FORMAT);
    if (atomic_load(&table->readers) > lock->capacity)
        return damaged(lock, "its number of readers is damaged");
    if (table->readers_mutex.__data.__kind != lock->kind)
        return damaged(lock, "its mutex is damaged");
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
                      lock->path, (unsigned long long)latest, file->data);
}

/* The caller holds byte 0 shared. */
static int map_shared(leat__lmdb_lock *lock, int *code)
{
    struct stat found;
    if (fstat(lock->fd, &found) != 0)
        *code = errno;
    else if (found.st_size < (off_t)(sizeof(lock_table) + sizeof(lock_slot)) ||
             found.st_size > LOCK_BYTES_MAX)
        return damaged(lock, "its size is damaged");
    else if (!(*code = reserve(lock)))
        *code = map_table(lock, (size_t)found.st_size);
    return lock->table ? check_table(lock) : LEAT_OK;
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
        status = map_shared(lock, code);
        /* The process that initialised it may have died meanwhile. */
        if (status && set_lock(lock, F_WRLCK, 0) == 0) {
            unmap_table(lock);
            is_alone = true;
            status = LEAT_OK;
        }
    }
    if (status || *code)
        return status;
    if (!is_alone)
        return check_latest(lock, file);
    status = make_table(lock, file, code);
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

int leat__lmdb_lock_join(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                         int *code)
{
    pthread_mutex_t mutex;
    *code = make_mutex(&mutex);
    if (*code)
        return leat__error_system(*code, "%s: cannot make a mutex", lock->path);
    lock->kind = mutex.__data.__kind;
    pthread_mutex_destroy(&mutex);
    int status = join(lock, file, code);
    if (!status && !*code)
        *code = take_number(lock);
    if (status || *code) {
        unmap_table(lock);
        (void)set_lock(lock, F_UNLCK, 0);
        return status;
    }
    lock->data_device = file->device;
    lock->data_inode = file->inode;
    return LEAT_OK;
}

int leat__lmdb_lock_follow(leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    if (!lock->table ||
        (lock->data_device == file->device && lock->data_inode == file->inode))
        return LEAT_OK;
    bool is_alone = set_lock(lock, F_WRLCK, 0) == 0;
    int status = is_alone ? set_latest(lock, file) : check_latest(lock, file);
    int code = is_alone ? set_lock(lock, F_RDLCK, 0) : 0;
    if (!status && code)
        status = leat__error_system(code, "%s: cannot be shared", lock->path);
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
    unmap_table(lock);
    if (lock->fd >= 0) {
        /* A child forked at this moment may have inherited the descriptor. */
        (void)fcntl(lock->fd, F_OFD_SETLK, &all);
        close(lock->fd);
    }
    leat__free(lock->path);
    leat__free(lock);
}

void leat__lmdb_lock_forget(leat__lmdb_lock *lock)
{
    if (!lock)
        return;
    unmap_table(lock);
    close(lock->fd);
}

uint64_t leat__lmdb_lock_latest(const leat__lmdb_lock *lock)
{
    return atomic_load(&lock->table->txnid);
}

/* Whether no process holds the byte of that number. */
static bool is_dead(const leat__lmdb_lock *lock, pid_t number)
{
    struct flock found = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    if (number == lock->number)
        return false;
    return number < 0 || (fcntl(lock->fd, F_OFD_GETLK, &found) == 0 &&
                          found.l_type == F_UNLCK);
}

static void clear_dead(leat__lmdb_lock *lock)
{
    lock_slot *slot = lock->table->slot;
    uint32_t n = atomic_load(&lock->table->readers);
    for (uint32_t i = 0; i < n && i < lock->capacity; i++) {
        pid_t number = atomic_load(&slot[i].number);
        if (number && is_dead(lock, number))
            atomic_store(&slot[i].number, 0);
    }
}

static int lock_slots(leat__lmdb_lock *lock)
{
    pthread_mutex_t *mutex = &lock->table->readers_mutex;
    lock_wait wait = {0};
    int code = 0;
    int status = check_table(lock);
    while (!status && (code = pthread_mutex_trylock(mutex)) == EBUSY)
        status = wait_once(&wait, lock, "its mutex is locked");
    if (status)
        return status;
    if (code == EOWNERDEAD) {
        clear_dead(lock);
        code = pthread_mutex_consistent(mutex);
    }
    return code ? damaged(lock, "its mutex cannot be locked") : LEAT_OK;
}

/* The index of a free slot; -1: none. */
static int64_t find_free(const leat__lmdb_lock *lock)
{
    lock_table *table = lock->table;
    uint32_t n = atomic_load(&table->readers);
    for (uint32_t i = 0; i < n && i < lock->capacity; i++)
        if (atomic_load(&table->slot[i].number) == 0)
            return i;
    return n < lock->capacity ? (int64_t)n : -1;
}

/* Other processes read slots below `readers` without the mutex, so it is raised
 * last but one; the number, which marks the owner, is stored last. */
static void claim(leat__lmdb_lock *lock, int64_t at)
{
    lock_table *table = lock->table;
    lock_slot *slot = &table->slot[at];
    atomic_store(&slot->number, 0);
    atomic_store(&slot->txnid, NO_TXN);
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
    if (at >= 0)
        claim(lock, at);
    /* Fails only if the table was overwritten, which the next caller detects.
     */
    (void)pthread_mutex_unlock(&lock->table->readers_mutex);
    if (at < 0)
        return leat_error(LEAT_EIO,
                          "%s: all %u slots for readers are taken "
                          "(MDB_READERS_FULL); close other readers, or raise "
                          "maxreaders where the database is first opened",
                          lock->path, lock->capacity);
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
    lock_slot *slot = &lock->table->slot[at];
    size_t txnid;
    do {
        txnid = atomic_load(&lock->table->txnid);
        atomic_store(&slot->txnid, txnid);
    } while (txnid != atomic_load(&lock->table->txnid));
    *out = (leat__lmdb_pin){txnid, at};
    return LEAT_OK;
}

void leat__lmdb_lock_unpin(leat__lmdb_lock *lock, const leat__lmdb_pin *pin)
{
    lock_slot *slot = &lock->table->slot[pin->slot];
    atomic_store(&slot->txnid, NO_TXN);
    atomic_store(&slot->number, 0);
}
