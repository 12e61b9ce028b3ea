/*
 * soak.c: random data layers against a slow reference, sample for sample.
 *
 *   soak [--seed S] [--first K] [--count N] [--seconds T]
 *
 * Configuration K of seed S is the same whenever it is run: a failure names
 * both, and the command that runs it alone. A layer that hangs is a failure,
 * too.
 *
 * Layers run in processes of so many each, since the devices of tests never use
 * an address again; what one of them leaks shows at its end, too.
 */
#include "configuration.h"
#include "dice.h"
#include "sources.h"
#include "support/index_decorators.h"
#include "trial.h"
#ifdef SOAK_DOUBLE
#include "cuda_double.h"
#else
#include "support/late_device.h"
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANGS_AFTER 60 /* seconds, twice */
#define EACH_PROCESS 250

/* How many layers had what; shared by all processes. */
#define FEATURES(X)                                                            \
    X(FROM_NETS, "from net files", c->from_net)                                \
    X(LMDBS, "over an LMDB", c->source == FROM_LMDB)                           \
    X(CHAINS, "behind decorators", c->chain != CHAIN_NONE)                     \
    X(ENCODED, "of encoded images", c->storage.storage == STORED_PNG)          \
    X(SHAPES, "of images of several sizes", c->storage.varies)                 \
    X(GROUPS, "in groups", c->members > 1)                                     \
    X(DEVICES, "on a device", c->options.device != NULL)                       \
    X(KERNELS, "with transform_on DEVICE", c->options.transform_on)            \
    X(HALVES, "with tops of two bytes",                                        \
      c->rules.top == TOP_HALF || c->rules.top == TOP_BFLOAT)                  \
    X(RANKS, "of several ranks", c->rules.step > 1)                            \
    X(ENDS, "whose batches end with an epoch", c->options.epoch_end != 0)      \
    X(BAD, "with bad records", c->storage.bad_in > 0)                          \
    X(LIMITS, "with max_errors", c->options.max_errors >= 0)                   \
    X(BAD_RECORD_FILES, "with a file of bad records", c->has_bad_record_file)  \
    X(MEMORY, "with max_memory", c->limits_memory)                             \
    X(POOLS, "with memory of the caller's",                                    \
      c->options.host_allocator || c->options.pinned_allocator)                \
    X(RESUMED, "that may be resumed", c->resumes)

#define NAME(id, text, is_so) FEATURE_##id,
enum { FEATURES(NAME) NFEATURES };

typedef struct tally {
    int64_t layers;
    int64_t samples;
    int64_t feature[NFEATURES];
} tally;

static tally *shared;
static long long seed_given;
static long long number;
static pid_t parent;

_Noreturn void soak_fail(const configuration *c, const char *what)
{
    fprintf(stderr, "FAILED: %s\n  last error: %s\n", what, leat_last_error());
    if (c)
        configuration_describe(c);
    fprintf(stderr, "  again: soak --seed %lld --first %lld --count 1\n",
            seed_given, number);
    exit(1);
}

void soak_check(const configuration *c, int status, const char *what)
{
    if (status != LEAT_OK)
        soak_fail(c, what);
}

/*
 * The second alarm in a row tells: a process that was stopped for long finds
 * one when it goes on.
 */
static volatile sig_atomic_t alarms;

static void report_hang(int signal_number)
{
    (void)signal_number;
    if (alarms++ == 0) {
        alarm(HANGS_AFTER);
        return;
    }
    char line[160];
    int n = snprintf(line, sizeof(line),
                     "FAILED: hangs; again: soak --seed %lld --first %lld "
                     "--count 1\n",
                     seed_given, number);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(3);
    abort();
}

static void register_all(void)
{
    index_decorators_register();
#ifdef SOAK_DOUBLE
    cuda_double_reset();
    soak_devices[soak_ndevices++] = "cuda:0";
    soak_devices[soak_ndevices++] = "cuda:1";
#else
    late_device_register();
    soak_devices[soak_ndevices++] = "late:0";
    soak_devices[soak_ndevices++] = "late:1";
#endif
}

static void count_features(const configuration *c)
{
#define COUNT(id, text, is_so) shared->feature[FEATURE_##id] += (is_so) != 0;
    FEATURES(COUNT)
}

static void run_one(void)
{
    configuration c;
    dice_begin(seed_given, number);
    alarms = 0;
    alarm(HANGS_AFTER);
    configuration_choose(&c);
    shared->samples += trial_run(&c);
    count_features(&c);
    shared->layers++;
    configuration_finish(&c);
}

/* Runs those from `number` to `end` in a process of their own. */
static void run_process(long long end, time_t until)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        soak_fail(NULL, "no process");
    if (child == 0) {
        register_all();
        signal(SIGALRM, report_hang);
        for (; number < end && time(NULL) < until; number++)
            run_one();
        alarm(0);
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr,
                "FAILED among configurations %lld to %lld of seed %lld\n",
                number, end - 1, seed_given);
        exit(1);
    }
}

static void clean_up(void)
{
    static const char *const names[] = {
        "data.mdb", "lock.mdb", "mean.binaryproto", "net.prototxt", "bad"};
    if (getpid() != parent)
        return;
    for (int i = 0; i < 5; i++)
        unlink(soak_path(names[i]));
    rmdir(soak_directory);
}

static void report(void)
{
    printf("seed %lld: %lld configurations, %lld samples, all as expected\n",
           seed_given, (long long)shared->layers, (long long)shared->samples);
#define SHOW(id, text, is_so)                                                  \
    printf("  %9lld %s\n", (long long)shared->feature[FEATURE_##id], text);
    FEATURES(SHOW)
}

int main(int argc, char **argv)
{
    long long count = 1LL << 60;
    long long seconds = 1LL << 40;
    seed_given = (long long)time(NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        long long value = atoll(argv[i + 1]);
        if (strcmp(argv[i], "--seed") == 0)
            seed_given = value;
        else if (strcmp(argv[i], "--first") == 0)
            number = value;
        else if (strcmp(argv[i], "--count") == 0)
            count = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = value;
        else
            argc = 0;
    }
    strcpy(soak_directory, "/tmp/leat-soak-XXXXXX");
    if (argc % 2 == 0 || !mkdtemp(soak_directory)) {
        fprintf(
            stderr,
            "usage: soak [--seed S] [--first K] [--count N] [--seconds T]\n");
        return 2;
    }
    parent = getpid();
    atexit(clean_up);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        soak_fail(NULL, "no shared memory");
    time_t until = time(NULL) + (time_t)seconds;
    for (long long end = number + count; number < end && time(NULL) < until;) {
        long long next =
            end - number < EACH_PROCESS ? end : number + EACH_PROCESS;
        run_process(next, until);
        number = next;
    }
    report();
    return 0;
}
