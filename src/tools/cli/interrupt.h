/* interrupt.h: SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU as a flag, so that
 * commands can clean up. */
#ifndef LEAT_TOOLS_CLI_INTERRUPT_H
#define LEAT_TOOLS_CLI_INTERRUPT_H

#include <leat/status.h>

#include <stdbool.h>

/*
 * From now on the first of these signals sets the flag and ends stdout, whose
 * reader a write may wait for, and stderr where it is full; one more than half
 * a second later kills. SIGHUP stays ignored where it was, as under nohup. Call
 * it once there is something to clean up: a layer's setup may wait for a pipe,
 * which only a signal that kills ends. A SIGPIPE after another signal is passed
 * over: the line that says so may have lost its reader to the same signal. So
 * is a SIGXCPU, which the system repeats.
 */
void interrupt_catch(void);

/*
 * The same for a command that opens pipelines, and before it does so: what
 * these have begun to write is to go (cleanup.h). An opening may wait for a
 * pipe, so a signal that has not ended the command after a second kills it,
 * and removes its unfinished caches first.
 * No message is printed after a signal. interrupt_catch takes the place of this
 * once a command writes files itself. Where no thread can be started, nothing
 * is caught.
 */
void interrupt_catch_opening(void);

/* Whether a signal has arrived that ends the program without a message. */
bool interrupt_is_quiet(void);

/* LEAT_OK, or LEAT_ECANCELLED with its line once a signal has arrived. */
int interrupt_check(void);

/*
 * From now on a signal, also one that came before, calls `cancel(object)` on a
 * thread of its own, so that reads which wait for a pipe end. interrupt_unwatch
 * undoes it, and waits for a call that has begun. Where no thread can be
 * started, a signal kills until then, as nothing else ends such reads.
 */
void interrupt_watch(void (*cancel)(void *object), void *object);
void interrupt_unwatch(const void *object);

/*
 * From now on, until interrupt_release, a second signal does not kill: of what
 * is done in between there must be all or nothing. A command checks then
 * whether the first one has come.
 */
void interrupt_hold(void);
void interrupt_release(void);

/*
 * Around the write of a message to stderr, on any thread: it waits for one that
 * is being written. A signal ends a message that nobody reads, and what is
 * begun after one takes a second at most.
 */
void interrupt_begin_message(void);
void interrupt_end_message(void);

/* `status`; where a signal cancelled the call, with the line of interrupt_check
 * as its error line. */
int interrupt_explain(int status);

/* Dies of the signal that arrived, if any, as the shell expects; as the first
 * process of a container it exits with 128 plus its number. */
void interrupt_obey(void);

#endif
