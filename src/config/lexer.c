#include "config/lexer.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * isalpha and its kin follow the locale, and take no negative characters; the
 * format knows ASCII alone.
 */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool is_hex(char c)
{
    return digit_value(c) >= 0;
}

/* The next character; NUL at the end and for a NUL in the text. */
static char peek(const leat__lexer *lexer)
{
    return lexer->next < lexer->end ? *lexer->next : 0;
}

static void step(leat__lexer *lexer)
{
    if (lexer->next >= lexer->end)
        return;
    char c = *lexer->next++;
    if (c == '\n') {
        lexer->at.line++;
        lexer->at.column = 1;
    } else if (c == '\t') {
        lexer->at.column += 8 - (lexer->at.column - 1) % 8;
    } else {
        lexer->at.column++;
    }
}

static bool take(leat__lexer *lexer, char c)
{
    if (lexer->next >= lexer->end || *lexer->next != c)
        return false;
    step(lexer);
    return true;
}

static bool take_class(leat__lexer *lexer, bool (*is_class)(char))
{
    int taken = 0;
    while (is_class(peek(lexer))) {
        step(lexer);
        taken++;
    }
    return taken;
}

static int take_hex(leat__lexer *lexer, int n)
{
    while (n > 0 && is_hex(peek(lexer))) {
        step(lexer);
        n--;
    }
    return n == 0;
}

static void skip_space_and_comments(leat__lexer *lexer)
{
    for (;;) {
        take_class(lexer, is_space);
        if (!take(lexer, '#'))
            return;
        while (peek(lexer) && peek(lexer) != '\n')
            step(lexer);
    }
}

static int lex_exponent(leat__lexer *lexer)
{
    if (!take(lexer, 'e') && !take(lexer, 'E'))
        return LEAT_OK;
    lexer->current.type = LEAT__LEXEME_FLOAT;
    if (!take(lexer, '-'))
        take(lexer, '+');
    if (take_class(lexer, is_digit))
        return LEAT_OK;
    return leat__prototxt_location_error(
        lexer->name, lexer->at, "expected digits after the \"e\" of a number");
}

static int lex_decimal(leat__lexer *lexer)
{
    take_class(lexer, is_digit);
    if (lexer->current.type == LEAT__LEXEME_INTEGER && take(lexer, '.')) {
        lexer->current.type = LEAT__LEXEME_FLOAT;
        take_class(lexer, is_digit);
    }
    int status = lex_exponent(lexer);
    if (status)
        return status;
    if (take(lexer, 'f') || take(lexer, 'F'))
        lexer->current.type = LEAT__LEXEME_FLOAT;
    return LEAT_OK;
}

/* A number whose first character is taken; of a float that is its dot. */
static int lex_number(leat__lexer *lexer, char first)
{
    int status = LEAT_OK;
    lexer->current.type =
        first == '.' ? LEAT__LEXEME_FLOAT : LEAT__LEXEME_INTEGER;
    if (first == '0' && (take(lexer, 'x') || take(lexer, 'X'))) {
        if (!take_class(lexer, is_hex))
            return leat__prototxt_location_error(
                lexer->name, lexer->at, "expected hex digits after \"0x\"");
    } else if (first == '0' && is_digit(peek(lexer))) {
        take_class(lexer, is_octal);
        if (is_digit(peek(lexer)))
            return leat__prototxt_location_error(
                lexer->name, lexer->at,
                "expected octal digits after a leading 0, found %c",
                peek(lexer));
    } else {
        status = lex_decimal(lexer);
    }
    if (status)
        return status;
    if (is_letter(peek(lexer)))
        return leat__prototxt_location_error(
            lexer->name, lexer->at,
            "expected a space between a number and a name, found %c",
            peek(lexer));
    if (peek(lexer) == '.')
        return leat__prototxt_location_error(
            lexer->name, lexer->at, "expected the end of a number, found .");
    return LEAT_OK;
}

/* `\U` takes eight digits, and protobuf looks at the first three alone. */
static bool take_long_escape(leat__lexer *lexer)
{
    for (int i = 0; i < 2; i++)
        if (!take(lexer, '0'))
            return false;
    return (take(lexer, '0') || take(lexer, '1')) && take_hex(lexer, 5);
}

