/*
 * Every value read from the table is checked, since another process may have
 * damaged it, and a file that is not LMDB's lock file is left as it is.
 */
#include "readers/lmdb/lmdb_lock_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_access.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Version 1 of the table: users lock the byte at their process number. */
#define MAGIC 0xBEEFC0DEu
#define FORMAT 0x00010001u

/* Size of a lock file with liblmdb's default number of slots, 126. */
#define LOCK_BYTES 8192
/* Of a new one: 1022 slots, of which those beyond 126 get blocks when taken. */
#define NEW_BYTES 65536
#define LOCK_BYTES_MAX ((off_t)64 << 20)

/* How often a file that comes and goes is tried. */
enum { CREATE_TRIES = 100 };

#define WAIT_SECONDS 5
#define SECOND INT64_C(1000000000)

static int foreign_file(const char *path, const char *what)
{
    return leat_error(LEAT_EIO,
                      "%s: %s, expected LMDB's lock file; it is left as it "
                      "is: move it away while no program has the database open",
                      path, what);
}

int leat__lmdb_lock_file_damaged(const char *path, const char *what)
{
    return leat_error(LEAT_EIO,
                      "%s: %s; end all programs that have the database open, "
                      "then remove this file",
                      path, what);
}

int leat__lmdb_lock_wait_once(leat__lmdb_lock_wait *wait, const char *path,
                              const char *what)
{
    int64_t now = leat__clock_now();
    int status = leat__opening_check(path);
    if (status)
        return status;
    if (!wait->began)
        wait->began = now;
    if (!wait->pause)
        wait->pause = SECOND / 20000;
    int64_t waited = now - wait->began;
    /* A thread that comes late, after other waits, still pauses a few times. */
    if (waited > WAIT_SECONDS * SECOND && wait->pause >= SECOND / 50)
        return leat__lmdb_lock_file_damaged(path, what);
    if (waited > SECOND && !wait->logged) {
        wait->logged = true;
        leat__log(LEAT_LOG_WARNING, "%s: %s; waiting for it", path, what);
    }
    struct timespec pause = leat__clock_timespec(wait->pause);
    nanosleep(&pause, NULL);
    if (wait->pause < SECOND / 50)
        wait->pause *= 2;
    return LEAT_OK;
}

/* 0, or the system's error. */
static int try_lock(int fd, short type, off_t at)
{
    struct flock wanted = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &wanted);
    while (result != 0 && errno == EINTR);
    return result ? errno : 0;
}

/* Whether others keep it from being locked so, as far as can be told. */
static bool is_kept(int fd, short type, off_t at)
{
    struct flock found = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &found))
        return errno != EACCES;
    return found.l_type != F_UNLCK;
}

/* EACCES: a network's file systems say so of a lock of others, which may be
 * gone by now, and a security module where locks are forbidden. */
int leat__lmdb_lock_file_set_lock(const leat__lmdb_lock_file *lock, short type,
                                  off_t at)
{
    int code = EACCES;
    for (int i = 0; i < 2 && code == EACCES; i++) {
        code = try_lock(lock->fd, type, at);
        if (code == EACCES && is_kept(lock->fd, type, at))
            code = EAGAIN;
    }
    return code;
}

int leat__lmdb_lock_file_find_lock(int fd, off_t at)
{
    struct flock found = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &found) == 0 ? found.l_type : -1;
}

bool leat__lmdb_lock_file_is_taken(int code)
{
    return code == EAGAIN;
}

static const char *type_of(mode_t mode)
{
    return S_ISLNK(mode)    ? "a symbolic link"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
                            : "not a regular file";
}

/*
 * Creates no file that is there: in a directory that all may write to the
 * system refuses that for another user's file (fs.protected_regular).
 */
static int open_or_create(const char *path, bool *is_new)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd, tries = CREATE_TRIES;
    do {
        fd = open(path, flags);
        *is_new = fd < 0 && errno == ENOENT;
        if (*is_new)
            fd = open(path, flags | O_CREAT | O_EXCL, 0664);
    } while (fd < 0 && (errno == EEXIST || errno == EINTR) && --tries > 0);
    return fd;
}

/* Those who may open the data must not be kept from it by a lock file that
 * another user's process makes, as the superuser's. */
