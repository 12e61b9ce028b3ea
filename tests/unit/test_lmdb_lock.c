/*
 * The lock file beside liblmdb: the layout is compared with what the installed
 * one makes, and whoever else uses the file here does so by liblmdb, in a
 * process of its own.
 */
#include "base/file.h"
#include "pipeline/opening.h"
#include "readers/lmdb/lmdb_environment.h"
#include "readers/lmdb/lmdb_lock_file.h"
#include "support/few_users.h"
#include "support/images.h"
#include "support/other_process.h"
#include "support/protected_open.h"
#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { RECORDS = 10, HEADER = 128, SLOT = 64 };

/* Sizes of a lock file: of liblmdb, and of leat, with blocks for the former. */
enum { LOCK_BYTES = 8192, NEW_BYTES = 65536 };

/* Where liblmdb 0.9 has them on a 64-bit system. */
enum {
    MAGIC_AT = 0,
    FORMAT_AT = 4,
    MUTEX_AT = 8,
    TXNID_AT = 48,
    COUNT_AT = 56
};

static char directory[FIXTURE_PATH];
static char lock[FIXTURE_PATH + 16];
static char said[1024]; /* warnings */

/* This is put in front of libc's by the linker. */
int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);

static int no_blocks; /* why there are none; 0: there are */

/* Calls that allocate or copy blocks of a lock file, if any are looked at, and
 * those of them while its mutex was locked. */
static struct {
    int looks, all, locked;
} allocations;

static void look_at_mutex(int fd)
{
    const size_t size = sizeof(leat__lmdb_lock_table);
    leat__lmdb_lock_table *table =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(table != MAP_FAILED);
    int code = pthread_mutex_trylock(&table->readers_mutex);
    if (!code)
        pthread_mutex_unlock(&table->readers_mutex);
    allocations.all++;
    allocations.locked += code != 0;
    munmap(table, size);
}

/* Beyond the process's limit and the file's size tmpfs raises a signal, also
 * where the size is kept. */
static void heed_limit(int fd, off_t end)
{
    struct stat found;
    ck_assert_int_eq(fstat(fd, &found), 0);
    if (found.st_size < end && leat__file_check_limit(end))
        raise(SIGXFSZ);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    heed_limit(fd, offset + size);
    if (allocations.looks)
        look_at_mutex(fd);
    if (!no_blocks)
        return __real_fallocate(fd, mode, offset, size);
    errno = no_blocks;
    return -1;
}

int __real_madvise(void *memory, size_t size, int advice);
int __wrap_madvise(void *memory, size_t size, int advice);

static int no_room;  /* so many times there is none to store to the map */
static int has_page; /* there is room for one page of it alone */
static atomic_int full_every; /* of so many stores one has none; 0: all have */
static atomic_int stores;

static bool is_full(size_t size)
{
    int every = atomic_load(&full_every);
    if (every)
        return atomic_fetch_add(&stores, 1) % every == 0;
    if (no_room > 0) {
        no_room--;
        return true;
    }
    return has_page && size > (size_t)sysconf(_SC_PAGESIZE);
}

int __wrap_madvise(void *memory, size_t size, int advice)
{
    if (allocations.looks) {
        int fd = open(lock, O_RDWR | O_CLOEXEC);
        look_at_mutex(fd);
        close(fd);
    }
    if (advice != 23 || !is_full(size)) /* POPULATE_WRITE */
        return __real_madvise(memory, size, advice);
    errno = EFAULT;
    return -1;
}

ssize_t __real_pread(int fd, void *out, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at);

static size_t read_most; /* bytes at a time; 0: what was asked for */
static int no_read;      /* why four bytes cannot be read; 0: they can */

ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at)
{
    if (!no_read || n != 4)
        return __real_pread(fd, out, read_most && n > read_most ? read_most : n,
                            at);
    errno = no_read;
    return -1;
}

static void remember(void *user, leat_log_level level, const char *line)
{
    (void)user;
    if (level == LEAT_LOG_WARNING)
        snprintf(said, sizeof(said), "%s", line);
}

static void begin(void)
{
    images_write(directory, images_record, RECORDS);
    snprintf(lock, sizeof(lock), "%s/lock.mdb", directory);
    ck_assert_int_eq(unlink(lock), 0);
    said[0] = 0;
    read_most = 0;
    no_read = 0;
    no_room = has_page = 0;
    leat_log_set(remember, NULL, LEAT_LOG_WARNING);
}

static void end(void)
{
    fixture_remove(directory);
}

static void expect_ten(void)
{
    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    ck_assert_str_eq(said, "");
}

static void expect_refused(const char *says)
{
    ck_assert_int_eq(images_status(directory), LEAT_EIO);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    ck_assert_ptr_nonnull(strstr(leat_last_error(), lock));
}

