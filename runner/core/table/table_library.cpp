#include <dlfcn.h>

#include <mutex>

#include "runner/core/platform/process.h"
#include "runner/core/platform/python_package.h"
#include "runner/core/table/table_file.h"

namespace runner::core {
namespace {

constexpr const char* kLibrary = "libroux_arrow.so";

Failure no_library(const std::string& why) {
  // ROUX_PYARROW: the pinned release, of runner/cmake/arrow.txt.
  const std::string remedy = python_package(own_program()) ? "`pip install pyarrow==" ROUX_PYARROW
                                                             "` in this environment has its libraries"
                                                           : "`./roux env` in a checkout of roux fetches and builds it";
  return {"cannot load what reads Parquet and Arrow files: " + why, remedy + "; JSONL files do not need it"};
}

Result<TableLibrary*> load() {
  const std::string path = library_beside_program(kLibrary);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return no_library(dlerror());
  auto* entry = reinterpret_cast<TableLibrary* (*)()>(dlsym(library, "roux_tables"));
  if (entry == nullptr) return no_library(path + " has no roux_tables()");
  return entry();
}

}  // namespace

Result<TableLibrary*> table_library() {
  static std::mutex mutex;
  static TableLibrary* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded != nullptr) return loaded;
  auto library = load();
  if (library) loaded = library.value();
  return library;
}

bool is_table_path(std::string_view path) {
  return path.ends_with(".parquet") || path.ends_with(".arrow") || path.ends_with(".feather");
}

}  // namespace runner::core
