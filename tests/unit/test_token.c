#include "base/memory.h"
#include "support/suite.h"

#include <leat/token.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 37 + 11);
}

static leat_token token_of(size_t size)
{
    leat_token token;
    leat_token_init(&token);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = pattern(i);
        ck_assert_int_eq(leat_token_put(&token, &byte, 1), LEAT_OK);
    }
    return token;
}

START_TEST(every_size_comes_back_from_its_text)
{
    for (size_t size = 0; size <= 200; size++) {
        leat_token token = token_of(size);
        const char *text = leat_token_text(&token);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_eq(strspn(text, alphabet), strlen(text));
        leat_token back = token_of(3);
        ck_assert_int_eq(leat_token_parse(&back, text), LEAT_OK);
        ck_assert_uint_eq(back.size, size);
        for (size_t i = 0; i < size; i++) {
            unsigned char byte;
            ck_assert_int_eq(leat_token_get(&back, &byte, 1), LEAT_OK);
            ck_assert_uint_eq(byte, pattern(i));
        }
        ck_assert_str_eq(leat_token_text(&back), text);
        leat_token_finish(&back);
        leat_token_finish(&token);
    }
}
END_TEST

/* A text that no token has leaves the token as it was. */
static void refuse(const char *text)
{
    leat_token token = token_of(3);
    ck_assert_msg(leat_token_parse(&token, text) == LEAT_EINVAL,
                  "accepted: \"%s\"", text);
    ck_assert_uint_eq(token.size, 3);
    leat_token_finish(&token);
}

static void check_line(const leat_token *token, const char *text,
                       const char *end, int expected)
{
    char line[160];
    snprintf(line, sizeof(line), "%s%s", text, end);
    leat_token back = token_of(3);
    ck_assert_msg(leat_token_parse(&back, line) == expected, "\"%s\"", line);
    ck_assert_uint_eq(back.size, expected ? 3 : token->size);
    leat_token_finish(&back);
}

START_TEST(a_token_may_come_as_a_line_of_a_file)
{
    for (size_t size = 44; size < 47; size++) {
        leat_token token = token_of(size);
        const char *text = leat_token_text(&token);
        check_line(&token, text, "\n", LEAT_OK);
        check_line(&token, text, "\r\n", LEAT_OK);
        check_line(&token, text, " \t\n", LEAT_OK);
        check_line(&token, text, "\nA", LEAT_EINVAL);
        check_line(&token, text, "\n#", LEAT_EINVAL);
        check_line(&token, text, "\v", LEAT_EINVAL);
        check_line(&token, "\n", text, LEAT_EINVAL);
        check_line(&token, " ", text, LEAT_EINVAL);
        leat_token_finish(&token);
    }
    refuse("\n");
    refuse(" \r\n");
}
END_TEST

START_TEST(a_token_of_44_bytes_has_64_letters)
{
    leat_token token = token_of(44);
    ck_assert_uint_eq(strlen(leat_token_text(&token)), 64);
    leat_token_finish(&token);
}
END_TEST

START_TEST(the_text_follows_what_is_put)
{
    leat_token token = token_of(5);
    char before[64];
    strcpy(before, leat_token_text(&token));
    ck_assert_str_eq(leat_token_text(&token), before);
    ck_assert_int_eq(leat_token_put(&token, "x", 1), LEAT_OK);
    ck_assert_str_ne(leat_token_text(&token), before);
    leat_token_finish(&token);
}
END_TEST