static void expect_unlocked(void)
{
    ck_assert_msg(images_status(directory) == LEAT_OK, "%s", leat_last_error());
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked (No space left"));
    said[0] = 0;
}

/* In another process: a database that is open for reading. */
static MDB_env *reading;
static MDB_txn *transaction;

static void read_by_liblmdb(const char *path)
{
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    ck_assert_int_eq(mdb_env_open(reading, path, MDB_RDONLY | MDB_NOTLS, 0644),
                     0);
    ck_assert_int_eq(mdb_txn_begin(reading, NULL, MDB_RDONLY, &transaction), 0);
}

static void visit_by_liblmdb(const char *path)
{
    read_by_liblmdb(path);
    mdb_txn_abort(transaction);
    mdb_env_close(reading);
}

/* Likewise, with as many slots as leat makes. */
static void make_by_liblmdb(const char *path)
{
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    ck_assert_int_eq(mdb_env_set_maxreaders(reading, 1022), 0);
    ck_assert_int_eq(mdb_env_open(reading, path, MDB_RDONLY, 0644), 0);
    ck_assert_int_eq(mdb_txn_begin(reading, NULL, MDB_RDONLY, &transaction), 0);
    mdb_txn_abort(transaction);
    mdb_env_close(reading);
}

START_TEST(the_file_is_what_liblmdb_makes)
{
    size_t ours_size, theirs_size;
    other_process_run(make_by_liblmdb, directory);
    unsigned char *theirs = fixture_load(lock, &theirs_size);
    ck_assert_int_eq(unlink(lock), 0);
    expect_ten();
    unsigned char *ours = fixture_load(lock, &ours_size);
    ck_assert_uint_eq(ours_size, theirs_size);
    ck_assert_mem_eq(ours, theirs, HEADER);
    free(ours);
    free(theirs);
}
END_TEST

static int count_slot(const char *line, void *count)
{
    int number;
    char thread[64];
    unsigned long long txnid;
    *(int *)count +=
        sscanf(line, "%d %63s %llu", &number, thread, &txnid) == 3 &&
        txnid == 1;
    return 0;
}

static void expect_readers(const char *path, int wanted)
{
    MDB_env *env;
    int slots = 0, dead = 0;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_open(env, path, MDB_RDONLY, 0644), 0);
    ck_assert_int_eq(mdb_reader_check(env, &dead), 0);
    mdb_reader_list(env, count_slot, &slots);
    if (slots != wanted || dead != 0)
        _exit(2);
    mdb_env_close(env);
}

/* In another process: there is one living reader, at the first transaction. */
static void expect_one_reader(const char *path)
{
    expect_readers(path, 1);
}

static void expect_two_readers(const char *path)
{
    expect_readers(path, 2);
}

static void expect_no_reader(const char *path)
{
    expect_readers(path, 0);
}

static void commit(const char *path)
{
    MDB_env *env = fixture_env(path, 0);
    fixture_put(env, images_record, RECORDS, RECORDS + 1, 0);
    mdb_env_close(env);
}

static void open_by_liblmdb(const char *path)
{
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    ck_assert_int_eq(mdb_env_open(reading, path, MDB_RDONLY, 0644), 0);
}

START_TEST(readers_of_one_state_have_one_slot_that_liblmdb_sees)
{
    other_process other = other_process_start(open_by_liblmdb, directory);
    leat_reader *reader = images_open(directory);
    leat_reader *same = images_open(images_in(directory, "data.mdb"));
    other_process_run(expect_one_reader, directory);
    leat_reader_close(reader);
    other_process_run(expect_one_reader, directory);
    leat_reader_close(same);
    other_process_run(expect_no_reader, directory);
    other_process_stop(&other);
}
END_TEST

START_TEST(its_blocks_are_taken_before_it_is_stored_to)
{
    struct stat found;
    char probe[FIXTURE_PATH + 16];
    snprintf(probe, sizeof(probe), "%s/probe", directory);
    int fd = open(probe, O_RDWR | O_CREAT, 0644);
    int code = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOCK_BYTES);
    close(fd);
    if (code) {
        printf("skipped: this file system cannot reserve blocks\n");
        return;
    }
    expect_ten();
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_size, NEW_BYTES);
    ck_assert_int_ge(found.st_blocks * 512, LOCK_BYTES);
    ck_assert_int_lt(found.st_blocks * 512, NEW_BYTES);
}
END_TEST

/* A file system that has no blocks left, or cannot tell. */
START_TEST(a_lock_without_blocks_is_not_stored_to)
{
    static const struct {
        int code;
        int is_full;
    } cases[] = {{ENOSPC, 1}, {EDQUOT, 1}, {EOPNOTSUPP, 0}, {ENOSYS, 0}};
    struct stat found;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        said[0] = 0;
        no_blocks = cases[i].code;
        leat_reader *reader = images_open(directory);
        no_blocks = 0;
        ck_assert_int_eq(images_count(reader), RECORDS);
        leat_reader_close(reader);
        ck_assert_int_eq(strstr(said, "cannot be locked") != NULL,
                         cases[i].is_full);
        ck_assert_int_eq(stat(lock, &found), 0);
        ck_assert_int_eq(found.st_size, cases[i].is_full ? 0 : NEW_BYTES);
        ck_assert_int_eq(unlink(lock), 0);
    }
}
END_TEST

