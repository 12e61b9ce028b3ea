/*
 * DESIGN
 *
 * `environments` lists the open environments under `list_lock`, which is held
 * while one is opened or closed, except while the opening waits for the end of
 * a lease, when it has nothing open yet, or for other processes (join): then
 * `openings` has an entry for its lock file, and other openings by that file
 * wait for `opened` until the entry is gone, so that the process never uses two
 * descriptors of a lock file. Closing never waits. Each environment has its own
 * locks for its snapshots, opening_lock before snapshots_lock; list_lock is
 * held with neither, and none of them while a reader reads.
 *
 * fork: another thread may hold any lock at that moment, so a child takes none
 * of its parent's. It forgets the lists, of which that of environments is
 * always consistent, and closes the lock files' descriptors: their locks belong
 * to the open files and remain the parent's. An environment records the process
 * that it belongs to.
 */
#include "readers/lmdb/lmdb_environment.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file_place.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often the lock file may be removed or replaced while it is opened, */
#define TRIES_MAX 10

/* and the data file. */
#define REPLACED_MAX 10

typedef _Atomic(leat__lmdb_environment *) environment_link;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static environment_link environments; /* written under list_lock */

/* A lock file that a thread waits for, on that thread's stack. */
typedef struct opening {
    const leat__lmdb_lock *lock;
    struct opening *next;
} opening;

static opening *openings; /* protected by list_lock */
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER; /* an entry is gone */

/* Those of ancestors: some are in use, so their memory is kept. */
static leat__lmdb_environment *inherited;

/* Runs in a child. A listed environment is always complete. */
static void forget_parent(void)
{
    list_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    opened = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    openings = NULL;
    leat__lmdb_lock_forget_all();
    leat__lmdb_environment *at = atomic_load(&environments);
    while (at) {
        leat__lmdb_environment *next = atomic_load(&at->next);
        atomic_store(&at->next, inherited);
        inherited = at;
        at = next;
    }
    atomic_store(&environments, NULL);
}

bool leat__lmdb_environment_is_inherited(
    const leat__lmdb_environment *environment)
{
    return environment->generation != leat__fork_generation();
}

/* Whether locking failed for lack of permission, support, space or, as of a
 * descriptor's name, a directory for the file, or its name is too long, or the
 * mount knows no name for this user (EOVERFLOW). */
static bool is_unlockable(int code)
{
    return code == EACCES || code == EPERM || code == EROFS || code == ENOLCK ||
           code == ENOENT || code == ENOSYS || code == EOPNOTSUPP ||
           code == ENOSPC || code == EDQUOT || code == EFBIG ||
           code == EINVAL || code == ENAMETOOLONG || code == EOVERFLOW;
}

