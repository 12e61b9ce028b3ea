/* import.c: `leat import`, databases from other programs' files. */
#include "tools/import/import.h"

#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/kind.h"

#include <stddef.h>

int command_import(int argc, char **argv)
{
    static const struct kind kind[] = {
        {"mnist", import_mnist, "MNIST's IDX files, images and labels"},
        {"cifar10", import_cifar10, "the batches of CIFAR-10, binary version"},
        {"images", import_images, "image files, by a list of names and labels"},
        {"pipeline", import_pipeline, "what the readers of a pipeline give"},
        {NULL, NULL, NULL},
    };
    const struct kinds kinds = {"import", "KIND [options] ... OUT",
                                "Makes an LMDB of Caffe's Datums, all of it or "
                                "nothing. Rerun the same\n"
                                "command to resume a stopped import.",
                                kind};
    interrupt_catch();
    return kind_run(&kinds, argc, argv);
}
