#include "components/optimizer/grouped.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <omp.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "components/kernels/optimizer.h"
#include "components/ops/tensor_steps.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::optimizer {

namespace {

/// Below this many elements the kernels' own threads cost more than they gain (a few microseconds per tensor).
constexpr std::int64_t kSmallTensorMax = 16'384;

/// A piece of work for one thread: with three buffers it fills half of a core's second-level cache.
constexpr std::int64_t kSliceElements = 32'768;

/// Keeps parallel regions of this thread to one thread; far cheaper than at::set_num_threads, and local.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

bool are_alike(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

/// Twins of bfloat16 weights have a shape and no memory, but are not on the meta device.
NamedTensor shape_of(const NamedTensor& parameter) {
  const at::Tensor& own = parameter.tensor;
  return {parameter.name, own.is_meta() ? own : at::empty(own.sizes(), own.options().device(at::kMeta))};
}

void refuse_unlike(const at::Tensor& saved, const std::string& name, const at::Tensor& like) {
  if (are_alike(saved, like)) return;
  std::ostringstream message;
  message << "optimizer state " << name << " is " << saved.scalar_type() << " " << saved.sizes()
          << ", but the parameter needs " << like.scalar_type() << " " << like.sizes();
  const bool is_other_type = saved.sizes() == like.sizes();
  throw runner::core::RunError(
      message.str(), is_other_type ? "the checkpoint is of an optimizer with a state of another precision; use "
                                     "the optimizer that saved it, or start a new run with --new"
                                   : "the checkpoint is of another model; start a new run with --new");
}

}  // namespace

/// The empty, the small or the large tensors of a group on one device. Empty ones, rows that are another process's,
/// count steps.
struct GroupedOptimizer::State {
  enum class Size { kEmpty, kSmall, kLarge };

  std::size_t group = 0;
  Size size = Size::kLarge;
  std::vector<std::string> names;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;             // filled for the length of one step
  std::vector<std::vector<at::Tensor>> buffers;  // [buffer][parameter]; undefined before the first gradient
  std::vector<at::Tensor> trained;               // while the evaluation weights replace the parameters
  std::vector<std::int64_t> steps;               // done, of each parameter
  bool in_step = true;                           // all `steps` are equal
  at::Tensor lr, step;                           // on the device; undefined: the CPU's numbers count
  std::optional<at::Tensor> skip;                // the flag of skip_if() there

  static Size size_of(const at::Tensor& parameter) {
    if (parameter.numel() == 0) return Size::kEmpty;
    return parameter.numel() < kSmallTensorMax ? Size::kSmall : Size::kLarge;
  }
  bool is_empty() const { return size == Size::kEmpty; }
  void compare_steps() {
    in_step = std::all_of(steps.begin(), steps.end(), [this](std::int64_t step) { return step == steps.front(); });
  }
  /// True when every parameter has one.
  bool take_gradients() {
    bool all = true;
    gradients.clear();
    for (const at::Tensor& parameter : parameters) {
      const at::Tensor& gradient = parameter.grad();
      all = all && gradient.defined();
      // The fused kernels read memory in order, whatever the strides say.
      gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    }
    return all;
  }
};

GroupedOptimizer::GroupedOptimizer(std::vector<ParamGroup> groups, double lr, double weight_decay,
                                   std::vector<std::string> buffer_names)
    : groups_(std::move(groups)), lr_(lr), weight_decay_(weight_decay), buffer_names_(std::move(buffer_names)) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const State::Size size : {State::Size::kEmpty, State::Size::kSmall, State::Size::kLarge}) {
      const std::size_t first = states_.size();
      for (const NamedTensor& parameter : groups_[group].parameters) {
        if (State::size_of(parameter.tensor) != size) continue;
        const auto is_here = [&parameter](const auto& state) {
          return state->parameters.front().device() == parameter.tensor.device();
        };
        auto at = std::find_if(states_.begin() + static_cast<std::ptrdiff_t>(first), states_.end(), is_here);
        if (at == states_.end()) {
          states_.push_back(std::make_unique<State>());
          at = std::prev(states_.end());
          (*at)->group = group;
          (*at)->size = size;
        }
        (*at)->names.push_back(parameter.name);
        (*at)->parameters.push_back(parameter.tensor);
      }
    }
  }
  for (const auto& state : states_) {
    state->buffers.assign(buffer_names_.size(), std::vector<at::Tensor>(state->parameters.size()));
    state->trained.resize(state->parameters.size());
    state->steps.assign(state->parameters.size(), 0);
  }
}

