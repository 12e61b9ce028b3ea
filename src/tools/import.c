/* import.c: `leat import`, databases from other programs' files. */
#include "tools/import.h"

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/message.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} kinds[] = {
    {"mnist", import_mnist, "MNIST's IDX files, images and labels"},
    {"cifar10", import_cifar10, "the batches of CIFAR-10, binary version"},
    {"images", import_images, "image files, by a list of names and labels"},
    {"pipeline", import_pipeline, "what the readers of a pipeline give"},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int print_help(void)
{
    printf("Usage: leat import KIND [options] ... OUT\n\n"
           "Makes an LMDB of Caffe's Datums, all of it or nothing. What was "
           "stopped is\ngone on with by the same command.\n\nKinds:\n");
    for (int i = 0; i < KINDS; i++)
        printf("  %-8s  %s\n", kinds[i].name, kinds[i].summary);
    printf("\nleat import KIND --help tells more.\n");
    return 0;
}

int command_import(int argc, char **argv)
{
    if (argc < 2)
        return message_misuse("import", "import: what shall be imported?");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return print_help();
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(argv[1], kinds[i].name) != 0)
            continue;
        interrupt_catch();
        return kinds[i].run(argc - 1, argv + 1);
    }
    return message_misuse("import", "import: there is no kind '%s'", argv[1]);
}
