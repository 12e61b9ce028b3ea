#include "base/thread.h"
#include "pipeline/reader_table.h"
#include "pipeline/registry.h"
#include "support/fork_steps.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_nothing(const leat_open *open, leat_reader **out)
{
    (void)open;
    (void)out;
    return leat_error(LEAT_EUNSUPPORTED, "it is only a name");
}

static leat_reader_type type_of(const char *name)
{
    return (leat_reader_type){
        .size = sizeof(leat_reader_type), .name = name, .open = open_nothing};
}

START_TEST(leats_own_readers_are_there)
{
    const leat_reader_type *found;
    ck_assert_int_eq(leat__registry_find(&found, "lmdb"), LEAT_OK);
    ck_assert_str_eq(found->name, "lmdb");
}
END_TEST

/* Each is well described, as one of a user's has to be, and there once. */
START_TEST(leats_own_readers_are_sound_and_there_once)
{
    const leat_reader_type *type, *other;
    for (int i = 0; (type = leat_reader_type_at(i)) != NULL; i++) {
        ck_assert_msg(leat__reader_type_check(type) == LEAT_OK, "%s",
                      leat_last_error());
        ck_assert_ptr_nonnull(type->help);
        for (int k = 0; k < i && (other = leat_reader_type_at(k)); k++)
            ck_assert_str_ne(type->name, other->name);
    }
}
END_TEST

START_TEST(a_registered_reader_is_found)
{
    static leat_reader_type mine;
    const leat_reader_type *found;
    mine = type_of("my_Reader2");
    ck_assert_int_eq(leat_reader_register(&mine), LEAT_OK);
    ck_assert_int_eq(leat__registry_find(&found, "my_Reader2"), LEAT_OK);
    ck_assert_ptr_eq(found, &mine);
}
END_TEST

START_TEST(an_unknown_name_is_refused_and_the_nearest_one_named)
{
    static leat_reader_type mine;
    const leat_reader_type *found = NULL;
    mine = type_of("mine");
    ck_assert_int_eq(leat_reader_register(&mine), LEAT_OK);
    ck_assert_int_eq(leat__registry_find(&found, "mind"), LEAT_EINVAL);
    ck_assert_ptr_null(found);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "\"mind\""));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "did you mean mine?"));
    ck_assert_int_eq(leat__registry_find(&found, ""), LEAT_EINVAL);
    ck_assert_int_eq(leat__registry_find(&found, "LMDB"), LEAT_EINVAL);
}
END_TEST

START_TEST(a_taken_or_malformed_name_is_refused)
{
    static leat_reader_type mine;
    char longest[70];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    const char *const names[] = {"lmdb", "",    "a b",      "a:b",
                                 "a|b",  "a-b", "\xc3\xa4", longest};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        mine = type_of(names[i]);
        ck_assert_msg(leat_reader_register(&mine) == LEAT_EINVAL, "%s",
                      names[i]);
    }
}
END_TEST

START_TEST(a_type_without_its_parts_is_refused)
{
    static leat_reader_type mine;
    ck_assert_int_eq(leat_reader_register(NULL), LEAT_EINVAL);
    mine = type_of(NULL);
    ck_assert_int_eq(leat_reader_register(&mine), LEAT_EINVAL);
    mine = type_of("mine");
    mine.open = NULL;
    ck_assert_int_eq(leat_reader_register(&mine), LEAT_EINVAL);
    mine = type_of("mine");
    mine.size = 8;
    ck_assert_int_eq(leat_reader_register(&mine), LEAT_EINVAL);
}
END_TEST

START_TEST(the_registry_fills_up_with_an_error)
{
    static leat_reader_type types[300];
    static char names[300][24];
    int status = LEAT_OK;
    int n = 0;
    while (n < 300 && status == LEAT_OK) {
        snprintf(names[n], sizeof(names[n]), "reader_%d", n);
        types[n] = type_of(names[n]);
        status = leat_reader_register(&types[n]);
        n += status == LEAT_OK;
    }
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_int_ge(n, 200);
    const leat_reader_type *found;
    ck_assert_int_eq(leat__registry_find(&found, names[n - 1]), LEAT_OK);
    ck_assert_int_eq(leat__registry_find(&found, "none"), LEAT_EINVAL);
}
END_TEST

typedef struct registrar {
    leat_reader_type type[20];
    char name[20][16];
    int first;
} registrar;

static void *add_and_find(void *argument)
{
    registrar *self = argument;
    const leat_reader_type *found;
    intptr_t bad = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(self->name[i], sizeof(self->name[i]), "r%d", self->first + i);
        self->type[i] = type_of(self->name[i]);
        bad += leat_reader_register(&self->type[i]) != LEAT_OK;
        bad += leat__registry_find(&found, self->name[i]) != LEAT_OK;
    }
    self->first = bad ? -1 : 0;
    return NULL;
}

START_TEST(threads_register_and_find_at_once)
{
    static registrar all[4];
    leat__thread threads[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        all[i].first = 20 * i;
        ck_assert_int_eq(
            leat__thread_start(&threads[i], "register", add_and_find, &all[i]),
            LEAT_OK);
    }
    for (int i = 0; i < 4; i++) {
        leat__thread_join(&threads[i]);
        ck_assert_int_eq(all[i].first, 0);
    }
}
END_TEST

#if HAS_FORK_STEPS

static leat_reader_type before_fork, after_fork;

static void register_one(void)
{
    (void)leat_reader_register(&before_fork);
}

/* A reader is found that a child registers, whatever the parent was doing. */
static void register_another(void)
{
    const leat_reader_type *found = NULL;
    if (leat_reader_register(&after_fork) ||
        leat__registry_find(&found, "after_fork") || found != &after_fork)
        _exit(1);
}

/* Nothing has found or registered a reader in this process before. */
START_TEST(a_child_registers_amid_a_first_registration)
{
    before_fork = type_of("before_fork");
    after_fork = type_of("after_fork");
    ck_assert_int_gt(fork_at_each_step(register_one, register_another), 0);
}
END_TEST

#endif

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *tcase = tcase_create("registry");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, leats_own_readers_are_there);
    tcase_add_test(tcase, leats_own_readers_are_sound_and_there_once);
    tcase_add_test(tcase, a_registered_reader_is_found);
    tcase_add_test(tcase, an_unknown_name_is_refused_and_the_nearest_one_named);
    tcase_add_test(tcase, a_taken_or_malformed_name_is_refused);
    tcase_add_test(tcase, a_type_without_its_parts_is_refused);
    tcase_add_test(tcase, the_registry_fills_up_with_an_error);
    tcase_add_test(tcase, threads_register_and_find_at_once);
#if HAS_FORK_STEPS
    tcase_add_test(tcase, a_child_registers_amid_a_first_registration);
#endif
    return suite_run(suite);
}