/* Of more slots than its first blocks hold, all of which are taken. */
static void read_with_many_slots(const char *path)
{
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    ck_assert_int_eq(mdb_env_set_maxreaders(reading, 1000), 0);
    ck_assert_int_eq(mdb_env_open(reading, path, MDB_RDONLY | MDB_NOTLS, 0644),
                     0);
    for (int i = 0; i < (LOCK_BYTES - HEADER) / SLOT; i++)
        ck_assert_int_eq(mdb_txn_begin(reading, NULL, MDB_RDONLY, &transaction),
                         0);
}

START_TEST(a_slot_without_a_block_is_not_stored_to)
{
    other_process other = other_process_start(read_with_many_slots, directory);
    allocations.looks = 1;
    no_blocks = ENOSPC;
    expect_unlocked();
    no_blocks = EOPNOTSUPP;
    expect_ten();
    no_blocks = 0;
    expect_ten();
    /* On a full file system they may write the mutex's page to the disk, and
     * unlocking would raise SIGBUS. */
    ck_assert_int_gt(allocations.all, 3);
    ck_assert_int_eq(allocations.locked, 0);
    allocations.looks = 0;
    other_process_stop(&other);
}
END_TEST

/* In another process: takes slots until it has `most` or none is free, by when
 * it has `wanted`. */
static void take_slots(const char *path, int most, int wanted)
{
    int n = 0;
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    ck_assert_int_eq(mdb_env_open(reading, path, MDB_RDONLY | MDB_NOTLS, 0644),
                     0);
    while (n < most &&
           mdb_txn_begin(reading, NULL, MDB_RDONLY, &transaction) == 0)
        n++;
    ck_assert_int_eq(n, wanted);
}

static void take_200_slots(const char *path)
{
    take_slots(path, 200, 200);
}

static void take_the_other_820(const char *path)
{
    take_slots(path, 2000, 820);
}

/* The first reader's, those of liblmdb's, and the second one's. */
START_TEST(a_new_file_has_slots_for_a_thousand_readers)
{
    leat_reader *first = images_open(directory);
    other_process other = other_process_start(take_200_slots, directory);
    other_process_run(commit, directory);
    leat_reader *second = images_open(directory);
    ck_assert_str_eq(said, "");
    other_process rest = other_process_start(take_the_other_820, directory);
    other_process_run(commit, directory);
    expect_refused("all 1022 slots");
    leat_reader_close(first);
    ck_assert_int_eq(images_status(directory), LEAT_OK);
    other_process_stop(&rest);
    other_process_stop(&other);
    leat_reader_close(second);
}
END_TEST

START_TEST(a_file_of_liblmdbs_stays_as_large_as_it_is)
{
    struct stat found;
    other_process_run(visit_by_liblmdb, directory);
    expect_ten();
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_size, LOCK_BYTES);
}
END_TEST

/* As one of liblmdb's has on a full disk. */
START_TEST(a_lock_with_room_for_a_page_is_used)
{
    has_page = 1;
    expect_ten();
}
END_TEST