GroupedOptimizer::~GroupedOptimizer() = default;

std::int64_t GroupedOptimizer::state_bytes() const {
  std::int64_t bytes = 0;
  for (const ParamGroup& group : groups_) {
    for (const NamedTensor& parameter : group.parameters) {
      if (parameter.tensor.numel() == 0) continue;
      const NamedTensor shape = shape_of(parameter);
      for (std::size_t kind = 0; kind < buffer_names_.size(); ++kind) {
        const at::Tensor buffer = new_buffer(kind, shape);
        if (buffer.defined()) bytes += static_cast<std::int64_t>(buffer.nbytes());
      }
    }
  }
  return bytes;
}

double GroupedOptimizer::lr(std::size_t group) const { return groups_[group].lr.value_or(lr_) * lr_factor_; }

double GroupedOptimizer::weight_decay(std::size_t group) const {
  return groups_[group].weight_decay.value_or(weight_decay_);
}

void GroupedOptimizer::skip_if(const at::Tensor& flag) {
  for (const auto& state : states_) {
    state->skip.reset();
    if (flag.defined()) state->skip = flag.to(state->parameters.front().device());
  }
}

void GroupedOptimizer::step() {
  const at::NoGradGuard no_grad;
  for (const auto& state : states_) {
    if (state->take_gradients() && state->in_step) {
      step_together(*state);
    } else {
      const std::set<std::int64_t> counts(state->steps.begin(), state->steps.end());
      // From the furthest on, so that no parameter is met twice.
      for (auto count = counts.rbegin(); count != counts.rend(); ++count) step_subset(*state, *count);
      state->compare_steps();
    }
    state->gradients.clear();  // frees the gradients
  }
}

// The trained weights are kept, not recomputed: an evaluation must not change a bit of the training.
void GroupedOptimizer::use_eval_weights(bool eval) {
  if (!has_eval_weights()) return;
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> copies;  // all of them before the first change, in case memory runs out
  for (const auto& state : states_) {
    auto& of_state = copies.emplace_back(state->parameters.size());
    for (std::size_t i = 0; eval && i < of_state.size(); ++i) {
      if (state->is_empty()) continue;
      if (state->steps[i] > 0 && !state->trained[i].defined()) of_state[i] = state->parameters[i].detach().clone();
    }
  }
  for (std::size_t s = 0; s < states_.size(); ++s) {
    State& state = *states_[s];
    for (std::size_t i = 0; i < state.parameters.size(); ++i) {
      if (copies[s][i].defined()) {
        std::vector<at::Tensor> buffers;
        for (const auto& kind : state.buffers) buffers.push_back(kind[i]);
        compute_eval_weights(state.parameters[i], buffers);
        state.trained[i] = std::move(copies[s][i]);
      } else if (!eval && state.trained[i].defined()) {
        state.parameters[i].copy_(state.trained[i]);
        state.trained[i].reset();
      }
    }
  }
}

at::Tensor GroupedOptimizer::new_buffer(std::size_t, const NamedTensor& parameter) const {
  return at::zeros_like(parameter.tensor);
}

void GroupedOptimizer::make_buffers(State& state, std::size_t parameter) const {
  if (state.is_empty()) return;
  for (std::size_t kind = 0; kind < state.buffers.size(); ++kind) {
    state.buffers[kind][parameter] = new_buffer(kind, {state.names[parameter], state.parameters[parameter]});
  }
}

void GroupedOptimizer::refuse_other_than_float(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return;
  throw runner::core::RunError(std::string("this optimizer supports float32 parameters only, got ") +
                               c10::toString(tensor.scalar_type()));
}

bool GroupedOptimizer::is_on_cpu(const Batch& batch) { return batch.parameters.front().is_cpu(); }

