/*
 * The tool's commands, with the Nth call of each kind failing, for every N up
 * to the last: exit status 0 and the whole result, or status 2, one line on
 * stderr and no result, and then the same command again gives the whole one. Of
 * thousands of calls only the first ones and a sample of the later ones fail;
 * LEAT_FAULTS=all makes each of them fail.
 */
#include "faults/faults.h"
#include "lmdb_fixture.h"

#include "support/sanitizer.h"

#include <dirent.h>
#include <fcntl.h>
#include <lmdb.h>
#include <sys/wait.h>
#include <zlib.h>

/* Only the thread sanitizer has it. */
__attribute__((weak)) void __tsan_init(void);

enum { ARGUMENTS = 16, PATH_SIZE = 2 * FIXTURE_PATH };

static char directory[FIXTURE_PATH];
static const char *tool;

enum { NEW, OLD_DATABASE, OLD_DUMP };

typedef struct command {
    const char *name;
    const char *argument[ARGUMENTS];
    const char *made; /* what it makes, in the directory */
    int resumes;      /* what is left beside it is gone on with */
    int has_old;      /* NEW, or what is there before */
} command;

#define MNIST "import", "mnist", "images", "labels", "made"
#define IMAGES (LEAT_TEST_DATA "/images")

static const command commands[] = {
    {"synth",
     {"synth", "digits", "--count", "30", "--shape", "1,8,8", "made"},
     "made",
     0,
     0},
    {"synth --jpeg",
     {"synth", "noise", "--count", "6", "--shape", "3,24,24", "--jpeg", "80",
      "made"},
     "made",
     0,
     0},
    {"import mnist", {MNIST}, "made", 1, 0},
    {"import mnist --force", {MNIST, "--force"}, "made", 1, OLD_DATABASE},
    {"import images",
     {"import", "images", "--root", IMAGES, "list", "made"},
     "made",
     1,
     0},
    {"mean", {"mean", "base", "made"}, "made", 0, 0},
    {"dump",
     {"dump", "--reader", "lmdb:base", "--batch", "4", "--batches", "3",
      "--out", "made"},
     "made",
     0,
     0},
    {"dump --token",
     {"dump", "--reader", "lmdb:base", "--batch", "4", "--batches", "3",
      "--out", "made", "--token", "made/token"},
     "made",
     0,
     0},
    {"dump --force",
     {"dump", "--reader", "lmdb:base", "--batch", "4", "--batches", "3",
      "--force", "--out", "made"},
     "made",
     0,
     OLD_DUMP},
    {"dump --net",
     {"dump", "--net", "net", "--phase", "TRAIN", "--batches", "2", "--json",
      "--out", "made"},
     "made",
     0,
     0},
    {"info", {"info", "--json", "base"}, NULL, 0, 0},
    {"verify", {"verify", "base"}, NULL, 0, 0},
    {"show", {"show", "base", "--count", "4", "--out", "made"}, "made", 0, 0},
    {"compare", {"compare", "base", "base"}, NULL, 0, 0},
    {"cat", {"cat", "lmdb:base"}, NULL, 0, 0},
    {"readers", {"readers", "--json"}, NULL, 0, 0},
    {"explain", {"explain", "text:list | take:3"}, NULL, 0, 0},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static char *in(const char *name)
{
    static char path[4][PATH_SIZE];
    static int at;
    char *out = path[at++ % 4];
    snprintf(out, PATH_SIZE, "%s/%s", directory, name);
    return out;
}

/* The environment with a fault in it, for a child. */
static void set_fault(const char *fault)
{
    const char *options = getenv("ASAN_OPTIONS");
    char text[PATH_SIZE];
    snprintf(text, sizeof(text), "%s:verify_asan_link_order=0",
             options ? options : "");
    setenv("ASAN_OPTIONS", text, 1);
    setenv("LD_PRELOAD", LEAT_FAULTS_LIBRARY, 1);
    setenv("LEAT_FAULT", fault, 1);
    setenv("LEAT_FAULT_MARK", "struck", 1);
    setenv("LEAT_WATCHDOG", "60", 1);
}

/* Runs the command in the directory; its wait status. */
static int run(const command *one, const char *fault)
{
    char *argument[ARGUMENTS + 1] = {(char *)(uintptr_t)tool};
    for (int i = 0; i < ARGUMENTS - 1 && one->argument[i]; i++)
        argument[i + 1] = (char *)(uintptr_t)one->argument[i];
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (chdir(directory))
            _exit(98);
        int out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        int line = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(out, STDOUT_FILENO);
        dup2(line, STDERR_FILENO);
        close(out);
        close(line);
        if (fault)
            set_fault(fault);
        execv(tool, argument);
        _exit(99);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    return result;
}

static char *load_text(const char *name)
{
    size_t size;
    char *text = (char *)fixture_load(in(name), &size);
    text = realloc(text, size + 1);
    text[size] = 0;
    return text;
}

static uLong digest; /* of what was made, whatever the order of its files */

/* Keys and values: on what pages they are is another matter. */
static uLong sum_records(const char *path, uLong sum)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(
        mdb_env_open(env, path, MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR, 0), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cursor), 0);
    while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        sum = crc32_z(sum, (void *)&key.mv_size, sizeof(key.mv_size));
        sum = crc32_z(sum, key.mv_data, key.mv_size);
        sum = crc32_z(sum, (void *)&value.mv_size, sizeof(value.mv_size));
        sum = crc32_z(sum, value.mv_data, value.mv_size);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return sum;
}