/* As a file system that copies on write, or cannot allocate, and is full. */
START_TEST(a_lock_without_room_is_not_stored_to)
{
    static const unsigned char zeros[NEW_BYTES];
    size_t size, after;
    no_room = 1000;
    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked (No space left"));
    unsigned char *bytes = fixture_load(lock, &size);
    ck_assert_uint_eq(size, NEW_BYTES);
    ck_assert_mem_eq(bytes, zeros, size);
    free(bytes);
    /* Another process has room. */
    other_process other = other_process_start(read_by_liblmdb, directory);
    said[0] = 0;
    bytes = fixture_load(lock, &size);
    ck_assert_int_eq(images_status(directory), LEAT_OK);
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked (No space left"));
    unsigned char *same = fixture_load(lock, &after);
    ck_assert_uint_eq(size, after);
    ck_assert_mem_eq(same, bytes, size);
    free(same);
    free(bytes);
    other_process_stop(&other);
}
END_TEST

/* It is free once there is room. */
START_TEST(a_slot_that_there_is_no_room_to_free_is_freed_later)
{
    other_process other = other_process_start(open_by_liblmdb, directory);
    leat_reader *first = images_open(directory);
    other_process_run(commit, directory);
    leat_reader *second = images_open(directory);
    no_room = 1;
    leat_reader_close(first);
    ck_assert_int_eq(no_room, 0);
    other_process_run(expect_one_reader, directory);
    leat_reader_close(images_open(directory));
    other_process_run(expect_no_reader, directory);
    leat_reader_close(second);
    /* At the latest when the file is closed. */
    first = images_open(directory);
    no_room = 1;
    leat_reader_close(first);
    ck_assert_int_eq(no_room, 0);
    other_process_run(expect_no_reader, directory);
    other_process_stop(&other);
}
END_TEST

static int count_any(const char *line, void *count)
{
    int number;
    *(int *)count += sscanf(line, "%d", &number) == 1;
    return 0;
}

static int taken; /* slots, of whatever transactions */

static void expect_taken(const char *path)
{
    int slots = 0;
    open_by_liblmdb(path);
    mdb_reader_list(reading, count_any, &slots);
    if (slots != taken)
        _exit(2);
    mdb_env_close(reading);
}

static void check_taken(int wanted)
{
    taken = wanted;
    other_process_run(expect_taken, directory);
}

START_TEST(a_slot_without_room_is_not_stored_to)
{
    other_process other = other_process_start(open_by_liblmdb, directory);
    leat_reader *first = images_open(directory);
    /* Of the same transaction: its slot is shared. */
    no_room = 1;
    leat_reader *second = images_open(directory);
    ck_assert_int_eq(no_room, 0);
    ck_assert_str_eq(said, "");
    leat_reader_close(second);
    other_process_run(commit, directory);
    no_room = 2; /* as the table is checked, and as the slot is taken */
    second = images_open(directory);
    ck_assert_int_eq(no_room, 0);
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked (No space left"));
    other_process_run(expect_one_reader, directory);
    /* The next one has room, and a slot, and protects itself alone. */
    said[0] = 0;
    leat_reader *third = images_open(directory);
    ck_assert_str_eq(said, "");
    check_taken(2);
    other_process_run(commit, directory);
    other_process_run(commit, directory);
    ck_assert_int_eq(images_count(first), RECORDS);
    ck_assert_int_eq(images_count(third), RECORDS + 1);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(second, &sample), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "without its lock file"));
    leat_sample_finish(&sample);
    leat_reader_close(first);
    leat_reader_close(second);
    leat_reader_close(third);
    check_taken(0);
    other_process_stop(&other);
}
END_TEST

/* A reader with a slot of its own. */
static leat_reader *open_latest(void)
{
    other_process_run(commit, directory);
    return images_open(directory);
}

START_TEST(all_slots_that_there_is_no_room_to_free_are_freed_later)
{
    leat_reader *reader[8];
    other_process other = other_process_start(open_by_liblmdb, directory);
    for (int i = 0; i < 5; i++)
        reader[i] = open_latest();
    check_taken(5);
    no_room = 4;
    for (int i = 0; i < 4; i++)
        leat_reader_close(reader[i]);
    ck_assert_int_eq(no_room, 0);
    check_taken(5);
    /* When one is taken, */
    for (int i = 5; i < 8; i++)
        reader[i] = open_latest();
    check_taken(4);
    no_room = 2;
    for (int i = 4; i < 6; i++)
        leat_reader_close(reader[i]);
    ck_assert_int_eq(no_room, 0);
    check_taken(4);
    /* and when one is released. */
    leat_reader_close(reader[6]);
    check_taken(1);
    leat_reader_close(reader[7]);
    check_taken(0);
    other_process_stop(&other);
}
END_TEST

enum { THREADS = 4, PINS = 500 };

static atomic_int pinned[LOCK_BYTES / SLOT]; /* times, by slot */

static void *pin_and_unpin(void *environment)
{
    leat__lmdb_pin pin;
    for (int i = 0; i < PINS; i++) {
        int code;
        if (leat__lmdb_environment_pin(environment, 0, &pin, &code) ||
            pin.slot < 0)
            continue;
        ck_assert_int_eq(atomic_fetch_add(&pinned[pin.slot], 1), 0);
        atomic_fetch_sub(&pinned[pin.slot], 1);
        leat__lmdb_environment_unpin(environment, &pin);
    }
    return NULL;
}

/* A slot that was left is freed by one of them, and then another's. */
START_TEST(threads_free_each_others_slots)
{
    pthread_t thread[THREADS];
    leat__lmdb_pin pin;
    leat__lmdb_environment *environment;
    other_process other = other_process_start(open_by_liblmdb, directory);
    ck_assert_int_eq(leat__lmdb_environment_open(&environment, directory),
                     LEAT_OK);
    atomic_store(&full_every, 5);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, pin_and_unpin, environment), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    atomic_store(&full_every, 0);
    int code;
    ck_assert_int_eq(leat__lmdb_environment_pin(environment, 0, &pin, &code),
                     LEAT_OK);
    check_taken(1);
    leat__lmdb_environment_unpin(environment, &pin);
    check_taken(0);
    leat__lmdb_environment_close(environment);
    other_process_stop(&other);
}
END_TEST

/* Opens and closes another database when the first warning comes. */
static void open_another(void *user, leat_log_level level, const char *line)
{
    remember(user, level, line);
    no_blocks = 0;
    leat_reader_close(images_open(user));
}

START_TEST(the_warning_is_logged_when_others_can_open)
{
    char other[FIXTURE_PATH];
    images_write(other, images_record, RECORDS);
    leat_log_set(open_another, other, LEAT_LOG_WARNING);
    no_blocks = ENOSPC;
    leat_reader *reader = images_open(directory);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked"));
    leat_reader_close(reader);
    fixture_remove(other);
}
END_TEST

