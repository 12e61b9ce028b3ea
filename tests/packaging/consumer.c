/* A stranger's program: links leat, calls it, and reads its error line. */
#include <leat.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    int status = leat_pipeline_parse(&pipeline, "lmdb:no/such/folder");
    if (status == LEAT_OK)
        status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status >= 0 || strstr(leat_last_error(), "no/such/folder") == NULL) {
        printf("expected an error about the folder: %s\n", leat_last_error());
        return 1;
    }
    printf("leat %s: %s\n", leat_version(), leat_last_error());
    return 0;
}
