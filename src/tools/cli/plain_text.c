#include "tools/cli/plain_text.h"

#include <stdio.h>
#include <string.h>

/* Every byte of a path of 4096 escaped. */
enum { TEXTS = 4, TEXT_BYTES = 4 * 4096 + 1 };

int32_t plain_text_decode(const char *text, int *bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    /* By length: the least code point that needs as much. */
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = at[0] < 0x80   ? 1
                 : at[0] < 0xc0 ? 0
                 : at[0] < 0xe0 ? 2
                 : at[0] < 0xf0 ? 3
                 : at[0] < 0xf8 ? 4
                                : 0;
    *bytes = 1;
    if (length < 2)
        return length ? at[0] : -1;
    int32_t code = at[0] & (0x7f >> length);
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < least[length] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff))
        return -1;
    *bytes = length;
    return code;
}

bool plain_text_is_plain(int32_t code)
{
    if (code < 0xa0)
        return code >= 0x20 && code < 0x7f;
    return code != 0x61c && code != 0x200e && code != 0x200f &&
           (code < 0x2028 || code > 0x202e) &&
           (code < 0x2066 || code > 0x2069) && code != 0xfeff;
}

void plain_text_write(char *out, size_t size, const char *text)
{
    size_t used = 0;
    while (*text) {
        int bytes;
        bool is_plain = plain_text_is_plain(plain_text_decode(text, &bytes));
        if (used + (size_t)bytes * (is_plain ? 1 : 4) >= size)
            break;
        for (int i = 0; i < bytes; i++, text++)
            if (is_plain)
                out[used++] = *text;
            else
                used += (size_t)sprintf(out + used, "\\x%02x",
                                        (unsigned)(unsigned char)*text);
    }
    out[used] = 0;
}

const char *plain_text(const char *text)
{
    static char texts[TEXTS][TEXT_BYTES];
    static int turn;
    turn = (turn + 1) % TEXTS;
    plain_text_write(texts[turn], TEXT_BYTES, text);
    return texts[turn];
}
