#pragma once

#include <optional>
#include <string>

#include "runner/core/result.h"

namespace runner::core {

/// An installation from a wheel: the program lies in site-packages/roux/bin, and LibTorch is the one of the torch
/// beside that folder.
struct PythonPackage {
  std::string torch_folder;  ///< site-packages/torch, whether or not it exists
  std::string needed;        ///< version of torch that the program was linked with, such as "2.11.0"
  std::string found;         ///< version of the torch in torch_folder, such as "2.11.0+cu130"; "" without one
};

/// Nothing when the program was not installed from a wheel. `program`: the path of the program.
std::optional<PythonPackage> python_package(const std::string& program);

/// A failure when the program was installed from a wheel, and torch beside it is another version than the one that the
/// program was linked with, or there is no torch: another one must not be loaded.
Result<void> check_torch(const std::string& program);

/// Whether this program can load libroux_cuda.so: it lies beside the program, and so does LibTorch's CUDA half.
bool has_gpu_libraries();

/// Why has_gpu_libraries() is false, and where to get GPU support. The hint is a clause that others may be added to.
Failure no_gpu_libraries();

}  // namespace runner::core
