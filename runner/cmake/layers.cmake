# A layer is a folder: every .cpp in it and below it, compiled once into objects that the binaries and tests share.
# Adding a file or a sub-folder never edits a list.
#
#   add_layer(NAME FOLDER dir [EXCLUDE regex] [SOURCES generated...] [OPTIONS flags...] [TORCH] [QUICK]
#             [UNITE count regex...] [LINK third-party...])
# QUICK: nothing waits for this code, so it is compiled for less (ROUX_QUICK_COMPILE). Without flags of its own a layer
# has a precompiled header. UNITE: the sources that match a regex are short beside their headers, so some at a time are
# compiled in one file (unite_sources).
set(ROUX_EMPTY "${CMAKE_BINARY_DIR}/empty.cpp")
set(ROUX_NO_MAIN "${CMAKE_BINARY_DIR}/no_main.cpp")
file(CONFIGURE OUTPUT "${ROUX_NO_MAIN}" CONTENT "int main() { return 70; }\n")
file(CONFIGURE OUTPUT "${ROUX_EMPTY}" CONTENT "// A layer whose folder has no source yet.\n")

function(roux_common target)
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
  target_compile_definitions(${target} PRIVATE ROUX_VERSION="${PROJECT_VERSION}")
  if(TARGET generate)
    add_dependencies(${target} generate)
  endif()
endfunction()

# use_precompiled(TARGET NAME [OPTIONS flags...]): every target that names NAME shares one precompiled header,
# runner/cmake/NAME.h; the first that asks makes it. It includes no header of ours, so no edit makes it stale.
function(use_precompiled target name)
  if(NOT TARGET ${name})
    cmake_parse_arguments(P "" "" "OPTIONS;LINK" ${ARGN})
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${name}.cpp" CONTENT "// Carries the precompiled header.\n")
    add_library(${name} OBJECT "${CMAKE_BINARY_DIR}/${name}.cpp")
    target_link_libraries(${name} PRIVATE ${P_LINK})
    target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")
    target_compile_definitions(${name} PRIVATE ROUX_VERSION="${PROJECT_VERSION}")
    target_compile_options(${name} PRIVATE -fpch-preprocess ${P_OPTIONS})
    # In quotes CMake takes it as it is: no folder of this machine in the text, so checkouts share cache entries.
    target_precompile_headers(${name} PRIVATE "\"runner/cmake/${name}.h\"")
  endif()
  # An executable would be compiled with -fPIE; the precompiled header is -fPIC.
  target_compile_options(${target} PRIVATE -fpch-preprocess -fPIC)
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# use_std_pch(TARGET [NAME use_precompiled's...])
# g++ 12 gives false warnings about its own std::string (operator+ of a temporary) when it comes from a precompiled
# header.
function(use_std_pch target)
  if(NOT ARGN)
    set(ARGN std_pch)
  endif()
  use_precompiled(${target} ${ARGN})
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
    -Wno-stringop-overread)
endfunction()

# compile_with_torch(TARGET NAME [LINK what its precompiled header needs beside LibTorch...])
# at::parallel_for is a template: a file that is compiled without -fopenmp runs it on one thread, and nothing says so.
function(compile_with_torch target name)
  cmake_parse_arguments(T "" "" "LINK" ${ARGN})
  target_link_libraries(${target} PRIVATE third_party_torch)
  target_compile_options(${target} PRIVATE -Wno-unused-parameter -fopenmp)
  use_std_pch(${target} ${name} OPTIONS -Wno-unused-parameter -fopenmp LINK third_party_torch ${T_LINK})
endfunction()

function(use_torch target)
  compile_with_torch(${target} torch_pch)
endfunction()

# add_torch_objects(TARGET SOURCES...): an object library of sources of which only some include LibTorch
# (torch_users.cmake). Who links TARGET gets them all; TARGET_parts are the libraries that it is made of.
function(add_torch_objects target)
  torch_users("${ARGN}" without tensors operations)
  add_library(${target} OBJECT ${operations})
  compile_with_torch(${target} torch_pch)
  set(parts ${target})
  foreach(part without tensors)
    if(${part})
      add_library(${target}_${part} OBJECT ${${part}})
      target_sources(${target} INTERFACE $<TARGET_OBJECTS:${target}_${part}>)
      list(APPEND parts ${target}_${part})
    endif()
  endforeach()
  if(without)
    compile_with_torch(${target}_without std_openmp_pch)
  endif()
  if(tensors)
    compile_with_torch(${target}_tensors tensor_pch)
  endif()
  set(${target}_parts ${parts} PARENT_SCOPE)
