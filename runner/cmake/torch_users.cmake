# torch_users(SOURCES WITHOUT TENSORS OPERATIONS): cuts the list SOURCES into those that do not include LibTorch,
# neither themselves nor through headers of this tree, those that include its tensors alone, and those that include
# operations or what else is large. Each part has a precompiled header that holds no more than it needs: a file pays for
# all templates in it, used or not.
#
# Read when CMake configures. A source that includes more of LibTorch since then is compiled all the same, since it has
# the include folders and the flags of the others; it takes longer until CMake runs again.
function(torch_users sources without tensors operations)
  set(part_0 "")
  set(part_1 "")
  set(part_2 "")
  foreach(source ${sources})
    torch_share("${source}" share)
    list(APPEND part_${share} "${source}")
  endforeach()
  set(${without} "${part_0}" PARENT_SCOPE)
  set(${tensors} "${part_1}" PARENT_SCOPE)
  set(${operations} "${part_2}" PARENT_SCOPE)
endfunction()

# 0, 1 or 2, as above. A header is read once, and its answer kept for all that include it.
function(torch_share file out)
  get_property(is_known GLOBAL PROPERTY "torch_share ${file}" SET)
  if(NOT is_known)
    set_property(GLOBAL PROPERTY "torch_share ${file}" 0)  # while it is read: headers may lead back to it
    set(most 0)
    file(STRINGS "${file}" lines REGEX "^#include [<\"]")
    foreach(line ${lines})
      set(share 0)
      string(REGEX REPLACE "^#include [<\"]([^>\"]+).*" "\\1" name "${line}")
      if(line MATCHES "^#include <(c10/|ATen/(core/Tensor|core/grad_mode|Context|Parallel|Version)[.]h>)")
        set(share 1)
      elseif(line MATCHES "^#include <(ATen|torch)/")
        set(share 2)
      elseif(EXISTS "${CMAKE_SOURCE_DIR}/${name}")
        torch_share("${CMAKE_SOURCE_DIR}/${name}" share)
      endif()
      if(share GREATER most)
        set(most ${share})
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY "torch_share ${file}" ${most})
  endif()
  get_property(share GLOBAL PROPERTY "torch_share ${file}")
  set(${out} ${share} PARENT_SCOPE)
endfunction()
