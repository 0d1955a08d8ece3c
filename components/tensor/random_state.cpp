#include "components/tensor/random_state.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <mutex>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components {
namespace {

std::vector<c10::Device> devices_of(const c10::Device& device) {
  std::vector<c10::Device> devices = {c10::Device(c10::kCPU)};
  // Nothing is drawn on the meta device.
  if (!device.is_cpu() && !device.is_meta()) devices.push_back(device);
  return devices;
}

at::Tensor state_of(const c10::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

at::Tensor tensor_of(const char* bytes, std::size_t size) {
  at::Tensor copy = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
  std::memcpy(copy.mutable_data_ptr(), bytes, size);
  return copy;
}

}  // namespace

struct RandomState::State {
  struct Generator {
    c10::Device device;
    at::Tensor bytes;  // on the CPU; undefined when not known
  };
  std::vector<Generator> generators;
};

RandomState RandomState::now(const c10::Device& device) { return now(devices_of(device)); }

RandomState RandomState::of(const std::string& bytes, const c10::Device& device) {
  return of(bytes, devices_of(device));
}

RandomState RandomState::now(const std::vector<c10::Device>& generators) {
  State state;
  for (const c10::Device& device : generators) state.generators.push_back({device, state_of(device)});
  RandomState now;
  now.state_ = std::make_shared<const State>(std::move(state));
  return now;
}

RandomState RandomState::of(const std::string& bytes, const std::vector<c10::Device>& generators) {
  State state;
  std::size_t begin = 0;
  for (const c10::Device& device : generators) {
    const std::size_t size = state_of(device).nbytes();
    RUNNER_ASSERT(begin + size <= bytes.size(), "these are the bytes of the same kinds of generators");
    state.generators.push_back({device, tensor_of(bytes.data() + begin, size)});
    begin += size;
  }
  RandomState found;
  found.state_ = std::make_shared<const State>(std::move(state));
  return found;
}

RandomState RandomState::of(const std::vector<NamedTensor>& generators, const c10::Device& device) {
  const std::vector<std::string> names = names_of(device);
  const std::vector<c10::Device> all = devices_of(device);
  State state;
  for (std::size_t i = 0; i < all.size(); ++i) {
    state.generators.push_back({all[i], {}});
    for (const NamedTensor& generator : generators) {
      if (generator.name == names[i]) state.generators.back().bytes = generator.tensor;
    }
  }
  RandomState found;
  found.state_ = std::make_shared<const State>(std::move(state));
  return found;
}

std::vector<std::string> RandomState::names_of(const c10::Device& device) {
  std::vector<std::string> names;
  for (const c10::Device& one : devices_of(device)) {
    names.push_back("torch." + c10::DeviceTypeName(one.type(), /*lower_case=*/true));
  }
  return names;
}

void RandomState::restore() const {
  for (const State::Generator& one : state_->generators) {
    if (!one.bytes.defined()) continue;
    at::Generator generator = at::globalContext().defaultGenerator(one.device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(one.bytes);
  }
}

std::string RandomState::bytes() const {
  std::string bytes;
  for (const State::Generator& one : state_->generators) {
    bytes.append(static_cast<const char*>(one.bytes.const_data_ptr()), one.bytes.nbytes());
  }
  return bytes;
}

std::vector<NamedTensor> RandomState::tensors() const {
  std::vector<NamedTensor> tensors;
  for (const State::Generator& one : state_->generators) {
    tensors.push_back({"torch." + c10::DeviceTypeName(one.device.type(), /*lower_case=*/true), one.bytes});
  }
  return tensors;
}

}  // namespace components
