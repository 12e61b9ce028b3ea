/* reader_identity.h: what tells a reader's data from other data. */
#ifndef LEAT_PIPELINE_READER_IDENTITY_H
#define LEAT_PIPELINE_READER_IDENTITY_H

#include <leat/ext/reader.h>

/*
 * leat_reader_save, with the revision of each reader after what it saved: also
 * tells the data from what they were before they were written again. Errors:
 * as leat_reader_save. One caller at a time.
 */
int leat__reader_identify(leat_reader *reader, leat_token *token);

#endif