void GroupedOptimizer::for_each_tensor(const Batch& batch, std::size_t elementwise,
                                       const std::function<void(const kernels::TensorSlice&, std::size_t)>& run) {
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    refuse_other_than_float(batch.parameters[i]);
    kernels::TensorSlice slice{batch.parameters[i], batch.gradients[i]};
    for (std::size_t k = 0; k < elementwise; ++k) slice.state[k] = batch.buffers[k][i];
    run(slice, i);
  }
}

void GroupedOptimizer::for_each_piece(const Batch& batch, std::size_t elementwise,
                                      const std::function<void(const kernels::Slice&, std::size_t)>& run) {
  struct Piece {
    std::size_t parameter;
    std::int64_t begin, size;
  };
  std::vector<Piece> pieces;
  std::vector<kernels::Slice> wholes(batch.parameters.size());
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const at::Tensor& parameter = batch.parameters[i];
    refuse_other_than_float(parameter);
    refuse_other_than_float(batch.gradients[i]);
    wholes[i].parameter = parameter.mutable_data_ptr<float>();
    wholes[i].gradient = batch.gradients[i].const_data_ptr<float>();
    for (std::size_t k = 0; k < elementwise; ++k) {
      const at::Tensor& buffer = batch.buffers[k][i];
      if (buffer.defined()) wholes[i].state[k] = buffer.mutable_data_ptr<float>();
    }
    for (std::int64_t begin = 0; begin < parameter.numel(); begin += kSliceElements) {
      pieces.push_back({i, begin, std::min(kSliceElements, parameter.numel() - begin)});
    }
  }
  at::parallel_for(0, static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t p = from; p < to; ++p) {
      const Piece& piece = pieces[static_cast<std::size_t>(p)];
      kernels::Slice slice = wholes[piece.parameter];
      slice.parameter += piece.begin;
      slice.gradient += piece.begin;
      for (float*& state : slice.state) {
        if (state != nullptr) state += piece.begin;
      }
      slice.size = piece.size;
      run(slice, piece.parameter);
    }
  });
}

void GroupedOptimizer::capture_step() {
  const at::NoGradGuard no_grad;
  for (const auto& state : states_) {
    if (!state->take_gradients() || !state->in_step || state->steps.front() == 0) {
      const auto without = std::find_if(state->gradients.begin(), state->gradients.end(),
                                        [](const at::Tensor& gradient) { return !gradient.defined(); });
      const auto at = static_cast<std::size_t>(without - state->gradients.begin());
      const std::string name = state->names[at < state->names.size() ? at : 0];
      state->gradients.clear();
      throw runner::core::RunError("parameter " + name + " does not have a gradient in every step");
    }
    update_part(*state, whole_batch(*state));
    state->gradients.clear();
  }
}

void GroupedOptimizer::count_step() {
  for (const auto& state : states_) {
    for (std::int64_t& steps : state->steps) ++steps;
    set_rates(*state, state->steps.front());
    for (const at::Tensor& parameter : state->parameters) parameter.unsafeGetTensorImpl()->bump_version();
  }
}

/// A kernel fills them: the CPU does not wait, and a graph that reads them stays as it is.
void GroupedOptimizer::set_rates(State& state, std::int64_t step) const {
  if (!keeps_rates_) return;
  const at::NoGradGuard no_grad;
  if (!state.lr.defined()) {
    const auto options = at::TensorOptions(at::kFloat).device(state.parameters.front().device());
    state.lr = at::empty({}, options);
    state.step = at::empty({}, options);
  }
  state.lr.fill_(lr(state.group));
  state.step.fill_(step);
}

GroupedOptimizer::Batch GroupedOptimizer::whole_batch(const State& state) const {
  return {state.parameters,     state.gradients, state.buffers,
          state.steps.front(),  lr(state.group), weight_decay(state.group),
          groups_[state.group], lr_factor_,      momentum(state.group),
          state.skip,           state.lr,        state.step};
}

void GroupedOptimizer::step_together(State& state) {
  if (state.steps.front() == 0) {
    for (std::size_t i = 0; i < state.parameters.size(); ++i) make_buffers(state, i);
  }
  for (std::int64_t& steps : state.steps) ++steps;
  set_rates(state, state.steps.front());
  update_part(state, whole_batch(state));
}