/* Where the process may write no file that large it reads on, and lives. */
START_TEST(a_new_lock_is_within_the_limit_of_files)
{
    static const struct {
        rlim_t limit;
        off_t size;
    } cases[] = {{LOCK_BYTES - 1, 0},
                 {LOCK_BYTES, LOCK_BYTES},
                 {NEW_BYTES - 1, LOCK_BYTES},
                 {NEW_BYTES, NEW_BYTES}};
    struct rlimit limit, small;
    struct stat found;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = cases[_i].limit;
    said[0] = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    leat_reader *reader = NULL;
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(strstr(said, "cannot be locked") != NULL,
                     cases[_i].size == 0);
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_size, cases[_i].size);
}
END_TEST

static const char precious[] = "nothing of this may be lost";

static void make_precious(char path[FIXTURE_PATH + 16])
{
    snprintf(path, FIXTURE_PATH + 16, "%s/precious", directory);
    fixture_store(path, precious, sizeof(precious));
}

static void expect_precious(const char *path)
{
    size_t size;
    unsigned char *bytes = fixture_load(path, &size);
    ck_assert_uint_eq(size, sizeof(precious));
    ck_assert_mem_eq(bytes, precious, size);
    free(bytes);
}

static void open_as_file(const char *path, unsigned flags, int wanted)
{
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    if (mdb_env_open(reading, path, MDB_RDONLY | MDB_NOSUBDIR | flags, 0644) !=
        wanted)
        _exit(2);
    mdb_env_close(reading);
}

static void refuse_lock(const char *path)
{
    open_as_file(path, MDB_NOLOCK, 0);
    open_as_file(path, 0, ENAMETOOLONG);
}

/* Of the lock file, where no other program can have one either. */
START_TEST(a_name_that_is_too_long_is_done_without)
{
    enum { LONGEST = NAME_MAX - (int)sizeof("-lock") + 1 };
    char name[LONGEST + 2], path[2 * FIXTURE_PATH];
    memset(name, 'n', sizeof(name));
    name[LONGEST + 1] = 0;
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    ck_assert_int_eq(rename(images_in(directory, "data.mdb"), path), 0);
    other_process_run(refuse_lock, path);
    leat__lmdb_environment *environment;
    ck_assert_int_eq(leat__lmdb_environment_open(&environment, path), LEAT_OK);
    ck_assert(!leat__lmdb_lock_is_held(environment->lock));
    ck_assert(!leat__lmdb_environment_is_used(environment));
    leat_reader *reader = images_open(path);
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    leat__lmdb_environment_close(environment);
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked (File name too long"));
    /* The longest that has one. */
    said[0] = 0;
    name[LONGEST] = 0;
    ck_assert_int_eq(rename(path, images_in(directory, name)), 0);
    reader = images_open(images_in(directory, name));
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(the_lock_of_another_user_is_taken_where_all_may_write)
{
    expect_ten();
    protected_open = 1;
    expect_ten();
    ck_assert_int_eq(unlink(lock), 0);
    expect_ten();
    protected_open = 0;
}
END_TEST

/* As one that gives the files' owners other names. */
START_TEST(a_mount_without_a_name_for_the_user_is_done_without)
{
    (void)unlink(lock);
    nameless_user = 1;
    leat_reader *reader = images_open(directory);
    nameless_user = 0;
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
    ck_assert_ptr_nonnull(strstr(said, "cannot be locked (Value too large"));
}
END_TEST

START_TEST(a_new_file_is_of_who_owns_the_data)
{
    struct stat found;
    char data[sizeof(lock)];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: needs a superuser\n");
        return;
    }
    snprintf(data, sizeof(data), "%s/data.mdb", directory);
    ck_assert_int_eq(chown(data, 1234, 4321), 0);
    expect_ten();
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_uid, 1234);
    ck_assert_int_eq(found.st_gid, 4321);
    /* One that is there stays as it is. */
    ck_assert_int_eq(chown(lock, 0, 0), 0);
    expect_ten();
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_uid, 0);
}
END_TEST

/* Which is shown as a user and a group that are others. */
START_TEST(a_new_file_is_not_of_whom_an_unknown_owner_is_shown_as)
{
    enum { UNKNOWN = 70000 };
    struct stat found;
    char data[sizeof(lock)];
    snprintf(data, sizeof(data), "%s/data.mdb", directory);
    if (geteuid() != 0 || chown(data, UNKNOWN, UNKNOWN) || chmod(data, 0644) ||
        !few_users_do(expect_ten)) {
        fprintf(stderr, "skipped: needs a superuser and user namespaces\n");
        return;
    }
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_uid, 0);
    ck_assert_int_eq(found.st_gid, 0);
}
END_TEST

START_TEST(a_link_is_not_followed)
{
    char path[FIXTURE_PATH + 16];
    make_precious(path);
    ck_assert_int_eq(symlink("precious", lock), 0);
    expect_refused("a symbolic link");
    expect_precious(path);
    ck_assert_int_eq(unlink(path), 0);
    expect_refused("a symbolic link");
    ck_assert_int_ne(access(path, F_OK), 0);
    fixture_store(path, "", 0);
    expect_refused("a symbolic link");
    struct stat found;
    ck_assert_int_eq(stat(path, &found), 0);
    ck_assert_int_eq(found.st_size, 0);
    ck_assert_int_eq(unlink(lock), 0);
    ck_assert_int_eq(symlink("/dev/null", lock), 0);
    expect_refused("a symbolic link");
}
END_TEST

