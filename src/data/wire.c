#include "data/wire.h"
#include "base/error.h"

/* Nesting limit of groups, as in protobuf. */
#define GROUPS_MAX 100

static int malformed(const leat__wire *wire, const char *what)
{
    leat_error(LEAT_EDATA, "malformed protobuf at byte %td: %s",
               wire->at - wire->start, what);
    return LEAT_EDATA;
}

/* Bits beyond the 64th, which only a tenth byte can hold, are dropped. */
static int long_varint(leat__wire *wire, uint64_t *out)
{
    const unsigned char *at = wire->at;
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (at == wire->end)
            return malformed(wire, "it ends within a varint");
        uint64_t byte = *at++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            wire->at = at;
            *out = value;
            return LEAT_OK;
        }
    }
    return malformed(wire, "a varint is longer than 10 bytes");
}

static inline int varint(leat__wire *wire, uint64_t *out)
{
    if (wire->at != wire->end && *wire->at < 0x80) {
        *out = *wire->at++;
        return LEAT_OK;
    }
    return long_varint(wire, out);
}

int leat__wire_varint(leat__wire *wire, uint64_t *out)
{
    return varint(wire, out);
}

static inline int tag(leat__wire *wire, leat__wire_field *field)
{
    uint64_t value;
    const unsigned char *at = wire->at;
    int status = varint(wire, &value);
    if (status)
        return status;
    if (value < 8 || value > UINT32_MAX) {
        wire->at = at;
        return malformed(wire, "no field has that number");
    }
    field->number = (uint32_t)(value >> 3);
    field->type = (leat__wire_type)(value & 7);
    return LEAT_OK;
}

static inline int bytes(leat__wire *wire, leat__wire_field *field,
                        uint64_t size)
{
    if (size > (size_t)(wire->end - wire->at))
        return leat_error(LEAT_EDATA,
                          "malformed protobuf at byte %td: field %u has %llu "
                          "bytes, %td are left",
                          wire->at - wire->start, field->number,
                          (unsigned long long)size, wire->end - wire->at);
    field->bytes = wire->at;
    field->size = (size_t)size;
    wire->at += size;
    return LEAT_OK;
}

/* The contents of a field that is no group. */
static inline int contents(leat__wire *wire, leat__wire_field *field)
{
    uint64_t size;
    switch (field->type) {
    case LEAT__WIRE_VARINT:
        return varint(wire, &field->value);
    case LEAT__WIRE_FIXED64:
        return bytes(wire, field, 8);
    case LEAT__WIRE_BYTES: {
        int status = varint(wire, &size);
        return status ? status : bytes(wire, field, size);
    }
    case LEAT__WIRE_FIXED32:
        return bytes(wire, field, 4);
    case LEAT__WIRE_GROUP_END:
        return malformed(wire, "a group ends that did not begin");
    default:
        return malformed(wire, "no such wire type");
    }
}

/* Skips everything up to the end of a group, including nested groups. */
static int skip_group(leat__wire *wire, uint32_t number)
{
    uint32_t open[GROUPS_MAX];
    int depth = 0;
    open[depth++] = number;
    while (depth > 0) {
        leat__wire_field field;
        if (wire->at == wire->end)
            return malformed(wire, "it ends within a group");
        int status = tag(wire, &field);
        if (status)
            return status;
        if (field.type == LEAT__WIRE_GROUP) {
            if (depth == GROUPS_MAX)
                return malformed(wire, "groups are nested too deeply");
            open[depth++] = field.number;
        } else if (field.type == LEAT__WIRE_GROUP_END) {
            if (open[--depth] != field.number)
                return malformed(wire, "a group ends that did not begin");
        } else if ((status = contents(wire, &field))) {
            return status;
        }
    }
    return LEAT_OK;
}

int leat__wire_next_any(leat__wire *wire, leat__wire_field *field)
{
    if (wire->at == wire->end)
        return LEAT_END;
    int status = tag(wire, field);
    if (status)
        return status;
    if (field->type != LEAT__WIRE_GROUP)
        return contents(wire, field);
    field->bytes = NULL;
    field->size = 0;
    return skip_group(wire, field->number);
}

size_t leat__wire_varint_size(uint64_t value)
{
    size_t n = 1;
    while (value >>= 7)
        n++;
    return n;
}

unsigned char *leat__wire_put_varint(unsigned char *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *out++ = (unsigned char)(value | 0x80);
    *out++ = (unsigned char)value;
    return out;
}

unsigned char *leat__wire_put_tag(unsigned char *out, int number,
                                  leat__wire_type type)
{
    *out++ = (unsigned char)(number << 3 | (int)type);
    return out;
}