void GroupedOptimizer::step_subset(State& state, std::int64_t steps_done) {
  std::vector<at::Tensor> parameters, gradients;
  std::vector<std::vector<at::Tensor>> buffers(state.buffers.size());
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    if (state.steps[i] != steps_done || !state.gradients[i].defined()) continue;
    if (steps_done == 0) make_buffers(state, i);
    ++state.steps[i];
    parameters.push_back(state.parameters[i]);
    gradients.push_back(state.gradients[i]);
    for (std::size_t k = 0; k < buffers.size(); ++k) buffers[k].push_back(state.buffers[k][i]);
  }
  if (parameters.empty()) return;
  set_rates(state, steps_done + 1);
  update_part(state, {parameters, gradients, buffers, steps_done + 1, lr(state.group), weight_decay(state.group),
                      groups_[state.group], lr_factor_, momentum(state.group), state.skip, state.lr, state.step});
}

void GroupedOptimizer::update_part(const State& state, const Batch& batch) {
  if (state.is_empty()) return;
  if (state.size == State::Size::kSmall) {
    const OneThread one_thread;
    update(batch);
  } else {
    update(batch);
  }
  // Neither roux's kernels nor LibTorch's fused ones mark the parameters as changed: invalidate what was computed from
  // them.
  for (const at::Tensor& parameter : batch.parameters) parameter.unsafeGetTensorImpl()->bump_version();
}

void GroupedOptimizer::save_state(runner::core::StateWriter& writer) const {
  using runner::core::Node;
  std::int64_t newest = 0;
  for (const auto& state : states_) {
    for (const std::int64_t steps : state->steps) newest = std::max(newest, steps);
  }
  Node lagging = Node::mapping();
  for (const auto& state : states_) {
    for (std::size_t i = 0; i < state->parameters.size(); ++i) {
      const std::string& name = state->names[i];
      if (state->steps[i] != newest) lagging.set(name, Node::integer(state->steps[i]));
      if (state->steps[i] == 0) continue;
      if (state->trained[i].defined()) writer.tensor("trained." + name, state->trained[i]);
      for (std::size_t k = 0; k < buffer_names_.size(); ++k) {
        const at::Tensor& buffer = state->buffers[k][i];
        if (buffer.defined()) writer.tensor(buffer_names_[k] + "." + name, buffer);
      }
    }
  }
  writer.value("step", Node::integer(newest));
  writer.value("steps", std::move(lagging));
}

at::Tensor GroupedOptimizer::saved_buffer(const runner::core::StateReader& reader, std::size_t kind,
                                          const std::string& parameter_name, const at::Tensor& parameter) const {
  const std::string name = buffer_names_[kind] + "." + parameter_name;
  const at::Tensor like = new_buffer(kind, shape_of({parameter_name, parameter}));
  if (!like.defined()) return {};
  at::Tensor saved = reader.tensor(name);
  refuse_unlike(saved, name, like);
  return saved.to(like.is_meta() ? parameter.device()
                                 : like.device());  // some are the CPU's, wherever the parameter is
}

void GroupedOptimizer::load_state(const runner::core::StateReader& reader) {
  const std::int64_t newest = reader.value("step").as_integer();
  const runner::core::Node& lagging = reader.value("steps");
  for (const auto& owned : states_) {
    State& state = *owned;
    for (std::size_t i = 0; i < state.parameters.size(); ++i) {
      const std::string& name = state.names[i];
      const runner::core::Node* own = lagging.find(name);
      state.steps[i] = own != nullptr ? own->as_integer() : newest;
      state.trained[i].reset();
      if (state.steps[i] == 0 || state.is_empty()) continue;
      if (const std::string full_name = "trained." + name; reader.has(full_name)) {
        state.trained[i] = reader.tensor(full_name);
        refuse_unlike(state.trained[i], full_name, state.parameters[i]);
        state.trained[i] = state.trained[i].to(state.parameters[i].device());
      }
      for (std::size_t k = 0; k < buffer_names_.size(); ++k) {
        state.buffers[k][i] = saved_buffer(reader, k, name, state.parameters[i]);
      }
    }
    state.compare_steps();
  }
}

}  // namespace components::optimizer
