# What comes from Debian, and LibTorch from .deps (see setup.sh). `find_package(Torch)` wants a CUDA toolkit, so it is
# an imported target of our own: libtorch_cpu and libc10 only.
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_library(ROUX_LIBXXHASH xxhash REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
find_library(ROUX_JEMALLOC jemalloc REQUIRED)
find_library(ROUX_YAML_CPP yaml-cpp REQUIRED)
find_library(ROUX_JSONNET jsonnet REQUIRED)
find_library(ROUX_CSV csv REQUIRED)
find_library(ROUX_RE2 re2 REQUIRED)
find_library(ROUX_PCRE2 pcre2-8 REQUIRED)
find_library(ROUX_UTF8PROC utf8proc REQUIRED)
find_library(ROUX_ZSTD zstd REQUIRED)
find_library(ROUX_EDIT edit REQUIRED)
find_path(ROUX_CURL_INCLUDE curl/curl.h REQUIRED)
find_path(ROUX_LIBPQ_INCLUDE libpq-fe.h PATH_SUFFIXES postgresql REQUIRED)

function(third_party name)
  add_library(third_party_${name} INTERFACE)
  target_link_libraries(third_party_${name} INTERFACE ${ARGN})
endfunction()
third_party(nlohmann nlohmann_json::nlohmann_json)
third_party(spdlog spdlog::spdlog)
third_party(cli11 CLI11::CLI11)
third_party(sqlite3 SQLite::SQLite3)
third_party(eigen Eigen3::Eigen)
target_compile_definitions(third_party_eigen INTERFACE EIGEN_MPL2_ONLY)
if(ROUX_SANITIZE)
  third_party(jemalloc)  # AddressSanitizer brings its own
else()
  third_party(jemalloc ${ROUX_JEMALLOC})
endif()
third_party(yaml-cpp ${ROUX_YAML_CPP})
third_party(jsonnet ${ROUX_JSONNET})
third_party(csv ${ROUX_CSV})
third_party(re2 ${ROUX_RE2})  # LibTorch exports nothing of it, so the two never meet
third_party(pcre2 ${ROUX_PCRE2})
target_compile_definitions(third_party_pcre2 INTERFACE PCRE2_CODE_UNIT_WIDTH=8)
third_party(utf8proc ${ROUX_UTF8PROC})
third_party(edit ${ROUX_EDIT})
third_party(png PNG::PNG)
third_party(zlib ZLIB::ZLIB)  # LibTorch keeps its own deflate to itself
third_party(zstd ${ROUX_ZSTD})
third_party(xxhash ${ROUX_LIBXXHASH})
third_party(curl)  # headers only: runner/net/curl.h opens the library
target_include_directories(third_party_curl SYSTEM INTERFACE "${ROUX_CURL_INCLUDE}")
third_party(libpq)  # the same: runner/sweep/study/libpq.h
target_include_directories(third_party_libpq SYSTEM INTERFACE "${ROUX_LIBPQ_INCLUDE}")

if(ROUX_ENGINE)
  set(ROUX_DEPS "${CMAKE_SOURCE_DIR}/.deps" CACHE PATH "Where LibTorch is unpacked")
  set(ROUX_TORCH "${ROUX_DEPS}/torch")
  if(NOT EXISTS "${ROUX_TORCH}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LibTorch is not in ${ROUX_DEPS}: run ./roux once, it unpacks the pinned one")
  endif()
  # ProcessGroupGloo.hpp names headers that the wheel lacks; runner/distributed/gloo_declarations.h stands in for them.
  foreach(header algorithm context common/error rendezvous/store transport/device)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/gloo/gloo/${header}.h" CONTENT "#pragma once\n")
  endforeach()
  add_library(third_party_torch INTERFACE)
  target_include_directories(third_party_torch SYSTEM INTERFACE
    "${ROUX_TORCH}/include" "${ROUX_TORCH}/include/torch/csrc/api/include" "${CMAKE_BINARY_DIR}/gloo")
  target_compile_definitions(third_party_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_libraries(third_party_torch INTERFACE "${ROUX_TORCH}/lib/libtorch_cpu.so" "${ROUX_TORCH}/lib/libc10.so")
  # LibTorch's own run time of OpenMP, and not the compiler's: two of them would start twice as many threads.
  file(GLOB openmp "${ROUX_TORCH}/lib/libgomp*.so*")
  target_link_libraries(third_party_torch INTERFACE "${openmp}")
  target_link_options(third_party_torch INTERFACE
    "-Wl,-rpath-link,${ROUX_TORCH}/lib:${ROUX_DEPS}/nvidia/cu13/lib")
  set(ROUX_TORCH_RPATH "${ROUX_TORCH}/lib;${ROUX_DEPS}/nvidia/cu13/lib")
  # In a wheel lib/ is site-packages/roux/lib, beside site-packages/torch.
  set(ROUX_WHEEL_RPATH "$ORIGIN/../../torch/lib;$ORIGIN/../../nvidia/cu13/lib")
endif()

# The release of pyarrow that carries Arrow's libraries, also where they are not linked: it is named to users.
file(STRINGS "${CMAKE_SOURCE_DIR}/runner/cmake/arrow.txt" pyarrow REGEX "^pyarrow==")
string(REGEX REPLACE "^pyarrow==([^ ]+) .*" "\\1" ROUX_PYARROW "${pyarrow}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/runner/cmake/arrow.txt")
set_source_files_properties("${CMAKE_SOURCE_DIR}/runner/core/table/table_library.cpp" PROPERTIES
  COMPILE_DEFINITIONS "ROUX_PYARROW=\"${ROUX_PYARROW}\"")
if(ROUX_ENGINE)
  set(ROUX_ARROW "${ROUX_DEPS}-arrow/pyarrow")
  file(GLOB arrow "${ROUX_ARROW}/libarrow.so.*" "${ROUX_ARROW}/libparquet.so.*")
  if(NOT arrow)
    message(FATAL_ERROR "Arrow is not in ${ROUX_DEPS}-arrow: run ./roux once, it unpacks the pinned one")
  endif()
  third_party(arrow ${arrow})
  target_include_directories(third_party_arrow SYSTEM INTERFACE "${ROUX_ARROW}/include")
  set(ROUX_WHEEL_ARROW_RPATH "$ORIGIN/../../pyarrow")
endif()

if(ROUX_CUDA)
  set(ROUX_DEPS_CUDA "${ROUX_DEPS}-cuda")
  if(NOT EXISTS "${ROUX_DEPS_CUDA}/nvidia/nccl/include/nccl.h")
    message(FATAL_ERROR "CUDA is not in ${ROUX_DEPS_CUDA}: run ROUX_PRESET=cuda ./roux once, it unpacks it")
  endif()
  # What libtorch_cuda.so needs beyond NCCL is looked for when the library is loaded, not when it is linked: a machine
  # without a GPU can do without these gigabytes.
  # runner/cuda/math_declarations.h stands in for them.
  foreach(header cublas_v2 cublasLt cusolverDn cusolver_common cusparse)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/cuda/${header}.h" CONTENT "#pragma once\n")
  endforeach()
  add_library(third_party_cuda INTERFACE)
  target_include_directories(third_party_cuda SYSTEM INTERFACE "${CMAKE_BINARY_DIR}/cuda"
    "${ROUX_DEPS}/nvidia/cu13/include" "${ROUX_DEPS_CUDA}/nvidia/cu13/include" "${ROUX_DEPS_CUDA}/nvidia/nccl/include")
  target_compile_definitions(third_party_cuda INTERFACE USE_C10D_NCCL)
  target_link_libraries(third_party_cuda INTERFACE
    "${ROUX_TORCH}/lib/libtorch_cuda.so" "${ROUX_TORCH}/lib/libc10_cuda.so"
    "${ROUX_DEPS}/nvidia/cu13/lib/libcudart.so.13")
  set(ROUX_CUDA_RPATH)
  set(ROUX_WHEEL_CUDA_RPATH)
  foreach(part cu13 cudnn nccl nvshmem cusparselt)
    list(APPEND ROUX_CUDA_RPATH "${ROUX_DEPS_CUDA}/nvidia/${part}/lib")
    if(NOT part STREQUAL "cu13")  # ROUX_WHEEL_RPATH has it; CMake leaves out what comes twice
      list(APPEND ROUX_WHEEL_CUDA_RPATH "$ORIGIN/../../nvidia/${part}/lib")
    endif()
  endforeach()
endif()
