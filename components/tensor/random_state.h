#pragma once

#include <memory>
#include <string>

namespace components {

/// Where LibTorch's default CPU generator stood at one moment: 5 kB, about a microsecond to take.
class RandomState {
 public:
  static RandomState now();
  static RandomState of(const std::string& bytes);  ///< that bytes() gave
  void restore() const;
  std::string bytes() const;  ///< as LibTorch hands it out

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace components
