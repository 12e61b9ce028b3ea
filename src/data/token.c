/*
 * The text is base64 of the bytes followed by their CRC-32, with the URL-safe
 * alphabet and without padding.
 */
#include "data/token.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>
#include <zlib.h>

#define CHECKSUM 4

/* Bounds hostile text; far above any token that leat writes. */
#define TEXT_MAX (1 << 26)

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void leat_token_init(leat_token *token)
{
    memset(token, 0, sizeof(*token));
}

void leat_token_finish(leat_token *token)
{
    if (!token)
        return;
    leat__free(token->bytes);
    leat__free(token->text);
    leat_token_init(token);
}

static int reserve(leat_token *token, size_t size)
{
    if (size <= token->capacity)
        return LEAT_OK;
    size_t capacity = size < 64 ? 64 : size + size / 2;
    unsigned char *bytes = leat__realloc(token->bytes, capacity);
    if (!bytes)
        return LEAT_ENOMEM;
    token->bytes = bytes;
    token->capacity = capacity;
    return LEAT_OK;
}

int leat_token_put(leat_token *token, const void *bytes, size_t size)
{
    int status = reserve(token, token->size + size);
    if (status || size == 0)
        return status;
    memcpy(token->bytes + token->size, bytes, size);
    token->size += size;
    leat__free(token->text);
    token->text = NULL;
    return LEAT_OK;
}

int leat_token_get(leat_token *token, void *bytes, size_t size)
{
    if (size > token->size - token->cursor)
        return leat_error(LEAT_EINVAL, "the resume token is too short for this "
                                       "pipeline: it belongs to another one");
    if (size > 0)
        memcpy(bytes, token->bytes + token->cursor, size);
    token->cursor += size;
    return LEAT_OK;
}

int leat__token_get_counts(leat_token *token, const char *name, int64_t out[],
                           int n)
{
    leat_token first = *token;
    for (int i = 0; i < n; i++) {
        int64_t count;
        int status = leat_token_get(&first, &count, sizeof(count));
        if (status)
            return status;
        if (count < 0 || count > LEAT__POSITION_MAX)
            return leat_error(LEAT_EINVAL,
                              "%s: the mark is none: expected a count from 0 "
                              "to %lld, found %lld",
                              name, (long long)LEAT__POSITION_MAX,
                              (long long)count);
    }
    return leat_token_get(token, out, (size_t)n * sizeof(*out));
}

int leat__token_get_position(leat_token *token, const char *name,
                             leat_position *out)
{
    int64_t at[2];
    int status = leat__token_get_counts(token, name, at, 2);
    if (!status)
        *out = (leat_position){at[0], at[1]};
    return status;
}

static uint32_t checksum(const unsigned char *bytes, size_t size)
{
    return (uint32_t)crc32_z(0, bytes, size);
}

static unsigned char byte_at(const leat_token *token, uint32_t sum, size_t i)
{
    if (i < token->size)
        return token->bytes[i];
    if (i < token->size + CHECKSUM)
        return (unsigned char)(sum >> (8 * (i - token->size)));
    return 0;
}

const char *leat_token_text(leat_token *token)
{
    if (token->text)
        return token->text;
    size_t bytes = token->size + CHECKSUM;
    size_t letters = (bytes * 4 + 2) / 3;
    char *text = leat__alloc(letters + 4);
    if (!text)
        return NULL;
    uint32_t sum = checksum(token->bytes, token->size);
    for (size_t i = 0, j = 0; i < bytes; i += 3, j += 4) {
        uint32_t word = (uint32_t)byte_at(token, sum, i) << 16 |
                        (uint32_t)byte_at(token, sum, i + 1) << 8 |
                        byte_at(token, sum, i + 2);
        for (int k = 0; k < 4; k++)
            text[j + (size_t)k] = alphabet[(word >> (18 - 6 * k)) & 63];
    }
    text[letters] = 0;
    return token->text = text;
}

static int decode(leat_token *token, const char *text, size_t letters)
{
    uint32_t word = 0;
    int bits = 0;
    for (size_t i = 0; i < letters; i++) {
        const char *letter = strchr(alphabet, text[i]);
        if (!letter)
            return leat_error(LEAT_EINVAL,
                              "not a resume token: invalid letter at %zu",
                              i + 1);
        word = word << 6 | (uint32_t)(letter - alphabet);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            token->bytes[token->size++] = (unsigned char)(word >> bits);
        }
    }
    if (token->size < CHECKSUM)
        return leat_error(LEAT_EINVAL, "not a resume token: too short");
    /* Excess bits of the last letter must be 0, so that each token has one
     * text. */
    if (bits == 6 || (word & ((1u << bits) - 1)) != 0)
        return leat_error(LEAT_EINVAL,
                          "not a resume token: its last letter is damaged");
    return LEAT_OK;
}

/* Of at least CHECKSUM bytes. */
static int check(leat_token *token)
{
    token->size -= CHECKSUM;
    uint32_t found = 0;
    for (size_t i = 0; i < CHECKSUM; i++)
        found |= (uint32_t)token->bytes[token->size + i] << (8 * i);
    if (found != checksum(token->bytes, token->size))
        return leat_error(LEAT_EINVAL, "the resume token is damaged: its "
                                       "checksum does not match");
    return LEAT_OK;
}

/* The length without trailing white space, such as an editor's line end. */
static size_t without_line_end(const char *text, size_t letters)
{
    while (letters > 0 && memchr(" \t\r\n", text[letters - 1], 4))
        letters--;
    return letters;
}

int leat_token_parse(leat_token *token, const char *text)
{
    leat_token parsed;
    leat_token_init(&parsed);
    if (!text)
        return leat_error(LEAT_EINVAL, "not a resume token: the text is NULL");
    size_t size = strnlen(text, TEXT_MAX + 1);
    if (size > TEXT_MAX)
        return leat_error(LEAT_EINVAL, "not a resume token: too long");
    int status = reserve(&parsed, size + 1);
    if (!status)
        status = decode(&parsed, text, without_line_end(text, size));
    if (!status)
        status = check(&parsed);
    if (status) {
        leat_token_finish(&parsed);
        return status;
    }
    leat_token_finish(token);
    *token = parsed;
    return LEAT_OK;
}
