# Everything leat stands on. What is missing is collected and named in one error,
# together with the Debian packages that bring it.
set(LEAT_MISSING)
set(LEAT_MISSING_PACKAGES)

function(leat_require found what package)
  if(NOT ${found})
    list(APPEND LEAT_MISSING "${what}")
    list(APPEND LEAT_MISSING_PACKAGES ${package})
    set(LEAT_MISSING "${LEAT_MISSING}" PARENT_SCOPE)
    set(LEAT_MISSING_PACKAGES "${LEAT_MISSING_PACKAGES}" PARENT_SCOPE)
  endif()
endfunction()

# The variables carry our prefix, so that a project around leat keeps its own.
macro(leat_require_module variable module what package)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${variable} QUIET IMPORTED_TARGET ${module})
  endif()
  leat_require(${variable}_FOUND "${what}" ${package})
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
find_package(JPEG QUIET)
find_package(PNG QUIET)
find_package(ZLIB QUIET)

leat_require(JPEG_FOUND "libjpeg-turbo" libjpeg-dev)
leat_require(PNG_FOUND "libpng" libpng-dev)
leat_require(ZLIB_FOUND "zlib" zlib1g-dev)
# The library reads LMDB by itself; all else writes or compares by liblmdb.
if(LEAT_BUILD_TOOL OR LEAT_BUILD_TESTS OR LEAT_BUILD_FUZZERS OR LEAT_BUILD_BENCHMARKS)
  leat_require(PKG_CONFIG_FOUND "pkg-config" pkg-config)
  leat_require_module(LEAT_LMDB lmdb "LMDB" liblmdb-dev)
endif()
if(LEAT_BUILD_TOOL OR LEAT_BUILD_TESTS OR LEAT_BUILD_FUZZERS)
  leat_require_module(LEAT_JANSSON jansson "Jansson (LEAT_BUILD_TOOL, LEAT_BUILD_TESTS)"
    libjansson-dev)
endif()
if(LEAT_BUILD_TESTS)
  leat_require_module(LEAT_CHECK check "Check (LEAT_BUILD_TESTS)" check)
endif()
if(LEAT_BUILD_TESTS OR LEAT_BUILD_FUZZERS)
  # The oracle of the tests of Datums, mean files and Examples; the library reads
  # all of them itself.
  find_program(LEAT_PROTOC_C protoc-c)
  mark_as_advanced(LEAT_PROTOC_C)
  leat_require(LEAT_PROTOC_C "protobuf-c's compiler protoc-c (LEAT_BUILD_TESTS, LEAT_BUILD_FUZZERS)"
    protobuf-c-compiler)
  leat_require_module(LEAT_PROTOBUF_C libprotobuf-c "protobuf-c (LEAT_BUILD_TESTS, LEAT_BUILD_FUZZERS)"
    libprotobuf-c-dev)
endif()

if(LEAT_MISSING)
  list(JOIN LEAT_MISSING ", " LEAT_MISSING)
  list(JOIN LEAT_MISSING_PACKAGES " " LEAT_MISSING_PACKAGES)
  message(FATAL_ERROR "Not found: ${LEAT_MISSING}. On Debian and Ubuntu:\n"
    "  apt-get install ${LEAT_MISSING_PACKAGES}")
endif()

# Snappy is C++ behind a header in C; leat reads what it compresses by that.
option(LEAT_SNAPPY "Read chunks of RecordIO that snappy compresses" ON)
set(LEAT_HAS_SNAPPY FALSE)
find_path(LEAT_SNAPPY_INCLUDE snappy-c.h)
find_library(LEAT_SNAPPY_LIBRARY snappy)
mark_as_advanced(LEAT_SNAPPY_INCLUDE LEAT_SNAPPY_LIBRARY)
if(NOT LEAT_SNAPPY)
  message(STATUS "Snappy: left out, as LEAT_SNAPPY says")
elseif(LEAT_SNAPPY_INCLUDE AND LEAT_SNAPPY_LIBRARY)
  set(LEAT_HAS_SNAPPY TRUE)
  message(STATUS "Snappy: compressed chunks of RecordIO are read")
else()
  message(STATUS "Snappy: libsnappy was not found (libsnappy-dev), compressed "
    "chunks of RecordIO are refused")
endif()
