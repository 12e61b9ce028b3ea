/* Numbers as people write them are read, and so is what the tool prints. */
#include "base/decimal.h"
#include "support/suite.h"
#include "tools/cli/number.h"
#include "tools/cli/option.h"
#include "tools/cli/output.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 64, COUNT = false, BYTES = true };

static void reads(const char *text, bool is_bytes, int64_t wanted)
{
    const char *end = NULL;
    int64_t value = -77;
    ck_assert_msg(leat__decimal_quantity_begin(text, is_bytes, &end, &value),
                  "'%s'", text);
    ck_assert_msg(!*end, "'%s' ends at '%s'", text, end);
    ck_assert_msg(value == wanted, "'%s' is %lld", text, (long long)value);
}

/* Whether all of a text is a number. */
static int is_number(const char *text, bool is_bytes)
{
    int64_t value;
    return leat__decimal_quantity(text, is_bytes, &value);
}

START_TEST(counts)
{
    reads("0", COUNT, 0);
    reads("-17", COUNT, -17);
    reads("+17", COUNT, 17);
    reads("10k", COUNT, 10000);
    reads("10K", COUNT, 10000);
    reads("1.5k", COUNT, 1500);
    reads("-1.5k", COUNT, -1500);
    reads("-0.5k", COUNT, -500);
    reads("4.43 M", COUNT, 4430000);
    reads("2.0", COUNT, 2);
    reads("3T", COUNT, INT64_C(3000000000000));
    reads("9223372036854775807", COUNT, INT64_MAX);
    reads("-9223372036854775808", COUNT, INT64_MIN);
}
END_TEST

START_TEST(bytes)
{
    reads("4096", BYTES, 4096);
    reads("4K", BYTES, 4096);
    reads("4k", BYTES, 4096);
    reads("256M", BYTES, INT64_C(256) << 20);
    reads("1.5GiB", BYTES, INT64_C(3) << 29);
    reads("1.5 gib", BYTES, INT64_C(3) << 29);
    reads("1.1KiB", BYTES, 1126); /* 1126.4 */
    reads("12.3 MB", BYTES, 12300000);
    reads("12kB", BYTES, 12000);
    reads("17 bytes", BYTES, 17);
    reads("1 byte", BYTES, 1);
    reads("17B", BYTES, 17);
    reads("0.999999TiB", BYTES, INT64_C(1099510528264));
}
END_TEST

START_TEST(garbage_is_refused)
{
    static const char *const texts[] = {
        "",      " ",   "k",     "-",          "+",   "--1",  " 1",  "1 ",
        "1x",    "1kk", "1 k ",  "1  k",       "1e6", "0x10", ".5",  "1.",
        "1.k",   "1.2", "1..2k", "1.2345k",    "nan", "inf",  "1k0", "1,000",
        "1_000", "one", "1ki",   "1.1234567M", "1-",  "1m2"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(!is_number(texts[i], COUNT), "'%s'", texts[i]);
        ck_assert_msg(!is_number(texts[i], BYTES) ||
                          !strcmp(texts[i], "1.2345k"),
                      "'%s'", texts[i]);
    }
    ck_assert(!is_number("1kB", COUNT));
    ck_assert(!is_number("1KiB", COUNT));
    ck_assert(!is_number("1 byte", COUNT));
    ck_assert(!is_number("1.5 bytes", BYTES));
}
END_TEST

START_TEST(what_exceeds_64_bits_is_refused)
{
    static const char *const texts[] = {"9223372036854775808",
                                        "-9223372036854775809",
                                        "9223372036854775.808k",
                                        "9999999999999999999k",
                                        "8388608TiB",
                                        "10000000T",
                                        "-9300000T",
                                        "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(!is_number(texts[i], COUNT), "'%s'", texts[i]);
        ck_assert_msg(!is_number(texts[i], BYTES), "'%s'", texts[i]);
    }
    reads("9223372036854775.807k", COUNT, INT64_MAX);
    reads("-9223372036854775.808k", COUNT, INT64_MIN);
    reads("8388607TiB", BYTES, INT64_C(8388607) << 40);
}
END_TEST

START_TEST(reals)
{
    static const char *const bad[] = {"",  " 1",    "0x10", "inf", "nan",
                                      "-", "1e999", ".",    "e5",  "-inf"};
    char *end;
    double value;
    float single;
    ck_assert(!number_read_real("-2.5e-1", &end, &value) && value == -.25);
    ck_assert(!number_read_real(".5,", &end, &value) && *end == ',');
    ck_assert(!number_read_float("1e38", &end, &single));
    ck_assert(number_read_float("1e39", &end, &single));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(number_read_real(bad[i], &end, &value), "%s", bad[i]);
        ck_assert_msg(number_read_float(bad[i], &end, &single), "%s", bad[i]);
    }
}
END_TEST

START_TEST(times)
{
    static const char *const bad[] = {"",   "ms",    "3 m",  "3sec", "3 s ",
                                      "3x", "1e999", "0x3s", "3s4",  "3  s"};
    double value;
    ck_assert(!number_read_time("3", 1, &value) && value == 3);
    ck_assert(!number_read_time("0.1 s", 1, &value) && value == .1);
    ck_assert(!number_read_time("2min", 1, &value) && value == 120);
    ck_assert(!number_read_time("28.0 ms", 1e-3, &value) && value == 28);
    ck_assert(!number_read_time("28.0", 1e-3, &value) && value == 28);
    ck_assert(!number_read_time("1h", 1, &value) && value == 3600);
    ck_assert(!number_read_time("5us", 1e-3, &value));
    ck_assert_double_eq_tol(value, .005, 1e-12);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(number_read_time(bad[i], 1, &value), "'%s'", bad[i]);
}
END_TEST

