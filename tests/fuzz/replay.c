/* A main for fuzz targets without libFuzzer: runs every file of a corpus. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The copy has the file's exact size, so that ASan sees a byte read past it. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    int failed = fseek(file, 0, SEEK_END);
    long size = ftell(file);
    failed |= size < 0 || fseek(file, 0, SEEK_SET) != 0;
    uint8_t *data = failed ? NULL : malloc(size > 0 ? (size_t)size : 1);
    failed |= data == NULL || fread(data, 1, size, file) != (size_t)size;
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return failed ? -1 : 0;
}

static int replay_directory(const char *directory)
{
    struct dirent **entry;
    int n = scandir(directory, &entry, is_input, alphasort);
    if (n < 0) {
        perror(directory);
        return -1;
    }
    int failed = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, entry[i]->d_name);
        failed |= replay_file(path) != 0;
        free(entry[i]);
    }
    free(entry);
    printf("%d inputs from %s\n", n, directory);
    return failed || n == 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS...\n", argv[0]);
        return 2;
    }
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay_directory(argv[i]) != 0;
    return failed ? 1 : 0;
}
