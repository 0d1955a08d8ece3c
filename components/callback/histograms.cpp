#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "components/callback/callback.h"
#include "components/tensor/tensors.h"
#include "generated/callback/histograms.h"
#include "runner/core/language/name_map.h"

namespace components::callback::histograms {
namespace {

using runner::core::Node;

constexpr std::int64_t kExactCounts = 1 << 24;  ///< at::histc counts in float32, which has no odd numbers beyond this

/// How many values lie in each of `bins` between `low` and `high`.
at::Tensor counts_of(const at::Tensor& values, std::int64_t bins, double low, double high) {
  at::Tensor counts = at::zeros({bins}, at::kLong);
  // CUDA counts in no fixed order, and LibTorch refuses that under deterministic algorithms.
  const at::Tensor countable = at::globalContext().deterministicAlgorithms() ? values.cpu() : values;
  for (const at::Tensor& piece : countable.split(kExactCounts)) {
    counts += at::histc(piece, bins, low, high).to(at::kLong).cpu();
  }
  return counts;
}

/// The values of one tensor: `min`, `max`, `mean`, `std`, the `counts` of bins between them, and how many values are
/// `not_finite`, which the others leave out.
Node counted(const at::Tensor& tensor, std::int64_t bins) {
  at::Tensor values = tensor.detach().to(at::kFloat).flatten();
  const at::Tensor finite = at::isfinite(values);
  const std::int64_t not_finite = values.numel() - finite.sum().item<std::int64_t>();
  if (not_finite > 0) values = values.masked_select(finite);
  Node node = Node::mapping();
  node.set("not_finite", Node::integer(not_finite));
  if (values.numel() == 0) return node;
  const auto [least, largest] = at::aminmax(values);
  const auto low = least.item<double>(), high = largest.item<double>();
  node.set("min", Node::floating(low));
  node.set("max", Node::floating(high));
  node.set("mean", Node::floating(values.mean().item<double>()));
  node.set("std", Node::floating(values.std(/*unbiased=*/false).item<double>()));
  Node counts = Node::sequence();
  if (low == high) {
    counts.items().push_back(Node::integer(values.numel()));
  } else {
    const at::Tensor bars = counts_of(values, bins, low, high);
    for (std::int64_t i = 0; i < bins; ++i) counts.items().push_back(Node::integer(bars[i].item<std::int64_t>()));
  }
  node.set("counts", std::move(counts));
  return node;
}

class Histograms final : public Callback {
 public:
  explicit Histograms(Config config) : config_(std::move(config)) {}

  bool reads_gradients() const override { return config_.gradients; }

  void check_compatibility(const model::Model& model, const data::Dataset&, const Node& block,
                           runner::core::Diagnostics& diagnostics) const override {
    const auto parameters = model.parameters();
    for (std::size_t i = 0; i < config_.include.size(); ++i) {
      const std::string& pattern = config_.include[i];
      const bool any = std::any_of(parameters.begin(), parameters.end(), [&pattern](const NamedTensor& parameter) {
        return runner::core::matches_wildcard(pattern, parameter.name);
      });
      if (any) continue;
      diagnostics.error(block.at_path("include[" + std::to_string(i) + "]")->location(),
                        "histograms.include has \"" + pattern + "\", but no parameter has that name",
                        "`roux plan` shows the blocks that parameters are named after; `*` matches any text");
    }
  }

  bool acts_on_step(const Context& context) const override { return context.step() % config_.every == 0; }

  void on_step_end(Context& context) override {
    if (!acts_on_step(context)) return;
    const at::NoGradGuard no_grad;
    context.model().visit_weights([&](const block::Block& block) {
      for (const NamedTensor& parameter : block.parameters()) {
        if (!is_meant(parameter.name)) continue;
        if (config_.weights) look(context, "weight " + parameter.name, parameter.tensor);
        const at::Tensor& gradient = parameter.tensor.grad();
        if (config_.gradients && gradient.defined()) look(context, "gradient " + parameter.name, gradient);
      }
    });
  }

 private:
  bool is_meant(const std::string& name) const {
    return config_.include.empty() ||
           std::any_of(config_.include.begin(), config_.include.end(),
                       [&name](const std::string& pattern) { return runner::core::matches_wildcard(pattern, name); });
  }
  void look(Context& context, const std::string& name, const at::Tensor& tensor) const {
    context.log_data("histogram", name, counted(tensor, config_.bins));
  }

  Config config_;
};

}  // namespace

std::shared_ptr<Callback> make(const Config& config, const Inputs&) { return std::make_shared<Histograms>(config); }

}  // namespace components::callback::histograms