static void give_to_owner(int fd, int data)
{
    struct stat own, found;
    if (fstat(fd, &own) || fstat(data, &found) ||
        (own.st_uid == found.st_uid && own.st_gid == found.st_gid))
        return;
    uid_t user = leat__file_knows_user(found.st_uid) ? found.st_uid : (uid_t)-1;
    gid_t group =
        leat__file_knows_group(found.st_gid) ? found.st_gid : (gid_t)-1;
    if (fchown(fd, user, group))
        return; /* not for this process to give */
}

/* btrfs would copy its blocks at stores, for which a full one has no room.
 * Where it cannot be, each store is made ready for. */
static void write_in_place(int fd)
{
    struct statfs system;
    int flags;
    if (fstatfs(fd, &system) || system.f_type != BTRFS_SUPER_MAGIC ||
        ioctl(fd, FS_IOC_GETFLAGS, &flags))
        return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* 0, or the system's error. A forked child has the file only if it finds its
 * descriptor here. */
static int open_file(leat__lmdb_lock_file *lock, int data)
{
    bool is_new;
    leat__fork_hold();
    lock->fd = open_or_create(lock->path, &is_new);
    int code = lock->fd < 0 ? errno : 0;
    leat__fork_release();
    if (!code && is_new) {
        write_in_place(lock->fd);
        give_to_owner(lock->fd, data);
    }
    return code;
}

int leat__lmdb_lock_file_open(leat__lmdb_lock_file *lock, const char *path,
                              int data, int *code)
{
    struct stat found;
    lock->fd = -1;
    lock->path = leat__strdup(path);
    if (!lock->path)
        return LEAT_ENOMEM;
    /* Opening a device can have side effects, so the type is checked first. */
    if (lstat(lock->path, &found) == 0 && !S_ISREG(found.st_mode))
        return foreign_file(lock->path, type_of(found.st_mode));
    *code = open_file(lock, data);
    if (*code == ELOOP) {
        *code = 0;
        return foreign_file(lock->path, "a symbolic link");
    }
    if (!*code && fstat(lock->fd, &found) != 0)
        *code = errno;
    if (*code)
        return LEAT_OK;
    if (!S_ISREG(found.st_mode))
        return foreign_file(lock->path, type_of(found.st_mode));
    lock->device = found.st_dev;
    lock->inode = found.st_ino;
    return LEAT_OK;
}

/* 0, or the system's error. */
static int allocate(int fd, off_t begin, off_t size)
{
    int code;
    do
        code = fallocate(fd, FALLOC_FL_KEEP_SIZE, begin, size) ? errno : 0;
    while (code == EINTR);
    return code;
}

/*
 * Allocates the file's first `size` bytes: a store through the map into a hole
 * would raise SIGBUS on a full file system, of which `least` are enough. 0;
 * ENOSPC or EDQUOT; EFBIG beyond the process's limit, of which tmpfs makes a
 * signal even where the size is kept.
 */
static int reserve(leat__lmdb_lock_file *lock, off_t size, off_t least)
{
    struct stat found;
    int code = fstat(lock->fd, &found) == 0 && found.st_size < size
                   ? leat__file_check_limit(size)
                   : 0;
    if (code)
        return code;
    /* The size determines the number of slots, so it is kept. */
    code = allocate(lock->fd, 0, size);
    bool is_full = code == ENOSPC || code == EDQUOT;
    if (is_full && fstat(lock->fd, &found) == 0 &&
        (off_t)found.st_blocks * 512 >= least) {
        size = (off_t)found.st_blocks * 512;
        is_full = false;
    }
    if (!is_full)
        atomic_store(&lock->reserved, (size_t)size);
    return is_full ? code : 0;
}

/*
 * Makes those bytes of the map ready for stores: a file system that copies on
 * write, or that cannot allocate, takes their blocks at the first store after
 * they were written to disk. 0; ENOSPC where that would raise SIGBUS; 0 also on
 * a kernel that cannot say. A page that reaches the disk between this and the
 * store is taken anew; the stores follow at once.
 */
static int populate(const leat__lmdb_lock_file *lock, size_t begin, size_t size)
{
    size_t before = begin % (size_t)sysconf(_SC_PAGESIZE);
    void *first = (char *)lock->table + (begin - before);
    return madvise(first, size + before, MADV_POPULATE_WRITE) && errno == EFAULT
               ? ENOSPC
               : 0;
}

int leat__lmdb_lock_file_ready(const leat__lmdb_lock_file *lock)
{
    return populate(lock, 0, sizeof(leat__lmdb_lock_table));
}

static size_t slot_begin(int64_t at)
{
    return sizeof(leat__lmdb_lock_table) +
           (size_t)at * sizeof(leat__lmdb_lock_slot);
}

int leat__lmdb_lock_file_ready_slot(const leat__lmdb_lock_file *lock,
                                    int64_t at)
{
    return populate(lock, slot_begin(at), sizeof(leat__lmdb_lock_slot));
}

static int64_t slots_before(size_t end)
{
    return (int64_t)((end - slot_begin(0)) / sizeof(leat__lmdb_lock_slot));
}

/* The header's page comes last: a refusal may write it to the disk. */
int leat__lmdb_lock_file_ready_slots(const leat__lmdb_lock_file *lock,
                                     int64_t n, int64_t *ready)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = slot_begin(n);
    size_t reserved = atomic_load(&lock->reserved);
    end = end < reserved ? end : reserved;
    bool is_ready = end > page && !populate(lock, page, end - page);
    *ready = slots_before(is_ready ? end : page);
    return leat__lmdb_lock_file_ready(lock);
}

