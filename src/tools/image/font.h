/* font.h: letters of 5 x 8 pixels for ASCII's printable characters. */
#ifndef LEAT_TOOLS_IMAGE_FONT_H
#define LEAT_TOOLS_IMAGE_FONT_H

enum {
    FONT_WIDTH = 5,
    FONT_HEIGHT = 8, /* the last row is for what goes below the line */
    FONT_ADVANCE = 6 /* from one letter to the next */
};

/* Whether the letter has ink there; what is not ASCII is a box. */
int font_pixel(char letter, int row, int column);

#endif
