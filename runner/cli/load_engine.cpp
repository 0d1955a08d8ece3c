#include <dlfcn.h>

#include <cstdlib>
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

/// A thread of OpenMP looks out for its next work before it sleeps, by default so long that beside other programs it
/// keeps a core from the very thread that it waits for: a step then takes ten times as long. Some microseconds are
/// enough for the next kernel. To be said before the library is loaded; what somebody has said already stays.
void shorten_waits() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "2000", /*overwrite=*/0);
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
  shorten_waits();
  void* library = dlopen(engine_path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return failed(dlerror());
  auto* entry = reinterpret_cast<Engine* (*)()>(dlsym(library, "roux_engine"));
  if (entry == nullptr) return failed(engine_path() + " has no roux_engine()");
  loaded = entry();
  return loaded;
}

}  // namespace runner::engine
