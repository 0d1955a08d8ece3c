#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "runner/engine/engine.h"

namespace runner::engine {
namespace {

// Beside this program: ../lib in a build folder and in an installed prefix alike.
std::string engine_path() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "libroux_engine.so";
  return (program.parent_path().parent_path() / "lib" / "libroux_engine.so").string();
}

core::Failure failed(const std::string& what) {
  return {"cannot load the training engine: " + what,
          "build it with ./roux (target roux_engine), or install roux again; validate, list, explain and runs work "
          "without it"};
}

}  // namespace

core::Result<Engine*> load_engine() {
  static Engine* loaded = nullptr;
  if (loaded != nullptr) return loaded;
  void* library = dlopen(engine_path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return failed(dlerror());
  auto* entry = reinterpret_cast<Engine* (*)()>(dlsym(library, "roux_engine"));
  if (entry == nullptr) return failed(engine_path() + " has no roux_engine()");
  loaded = entry();
  return loaded;
}

}  // namespace runner::engine
