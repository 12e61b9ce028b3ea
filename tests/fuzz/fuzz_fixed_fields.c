/*
 * fuzz_fixed_fields.c: any text as the fields of records of one size, a line
 * each. What is taken has whole, positive shapes, and a record is read.
 */
#include <leat.h>
#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_BYTES = 4096, TEXT_MAX = 4096 };

/* A file of as many bytes, made once. */
static int get_file(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, FILE_BYTES))
        abort();
    return fd;
}

/* `fixed:FILE,fields=(line,line,...)`; 0: too long. */
static int write_text(char *out, const char *lines)
{
    size_t used =
        (size_t)sprintf(out, "fixed:/proc/self/fd/%d,fields=(", get_file());
    while (*lines) {
        char line[TEXT_MAX];
        size_t length = strcspn(lines, "\n");
        memcpy(line, lines, length);
        line[length] = 0;
        lines += length + (lines[length] == '\n');
        if (used + 2 * length + 8 > TEXT_MAX)
            return 0;
        used += leat_args_escape(line, out + used, TEXT_MAX - used) - 1;
        out[used++] = *lines ? ',' : ')';
    }
    out[used] = 0;
    return 1;
}

static void check_specs(leat_reader *reader)
{
    const leat_field_spec *spec;
    int n;
    if (leat_reader_fields(reader, &spec, &n) || n < 1 || n > LEAT_MAX_FIELDS)
        abort();
    for (int i = 0; i < n; i++) {
        if (!spec[i].name || !*spec[i].name || spec[i].ndim > LEAT_MAX_DIMS)
            abort();
        for (int k = 0; k < spec[i].ndim; k++)
            if (spec[i].shape[k] < 1)
                abort();
    }
}

static void read_record(leat_reader *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status = leat_reader_next(reader, &sample);
    if (status != LEAT_OK && status != LEAT_END)
        abort();
    for (int i = 0; !status && i < sample.nfields; i++)
        for (size_t k = 0; k < sample.field[i].bytes; k++)
            (void)*((const volatile unsigned char *)sample.field[i].data + k);
    leat_sample_finish(&sample);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char lines[1024], text[TEXT_MAX];
    leat_pipeline *pipeline;
    leat_reader *reader;
    if (size == 0 || size >= sizeof(lines) || memchr(data, 0, size))
        return 0;
    memcpy(lines, data, size);
    lines[size] = 0;
    if (!write_text(text, lines) || leat_pipeline_parse(&pipeline, text))
        return 0;
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status == LEAT_OK) {
        check_specs(reader);
        read_record(reader);
        leat_reader_close(reader);
    } else if (status != LEAT_EINVAL && status != LEAT_EFORMAT) {
        abort();
    }
    return 0;
}
