/*
 * Irregular JPEGs: the status, the error line, the warning and the pixels are
 * those of a decoder that is forced to libjpeg, wherever a file is damaged.
 */
#include "support/jpeg_pair.h"
#include "support/jpeg_source.h"
#include "support/jpeg_writer.h"
#include "support/sanitizer.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))
/* With a sanitizer, every so many edits are tried. */
#define STEP (IS_SANITIZED ? 7 : 1)
#define SOS 0xda

static jpeg_pair pairs[JPEG_ISAS];
static int npairs; /* of the instruction sets that this processor has */

static void open_decoders(void)
{
    npairs = 0;
    for (int i = 0; i < JPEG_ISAS; i++)
        npairs += jpeg_pair_open(&pairs[npairs], jpeg_isas[i]);
}

static void close_decoders(void)
{
    for (int i = 0; i < npairs; i++)
        jpeg_pair_close(&pairs[i]);
}

/* Instruction sets and colours take turns. */
static jpeg_verdict check_next(const char *name, const void *bytes, size_t size)
{
    static unsigned turn;
    char text[512];
    turn++;
    unsigned isa = turn % (unsigned)npairs, color = turn / 3 % 3;
    snprintf(text, sizeof(text), "%s, LEAT_ISA=%s, color %u", name,
             jpeg_isas[isa], color);
    return jpeg_pair_check(&pairs[isa], text, bytes, size, (leat_color)color,
                           turn);
}

/* Small files whose every byte is damaged. */
static const jpeg_source sources[] = {
    {"gray", 20, 18, 1, {1}, {1}, .quality = 50},
    {"4:2:0", 37, 33, 3, {2, 1, 1}, {2, 1, 1}, .quality = 20},
    {"4:2:0 with restarts",
     50,
     18,
     3,
     {2, 1, 1},
     {2, 1, 1},
     .quality = 20,
     .restart_mcus = 1},
    {"4:2:2 with restarts",
     40,
     20,
     3,
     {2, 1, 1},
     {1, 1, 1},
     .quality = 30,
     .restart_mcus = 2,
     .is_optimized = true},
    {"4:4:4",
     20,
     20,
     3,
     {1, 1, 1},
     {1, 1, 1},
     .quality = 90,
     .content = JPEG_NOISE},
    {"4:4:0",
     18,
     20,
     3,
     {1, 1, 1},
     {2, 1, 1},
     .quality = 30,
     .restart_rows = 1,
     .is_optimized = true},
};
#define SOURCES LENGTH(sources)

/* Where the data of the scan begins. */
static size_t data_of(const made_jpeg *jpeg)
{
    size_t at = 2;
    while (jpeg->bytes[at + 1] != SOS)
        at += 2 + (size_t)(jpeg->bytes[at + 2] << 8 | jpeg->bytes[at + 3]);
    return at + 2 + (size_t)(jpeg->bytes[at + 2] << 8 | jpeg->bytes[at + 3]);
}

START_TEST(a_cut_is_judged_as_by_libjpeg)
{
    made_jpeg jpeg = jpeg_source_make(&sources[_i]);
    open_decoders();
    for (size_t size = 0; size < jpeg.size; size++) {
        char name[64];
        snprintf(name, sizeof(name), "%s cut at %zu", sources[_i].name, size);
        for (int i = 0; i < 3; i++)
            check_next(name, jpeg.bytes, size);
    }
    close_decoders();
    free(jpeg.bytes);
}
END_TEST

START_TEST(a_flipped_bit_is_judged_as_by_libjpeg)
{
    made_jpeg jpeg = jpeg_source_make(&sources[_i]);
    int warned = 0, failed = 0;
    open_decoders();
    for (size_t bit = 0; bit < jpeg.size * 8; bit += STEP) {
        char name[64];
        snprintf(name, sizeof(name), "%s with bit %zu of byte %zu",
                 sources[_i].name, bit % 8, bit / 8);
        jpeg.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        jpeg_verdict verdict = check_next(name, jpeg.bytes, jpeg.size);
        jpeg.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        warned += verdict.is_warned;
        failed += verdict.status < 0;
    }
    ck_assert_int_gt(warned, 0);
    ck_assert_int_gt(failed, 0);
    close_decoders();
    free(jpeg.bytes);
}
END_TEST

