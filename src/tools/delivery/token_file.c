#include "tools/delivery/token_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Far above any token: of 64 bytes, and 32 a reader. */
#define TEXT_MAX (1 << 22)

int token_file_read(const char *path, leat_token *out)
{
    char *text;
    size_t size;
    int status = leat__file_read(&text, &size, path, TEXT_MAX);
    if (status)
        return status;
    /* What follows a NUL would not be looked at. */
    if (memchr(text, 0, size))
        status = leat_error(LEAT_EINVAL, "not a resume token: it holds a NUL");
    else
        status = leat_token_parse(out, text);
    leat__free(text);
    return status ? leat__error_context(status, "%s", path) : LEAT_OK;
}

int token_file_check(const char *path)
{
    struct stat found;
    leat_token token;
    int status = leat__file_check_renames(path);
    if (!status)
        status = leat__file_check_place(path);
    if (!status)
        status = leat__file_check_regular(path);
    if (status || lstat(path, &found) || found.st_size == 0)
        return status;
    leat_token_init(&token);
    status = token_file_read(path, &token);
    leat_token_finish(&token);
    if (status != LEAT_EINVAL && status != LEAT_EFORMAT)
        return status;
    return leat_error(LEAT_EINVAL,
                      "%s: exists and is not a resume token; remove it, or "
                      "write the token elsewhere",
                      path);
}

int token_file_write(struct staged_file *file, const char *path,
                     leat_token *token)
{
    const char *text = leat_token_text(token);
    if (!text)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    fprintf(file->stream, "%s\n", text);
    return staged_file_close(file, path);
}
