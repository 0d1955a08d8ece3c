#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace runner::sweep {

/// The GPUs of a worker among the trials that it trains at once, each in a process of its own.
class GpuShares {
 public:
  /// `gpus`: as CUDA_VISIBLE_DEVICES names them. `each`: how many a trial needs. Without that many nothing is shared
  /// out, and a trial sees what the worker sees.
  GpuShares(std::vector<std::string> gpus, int each);

  /// Value of CUDA_VISIBLE_DEVICES for a trial: the GPUs that the fewest others have, the first ones of those. "":
  /// leave it as it is.
  std::string take(std::int64_t trial);
  void give_back(std::int64_t trial);

 private:
  std::vector<std::string> gpus_;
  std::size_t each_;
  std::vector<int> users_;  ///< trials on each GPU
  std::map<std::int64_t, std::vector<std::size_t>> taken_;
};

}  // namespace runner::sweep