static int add_file(const char *path, const struct stat *found, int type,
                    struct FTW *walk)
{
    const char *name = path + walk->base;
    (void)found;
    /* What comes and goes beside the data. */
    if (type != FTW_F || !strcmp(name, "lock.mdb"))
        return 0;
    uLong sum = crc32(0, (const unsigned char *)name, (uInt)strlen(name));
    if (!strcmp(name, "data.mdb")) {
        digest += sum_records(path, sum);
        return 0;
    }
    size_t size;
    unsigned char *bytes = fixture_load(path, &size);
    digest += crc32_z(sum, bytes, size);
    free(bytes);
    return 0;
}

static uLong digest_of(const char *name)
{
    digest = 0;
    nftw(in(name), add_file, 8, FTW_PHYS);
    return digest;
}

/* Of what it made, or printed if it makes nothing. */
static uLong digest_result(const command *one)
{
    return digest_of(one->made ? one->made : "stdout");
}

static int exists(const char *name)
{
    return access(in(name), F_OK) == 0;
}

static int is_expected(const command *one, const char *name)
{
    static const char *const names[] = {
        ".",      "..",  "base",    "images", "labels", "list",   "net", "mean",
        "unlike", "old", "earlier", "stdout", "stderr", "struck", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(name, names[i]))
            return 1;
    if (one->has_old && !strcmp(name, one->made))
        return 1;
    return one->resumes && strstr(name, ".leat-part");
}

/* Nothing but what was there; removing it may be what failed. */
static void check_leftovers(const command *one, const char *fault)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while ((entry = readdir(entries)))
        ck_assert_msg(is_expected(one, entry->d_name), "%s, %s: leaves %s",
                      one->name, fault, entry->d_name);
    closedir(entries);
}

static const char *old_of(const command *one)
{
    return one->has_old == OLD_DUMP ? "earlier" : "old";
}

static void copy_old(const command *one, const char *name)
{
    char from[64], to[64];
    size_t size;
    snprintf(from, sizeof(from), "%s/%s", old_of(one), name);
    snprintf(to, sizeof(to), "%s/%s", one->made, name);
    unsigned char *bytes = fixture_load(in(from), &size);
    fixture_store(in(to), bytes, size);
    free(bytes);
}

/* As it is before the command. */
static void prepare(const command *one)
{
    if (!one->made)
        return;
    fixture_remove(in(one->made));
    if (exists("made.leat-part"))
        fixture_remove(in("made.leat-part"));
    if (!one->has_old)
        return;
    ck_assert_int_eq(mkdir(in(one->made), 0755), 0);
    if (one->has_old == OLD_DATABASE) {
        copy_old(one, "data.mdb");
        return;
    }
    copy_old(one, "data.npy");
    copy_old(one, "odd.npy");
}

