#include "base/crc32c.h"
#include "readers/recordio/recordio_unpack.h"
#include "support/record_sequence.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

static void setup(void)
{
    record_sequence_begin();
}

static void teardown(void)
{
    record_sequence_end();
}

static size_t parse_hex(unsigned char *out, const char *hex)
{
    size_t n = 0;
    for (; *hex; hex++) {
        unsigned byte;
        if (*hex == ' ')
            continue;
        sscanf(hex++, "%2x", &byte);
        out[n++] = (unsigned char)byte;
    }
    return n;
}

static int fill_known(known_record *known, const char *const *texts)
{
    int n = 0;
    for (; texts[n]; n++)
        known[n] = (known_record){texts[n], strlen(texts[n])};
    return n;
}

static int has_snappy(void)
{
    leat__recordio_buffer out = {.limit.bytes = 100};
    int status = leat__recordio_unpack(
        LEAT__RECORDIO_SNAPPY, (const unsigned char *)"\x01\x00x", 3, &out);
    leat__recordio_buffer_finish(&out);
    return status != LEAT_EUNSUPPORTED;
}

static const struct {
    const char *hex;
    const char *records[5];
    int is_snappy;
} golden[] = {
    {"0403020103000000cb3cd3ef0000000015000000 03000000414243 03000000424344 "
     "03000000434445",
     {"ABC", "BCD", "CDE"},
     0},
    {"0403020103000000 56ab0509 01000000 23000000 736e61707079 00 00 0015 "
     "b3f18a3c 03000000414243 03000000424344 03000000434445",
     {"ABC", "BCD", "CDE"},
     1},
    {"0403020103000000128e1f07000000000e000000 0100000031 0100000032 00000000",
     {"1", "2", ""},
     0},
    {"04030201873a6795000000001100000002000000 05000000313233343504000000 "
     "31323334 040302019a5680f2000000000600000001000000 020000003132",
     {"12345", "1234", "12"},
     0},
    {"04030201ce18832f020000002400000002000000 1f8b08000000000000ff6265 "
     "6060303432363165813200010000ffff873a679511000000 "
     "04030201f4ab64e7020000001e00000001000000 1f8b08000000000000ff626260 "
     "603034020400 00ffff9a5680f206000000",
     {"12345", "1234", "12"},
     0},
    {"04030201a34345bb010000003b00000002000000 ff060000734e61507059 01080000 "
     "d9c69c43 05000000 01090000 7a1cede8 3132333435 01080000 6251eb96 "
     "04000000 01080000 4dd7608c 31323334 "
     "040302016dfdeb2f010000002000000001000000 ff060000734e61507059 01080000 "
     "d8d81073 02000000 01060000 83d1432b 3132",
     {"12345", "1234", "12"},
     1},
    /* Chunks of no records, whose first block is empty. */
    {"0403020100000000096c3023010000000f000000 736e6170707900 "
     "010001a282ead800",
     {NULL},
     1},
    {"0403020165a42d8a010000001300000000000000 ff060000734e61507059 "
     "00050000d8ea82a200",
     {NULL},
     1},
};

START_TEST(golden_bytes_of_both_of_paddles)
{
    unsigned char bytes[256];
    known_record known[5];
    size_t size = parse_hex(bytes, golden[_i].hex);
    int n = fill_known(known, golden[_i].records);
    if (golden[_i].is_snappy && !has_snappy())
        return;
    record_sequence_write("file", bytes, size);
    record_sequence_check("recordio:file", known, n);
    record_sequence_pack("file.gz", bytes, size, 0);
    record_sequence_check("recordio:file.gz", known, n);
}
END_TEST

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* A chunk around what it stores; returns its size. */
static size_t make_chunk(unsigned char *out,
                         const leat__recordio_dialect *dialect,
                         uint32_t compressor, uint32_t n, const void *stored,
                         size_t size)
{
    put_u32(out, LEAT__RECORDIO_MAGIC);
    put_u32(out + dialect->nrecords_at, n);
    put_u32(out + dialect->checksum_at, dialect->checksum(0, stored, size));
    put_u32(out + dialect->compressor_at, compressor);
    put_u32(out + dialect->stored_at, (uint32_t)size);
    memmove(out + LEAT__RECORDIO_HEADER, stored, size);
    return LEAT__RECORDIO_HEADER + size;
}

