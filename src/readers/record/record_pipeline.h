/* record_pipeline.h: pipelines over files of records, by code. */
#ifndef LEAT_READERS_RECORD_PIPELINE_H
#define LEAT_READERS_RECORD_PIPELINE_H

#include <leat/ext/reader.h>
#include <leat/files.h>

/*
 * Makes a pipeline of `type` over files; `more` is arguments of its own, each
 * after a comma. Errors: as in leat/files.h.
 */
int leat__record_pipeline(leat_pipeline **out, const leat_reader_type *type,
                          const char *const path[], int n, const char *more,
                          const leat_file_options *options);

#endif