/* Bytes that replace so many others. */
static const struct {
    const char *name;
    size_t removed, size;
    const char *bytes;
} edits[] = {
    {"a byte less", 1, 0, ""},
    {"two bytes less", 2, 0, ""},
    {"a zero", 0, 1, "\0"},
    {"a byte", 0, 1, "\x5a"},
    {"0xff", 0, 1, "\xff"},
    {"0xff for a byte", 1, 1, "\xff"},
    {"a stuffed byte", 0, 2, "\xff\0"},
    {"a fill byte and a stuffed one", 0, 3, "\xff\xff\0"},
    {"the end", 0, 2, "\xff\xd9"},
    {"the end for two bytes", 2, 2, "\xff\xd9"},
    {"restart 0", 0, 2, "\xff\xd0"},
    {"restart 1", 0, 2, "\xff\xd1"},
    {"restart 5", 0, 2, "\xff\xd5"},
    {"restart 0 for two bytes", 2, 2, "\xff\xd0"},
    {"restart 0 after fill bytes", 0, 4, "\xff\xff\xff\xd0"},
    {"a comment", 0, 6, "\xff\xfe\0\4ab"},
    {"APP0", 0, 4, "\xff\xe0\0\2"},
    {"a number of lines", 0, 6, "\xff\xdc\0\4\0\x12"},
    {"the start", 0, 2, "\xff\xd8"},
    {"TEM", 0, 2, "\xff\1"},
    {"a scan's marker", 0, 2, "\xff\xda"},
    {"a restart interval", 0, 6, "\xff\xdd\0\4\0\1"},
    {"eight zeros", 0, 8, "\0\0\0\0\0\0\0\0"},
    {"eight ones", 0, 16, "\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0\xff\0"},
};

/* Makes the edit at `at`; freed by free(bytes). */
static made_jpeg edited(const made_jpeg *jpeg, size_t at, int edit)
{
    size_t removed = edits[edit].removed, size = edits[edit].size;
    if (removed > jpeg->size - at)
        removed = jpeg->size - at;
    made_jpeg out = {.size = jpeg->size - removed + size};
    out.bytes = malloc(out.size);
    memcpy(out.bytes, jpeg->bytes, at);
    memcpy(out.bytes + at, edits[edit].bytes, size);
    memcpy(out.bytes + at + size, jpeg->bytes + at + removed,
           jpeg->size - at - removed);
    return out;
}

START_TEST(edited_data_is_judged_as_by_libjpeg)
{
    made_jpeg jpeg = jpeg_source_make(&sources[_i]);
    open_decoders();
    for (size_t at = data_of(&jpeg); at <= jpeg.size; at += STEP)
        for (int edit = 0; edit < LENGTH(edits); edit++) {
            char name[128];
            snprintf(name, sizeof(name), "%s with %s at %zu", sources[_i].name,
                     edits[edit].name, at);
            made_jpeg other = edited(&jpeg, at, edit);
            check_next(name, other.bytes, other.size);
            free(other.bytes);
        }
    close_decoders();
    free(jpeg.bytes);
}
END_TEST

/* A file's tables: the DC and AC codes 0 and 1 are alike. */
static void begin_tables(jpeg_writer *file, const jpeg_codes *ac)
{
    jpeg_codes dc = jpeg_codes_make(JPEG_DC, 0, 0);
    jpeg_put_marker(file, 0xd8);
    jpeg_put_quantum(file, 0, 1);
    for (int i = 0; i < 2; i++) {
        jpeg_put_codes(file, JPEG_DC, i, &dc);
        jpeg_put_codes(file, JPEG_AC, i, ac);
    }
}