static size_t put_record(unsigned char *out, const void *bytes, size_t size)
{
    put_u32(out, (uint32_t)size);
    memcpy(out + 4, bytes, size);
    return 4 + size;
}

/* Chunks of `per_chunk` records of sizes 0, 1, 2 ... */
static size_t make_many(unsigned char *out, const unsigned char *from, int n,
                        int per_chunk, known_record *known,
                        const leat__recordio_dialect *dialect, uint32_t none)
{
    static unsigned char payload[1 << 20];
    size_t used = 0, at = 0;
    int in_chunk = 0;
    for (int i = 0; i < n; i++) {
        known[i] = (known_record){from, (size_t)i};
        at += put_record(payload + at, from, (size_t)i);
        if (++in_chunk == per_chunk || i == n - 1) {
            used += make_chunk(out + used, dialect, none, (uint32_t)in_chunk,
                               payload, at);
            in_chunk = 0;
            at = 0;
        }
    }
    return used;
}

static unsigned char bytes[1 << 20], content[4096];

START_TEST(chunks_of_many_records_in_all_dialects)
{
    static const leat__recordio_dialect *const dialects[] = {
        &leat__recordio_fluid, &leat__recordio_go, &leat__recordio_elasticdl};
    known_record known[200];
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (unsigned char)(i * 7);
    for (int i = 0; i < 3; i++) {
        size_t size =
            make_many(bytes, content, 100, i + 7, known, dialects[i], i == 2);
        record_sequence_write("many", bytes, size);
        record_sequence_check("recordio:many", known, 100);
        record_sequence_pack("many.gz", bytes, size, 0);
        record_sequence_check("recordio:many.gz", known, 100);
    }
    record_sequence_write("empty", "", 0);
    memcpy(known + 100, known, sizeof(known) / 2);
    record_sequence_check("recordio:empty,many,empty,many", known, 200);
    record_sequence_check("recordio:empty", NULL, 0);
}
END_TEST

START_TEST(a_chunk_is_not_inflated_once_reading_is_cancelled)
{
    const atomic_bool cancelled = true;
    leat__recordio_buffer out = {.limit.bytes = 100, .cancelled = &cancelled};
    ck_assert_int_eq(leat__recordio_unpack(LEAT__RECORDIO_GZIP,
                                           (const unsigned char *)"\x1f\x8b", 2,
                                           &out),
                     LEAT_ECANCELLED);
    leat__recordio_buffer_finish(&out);
}
END_TEST

/* Longer than what a walk over a mapped file sees at first. */
START_TEST(a_chunk_longer_than_a_window_is_whole)
{
    enum { RECORD = 12 << 20, RECORDS = 4 };
    unsigned char *payload = malloc((size_t)RECORDS * (RECORD + 4));
    unsigned char *file = malloc((size_t)RECORDS * (RECORD + 4) + 1024);
    ck_assert(payload && file);
    known_record known[RECORDS + 3];
    size_t size =
        make_many(file, content, 3, 2, known, &leat__recordio_fluid, 0);
    size_t at = 0;
    for (int i = 0; i < RECORDS; i++) {
        memset(payload + at + 4, i + 1, RECORD);
        put_u32(payload + at, RECORD);
        known[3 + i] = (known_record){payload + at + 4, RECORD};
        at += RECORD + 4;
    }
    size +=
        make_chunk(file + size, &leat__recordio_fluid, 0, RECORDS, payload, at);
    record_sequence_write("wide", file, size);
    free(file);
    record_sequence_check("recordio:wide", known, RECORDS + 3);
    free(payload);
}
END_TEST

