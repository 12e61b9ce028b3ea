#include "device/transform_rows.h"

/* Channels that have vector code for changing the layout. */
#define COLORS 3
/* The least that leat__row_spread takes. */
#define SPREAD_WIDTH 16
/* Columns converted at a time between layouts, so that buffers stay in L1. */
#define COLUMNS 512
/* Pixels of a tile with as many rows as fit: planes are written in long runs.
 */
#define TILE_BYTES (sizeof(double) * COLORS * COLUMNS)

/* What the rows of one image have in common. */
typedef struct row_plan {
    const leat__row_kernels *kernels;
    const leat__transform_job *job;
    const leat__transform_image *image;
    leat__row_convert *convert;
    size_t source_size; /* bytes of an element */
    size_t top_size;
    size_t mean_size;
    size_t channels;
    int source;           /* LEAT__ROW_... */
    int top;              /* LEAT__ROW_... */
    int source_is_planar; /* one channel is both planar and interleaved */
    int top_is_planar;
} row_plan;

static int row_type(leat_dtype dtype)
{
    if (dtype == LEAT_UINT8)
        return LEAT__ROW_UINT8;
    return dtype == LEAT_FLOAT32 ? LEAT__ROW_FLOAT32 : LEAT__ROW_FLOAT64;
}

static size_t row_size(int type)
{
    return type == LEAT__ROW_UINT8     ? 1
           : type == LEAT__ROW_FLOAT32 ? sizeof(float)
                                       : sizeof(double);
}

static double mean_value(const leat__transform_job *job, size_t channel)
{
    if (!job->mean_value)
        return 0;
    if (job->mean_values == 1)
        channel = 0;
    if (job->top_type == LEAT_FLOAT64)
        return ((const double *)job->mean_value)[channel];
    return ((const float *)job->mean_value)[channel];
}

/* The mean of a pixel of the crop; without a mean image, any address. */
static const unsigned char *mean_at(const row_plan *plan, size_t channel,
                                    size_t row, size_t column)
{
    const leat__transform_job *job = plan->job;
    if (!job->mean)
        return (const unsigned char *)&job->scale;
    row += channel * (size_t)job->mean_height + (size_t)plan->image->h_off;
    column += (size_t)plan->image->w_off;
    return (const unsigned char *)job->mean +
           (row * (size_t)job->mean_width + column) * plan->mean_size;
}

/* A pixel of the crop in a planar source. */
static const unsigned char *plane_at(const row_plan *plan, size_t channel,
                                     size_t row, size_t column)
{
    const leat__transform_image *image = plan->image;
    row += channel * (size_t)image->height + (size_t)image->h_off;
    column += (size_t)image->w_off;
    return (const unsigned char *)image->pixels +
           (row * (size_t)image->width + column) * plan->source_size;
}

/* Whether source, mean and top alike are contiguous, and one value for all. */
static int is_one_row(const row_plan *plan)
{
    const leat__transform_job *job = plan->job;
    const leat__transform_image *image = plan->image;
    return plan->source_is_planar && plan->top_is_planar &&
           job->height == image->height && job->width == image->width &&
           !image->mirror && (!job->mean_value || job->mean_values == 1);
}

/* Without a mean image its address is any, which lasts. */
static leat__row_run one_row(const row_plan *plan)
{
    const leat__transform_job *job = plan->job;
    return (leat__row_run){
        .source = plan->image->pixels,
        .mean = job->mean ? job->mean : plan->kernels,
        .rows = 1,
        .width = plan->channels * (size_t)job->height * (size_t)job->width,
        .mean_value = mean_value(job, 0),
        .scale = job->scale,
    };
}

static void convert_one_row(const row_plan *plan, unsigned char *top)
{
    leat__row_run run = one_row(plan);
    run.top = top;
    plan->convert(&run);
}

/* Planes to planes; those that follow each other are made one. */
static inline void convert_planes(const row_plan *plan, unsigned char *top)
{
    const leat__transform_job *job = plan->job;
    const leat__transform_image *image = plan->image;
    size_t channels = plan->channels;
    leat__row_run run = {
        .source_stride = (size_t)image->width * plan->source_size,
        .mean_stride = (size_t)job->mean_width * plan->mean_size,
        .top_stride = (size_t)job->width * plan->top_size,
        .rows = (size_t)job->height,
        .width = (size_t)job->width,
        .scale = job->scale,
    };
    size_t top_plane = run.rows * run.top_stride;
    if (job->height == image->height &&
        (!job->mean_value || job->mean_values == 1)) {
        run.rows *= channels;
        channels = 1;
    }
    if (job->width == image->width && !image->mirror) {
        run.width *= run.rows;
        run.rows = 1;
    }
    for (size_t c = 0; c < channels; c++) {
        run.source = plane_at(plan, c, 0, 0);
        run.mean = mean_at(plan, c, 0, 0);
        run.mean_value = mean_value(job, c);
        run.top = top + c * top_plane;
        plan->convert(&run);
    }
}