START_TEST(values_are_scaled)
{
    ck_assert_str_eq(output_scaled(4.43e6), "4.43 M");
    ck_assert_str_eq(output_scaled(0), "0.00");
    ck_assert_str_eq(output_scaled(12.34), "12.3");
    ck_assert_str_eq(output_scaled(999.4), "999");
    ck_assert_str_eq(output_scaled(999.5), "1.00 k");
    ck_assert_str_eq(output_scaled(9.996), "10.0");
    ck_assert_str_eq(output_scaled(99.96), "100");
    ck_assert_str_eq(output_scaled(1e18), "1000000 T");
    ck_assert_str_eq(output_time(.028), "28.0 ms");
    ck_assert_str_eq(output_time(2e-7), "200 ns");
    ck_assert_str_eq(output_time(90), "90.0 s");
    ck_assert_str_eq(output_time(86400), "86400 s");
    ck_assert_str_eq(output_bytes(512), "512 bytes");
    ck_assert_str_eq(output_bytes(1500000000), "1.50 GB");
    ck_assert_str_eq(output_bandwidth(512), "512 bytes/s");
    ck_assert_str_eq(output_size(4096), "4 KiB");
    ck_assert_str_eq(output_size(INT64_C(3) << 29), "1536 MiB");
    ck_assert_str_eq(output_size(1000), "1000 bytes");
    ck_assert_str_eq(output_size(0), "0 bytes");
}
END_TEST

/* What is printed reads back, and prints the same again. */
START_TEST(what_is_written_reads_back)
{
    int64_t value;
    for (int64_t n = 1; n > 0 && n < INT64_MAX / 7; n += n / 5 + 1) {
        const char *text = output_bytes(n);
        ck_assert_msg(leat__decimal_quantity(text, true, &value), "%s", text);
        ck_assert_str_eq(output_bytes(value), text);
        if (n >= 1000) {
            text = output_scaled((double)n);
            ck_assert_msg(leat__decimal_quantity(text, false, &value), "%s",
                          text);
            ck_assert_str_eq(output_scaled((double)value), text);
        }
        reads(output_size(n), BYTES, n);
        reads(output_size(n * 4), BYTES, n * 4);
        double seconds;
        text = output_time((double)n * 1e-9);
        ck_assert(!number_read_time(text, 1, &seconds));
        ck_assert_str_eq(output_time(seconds), text);
    }
}
END_TEST

/* Returns what the reader does, and the values that it left in `out`. */
static int read_as(option_reader *read, const char *text, void *out)
{
    const struct option_spec spec = {"name", "N", "", read, out, 1, 1 << 20};
    return read(&spec, text);
}

START_TEST(shapes_and_ranges)
{
    int side[3];
    ck_assert(!read_as(option_shape, "3x256x255", side));
    ck_assert(side[0] == 3 && side[1] == 256 && side[2] == 255);
    ck_assert(!read_as(option_shape, "1,28,29", side) && side[2] == 29);
    ck_assert(!read_as(option_size, "40X30", side) && side[1] == 30);
    static const char *const bad[] = {
        "3x256", "3x256x", "3x256,255", "x3x3",         "3x3x3x3",
        "0x3x3", "3x-3x3", "",          "3x3x99999999", "3 x 3 x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(read_as(option_shape, bad[i], side), "%s", bad[i]);
    int64_t range[2];
    ck_assert(!read_as(option_range, "10k:20k", range));
    ck_assert(range[0] == 10000 && range[1] == 20000);
    ck_assert(!read_as(option_range, ":5", range) && range[0] == 0);
    ck_assert(!read_as(option_range, "5:", range) && range[1] == INT64_MAX);
    ck_assert(!read_as(option_byte_range, "4K:256M", range));
    ck_assert(range[0] == 4096 && range[1] == INT64_C(256) << 20);
    static const char *const no_range[] = {
        "",     "5",          ":0",
        "5:4",  "-1:4",       "4:5:6",
        "4k:x", "4:9999999T", "9223372036854775807:5"};
    for (size_t i = 0; i < sizeof(no_range) / sizeof(no_range[0]); i++) {
        ck_assert_msg(read_as(option_range, no_range[i], range), "%s",
                      no_range[i]);
        ck_assert_msg(read_as(option_byte_range, no_range[i], range), "%s",
                      no_range[i]);
    }
    /* The end of a range of sizes is one of them. */
    ck_assert(read_as(option_range, "5:5", range));
    ck_assert(read_as(option_range, "9223372036854775807:", range));
    ck_assert(!read_as(option_byte_range, "5:5", range));
    ck_assert(range[0] == 5 && range[1] == 5);
    int64_t value;
    ck_assert(!read_as(option_bytes, "1M", &value) && value == 1 << 20);
    ck_assert(read_as(option_bytes, "1.1M", &value)); /* more than the most */
    ck_assert(!read_as(option_int, "10k", &value) && value == 10000);
    ck_assert(read_as(option_int, "10M", &value));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("number");
    TCase *tests = tcase_create("number");
    tcase_add_test(tests, counts);
    tcase_add_test(tests, bytes);
    tcase_add_test(tests, garbage_is_refused);
    tcase_add_test(tests, what_exceeds_64_bits_is_refused);
    tcase_add_test(tests, reals);
    tcase_add_test(tests, times);
    tcase_add_test(tests, values_are_scaled);
    tcase_add_test(tests, what_is_written_reads_back);
    tcase_add_test(tests, shapes_and_ranges);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
