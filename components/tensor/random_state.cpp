#include "components/tensor/random_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <mutex>

namespace components {

struct RandomState::State {
  at::Tensor bytes;
};

RandomState RandomState::now() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  RandomState state;
  state.state_ = std::make_shared<const State>(State{generator.get_state()});
  return state;
}

RandomState RandomState::of(const std::string& bytes) {
  const at::Tensor copy = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
  RandomState state;
  state.state_ = std::make_shared<const State>(State{copy});
  return state;
}

std::string RandomState::bytes() const {
  return {static_cast<const char*>(state_->bytes.const_data_ptr()), state_->bytes.nbytes()};
}

void RandomState::restore() const {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state_->bytes);
}

}  // namespace components
