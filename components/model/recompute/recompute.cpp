#include "components/model/recompute/recompute.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "components/model/recompute/saved_outputs.h"
#include "components/tensor/autocast.h"
#include "components/tensor/buffer_snapshot.h"
#include "components/tensor/random_state.h"
#include "components/tensor/row_notes.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

/// Random numbers and buffers stand as they did at a moment before, and afterwards as if nothing had happened.
class GoneBack {
 public:
  GoneBack(const RandomState& random, const BufferSnapshot& buffers, const NamedTensors& now, const c10::Device& device)
      : random_now_(RandomState::now(device)), buffers_now_(now) {
    random.restore();
    buffers.restore();
  }
  ~GoneBack() {
    random_now_.restore();
    buffers_now_.restore();
  }
  GoneBack(const GoneBack&) = delete;
  GoneBack& operator=(const GoneBack&) = delete;

 private:
  RandomState random_now_;
  BufferSnapshot buffers_now_;
};

/// A copy of a weight in lower precision that was made without a graph must not be found by a pass with one.
class NoAutocastCache {
 public:
  NoAutocastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~NoAutocastCache() { at::autocast::set_autocast_cache_enabled(before_); }
  NoAutocastCache(const NoAutocastCache&) = delete;
  NoAutocastCache& operator=(const NoAutocastCache&) = delete;

 private:
  bool before_;
};

/// The meta device stands for the CPU.
c10::DeviceType kind_of(const c10::Device& device) { return device.is_meta() ? c10::kCPU : device.type(); }

/// Its inputs are those of the part, then its parameters.
class RecomputeBackward final : public torch::autograd::Node {
 public:
  RecomputeBackward(std::shared_ptr<const RecomputedPart> part, std::vector<std::string> names,
                    const std::vector<at::Tensor>& inputs)
      : part_(std::move(part)),
        names_(std::move(names)),
        device_(inputs.front().device()),
        random_(RandomState::now(device_)),
        buffers_(part_->buffers),
        autocast_(Autocast::now(kind_of(device_))) {
    torch::autograd::edge_list edges;
    for (const at::Tensor& input : inputs) {
      inputs_.emplace_back(input, false);
      edges.push_back(torch::autograd::impl::gradient_edge(input));
    }
    for (const NamedTensor& parameter : part_->parameters) {
      edges.push_back(torch::autograd::impl::gradient_edge(parameter.tensor));
    }
    set_next_edges(std::move(edges));
  }

  /// The first pass.
  void forward(TensorMap& activations) {
    const at::NoGradGuard no_grad;
    const NoAutocastCache no_cache;
    std::optional<SavedOutputs::RecordGuard> keeping;
    if (part_->save_matmuls) keeping.emplace(outputs_);
    part_->forward(activations);
  }

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    RUNNER_ASSERT(part_ != nullptr, "the backward pass of what is recomputed runs once");
    TensorMap activations;
    std::vector<at::Tensor> leaves = unpack(activations);
    forward_again(activations);
    variable_list roots, of_roots;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor& output = activations.at(part_->outputs[i]);
      if (!gradients[i].defined() || !output.requires_grad()) continue;
      roots.push_back(output);
      of_roots.push_back(std::move(gradients[i]));
    }
    activations.clear();
    return differentiate(roots, of_roots, leaves);
  }

  std::string name() const override { return "RecomputeBackward"; }

  void release_variables() override {
    for (SavedVariable& input : inputs_) input.reset_data();
    part_ = nullptr;
  }

 private:
  /// The inputs of the second pass, the beginning of a graph of its own; with the parameters, what gradients are of.
  std::vector<at::Tensor> unpack(TensorMap& activations) const {
    std::vector<at::Tensor> leaves;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const at::Tensor input = inputs_[i].unpack();
      leaves.push_back(input.detach().set_requires_grad(input.requires_grad()));
      activations.set(names_[i], leaves.back());
    }
    for (const NamedTensor& parameter : part_->parameters) leaves.push_back(parameter.tensor);
    return leaves;
  }

  void forward_again(TensorMap& activations) {
    const at::AutoGradMode with_graph(true);
    const GoneBack gone_back(random_, buffers_, part_->buffers, device_);
    const Autocast autocast(autocast_);
    std::optional<SavedOutputs::ReplayGuard> taking;
    if (part_->save_matmuls) taking.emplace(outputs_);
    part_->forward(activations);
  }

  variable_list differentiate(const variable_list& roots, const variable_list& of_roots, const variable_list& leaves) {
    variable_list of_leaves(leaves.size()), wanted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!task_should_compute_output(i)) continue;
      wanted.push_back(leaves[i]);
      places.push_back(i);
    }
    if (roots.empty() || wanted.empty()) return of_leaves;
    variable_list found = torch::autograd::grad(roots, wanted, of_roots, /*retain_graph=*/false,
                                                /*create_graph=*/false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < places.size(); ++i) of_leaves[places[i]] = std::move(found[i]);
    return of_leaves;
  }

  std::shared_ptr<const RecomputedPart> part_;
  std::vector<std::string> names_;  // of the inputs: those of the part, and notes of the batch
  c10::Device device_;
  std::vector<SavedVariable> inputs_;
  RandomState random_;
  BufferSnapshot buffers_;
  AutocastOptions autocast_;
  SavedOutputs outputs_;
};

bool any_requires_grad(const std::vector<at::Tensor>& inputs, const NamedTensors& parameters) {
  return std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& input) { return input.requires_grad(); }) ||
         std::any_of(parameters.begin(), parameters.end(),
                     [](const NamedTensor& parameter) { return parameter.tensor.requires_grad(); });
}

}  // namespace

void forward_recomputed(const std::shared_ptr<const RecomputedPart>& part, TensorMap& activations) {
  std::vector<at::Tensor> inputs;
  for (const std::string& name : part->inputs) inputs.push_back(activations.at(name));
  std::vector<std::string> names = part->inputs;
  for (const char* note : kRowNotes) {
    if (const at::Tensor* found = activations.find(note)) {
      names.emplace_back(note);
      inputs.push_back(*found);
    }
  }
  if (!at::GradMode::is_enabled() || !any_requires_grad(inputs, part->parameters)) return part->forward(activations);
  const std::shared_ptr<RecomputeBackward> node(new RecomputeBackward(part, std::move(names), inputs),
                                                torch::autograd::deleteNode);
  node->forward(activations);
  for (const std::string& name : part->outputs) {
    // A tensor of its own: one that the pass hands through would get two places in the graph.
    at::Tensor output = activations.at(name).detach();
    torch::autograd::set_history(output, node);
    activations.set(name, std::move(output));
  }
}

}  // namespace components::model
