/*
 * DESIGN. A row of MCUs is decoded into a band of samples for each component:
 * its blocks one by one, through the scan's bit reader and the inverse DCT;
 * then the band's rows become rows of pixels. Where a pixel takes from the
 * chroma of two rows, the last row waits for the next band, and a copy of it
 * precedes that. All blocks are entropy-decoded, so that damage anywhere is
 * found; only those that the region takes from are transformed. Segments
 * between restart markers that have none of these are only searched for their
 * end.
 */
#include "data/jpeg/baseline_jpeg.h"
#include "base/memory.h"
#include "data/jpeg/jpeg_kernels.h"
#include "data/jpeg/jpeg_segment.h"

#include <string.h>

#define TABLES 2
#define BLOCK 8 /* samples a side */
/* Upsampling takes a sample from beyond the pixel's own. */
#define REACH 3

struct leat__baseline_jpeg {
    const leat__jpeg_kernels *kernels;
    leat__huffman_dc dc[TABLES];
    leat__huffman_ac ac[TABLES];
    leat__jpeg_multipliers multipliers[3];
    /* Of the image. */
    int width, height;
    int h, v;        /* luma's sampling factors; chroma's are 1 */
    int mcu_columns; /* MCUs of a row */
    int mcu_rows;
    int channels; /* of a pixel */
    int spread;   /* of chroma: LEAT__JPEG_H1V1 and so on */
    leat__image_region region;
    /* MCUs that the region takes from: rows, and columns of these. */
    int first_row, end_row;
    int first_column, end_column;
    leat__jpeg_scan scan;
    leat__jpeg_segment segment;
    int restart_interval; /* MCUs; 0: the scan is one segment */
    int64_t restarts;     /* so far */
    int64_t left;         /* MCUs of the segment */
    bool is_skipped;      /* the segment, none of which is wanted */
};

int leat__baseline_jpeg_create(leat__baseline_jpeg **out)
{
    const leat__jpeg_kernels *kernels = leat__jpeg_kernels_choose();
    *out = NULL;
    if (!kernels)
        return LEAT_OK;
    leat__baseline_jpeg *jpeg = leat__alloc_aligned_zero(sizeof(*jpeg));
    if (!jpeg)
        return LEAT_ENOMEM;
    jpeg->kernels = kernels;
    *out = jpeg;
    return LEAT_OK;
}

void leat__baseline_jpeg_destroy(leat__baseline_jpeg *jpeg)
{
    leat__free(jpeg);
}

/* Sequential, of 8 bits, one scan of the components in their order. */
static bool is_baseline(const struct jpeg_decompress_struct *codec)
{
    int n = codec->num_components;
    bool is_color = n == 3 && codec->jpeg_color_space == JCS_YCbCr;
    bool is_gray = n == 1 && codec->jpeg_color_space == JCS_GRAYSCALE;
    if (codec->progressive_mode || codec->arith_code ||
        codec->data_precision != 8 || codec->comps_in_scan != n ||
        codec->Ss != 0 || codec->Se != DCTSIZE2 - 1 || codec->Ah != 0 ||
        codec->Al != 0 || !(is_color || is_gray))
        return false;
    for (int i = 0; i < n; i++)
        if (codec->cur_comp_info[i] != &codec->comp_info[i])
            return false;
    return true;
}

/* A single component's MCU is a block, whatever its factors. */
static bool take_sampling(leat__baseline_jpeg *jpeg,
                          const struct jpeg_decompress_struct *codec)
{
    const jpeg_component_info *component = codec->comp_info;
    bool is_color = codec->num_components == 3;
    jpeg->h = is_color ? component[0].h_samp_factor : 1;
    jpeg->v = is_color ? component[0].v_samp_factor : 1;
    if (jpeg->h > 2 || jpeg->v > 2)
        return false;
    for (int i = 1; i < codec->num_components; i++)
        if (component[i].h_samp_factor != 1 || component[i].v_samp_factor != 1)
            return false;
#if LIBJPEG_TURBO_VERSION_NUMBER < 2000090
    /* It had no triangular upsampling of rows alone. */
    if (jpeg->h == 1 && jpeg->v == 2)
        return false;
#endif
    jpeg->spread = (jpeg->h == 2 ? LEAT__JPEG_H2V1 : LEAT__JPEG_H1V1) +
                   (jpeg->v == 2 ? LEAT__JPEG_H1V2 : LEAT__JPEG_H1V1);
    /* libjpeg repeats samples of rows as short as that. */
    return jpeg->h == 1 || codec->image_width > 4;
}