/* A part of the top, in its own rows and columns. */
typedef struct tile {
    size_t row;
    size_t rows;
    size_t column; /* before the mirror */
    size_t columns;
} tile;

/* Channel `c` of n pixels, one by one: other than 3 channels. */
static void gather(const row_plan *plan, const unsigned char *pixels, size_t c,
                   size_t n, unsigned char *plane)
{
    size_t size = plan->source_size;
    size_t step = plan->channels * size;
    pixels += c * size;
    if (size == 1) {
        for (size_t i = 0; i < n; i++)
            plane[i] = pixels[i * step];
        return;
    }
    for (size_t i = 0; i < n; i++)
        memcpy(plane + i * sizeof(float), pixels + i * step, sizeof(float));
}

static void scatter(const row_plan *plan, const unsigned char *plane, size_t c,
                    size_t n, unsigned char *pixels)
{
    size_t size = plan->top_size;
    size_t step = plan->channels * size;
    pixels += c * size;
    if (plan->top == LEAT__ROW_UINT8) {
        for (size_t i = 0; i < n; i++)
            pixels[i * step] = plane[i];
    } else if (plan->top == LEAT__ROW_FLOAT32) {
        for (size_t i = 0; i < n; i++)
            memcpy(pixels + i * step, plane + i * sizeof(float), sizeof(float));
    } else {
        for (size_t i = 0; i < n; i++)
            memcpy(pixels + i * step, plane + i * sizeof(double),
                   sizeof(double));
    }
}

/*
 * Channel `c` of an interleaved tile, as rows without gaps in `planes`; with 3
 * channels the first call does them all.
 */
static const unsigned char *split_tile(const row_plan *plan, const tile *part,
                                       size_t c, unsigned char *planes)
{
    const leat__transform_image *image = plan->image;
    size_t pixel_size = plan->channels * plan->source_size;
    size_t count = part->rows * part->columns;
    const unsigned char *pixels =
        (const unsigned char *)image->pixels +
        ((part->row + (size_t)image->h_off) * (size_t)image->width +
         (size_t)image->w_off + part->column) *
            pixel_size;
    for (size_t row = 0; row < part->rows; row++) {
        unsigned char *to = planes + row * part->columns * plan->source_size;
        if (plan->channels != COLORS)
            gather(plan, pixels, c, part->columns, to);
        else if (c == 0)
            plan->kernels->split[plan->source](pixels, to, count,
                                               part->columns);
        pixels += (size_t)image->width * pixel_size;
    }
    return planes +
           (plan->channels == COLORS ? c : 0) * count * plan->source_size;
}

/* An interleaved tile to planes. */
static void convert_to_planes(const row_plan *plan, const tile *part,
                              unsigned char *top)
{
    _Alignas(64) unsigned char planes[TILE_BYTES];
    const leat__transform_job *job = plan->job;
    size_t width = (size_t)job->width;
    size_t to = plan->image->mirror ? width - part->column - part->columns
                                    : part->column;
    leat__row_run run = {
        .source_stride = part->columns * plan->source_size,
        .mean_stride = (size_t)job->mean_width * plan->mean_size,
        .top_stride = width * plan->top_size,
        .rows = part->rows,
        .width = part->columns,
        .scale = job->scale,
    };
    for (size_t c = 0; c < plan->channels; c++) {
        size_t row = c * (size_t)job->height + part->row;
        run.source = split_tile(plan, part, c, planes);
        run.mean = mean_at(plan, c, part->row, part->column);
        run.mean_value = mean_value(job, c);
        run.top = top + (row * width + to) * plan->top_size;
        plan->convert(&run);
    }
}

