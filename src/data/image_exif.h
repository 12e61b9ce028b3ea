/* image_exif.h: the EXIF orientation of an image. */
#ifndef LEAT_DATA_IMAGE_EXIF_H
#define LEAT_DATA_IMAGE_EXIF_H

#include <stddef.h>

/*
 * The orientation, 1 to 8, that OpenCV 4.6 reads from a TIFF block (EXIF data
 * after "Exif" and two zeros); 1 if it reads none. As in OpenCV, a malformed
 * block counts up to the damage.
 */
int leat__exif_orientation(const void *tiff, size_t size);

#endif
