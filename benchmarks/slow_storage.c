#define FUSE_USE_VERSION 312
#include "slow_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* FUSE leaves out a part of what it is asked to read ahead when more than so
   many requests are under way, which storage itself would not. */
enum { FILE_INODE = 2, REQUESTS_MOST = 4096, THREADS = 64 };

static const char file_name[] = "data.mdb";

/* The server's own: one process serves one file. */
static struct {
    int fd;
    int64_t size;
    int64_t latency;
    int64_t bytes_per_second;
    slow_storage_totals *totals;
} served;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void sleep_until(int64_t end)
{
    struct timespec time = {end / 1000000000, end % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
        continue;
}

/* Takes a turn on the wire and says when the bytes will have come. */
static int64_t take_turn(int64_t bytes)
{
    slow_storage_totals *totals = served.totals;
    int64_t takes = bytes * 1000000000 / served.bytes_per_second;
    int64_t begin = now() + served.latency;
    pthread_mutex_lock(&totals->lock);
    if (begin < totals->free)
        begin = totals->free;
    totals->free = begin + takes;
    totals->busy += takes;
    totals->bytes += bytes;
    totals->requests++;
    pthread_mutex_unlock(&totals->lock);
    return begin + takes;
}

static void serve_read(fuse_req_t request, fuse_ino_t inode, size_t size,
                       off_t offset, struct fuse_file_info *info)
{
    (void)inode;
    (void)info;
    char *bytes = malloc(size);
    ssize_t got = bytes ? pread(served.fd, bytes, size, offset) : -1;
    if (got < 0) {
        fuse_reply_err(request, EIO);
    } else {
        sleep_until(take_turn(got));
        fuse_reply_buf(request, bytes, (size_t)got);
    }
    free(bytes);
}

static struct stat describe(fuse_ino_t inode)
{
    struct stat out = {.st_ino = inode, .st_nlink = 1};
    out.st_mode = inode == FILE_INODE ? S_IFREG | 0444 : S_IFDIR | 0555;
    out.st_size = inode == FILE_INODE ? served.size : 0;
    return out;
}

static void serve_getattr(fuse_req_t request, fuse_ino_t inode,
                          struct fuse_file_info *info)
{
    (void)info;
    struct stat found = describe(inode);
    fuse_reply_attr(request, &found, 3600);
}

static void serve_lookup(fuse_req_t request, fuse_ino_t parent,
                         const char *name)
{
    (void)parent;
    struct fuse_entry_param entry = {
        .ino = FILE_INODE, .attr_timeout = 3600, .entry_timeout = 3600};
    entry.attr = describe(FILE_INODE);
    if (strcmp(name, file_name) != 0)
        fuse_reply_err(request, ENOENT);
    else
        fuse_reply_entry(request, &entry);
}

static void serve_open(fuse_req_t request, fuse_ino_t inode,
                       struct fuse_file_info *info)
{
    info->keep_cache = 1;
    if (inode != FILE_INODE)
        fuse_reply_err(request, EISDIR);
    else
        fuse_reply_open(request, info);
}

static void begin(void *user, struct fuse_conn_info *connection)
{
    (void)user;
    connection->max_background = REQUESTS_MOST;
    connection->congestion_threshold = REQUESTS_MOST;
}

static const struct fuse_lowlevel_ops operations = {
    .init = begin,
    .lookup = serve_lookup,
    .getattr = serve_getattr,
    .open = serve_open,
    .read = serve_read,
};

/* The server's process: a byte into `ready` once the file is there. */
static int serve(const char *path, int ready)
{
    char *words[] = {"slow_storage", "-o", "ro,fsname=slow_storage", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    struct fuse_session *session =
        fuse_session_new(&args, &operations, sizeof(operations), NULL);
    /* Should the benchmark be killed, the mount goes with it. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!loop || !session || fuse_set_signal_handlers(session) != 0 ||
        fuse_session_mount(session, path) != 0)
        return 1;
    fuse_loop_cfg_set_max_threads(loop, THREADS);
    fuse_loop_cfg_set_idle_threads(loop, THREADS);
    int status = write(ready, "", 1) != 1;
    if (!status)
        status = fuse_session_loop_mt(session, loop) < 0;
    fuse_session_unmount(session);
    (void)rmdir(path);
    fuse_session_destroy(session);
    fuse_loop_cfg_destroy(loop);
    return status;
}

static int open_file(const char *directory)
{
    char path[4096];
    struct stat found;
    snprintf(path, sizeof(path), "%s/%s", directory, file_name);
    served.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (served.fd < 0 || fstat(served.fd, &found) != 0) {
        perror(path);
        return -1;
    }
    served.size = found.st_size;
    return 0;
}

static slow_storage_totals *share_totals(void)
{
    pthread_mutexattr_t shared;
    slow_storage_totals *totals =
        mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED)
        return NULL;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&totals->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    return totals;
}

int slow_storage_mount(slow_storage *out, const char *directory,
                       int64_t latency, int64_t bytes_per_second)
{
    int ready[2];
    char byte;
    if (access("/dev/fuse", R_OK | W_OK) != 0)
        return 1;
    if (open_file(directory) != 0)
        return -1;
    strcpy(out->path, "/tmp/leat-slow-XXXXXX");
    out->totals = share_totals();
    if (!out->totals || !mkdtemp(out->path) || pipe(ready) != 0) {
        perror(out->path);
        return -1;
    }
    served.latency = latency;
    served.bytes_per_second = bytes_per_second;
    served.totals = out->totals;
    out->size = served.size;
    out->server = fork();
    if (out->server == 0) {
        close(ready[0]);
        _exit(serve(out->path, ready[1]));
    }
    close(ready[1]);
    close(served.fd);
    int is_ready = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (is_ready)
        return 0;
    waitpid(out->server, NULL, 0);
    rmdir(out->path);
    return 1;
}

void slow_storage_unmount(slow_storage *storage)
{
    kill(storage->server, SIGTERM);
    waitpid(storage->server, NULL, 0);
    munmap(storage->totals, sizeof(*storage->totals));
}

void slow_storage_read(slow_storage *storage, slow_storage_totals *out)
{
    slow_storage_totals *totals = storage->totals;
    memset(out, 0, sizeof(*out));
    if (!totals)
        return;
    pthread_mutex_lock(&totals->lock);
    /* What is booked on the wire but lies in the future was not yet done. */
    int64_t booked = totals->free - now();
    out->requests = totals->requests;
    out->bytes = totals->bytes;
    out->busy = totals->busy - (booked > 0 ? booked : 0);
    pthread_mutex_unlock(&totals->lock);
}