bool leat__lmdb_lock_file_has_slot(const leat__lmdb_lock_file *lock, int64_t at)
{
    return slot_begin(at + 1) <= atomic_load(&lock->reserved);
}

int leat__lmdb_lock_file_reserve_slot(leat__lmdb_lock_file *lock, int64_t at)
{
    off_t size = (off_t)slot_begin(at + 1);
    return reserve(lock, size, size);
}

static void set_size(leat__lmdb_lock_file *lock, size_t size)
{
    size_t slots = size > sizeof(leat__lmdb_lock_table)
                       ? size - sizeof(leat__lmdb_lock_table)
                       : 0;
    lock->size = size;
    lock->capacity = (uint32_t)(slots / sizeof(leat__lmdb_lock_slot));
}

/* With the first page, which a file of liblmdb's has blocks for; slots beyond
 * it are made ready as they are taken. 0, or the system's error. */
static int map_table(leat__lmdb_lock_file *lock)
{
    leat__fork_hold();
    void *base =
        mmap(NULL, lock->size, PROT_READ | PROT_WRITE, MAP_SHARED, lock->fd, 0);
    int code = base == MAP_FAILED ? errno : 0;
    if (!code)
        lock->table = base;
    leat__fork_release();
    return code ? code : leat__lmdb_lock_file_ready(lock);
}

static void unmap(leat__lmdb_lock_file *lock)
{
    if (lock->table)
        munmap(lock->table, lock->size);
    lock->table = NULL;
}

void leat__lmdb_lock_file_unmap(leat__lmdb_lock_file *lock)
{
    leat__fork_hold();
    unmap(lock);
    leat__fork_release();
}

void leat__lmdb_lock_file_close(leat__lmdb_lock_file *lock)
{
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    unmap(lock);
    if (lock->fd < 0)
        return;
    /* A child of vfork or clone may have the descriptor, too. */
    (void)fcntl(lock->fd, F_OFD_SETLK, &all);
    close(lock->fd);
    lock->fd = -1;
}

void leat__lmdb_lock_file_forget(leat__lmdb_lock_file *lock)
{
    unmap(lock);
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
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

int leat__lmdb_lock_file_find_kind(leat__lmdb_lock_file *lock)
{
    pthread_mutex_t mutex;
    int code = make_mutex(&mutex);
    if (code)
        return code;
    lock->kind = mutex.__data.__kind;
    pthread_mutex_destroy(&mutex);
    return 0;
}

/* Up to `n` of its bytes, fewer only at its end; -1, and the system's error. */
static ssize_t read_at(const leat__lmdb_lock_file *lock, void *out, size_t n,
                       off_t at, int *code)
{
    ssize_t done = leat__file_read_at(lock->fd, out, n, at);
    if (done < 0)
        *code = errno;
    return done;
}

/* Whether all of its bytes are 0, as after a crash during its initialisation.
 */
static bool is_blank(const leat__lmdb_lock_file *lock, int *code)
{
    unsigned char bytes[4096];
    ssize_t n;
    for (off_t at = 0; (n = read_at(lock, bytes, sizeof(bytes), at, code)) > 0;
         at += n)
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i])
                return false;
    return n == 0;
}