/* A tile of one row to interleaved pixels. */
static void convert_to_pixels(const row_plan *plan, const tile *part,
                              unsigned char *top)
{
    /* A row of bytes or floats, and one of what they become. */
    _Alignas(64) unsigned char planes[sizeof(float) * COLORS * COLUMNS];
    _Alignas(64) unsigned char results[TILE_BYTES];
    const leat__transform_job *job = plan->job;
    const leat__transform_image *image = plan->image;
    size_t width = (size_t)job->width;
    size_t to =
        image->mirror ? width - part->column - part->columns : part->column;
    unsigned char *pixels =
        top + (part->row * width + to) * plan->channels * plan->top_size;
    leat__row_run run = {
        .rows = 1, .width = part->columns, .scale = job->scale};
    for (size_t c = 0; c < plan->channels; c++) {
        if (plan->source_is_planar)
            run.source = plane_at(plan, c, part->row, part->column);
        else
            run.source = split_tile(plan, part, c, planes);
        run.mean = mean_at(plan, c, part->row, part->column);
        run.mean_value = mean_value(job, c);
        run.top = results + (plan->channels == COLORS ? c : 0) * part->columns *
                                plan->top_size;
        plan->convert(&run);
        if (plan->channels != COLORS)
            scatter(plan, results, c, part->columns, pixels);
    }
    if (plan->channels == COLORS)
        plan->kernels->join[plan->top](results, part->columns, pixels,
                                       part->columns);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void convert_tiles(const row_plan *plan, unsigned char *top)
{
    size_t width = (size_t)plan->job->width;
    size_t height = (size_t)plan->job->height;
    size_t rows = 1;
    if (plan->top_is_planar)
        rows =
            TILE_BYTES / (COLORS * plan->source_size * smaller(width, COLUMNS));
    tile part = {0};
    for (; part.row < height; part.row += part.rows) {
        part.rows = smaller(height - part.row, rows);
        for (part.column = 0; part.column < width;
             part.column += part.columns) {
            part.columns = smaller(width - part.column, COLUMNS);
            if (plan->top_is_planar)
                convert_to_planes(plan, &part, top);
            else
                convert_to_pixels(plan, &part, top);
        }
    }
}

/* What a decoded image is for most nets; the kernels know it in one go. */
static int can_spread(const row_plan *plan)
{
    return plan->channels == COLORS && plan->source == LEAT__ROW_UINT8 &&
           plan->top == LEAT__ROW_FLOAT32 && plan->top_is_planar &&
           plan->job->width >= SPREAD_WIDTH && plan->kernels->spread[0][0];
}

static void spread_pixels(const row_plan *plan, unsigned char *top)
{
    const leat__transform_job *job = plan->job;
    const leat__transform_image *image = plan->image;
    size_t pitch = (size_t)image->width * COLORS;
    size_t plane = (size_t)job->height * (size_t)job->width * plan->top_size;
    leat__row_run run[COLORS] = {{
        .source = (const unsigned char *)image->pixels +
                  (size_t)image->h_off * pitch + (size_t)image->w_off * COLORS,
        .source_stride = pitch,
        .mean_stride = (size_t)job->mean_width * plan->mean_size,
        .top_stride = (size_t)job->width * plan->top_size,
        .rows = (size_t)job->height,
        .width = (size_t)job->width,
        .scale = job->scale,
    }};
    for (size_t c = 0; c < COLORS; c++) {
        run[c] = run[0];
        run[c].mean = mean_at(plan, c, 0, 0);
        run[c].mean_value = mean_value(job, c);
        run[c].top = top + c * plane;
    }
    plan->kernels->spread[!!job->mean][!!image->mirror](run);
}

static inline row_plan make_plan(const leat__row_kernels *kernels,
                                 const leat__transform_job *job,
                                 const leat__transform_image *image)
{
    int source_type = row_type(image->type);
    int top_type = row_type(job->top_type);
    return (row_plan){
        .kernels = kernels,
        .job = job,
        .image = image,
        .convert = kernels->convert[source_type][top_type][!!job->mean]
                                   [!!image->mirror],
        .source_size = source_type == LEAT__ROW_UINT8 ? 1 : sizeof(float),
        .top_size = row_size(top_type),
        .mean_size =
            top_type == LEAT__ROW_FLOAT64 ? sizeof(double) : sizeof(float),
        .channels = (size_t)job->channels,
        .source = source_type,
        .top = top_type,
        .source_is_planar = image->layout == LEAT_NCHW || job->channels == 1,
        .top_is_planar = job->layout == LEAT_NCHW || job->channels == 1,
    };
}

/* A copy: the plan of planes, which nobody else sees, is not kept in memory. */
static void convert_interleaved(row_plan plan, unsigned char *top)
{
    if (can_spread(&plan))
        spread_pixels(&plan, top);
    else
        convert_tiles(&plan, top);
}

void leat__transform_rows(const leat__row_kernels *kernels,
                          const leat__transform_job *job,
                          const leat__transform_image *image, void *top)
{
    row_plan plan = make_plan(kernels, job, image);
    if (is_one_row(&plan))
        convert_one_row(&plan, top);
    else if (plan.source_is_planar && plan.top_is_planar)
        convert_planes(&plan, top);
    else
        convert_interleaved(plan, top);
}

leat__row_convert *leat__transform_one_row(const leat__row_kernels *kernels,
                                           const leat__transform_job *job,
                                           const leat__transform_image *image,
                                           leat__row_run *out)
{
    row_plan plan = make_plan(kernels, job, image);
    if (!is_one_row(&plan))
        return NULL;
    *out = one_row(&plan);
    return plan.convert;
}
