#include "tests/support/torch/pretended_graph.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "runner/core/platform/device_graph.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/pretended_kernels.h"
#include "tests/support/torch/pretended_memory.h"
#include "tests/support/torch/pretended_streams.h"

namespace tests::accelerator {
namespace {

using at::Tensor;

struct Recording {
  c10::DeviceIndex device;
  c10::StreamId stream;
  std::vector<std::function<void()>> kernels;
  std::vector<Tensor> memory;
};

/// The graph that is captured: one at a time. The backward pass adds to it from a thread of its own.
struct Current {
  std::mutex mutex;
  Recording* recording = nullptr;
};

Current& current() {
  static auto* const current = new Current;
  return *current;
}

Recording* recording_of(c10::DeviceIndex device) {
  Recording* const recording = current().recording;
  const bool is_here =
      recording != nullptr && recording->device == device && recording->stream == current_stream(device);
  return is_here ? recording : nullptr;
}

class Graph final : public runner::core::DeviceGraph {
 public:
  void capture(const std::function<void()>& work) override {
    const c10::DeviceIndex device = current_device();
    TORCH_CHECK(current_stream(device) != 0, "CUDA graphs must be captured on a non-default stream.");
    device_guard().synchronizeDevice(device);
    Recording recording{device, current_stream(device), {}, {}};
    const MemoryImage image(device);
    const std::function<void()> restore_generators = keep_generators(device);
    set_current(&recording);
    const auto end = [&] {
      set_current(nullptr);
      image.restore();
      restore_generators();
    };
    try {
      work();
    } catch (...) {
      end();
      throw;
    }
    end();
    for (const Tensor& tensor : recording.memory) {
      if (tensor.device().type() != kKind || !tensor.has_storage()) continue;
      if (!image.holds(tensor.storage().data()) && seen_.insert(tensor.storage().data()).second) {
        own_.push_back(tensor);
      }
    }
    device_ = device;
    kernels_ = std::move(recording.kernels);
  }

  void replay() override {
    TORCH_CHECK(!kernels_.empty(), "Called CUDAGraph::replay without a preceding successful capture.");
    const at::AutoDispatchBelowADInplaceOrView below;
    const at::NoGradGuard no_grad;
    run_queued(device_);
    // What a graph computes it computes in each replay: nothing survives in its own memory.
    for (const Tensor& tensor : own_) poison(tensor.storage());
    for (const auto& kernel : kernels_) kernel();
    ++replays;
  }

  static std::atomic<std::int64_t> replays;

 private:
  static void set_current(Recording* recording) {
    const std::lock_guard<std::mutex> lock(current().mutex);
    current().recording = recording;
  }

  c10::DeviceIndex device_ = 0;
  std::vector<std::function<void()>> kernels_;  // they keep the memory
  std::vector<Tensor> own_;
  std::set<const void*> seen_;
};

std::atomic<std::int64_t> Graph::replays{0};

}  // namespace

bool is_captured(c10::DeviceIndex device) {
  const std::lock_guard<std::mutex> lock(current().mutex);
  return recording_of(device) != nullptr;
}

void refuse_while_captured(c10::DeviceIndex device, const char* what) {
  TORCH_CHECK(!is_captured(device), "CUDA error: operation not permitted when stream is capturing (", what, ")");
}

void note_kernel(std::function<void()> kernel, const std::vector<Tensor>& memory) {
  const std::lock_guard<std::mutex> lock(current().mutex);
  Recording& recording = *current().recording;
  recording.kernels.push_back(std::move(kernel));
  recording.memory.insert(recording.memory.end(), memory.begin(), memory.end());
}

Tensor same_memory(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (tensor.device().type() != kKind) return tensor.clone();
  return Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(),
                                                                      /*allow_tensor_metadata_change=*/false));
}

c10::IValue same_memory(const c10::IValue& argument, std::vector<Tensor>& memory) {
  const auto kept = [&memory](const Tensor& tensor) {
    Tensor same = same_memory(tensor);
    if (same.defined()) memory.push_back(same);
    return same;
  };
  if (argument.isTensor()) return kept(argument.toTensor());
  if (argument.isTensorList()) {
    std::vector<Tensor> list;
    for (const Tensor& tensor : argument.toTensorVector()) list.push_back(kept(tensor));
    return list;
  }
  if (argument.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& tensor : argument.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional<Tensor>(kept(*tensor)) : std::nullopt);
    }
    return list;
  }
  return argument;
}

std::unique_ptr<runner::core::DeviceGraph> new_graph() { return std::make_unique<Graph>(); }

std::int64_t graph_replays() { return Graph::replays; }

}  // namespace tests::accelerator
