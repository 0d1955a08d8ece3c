#include "runner/core/platform/gpu_kernels.h"

#include <cctype>
#include <string_view>
#include <vector>

#include "runner/core/text/text.h"

namespace runner::core {
namespace {

constexpr int kTen = 10;  // sm_75 is 7.5, sm_120 is 12.0

/// What one `code=` names.
struct Kernels {
  bool is_text;   ///< PTX, which the driver compiles for later GPUs
  int number;     ///< 75
  char features;  ///< `a`: for this GPU only; `f`: for its family; else 0

  bool run_on(int major, int minor) const {
    const int gpu = kTen * major + minor;
    if (features == 'a') return gpu == number;
    if (is_text && features == 0) return gpu >= number;
    return number / kTen == major && gpu >= number;
  }
};

std::vector<Kernels> kernels_of(const std::string& flags) {
  std::vector<Kernels> found;
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    const bool is_text = prefix == "compute_";
    for (std::size_t at = flags.find(prefix); at != std::string::npos; at = flags.find(prefix, at + 1)) {
      const bool is_code = at > 0 && (flags[at - 1] == '=' || flags[at - 1] == ',' || flags[at - 1] == '[');
      const bool is_arch = at >= 5 && flags.compare(at - 5, 5, "arch=") == 0;
      if (!is_code || is_arch) continue;
      std::size_t end = at + prefix.size();
      int number = 0;
      while (end < flags.size() && std::isdigit(static_cast<unsigned char>(flags[end])) != 0) {
        number = kTen * number + (flags[end++] - '0');
      }
      const char next = end < flags.size() ? flags[end] : '\0';
      found.push_back({is_text, number, next == 'a' || next == 'f' ? next : '\0'});
    }
  }
  return found;
}

std::string capability(int number) { return std::to_string(number / kTen) + "." + std::to_string(number % kTen); }

}  // namespace

std::string lack_of_kernels(const std::string& nvcc_flags, int major, int minor) {
  const std::vector<Kernels> all = kernels_of(nvcc_flags);
  std::vector<std::string> names;
  for (const Kernels& kernels : all) {
    if (kernels.run_on(major, minor)) return "";
    names.push_back(capability(kernels.number));
  }
  if (names.empty()) return "";
  return "its compute capability is " + capability(kTen * major + minor) + ", and LibTorch has kernels for " +
         joined(names, ", ");
}

}  // namespace runner::core
