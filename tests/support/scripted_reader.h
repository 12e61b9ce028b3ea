/* scripted_reader.h: a reader that follows a script, and what it must give. */
#ifndef LEAT_TESTS_SCRIPTED_READER_H
#define LEAT_TESTS_SCRIPTED_READER_H

#include <leat/ext/reader.h>

enum { SCRIPT_MAX = 40 };

/*
 * A letter a record: g given, d deferred and good, x a bad record, D deferred
 * and bad, ! an error of the reader, ? deferred and an error of it. The end
 * follows the last letter.
 */
typedef struct script {
    const char *letters;
    int64_t at;
    int nexts, seeks, skips, materialized;
    leat_position sought;
    int in_order; /* seek knows no index but 0 */
} script_state;

extern script_state script;

/* The reader, open between set_up and tear_down, and its operations. */
extern leat_reader *scripted;
extern leat_reader_ops scripted_ops;

/* SCRIPT_MAX samples. */
extern leat_sample *scripted_out[SCRIPT_MAX];

/* A fixture of Check's. */
void scripted_set_up(void);
void scripted_tear_down(void);

/* Follows other letters from their beginning on, without skip and mark. */
void scripted_follow(const char *letters);

/* Seeks to the beginning, which clears what the last status left. */
void scripted_restart(void);
int scripted_go_to(int64_t epoch, int64_t index);

/* Operations for scripted_ops. */
int scripted_skip(leat_reader *reader, int64_t n, int64_t *skipped);
int scripted_mark(leat_reader *reader, leat_token *token);

/* The status that a letter gives, whoever does the work. */
int scripted_status_of(char letter);

void scripted_check_sample(const leat_sample *sample, int64_t record);
void scripted_check_line(int64_t record);

/* What scripted_next and scripted_materialize do with a record. */
void scripted_fill(leat_sample *sample, int64_t record);

/*
 * Reads on at `record`, `n` at a time, to the end or the first error of the
 * reader, checks all, and returns the record there.
 */
int64_t scripted_read(int64_t record, int n);

#endif
