#include "support/suite.h"
#include "tools/delivery/npy_header.h"

#include <leat/status.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char file[512];

/* A file of that version, dictionary and data. Returns its size. */
static size_t make(int version, const char *dictionary, const void *data,
                   size_t bytes)
{
    size_t length = strlen(dictionary), begin = version == 1 ? 10 : 12;
    memset(file, 0, sizeof(file));
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)length;
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + begin, dictionary, length);
    if (bytes)
        memcpy(file + begin + length, data, bytes);
    return begin + length + bytes;
}

static int parse(struct npy_header *out, size_t size)
{
    /* A copy of the exact size, so that ASan sees a byte read after it. */
    void *copy = malloc(size ? size : 1);
    memcpy(copy, file, size);
    int status = npy_header_parse(out, "x.npy", copy, size);
    free(copy);
    return status;
}

START_TEST(headers_of_every_version_are_read)
{
    static const float values[6] = {1, -2.5f, 3, 4, 5, 6};
    for (int version = 1; version <= 3; version++) {
        struct npy_header header;
        size_t size = make(version,
                           "{'descr': '<f4', 'fortran_order': False, "
                           "'shape': (2, 3), }   \n",
                           values, sizeof(values));
        ck_assert_msg(!parse(&header, size), "%s", leat_last_error());
        ck_assert_int_eq(header.kind, 'f');
        ck_assert_int_eq(header.bytes, 4);
        ck_assert_int_eq(header.ndim, 2);
        ck_assert_int_eq(header.dim[0], 2);
        ck_assert_int_eq(header.dim[1], 3);
        ck_assert_uint_eq(header.count, 6);
        ck_assert(npy_header_value(&header, file + header.offset, 1) == -2.5L);
        for (size_t cut = 0; cut < size; cut++)
            ck_assert_int_eq(parse(&header, cut), LEAT_EFORMAT);
    }
}
END_TEST

START_TEST(shapes_may_be_scalars_or_empty)
{
    struct npy_header header;
    size_t size = make(
        1, "{\"shape\":(),\"fortran_order\":True,\"descr\":\"|u1\"}", "\7", 1);
    ck_assert_int_eq(parse(&header, size), LEAT_OK);
    ck_assert_int_eq(header.ndim, 0);
    ck_assert_uint_eq(header.count, 1);
    size =
        make(1, "{'descr':'<i8','fortran_order':False,'shape':(0,5)}", "", 0);
    ck_assert_int_eq(parse(&header, size), LEAT_OK);
    ck_assert_uint_eq(header.count, 0);
}
END_TEST

START_TEST(values_of_every_type_are_read)
{
    static const struct {
        const char *type;
        const char *bytes;
        long double value;
    } cases[] = {
        {"|b1", "\1", 1},
        {"|i1", "\377", -1},
        {"|u1", "\377", 255},
        {"<i2", "\376\377", -2},
        {"<u2", "\376\377", 65534},
        {"<i4", "\0\0\0\200", -2147483648.0L},
        {"<u4", "\0\0\0\200", 2147483648.0L},
        {"<i8", "\1\0\0\0\0\0\0\100", 4611686018427387905.0L},
        {"<u8", "\377\377\377\377\377\377\377\377", 18446744073709551615.0L},
        {"<f2", "\0\074", 1},
        {"<f2", "\1\0", 1 / 16777216.0L},
        {"<f2", "\0\374", -INFINITY},
        {"<f4", "\0\0\200\077", 1},
        {"=f8", "\0\0\0\0\0\0\360\277", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];
        struct npy_header header;
        snprintf(text, sizeof(text),
                 "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}",
                 cases[i].type);
        size_t size =
            make(1, text, cases[i].bytes, (size_t)(cases[i].type[2] - '0'));
        ck_assert_msg(!parse(&header, size), "%s", leat_last_error());
        long double value = npy_header_value(&header, file + header.offset, 0);
        ck_assert_msg(value == cases[i].value, "%s: %Lg", cases[i].type, value);
    }
}
END_TEST

START_TEST(what_cannot_be_read_is_refused)
{
    static const char *const cases[] = {
        "",
        "{",
        "{}",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f1', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
        "'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, "
        "'shape': (4294967296, 4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, "
        "'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, "
        "'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct npy_header header = {.kind = '?'};
        size_t size = make(1, cases[i], "\0\0\200\077", 4);
        ck_assert_msg(parse(&header, size) == LEAT_EFORMAT, "%s", cases[i]);
        ck_assert_msg(strstr(leat_last_error(), "x.npy") != NULL, "%s",
                      leat_last_error());
        ck_assert_int_eq(header.kind, '?');
    }
    struct npy_header header;
    file[6] = 4;
    ck_assert_int_eq(parse(&header, 60), LEAT_EFORMAT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy_header");
    TCase *tests = tcase_create("npy_header");
    tcase_add_test(tests, headers_of_every_version_are_read);
    tcase_add_test(tests, shapes_may_be_scalars_or_empty);
    tcase_add_test(tests, values_of_every_type_are_read);
    tcase_add_test(tests, what_cannot_be_read_is_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