START_TEST(nothing_can_be_put_and_taken)
{
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_token_put(&token, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_token_get(&token, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_token_get(&token, NULL, 1), LEAT_EINVAL);
    leat_token_finish(&token);
    leat_token_finish(NULL);
}
END_TEST

START_TEST(a_token_that_is_too_short_gives_nothing)
{
    leat_token token = token_of(6);
    unsigned char bytes[7] = {0};
    ck_assert_int_eq(leat_token_get(&token, bytes, 4), LEAT_OK);
    ck_assert_int_eq(leat_token_get(&token, bytes, 3), LEAT_EINVAL);
    ck_assert_uint_eq(bytes[0], pattern(0));
    ck_assert_int_eq(leat_token_get(&token, bytes, SIZE_MAX), LEAT_EINVAL);
    ck_assert_int_eq(leat_token_get(&token, bytes, 2), LEAT_OK);
    ck_assert_uint_eq(bytes[0], pattern(4));
    leat_token_finish(&token);
}
END_TEST

START_TEST(what_is_shorter_than_any_token_is_none)
{
    leat_token token;
    leat_token_init(&token);
    for (size_t letters = 0; letters < 6; letters++) {
        char text[8] = "xyz456";
        text[letters] = 0;
        ck_assert_int_eq(leat_token_parse(&token, text), LEAT_EINVAL);
        ck_assert_str_eq(leat_last_error(), "not a resume token: too short");
    }
    leat_token_finish(&token);
}
END_TEST

START_TEST(damage_to_any_letter_is_noticed)
{
    /* All three ways in which the last letters can be filled. */
    for (size_t size = 44; size < 47; size++) {
        leat_token token = token_of(size);
        char text[80];
        strcpy(text, leat_token_text(&token));
        for (size_t i = 0; text[i]; i++) {
            char good = text[i];
            for (const char *letter = alphabet; *letter; letter++) {
                text[i] = *letter;
                if (*letter != good)
                    refuse(text);
            }
            text[i] = '+';
            refuse(text);
            text[i] = good;
        }
        leat_token_finish(&token);
    }
}
END_TEST

START_TEST(a_token_cut_short_or_drawn_out_is_noticed)
{
    for (size_t size = 44; size < 47; size++) {
        leat_token token = token_of(size);
        char text[80];
        strcpy(text, leat_token_text(&token));
        size_t letters = strlen(text);
        for (const char *letter = alphabet; *letter; letter++) {
            text[letters] = *letter;
            text[letters + 1] = 0;
            refuse(text);
        }
        for (size_t i = letters; i-- > 0;) {
            text[i] = 0;
            refuse(text);
        }
        leat_token_finish(&token);
    }
}
END_TEST

START_TEST(junk_is_refused)
{
    refuse("");
    refuse("A");
    refuse("hello world");
    refuse("AAAAA ");
    refuse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB");
    refuse("\xff\xfe");
    refuse("AAAA\nAA");
}
END_TEST

START_TEST(a_text_of_many_megabytes_is_refused)
{
    size_t size = ((size_t)1 << 26) + 2;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    memset(text, 'A', size - 1);
    text[size - 1] = 0;
    refuse(text);
    free(text);
}
END_TEST

START_TEST(short_memory_leaves_the_token_as_it_was)
{
    leat_token token = token_of(60);
    char text[128];
    strcpy(text, leat_token_text(&token));
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_token_put(&token, text, 100), LEAT_ENOMEM);
    ck_assert_uint_eq(token.size, 60);
    ck_assert_str_eq(leat_token_text(&token), text);
    leat_token back = token_of(3);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_token_parse(&back, text), LEAT_ENOMEM);
    ck_assert_uint_eq(back.size, 3);
    leat__alloc_fail_at(0);
    ck_assert_ptr_null(leat_token_text(&back));
    ck_assert_ptr_nonnull(leat_token_text(&back));
    leat_token_finish(&back);
    leat_token_finish(&token);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("token");
    TCase *tcase = tcase_create("token");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_size_comes_back_from_its_text);
    tcase_add_test(tcase, a_token_may_come_as_a_line_of_a_file);
    tcase_add_test(tcase, a_token_of_44_bytes_has_64_letters);
    tcase_add_test(tcase, the_text_follows_what_is_put);
    tcase_add_test(tcase, nothing_can_be_put_and_taken);
    tcase_add_test(tcase, a_token_that_is_too_short_gives_nothing);
    tcase_add_test(tcase, what_is_shorter_than_any_token_is_none);
    tcase_add_test(tcase, damage_to_any_letter_is_noticed);
    tcase_add_test(tcase, a_token_cut_short_or_drawn_out_is_noticed);
    tcase_add_test(tcase, junk_is_refused);
    tcase_add_test(tcase, a_text_of_many_megabytes_is_refused);
    tcase_add_test(tcase, short_memory_leaves_the_token_as_it_was);
    return suite_run(suite);
}
