/* pipeline_text.h: pipelines from texts that stand in other files. */
#ifndef LEAT_PIPELINE_PIPELINE_TEXT_H
#define LEAT_PIPELINE_PIPELINE_TEXT_H

#include <leat/pipeline.h>

/*
 * leat_pipeline_parse whose error line is without the location in the text:
 * `*fault` is where it is; NULL: nowhere.
 */
int leat__pipeline_parse(leat_pipeline **out, const char *text,
                         const char **fault);

#endif
