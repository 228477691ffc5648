# The CUDA backend: each src/backend/cuda/X.cu becomes one fatbin that the library carries as bytes; its host code is C that loads the
# driver at run time. Nothing of CUDA is linked. Sets HALFTONE_HAVE_CUDA and cuda_sources. SPDX-License-Identifier: BSD-3-Clause
set(HALFTONE_CUDA AUTO CACHE STRING "The CUDA backend: AUTO (where nvcc is found), ON (or fail) or OFF")
set_property(CACHE HALFTONE_CUDA PROPERTY STRINGS AUTO ON OFF)
# Machine code for these, and PTX of the last for whatever comes later.
set(HALFTONE_CUDA_ARCHITECTURES 80 90 CACHE STRING "compute capabilities that kernels are compiled for, as 80;90")
# Builds of one checkout may share them: kernels do not depend on the host compiler or its flags.
set(HALFTONE_CUDA_IMAGES ${CMAKE_BINARY_DIR}/cuda CACHE PATH "where the compiled kernels are kept")
set(HALFTONE_HAVE_CUDA OFF)
set(cuda_sources)
if(HALFTONE_CUDA STREQUAL "OFF")
  return()
endif()

find_program(HALFTONE_NVCC nvcc PATHS /usr/local/cuda/bin)
if(HALFTONE_NVCC)
  get_filename_component(toolkit ${HALFTONE_NVCC} REALPATH)
  get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
  find_path(HALFTONE_CUDA_INCLUDE cudaTypedefs.h HINTS ${toolkit}/include ${toolkit}/targets/x86_64-linux/include /usr/local/cuda/include)
endif()
if(NOT HALFTONE_NVCC OR NOT HALFTONE_CUDA_INCLUDE)
  if(HALFTONE_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA backend: left out (no nvcc with its headers in PATH or /usr/local/cuda)")
    return()
  endif()
  message(FATAL_ERROR "HALFTONE_CUDA is ON, and nvcc (or cudaTypedefs.h next to it) is not in PATH or /usr/local/cuda: set HALFTONE_NVCC")
endif()
message(STATUS "CUDA backend: ${HALFTONE_NVCC}, capabilities ${HALFTONE_CUDA_ARCHITECTURES}")
set(HALFTONE_HAVE_CUDA ON)

# --fmad=true is nvcc's default and is named because results depend on it: a product and the sum it goes into are rounded once. All
# targets are compiled alike, so that a result does not depend on when the code was compiled, ahead or by the driver.
# -lineinfo: profilers and compute-sanitizer name lines; it costs nothing at run time.
set(targets)
set(nvcc_flags -O3 -std=c++17 --fmad=true -lineinfo -I ${PROJECT_SOURCE_DIR}/src -Xcompiler -Wall,-Wextra -Werror all-warnings)
foreach(capability IN LISTS HALFTONE_CUDA_ARCHITECTURES)
  list(APPEND nvcc_flags -gencode arch=compute_${capability},code=sm_${capability})
  set(newest ${capability})
  string(REGEX REPLACE "([0-9][a-z]?)$" ".\\1" dotted ${capability})
  string(APPEND targets "${dotted}, ")
endforeach()
list(APPEND nvcc_flags -gencode arch=compute_${newest},code=compute_${newest})
set_source_files_properties(src/backend/cuda/device.c PROPERTIES COMPILE_DEFINITIONS "HT_CUDA_TARGETS=\"${targets}PTX of ${dotted}\"")

file(GLOB cuda_sources CONFIGURE_DEPENDS src/backend/cuda/*.c)
file(GLOB kernels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} src/backend/cuda/*.cu)
file(MAKE_DIRECTORY ${HALFTONE_CUDA_IMAGES})
foreach(kernel IN LISTS kernels) # full paths: a relative one in a depfile would be looked for in the build folder
  get_filename_component(name ${kernel} NAME_WE)
  set(image ${HALFTONE_CUDA_IMAGES}/${name}.fatbin)
  add_custom_command(OUTPUT ${image}
    COMMAND ${HALFTONE_NVCC} -fatbin ${nvcc_flags} -MD -MF ${image}.d -MT ${image} ${PROJECT_SOURCE_DIR}/${kernel} -o ${image}
    DEPENDS ${PROJECT_SOURCE_DIR}/${kernel} DEPFILE ${image}.d
    COMMENT "Compiling ${kernel}" VERBATIM)
  configure_file(cmake/image.c.in ${CMAKE_BINARY_DIR}/cuda/image_${name}.c @ONLY)
  set_source_files_properties(${CMAKE_BINARY_DIR}/cuda/image_${name}.c PROPERTIES OBJECT_DEPENDS ${image})
  list(APPEND cuda_sources ${CMAKE_BINARY_DIR}/cuda/image_${name}.c)
endforeach()
