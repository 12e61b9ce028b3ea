# The CUDA device: LEAT_HAS_CUDA says whether it is built. The C compiler links
# everything; the runtime is linked statically, so that a program finds out on the
# machine it runs on whether there is a driver.
option(LEAT_CUDA_STATIC "Link CUDA's runtime statically" ON)
set(LEAT_HAS_CUDA FALSE)
set(LEAT_HAS_NVTX FALSE)
set(LEAT_CUDA_RUNTIME "" CACHE INTERNAL "Version of the CUDA runtime that is built with")
if(LEAT_CUDA MATCHES "^(OFF|NO|FALSE|0)$")
  return()
endif()

if(LEAT_CUDA_STATIC)
  set(LEAT_CUDART CUDA::cudart_static)
else()
  set(LEAT_CUDART CUDA::cudart)
endif()
find_package(CUDAToolkit 11.4 QUIET)
if(CUDAToolkit_FOUND AND TARGET ${LEAT_CUDART} AND CUDAToolkit_NVCC_EXECUTABLE)
  set(LEAT_HAS_CUDA TRUE)
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: the device cuda:N is built")
elseif(LEAT_CUDA STREQUAL "AUTO")
  message(STATUS "No CUDA Toolkit: the build is for the CPU alone, without NVTX")
else()
  message(FATAL_ERROR "LEAT_CUDA=ON: the CUDA Toolkit (nvcc, cudart) was not "
    "found. Put nvcc on the PATH or set CUDAToolkit_ROOT to the toolkit's "
    "folder, or configure with LEAT_CUDA=OFF for the CPU alone.")
endif()
if(NOT LEAT_HAS_CUDA)
  return()
endif()
set(LEAT_CUDA_RUNTIME ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}
  CACHE INTERNAL "Version of the CUDA runtime that is built with")

# Ranges for profilers. NVTX is headers alone, which come with the toolkit.
option(LEAT_NVTX "Tell profilers what threads are at, by NVTX" ON)
find_path(LEAT_NVTX_INCLUDE nvtx3/nvToolsExt.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(LEAT_NVTX_INCLUDE)
if(NOT LEAT_NVTX)
  message(STATUS "NVTX: left out, as LEAT_NVTX says")
elseif(LEAT_NVTX_INCLUDE)
  set(LEAT_HAS_NVTX TRUE)
  message(STATUS "NVTX: profilers see what threads are at")
else()
  message(STATUS "NVTX: nvtx3/nvToolsExt.h was not found, profilers are not "
    "told what threads are at")
endif()

# Kernels are compiled by nvcc itself, one object a file. They ask for nothing of
# C++'s runtime, so that leat is linked as C. Contraction is off here too.
set(LEAT_CUDA_ARCHITECTURES "named" CACHE STRING
  "GPUs to compile for: named, all-major, all, native, or numbers such as 80;90")
set(numbers ${LEAT_CUDA_ARCHITECTURES})
if(LEAT_CUDA_ARCHITECTURES STREQUAL "named")
  # Those of these that the toolkit knows; docs/architecture.md says which does.
  execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-arch
    OUTPUT_VARIABLE known)
  set(numbers)
  foreach(number 75 80 86 89 90 100 120)
    if(known MATCHES "compute_${number}[^0-9]")
      list(APPEND numbers ${number})
    endif()
  endforeach()
endif()
if(LEAT_CUDA_ARCHITECTURES MATCHES "^(all-major|all|native)$")
  set(LEAT_NVCC_FLAGS -arch=${LEAT_CUDA_ARCHITECTURES})
  set(gpus "${LEAT_CUDA_ARCHITECTURES} of this toolkit's")
else()
  # Machine code of each, and PTX of the last for what comes after it.
  set(LEAT_NVCC_FLAGS)
  foreach(number ${numbers})
    list(APPEND LEAT_NVCC_FLAGS
      "-gencode=arch=compute_${number},code=sm_${number}")
  endforeach()
  list(GET numbers -1 number)
  list(APPEND LEAT_NVCC_FLAGS
    "-gencode=arch=compute_${number},code=compute_${number}")
  string(REPLACE ";" ", " gpus "${numbers}")
  string(APPEND gpus "; newer ones by PTX of ${number}")
endif()
set(LEAT_CUDA_GPUS "${gpus}" CACHE INTERNAL "GPUs that have machine code")
set(LEAT_NVCC_OPTIONS -O3 --fmad=false -std=c++14
  -Xcompiler=-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics
  -Xcompiler=-fstack-protector-strong
  -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
  -I${PROJECT_SOURCE_DIR}/cuda)
list(APPEND LEAT_NVCC_FLAGS ${LEAT_NVCC_OPTIONS})
option(LEAT_CUDA_FAST_COMPILE "Compile kernels soon that nobody runs (CUDA 13)" OFF)
if(LEAT_CUDA_FAST_COMPILE AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND LEAT_NVCC_FLAGS --Ofast-compile=max)
endif()
set(LEAT_KERNELS)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
foreach(stem transform_cuda occupy_cuda)
  set(object ${PROJECT_BINARY_DIR}/cuda/${stem}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${LEAT_NVCC_FLAGS}
      -c ${PROJECT_SOURCE_DIR}/cuda/${stem}.cu -o ${object}
    DEPENDS ${PROJECT_SOURCE_DIR}/cuda/${stem}.cu
      ${PROJECT_SOURCE_DIR}/cuda/${stem}.h
      ${PROJECT_SOURCE_DIR}/src/device/transform_batch.h
      ${PROJECT_SOURCE_DIR}/src/device/transform_lane.h
      ${PROJECT_SOURCE_DIR}/src/device/divisor.h
      ${PROJECT_SOURCE_DIR}/src/device/float16.h
      ${PROJECT_SOURCE_DIR}/include/leat/ext/device.h
    COMMENT "Building CUDA object cuda/${stem}.o" VERBATIM)
  list(APPEND LEAT_KERNELS ${object})
endforeach()
add_custom_target(leat_kernels DEPENDS ${LEAT_KERNELS})