START_TEST(what_is_no_file_is_not_opened)
{
    ck_assert_int_eq(mkfifo(lock, 0644), 0);
    expect_refused("a pipe");
    ck_assert_int_eq(unlink(lock), 0);
    ck_assert_int_eq(mkdir(lock, 0755), 0);
    expect_refused("a directory");
}
END_TEST

START_TEST(a_file_of_something_else_is_not_written_to)
{
    char path[FIXTURE_PATH + 16];
    make_precious(path);
    ck_assert_int_eq(link(path, lock), 0);
    expect_refused("a file of something else");
    expect_precious(path);
    ck_assert_int_eq(unlink(lock), 0);
    ck_assert_int_eq(link(images_in(directory, "data.mdb"), lock), 0);
    expect_refused("a file of something else");
    ck_assert_int_eq(unlink(lock), 0);
    fixture_store(lock, "abc", 3);
    expect_refused("a file of something else");
    /* Zeros are nobody's but where they have another name. */
    static const unsigned char zeros[100];
    ck_assert_int_eq(unlink(lock), 0);
    fixture_store(images_in(directory, "zeros"), zeros, sizeof(zeros));
    ck_assert_int_eq(link(images_in(directory, "zeros"), lock), 0);
    expect_refused("a file of something else");
    expect_precious(path);
}
END_TEST

static void set_first_byte(short type)
{
    struct flock first = {.l_type = type, .l_len = 1};
    int fd = open(lock, O_RDWR | O_CREAT, 0644);
    if (fcntl(fd, F_SETLK, &first) != 0)
        _exit(2);
}

static void lock_first_byte(const char *path)
{
    (void)path;
    set_first_byte(F_WRLCK);
}

static void share_first_byte(const char *path)
{
    (void)path;
    set_first_byte(F_RDLCK);
}

START_TEST(a_file_of_something_else_that_is_in_use_takes_no_blocks)
{
    struct stat before, found;
    fixture_store(lock, "", 0);
    ck_assert_int_eq(truncate(lock, 1 << 20), 0);
    other_process other = other_process_start(share_first_byte, directory);
    ck_assert_int_eq(stat(lock, &before), 0);
    expect_refused("not LMDB's lock file");
    ck_assert_int_eq(stat(lock, &found), 0);
    ck_assert_int_eq(found.st_blocks, before.st_blocks);
    ck_assert_int_eq(found.st_mtim.tv_sec, before.st_mtim.tv_sec);
    ck_assert_int_eq(found.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    other_process_stop(&other);
}
END_TEST

START_TEST(a_lock_file_that_cannot_be_read_is_not_taken_for_another)
{
    expect_ten();
    read_most = 1;
    expect_ten();
    read_most = 0;
    no_read = EIO;
    expect_refused("Input/output error");
    no_read = 0;
    expect_ten();
}
END_TEST

/* Its directory is renamed, and back again. */
START_TEST(a_lock_file_that_is_away_for_a_moment_is_waited_for)
{
    expect_ten();
    /* To open it, and to create it. */
    absent_locks = 2 * (1 + _i);
    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(absent_locks, 0);
    other_process_run(expect_one_reader, directory);
    leat_reader_close(reader);
    absent_locks = 1000;
    expect_refused("each time it was opened");
    absent_locks = 0;
}
END_TEST

START_TEST(a_file_of_zeros_is_empty)
{
    static const unsigned char zeros[LOCK_BYTES + 1];
    fixture_store(lock, zeros, LOCK_BYTES);
    expect_ten();
    fixture_store(lock, zeros, 3);
    expect_ten();
    fixture_store(lock, zeros, LOCK_BYTES + 1);
    expect_ten();
    other_process_run(visit_by_liblmdb, directory);
}
END_TEST

static void write_at(off_t at, const void *bytes, size_t n)
{
    int fd = open(lock, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    /* Closed by the process that holds no lock of its own on it. */
    close(fd);
}

typedef struct damage {
    off_t at;
    uint32_t value;
    const char *says;
} damage;

static const damage damages[] = {
    {MAGIC_AT, 0, "not LMDB's lock file"},
    {FORMAT_AT, 0x00020001, "lock format 0x20001, expected 0x10001"},
    {COUNT_AT, 1023, "number of readers"},
    {COUNT_AT, 0xffffffff, "number of readers"},
    {MUTEX_AT + 16, 0, "its mutex is damaged"},
    {MUTEX_AT + 16, 0xa5a5a5a5, "its mutex is damaged"},
    {TXNID_AT, 77, "is at transaction 77"},
};

START_TEST(damage_to_a_file_in_use_is_an_error)
{
    const damage *done = &damages[_i];
    other_process other = other_process_start(read_by_liblmdb, directory);
    write_at(done->at, &done->value, sizeof(done->value));
    expect_refused(done->says);
    other_process_stop(&other);
    /* Nobody uses it any more. */
    if (done->at != MAGIC_AT)
        expect_ten();
}
END_TEST

START_TEST(a_file_in_use_that_is_cut_is_an_error)
{
    other_process other = other_process_start(read_by_liblmdb, directory);
    ck_assert_int_eq(truncate(lock, 191), 0);
    expect_refused("its size is damaged");
    other_process_stop(&other);
    expect_ten();
}
END_TEST

/* What the first reader has open may be damaged before the second comes. */
START_TEST(damage_is_noticed_after_opening_too)
{
    const damage *done = &damages[_i];
    leat_reader *reader = images_open(directory);
    write_at(done->at, &done->value, sizeof(done->value));
    expect_refused(done->says);
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
}
END_TEST

/* A lock that no living thread holds, and one that a living one never frees. */
START_TEST(waiting_for_the_mutex_ends)
{
    uint32_t nobody = 0x3fffffff;
    other_process other = other_process_start(read_by_liblmdb, directory);
    write_at(MUTEX_AT, &nobody, sizeof(nobody));
    expect_refused("its mutex is locked");
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "remove this file"));
    ck_assert_ptr_nonnull(strstr(said, "waiting"));
    other_process_stop(&other);
    said[0] = 0;
    expect_ten();
}
END_TEST

