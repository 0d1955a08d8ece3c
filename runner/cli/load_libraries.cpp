#include <dlfcn.h>

#include <string>

#include "runner/core/platform/machine.h"
#include "runner/core/platform/process.h"
#include "runner/core/platform/python_package.h"
#include "runner/core/platform/torch_process_setup.h"
#include "runner/cuda/cuda.h"
#include "runner/engine/engine.h"

namespace runner {
namespace {

constexpr const char* kCudaLibrary = "libroux_cuda.so";

core::Failure no_engine(const std::string& what) {
  return {"cannot load the training engine: " + what,
          "build it with ./roux (target roux_engine) or reinstall roux; validate, list, explain and runs work "
          "without it"};
}

core::Failure no_cuda(const std::string& what) {
  const auto package = core::python_package(core::own_program());
  const std::string remedy = package ? "`pip install torch==" + package->needed + "` installs CUDA's libraries"
                                     : "`ROUX_PRESET=cuda ./roux` fetches CUDA's libraries";
  return {"cannot load GPU support: " + what, remedy + "; training on the CPU does not need them"};
}

}  // namespace

core::Result<engine::Engine*> engine::load_engine() {
  static Engine* loaded = nullptr;
  if (loaded != nullptr) return loaded;
  if (const auto set = core::check_cpu_capability(); !set) return set.failure();
  if (const auto fits = core::check_torch(core::own_program()); !fits) return fits.failure();
  core::prepare_for_torch();
  const std::string path = core::library_beside_program("libroux_engine.so");
  // LibTorch registers its operators in a heap that grows by pages of 2 MB. Where the system clears them again for it,
  // as a virtual machine does that gave its free memory back, that took longer than all else before the first step.
  core::set_huge_pages(false);
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  core::set_huge_pages(true);
  if (library == nullptr) return no_engine(dlerror());
  auto* entry = reinterpret_cast<Engine* (*)()>(dlsym(library, "roux_engine"));
  if (entry == nullptr) return no_engine(path + " has no roux_engine()");
  loaded = entry();
  return loaded;
}

bool cuda::has_driver() {
  static const bool is_there = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    return driver != nullptr && dlclose(driver) == 0;
  }();
  return is_there;
}

bool cuda::has_support() { return core::has_gpu_libraries(); }

core::Result<cuda::Cuda*> cuda::load_cuda() {
  static Cuda* loaded = nullptr;
  if (loaded != nullptr) return loaded;
  if (!has_support()) return nullptr;
  if (const auto fits = core::check_torch(core::own_program()); !fits) return fits.failure();
  core::prepare_for_torch();
  const std::string path = core::library_beside_program(kCudaLibrary);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return no_cuda(dlerror());
  auto* entry = reinterpret_cast<Cuda* (*)()>(dlsym(library, "roux_cuda"));
  if (entry == nullptr) return no_cuda(path + " has no roux_cuda()");
  loaded = entry();
  return loaded;
}

}  // namespace runner
