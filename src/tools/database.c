#include "tools/database.h"

#include <leat/pipeline.h>

int database_open(leat_reader **out, const char *path)
{
    leat_pipeline *pipeline;
    int status = leat_pipeline_lmdb(&pipeline, path, NULL);
    if (status)
        return status;
    status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}
