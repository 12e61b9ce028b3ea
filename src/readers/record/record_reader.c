#include "readers/record/record_reader.h"
#include "readers/record/record_mapped.h"

/* Whether all files can be mapped as they are. */
static int check_plain(const leat__file_list *files,
                       leat__compression compression, bool *all_plain)
{
    int status = LEAT_OK;
    *all_plain = true;
    for (int i = 0; !status && *all_plain && i < files->n; i++)
        status =
            leat__byte_stream_probe(files->path[i], compression, all_plain);
    return status;
}

int leat__record_reader_open_files(const leat_open *open,
                                   leat__record_format *format,
                                   leat__file_list *files, leat_reader **out)
{
    leat__compression compression =
        (leat__compression)leat_args_number(open->args, "compression");
    bool all_plain;
    int status = check_plain(files, compression, &all_plain);
    if (!status)
        status = all_plain ? leat__record_mapped_open(open, format, files, out)
                           : leat__record_stream_open(open, format, files, out);
    leat__file_list_close(files);
    if (status)
        leat__record_format_destroy(format);
    return status;
}

int leat__record_reader_open(const leat_open *open, leat__record_format *format,
                             leat_reader **out)
{
    leat__file_list files;
    int status = leat__file_list_open(&files, open);
    if (!status)
        return leat__record_reader_open_files(open, format, &files, out);
    leat__record_format_destroy(format);
    return status;
}
