# What makes a memory error harder to exploit. Builds for debugging go without, as
# it needs optimisation, and sanitized ones, which check more. tests/packaging/
# hardening.sh holds every program of a build against it.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

add_library(leat_hardening INTERFACE)
if(NOT LEAT_SANITIZE)
  foreach(flag stack-protector-strong stack-clash-protection cf-protection=full)
    string(MAKE_C_IDENTIFIER "LEAT_HAS_${flag}" found)
    check_c_compiler_flag(-f${flag} ${found})
    if(${found})
      target_compile_options(leat_hardening INTERFACE
        $<$<NOT:$<CONFIG:Debug>>:-f${flag}>)
    endif()
  endforeach()
  target_compile_options(leat_hardening INTERFACE
    "$<$<NOT:$<CONFIG:Debug>>:SHELL:-include \"${CMAKE_CURRENT_LIST_DIR}/fortify.h\">")
endif()

check_linker_flag(C LINKER:-z,relro,-z,now,-z,noexecstack LEAT_HAS_RELRO)
if(LEAT_HAS_RELRO)
  add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)
endif()