static bool is_in_place(const leat__lmdb_lock_file *lock)
{
    struct stat found;
    return lstat(lock->path, &found) == 0 && found.st_dev == lock->device &&
           found.st_ino == lock->inode;
}

/*
 * Only a lock file or an empty file is overwritten. A file of zeros with a
 * second link may be other data, and so may one that has lost its link here
 * since it was opened: that is as if there were none, ENOENT.
 */
static int check_own(const leat__lmdb_lock_file *lock, const struct stat *found,
                     int *code)
{
    uint32_t magic = 0;
    if (found->st_size > LOCK_BYTES_MAX)
        return foreign_file(lock->path, "too large");
    ssize_t n = read_at(lock, &magic, sizeof(magic), 0, code);
    if (*code || (n == (ssize_t)sizeof(magic) && magic == MAGIC))
        return LEAT_OK;
    bool is_own = found->st_size == 0 || found->st_nlink == 1;
    bool is_new = is_own && is_blank(lock, code);
    if (is_new && !is_in_place(lock))
        *code = ENOENT;
    return is_new || *code
               ? LEAT_OK
               : foreign_file(lock->path, "a file of something else");
}

/* The size of a new one, within the process's limit if that has room for any:
 * beyond it a signal would end the process. 0, or the system's error. */
static int extend(leat__lmdb_lock_file *lock)
{
    int size = leat__file_check_limit(NEW_BYTES) ? LOCK_BYTES : NEW_BYTES;
    int code = leat__file_check_limit(size);
    set_size(lock, (size_t)size);
    return !code && ftruncate(lock->fd, size) ? errno : code;
}

int leat__lmdb_lock_file_make(leat__lmdb_lock_file *lock, int *code)
{
    struct stat found;
    if (fstat(lock->fd, &found) != 0) {
        *code = errno;
        return LEAT_OK;
    }
    int status = check_own(lock, &found, code);
    if (!status && !*code)
        *code = reserve(lock, LOCK_BYTES, 1);
    if (status || *code)
        return status;
    if (found.st_size < LOCK_BYTES)
        *code = extend(lock);
    else
        set_size(lock, (size_t)found.st_size);
    if (!*code)
        *code = map_table(lock);
    leat__lmdb_lock_table *table = lock->table;
    if (*code)
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
    return LEAT_OK;
}

static int check_table(const leat__lmdb_lock_file *lock,
                       const leat__lmdb_lock_table *table)
{
    if (table->magic != MAGIC)
        return leat__lmdb_lock_file_damaged(
            lock->path, "not LMDB's lock file, or damaged, while another "
                        "program uses it");
    if (table->format != FORMAT)
        return leat_error(LEAT_EIO,
                          "%s: of lock format %#x, expected %#x: another "
                          "version of LMDB uses it; end that program first",
                          lock->path, table->format, FORMAT);
    if (atomic_load(&table->readers) > lock->capacity)
        return leat__lmdb_lock_file_damaged(lock->path,
                                            "its number of readers is damaged");
    if (table->readers_mutex.__data.__kind != lock->kind)
        return leat__lmdb_lock_file_damaged(lock->path, "its mutex is damaged");
    return LEAT_OK;
}

int leat__lmdb_lock_file_check(const leat__lmdb_lock_file *lock)
{
    return check_table(lock, lock->table);
}

/* It is read, since mapping it would take blocks. *code as above. */
static int check_file(leat__lmdb_lock_file *lock, int *code)
{
    leat__lmdb_lock_table table;
    struct stat found;
    if (fstat(lock->fd, &found) != 0) {
        *code = errno;
        return LEAT_OK;
    }
    set_size(lock, (size_t)found.st_size);
    ssize_t n = read_at(lock, &table, sizeof(table), 0, code);
    if (*code)
        return LEAT_OK;
    if (lock->capacity == 0 || found.st_size > LOCK_BYTES_MAX ||
        n < (ssize_t)sizeof(table))
        return leat__lmdb_lock_file_damaged(lock->path, "its size is damaged");
    return check_table(lock, &table);
}

int leat__lmdb_lock_file_map(leat__lmdb_lock_file *lock, int *code)
{
    int status = check_file(lock, code);
    if (!status && !*code)
        *code = reserve(lock, LOCK_BYTES, 1);
    if (!status && !*code)
        *code = map_table(lock);
    return status;
}