static int lex_escape(leat__lexer *lexer)
{
    static const char plain[] = "abfnrtv\\?'\"01234567";
    char c = peek(lexer);
    if (c && strchr(plain, c)) {
        step(lexer);
        return LEAT_OK;
    }
    if (take(lexer, 'x'))
        return take_hex(lexer, 1) ? LEAT_OK
                                  : leat__prototxt_location_error(
                                        lexer->name, lexer->at,
                                        "expected hex digits after \"\\x\"");
    if (take(lexer, 'u'))
        return take_hex(lexer, 4)
                   ? LEAT_OK
                   : leat__prototxt_location_error(
                         lexer->name, lexer->at,
                         "expected four hex digits after \"\\u\"");
    if (take(lexer, 'U'))
        return take_long_escape(lexer) ? LEAT_OK
                                       : leat__prototxt_location_error(
                                             lexer->name, lexer->at,
                                             "expected eight hex digits up to "
                                             "10ffff after \"\\U\"");
    return leat__prototxt_location_error(
        lexer->name, lexer->at,
        "expected an escape such as \\n, \\x41 or \\101 after a backslash");
}

static int lex_string(leat__lexer *lexer, char quote)
{
    lexer->current.type = LEAT__LEXEME_STRING;
    while (!take(lexer, quote)) {
        char c = peek(lexer);
        if (c == '\n')
            return leat__prototxt_location_error(
                lexer->name, lexer->at,
                "expected %c before the end of the line", quote);
        if (!c)
            return leat__prototxt_location_error(
                lexer->name, lexer->at, "expected %c, found %s", quote,
                lexer->next < lexer->end ? "a NUL byte"
                                         : "the end of the file");
        step(lexer);
        if (c == '\\') {
            int status = lex_escape(lexer);
            if (status)
                return status;
        }
    }
    return LEAT_OK;
}

/* `a.5` could be read in two ways, so protobuf refuses it. */
static int lex_dot(leat__lexer *lexer, const char *after_identifier)
{
    if (!is_digit(peek(lexer))) {
        lexer->current.type = LEAT__LEXEME_SYMBOL;
        return LEAT_OK;
    }
    if (after_identifier == lexer->current.text)
        return leat__prototxt_location_error(
            lexer->name, lexer->current.at,
            "expected a space between a name and a number");
    return lex_number(lexer, '.');
}

static int refuse_byte(leat__lexer *lexer)
{
    unsigned char byte = (unsigned char)*lexer->next;
    if (lexer->end - lexer->next >= 3 &&
        !memcmp(lexer->next, "\xef\xbb\xbf", 3))
        return leat__prototxt_location_error(
            lexer->name, lexer->at,
            "expected a field, found a byte order mark: save the file as UTF-8 "
            "without it");
    return leat__prototxt_location_error(
        lexer->name, lexer->at,
        "expected ASCII text outside of strings, found the byte 0x%02x", byte);
}

void leat__lexer_init(leat__lexer *lexer, const char *name, const char *text,
                      size_t size)
{
    *lexer = (leat__lexer){.name = name,
                           .next = text,
                           .end = text + size,
                           .at = {1, 1},
                           .current = {.text = text, .at = {1, 1}}};
}

int leat__lexer_advance(leat__lexer *lexer)
{
    const char *after_identifier =
        lexer->current.type == LEAT__LEXEME_IDENTIFIER ? lexer->next : NULL;
    skip_space_and_comments(lexer);
    lexer->current = (leat__lexeme){
        .type = LEAT__LEXEME_END, .text = lexer->next, .at = lexer->at};
    if (lexer->next == lexer->end)
        return LEAT_OK;
    char c = *lexer->next;
    if ((unsigned char)c < ' ' || (unsigned char)c >= 0x80)
        return refuse_byte(lexer);
    int status = LEAT_OK;
    step(lexer);
    if (is_letter(c)) {
        lexer->current.type = LEAT__LEXEME_IDENTIFIER;
        while (is_letter(peek(lexer)) || is_digit(peek(lexer)))
            step(lexer);
    } else if (is_digit(c)) {
        status = lex_number(lexer, c);
    } else if (c == '.') {
        status = lex_dot(lexer, after_identifier);
    } else if (c == '"' || c == '\'') {
        status = lex_string(lexer, c);
    } else {
        lexer->current.type = LEAT__LEXEME_SYMBOL;
    }
    lexer->current.size = (size_t)(lexer->next - lexer->current.text);
    return status;
}

