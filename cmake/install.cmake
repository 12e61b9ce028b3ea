# What an installed leat consists of: headers, library, tool, man pages, and the
# files that let CMake and pkg-config find them. All of them are relocatable.
include(CMakePackageConfigHelpers)
set(LEAT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/leat)

install(TARGETS leat EXPORT leatTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET leat_tool)
  install(TARGETS leat_installed_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  file(GLOB LEAT_MAN_PAGES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.1)
  if(LEAT_MAN_PAGES)
    install(FILES ${LEAT_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endif()

install(EXPORT leatTargets NAMESPACE leat:: DESTINATION ${LEAT_CMAKE_DIR})
set(LEAT_PC_CUDA)
if(LEAT_HAS_CUDA AND LEAT_CUDA_STATIC)
  set(LEAT_PC_CUDA "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
elseif(LEAT_HAS_CUDA)
  set(LEAT_PC_CUDA "-L${CUDAToolkit_LIBRARY_DIR} -lcudart -ldl")
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/leatConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/leatConfig.cmake
  INSTALL_DESTINATION ${LEAT_CMAKE_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/leatConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/leatConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/leatConfigVersion.cmake
  DESTINATION ${LEAT_CMAKE_DIR})

# leat.pc finds its prefix from where it lies, so that `cmake --install --prefix`
# and moved folders work.
file(RELATIVE_PATH LEAT_PC_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" LEAT_PC_PREFIX "${LEAT_PC_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/leat.pc.in
  ${PROJECT_BINARY_DIR}/cmake/leat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/leat.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