/* A gray file up to its data; all symbols have codes. */
static void begin_gray(jpeg_writer *file, int blocks, int interval)
{
    jpeg_codes ac = jpeg_codes_make(JPEG_AC, 1, 0);
    begin_tables(file, &ac);
    jpeg_put_frame(file, 8 * blocks, 8, 1, (const unsigned char[]){0x11});
    if (interval)
        jpeg_put_interval(file, interval);
    jpeg_put_scan(file, 1, (const unsigned char[]){0});
}

static void put_plain_block(jpeg_writer *file)
{
    const int block[64] = {40, 9, -3, [20] = 5, [63] = 1};
    jpeg_put_block(file, 0, 0, block);
}

static void put_ac(jpeg_writer *file, int run, int size, int value)
{
    jpeg_put_symbol(file, JPEG_AC, 0, run << 4 | size);
    jpeg_put_value(file, value, size);
}

/* Each puts the middle one of three blocks. */
static void put_coefficient_past_end(jpeg_writer *file)
{
    jpeg_put_dc(file, 0, 0, 3);
    for (int i = 0; i < 5; i++)
        put_ac(file, 15, 2, 3);
}

static void put_value_past_end(jpeg_writer *file)
{
    jpeg_put_dc(file, 0, 0, 3);
    for (int i = 0; i < 3; i++)
        put_ac(file, 15, 2, 3);
    put_ac(file, 14, 1, 1);
    put_ac(file, 14, 1, 1);
}

static void put_zeros_past_end(jpeg_writer *file)
{
    jpeg_put_dc(file, 0, 0, 3);
    for (int i = 0; i < 4; i++)
        jpeg_put_symbol(file, JPEG_AC, 0, JPEG_ZERO_RUN);
}

static void put_zeros_before_end(jpeg_writer *file)
{
    jpeg_put_dc(file, 0, 0, 3);
    put_ac(file, 0, 2, 3);
    jpeg_put_symbol(file, JPEG_AC, 0, JPEG_ZERO_RUN);
    jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
}

static void put_large_dc(jpeg_writer *file)
{
    jpeg_put_symbol(file, JPEG_DC, 0, 12);
    jpeg_put_value(file, 4000, 12);
    jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
}

static void put_largest_dc(jpeg_writer *file)
{
    jpeg_put_symbol(file, JPEG_DC, 0, 15);
    jpeg_put_value(file, -32767, 15);
    jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
}

/* 16 ones are the code of no DC symbol, nor of an AC one. */
static void put_no_dc_code(jpeg_writer *file)
{
    jpeg_put_bits(file, 0xffff, 16);
    jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
}

static void put_no_ac_code(jpeg_writer *file)
{
    jpeg_put_dc(file, 0, 0, 3);
    jpeg_put_bits(file, 0xffff, 16);
    jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
}

static void put_nothing(jpeg_writer *file)
{
    (void)file;
}

static void put_two_blocks(jpeg_writer *file)
{
    put_plain_block(file);
    put_plain_block(file);
}

static void put_zero_byte_of_fill(jpeg_writer *file)
{
    put_plain_block(file);
    jpeg_put_fill(file, 0);
    jpeg_put_bits(file, 0, 8);
}

static void put_comment(jpeg_writer *file)
{
    put_plain_block(file);
    jpeg_put_fill(file, 1);
    jpeg_put_segment(file, 0xfe, "hello", 5);
}

