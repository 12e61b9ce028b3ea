/*
 * fuzz_token.c: any text as a resume token; a valid one comes back the same,
 * but for white space after it.
 */
#include <leat/token.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the token's bytes in pieces, as readers do. */
static void take(leat_token *token)
{
    unsigned char bytes[7];
    size_t taken = 0;
    for (size_t i = 1; leat_token_get(token, bytes, i % 7 + 1) == LEAT_OK; i++)
        taken += i % 7 + 1;
    if (taken > token->size)
        abort();
}

/* Whether `text` is `token`, then nothing but what may follow a token. */
static int is_text_of(const char *text, const char *token)
{
    size_t size = strlen(token);
    return strncmp(text, token, size) == 0 &&
           strspn(text + size, " \t\r\n") == strlen(text + size);
}

/* The bytes themselves as a token: its text must parse to them. */
static void round_trip(const uint8_t *data, size_t size)
{
    leat_token token;
    leat_token back;
    leat_token_init(&token);
    leat_token_init(&back);
    if (leat_token_put(&token, data, size))
        abort();
    const char *text = leat_token_text(&token);
    if (!text || leat_token_parse(&back, text) || back.size != size ||
        (size > 0 && memcmp(back.bytes, data, size) != 0))
        abort();
    leat_token_finish(&token);
    leat_token_finish(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_token token;
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    leat_token_init(&token);
    if (leat_token_parse(&token, text) == LEAT_OK) {
        if (!is_text_of(text, leat_token_text(&token)))
            abort();
        take(&token);
    }
    leat_token_finish(&token);
    free(text);
    round_trip(data, size);
    return 0;
}