START_TEST(paddles_own_files)
{
    static const struct {
        const char *name;
        const char *records[5];
    } files[] = {
        {"paddle_fluid/fluid_none_3rec", {"ABC", "BCD", "CDE"}},
        {"paddle_fluid/fluid_snappy_3rec", {"ABC", "BCD", "CDE"}},
        {"paddle_fluid/fluid_none_4rec_chunk2", {"ABC", "BCD", "CDE", "DEFG"}},
        {"paddle_fluid/fluid_none_empty_records", {"1", "2", ""}},
        {"paddle_go/go_none_3rec_chunk10", {"12345", "1234", "12"}},
        {"paddle_go/go_gzip_3rec_chunk10", {"12345", "1234", "12"}},
        {"paddle_go/go_snappy_3rec_chunk10", {"12345", "1234", "12"}},
        {"paddle_go/go_none_empty", {NULL}},
    };
    for (int i = 0; i < LENGTH(files); i++) {
        char path[SHARED_PATH], name[100], text[SHARED_PATH + 20];
        known_record known[5];
        snprintf(name, sizeof(name), "recordio/%s.recordio", files[i].name);
        if (!shared_path(path, name) ||
            (strstr(name, "snappy") && !has_snappy()))
            continue;
        snprintf(text, sizeof(text), "recordio:%s", path);
        record_sequence_check(text, known, fill_known(known, files[i].records));
    }
}
END_TEST

static void check_refused(const char *text, const char *says)
{
    int good, bad;
    ck_assert_int_eq(record_sequence_read(text, &good, &bad), LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), says), "%s", leat_last_error());
}

START_TEST(other_formats_are_named)
{
    record_sequence_write("dmlc", "\x0a\x23\xd7\xce\x2c\0\0\0", 8);
    check_refused("recordio:dmlc", "dmlc");
    record_sequence_write("text", "hello, world, and the rest", 26);
    check_refused("recordio:text", "text: not a chunk of RecordIO");
    record_sequence_pack("text.gz", "hello, world, and the rest", 26, 0);
    check_refused("recordio:text.gz", "not a chunk of RecordIO");
    memset(bytes, 0xff, 20);
    put_u32(bytes, LEAT__RECORDIO_MAGIC);
    record_sequence_write("header", bytes, 20);
    check_refused("recordio:header", "damaged");
}
END_TEST

START_TEST(a_file_cut_anywhere_gives_what_is_whole)
{
    known_record known[40];
    int good, bad;
    size_t size =
        make_many(bytes, content, 40, 10, known, &leat__recordio_fluid, 0);
    ck_assert_uint_lt(size, 4096);
    for (size_t cut = 0; cut <= size; cut++) {
        record_sequence_write("cut", bytes, cut);
        int status = record_sequence_read("recordio:cut", &good, &bad);
        record_sequence_pack("cut.gz", bytes, cut, 0);
        int packed, packed_status =
                        record_sequence_read("recordio:cut.gz", &packed, &bad);
        bool is_whole = cut == 0 || cut == size;
        for (int i = 10; i < 40 && !is_whole; i += 10)
            is_whole = cut == (size_t)(20 * i / 10 + 4 * i + i * (i - 1) / 2);
        ck_assert_msg(status == (is_whole ? LEAT_END : LEAT_EFORMAT),
                      "cut %zu: %d", cut, status);
        ck_assert_int_eq(packed_status, status);
        ck_assert_int_eq(packed, good);
        ck_assert_int_eq(good % 10, 0);
        if (!is_whole)
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "cut.gz: "));
    }
}
END_TEST