static const struct {
    const char *name;
    void (*put)(jpeg_writer *);
    jpeg_path path; /* NOT_DECODED: any, or refused */
} middles[] = {
    {"a plain block", put_plain_block, JPEG_FAST},
    {"zeros before the end of block", put_zeros_before_end, JPEG_FAST},
    {"a run past the end", put_coefficient_past_end, JPEG_LIBRARY},
    {"a coefficient past the end", put_value_past_end, JPEG_LIBRARY},
    {"zeros past the end", put_zeros_past_end, JPEG_LIBRARY},
    {"a DC difference of 12 bits", put_large_dc, JPEG_LIBRARY},
    {"a DC difference of 15 bits", put_largest_dc, JPEG_LIBRARY},
    {"no DC code", put_no_dc_code, JPEG_LIBRARY},
    {"no AC code", put_no_ac_code, JPEG_LIBRARY},
    {"a block less", put_nothing, JPEG_NOT_DECODED},
    {"a block more", put_two_blocks, JPEG_LIBRARY},
    {"a byte of fill bits", put_zero_byte_of_fill, JPEG_LIBRARY},
    {"a comment", put_comment, JPEG_NOT_DECODED},
};

/* All instruction sets and colours. */
static void check_writer(jpeg_writer *file, const char *name,
                         jpeg_path expected)
{
    for (int i = 0; i < 9; i++) {
        jpeg_verdict verdict = check_next(name, file->bytes, file->size);
        if (expected != JPEG_NOT_DECODED && verdict.path != expected)
            ck_abort_msg("%s: path %d", name, verdict.path);
    }
    free(file->bytes);
}

START_TEST(irregular_blocks_are_judged_as_by_libjpeg)
{
    open_decoders();
    for (int fill = 0; fill < 2; fill++) {
        jpeg_writer file = {0};
        begin_gray(&file, 3, 0);
        put_plain_block(&file);
        middles[_i].put(&file);
        put_plain_block(&file);
        jpeg_put_fill(&file, fill);
        jpeg_put_end(&file);
        check_writer(&file, middles[_i].name, middles[_i].path);
    }
    close_decoders();
}
END_TEST

/* A block with a symbol that may mean anything, after `before` values. */
static void put_any_symbol(jpeg_writer *file, int symbol, int before)
{
    jpeg_codes codes = {.counts = {1, 1, 1}, .symbols = {0, 1}};
    codes.symbols[2] = (unsigned char)symbol;
    begin_tables(file, &codes);
    jpeg_put_frame(file, 8, 8, 1, (const unsigned char[]){0x11});
    jpeg_put_scan(file, 1, (const unsigned char[]){0});
    jpeg_put_dc(file, 0, 0, 30);
    for (int i = 0; i < before; i++)
        jpeg_put_bits(file, 5, 3); /* the value 1 */
    jpeg_put_bits(file, 6, 3);     /* the symbol */
    jpeg_put_value(file, 1, symbol & 15);
    jpeg_put_bits(file, 0, 1); /* the end of block */
    jpeg_put_end(file);
}

START_TEST(any_ac_symbol_is_judged_as_by_libjpeg)
{
    open_decoders();
    for (int symbol = 0; symbol < 256; symbol++)
        for (int before = 0; before < 3; before++) {
            char name[64];
            jpeg_writer file = {0};
            snprintf(name, sizeof(name), "symbol %#x after %d", symbol, before);
            put_any_symbol(&file, symbol, before);
            bool is_usual = (symbol & 15) < 11 &&
                            ((symbol & 15) > 0 || symbol == JPEG_END_OF_BLOCK ||
                             symbol == JPEG_ZERO_RUN);
            check_writer(&file, name, is_usual ? JPEG_FAST : JPEG_LIBRARY);
        }
    close_decoders();
}
END_TEST

/* Restart markers after each block: `missing` is left out, `twice` repeated,
   and they count from `first`, or are all `first` without a step. */
static void put_restarts(jpeg_writer *file, int missing, int twice, int first,
                         int step)
{
    begin_gray(file, 12, 1);
    for (int i = 0; i < 12; i++) {
        if (i && i != missing)
            jpeg_put_restart(file, first + (i - 1) * step, i % 2);
        if (i && i == twice)
            jpeg_put_restart(file, first + (i - 1) * step, i % 2);
        put_plain_block(file);
    }
    jpeg_put_end(file);
}