/* Of n pixels from `first` on, with what upsampling reaches for: their MCUs. */
static void take_range(int first, int n, int size, int *first_mcu, int *end_mcu)
{
    *first_mcu = first < REACH ? 0 : (first - REACH) / size;
    *end_mcu = (first + n + REACH) / size + 1;
}

static void take_geometry(leat__baseline_jpeg *jpeg,
                          const struct jpeg_decompress_struct *codec,
                          const leat__image_region *region,
                          const leat__image_frame *frame)
{
    jpeg->width = frame->width;
    jpeg->height = frame->height;
    jpeg->channels = frame->channels;
    int mcu_width = BLOCK * jpeg->h, mcu_height = BLOCK * jpeg->v;
    jpeg->mcu_columns = (frame->width + mcu_width - 1) / mcu_width;
    jpeg->mcu_rows = (frame->height + mcu_height - 1) / mcu_height;
    jpeg->restart_interval = (int)codec->restart_interval;
    jpeg->restarts = 0;
    jpeg->region = region ? *region
                          : (leat__image_region){.rows = frame->height,
                                                 .columns = frame->width};
    take_range(jpeg->region.row, jpeg->region.rows, mcu_height,
               &jpeg->first_row, &jpeg->end_row);
    take_range(jpeg->region.column, jpeg->region.columns, mcu_width,
               &jpeg->first_column, &jpeg->end_column);
}

static bool take_multipliers(leat__baseline_jpeg *jpeg, int component,
                             const JQUANT_TBL *table)
{
    /* By zigzag index (ITU T.81, figure A.6). */
    static const unsigned char natural[64] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
        12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
        35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
        58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    if (!table)
        return false;
    leat__jpeg_multipliers *out = &jpeg->multipliers[component];
    for (int i = 0; i < 64; i++) {
        int value = table->quantval[natural[i]], to = jpeg->kernels->order[i];
        if (value > 255)
            return false;
        out->of[to] = (int16_t)value;
        out->limit[to] =
            (int16_t)(value ? LEAT__JPEG_COEFFICIENT_MAX / value : INT16_MAX);
    }
    return true;
}

static bool take_huffman(leat__baseline_jpeg *jpeg,
                         const struct jpeg_decompress_struct *codec,
                         const jpeg_component_info *component)
{
    int dc = component->dc_tbl_no, ac = component->ac_tbl_no;
    if (dc < 0 || dc >= TABLES || ac < 0 || ac >= TABLES)
        return false;
    const JHUFF_TBL *of_dc = codec->dc_huff_tbl_ptrs[dc];
    const JHUFF_TBL *of_ac = codec->ac_huff_tbl_ptrs[ac];
    return of_dc && of_ac &&
           leat__huffman_dc_make(&jpeg->dc[dc], of_dc->bits, of_dc->huffval) &&
           leat__huffman_ac_make(&jpeg->ac[ac], of_ac->bits, of_ac->huffval);
}

static bool take_tables(leat__baseline_jpeg *jpeg,
                        const struct jpeg_decompress_struct *codec)
{
    for (int i = 0; i < codec->num_components; i++) {
        const jpeg_component_info *component = &codec->comp_info[i];
        int quant = component->quant_tbl_no;
        if (quant < 0 || quant >= NUM_QUANT_TBLS ||
            !take_multipliers(jpeg, i, codec->quant_tbl_ptrs[quant]) ||
            !take_huffman(jpeg, codec, component))
            return false;
    }
    return true;
}

