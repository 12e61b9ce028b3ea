/* import.h: what `leat import` imports, a file for each kind. */
#ifndef LEAT_TOOLS_IMPORT_IMPORT_H
#define LEAT_TOOLS_IMPORT_IMPORT_H

/*
 * Each is a command of its own: argv[0] is the kind. Returns the tool's exit
 * status.
 */
int import_mnist(int argc, char **argv);
int import_cifar10(int argc, char **argv);
int import_images(int argc, char **argv);
int import_pipeline(int argc, char **argv);

#endif