START_TEST(restarts_that_are_missing_or_wrong_are_judged_as_by_libjpeg)
{
    open_decoders();
    for (int i = 0; i < 12; i++) {
        jpeg_writer missing = {0}, twice = {0}, other = {0}, same = {0};
        put_restarts(&missing, i, 0, 0, 1);
        check_writer(&missing, "a missing restart",
                     i ? JPEG_NOT_DECODED : JPEG_FAST);
        put_restarts(&twice, 0, i, 0, 1);
        check_writer(&twice, "a restart twice",
                     i ? JPEG_NOT_DECODED : JPEG_FAST);
        put_restarts(&other, 0, 0, i, 1);
        check_writer(&other, "restarts that begin otherwise",
                     i % 8 ? JPEG_NOT_DECODED : JPEG_FAST);
        put_restarts(&same, 0, 0, i, 0);
        check_writer(&same, "restarts of one number", JPEG_NOT_DECODED);
    }
    close_decoders();
}
END_TEST

/* Of any other image that the decoder has seen, a cut one tells nothing. */
START_TEST(an_arithmetic_image_leaves_nothing_behind)
{
    jpeg_source source = sources[0];
    source.is_arithmetic = true;
    made_jpeg arithmetic = jpeg_source_make(&source);
    leat_image image;
    open_decoders();
    for (size_t size = 3; size < data_of(&arithmetic); size++) {
        jpeg_pair *pair = &pairs[size % (size_t)npairs];
        ck_assert_int_eq(leat_image_decode(pair->whole, arithmetic.bytes,
                                           arithmetic.size, LEAT_COLOR_BGR,
                                           &image),
                         LEAT_OK);
        jpeg_pair_check(pair, "a cut header", arithmetic.bytes, size,
                        LEAT_COLOR_BGR, 0);
    }
    close_decoders();
    free(arithmetic.bytes);
}
END_TEST

static const unsigned char full[3] = {0x11, 0x11, 0x11};

/* 4:4:4 of one MCU, with its components in scans of their own. */
static void put_three_scans(jpeg_writer *file)
{
    jpeg_codes ac = jpeg_codes_make(JPEG_AC, 1, 0);
    begin_tables(file, &ac);
    jpeg_put_frame(file, 8, 8, 3, full);
    for (int i = 1; i <= 3; i++) {
        unsigned char scan[] = {1, (unsigned char)i, 0, 0, 63, 0};
        jpeg_put_segment(file, SOS, scan, sizeof(scan));
        put_plain_block(file);
        jpeg_put_fill(file, 1);
    }
}

static void put_second_scan(jpeg_writer *file)
{
    begin_gray(file, 1, 0);
    put_plain_block(file);
    jpeg_put_fill(file, 1);
    jpeg_put_scan(file, 1, (const unsigned char[]){0x11});
    put_plain_block(file);
}

/* A scan's header as it is given, and its one MCU. */
static void put_odd_scan(jpeg_writer *file, const unsigned char scan[10])
{
    jpeg_codes ac = jpeg_codes_make(JPEG_AC, 1, 0);
    begin_tables(file, &ac);
    jpeg_put_codes(file, JPEG_DC, 3, &(jpeg_codes){.counts = {2}});
    jpeg_put_frame(file, 8, 8, 3, full);
    jpeg_put_segment(file, SOS, scan, 10);
    for (int i = 0; i < 3; i++)
        put_plain_block(file);
}

static void put_other_order(jpeg_writer *file)
{
    put_odd_scan(file, (const unsigned char[]){3, 3, 0, 1, 0, 2, 0, 0, 63, 0});
}

static void put_part_of_band(jpeg_writer *file)
{
    put_odd_scan(file, (const unsigned char[]){3, 1, 0, 2, 0, 3, 0, 0, 62, 0});
}