static void add_block(leat__baseline_jpeg *jpeg,
                      const jpeg_component_info *component, int index,
                      int width, int x, int y)
{
    leat__jpeg_scan *scan = &jpeg->scan;
    scan->block[scan->blocks++] = (leat__jpeg_block){
        .dc = &jpeg->dc[component->dc_tbl_no],
        .ac = &jpeg->ac[component->ac_tbl_no],
        .multipliers = &jpeg->multipliers[index],
        .component = index,
        .is_dropped = index > 0 && jpeg->channels == 1,
        .step = width * BLOCK,
        .offset = (size_t)(x * BLOCK) +
                  (size_t)(y * BLOCK) * (size_t)scan->band[index].pitch};
}

/* The blocks of an MCU, in the order of the data. */
static void list_blocks(leat__baseline_jpeg *jpeg,
                        const struct jpeg_decompress_struct *codec)
{
    jpeg->scan.blocks = 0;
    for (int i = 0; i < codec->num_components; i++) {
        int h = i ? 1 : jpeg->h, v = i ? 1 : jpeg->v;
        for (int y = 0; y < v; y++)
            for (int x = 0; x < h; x++)
                add_block(jpeg, &codec->comp_info[i], i, h, x, y);
    }
}

/* Bytes of a row of a component's band. */
static size_t band_pitch(const leat__baseline_jpeg *jpeg, int component)
{
    size_t h = component ? 1 : (size_t)jpeg->h;
    return (size_t)jpeg->mcu_columns * h * BLOCK + 2 * LEAT__JPEG_PAD;
}

static size_t band_bytes(const leat__baseline_jpeg *jpeg, int component)
{
    size_t v = component ? 1 : (size_t)jpeg->v;
    return band_pitch(jpeg, component) * (v * BLOCK + 1);
}

/* The window of the data and the bands, in one piece; NULL: no memory. */
static unsigned char *alloc_memory(leat__baseline_jpeg *jpeg, int components,
                                   leat__arena *arena)
{
    size_t bytes = LEAT__JPEG_SEGMENT_BYTES;
    for (int i = 0; i < components; i++)
        bytes += band_bytes(jpeg, i);
    unsigned char *memory = leat__arena_alloc(arena, bytes);
    if (!memory)
        return NULL;
    jpeg->segment.bytes = memory;
    unsigned char *next = memory + LEAT__JPEG_SEGMENT_BYTES;
    for (int i = 0; i < components; i++) {
        leat__jpeg_band *band = &jpeg->scan.band[i];
        band->pitch = (ptrdiff_t)band_pitch(jpeg, i);
        band->samples = next + band->pitch + LEAT__JPEG_PAD;
        next += band_bytes(jpeg, i);
    }
    return memory;
}

/* After a change of the window. */
static void set_stop(leat__baseline_jpeg *jpeg)
{
    const leat__jpeg_segment *segment = &jpeg->segment;
    const unsigned char *end = segment->bytes + segment->size;
    /* The reader is ahead of its bits by less than a word. */
    jpeg->scan.stop = segment->marker ? end + sizeof(jpeg->scan.bits)
                                      : end - LEAT__JPEG_OVERREAD;
}

/* Whether the region takes from any of the segment's MCUs. */
static bool is_segment_wanted(const leat__baseline_jpeg *jpeg)
{
    int64_t columns = jpeg->mcu_columns, n = jpeg->restart_interval;
    if (!n)
        return true;
    int64_t first = jpeg->restarts * n, end = first + n;
    int64_t row = first / columns, last_row = (end - 1) / columns;
    if (last_row < jpeg->first_row || row >= jpeg->end_row)
        return false;
    return row < last_row || (first - row * columns < jpeg->end_column &&
                              end - row * columns > jpeg->first_column);
}

static void begin_segment(leat__baseline_jpeg *jpeg)
{
    leat__jpeg_scan *scan = &jpeg->scan;
    jpeg->left = jpeg->restart_interval ? jpeg->restart_interval : INT64_MAX;
    jpeg->is_skipped = !is_segment_wanted(jpeg);
    if (jpeg->is_skipped) {
        leat__jpeg_segment_skip(&jpeg->segment);
        return;
    }
    leat__jpeg_segment_begin(&jpeg->segment);
    set_stop(jpeg);
    scan->next = jpeg->segment.bytes;
    scan->bits = 0;
    scan->count = 0;
    memset(scan->predicted, 0, sizeof(scan->predicted));
}

