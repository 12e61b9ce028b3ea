#include "tools/import/gzip_input.h"

#include "tools/cli/input.h"

#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 128 << 10, GZIP_WINDOW = 15 + 16 };

static int out_of_memory(const struct gzip_input *input)
{
    return leat_error(LEAT_ENOMEM, "%s: out of memory", input->path);
}

static int take_memory(struct gzip_input *input)
{
    input->buffer = malloc(BUFFER_BYTES);
    if (input->buffer && inflateInit2(&input->z, GZIP_WINDOW) == Z_OK)
        return LEAT_OK;
    free(input->buffer);
    input->buffer = NULL;
    return out_of_memory(input);
}

int gzip_input_open(struct gzip_input *input, const char *path)
{
    int fd;
    int status = input_open(&fd, path);
    if (status)
        return status;
    *input = (struct gzip_input){.path = path, .fd = fd};
    status = input_look(fd, path, &input->opened);
    if (!status)
        status = take_memory(input);
    if (status)
        close(fd); /* Read-only: nothing is lost if it fails. */
    return status;
}

int gzip_input_check(const struct gzip_input *input)
{
    return input_check(input->fd, input->path, &input->opened);
}

void gzip_input_close(struct gzip_input *input)
{
    if (!input->buffer)
        return;
    inflateEnd(&input->z);
    free(input->buffer);
    close(input->fd); /* Read-only: nothing is lost if it fails. */
    memset(input, 0, sizeof(*input));
}

/* Has `n` bytes of input, or all that are left. */
static int need(struct gzip_input *input, unsigned n)
{
    z_stream *z = &input->z;
    while (z->avail_in < n && !input->has_ended) {
        size_t got;
        if (z->avail_in)
            memmove(input->buffer, z->next_in, z->avail_in);
        z->next_in = input->buffer;
        int status =
            input_read(input->fd, input->path, input->buffer + z->avail_in,
                       BUFFER_BYTES - z->avail_in, &got);
        if (status)
            return status;
        z->avail_in += (unsigned)got;
        input->has_ended = !got;
    }
    return LEAT_OK;
}

/* Decides what comes next: at the beginning, or after a member. */
static int begin_part(struct gzip_input *input)
{
    z_stream *z = &input->z;
    int status = need(input, 2);
    if (status)
        return status;
    bool is_first = input->part == GZIP_BEGIN;
    if (z->avail_in < 2 || z->next_in[0] != 0x1f || z->next_in[1] != 0x8b)
        input->part = is_first ? GZIP_PLAIN : GZIP_REST;
    else if (inflateReset(z) == Z_OK)
        input->part = GZIP_MEMBER;
    else
        status = out_of_memory(input);
    return status;
}

static int read_plain(struct gzip_input *input)
{
    z_stream *z = &input->z;
    int status = need(input, 1);
    unsigned n = z->avail_in < z->avail_out ? z->avail_in : z->avail_out;
    if (status || !n)
        return status;
    memcpy(z->next_out, z->next_in, n);
    z->next_in += n;
    z->avail_in -= n;
    z->next_out += n;
    z->avail_out -= n;
    return LEAT_OK;
}

static int read_member(struct gzip_input *input)
{
    z_stream *z = &input->z;
    int status = need(input, 1);
    if (status)
        return status;
    int code = inflate(z, Z_NO_FLUSH);
    if (code == Z_STREAM_END)
        input->part = GZIP_BETWEEN;
    if (code == Z_STREAM_END || code == Z_OK)
        return LEAT_OK;
    if (code == Z_MEM_ERROR)
        return out_of_memory(input);
    if (code == Z_BUF_ERROR)
        return leat_error(LEAT_EFORMAT, "%s: its gzip data ends early",
                          input->path);
    return leat_error(LEAT_EFORMAT, "%s: damaged gzip data: %s", input->path,
                      z->msg ? z->msg : "it cannot be decompressed");
}

/* Up to the end, or to the first byte that is no padding. */
static int pass_rest(struct gzip_input *input)
{
    z_stream *z = &input->z;
    int status = need(input, 1);
    for (; !status && z->avail_in && !input->is_cut;
         z->next_in++, z->avail_in--)
        input->is_cut = *z->next_in != 0;
    if (input->is_cut) {
        z->avail_in = 0;
        input->has_ended = true;
    }
    return status;
}

static bool is_at_end(const struct gzip_input *input)
{
    return input->has_ended && !input->z.avail_in &&
           (input->part == GZIP_PLAIN || input->part == GZIP_REST);
}

int gzip_input_read(struct gzip_input *input, void *out, size_t size,
                    size_t *got)
{
    z_stream *z = &input->z;
    int status = LEAT_OK;
    z->next_out = out;
    z->avail_out = (unsigned)size;
    while (!status && z->avail_out && !is_at_end(input)) {
        if (input->part == GZIP_PLAIN)
            status = read_plain(input);
        else if (input->part == GZIP_MEMBER)
            status = read_member(input);
        else if (input->part == GZIP_REST)
            status = pass_rest(input);
        else
            status = begin_part(input);
    }
    *got = size - z->avail_out;
    return status;
}
