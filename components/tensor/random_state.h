#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

namespace components {

struct NamedTensor;

/// The state of the generators that a training on a device draws from: LibTorch's default one of the CPU (5 kB, about a
/// microsecond to copy) and, elsewhere, the device's own.
class RandomState {
 public:
  static RandomState now(const c10::Device& device);
  static RandomState of(const std::string& bytes, const c10::Device& device);  ///< that bytes() gave
  /// The same for LibTorch's default generators of these devices alone.
  static RandomState now(const std::vector<c10::Device>& generators);
  static RandomState of(const std::string& bytes, const std::vector<c10::Device>& generators);
  /// From a checkpoint, by the names of names_of().
  static RandomState of(const std::vector<NamedTensor>& generators, const c10::Device& device);
  /// What a checkpoint calls the generators of a device: `torch.cpu`, then `torch.cuda`. Without the index: state moves
  /// between the devices of a kind.
  static std::vector<std::string> names_of(const c10::Device& device);

  /// A generator whose state is not here keeps its own.
  void restore() const;
  std::string bytes() const;  ///< of all generators, each as LibTorch returns it
  std::vector<NamedTensor> tensors() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace components