/* False: the segment has ended. */
static bool refill_window(leat__baseline_jpeg *jpeg)
{
    leat__jpeg_scan *scan = &jpeg->scan;
    if (jpeg->segment.marker)
        return false;
    leat__jpeg_segment_refill(&jpeg->segment,
                              (size_t)(scan->next - jpeg->segment.bytes));
    scan->next = jpeg->segment.bytes;
    set_stop(jpeg);
    return true;
}

/*
 * Whether all bytes of the segment are used, if any, and the marker is the
 * right one.
 */
static bool ends_well(leat__baseline_jpeg *jpeg, int marker)
{
    if (jpeg->is_skipped)
        return jpeg->segment.marker == marker;
    refill_window(jpeg);
    const leat__jpeg_segment *segment = &jpeg->segment;
    ptrdiff_t bytes = segment->bytes + segment->size - jpeg->scan.next;
    ptrdiff_t bits = 8 * bytes + (ptrdiff_t)jpeg->scan.count;
    return segment->marker == marker && bits >= 0 && bits < 8;
}

static bool pass_restart(leat__baseline_jpeg *jpeg)
{
    if (!ends_well(jpeg, LEAT__JPEG_RST0 + (int)(jpeg->restarts++ % 8)))
        return false;
    begin_segment(jpeg);
    return true;
}

/* MCUs of a segment from `first` to before `end`; false: irregular. */
static bool decode_mcus(leat__baseline_jpeg *jpeg, int first, int end)
{
    leat__jpeg_scan *scan = &jpeg->scan;
    jpeg->left -= end - first;
    while (first < end && !jpeg->is_skipped) {
        first = jpeg->kernels->decode(scan, first, end);
        if (scan->irregular)
            return false;
        if (scan->next > scan->stop && !refill_window(jpeg))
            return false;
    }
    return true;
}

/* False: irregular. */
static bool decode_row(leat__baseline_jpeg *jpeg)
{
    int mcu = 0;
    while (mcu < jpeg->mcu_columns) {
        if (!jpeg->left && !pass_restart(jpeg))
            return false;
        int64_t end = jpeg->mcu_columns;
        if (jpeg->left < end - mcu)
            end = mcu + jpeg->left;
        if (!decode_mcus(jpeg, mcu, (int)end))
            return false;
        mcu = (int)end;
    }
    return true;
}

/* Upsampling reads a sample beyond either end of a row: the last one again. */
static void extend_rows(const leat__baseline_jpeg *jpeg)
{
    int width = (jpeg->width + 1) / 2;
    for (int i = 1; i < 3; i++) {
        const leat__jpeg_band *band = &jpeg->scan.band[i];
        unsigned char *row = band->samples;
        for (int y = 0; y < BLOCK; y++, row += band->pitch) {
            row[-1] = row[0];
            row[width] = row[width - 1];
        }
    }
}

static void color_row(const leat__baseline_jpeg *jpeg, int y, int band_row,
                      unsigned char *pixels)
{
    const leat__jpeg_band *band = jpeg->scan.band;
    leat__jpeg_rows rows = {.luma = band[0].samples + band_row * band[0].pitch,
                            .bias = y % 2 ? 2 : 1};
    int row = jpeg->v == 2 ? y / 2 : y, other = row;
    if (jpeg->v == 2) {
        int last = (jpeg->height + 1) / 2 - 1;
        other = y % 2 ? row + 1 : row - 1;
        other = other < 0 ? 0 : other > last ? last : other;
    }
    int first = y - band_row; /* the band's */
    first = jpeg->v == 2 ? first / 2 : first;
    for (int i = 0; i < 2; i++) {
        const leat__jpeg_band *chroma = &band[i + 1];
        rows.chroma[i] = chroma->samples + (row - first) * chroma->pitch;
        rows.other_chroma[i] =
            chroma->samples + (other - first) * chroma->pitch;
    }
    const leat__image_region *region = &jpeg->region;
    jpeg->kernels->color[jpeg->spread](
        &rows, region->column & ~1, region->column + region->columns, pixels);
}