static bool is_same_data(const leat__lmdb_file *a, const leat__lmdb_file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

/* Without a lock, the path of its file says who writes. */
static bool is_same_lock(const leat__lmdb_environment *environment,
                         const leat__lmdb_file *file,
                         const leat__lmdb_lock *lock)
{
    if (lock || environment->lock)
        return leat__lmdb_lock_is_same(environment->lock, lock);
    return strcmp(environment->file.lock, file->lock) == 0;
}

static leat__lmdb_environment *find_locked(const leat__lmdb_file *file,
                                           const leat__lmdb_lock *lock)
{
    leat__lmdb_environment *at = atomic_load(&environments);
    while (at &&
           !(is_same_data(&at->file, file) && is_same_lock(at, file, lock)))
        at = atomic_load(&at->next);
    return at;
}

/* What the process holds of that lock file; NULL: nothing yet. */
static leat__lmdb_lock *find_lock(const leat__lmdb_lock *lock)
{
    leat__lmdb_environment *at = atomic_load(&environments);
    while (at && !(leat__lmdb_lock_is_held(at->lock) &&
                   leat__lmdb_lock_is_same(at->lock, lock)))
        at = atomic_load(&at->next);
    return at ? at->lock : NULL;
}

/* Whether another process uses the lock file at `path`, and it is not `lock`,
 * which would be at file->lock. */
static int find_user_apart(const char *path, const leat__lmdb_file *file,
                           const leat__lmdb_lock *lock, bool *out)
{
    *out = false;
    if (strcmp(path, file->lock) == 0 || leat__file_is_absent(path) ||
        (lock && leat__lmdb_lock_is_at(lock, path)))
        return LEAT_OK;
    return leat__lmdb_lock_find_user(path, false, out);
}

bool leat__lmdb_environment_is_used(const leat__lmdb_environment *environment)
{
    const leat__lmdb_file *file = &environment->file;
    const char *path = file->lock;
    bool is_used = false;
    /* Who uses a lock file that may not be read is unknown. */
    if (file->is_hidden)
        return true;
    if (leat__file_is_absent(path))
        return false;
    if (leat__file_access(path, R_OK))
        return true;
    pthread_mutex_lock(&list_lock);
    int status = leat__lmdb_lock_find_user(path, true, &is_used);
    pthread_mutex_unlock(&list_lock);
    return status || is_used;
}

/* A writer that uses another lock file than `lock` sees no reader that uses
 * this one, and overwrites its pages. */
static int check_other_locks(const leat__lmdb_file *file,
                             const leat__lmdb_lock *lock)
{
    for (int i = 0; i < LEAT__LMDB_LOCKS; i++) {
        const char *path = file->locks[i];
        bool is_used = false;
        int status =
            path ? find_user_apart(path, file, lock, &is_used) : LEAT_OK;
        if (status)
            return status;
        if (is_used)
            return leat_error(
                LEAT_EIO,
                "%s: another program uses this lock file of the database, and "
                "sees no reader that uses %s; end that program, or have it "
                "open %s instead",
                path, file->lock,
                file->in_directory ? file->directory : file->data);
    }
    return LEAT_OK;
}

static bool is_opening(const leat__lmdb_lock *lock)
{
    const opening *at = openings;
    while (at && !leat__lmdb_lock_is_same(at->lock, lock))
        at = at->next;
    return at != NULL;
}

/* Pauses once, without list_lock, for the end of another program's lease on the
 * lock file, which opening it has asked for. */
static int await_lease(leat__lmdb_lock_wait *wait, const leat__lmdb_file *file)
{
    pthread_mutex_unlock(&list_lock);
    int status = leat__lmdb_lock_wait_once(wait, file->lock,
                                           "another program has a lease on it");
    pthread_mutex_lock(&list_lock);
    return status;
}

/* Opens the lock file, after others that open it. *out and *code as those of
 * leat__lmdb_lock_open. */
static int open_lock(leat__lmdb_lock **out, const leat__lmdb_file *file,
                     int64_t began, int *code)
{
    leat__lmdb_lock_wait wait = {.began = began};
    for (;;) {
        leat__lmdb_lock *lock = NULL;
        int status = leat__lmdb_lock_open(&lock, file, code);
        if (!status && *code == EWOULDBLOCK) {
            status = await_lease(&wait, file);
            if (!status)
                continue;
        }
        if (status || !lock || !is_opening(lock)) {
            *out = lock;
            return status;
        }
        leat__lmdb_lock_close(lock);
        pthread_cond_wait(&opened, &list_lock);
    }
}

/* In a child that was forked meanwhile it is not listed. */
static void end_opening(const opening *entry)
{
    opening **at = &openings;
    while (*at && *at != entry)
        at = &(*at)->next;
    if (*at)
        *at = entry->next;
    pthread_cond_broadcast(&opened);
}

/* Without list_lock while it waits. */
static int join_alone(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                      int64_t began, int *code)
{
    opening entry = {lock, openings};
    openings = &entry;
    pthread_mutex_unlock(&list_lock);
    int status = leat__lmdb_lock_join(lock, file, began, code);
    pthread_mutex_lock(&list_lock);
    end_opening(&entry);
    return status;
}

/* Joins `*lock`, or replaces it by the one that is shared. With *code the
 * database is read without a lock. */
static int join(leat__lmdb_lock **lock, const leat__lmdb_file *file,
                int64_t began, int *code)
{
    leat__lmdb_lock *shared = *lock ? find_lock(*lock) : NULL;
    int status = LEAT_OK;
    if (shared) {
        leat__lmdb_lock_close(*lock);
        *lock = NULL;
        status = leat__lmdb_lock_follow(shared, file, code);
        if (!status && !*code)
            *lock = leat__lmdb_lock_ref(shared);
    } else if (*lock) {
        status = join_alone(*lock, file, began, code);
    }
    if (!status && *code && !is_unlockable(*code))
        return leat__error_system(*code, "%s: cannot be locked", file->lock);
    return status;
}

/* The lock of an open environment, which has no other. */
static int follow(leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    int code;
    int status = leat__lmdb_lock_follow(lock, file, &code);
    return !status && code
               ? leat__error_system(code, "%s: cannot be shared", file->lock)
               : status;
}

/* 0, or the system's error. */
static int make_locks(leat__lmdb_environment *environment)
{
    int code = pthread_mutex_init(&environment->opening_lock, NULL);
    if (code)
        return code;
    code = pthread_mutex_init(&environment->snapshots_lock, NULL);
    if (code)
        pthread_mutex_destroy(&environment->opening_lock);
    return code;
}

/* Transfers the file and the lock on success. */
static int create(leat__lmdb_environment **out, leat__lmdb_file *file,
                  leat__lmdb_lock *lock)
{
    leat__lmdb_environment *environment =
        leat__alloc_zero(1, sizeof(*environment));
    if (!environment)
        return LEAT_ENOMEM;
    int code = make_locks(environment);
    if (code) {
        leat__free(environment);
        return leat__error_system(code, "%s: cannot make a lock", file->path);
    }
    environment->file = *file;
    environment->lock = lock;
    environment->generation = leat__fork_generation();
    environment->references = 1;
    atomic_store(&environment->next, atomic_load(&environments));
    atomic_store(&environments, environment);
    *out = environment;
    return LEAT_OK;
}

/*
 * Closes the file, and keeps its descriptor in the place of the earlier one: an
 * overlay file system copies a file at the first write to it, under the same
 * inode, and maps through the earlier descriptor show it as it was before.
 */
static int share(leat__lmdb_environment **out, leat__lmdb_environment *shared,
                 leat__lmdb_file *file)
{
    if (dup3(file->fd, shared->file.fd, O_CLOEXEC) < 0)
        return leat__error_system(errno, "%s: cannot be opened", file->data);
    leat__lmdb_file_close(file);
    shared->references++;
    *out = shared;
    return LEAT_OK;
}

static bool is_one(const leat__lmdb_file *file, const struct stat *found)
{
    return found->st_dev == file->device && found->st_ino == file->inode;
}

/* Whether its path leads to no other file. */
static bool is_in_place(const leat__lmdb_file *file)
{
    struct stat found;
    return stat(file->data, &found) != 0 || is_one(file, &found);
}

/* The data file at the path must still be the one opened. */
static int check_identity(const leat__lmdb_file *file)
{
    struct stat found;
    if (stat(file->data, &found) != 0)
        return leat__error_system(errno, "%s: cannot be opened", file->data);
    if (!is_one(file, &found))
        return leat_error(LEAT_EIO,
                          "%s: was replaced while it was opened; open it again",
                          file->data);
    return LEAT_OK;
}

/* Whether writers that open the database now use this lock file. */
static bool is_current(const leat__lmdb_lock *lock, const leat__lmdb_file *file)
{
    return !leat__lmdb_lock_is_held(lock) ||
           leat__lmdb_lock_is_at(lock, file->lock);
}

/* Whether the directory of the lock file is away, but not for good: the data
 * file has a name. That of a descriptor in /proc, where none can be made, is a
 * link still. */
static bool is_away(const leat__lmdb_file *file, int code)
{
    struct stat found, name;
    return code == ENOENT && fstat(file->fd, &found) == 0 &&
           found.st_nlink > 0 &&
           (lstat(file->data, &name) != 0 || !S_ISLNK(name.st_mode));
}

/*
 * Transfers the file on success. *out is unchanged with LEAT_OK if the lock
 * file was removed or replaced after it was opened, or its directory is away.
 */
static int try_open(leat__lmdb_environment **out, leat__lmdb_file *file,
                    int64_t began, int *code)
{
    leat__lmdb_lock *lock = NULL;
    *code = 0;
    int status = leat__lmdb_file_is_sealed(file)
                     ? LEAT_OK
                     : open_lock(&lock, file, began, code);
    if (status)
        return status;
    leat__lmdb_environment *shared = find_locked(file, lock);
    if (shared)
        *code = 0;
    /* Another thread may have opened what replaced it, and writers go by what
     * the lock was set to then. */
    status = check_identity(file);
    if (!status)
        status = check_other_locks(file, lock);
    if (!status && !shared)
        status = join(&lock, file, began, code);
    else if (!status && lock)
        status = follow(shared->lock, file);
    /* Where another data file is there its lock does not fit this one. */
    int identity =
        !status || status == LEAT_EIO ? check_identity(file) : LEAT_OK;
    if (identity)
        status = identity;
    bool is_done = !status && !is_away(file, *code) &&
                   is_current(shared ? shared->lock : lock, file);
    if (is_done)
        status = shared ? share(out, shared, file) : create(out, file, lock);
    bool is_kept = !status && is_done && !shared;
    if (!is_kept && !shared)
        leat__lmdb_lock_leave(lock, file);
    if (!is_kept)
        leat__lmdb_lock_close(lock);
    return status;
}

/* Transfers the file on success. *code: why there is no lock; 0: there is, or
 * it was reported when the environment was opened. */
static int open_locked(leat__lmdb_environment **out, leat__lmdb_file *file,
                       int *code)
{
    leat__lmdb_environment *environment = NULL;
    int64_t began = leat__clock_now();
    int status = LEAT_OK;
    for (int i = 0; i < TRIES_MAX && !status && !environment; i++)
        status = try_open(&environment, file, began, code);
    if (!status && !environment)
        return leat_error(LEAT_EIO,
                          "%s: was replaced each time it was opened; open the "
                          "database again",
                          file->lock);
    if (!status)
        *out = environment;
    return status;
}

/* LEAT_AGAIN: the data file was replaced meanwhile. */
static int open_once(leat__lmdb_environment **out, const char *path, int *code)
{
    leat__lmdb_file file;
    int status = leat__lmdb_file_open(&file, path);
    if (status)
        return status;
    pthread_mutex_lock(&list_lock);
    status = open_locked(out, &file, code);
    pthread_mutex_unlock(&list_lock);
    if (status == LEAT_EIO && !is_in_place(&file))
        status = LEAT_AGAIN;
    if (status)
        leat__lmdb_file_close(&file);
    return status;
}

int leat__lmdb_environment_open(leat__lmdb_environment **out, const char *path)
{
    int code = 0;
    int status = leat__fork_watch();
    if (status)
        return status;
    leat__fork_call_in_child(forget_parent);
    status = LEAT_AGAIN;
    for (int i = 0; i < REPLACED_MAX && status == LEAT_AGAIN; i++)
        status = open_once(out, path, &code);
    if (status == LEAT_AGAIN)
        status = LEAT_EIO;
    if (!status && code)
        leat__lmdb_environment_warn(*out, code);
    return status;
}

void leat__lmdb_environment_warn(const leat__lmdb_environment *environment,
                                 int code)
{
    leat__log(LEAT_LOG_WARNING,
              "%s: cannot be locked (%s); nothing may write to it while it is "
              "read",
              environment->file.path, strerror(code));
}

static void destroy(leat__lmdb_environment *environment)
{
    leat__lmdb_lock_leave(environment->lock, &environment->file);
    leat__lmdb_lock_close(environment->lock);
    pthread_mutex_destroy(&environment->snapshots_lock);
    pthread_mutex_destroy(&environment->opening_lock);
    leat__lmdb_file_close(&environment->file);
    leat__free(environment);
}

void leat__lmdb_environment_close(leat__lmdb_environment *environment)
{
    if (!environment || leat__lmdb_environment_is_inherited(environment))
        return;
    pthread_mutex_lock(&list_lock);
    if (--environment->references == 0) {
        environment_link *at = &environments;
        while (atomic_load(at) != environment)
            at = &atomic_load(at)->next;
        atomic_store(at, atomic_load(&environment->next));
        destroy(environment);
    }
    pthread_mutex_unlock(&list_lock);
}

int leat__lmdb_environment_latest(const leat__lmdb_environment *environment,
                                  uint64_t *out)
{
    return leat__lmdb_lock_latest(environment->lock, &environment->file, out);
}

int leat__lmdb_environment_pin(leat__lmdb_environment *environment,
                               int64_t began, leat__lmdb_pin *out, int *code)
{
    *code = 0;
    if (leat__lmdb_lock_is_held(environment->lock)) {
        int status = leat__lmdb_lock_pin(environment->lock, &environment->file,
                                         began, out, code);
        if (status || !*code)
            return status;
    }
    *out = (leat__lmdb_pin){0, -1};
    return leat__lmdb_environment_latest(environment, &out->txnid);
}

void leat__lmdb_environment_unpin(leat__lmdb_environment *environment,
                                  const leat__lmdb_pin *pin)
{
    if (pin->slot >= 0)
        leat__lmdb_lock_unpin(environment->lock, pin);
}
