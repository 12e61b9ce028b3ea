/*
 * chains.c: random chains of readers over random files, read in every way.
 *
 *   chains [--seed S] [--first K] [--count N] [--seconds T] [--show 1]
 *
 * Chain K of seed S is the same whenever it is run: a failure names both, the
 * chain's text, and the command that runs it alone. So does a hang.
 *
 * What a chain gives when it is read a sample at a time is compared with slow
 * rules of its decorators, as far as these know it, and is the model of every
 * other way: several samples at a time, by index, after seek, skip and marks,
 * beside another thread, without memory, by layers of several ranks that are
 * saved, killed, and resumed on others.
 */
#include "chain_trial.h"
#include "soak/dice.h"

#include <leat.h>

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANGS_AFTER 60 /* seconds, twice */
#define EACH_PROCESS 100

static trial_tally *shared;
static chain made;
static char directory[] = "/tmp/leat-chains-XXXXXX";
static long long seed_given;
static long long number;
static long long shows;

static void say_again(void)
{
    char line[CHAIN_TEXT + 160];
    int n = snprintf(line, sizeof(line),
                     "  chain: %s\n  again: chains --seed %lld --first %lld "
                     "--count 1\n",
                     made.text, seed_given, number);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(3);
}

void chain_require(bool holds, const char *format, ...)
{
    va_list arguments;
    if (holds)
        return;
    fprintf(stderr, "FAILED: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    say_again();
    _exit(1);
}

/* The second alarm in a row tells: a process that was stopped for long finds
   one when it goes on. */
static volatile sig_atomic_t alarms;

static void report_hang(int signal_number)
{
    static const char line[] = "FAILED: hangs\n";
    (void)signal_number;
    if (alarms++ == 0) {
        alarm(HANGS_AFTER);
        return;
    }
    if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
        _exit(3);
    say_again();
    abort();
}

static int remove_entry(const char *path, const struct stat *stat, int type,
                        struct FTW *walk)
{
    (void)stat;
    (void)type;
    return walk->level > 0 ? remove(path) : 0;
}

static void empty_directory(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void run_one(void)
{
    dice_begin(seed_given, number);
    alarms = 0;
    alarm(HANGS_AFTER);
    chain_make(&made);
    if (shows)
        printf("%lld: %s\n", number, made.text);
    trial_run(&made, shared);
    chain_free(&made);
    empty_directory();
}

/* Runs those from `number` to `end` in a process of their own. */
static bool run_process(long long end, time_t until)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, report_hang);
        for (; number < end && time(NULL) < until; number++)
            run_one();
        alarm(0);
        exit(0);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return true;
    fprintf(stderr, "FAILED among chains %lld to %lld of seed %lld\n", number,
            end - 1, seed_given);
    return false;
}

static void report(void)
{
    printf("seed %lld: %lld chains, %lld refused, %lld samples, all as "
           "expected\n"
           "  %9lld chains whose samples are known by slow rules\n"
           "  %9lld with random access\n"
           "  %9lld marks\n"
           "  %9lld failed allocations\n"
           "  %9lld layers, %lld processes killed\n"
           "  %9lld with files that were replaced, %lld with damaged ones\n",
           seed_given, (long long)shared->chains, (long long)shared->refused,
           (long long)shared->samples, (long long)shared->known,
           (long long)shared->random_access, (long long)shared->marks,
           (long long)shared->faults, (long long)shared->layers,
           (long long)shared->kills, (long long)shared->replaced,
           (long long)shared->damaged);
}

static bool parse_arguments(int argc, char **argv, long long *count,
                            long long *seconds)
{
    const struct {
        const char *name;
        long long *value;
    } known[] = {{"--seed", &seed_given},
                 {"--first", &number},
                 {"--count", count},
                 {"--seconds", seconds},
                 {"--show", &shows}};
    bool is_known = argc % 2 == 1;
    for (int i = 1; is_known && i + 1 < argc; i += 2) {
        is_known = false;
        for (int k = 0; k < 5; k++)
            if (strcmp(argv[i], known[k].name) == 0) {
                *known[k].value = atoll(argv[i + 1]);
                is_known = true;
            }
    }
    return is_known;
}

int main(int argc, char **argv)
{
    long long count = 1LL << 60;
    long long seconds = 1LL << 40;
    seed_given = (long long)time(NULL);
    if (!parse_arguments(argc, argv, &count, &seconds)) {
        fprintf(stderr, "usage: chains [--seed S] [--first K] [--count N] "
                        "[--seconds T] [--show 1]\n");
        return 2;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !mkdtemp(directory) || chdir(directory) != 0) {
        fprintf(stderr, "no memory or directory: %s\n", strerror(errno));
        return 2;
    }
    bool holds = true;
    time_t until = time(NULL) + (time_t)seconds;
    long long end = number + count;
    while (holds && number < end && time(NULL) < until) {
        long long next =
            end - number < EACH_PROCESS ? end : number + EACH_PROCESS;
        holds = run_process(next, until);
        number = next;
    }
    empty_directory();
    rmdir(directory);
    if (holds)
        report();
    return !holds;
}
