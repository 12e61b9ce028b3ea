/* image_exif.h: which way up a camera held the image. */
#ifndef LEAT_DATA_IMAGE_EXIF_H
#define LEAT_DATA_IMAGE_EXIF_H

#include <stddef.h>

/*
 * The orientation, 1 to 8, that OpenCV 4.6 takes from a TIFF block (EXIF behind
 * its "Exif" and two zeros); 1 where it takes none. A block that is malformed
 * further on still counts up to there, as it does in OpenCV.
 */
int leat__exif_orientation(const void *tiff, size_t size);

#endif
