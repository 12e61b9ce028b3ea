#include "tools/bench/peer.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

/* To the end, which makes the directories of its caches. */
static int read_pass(leat_reader *reader)
{
    leat_sample sample;
    leat_sample_init(&sample);
    int status;
    do
        status = leat_reader_next(reader, &sample);
    while ((!status || status == LEAT_EDATA) && !interrupt_check());
    leat_sample_finish(&sample);
    if (interrupt_check())
        output_exit(EXIT_FAILED);
    return status == LEAT_END
               ? leat_reader_seek(reader, (leat_position){0, 0}, NULL)
               : status;
}

int peer_open(leat_reader **out, const leat_pipeline *pipeline,
              leat_reader *first)
{
    int status = leat_pipeline_open(pipeline, out);
    if (status != LEAT_ESTATE || !first || leat_reader_is_endless(first))
        return status;
    status = read_pass(first);
    return status ? status : leat_pipeline_open(pipeline, out);
}

bool peer_require(leat_reader **out, const leat_pipeline *pipeline,
                  leat_reader *first)
{
    int status = peer_open(out, pipeline, first);
    if (status != LEAT_ESTATE || !first) {
        output_require(status);
        return true;
    }
    message_print(0, "one thread alone reads: no pass of this pipeline "
                     "completes its cache:dir, which one reader at a time "
                     "makes");
    return false;
}
