#include "components/model/recompute/saved_outputs.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

// Stands below autograd and above the kernels, and is free for libraries outside of LibTorch: what arrives there is
// what is computed, whether or not a graph is recorded above.
constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

// What is kept. Batched products are those of attention without a fused kernel: what they give grows with the square of
// the positions and costs little.
constexpr const char* kOperations[] = {"mm", "addmm", "convolution", "_scaled_dot_product_flash_attention_for_cpu"};

thread_local SavedOutputs* present = nullptr;

void keep_or_take(const c10::OperatorHandle& operation, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = operation.schema();
  if (present != nullptr && present->is_replaying()) {
    if (std::vector<at::Tensor> outputs = present->take(operation); !outputs.empty()) {
      torch::jit::drop(*stack, schema.arguments().size());
      for (at::Tensor& output : outputs) stack->emplace_back(std::move(output));
      return;
    }
  }
  operation.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
  if (present == nullptr || present->is_replaying()) return;
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& output : torch::jit::last(*stack, schema.returns().size())) {
    outputs.push_back(output.toTensor());
  }
  present->keep(operation, std::move(outputs));
}

/// Makes LibTorch's dispatcher pass by here, in threads that ask for it. For good.
class Interception {
 public:
  Interception()
      : others_(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__),
        kept_(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__) {
    others_.fallback(torch::CppFunction::makeFallthrough());
    for (const char* name : kOperations) {
      kept_.impl(name, torch::CppFunction::makeFromBoxedFunction<&keep_or_take>());
    }
  }

 private:
  torch::Library others_, kept_;
};

void begin(SavedOutputs& outputs) {
  [[maybe_unused]] static const Interception interception;
  RUNNER_ASSERT(present == nullptr, "what is recomputed holds nothing that is recomputed by itself");
  present = &outputs;
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

void end() {
  c10::impl::tls_set_dispatch_key_included(kKey, false);
  present = nullptr;
}

}  // namespace

struct SavedOutputs::Entry {
  const c10::FunctionSchema* operation;
  std::vector<at::Tensor> outputs;
  std::vector<std::int64_t> versions;
};

SavedOutputs::SavedOutputs() = default;
SavedOutputs::~SavedOutputs() = default;

void SavedOutputs::keep(const c10::OperatorHandle& operation, std::vector<at::Tensor> outputs) {
  Entry entry{&operation.schema(), std::move(outputs), {}};
  for (const at::Tensor& output : entry.outputs) entry.versions.push_back(output._version());
  entries_.push_back(std::move(entry));
}

std::vector<at::Tensor> SavedOutputs::take(const c10::OperatorHandle& operation) {
  RUNNER_ASSERT(next_ < entries_.size() && entries_[next_].operation == &operation.schema(),
                "the second pass computes what the first one has computed");
  return std::exchange(entries_[next_++].outputs, {});
}

// A bias that is added in place, for example: it would be added twice. What kernels overwrite below the dispatcher's
// sight keeps its version; the only one is fused_linear's ReLU, which makes no difference to what it has made.
void SavedOutputs::drop_overwritten() {
  for (Entry& entry : entries_) {
    for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
      if (entry.outputs[i]._version() == entry.versions[i]) continue;
      entry.outputs.clear();
      break;
    }
  }
}

SavedOutputs::RecordGuard::RecordGuard(SavedOutputs& outputs) : outputs_(outputs) { begin(outputs); }

SavedOutputs::RecordGuard::~RecordGuard() {
  end();
  outputs_.drop_overwritten();
}

SavedOutputs::ReplayGuard::ReplayGuard(SavedOutputs& outputs) {
  begin(outputs);
  outputs.replaying_ = true;
}

SavedOutputs::ReplayGuard::~ReplayGuard() { end(); }

}  // namespace components::model
