/* interrupt.h: SIGINT, SIGTERM and SIGHUP as a flag, so that commands can tidy
 * up. */
#ifndef LEAT_TOOLS_CLI_INTERRUPT_H
#define LEAT_TOOLS_CLI_INTERRUPT_H

#include <leat/status.h>

/*
 * From now on each of these signals sets the flag, and kills half a second
 * later; SIGHUP stays ignored where it is, as behind nohup. To be called when
 * there is something to tidy up: a layer's setup may wait for a pipe, and only
 * a signal that kills ends that.
 */
void interrupt_catch(void);

/* LEAT_OK, or LEAT_ECANCELLED with its line once a signal came. */
int interrupt_check(void);

/*
 * From now on a signal puts an end to what is read from `fd`, also to a read
 * that blocks: interrupt_check tells it from the file's own. Before close,
 * interrupt_keep takes it back.
 */
int interrupt_end(int fd);
void interrupt_keep(int fd);

/* Dies of the signal that came, if one came, as the shell expects it. */
void interrupt_obey(void);

#endif
