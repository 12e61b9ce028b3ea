/*
 * write_jpeg.c: writes one small test JPEG through libjpeg-turbo, for
 * record_image_digests.py.
 *
 *   write_jpeg WIDTH HEIGHT SPACE SAMPLING OPTIONS [APP1-FILE...] > out.jpg
 *
 * SPACE: gray, ycc, rgb, cmyk, ycck. SAMPLING: of the first component, as 2x2.
 * OPTIONS: letters: p progressive, a arithmetic, r restart after each MCU row,
 * n no Huffman tables in the file, s one scan for each component, - none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define QUALITY 75

typedef struct color_space {
    const char *name;
    J_COLOR_SPACE in, stored;
    int components;
} color_space;

static const color_space spaces[] = {
    {"gray", JCS_GRAYSCALE, JCS_GRAYSCALE, 1},
    {"ycc", JCS_RGB, JCS_YCbCr, 3},
    {"rgb", JCS_RGB, JCS_RGB, 3},
    {"cmyk", JCS_CMYK, JCS_CMYK, 4},
    {"ycck", JCS_CMYK, JCS_YCCK, 4},
};

static const color_space *find_space(const char *name)
{
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (!strcmp(spaces[i].name, name))
            return &spaces[i];
    fprintf(stderr, "write_jpeg: no colour space '%s'\n", name);
    exit(2);
}

/* Ramps that differ from component to component, and a square with edges. */
static unsigned char sample(unsigned x, unsigned y, int component)
{
    unsigned in_square = x % 16 > 4 && x % 16 < 11 && y % 12 > 3 && y % 12 < 8;
    unsigned ramp = component % 2 ? y * 9 + x * 2 : x * 7 + y * 3;
    return (unsigned char)(in_square ? 230 - ramp / 2 : ramp + 20);
}

static void write_app1(j_compress_ptr codec, const char *path)
{
    static unsigned char bytes[65533];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    size_t n = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    jpeg_write_marker(codec, JPEG_APP0 + 1, bytes, (unsigned)n);
}

static void write_rows(j_compress_ptr codec)
{
    size_t n = (size_t)codec->input_components;
    unsigned char *row = malloc(codec->image_width * n);
    if (!row)
        exit(1);
    for (unsigned y = 0; y < codec->image_height; y++) {
        for (unsigned x = 0; x < codec->image_width; x++)
            for (size_t c = 0; c < n; c++)
                row[x * n + c] = sample(x, y, (int)c);
        jpeg_write_scanlines(codec, &row, 1);
    }
    free(row);
}

static void set_options(j_compress_ptr codec, const char *options)
{
    static jpeg_scan_info scans[4];
    if (strchr(options, 'p'))
        jpeg_simple_progression(codec);
    if (strchr(options, 's')) {
        for (int c = 0; c < codec->num_components; c++)
            scans[c] = (jpeg_scan_info){
                .comps_in_scan = 1, .component_index = {c}, .Se = 63};
        codec->scan_info = scans;
        codec->num_scans = codec->num_components;
    }
    codec->arith_code = strchr(options, 'a') != NULL;
    codec->restart_in_rows = strchr(options, 'r') != NULL;
    if (strchr(options, 'n'))
        jpeg_suppress_tables(codec, TRUE);
    codec->optimize_coding = !strchr(options, 'n') && !codec->arith_code;
}

static void keep_quantization(j_compress_ptr codec)
{
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        if (codec->quant_tbl_ptrs[i])
            codec->quant_tbl_ptrs[i]->sent_table = FALSE;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: write_jpeg WIDTH HEIGHT SPACE SAMPLING OPTIONS "
                        "[APP1-FILE...]\n");
        return 2;
    }
    const color_space *space = find_space(argv[3]);
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_stdio_dest(&codec, stdout);
    codec.image_width = (JDIMENSION)atoi(argv[1]);
    codec.image_height = (JDIMENSION)atoi(argv[2]);
    codec.in_color_space = space->in;
    codec.input_components = space->components;
    jpeg_set_defaults(&codec);
    jpeg_set_colorspace(&codec, space->stored);
    jpeg_set_quality(&codec, QUALITY, TRUE);
    codec.comp_info[0].h_samp_factor = argv[4][0] - '0';
    codec.comp_info[0].v_samp_factor = argv[4][2] - '0';
    if (space->stored == JCS_YCCK) {
        codec.comp_info[3].h_samp_factor = argv[4][0] - '0';
        codec.comp_info[3].v_samp_factor = argv[4][2] - '0';
    }
    set_options(&codec, argv[5]);
    int has_tables = !strchr(argv[5], 'n');
    if (!has_tables)
        keep_quantization(&codec);
    jpeg_start_compress(&codec, has_tables);
    for (int i = 6; i < argc; i++)
        write_app1(&codec, argv[i]);
    write_rows(&codec);
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    return 0;
}
