#include "base/error.h"
#include "readers/recordio/snappy.h"

static int unsupported(void)
{
    return leat_error(LEAT_EUNSUPPORTED,
                      "it is compressed by snappy, and leat was built without "
                      "it: install libsnappy-dev and build leat again");
}

int leat__snappy_length(const void *bytes, size_t size, size_t *out)
{
    (void)bytes;
    (void)size;
    *out = 0;
    return unsupported();
}

int leat__snappy_unpack(const void *bytes, size_t size, void *out,
                        size_t length)
{
    (void)bytes;
    (void)size;
    (void)out;
    (void)length;
    return unsupported();
}
