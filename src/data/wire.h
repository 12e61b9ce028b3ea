/* wire.h: protobuf's wire format, field by field, without copying. */
#ifndef LEAT_DATA_WIRE_H
#define LEAT_DATA_WIRE_H

#include <leat/status.h>

typedef enum leat__wire_type {
    LEAT__WIRE_VARINT = 0,
    LEAT__WIRE_FIXED64 = 1,
    LEAT__WIRE_BYTES = 2,
    LEAT__WIRE_GROUP = 3,
    LEAT__WIRE_GROUP_END = 4,
    LEAT__WIRE_FIXED32 = 5
} leat__wire_type;

/* What is still to be read of a message. */
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

void leat__wire_init(leat__wire *wire, const void *bytes, size_t size);

/*
 * Takes the next field; a group is skipped whole and given as one field.
 * LEAT_OK, LEAT_END behind the last one, or LEAT_EDATA with the line saying
 * what is wrong at which byte of the message.
 */
int leat__wire_next_any(leat__wire *wire, leat__wire_field *field);

/* The same; small fields, most of all fields, are taken without a call. */
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

#endif
