#include "readers/record/record_reader.h"
#include "readers/record/record_mapped.h"

int leat__record_reader_open(const leat_open *open, leat__record_format *format,
                             leat_reader **out)
{
    leat__file_list list = {0};
    int status = leat__file_list_open(&list, open->args);
    if (!status)
        status = leat__record_mapped_open(open, format, &list, out);
    leat__file_list_close(&list);
    if (status)
        leat__record_format_destroy(format);
    return status;
}
