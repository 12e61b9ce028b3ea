#include "device/transform_reference.h"

void leat__transform_reference(const leat__transform_job *job,
                               const leat__transform_image *image, void *top)
{
    size_t count =
        (size_t)job->channels * (size_t)job->height * (size_t)job->width;
    for (size_t i = 0; i < count; i++)
        leat__transform_element(job, image, i, top);
}