static void lock_mutex(const char *path)
{
    (void)path;
    int fd = open(lock, O_RDWR);
    unsigned char *bytes =
        mmap(NULL, LOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED ||
        pthread_mutex_lock((pthread_mutex_t *)(bytes + MUTEX_AT)) != 0)
        _exit(2);
}

START_TEST(the_mutex_of_who_died_is_taken_over)
{
    other_process other = other_process_start(read_by_liblmdb, directory);
    other_process_run(lock_mutex, directory);
    expect_ten();
    other_process holder = other_process_start(lock_mutex, directory);
    expect_refused("its mutex is locked");
    other_process_stop(&holder);
    said[0] = 0;
    expect_ten();
    other_process_stop(&other);
}
END_TEST

/* Reading waits for the other process, says so, and works once that is gone. */
static void expect_wait_for(void (*act)(const char *), const char *refusal,
                            const char *notice)
{
    other_process other = other_process_start(act, directory);
    expect_refused(refusal);
    ck_assert_ptr_nonnull(strstr(said, notice));
    other_process_stop(&other);
    said[0] = 0;
    expect_ten();
}

START_TEST(waiting_for_another_that_opens_it_ends)
{
    expect_wait_for(lock_first_byte, "another program has locked it",
                    "waiting");
}
END_TEST

START_TEST(a_cancelled_opening_ends_the_wait)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const atomic_bool cancelled = true;
    leat__opening opening = {.lock = &mutex, .cancelled = &cancelled};
    leat_pipeline *pipeline;
    leat_reader *reader;
    other_process other = other_process_start(lock_first_byte, directory);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), LEAT_OK);
    leat__opening *outer = leat__opening_begin(&opening);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_ECANCELLED);
    leat__opening_end(outer);
    leat_pipeline_unref(pipeline);
    other_process_stop(&other);
    expect_ten();
}
END_TEST

/* A table of two slots, one of them taken. */
static void read_with_two_slots(const char *path)
{
    ck_assert_int_eq(mdb_env_create(&reading), 0);
    ck_assert_int_eq(mdb_env_set_maxreaders(reading, 2), 0);
    ck_assert_int_eq(mdb_env_open(reading, path, MDB_RDONLY | MDB_NOTLS, 0644),
                     0);
    ck_assert_int_eq(mdb_txn_begin(reading, NULL, MDB_RDONLY, &transaction), 0);
}

/* Shared, and every byte, as by a program that copies the file. */
static void lock_all_bytes(const char *path)
{
    struct flock all = {.l_type = F_RDLCK};
    (void)path;
    int fd = open(lock, O_RDWR);
    if (fcntl(fd, F_SETLK, &all) != 0)
        _exit(2);
}

START_TEST(waiting_for_another_that_locks_all_of_it_ends)
{
    expect_ten();
    expect_wait_for(lock_all_bytes,
                    "another program has locked all of it; end all programs",
                    "locked all of it; waiting for it");
}
END_TEST

START_TEST(slots_of_the_dead_are_free_and_those_of_the_living_are_not)
{
    other_process first = other_process_start(read_with_two_slots, directory);
    other_process second = other_process_start(read_by_liblmdb, directory);
    expect_refused("all 2 slots");
    other_process_stop(&second); /* without closing anything */
    expect_ten();
    other_process_stop(&first);
}
END_TEST

/* The second slot is that of a dead process with this process's id, as in a
   container that was started again. */
static void leave_slot(void)
{
    const uint64_t txnid = 1;
    const uint32_t number = (uint32_t)getpid() + (1u << 22), two = 2;
    const off_t slot = HEADER + SLOT;
    write_at(slot, &txnid, sizeof(txnid));
    write_at(slot + (off_t)sizeof(txnid), &number, sizeof(number));
    write_at(COUNT_AT, &two, sizeof(two));
}