/* Up to `digits` digits of a base; at least one is there. */
static uint32_t read_digits(const char **text, const char *end, int base,
                            int digits)
{
    uint32_t value = 0;
    while (digits-- > 0 && *text < end) {
        int digit = digit_value(**text);
        if (digit < 0 || digit >= base)
            break;
        value = value * (uint32_t)base + (uint32_t)digit;
        (*text)++;
    }
    return value;
}

/* Code points above Unicode's remain escapes, as in protobuf. */
static char *put_utf8(char *out, uint32_t code)
{
    if (code > 0x10ffff) {
        char text[11];
        snprintf(text, sizeof(text), "\\U%08x", (unsigned)code);
        return (char *)memcpy(out, text, 10) + 10;
    }
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xe0 | code >> 12);
        } else {
            *out++ = (char)(0xf0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (code & 0x3f));
    return out;
}

/* `\u` and `\U`; two halves of a surrogate pair give one character. */
static char *unescape_unicode(const char **text, const char *end, char *out)
{
    int digits = *(*text)++ == 'u' ? 4 : 8;
    uint32_t code = read_digits(text, end, 16, digits);
    if (code >= 0xd800 && code < 0xdc00 && end - *text >= 6 &&
        (*text)[0] == '\\' && (*text)[1] == 'u') {
        const char *second = *text + 2;
        uint32_t low = read_digits(&second, end, 16, 4);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            *text = second;
        }
    }
    return put_utf8(out, code);
}

static char *unescape(const char **text, const char *end, char *out)
{
    static const char from[] = "abfnrtv";
    static const char to[] = "\a\b\f\n\r\t\v";
    char c = **text;
    const char *simple = strchr(from, c);
    if (c == 'u' || c == 'U')
        return unescape_unicode(text, end, out);
    if (is_octal(c)) {
        *out++ = (char)read_digits(text, end, 8, 3);
        return out;
    }
    (*text)++;
    if (c == 'x')
        *out++ = (char)read_digits(text, end, 16, 2);
    else
        *out++ = simple ? to[simple - from] : c;
    return out;
}

/* The bytes of one letter or escape, which is skipped. */
static char *unquote_one(const char **text, const char *end, char *out)
{
    if (**text == '\\') {
        (*text)++;
        return unescape(text, end, out);
    }
    *out++ = *(*text)++;
    return out;
}

char *leat__lexeme_unquote(const leat__lexeme *lexeme, char *out)
{
    const char *text = lexeme->text + 1;
    const char *end = lexeme->text + lexeme->size - 1;
    while (text < end)
        out = unquote_one(&text, end, out);
    return out;
}

/* What gives byte *offset of the string; *offset is less the bytes before. */
static const char *find_byte(const leat__lexeme *lexeme, size_t *offset)
{
    const char *text = lexeme->text + 1;
    const char *end = lexeme->text + lexeme->size - 1;
    while (text < end) {
        char bytes[16]; /* an escape gives ten at most */
        const char *start = text;
        size_t size = (size_t)(unquote_one(&text, end, bytes) - bytes);
        if (*offset < size)
            return start;
        *offset -= size;
    }
    return end;
}

leat__prototxt_location leat__lexer_locate(const char *text, size_t size,
                                           leat__prototxt_location at,
                                           size_t offset)
{
    leat__lexer lexer, before;
    const char *found = NULL;
    leat__lexer_init(&lexer, "", text, size);
    while (lexer.next < lexer.end &&
           (lexer.at.line != at.line || lexer.at.column != at.column))
        step(&lexer);
    before = lexer;
    while (leat__lexer_advance(&lexer) == LEAT_OK &&
           lexer.current.type == LEAT__LEXEME_STRING) {
        found = find_byte(&lexer.current, &offset);
        if (found < lexer.current.text + lexer.current.size - 1)
            break;
    }
    while (before.next < found)
        step(&before);
    return before.at;
}
