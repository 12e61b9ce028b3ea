# Runs at installation, with LEAT_DOC_DIR and LEAT_HEADERS, the path from there to the
# headers. Links of installed documents lead to what is installed; those to what only
# the source has become their text.
file(GLOB documents ${LEAT_DOC_DIR}/README.md ${LEAT_DOC_DIR}/docs/*.md)
foreach(document IN LISTS documents)
  file(READ ${document} text)
  string(REGEX REPLACE "\\]\\(((\\.\\./)?)include/" "](\\1${LEAT_HEADERS}/" text "${text}")
  string(REGEX REPLACE
    "\\[([^]]*)\\]\\((\\.\\./)?([A-Z]+[.]md|LICENSE|benchmarks/[^)]*|tests/[^)]*|docs/[^)]*[.]1)\\)"
    "\\1" text "${text}")
  file(WRITE ${document} "${text}")
endforeach()