/* Also from amid its good records, as a resume does. */
START_TEST(a_file_that_is_cut_is_read_up_to_there)
{
    known_record known[40];
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    size_t size =
        make_many(bytes, content, 40, 10, known, &leat__recordio_fluid, 0);
    record_sequence_write("cut", bytes, size - 1);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "recordio:cut"), LEAT_OK);
    for (int i = 0; i <= 31; i++) {
        const leat_position at = {0, i};
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL),
                         i < 31 ? LEAT_OK : LEAT_EFORMAT);
        for (int k = i; k < 30; k++) {
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            ck_assert_uint_eq(sample.field[0].bytes, known[k].size);
            ck_assert_int_eq(sample.from.record, k);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "cut: record 30 at"));
        leat_reader_close(reader);
    }
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&sample);
}
END_TEST

/* As compressor 2 of ElasticDL's, up to 60 bytes as a literal. */
static size_t pack_snappy(unsigned char *out, const void *from, size_t size)
{
    out[0] = (unsigned char)size;
    out[1] = (unsigned char)((size - 1) << 2);
    memcpy(out + 2, from, size);
    return size + 2;
}

/* Chunks of ElasticDL's, each of two records; returns their size. */
static size_t make_pairs(unsigned char *out, int chunks, int is_snappy)
{
    unsigned char payload[64], packed[64];
    size_t used = 0;
    for (int i = 0; i < chunks; i++) {
        size_t size = put_record(payload, "one", 3);
        size += put_record(payload + size, "and two", 7);
        memcpy(packed, payload, size);
        if (is_snappy)
            size = pack_snappy(packed, payload, size);
        used += make_chunk(out + used, &leat__recordio_elasticdl,
                           is_snappy ? 2 : 1, 2, packed, size);
    }
    return used;
}

/* Plain chunks of ElasticDL's look like Fluid's by snappy, and its snappy like
   Fluid's gzip. */
START_TEST(chunks_after_a_bad_first_one_are_good)
{
    enum { CHUNKS = 5 };
    int good, bad;
    for (int is_snappy = 0; is_snappy <= has_snappy(); is_snappy++) {
        size_t size = make_pairs(bytes, CHUNKS, is_snappy);
        size_t chunk = size / CHUNKS;
        for (int flipped = 0; flipped < CHUNKS; flipped++) {
            int left = 2 * (CHUNKS - flipped - 1);
            bytes[(size_t)flipped * chunk + LEAT__RECORDIO_HEADER + 6] ^= 1;
            record_sequence_write("flip", bytes, size);
            ck_assert_int_eq(record_sequence_read("recordio:flip", &good, &bad),
                             LEAT_END);
            ck_assert_int_eq(good, left);
            if (!is_snappy && left > 0)
                ck_assert_int_eq(bad, 2 * (flipped + 1));
            record_sequence_pack("flip.gz", bytes, size, 0);
            ck_assert_int_eq(
                record_sequence_read("recordio:flip.gz", &good, &bad),
                LEAT_END);
            ck_assert_int_eq(good, left);
            ck_assert_int_eq(bad, flipped + 1);
        }
    }
}
END_TEST

