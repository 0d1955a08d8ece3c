# cmake --install PREFIX: the program, what it loads, what the author of a plugin needs, and the notices of
# everything that is carried. Nothing in it names a folder of this machine, so that the prefix may be moved.
# The component `program` is what trains, without what a plugin's author needs: tests/gpu/bundle installs it alone.
# `libraries` are those of others, with their notices. packaging/ installs all but these, and chooses them itself.
# `wheel`, for packaging/wheel/build alone, lets the libraries of an installed prefix look for torch beside it.
function(wheel_library_path file)
  list(JOIN ARGN ":" folders)
  change_library_path("${file}" [[$ORIGIN/../lib]] "$ORIGIN:${folders}" COMPONENT wheel EXCLUDE_FROM_ALL)
endfunction()
install(TARGETS roux RUNTIME DESTINATION bin COMPONENT program)
install(TARGETS schema_gen RUNTIME DESTINATION bin)
install(TARGETS roux_base LIBRARY DESTINATION lib COMPONENT program)
set_library_path(schema_gen "$ORIGIN/../lib")
if(ROUX_ENGINE)
  install(TARGETS roux_engine LIBRARY DESTINATION lib COMPONENT program)
  install_library_path(lib/libroux_engine.so program "$ORIGIN" ${ROUX_TORCH_RPATH} ${ROUX_WHEEL_RPATH})
  wheel_library_path(lib/libroux_engine.so ${ROUX_WHEEL_RPATH})
  install(TARGETS roux_arrow LIBRARY DESTINATION lib COMPONENT program)
  install_library_path(lib/libroux_arrow.so program "$ORIGIN" "${ROUX_ARROW}" ${ROUX_WHEEL_ARROW_RPATH})
  wheel_library_path(lib/libroux_arrow.so ${ROUX_WHEEL_ARROW_RPATH})
endif()
if(ROUX_CUDA)
  install(TARGETS roux_cuda LIBRARY DESTINATION lib COMPONENT program)
  install_library_path(lib/libroux_cuda.so program "$ORIGIN" ${ROUX_TORCH_RPATH} ${ROUX_CUDA_RPATH}
                       ${ROUX_WHEEL_RPATH} ${ROUX_WHEEL_CUDA_RPATH})
  wheel_library_path(lib/libroux_cuda.so ${ROUX_WHEEL_RPATH} ${ROUX_WHEEL_CUDA_RPATH})
endif()

install(CODE "set(ROOT \"${CMAKE_SOURCE_DIR}\")\nset(TO include/roux)")
install(SCRIPT "${CMAKE_SOURCE_DIR}/runner/cmake/public_headers.cmake")
install(DIRECTORY schemas DESTINATION share/roux FILES_MATCHING PATTERN "*.json"
        PATTERN gen EXCLUDE PATTERN reference EXCLUDE)
install(DIRECTORY "${CMAKE_BINARY_DIR}/generated/schemas/" DESTINATION share/roux/schemas)
install(DIRECTORY recipes DESTINATION share/roux)  # roux examples
install(DIRECTORY "${CMAKE_BINARY_DIR}/generated/reference" DESTINATION share/doc/roux)
install(FILES LICENSE NOTICE DESTINATION share/doc/roux)
install(FILES README.md DESTINATION share/doc/roux OPTIONAL)
install(FILES runner/cmake/roux-config.cmake DESTINATION lib/cmake/roux)
include(CMakePackageConfigHelpers)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/roux-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/roux-config-version.cmake" DESTINATION lib/cmake/roux)
foreach(place bash:bash-completion/completions/roux zsh:zsh/site-functions/_roux
                  fish:fish/vendor_completions.d/roux.fish)
  string(REPLACE ":" ";" place "${place}")
  list(GET place 0 shell)
  list(GET place 1 file)
  string(CONFIGURE [[
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/@file@")
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND "@CMAKE_BINARY_DIR@/bin/roux" completion @shell@ OUTPUT_FILE "${file}"
      COMMAND_ERROR_IS_FATAL ANY)
  ]] code @ONLY)
  install(CODE "${code}")
endforeach()
# Last, because it reads what the files above need.
install(CODE "execute_process(COMMAND bash \"${CMAKE_SOURCE_DIR}/runner/cmake/carry_libraries.sh\"
  \"${CMAKE_BINARY_DIR}\" \"${ROUX_DEPS}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT libraries)
