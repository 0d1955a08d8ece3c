#include "runner/core/platform/python_package.h"

#include <filesystem>
#include <system_error>

#include "runner/core/platform/files.h"
#include "runner/core/platform/process.h"
#include "runner/core/text/text.h"

namespace runner::core {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileBytesMax = 1 << 16;

/// `__version__ = '2.11.0+cu130'` of torch/version.py.
std::string version_in(const std::string& python) {
  std::size_t at = python.find("\n__version__");
  if (at == std::string::npos) return "";
  at = python.find_first_of("'\"\n", at + 1);
  if (at == std::string::npos || python[at] == '\n') return "";
  const std::size_t end = python.find_first_of("'\"\n", at + 1);
  return end == std::string::npos ? "" : python.substr(at + 1, end - at - 1);
}

/// Without what follows the plus: which CUDA the build is for.
std::string release_of(const std::string& version) { return version.substr(0, version.find('+')); }

std::string install_hint(const std::string& needed) {
  return "`pip install torch==" + needed + "` in this environment; validate, list, explain and runs work without it";
}

}  // namespace

std::optional<PythonPackage> python_package(const std::string& program) {
  const fs::path package = fs::path(program).parent_path().parent_path();
  // Written by packaging/wheel/build.
  const auto needed = read_file((package / "share" / "roux" / "torch-version").string(), kFileBytesMax);
  if (!needed) return std::nullopt;
  const fs::path torch = package.parent_path() / "torch";
  const auto version = read_file((torch / "version.py").string(), kFileBytesMax);
  return PythonPackage{.torch_folder = torch.string(),
                       .needed = std::string(trimmed(needed.value(), " \t\r\n")),
                       .found = version ? version_in(version.value()) : ""};
}

Result<void> check_torch(const std::string& program) {
  const auto package = python_package(program);
  if (!package || release_of(package->found) == package->needed) return {};
  if (package->found.empty()) {
    return Failure{"this roux needs torch " + package->needed + ", and " + package->torch_folder + " has none",
                   install_hint(package->needed)};
  }
  return Failure{
      "this roux needs torch " + package->needed + ", and " + package->torch_folder + " is " + package->found,
      install_hint(package->needed) + "; a virtual environment of its own keeps the other torch"};
}

bool has_gpu_libraries() {
  std::error_code ignored;
  if (!fs::exists(library_beside_program("libroux_cuda.so"), ignored)) return false;
  const auto package = python_package(own_program());
  return !package || fs::exists(fs::path(package->torch_folder) / "lib" / "libtorch_cuda.so", ignored);
}

Failure no_gpu_libraries() {
  std::error_code ignored;
  if (const auto package = python_package(own_program());
      package && fs::exists(library_beside_program("libroux_cuda.so"), ignored)) {
    return {"torch " + package->found + " beside this roux is built without CUDA",
            "`pip install --force-reinstall torch==" + package->needed + "` from PyPI has it"};
  }
  return {"this roux is built without GPU support", "`ROUX_PRESET=cuda ./roux` builds it with"};
}

}  // namespace runner::core
