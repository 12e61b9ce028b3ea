/* wire.h: protobuf's wire format, field by field, without copying. */
#ifndef LEAT_DATA_WIRE_H
#define LEAT_DATA_WIRE_H

#include <leat/status.h>

#include <stdbool.h>

typedef enum leat__wire_type {
    LEAT__WIRE_VARINT = 0,
    LEAT__WIRE_FIXED64 = 1,
    LEAT__WIRE_BYTES = 2,
    LEAT__WIRE_GROUP = 3,
    LEAT__WIRE_GROUP_END = 4,
    LEAT__WIRE_FIXED32 = 5
} leat__wire_type;

/* The unread rest of a message. */
typedef struct leat__wire {
    const unsigned char *at;
    const unsigned char *end;
    const unsigned char *start; /* for offsets in errors */
} leat__wire;

typedef struct leat__wire_field {
    uint32_t number;
    leat__wire_type type;
    uint64_t value;             /* of a varint */
    const unsigned char *bytes; /* of the other types; a group's is NULL */
    size_t size;
} leat__wire_field;

static inline void leat__wire_init(leat__wire *wire, const void *bytes,
                                   size_t size)
{
    wire->start = wire->at = bytes;
    wire->end = size ? wire->start + size : wire->start;
}

/*
 * Reads the next field; a group is skipped and returned as one field. LEAT_OK,
 * LEAT_END after the last field, or LEAT_EDATA, whose error line has the byte
 * offset.
 */
int leat__wire_next_any(leat__wire *wire, leat__wire_field *field);

/* The same; small fields, which are the most frequent, are read inline. */
static inline int leat__wire_next(leat__wire *wire, leat__wire_field *field)
{
    const unsigned char *at = wire->at;
    if (wire->end - at >= 2 && (at[0] & 0x87) == LEAT__WIRE_VARINT &&
        at[0] >= 8 && at[1] < 0x80) {
        field->number = at[0] >> 3;
        field->type = LEAT__WIRE_VARINT;
        field->value = at[1];
        wire->at = at + 2;
        return LEAT_OK;
    }
    return leat__wire_next_any(wire, field);
}

/*
 * Reads a varint without a tag, as in a packed field. LEAT_EDATA also if no
 * byte is left.
 */
int leat__wire_varint(leat__wire *wire, uint64_t *out);

/*
 * Reads a field if its tag, of one byte, is `tag` and its varint has up to 3
 * bytes; else returns false, and leaves it to the other functions.
 */
static inline bool leat__wire_take(leat__wire *wire, unsigned char tag,
                                   uint32_t *value)
{
    const unsigned char *at = wire->at;
    size_t left = (size_t)(wire->end - at);
    if (left < 2 || at[0] != tag)
        return false;
    if (at[1] < 0x80) {
        *value = at[1];
        wire->at = at + 2;
        return true;
    }
    if (left < 4)
        return false;
    bool is_short = at[2] < 0x80;
    *value = (at[1] & 0x7fu) | (at[2] & 0x7fu) << 7 |
             (is_short ? 0 : (uint32_t)at[3] << 14);
    if (!is_short && at[3] >= 0x80)
        return false;
    wire->at = at + (is_short ? 3 : 4);
    return true;
}

/*
 * Writing: each writes at `out` and returns where it ended. Field numbers are
 * 1 to 15, so that a tag is one byte.
 */
unsigned char *leat__wire_put_tag(unsigned char *out, int number,
                                  leat__wire_type type);
unsigned char *leat__wire_put_varint(unsigned char *out, uint64_t value);
/* Bytes that leat__wire_put_varint writes: 1 to 10. */
size_t leat__wire_varint_size(uint64_t value);

#endif