/* Luma alone, for each channel. */
static void copy_row(const leat__baseline_jpeg *jpeg, int band_row,
                     unsigned char *pixels)
{
    const leat__jpeg_band *band = jpeg->scan.band;
    const leat__image_region *region = &jpeg->region;
    const unsigned char *from =
        band->samples + band_row * band->pitch + region->column;
    unsigned char *to = pixels + region->column * jpeg->channels;
    if (jpeg->channels == 1) {
        memcpy(to, from, (size_t)region->columns);
        return;
    }
    for (int x = 0; x < region->columns; x++, to += 3)
        to[0] = to[1] = to[2] = from[x];
}

/* The pixels of the band at `mcu_row` that the region has. */
static void write_rows(const leat__baseline_jpeg *jpeg, int mcu_row,
                       unsigned char *pixels)
{
    const leat__image_region *region = &jpeg->region;
    int height = BLOCK * jpeg->v, start = mcu_row * height;
    /* The last row of a band takes from the next one. */
    int late = jpeg->v == 2 && mcu_row + 1 < jpeg->mcu_rows;
    int first = start - (jpeg->v == 2 && mcu_row > 0);
    int end = start + height - late;
    if (first < region->row)
        first = region->row;
    if (end > region->row + region->rows)
        end = region->row + region->rows;
    size_t pitch = (size_t)jpeg->width * (size_t)jpeg->channels;
    bool is_gray = jpeg->channels == 1 || jpeg->scan.blocks == 1;
    for (int y = first; y < end; y++) {
        unsigned char *row = pixels + (size_t)y * pitch;
        if (is_gray)
            copy_row(jpeg, y - start, row);
        else
            color_row(jpeg, y, y - start, row);
    }
}

/* The last row of each band to before its first. */
static void keep_last_rows(const leat__baseline_jpeg *jpeg, int components)
{
    for (int i = 0; i < components; i++) {
        const leat__jpeg_band *band = &jpeg->scan.band[i];
        int rows = i ? BLOCK : BLOCK * jpeg->v;
        unsigned char *first = band->samples - LEAT__JPEG_PAD;
        memcpy(first - band->pitch, first + (rows - 1) * band->pitch,
               (size_t)band->pitch);
    }
}

static bool decode_scan(leat__baseline_jpeg *jpeg, int components,
                        unsigned char *pixels)
{
    jpeg->scan.irregular = 0;
    begin_segment(jpeg);
    for (int row = 0; row < jpeg->mcu_rows; row++) {
        bool is_wanted = row >= jpeg->first_row && row < jpeg->end_row;
        jpeg->scan.first_wanted = jpeg->first_column;
        jpeg->scan.end_wanted = is_wanted ? jpeg->end_column : 0;
        if (!decode_row(jpeg))
            return false;
        if (!is_wanted)
            continue;
        if (components == 3 && jpeg->h == 2)
            extend_rows(jpeg);
        write_rows(jpeg, row, pixels);
        if (jpeg->v == 2)
            keep_last_rows(jpeg, components);
    }
    return ends_well(jpeg, LEAT__JPEG_EOI);
}

bool leat__baseline_jpeg_read(leat__baseline_jpeg *jpeg,
                              const struct jpeg_decompress_struct *codec,
                              leat__arena *arena,
                              const leat__image_region *region,
                              const leat__image_frame *frame,
                              unsigned char *pixels)
{
    if (!is_baseline(codec) || !take_sampling(jpeg, codec) ||
        !take_tables(jpeg, codec))
        return false;
    take_geometry(jpeg, codec, region, frame);
    int components = codec->num_components;
    unsigned char *memory = alloc_memory(jpeg, components, arena);
    if (!memory)
        return false;
    list_blocks(jpeg, codec);
    jpeg->segment.source = codec->src->next_input_byte;
    jpeg->segment.source_end =
        codec->src->next_input_byte + codec->src->bytes_in_buffer;
    bool is_decoded = decode_scan(jpeg, components, pixels);
    leat__arena_free(arena, memory);
    return is_decoded;
}
