# What an installed leat consists of: headers, library, tool, man pages, documents,
# examples, and the files that let CMake and pkg-config find them. All of them are
# relocatable. The components are those of the Debian packages (cmake/package.cmake).
include(CMakePackageConfigHelpers)
set(LEAT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/leat)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(TARGETS leat EXPORT leatTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET leat_tool)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tool)
  install(TARGETS leat_installed_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  # Where each shell looks for completions that packages bring.
  foreach(shell bash:bash-completion/completions/leat zsh:zsh/vendor-completions/_leat
      fish:fish/vendor_completions.d/leat.fish)
    string(REGEX MATCH "^([a-z]+):(.*)/([^/]+)$" shell ${shell})
    if(TARGET leat_completion)
      install(FILES ${PROJECT_BINARY_DIR}/completion/leat.${CMAKE_MATCH_1}
        RENAME ${CMAKE_MATCH_3}
        DESTINATION ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_2})
    endif()
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/README.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs
    DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples
    DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN CMakeLists.txt EXCLUDE)
  file(RELATIVE_PATH LEAT_HEADERS
    ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  install(CODE "set(LEAT_DOC_DIR \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
    set(LEAT_HEADERS \"${LEAT_HEADERS}\")")
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/installed_links.cmake)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
endif()

install(EXPORT leatTargets NAMESPACE leat:: DESTINATION ${LEAT_CMAKE_DIR})
set(LEAT_PC_SNAPPY)
if(LEAT_HAS_SNAPPY)
  set(LEAT_PC_SNAPPY snappy)
endif()
set(LEAT_PC_CUDA)
if(LEAT_HAS_CUDA AND LEAT_CUDA_STATIC)
  set(LEAT_PC_CUDA "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
elseif(LEAT_HAS_CUDA)
  set(LEAT_PC_CUDA "-L${CUDAToolkit_LIBRARY_DIR} -lcudart -ldl")
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/leatConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/leatConfig.cmake
  INSTALL_DESTINATION ${LEAT_CMAKE_DIR})
set(LEAT_COMPATIBILITY SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(LEAT_COMPATIBILITY SameMinorVersion)
endif()
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/leatConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY ${LEAT_COMPATIBILITY})
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
