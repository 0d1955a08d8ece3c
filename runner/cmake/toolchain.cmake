# One language level, one set of warnings, one compiler cache. Included once, before any target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_CXX_FLAGS_DEV "-O2 -g1")
set(CMAKE_C_FLAGS_DEV "-O2 -g1")
# For the many files that nothing waits for, the tests and what the command line shows: a fifth to a quarter less to
# compile. The precompiled headers serve both levels.
set(ROUX_QUICK_COMPILE "$<$<CONFIG:Dev>:-O1>")
# No -Werror: with it, CI's precompiled headers would be other files and nothing compiled elsewhere could be reused.
# setup_build fails on a warning where CI is set.
add_compile_options(-Wall -Wextra)
# Files that are compiled several at a time are named by their whole path, which a package must not show. Not in other
# builds, whose files the compiler cache would not find again.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options("-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
endif()
# Our own libraries lie beside the program; a folder that is moved whole still works.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# set_library_path(TARGET FOLDER...): where an installed target looks for libraries while it lies in the build folder.
# CMake itself would make room for the installed path by empty entries, which the loader takes for the current folder.
function(set_library_path target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()

# install_library_path(FILE COMPONENT FOLDER...): exchanges the path of set_library_path(), FOLDER..., for that of the
# installation, when FILE of the prefix is installed.
function(install_library_path file component)
  list(JOIN ARGN ":" built)
  change_library_path("${file}" "${built}" [[$ORIGIN/../lib]] COMPONENT ${component})
endfunction()

# change_library_path(FILE OLD NEW INSTALL-ARGUMENT...): the same for any path, which must not be longer than the first
# that FILE was linked with.
function(change_library_path file old new)
  string(CONFIGURE [[
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/@file@")
    if(EXISTS "${file}")
      file(RPATH_CHANGE FILE "${file}" OLD_RPATH [==[@old@]==] NEW_RPATH [==[@new@]==])
    endif()
  ]] code @ONLY)
  install(CODE "${code}" ${ARGN})
endfunction()
add_link_options(-Wl,--disable-new-dtags -Wl,-z,defs)  # a shared library that lacks a definition is not linked
if(ROUX_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
  add_compile_options(-fsanitize=${ROUX_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                      -Wno-maybe-uninitialized)  # g++ 12 sees ghosts in <regex> once the sanitizers have been there
  add_link_options(-fsanitize=${ROUX_SANITIZE})
endif()
find_program(ROUX_CCACHE ccache)
if(ROUX_CCACHE)
  # The precompiled header needs the sloppiness; without the folder's name several checkouts share what was compiled.
  # With the inode cache its hundreds of megabytes are hashed once, not for each file that uses it.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${ROUX_CCACHE})
endif()