static void check_success(const command *one, const char *what, int result,
                          uLong expected)
{
    char *text = load_text("stderr");
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0,
                  "%s, %s: wait status %d: %s", one->name, what, result, text);
    ck_assert_msg(digest_result(one) == expected,
                  "%s, %s: success, but another result", one->name, what);
    free(text);
}

static void check_failure(const command *one, const char *fault, int result,
                          uLong expected, int removes)
{
    char *text = load_text("stderr");
    char *end = strchr(text, '\n');
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 2,
                  "%s, %s: wait status %d: %s", one->name, fault, result, text);
    ck_assert_msg(!strncmp(text, "leat: ", 6) && end && !end[1],
                  "%s, %s: not one line on stderr: '%s'", one->name, fault,
                  text);
    ck_assert_msg(!strchr(text, '%'), "%s, %s: no line of words: '%s'",
                  one->name, fault, text);
    free(text);
    if (!one->made)
        return;
    /* It may have failed after the result was there, but not before. */
    uLong found = exists(one->made) ? digest_of(one->made) : 0;
    int is_done = found == expected;
    int is_old =
        one->has_old ? found == digest_of(old_of(one)) : !exists(one->made);
    ck_assert_msg(is_done || is_old || removes, "%s, %s: half a result",
                  one->name, fault);
    if (is_old && !removes)
        check_leftovers(one, fault);
    if (is_done && one->has_old)
        return;
    /* Where nothing is left there is nothing to stumble over. */
    if (is_old && !one->has_old && !exists("made.leat-part"))
        return;
    if (!one->has_old)
        fixture_remove(in(one->made));
    result = run(one, NULL);
    check_success(one, "once more", result, expected);
}

/* The Nth call fails. Whether there was one. */
static int fail_call(const command *one, fault_call call, int n, int stays,
                     uLong expected)
{
    char fault[64];
    snprintf(fault, sizeof(fault), "%s:%d:%d%s", fault_name(call), n,
             fault_error(call), stays ? "+" : "");
    unlink(in("struck"));
    prepare(one);
    /* The files of an earlier dump may not get their names back, or lie there
       under others until the next dump. */
    int removes = call == FAULT_REMOVE ||
                  (call == FAULT_NAME && stays && one->has_old == OLD_DUMP);
    int result = run(one, fault);
    int struck = exists("struck");
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0)
        check_success(one, fault, result,
                      removes && one->has_old == OLD_DUMP ? digest_result(one)
                                                          : expected);
    else
        check_failure(one, fault, result, expected, removes);
    return struck;
}

/* Every call to begin with, then one in so many. */
static int next_call(int n, int stays)
{
    const char *text = getenv("LEAT_FAULTS");
    if (text && !strcmp(text, "all"))
        return n + 1;
    int is_coarse = IS_SANITIZED || stays;
    int all = is_coarse ? 6 : 20;
    return n < all ? n + 1 : n + n / (is_coarse ? 1 : 5);
}

START_TEST(any_call_of_a_command_may_fail)
{
    const command *one = &commands[_i];
    int faults = 0;
    prepare(one);
    int result = run(one, NULL);
    uLong expected = digest_result(one);
    check_success(one, "nothing failing", result, expected);
    ck_assert_int_eq(one->made && !exists(one->made), 0);
    for (int call = 0; call < FAULT_CALLS; call++) {
        for (int stays = 0; stays < (IS_SANITIZED ? 1 : 2); stays++) {
            int n = 0;
            for (; fail_call(one, (fault_call)call, n, stays, expected);
                 n = next_call(n, stays))
                faults++;
        }
    }
    printf("%s: %d failing calls\n", one->name, faults);
    ck_assert_int_gt(faults, 20);
}
END_TEST

