#pragma once

#include <cstdint>
#include <functional>

namespace components {

/// Passes over tensors of LibTorch's meta device in this thread, which compute nothing and allocate what passes on the
/// CPU allocate, or on a GPU: `plan` measures a training this way, with its forward and backward passes as they are.
/// LibTorch's meta device knows no autocast, takes other ways than the CPU where it has a choice, and lacks the shapes
/// of many operations; what is missing is added here. An operation that is still missing throws c10::Error.
class MetaPass {
 public:
  /// Is told of every allocation, and with a negative number when it is given back.
  using Observer = std::function<void(std::int64_t bytes)>;
  /// `for_gpu`: its tensors stand for a GPU's, which roux's own kernels cannot read.
  explicit MetaPass(Observer observe, bool for_gpu = false);
  ~MetaPass();
  MetaPass(const MetaPass&) = delete;
  MetaPass& operator=(const MetaPass&) = delete;

  /// Whether there is one in this thread: kernels of our own then make their tensors there and leave their work out.
  static bool is_on();
  /// Whether there is one for a GPU.
  static bool is_for_gpu();
  /// Lets go of lower copies of weights, as at::autocast::clear_cache() does.
  static void clear_autocast_cache();
};

}  // namespace components
