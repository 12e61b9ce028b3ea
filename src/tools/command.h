/* command.h: the tool's commands; argv[0] is the command's own name. */
#ifndef LEAT_TOOLS_COMMAND_H
#define LEAT_TOOLS_COMMAND_H

#include "tools/kind.h"

/* Each returns the tool's exit status, having said on stderr what is wrong. */
int command_synth(int argc, char **argv);
int command_import(int argc, char **argv);
int command_info(int argc, char **argv);
int command_show(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_cat(int argc, char **argv);
int command_mean(int argc, char **argv);
int command_dump(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_completion(int argc, char **argv);

/* All of them, as the tool's help lists them; its end has no name. */
const struct kind *command_list(void);

#endif
