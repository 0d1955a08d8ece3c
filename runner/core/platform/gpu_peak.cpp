#include "runner/core/platform/gpu_peak.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace runner::core {
namespace {

struct KnownGpu {
  std::vector<std::string> words;  ///< all of them are words of its name
  GpuPeak teraflops;
};

// From NVIDIA's data sheets. Of two that fit, the first counts.
const std::vector<KnownGpu>& known_gpus() {
  static const std::vector<KnownGpu> gpus = {
      {{"B200"}, {75, 1125, 2250, 2250}},
      {{"H200", "NVL"}, {60, 417.5, 835, 835}},
      {{"H200"}, {67, 494.5, 989, 989}},
      {{"H100", "NVL"}, {60, 417.5, 835, 835}},
      {{"H100", "PCIe"}, {51, 378, 756, 756}},
      {{"H100"}, {67, 494.5, 989, 989}},
      {{"A100"}, {19.5, 156, 312, 312}},
      {{"A40"}, {37.4, 74.8, 149.7, 149.7}},
      {{"A30"}, {10.3, 82, 165, 165}},
      {{"A10"}, {31.2, 62.5, 125, 125}},
      {{"RTX", "A6000"}, {38.7, 77.4, 154.8, 154.8}},
      {{"L40S"}, {91.6, 183, 362, 362}},
      {{"L40"}, {90.5, 90.5, 181, 181}},
      {{"L4"}, {30.3, 60, 121, 121}},
      {{"V100"}, {15.7, 0, 125, 0}},
      {{"T4"}, {8.1, 0, 65, 0}},
      {{"RTX", "5090"}, {104.8, 104.8, 209.5, 209.5}},
      {{"RTX", "4090"}, {82.6, 82.6, 165.2, 165.2}},
      {{"RTX", "3090"}, {35.6, 35.6, 71, 71}},
  };
  return gpus;
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      words.back() += letter;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

}  // namespace

GpuPeak gpu_peak(const std::string& name) {
  constexpr double kTera = 1e12;
  const std::vector<std::string> words = words_of(name);
  const auto has = [&words](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const KnownGpu& gpu : known_gpus()) {
    if (!std::all_of(gpu.words.begin(), gpu.words.end(), has)) continue;
    const GpuPeak& peak = gpu.teraflops;
    return {peak.float32 * kTera, peak.tf32 * kTera, peak.float16 * kTera, peak.bfloat16 * kTera};
  }
  return {};
}

}  // namespace runner::core
