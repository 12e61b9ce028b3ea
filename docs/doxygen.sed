# Makes plain comments known to Doxygen, so that the headers need no marks of
# its own: those beside a member, and the one that opens a file. Macros that live
# for a few lines, as LEAT_X_CODE do, are left out.
s,^/\* (leat[a-z/_]*\.h: ),/** @file\n * \1,
1s,^/\*$,/** @file,
/^[^/]*[;,({A-Za-z0-9] *\/\* /s,/\* ,/**< ,
s,^/\* ,/** ,
/^#define LEAT_[A-Z]*_CODE\(/d
