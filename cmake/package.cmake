# Debian packages, by `cpack -G DEB`: libleat0.1 (the shared library), libleat-dev
# (headers and what finds them) and leat (the tool, manual pages, examples, documents).
# They are of the CPU's architecture and of the system that the build is made on.
# scripts/package.sh configures, builds and packs in one go.
set(LEAT_PACKAGE_MAINTAINER "the leat developers <maintainers@leat.invalid>"
  CACHE STRING "Name and address of who makes the Debian packages")
set(LEAT_PACKAGE_REVISION 1 CACHE STRING "Revision of the Debian packages")
mark_as_advanced(LEAT_PACKAGE_MAINTAINER LEAT_PACKAGE_REVISION)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME leat)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${LEAT_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL library development tool)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${LEAT_PACKAGE_REVISION})
# The tool's library is of a package that is being made; dpkg-shlibdeps passes over it.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)

# Debian's policy names a library's package after its soname: libleat.so.0.1.
set(LEAT_PACKAGE libleat${LEAT_SOVERSION})
set(same_version "(= ${PROJECT_VERSION}-${LEAT_PACKAGE_REVISION})")

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "prefetching data layer for neural nets")
set(about "leat reads LMDB databases as Caffe's data layer does and delivers batches\n\
that are ready ahead of the net, on the CPU or a device.\n.\nThis package has")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${LEAT_PACKAGE})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${about} the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libleat-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
  "${about} the headers, and files for CMake and pkg-config.")
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME leat)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOL_DESCRIPTION "${about} the tool, which imports, inspects and\n\
compares databases and measures data layers, its manual pages, documents\n\
and examples.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "${LEAT_PACKAGE} ${same_version}")
# pkg-config wants the files of private requirements, too.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${LEAT_PACKAGE} ${same_version}, \
libjpeg-dev, libpng-dev, zlib1g-dev")
if(LEAT_HAS_SNAPPY)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libsnappy-dev")
endif()

# What the package files say of the library, and that ldconfig is to look at it.
set(LEAT_PACKAGE_DIR ${PROJECT_BINARY_DIR}/package)
file(WRITE ${LEAT_PACKAGE_DIR}/shlibs
  "libleat ${LEAT_SOVERSION} ${LEAT_PACKAGE} (>= ${PROJECT_VERSION})\n")
file(WRITE ${LEAT_PACKAGE_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
  ${LEAT_PACKAGE_DIR}/shlibs ${LEAT_PACKAGE_DIR}/triggers)

set(LEAT_IS_PACKABLE no)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND BUILD_SHARED_LIBS AND TARGET leat_tool)
  set(LEAT_IS_PACKABLE yes)
endif()
# cpack reads the first before it packs, and runs the second over what is packed.
set(CPACK_PROJECT_CONFIG_FILE ${LEAT_PACKAGE_DIR}/check.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${LEAT_PACKAGE_DIR}/debian.cmake)
configure_file(${PROJECT_SOURCE_DIR}/cmake/package_check.cmake.in
  ${CPACK_PROJECT_CONFIG_FILE} @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/package_debian.cmake.in
  ${CPACK_PRE_BUILD_SCRIPTS} @ONLY)
include(CPack)