endfunction()

function(add_layer name)
  cmake_parse_arguments(L "TORCH;QUICK" "FOLDER;EXCLUDE" "SOURCES;OPTIONS;UNITE;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${L_FOLDER}/*.cpp")
  if(L_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${L_EXCLUDE}")
  endif()
  list(APPEND sources ${L_SOURCES})
  if(NOT sources)
    set(sources "${ROUX_EMPTY}")
  endif()
  if(L_TORCH)
    add_torch_objects(roux_layer_${name} ${sources})
  else()
    add_library(roux_layer_${name} OBJECT ${sources})
    set(roux_layer_${name}_parts roux_layer_${name})
    if(NOT L_OPTIONS)
      use_std_pch(roux_layer_${name})
    endif()
  endif()
  foreach(target ${roux_layer_${name}_parts})
    roux_common(${target})
    target_compile_options(${target} PRIVATE ${L_OPTIONS})
    if(L_QUICK)
      target_compile_options(${target} PRIVATE ${ROUX_QUICK_COMPILE})
    endif()
    foreach(library ${L_LINK})
      target_link_libraries(${target} PRIVATE third_party_${library})
    endforeach()
    unite_sources(${target} ${L_UNITE})
  endforeach()
endfunction()

# unite_sources(TARGET COUNT REGEX...): the sources that match a regex are compiled in one file, COUNT at a time.
function(unite_sources target)
  if(NOT ARGN)
    return()
  endif()
  list(POP_FRONT ARGN count)
  get_target_property(sources ${target} SOURCES)
  set(batch 0)
  foreach(regex ${ARGN})
    set(matching ${sources})
    list(FILTER matching INCLUDE REGEX "${regex}")
    while(matching)
      list(SUBLIST matching 0 ${count} some)
      list(REMOVE_ITEM matching ${some})
      math(EXPR batch "${batch} + 1")
      set_source_files_properties(${some} PROPERTIES UNITY_GROUP batch_${batch})
    endwhile()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# add_command_table(FOLDER): FOLDER/x.cpp defines `void add_x(Command, Session&)`, and FOLDER/group/x.cpp defines
# `void add_group_x(Command, Session&)`. ROUX_COMMAND_TABLE is a file with add_commands(), which calls the first, and
# add_group_commands(), which calls those of a group, in the order of their names.
function(add_command_table folder)
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.cpp" "${CMAKE_SOURCE_DIR}/${folder}/*/*.cpp")
  list(SORT files)
  foreach(file ${files})
    cmake_path(GET file STEM name)
    cmake_path(GET file PARENT_PATH group)
    cmake_path(RELATIVE_PATH group BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/${folder}")
    set(prefix "add_${group}_")
    if(group STREQUAL ".")
      set(prefix "add_")
    endif()
    list(APPEND functions "${prefix}commands")
    string(APPEND declarations "void ${prefix}${name}(Command app, Session& session);\n")
    string(APPEND calls_of_${prefix}commands "  ${prefix}${name}(app, session);\n")
  endforeach()
  list(REMOVE_DUPLICATES functions)
  foreach(function ${functions})
    string(APPEND definitions
           "void ${function}(Command app, Session& session) {\n${calls_of_${function}}}\n\n")
  endforeach()
  set(table "${CMAKE_BINARY_DIR}/generated/cli/commands.cpp")
  file(CONFIGURE OUTPUT "${table}" @ONLY CONTENT [=[
// Written by add_command_table() in runner/cmake/layers.cmake.
#include "runner/cli/commands.h"

namespace runner::cli {

@declarations@
@definitions@}  // namespace runner::cli
]=])
  set(ROUX_COMMAND_TABLE "${table}" PARENT_SCOPE)
endfunction()

function(add_binary_base)
  set(source_hash "${CMAKE_BINARY_DIR}/generated/base/source_hash.cpp")
  add_custom_target(source_hash
    COMMAND ${CMAKE_COMMAND} "-DROOT=${CMAKE_SOURCE_DIR}" "-DOUT=${source_hash}" "-DVERSION=${PROJECT_VERSION}"
            "-DBUILD=${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
            -P "${CMAKE_SOURCE_DIR}/runner/cmake/source_hash.cmake"
    BYPRODUCTS "${source_hash}"
    COMMENT "Hashing the sources"
    VERBATIM)
  set_source_files_properties("${source_hash}" PROPERTIES GENERATED TRUE)
  add_library(roux_base SHARED ${ROUX_GENERATED_BASE} "${source_hash}")
  add_dependencies(roux_base source_hash)
  roux_common(roux_base)
  target_link_libraries(roux_base
    PRIVATE roux_layer_core roux_layer_recipe roux_layer_registry roux_layer_resolve roux_layer_store
            roux_layer_artifact roux_layer_quantization roux_layer_pretrained roux_layer_words roux_layer_gguf
            roux_layer_tokenizer roux_layer_template roux_layer_net roux_layer_hub
            third_party_spdlog third_party_nlohmann third_party_yaml-cpp third_party_jsonnet third_party_sqlite3
            third_party_xxhash third_party_re2 third_party_png third_party_zlib third_party_zstd third_party_pcre2
            third_party_utf8proc Threads::Threads ${CMAKE_DL_LIBS})
  set_library_path(roux_base "$ORIGIN/../lib")
endfunction()

function(add_binary_program)
  file(GLOB main CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/runner/cli/main.cpp")
  if(NOT main)
    set(main "${ROUX_NO_MAIN}")
  endif()
  add_executable(roux ${main})
  roux_common(roux)
  # jemalloc comes first, so that the engine's tensors come from it too.
  target_link_libraries(roux
    PRIVATE third_party_jemalloc roux_layer_cli roux_layer_transfer roux_layer_review roux_layer_chart
            roux_layer_terminal roux_layer_query roux_layer_trackers roux_layer_sweep roux_layer_sampler
            roux_layer_pruner roux_layer_launch roux_base third_party_cli11 third_party_edit
            third_party_zlib Threads::Threads ${CMAKE_DL_LIBS})
  set_library_path(roux "$ORIGIN/../lib")
  set_target_properties(roux PROPERTIES ENABLE_EXPORTS ON)
endfunction()

function(add_binary_engine)
  add_library(roux_engine SHARED ${ROUX_GENERATED_ENGINE})
  roux_common(roux_engine)
  target_link_libraries(roux_engine
    PRIVATE roux_layer_kernels roux_layer_distributed roux_layer_components roux_layer_checkpoint roux_layer_train
            roux_layer_engine roux_base
            third_party_torch third_party_csv)
  # The last ones are for a wheel, which can only be given a path that was there when it was linked.
  set_library_path(roux_engine "$ORIGIN" ${ROUX_TORCH_RPATH} ${ROUX_WHEEL_RPATH})
endfunction()

function(add_binary_cuda)
  add_library(roux_cuda SHARED "${ROUX_EMPTY}")
  roux_common(roux_cuda)
  target_link_libraries(roux_cuda PRIVATE roux_layer_cuda roux_base third_party_cuda third_party_torch)
  set_library_path(roux_cuda "$ORIGIN" ${ROUX_TORCH_RPATH} ${ROUX_CUDA_RPATH} ${ROUX_WHEEL_RPATH}
                   ${ROUX_WHEEL_CUDA_RPATH})
  add_dependencies(roux_engine roux_cuda)
endfunction()

function(add_binary_arrow)
  add_library(roux_arrow SHARED "${ROUX_EMPTY}")
  roux_common(roux_arrow)
  target_link_libraries(roux_arrow PRIVATE roux_layer_arrow roux_base third_party_arrow)
  set_library_path(roux_arrow "$ORIGIN" "${ROUX_ARROW}" "${ROUX_WHEEL_ARROW_RPATH}")
  add_dependencies(roux_engine roux_arrow)
endfunction()