static void put_high_bits(jpeg_writer *file)
{
    put_odd_scan(file, (const unsigned char[]){3, 1, 0, 2, 0, 3, 0, 0, 63, 1});
}

static void put_no_table(jpeg_writer *file)
{
    put_odd_scan(file,
                 (const unsigned char[]){3, 1, 0, 2, 0, 3, 0x22, 0, 63, 0});
}

/* Baseline files have two tables of each class; libjpeg takes four. */
static void put_table_number(jpeg_writer *file, unsigned char tables)
{
    jpeg_codes dc = jpeg_codes_make(JPEG_DC, 0, 3);
    jpeg_codes ac = jpeg_codes_make(JPEG_AC, 1, 7);
    jpeg_put_marker(file, 0xd8);
    jpeg_put_quantum(file, 0, 1);
    for (int i = 0; i < JPEG_TABLES; i++) {
        jpeg_put_codes(file, JPEG_DC, i, &dc);
        jpeg_put_codes(file, JPEG_AC, i, &ac);
    }
    jpeg_put_frame(file, 8, 8, 1, full);
    jpeg_put_scan(file, 1, &tables);
    put_plain_block(file);
}

static void put_dc_table_2(jpeg_writer *file)
{
    put_table_number(file, 0x21);
}

static void put_ac_table_2(jpeg_writer *file)
{
    put_table_number(file, 0x12);
}

static void put_tables_3(jpeg_writer *file)
{
    put_table_number(file, 0x33);
}

static void put_tables_1(jpeg_writer *file)
{
    put_table_number(file, 0x11);
}

static void put_table_of_one_length(jpeg_writer *file)
{
    put_odd_scan(file,
                 (const unsigned char[]){3, 1, 0, 2, 0, 3, 0x30, 0, 63, 0});
}

static void put_component_twice(jpeg_writer *file)
{
    put_odd_scan(file, (const unsigned char[]){3, 1, 0, 2, 0, 2, 0, 0, 63, 0});
}

/* DC coefficients that leave what 16 bits hold. */
static void put_growing_dc(jpeg_writer *file)
{
    begin_gray(file, 60, 0);
    for (int i = 0; i < 60; i++) {
        jpeg_put_symbol(file, JPEG_DC, 0, 11);
        jpeg_put_value(file, i < 30 ? 2047 : -2047, 11);
        jpeg_put_symbol(file, JPEG_AC, 0, JPEG_END_OF_BLOCK);
    }
}

static void put_fractions(jpeg_writer *file)
{
    jpeg_codes ac = jpeg_codes_make(JPEG_AC, 1, 0);
    begin_tables(file, &ac);
    jpeg_put_frame(file, 24, 8, 3, (const unsigned char[]){0x31, 0x21, 0x11});
    jpeg_put_scan(file, 3, (const unsigned char[3]){0});
    for (int i = 0; i < 6; i++)
        jpeg_put_block(file, i < 3 ? 0 : i < 5 ? 1 : 2, 0, (const int[64]){40});
}

static void put_bytes_after_end(jpeg_writer *file)
{
    begin_gray(file, 1, 0);
    put_plain_block(file);
    jpeg_put_end(file);
    jpeg_put(file, "\xff\xda and more", 11);
}

static void put_restart_at_end(jpeg_writer *file)
{
    begin_gray(file, 2, 1);
    put_plain_block(file);
    jpeg_put_restart(file, 0, 1);
    put_plain_block(file);
    jpeg_put_restart(file, 1, 1);
}

static void put_zero_quanta(jpeg_writer *file)
{
    begin_gray(file, 1, 0);
    memset(file->bytes + 7, 0, 64);
    put_plain_block(file);
}

static void put_no_data(jpeg_writer *file)
{
    begin_gray(file, 3, 0);
}

