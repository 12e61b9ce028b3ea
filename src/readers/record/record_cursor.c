#include "readers/record/record_cursor.h"

void leat__record_cursor_init(leat__record_cursor *out,
                              const leat__record_files *files,
                              const leat__record_format *format)
{
    *out = (leat__record_cursor){.files = files, .format = format};
    out->walk.offset = files->source[0].file.first;
}

int leat__record_cursor_enter(leat__record_cursor *cursor, int file)
{
    cursor->file = file;
    cursor->walk = (leat__record_walk){0};
    cursor->awaited = 0;
    if (file >= cursor->files->n)
        return LEAT_END;
    const leat__record_source *source = &cursor->files->source[file];
    cursor->walk.offset = source->file.first;
    return leat__record_source_check(source);
}

/* Records of one size need no walk. */
static int step_by_stride(const leat__record_source *source,
                          leat__record_walk *walk, leat__record_span out[],
                          int n, int *got)
{
    const leat__record_file *file = &source->file;
    int64_t left = file->count - walk->record;
    if (left == 0)
        return LEAT_END;
    *got = n < left ? n : (int)left;
    for (int i = 0; i < *got; i++) {
        out[i] = (leat__record_span){walk->offset, file->stride};
        walk->offset += file->stride;
    }
    walk->record += *got;
    return LEAT_OK;
}

static int step_in_file(leat__record_cursor *cursor, int n, bool awaits,
                        leat__record_step *out)
{
    const leat__record_source *source = &cursor->files->source[cursor->file];
    out->before = cursor->walk;
    out->n = 0;
    if (!source->file.stride)
        return leat__record_source_walk(source, cursor->format,
                                        awaits ? &cursor->awaited : NULL,
                                        &cursor->walk, out->span, n, &out->n);
    int status = step_by_stride(source, &cursor->walk, out->span, n, &out->n);
    if (!status && awaits)
        status = leat__record_source_await(source, out->span, out->n);
    return status;
}

int leat__record_cursor_step(leat__record_cursor *cursor, int n, bool awaits,
                             leat__record_step *out)
{
    int status = LEAT_END;
    out->n = 0;
    while (status == LEAT_END && cursor->file < cursor->files->n) {
        status = step_in_file(cursor, n, awaits, out);
        if (status != LEAT_END)
            break;
        status = leat__record_cursor_enter(cursor, cursor->file + 1);
        if (status == LEAT_OK)
            status = LEAT_END;
    }
    return status;
}

void leat__record_cursor_return(leat__record_cursor *cursor,
                                leat__record_step *step, int n)
{
    cursor->walk = step->before;
    (void)step_in_file(cursor, n, false, step);
}

int leat__record_cursor_go_to(leat__record_cursor *cursor,
                              const leat__record_index *index, int file,
                              int64_t record)
{
    const leat__record_format *format = cursor->format;
    const leat__record_source *source = &cursor->files->source[file];
    const leat__record_window window = leat__record_source_window(source);
    int status = leat__record_cursor_enter(cursor, file);
    if (status || record == 0)
        return status;
    cursor->walk.record = record;
    cursor->walk.offset = leat__record_index_span(index, file, record).offset;
    return format->ops->resume && !source->file.stride
               ? format->ops->resume(format, &source->file, &window,
                                     &cursor->walk)
               : LEAT_OK;
}