START_TEST(slots_of_a_dead_process_of_the_same_number_are_free)
{
    other_process other = other_process_start(read_with_two_slots, directory);
    leave_slot();
    expect_ten();
    other_process_run(expect_one_reader, directory);
    other_process_stop(&other);
}
END_TEST

/* It would protect the dead process's pages while this one lives. */
START_TEST(such_slots_are_free_before_the_others_are_taken)
{
    other_process other = other_process_start(read_by_liblmdb, directory);
    leave_slot();
    leat_reader *reader = images_open(directory);
    other_process_run(expect_two_readers, directory);
    leat_reader_close(reader);
    other_process_run(expect_one_reader, directory);
    other_process_stop(&other);
}
END_TEST

/* The two states of one process need two slots, and neither is dead. */
START_TEST(a_slot_of_our_own_is_not_taken_again)
{
    other_process first = other_process_start(read_with_two_slots, directory);
    leat_reader *reader = images_open(directory);
    other_process_run(commit, directory);
    expect_refused("all 2 slots");
    other_process_stop(&first);
    ck_assert_int_eq(images_count(reader), RECORDS);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    enum { DAMAGES = sizeof(damages) / sizeof(damages[0]) };
    Suite *suite = suite_create("lmdb_lock");
    TCase *tcase = tcase_create("lmdb_lock");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_file_is_what_liblmdb_makes);
    tcase_add_test(tcase, readers_of_one_state_have_one_slot_that_liblmdb_sees);
    tcase_add_test(tcase, its_blocks_are_taken_before_it_is_stored_to);
    tcase_add_test(tcase, a_lock_without_blocks_is_not_stored_to);
    tcase_add_test(tcase, a_slot_without_a_block_is_not_stored_to);
    tcase_add_test(tcase, a_new_file_has_slots_for_a_thousand_readers);
    tcase_add_test(tcase, a_file_of_liblmdbs_stays_as_large_as_it_is);
    tcase_add_test(tcase, a_lock_with_room_for_a_page_is_used);
    tcase_add_test(tcase, a_lock_without_room_is_not_stored_to);
    tcase_add_test(tcase, a_slot_without_room_is_not_stored_to);
    tcase_add_test(tcase, a_slot_that_there_is_no_room_to_free_is_freed_later);
    tcase_add_test(tcase,
                   all_slots_that_there_is_no_room_to_free_are_freed_later);
    tcase_add_test(tcase, threads_free_each_others_slots);
    tcase_add_test(tcase, the_warning_is_logged_when_others_can_open);
    tcase_add_loop_test(tcase, a_new_lock_is_within_the_limit_of_files, 0, 4);
    tcase_add_test(tcase, a_name_that_is_too_long_is_done_without);
    tcase_add_test(tcase,
                   the_lock_of_another_user_is_taken_where_all_may_write);
    tcase_add_test(tcase, a_mount_without_a_name_for_the_user_is_done_without);
    tcase_add_test(tcase, a_new_file_is_of_who_owns_the_data);
    tcase_add_test(tcase,
                   a_new_file_is_not_of_whom_an_unknown_owner_is_shown_as);
    tcase_add_test(tcase, a_link_is_not_followed);
    tcase_add_test(tcase, what_is_no_file_is_not_opened);
    tcase_add_test(tcase, a_file_of_something_else_is_not_written_to);
    tcase_add_test(tcase,
                   a_file_of_something_else_that_is_in_use_takes_no_blocks);
    tcase_add_test(tcase,
                   a_lock_file_that_cannot_be_read_is_not_taken_for_another);
    tcase_add_loop_test(
        tcase, a_lock_file_that_is_away_for_a_moment_is_waited_for, 0, 3);
    tcase_add_test(tcase, a_file_of_zeros_is_empty);
    tcase_add_loop_test(tcase, damage_to_a_file_in_use_is_an_error, 0, DAMAGES);
    tcase_add_test(tcase, a_file_in_use_that_is_cut_is_an_error);
    tcase_add_loop_test(tcase, damage_is_noticed_after_opening_too, 0, DAMAGES);
    tcase_add_test(tcase, waiting_for_the_mutex_ends);
    tcase_add_test(tcase, the_mutex_of_who_died_is_taken_over);
    tcase_add_test(tcase, waiting_for_another_that_opens_it_ends);
    tcase_add_test(tcase, a_cancelled_opening_ends_the_wait);
    tcase_add_test(tcase, waiting_for_another_that_locks_all_of_it_ends);
    tcase_add_test(tcase,
                   slots_of_the_dead_are_free_and_those_of_the_living_are_not);
    tcase_add_test(tcase, slots_of_a_dead_process_of_the_same_number_are_free);
    tcase_add_test(tcase, such_slots_are_free_before_the_others_are_taken);
    tcase_add_test(tcase, a_slot_of_our_own_is_not_taken_again);
    return suite_run(suite);
}