static const struct {
    const char *name;
    void (*put)(jpeg_writer *);
    jpeg_path path; /* NOT_DECODED: any, or refused */
} files[] = {
    {"a scan for each component", put_three_scans, JPEG_LIBRARY},
    {"a second scan", put_second_scan, JPEG_LIBRARY},
    {"components in another order", put_other_order, JPEG_NOT_DECODED},
    {"coefficients 0 to 62", put_part_of_band, JPEG_LIBRARY},
    {"successive approximation", put_high_bits, JPEG_LIBRARY},
    {"no such table", put_no_table, JPEG_NOT_DECODED},
    {"tables 1", put_tables_1, JPEG_FAST},
    {"DC table 2", put_dc_table_2, JPEG_LIBRARY},
    {"AC table 2", put_ac_table_2, JPEG_LIBRARY},
    {"tables 3", put_tables_3, JPEG_LIBRARY},
    {"two codes of one bit", put_table_of_one_length, JPEG_NOT_DECODED},
    {"a component twice", put_component_twice, JPEG_NOT_DECODED},
    {"DC that grows", put_growing_dc, JPEG_LIBRARY},
    {"factors 3 and 2", put_fractions, JPEG_NOT_DECODED},
    {"bytes after the end", put_bytes_after_end, JPEG_FAST},
    {"a restart before the end", put_restart_at_end, JPEG_LIBRARY},
    {"zero quantization", put_zero_quanta, JPEG_NOT_DECODED},
    {"no data", put_no_data, JPEG_NOT_DECODED},
};

START_TEST(irregular_files_are_judged_as_by_libjpeg)
{
    open_decoders();
    jpeg_writer file = {0};
    files[_i].put(&file);
    jpeg_put_end(&file);
    check_writer(&file, files[_i].name, files[_i].path);
    close_decoders();
}
END_TEST

/* In all colours, instruction sets and some regions. */
static void check_path(const char *path, const char *name)
{
    static unsigned char bytes[8 << 20];
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    for (int i = 0; i < 18; i++)
        check_next(name, bytes, size);
}

/* Returns how many JPEGs the folder has. */
static int check_folder(const char *folder)
{
    char path[SHARED_PATH + 256];
    int n = 0;
    DIR *directory = opendir(folder);
    ck_assert_msg(directory != NULL, "%s", folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".jpg") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        check_path(path, entry->d_name);
        n++;
    }
    closedir(directory);
    return n;
}

START_TEST(files_are_judged_as_by_libjpeg)
{
    static const char *const folders[] = {"images/caffe", "images/jpeg",
                                          "images/psnr"};
    char path[SHARED_PATH];
    open_decoders();
    ck_assert_int_gt(check_folder(LEAT_TEST_DATA "/images"), 40);
    for (int i = 0; i < LENGTH(folders); i++)
        if (shared_path(path, folders[i]))
            ck_assert_int_gt(check_folder(path), 0);
    close_decoders();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jpeg_damage");
    TCase *tcase = tcase_create("jpeg_damage");
    tcase_set_timeout(tcase, 300);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_cut_is_judged_as_by_libjpeg, 0, SOURCES);
    tcase_add_loop_test(tcase, a_flipped_bit_is_judged_as_by_libjpeg, 0,
                        SOURCES);
    tcase_add_loop_test(tcase, edited_data_is_judged_as_by_libjpeg, 0, SOURCES);
    tcase_add_loop_test(tcase, irregular_blocks_are_judged_as_by_libjpeg, 0,
                        LENGTH(middles));
    tcase_add_test(tcase, any_ac_symbol_is_judged_as_by_libjpeg);
    tcase_add_test(tcase,
                   restarts_that_are_missing_or_wrong_are_judged_as_by_libjpeg);
    tcase_add_test(tcase, an_arithmetic_image_leaves_nothing_behind);
    tcase_add_loop_test(tcase, irregular_files_are_judged_as_by_libjpeg, 0,
                        LENGTH(files));
    tcase_add_test(tcase, files_are_judged_as_by_libjpeg);
    return suite_run(suite);
}
