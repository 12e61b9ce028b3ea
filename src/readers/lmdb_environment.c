/*
 * DESIGN
 *
 * `environments` lists what is open, under `list_lock`; opening and closing
 * happen under it too, so that no file is ever open twice. Each environment has
 * a lock of its own for its transactions. The list's lock is taken first, and
 * neither is held while a reader reads.
 *
 * liblmdb's own map covers what the file had when it was opened; the library
 * looks at no more of it than the meta pages. leat's maps are the snapshots'.
 */
#include "readers/lmdb_environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <sys/stat.h>

/* A writer cannot outrun so many tries: each takes it a commit. */
#define RESIZES_MAX 1000

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static leat__lmdb_environment *environments; /* guarded by list_lock */

/* A code of liblmdb: of the system where positive. */
static int lmdb_error(int code, const char *path, const char *what)
{
    if (code > 0)
        return leat__error_system(code, "%s: %s", path, what);
    return leat_error(LEAT_EIO, "%s: %s: %s", path, what, mdb_strerror(code));
}

/* Whether locking failed for want of a right, a means or the room to lock. */
static int is_unlockable(int code)
{
    return code == EACCES || code == EPERM || code == EROFS || code == ENOLCK ||
           code == ENOSYS || code == EOPNOTSUPP || code == ENOSPC ||
           code == EDQUOT;
}

static int try_open(const leat__lmdb_file *file, unsigned flags, MDB_env **out)
{
    MDB_env *env;
    int code = mdb_env_create(&env);
    if (code)
        return code;
    /* The least, raised to what the file has. A map size of terabytes, or a
     * damaged one, then costs nothing. */
    code = mdb_env_set_mapsize(env, 1);
    if (!code)
        code =
            mdb_env_open(env, file->in_directory ? file->directory : file->data,
                         flags, 0664);
    if (code)
        mdb_env_close(env);
    else
        *out = env;
    return code;
}

static int open_env(const leat__lmdb_file *file, MDB_env **out)
{
    unsigned flags = MDB_RDONLY | MDB_NOTLS;
    if (!file->in_directory)
        flags |= MDB_NOSUBDIR;
    if (leat__lmdb_file_is_sealed(file))
        flags |= MDB_NOLOCK;
    int code = flags & MDB_NOLOCK ? 0 : leat__lmdb_file_reserve_lock(file);
    if (!code)
        code = try_open(file, flags, out);
    if (is_unlockable(code) && !(flags & MDB_NOLOCK)) {
        leat__log(LEAT_LOG_WARNING,
                  "%s: cannot be locked (%s); it must not be written to while "
                  "it is read",
                  file->path, mdb_strerror(code));
        code = try_open(file, flags | MDB_NOLOCK, out);
    }
    return code ? lmdb_error(code, file->path, "cannot be opened") : LEAT_OK;
}

/* The file may have been replaced between the check and the opening. */
static int check_identity(const leat__lmdb_file *file, MDB_env *env)
{
    struct stat found;
    mdb_filehandle_t fd;
    int code = mdb_env_get_fd(env, &fd);
    if (code)
        return lmdb_error(code, file->path, "cannot be opened");
    if (fstat(fd, &found) != 0)
        return lmdb_error(errno, file->path, "cannot be opened");
    if (found.st_dev != file->device || found.st_ino != file->inode)
        return leat_error(LEAT_EIO,
                          "%s: was replaced while it was opened; open it again",
                          file->data);
    return LEAT_OK;
}

/* Transfers the file on success. */
static int create(leat__lmdb_environment **out, leat__lmdb_file *file)
{
    leat__lmdb_environment *environment =
        leat__alloc_zero(1, sizeof(*environment));
    if (!environment)
        return LEAT_ENOMEM;
    int status = open_env(file, &environment->env);
    if (status)
        goto fail_environment;
    status = check_identity(file, environment->env);
    if (status)
        goto fail_env;
    int code = pthread_mutex_init(&environment->lock, NULL);
    if (code) {
        status = leat__error_system(code, "%s: cannot make a lock", file->path);
        goto fail_env;
    }
    environment->file = *file;
    environment->references = 1;
    *out = environment;
    return LEAT_OK;

fail_env:
    mdb_env_close(environment->env);
fail_environment:
    leat__free(environment);
    return status;
}

static leat__lmdb_environment *find_locked(const leat__lmdb_file *file)
{
    leat__lmdb_environment *at = environments;
    while (at &&
           (at->file.device != file->device || at->file.inode != file->inode))
        at = at->next;
    return at;
}

static int open_locked(leat__lmdb_environment **out, leat__lmdb_file *file)
{
    leat__lmdb_environment *environment = find_locked(file);
    if (environment) {
        environment->references++;
        leat__lmdb_file_close(file);
        *out = environment;
        return LEAT_OK;
    }
    int status = create(&environment, file);
    if (status)
        return status;
    environment->next = environments;
    environments = environment;
    *out = environment;
    return LEAT_OK;
}

int leat__lmdb_environment_open(leat__lmdb_environment **out, const char *path)
{
    leat__lmdb_file file;
    int status = leat__lmdb_file_open(&file, path);
    if (status)
        return status;
    pthread_mutex_lock(&list_lock);
    status = open_locked(out, &file);
    pthread_mutex_unlock(&list_lock);
    if (status)
        leat__lmdb_file_close(&file);
    return status;
}

static void destroy(leat__lmdb_environment *environment)
{
    mdb_env_close(environment->env);
    pthread_mutex_destroy(&environment->lock);
    leat__lmdb_file_close(&environment->file);
    leat__free(environment);
}

void leat__lmdb_environment_close(leat__lmdb_environment *environment)
{
    if (!environment)
        return;
    pthread_mutex_lock(&list_lock);
    if (--environment->references == 0) {
        leat__lmdb_environment **at = &environments;
        while (*at != environment)
            at = &(*at)->next;
        *at = environment->next;
        destroy(environment);
    }
    pthread_mutex_unlock(&list_lock);
}

int leat__lmdb_environment_begin(leat__lmdb_environment *environment,
                                 MDB_txn **out)
{
    MDB_env *env = environment->env;
    const char *path = environment->file.path;
    if (environment->is_broken)
        return leat_error(LEAT_EIO, "%s: cannot be mapped any more", path);
    int code = mdb_txn_begin(env, NULL, MDB_RDONLY, out);
    for (int i = 0; code == MDB_MAP_RESIZED && i < RESIZES_MAX; i++) {
        /* The file grew, and may do so again before the next try. Running
         * transactions of this process do not mind: they hold slots, and their
         * pages are in leat's own maps. */
        code = mdb_env_set_mapsize(env, 1);
        if (code) {
            environment->is_broken = 1;
            return lmdb_error(code, path, "cannot be mapped");
        }
        code = mdb_txn_begin(env, NULL, MDB_RDONLY, out);
    }
    if (code == MDB_READERS_FULL) {
        int dead = 0;
        code = mdb_reader_check(env, &dead);
        if (!code)
            code = mdb_txn_begin(env, NULL, MDB_RDONLY, out);
    }
    if (code == MDB_READERS_FULL)
        return leat_error(LEAT_EIO,
                          "%s: all slots for readers in its lock file are "
                          "taken (MDB_READERS_FULL); close other readers, or "
                          "raise maxreaders where it is first opened",
                          path);
    return code ? lmdb_error(code, path, "no transaction can begin") : LEAT_OK;
}