/* Of a stream, only those that it may hold. */
START_TEST(the_first_sixteen_chunks_tell_the_dialect)
{
    enum { CHUNKS = 17, HELD = 15 };
    char text[64];
    int good, bad;
    size_t size = make_pairs(bytes, CHUNKS, 0);
    size_t chunk = size / CHUNKS;
    for (int flipped = 0; flipped < HELD; flipped++)
        bytes[(size_t)flipped * chunk + LEAT__RECORDIO_HEADER + 6] ^= 1;
    record_sequence_write("bad", bytes, size);
    record_sequence_pack("bad.gz", bytes, size, 0);
    ck_assert_int_eq(record_sequence_read("recordio:bad", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, 2 * (CHUNKS - HELD));
    for (int less = 0; less < 2; less++) {
        snprintf(text, sizeof(text), "recordio:bad.gz,max_record=%zu",
                 (HELD + 1) * chunk - LEAT__RECORDIO_HEADER - (size_t)less);
        ck_assert_int_eq(record_sequence_read(text, &good, &bad), LEAT_END);
        ck_assert_int_eq(good, less ? 0 : 2 * (CHUNKS - HELD));
    }
    bytes[HELD * chunk + LEAT__RECORDIO_HEADER + 6] ^= 1;
    record_sequence_write("bad", bytes, size);
    ck_assert_int_eq(record_sequence_read("recordio:bad", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, 0);
}
END_TEST

/* The first file's only chunk is bad, or has no bytes. */
START_TEST(another_file_tells_the_dialect)
{
    int good, bad;
    size_t size = make_pairs(bytes, 1, 0);
    record_sequence_write("good", bytes, size);
    bytes[LEAT__RECORDIO_HEADER + 6] ^= 1;
    record_sequence_write("bad", bytes, size);
    ck_assert_int_eq(record_sequence_read("recordio:bad,good", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, 2);
    ck_assert_int_eq(bad, 2);
    size = make_chunk(bytes, &leat__recordio_go, 0, 0, "", 0);
    record_sequence_write("none", bytes, size);
    record_sequence_write(
        "one", bytes, make_chunk(bytes, &leat__recordio_go, 0, 1, "\0\0\0", 4));
    ck_assert_int_eq(record_sequence_read("recordio:none,one", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, 1);
    ck_assert_int_eq(bad, 0);
}
END_TEST

/* Both checksums of no bytes are 0. */
START_TEST(a_chunk_without_bytes_is_of_any_dialect)
{
    static const leat__recordio_dialect *const dialects[] = {
        &leat__recordio_fluid, &leat__recordio_go, &leat__recordio_elasticdl};
    known_record known[20];
    for (int i = 0; i < 3; i++) {
        size_t size = 0;
        for (int k = 0; k < 3; k++)
            size +=
                make_chunk(bytes + size, dialects[i], i == 2, 0, content, 0);
        size +=
            make_many(bytes + size, content, 20, 7, known, dialects[i], i == 2);
        record_sequence_write("late", bytes, size);
        record_sequence_check("recordio:late", known, 20);
        record_sequence_pack("late.gz", bytes, size, 0);
        record_sequence_check("recordio:late.gz", known, 20);
    }
}
END_TEST

/* Of a stream, which may not hold enough to be sure of its own; plain files are
   looked at when it is opened. */
START_TEST(a_plain_file_tells_the_dialect_of_streams)
{
    enum { CHUNKS = 3 };
    static const struct {
        const char *files;
        int good, bad;
    } streams[] = {{"bad,bad.gz", 2 * 2 * (CHUNKS - 1), 2},
                   {"bad,fluid.gz", 2 * (CHUNKS - 1) + 1, 1},
                   {"go,bad.gz", 1, CHUNKS}};
    char text[64];
    int good, bad;
    size_t size = make_chunk(bytes, &leat__recordio_fluid, 0, 1, "\0\0\0", 4);
    record_sequence_pack("fluid.gz", bytes, size, 0);
    size = make_chunk(bytes, &leat__recordio_go, 0, 1, "\0\0\0", 4);
    record_sequence_write("go", bytes, size);
    size = make_pairs(bytes, CHUNKS, 0);
    bytes[LEAT__RECORDIO_HEADER + 6] ^= 1;
    record_sequence_write("bad", bytes, size);
    record_sequence_pack("bad.gz", bytes, size, 0);
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        snprintf(text, sizeof(text), "recordio:%s,max_record=%zu",
                 streams[i].files, size / CHUNKS);
        ck_assert_int_eq(record_sequence_read(text, &good, &bad), LEAT_END);
        ck_assert_int_eq(good, streams[i].good);
        ck_assert_int_eq(bad, streams[i].bad);
    }
}
END_TEST

/* In all forms the records of a chunk with a bit flipped are not given as good,
   and those of the others are, where their place is known. */
START_TEST(a_flipped_bit_is_noticed)
{
    known_record known[8];
    int good, bad;
    size_t size =
        make_many(bytes, content, 8, 4, known, &leat__recordio_fluid, 0);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        record_sequence_write("flip", bytes, size);
        int status = record_sequence_read("recordio:flip", &good, &bad);
        bool is_header = bit / 8 < 20 || (bit / 8 >= 42 && bit / 8 < 62);
        ck_assert_msg(status == LEAT_EFORMAT || bad > 0,
                      "bit %zu: status %d, %d good", bit, status, good);
        if (!is_header)
            ck_assert_int_eq(good, 4);
        record_sequence_pack("flip.gz", bytes, size, 0);
        status = record_sequence_read("recordio:flip.gz", &good, &bad);
        ck_assert_msg(status == LEAT_EFORMAT || bad > 0,
                      "bit %zu: status %d, %d good", bit, status, good);
        if (!is_header)
            ck_assert_int_eq(good, 4);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

START_TEST(headers_that_lie_are_bad_records)
{
    static const struct {
        uint32_t promised;
        uint32_t length; /* of the second record */
        int good, bad;
    } cases[] = {
        {2, 3, 3, 0}, {3, 3, 3, 1},          {1, 3, 2, 1}, {0, 3, 1, 1},
        {2, 4, 2, 1}, {2, UINT32_MAX, 2, 1}, {2, 2, 3, 1},
    };
    unsigned char payload[64];
    int good, bad;
    for (int i = 0; i < LENGTH(cases); i++) {
        size_t at = put_record(payload, "one", 3);
        at += put_record(payload + at, "two", 3);
        put_u32(payload + 7, cases[i].length);
        size_t size = make_chunk(bytes, &leat__recordio_fluid, 0,
                                 cases[i].promised, payload, at);
        at = put_record(payload, "three", 5);
        size +=
            make_chunk(bytes + size, &leat__recordio_fluid, 0, 1, payload, at);
        record_sequence_write("lie", bytes, size);
        ck_assert_int_eq(record_sequence_read("recordio:lie", &good, &bad),
                         LEAT_END);
        ck_assert_msg(good == cases[i].good && bad == cases[i].bad,
                      "case %d: %d good, %d bad", i, good, bad);
        record_sequence_pack("lie.gz", bytes, size, 0);
        ck_assert_int_eq(record_sequence_read("recordio:lie.gz", &good, &bad),
                         LEAT_END);
        ck_assert_msg(good == cases[i].good && bad == cases[i].bad,
                      "case %d: %d good, %d bad", i, good, bad);
    }
}
END_TEST

START_TEST(a_bad_record_is_bad_by_its_number_too)
{
    unsigned char payload[64];
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample, *out = &sample;
    int64_t count;
    size_t at = put_record(payload, "one", 3);
    size_t size = make_chunk(bytes, &leat__recordio_fluid, 0, 5, payload, at);
    size += make_chunk(bytes + size, &leat__recordio_fluid, 0, 1, payload, at);
    record_sequence_write("lie", bytes, size);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "recordio:lie"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 3);
    for (int i = 0; i < 3; i++) {
        int got;
        const leat_position position = {0, i};
        int expected = i == 1 ? LEAT_EDATA : LEAT_OK;
        ck_assert_int_eq(leat_reader_read_at(reader, &position, &out, 1, &got),
                         expected);
        ck_assert_int_eq(leat_reader_seek(reader, position, NULL), LEAT_OK);
        for (int k = i; k < 3; k++)
            ck_assert_int_eq(leat_reader_next(reader, &sample),
                             k == 1 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&sample);
}
END_TEST

/* Of chunks of several pages, of which those of records are asked for. */
START_TEST(a_lying_chunk_is_asked_for_as_others_are)
{
    enum { CHUNKS = 30, RECORDS = 12, SIZE = 800, LIES = 5 };
    static const char record[SIZE];
    unsigned char payload[RECORDS * (4 + SIZE)];
    /* The last record before the one that is bad, and another. */
    const leat_position at[] = {{0, LIES * RECORDS + RECORDS - 1}, {0, 1}};
    leat_pipeline *pipeline;
    leat_reader *reader;
    int64_t count;
    size_t size = 0, n = 0;
    for (int i = 0; i < RECORDS; i++)
        n += put_record(payload + n, record, SIZE);
    for (int i = 0; i < CHUNKS; i++)
        size += make_chunk(bytes + size, &leat__recordio_fluid, 0,
                           RECORDS + (i == LIES), payload, n);
    record_sequence_write("lie", bytes, size);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "recordio:lie"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, CHUNKS * RECORDS + 1);
    leat_reader_advise(reader, at, LENGTH(at));
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

enum { THREADS = 4, MANY = 100 };

/* Each begins elsewhere; the first of a chunk looks at its checksum. */
static void *read_all_at(void *argument)
{
    leat_reader *reader = argument;
    static atomic_int begins;
    leat_sample sample, *out = &sample;
    int begin = atomic_fetch_add(&begins, MANY / THREADS);
    leat_sample_init(&sample);
    for (int i = 0; i < MANY; i++) {
        int got, wanted = (begin + i) % MANY;
        const leat_position at = {0, wanted};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got),
                         LEAT_OK);
        ck_assert_uint_eq(sample.field[0].bytes, (size_t)wanted);
    }
    leat_sample_finish(&sample);
    return NULL;
}

START_TEST(threads_read_the_chunks_of_each_other)
{
    known_record known[MANY];
    pthread_t threads[THREADS];
    leat_pipeline *pipeline;
    leat_reader *reader;
    record_sequence_write(
        "many", bytes,
        make_many(bytes, content, MANY, 10, known, &leat__recordio_fluid, 0));
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "recordio:many"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, read_all_at, reader);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Half a million empty records in a chunk of Go's that gzip made small. */
START_TEST(a_bomb_is_an_error_that_names_the_limit)
{
    int good, bad;
    unsigned char *zeros = calloc(1, 2 << 20);
    record_sequence_pack("bomb", zeros, 2 << 20, 0);
    FILE *file = fopen("bomb", "rb");
    size_t size = fread(content, 1, sizeof(content), file);
    fclose(file);
    size_t whole =
        make_chunk(bytes, &leat__recordio_go, 2, 1 << 19, content, size);
    record_sequence_write("bomb", bytes, whole);
    ck_assert_int_eq(
        record_sequence_read("recordio:bomb,max_record=1M", &good, &bad),
        LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_record"));
    ck_assert_int_eq(record_sequence_read("recordio:bomb", &good, &bad),
                     LEAT_END);
    ck_assert_int_eq(good, 1 << 19);
    free(zeros);
}
END_TEST

static int count_within(const char *text, int64_t max_memory, int64_t *count)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    options.max_memory = max_memory;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    int status = leat_pipeline_open_with(pipeline, &options, &reader);
    if (!status)
        status = leat_reader_count(reader, count);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    return status;
}

/* Of each chunk, and the end of each file: 9 bytes, and 8 of each record. */
START_TEST(the_table_of_chunks_keeps_to_the_limit_of_memory)
{
    enum { CHUNKS = 1000, TABLE = 2 * (CHUNKS + 1) * 9 };
    unsigned char payload[8];
    const char *const text = "recordio:one,two";
    int64_t count = -1;
    size_t n = put_record(payload, "one", 3);
    size_t size = make_chunk(bytes, &leat__recordio_fluid, 0, 1, payload, n);
    for (int i = 1; i < CHUNKS; i++)
        size +=
            make_chunk(bytes + size, &leat__recordio_fluid, 0, 0, payload, 0);
    record_sequence_write("one", bytes, size);
    record_sequence_write("two", bytes, size);
    ck_assert_int_eq(count_within(text, TABLE - 1, &count), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "two: the table of chunks"));
    ck_assert_int_eq(count_within(text, TABLE + 15, &count), LEAT_ELIMIT);
    ck_assert_int_eq(count, -1);
    ck_assert_int_eq(count_within(text, TABLE + 16, &count), LEAT_OK);
    ck_assert_int_eq(count, 2);
}
END_TEST

/* It is mapped: max_record and max_memory are of what is held. */
START_TEST(a_first_chunk_longer_than_both_limits_is_read)
{
    enum { RECORD = 1 << 18 };
    unsigned char *payload = calloc(1, RECORD + 4);
    int64_t count = -1;
    int good, bad;
    put_u32(payload, RECORD);
    size_t size =
        make_chunk(bytes, &leat__recordio_elasticdl, 1, 1, payload, RECORD + 4);
    record_sequence_write("long", bytes, size);
    ck_assert_int_eq(
        record_sequence_read("recordio:long,max_record=1K", &good, &bad),
        LEAT_END);
    ck_assert_int_eq(good, 1);
    ck_assert_int_eq(count_within("recordio:long", 1 << 16, &count), LEAT_OK);
    ck_assert_int_eq(count, 1);
    record_sequence_pack("long.gz", bytes, size, 0);
    ck_assert_int_eq(
        record_sequence_read("recordio:long.gz,max_record=1K", &good, &bad),
        LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_record"));
    free(payload);
}
END_TEST

/* What a compressed chunk is read into, and what it is decompressed to. */
START_TEST(the_buffers_of_compressed_chunks_are_counted)
{
    enum { RECORD = (1 << 20) - 4, STORED = 1 << 19 };
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    leat_sample sample;
    unsigned char *record = calloc(1, RECORD);
    unsigned char *payload = malloc(RECORD + 4);
    for (int i = 0; i < STORED; i++)
        record[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
    record_sequence_pack("packed", payload, put_record(payload, record, RECORD),
                         0);
    FILE *file = fopen("packed", "rb");
    size_t size = fread(payload, 1, RECORD, file);
    fclose(file);
    record_sequence_write(
        "big", bytes,
        make_chunk(bytes, &leat__recordio_fluid, 2, 1, payload, size));
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, "recordio:big"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq((int)sample.field[0].bytes, RECORD);
    ck_assert_int_ge(reader->ops->memory(reader), (int64_t)size + RECORD + 4);
    ck_assert_int_le(reader->ops->memory(reader), 8 << 20);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    free(payload);
    free(record);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("recordio");
    TCase *tests = tcase_create("recordio");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, golden_bytes_of_both_of_paddles, 0,
                        LENGTH(golden));
    tcase_add_test(tests, chunks_of_many_records_in_all_dialects);
    tcase_add_test(tests, a_chunk_is_not_inflated_once_reading_is_cancelled);
    tcase_add_test(tests, a_chunk_longer_than_a_window_is_whole);
    tcase_add_test(tests, paddles_own_files);
    tcase_add_test(tests, other_formats_are_named);
    tcase_add_test(tests, a_file_cut_anywhere_gives_what_is_whole);
    tcase_add_test(tests, a_file_that_is_cut_is_read_up_to_there);
    tcase_add_test(tests, chunks_after_a_bad_first_one_are_good);
    tcase_add_test(tests, the_first_sixteen_chunks_tell_the_dialect);
    tcase_add_test(tests, another_file_tells_the_dialect);
    tcase_add_test(tests, a_plain_file_tells_the_dialect_of_streams);
    tcase_add_test(tests, a_chunk_without_bytes_is_of_any_dialect);
    tcase_add_test(tests, a_flipped_bit_is_noticed);
    tcase_add_test(tests, headers_that_lie_are_bad_records);
    tcase_add_test(tests, a_bad_record_is_bad_by_its_number_too);
    tcase_add_test(tests, a_lying_chunk_is_asked_for_as_others_are);
    tcase_add_test(tests, threads_read_the_chunks_of_each_other);
    tcase_add_test(tests, a_bomb_is_an_error_that_names_the_limit);
    tcase_add_test(tests, the_table_of_chunks_keeps_to_the_limit_of_memory);
    tcase_add_test(tests, a_first_chunk_longer_than_both_limits_is_read);
    tcase_add_test(tests, the_buffers_of_compressed_chunks_are_counted);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
