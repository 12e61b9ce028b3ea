/* The check that `leat synth` gives to what draws and encodes its images. */
#include "support/suite.h"
#include "tools/cli/interrupt.h"
#include "tools/command.h"
#include "tools/image/image_writer.h"

#include <leat/status.h>

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/leat-synth-XXXXXX";

/* Where the signal comes. */
static enum { DRAWN, ENCODED } part;

/* What the check reports there; above 0: it was not asked. */
static int checked = 1;

/* The thread that makes the image has all signals blocked. */
static int ask(int (*check)(void))
{
    kill(getpid(), SIGTERM);
    while (!interrupt_check())
        sched_yield();
    checked = check ? check() : LEAT_OK;
    return checked;
}

int canvas_draw_digit(struct canvas *canvas, uint64_t seed, int64_t index,
                      int (*check)(void), int *label)
{
    (void)canvas;
    (void)seed;
    (void)index;
    *label = 0;
    return part == DRAWN ? ask(check) : LEAT_OK;
}

int canvas_draw_noise(struct canvas *canvas, uint64_t seed, int64_t index,
                      int (*check)(void), int *label)
{
    return canvas_draw_digit(canvas, seed, index, check, label);
}

int image_writer_jpeg(const struct raster *raster, int quality,
                      int (*check)(void), FILE *stream)
{
    (void)raster;
    (void)quality;
    (void)check;
    (void)stream;
    return LEAT_EINVAL; /* not called */
}

int image_writer_encode(const struct canvas *canvas, image_writer *write,
                        int quality, int (*check)(void), unsigned char **out,
                        size_t *size)
{
    (void)canvas;
    (void)write;
    (void)quality;
    *size = 0;
    *out = NULL;
    return part == ENCODED ? ask(check) : LEAT_OK;
}

START_TEST(a_signal_ends_an_image)
{
    char target[64], *arguments[] = {"synth",  "noise", "--count", "1",
                                     "--jpeg", "90",    target,    NULL};
    int status;
    part = _i ? ENCODED : DRAWN;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(target, sizeof(target), "%s/made", folder);
    pid_t child = fork(); /* the signal stays with it */
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int result = command_synth(7, arguments);
        _exit(checked != LEAT_ECANCELLED || result == 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(rmdir(folder), 0); /* empty */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("command_synth");
    TCase *tcase = tcase_create("signals");
    tcase_add_loop_test(tcase, a_signal_ends_an_image, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