/* The object of a comparison is whole, or there is none. */
START_TEST(a_comparison_ends_with_its_memory)
{
    static const command differing = {
        "compare --json",
        {"compare", "--json", "--differences", "1000", "base", "unlike"},
        NULL,
        0,
        0};
    int result = run(&differing, NULL);
    uLong expected = digest_result(&differing);
    ck_assert(WIFEXITED(result) && WEXITSTATUS(result) == 1);
    int failures = 0, struck = 1;
    for (int n = 0; struck; n++) {
        char fault[64];
        snprintf(fault, sizeof(fault), "memory:%d:%d", n, ENOMEM);
        unlink(in("struck"));
        result = run(&differing, fault);
        struck = exists("struck");
        if (WIFEXITED(result) && WEXITSTATUS(result) == 1) {
            ck_assert_msg(digest_result(&differing) == expected,
                          "%s: another result", fault);
            continue;
        }
        check_failure(&differing, fault, result, expected, 0);
        char *text = load_text("stdout");
        ck_assert_msg(!text[0], "%s: goes on to '%s'", fault, text);
        free(text);
        failures++;
    }
    /* A sanitizer's calls do not fail. */
    ck_assert(IS_SANITIZED || failures > 100);
}
END_TEST

static void store(const char *name, const char *bytes, size_t size)
{
    fixture_store(in(name), bytes, size);
}

static void make_input(const command *one)
{
    int result = run(one, NULL);
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "%s: %d",
                  one->name, result);
}

static void make_inputs(void)
{
    static const command base = {
        "base",
        {"synth", "digits", "--count", "20", "--shape", "1,8,8", "base"},
        NULL,
        0,
        0};
    static const command unlike = {"unlike",
                                   {"synth", "digits", "--count", "20",
                                    "--shape", "1,8,8", "--seed", "2",
                                    "unlike"},
                                   NULL,
                                   0,
                                   0};
    static const command old = {
        "old",
        {"synth", "digits", "--count", "4", "--shape", "1,2,3", "old"},
        NULL,
        0,
        0};
    static const command earlier = {"earlier",
                                    {"dump", "--reader", "lmdb:old", "--batch",
                                     "2", "--batches", "1", "--out", "earlier"},
                                    NULL,
                                    0,
                                    0};
    static const command mean = {"mean", {"mean", "base", "mean"}, NULL, 0, 0};
    static const char images[] = "\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\003"
                                 "abcdefghijklmnopqr";
    static const char labels[] = "\0\0\010\001\0\0\0\003\0\001\011";
    static const char list[] = "1x1.jpg 0\n40x3.jpg 1\ncmyk.jpg 2\n"
                               "exif-both.png 3\nbaseline-420.jpg 4\n";
    static const char net[] =
        "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { mean_file: 'mean' mirror: true }\n"
        "  data_param { source: 'base' backend: LMDB batch_size: 4 }\n"
        "  leat_param { random_seed: 7 } }\n";
    fixture_directory(directory);
    store("images", images, sizeof(images) - 1);
    store("labels", labels, sizeof(labels) - 1);
    store("list", list, sizeof(list) - 1);
    store("net", net, sizeof(net) - 1);
    make_input(&base);
    make_input(&unlike);
    make_input(&old);
    make_input(&earlier);
    ck_assert_int_eq(rename(in("earlier/label.npy"), in("earlier/odd.npy")), 0);
    make_input(&mean);
}

int main(void)
{
    const char *chosen = getenv("LEAT_TOOL");
    tool = chosen ? chosen : LEAT_TOOL;
    if (access(tool, X_OK)) {
        printf("skipped: there is no %s\n", tool);
        return 77;
    }
    if (__tsan_init && !getenv("LEAT_FAULTS")) {
        printf("skipped: the thread sanitizer takes too long to start\n");
        return 77;
    }
    Suite *suite = suite_create("failing_tool");
    TCase *tcase = tcase_create("failing_tool");
    tcase_set_timeout(tcase, 280);
    tcase_add_unchecked_fixture(tcase, make_inputs, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, any_call_of_a_command_may_fail, 0, COMMANDS);
    tcase_add_test(tcase, a_comparison_ends_with_its_memory);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (directory[0])
        fixture_remove(directory);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
