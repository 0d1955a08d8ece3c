#include <ATen/ops/cat.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/weighted_sum.h"  // Config; declares make()

namespace components::loss::weighted_sum {
namespace {

struct Term {
  std::string name;
  std::shared_ptr<Loss> loss;
  double weight;
};

class WeightedSum final : public Loss {
 public:
  explicit WeightedSum(std::vector<Term> terms) : terms_(std::move(terms)) {}

  std::vector<std::string> reads() const override {
    std::vector<std::string> names;
    for (const Term& term : terms_) {
      for (const std::string& name : term.loss->reads()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    return names;
  }

  // The first mean is the first loss's; those of the others are further ones.
  std::int64_t count(const TensorMap& batch) const override { return terms_.front().loss->count(batch); }
  std::size_t further_means() const override {
    std::size_t means = 0;
    for (const Term& term : terms_) means += 1 + term.loss->further_means();
    return means - 1;
  }
  std::vector<std::int64_t> further_counts(const TensorMap& batch) const override {
    std::vector<std::int64_t> all;
    for (const Term& term : terms_) {
      const std::vector<std::int64_t> own = term.loss->counts(batch);
      all.insert(all.end(), own.begin(), own.end());
    }
    all.erase(all.begin());
    return all;
  }
  bool count_is_static() const override { return terms_.front().loss->count_is_static(); }
  std::optional<std::int64_t> ignore_index() const override {
    for (const Term& term : terms_) {
      if (const auto ignored = term.loss->ignore_index()) return ignored;
    }
    return std::nullopt;
  }
  bool is_of_labels() const override {
    return std::any_of(terms_.begin(), terms_.end(), [](const Term& term) { return term.loss->is_of_labels(); });
  }

  std::vector<std::string> figure_names() const override {
    std::vector<std::string> names;
    for (const Term& term : terms_) names.push_back("loss/" + term.name);
    for (const Term& term : terms_) {
      const std::vector<std::string> own = term.loss->figure_names();
      names.insert(names.end(), own.begin(), own.end());
    }
    return names;
  }
  Figures take_figures() const override {
    Figures all = figures_.take(terms_.size());
    for (const Term& term : terms_) {
      const Figures own = term.loss->take_figures();
      all.sums.insert(all.sums.end(), own.sums.begin(), own.sums.end());
      all.counts.insert(all.counts.end(), own.counts.begin(), own.counts.end());
    }
    return all;
  }

  at::Tensor reference_of(const TensorMap& tensors) const override {
    const auto asks = std::find_if(terms_.begin(), terms_.end(), [](const Term& term) {
      const std::vector<std::string> read = term.loss->reads();
      return std::find(read.begin(), read.end(), kReferenceChosen) != read.end();
    });
    return asks == terms_.end() ? Loss::reference_of(tensors) : asks->loss->reference_of(tensors);
  }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return parts_of(tensors, 1.0); }
  at::Tensor sum_projected(const TensorMap& tensors, double gradient) const override {
    return parts_of(tensors, gradient);
  }

 private:
  at::Tensor parts_of(const TensorMap& tensors, double gradient) const {
    std::vector<at::Tensor> parts, firsts;
    std::vector<std::int64_t> counts;
    at::Tensor on_meta;
    for (const Term& term : terms_) {
      const at::Tensor own = term.loss->parts(tensors, gradient * term.weight);
      if (own.is_meta()) {
        on_meta = on_meta.defined() ? on_meta + own : own;
        continue;
      }
      const at::Tensor all = own.dim() == 0 ? own.unsqueeze(0) : own;
      firsts.push_back(all.detach().narrow(0, 0, 1).to(at::kDouble));
      counts.push_back(term.loss->count(tensors));
      parts.push_back(all * term.weight);
    }
    if (on_meta.defined()) return on_meta;
    figures_.add(at::cat(firsts), counts);
    return at::cat(parts);
  }

  std::vector<Term> terms_;
  mutable FigureSums figures_;
};

/// `cross_entropy`, and `cross_entropy_2` where another one is called so.
std::string name_of(const std::string& type, const std::vector<Term>& before) {
  const auto same = std::count_if(before.begin(), before.end(), [&](const Term& term) {
    return term.name == type || term.name.starts_with(type + "_");
  });
  return same == 0 ? type : type + "_" + std::to_string(same + 1);
}

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < config.losses.size(); ++i) {
    const runner::core::Node& block = config.losses[i];
    const std::string type = block.find("type")->as_string();
    Inputs own{inputs.outputs, inputs.data, block, inputs.diagnostics, inputs.class_counts};
    auto loss = build(block, own);
    if (loss == nullptr) return nullptr;
    if (loss->needs_estimate()) {
      inputs.diagnostics.error(block.location(), type + " compares with a mean over the whole step, which a sum lacks",
                               "use it by itself");
      return nullptr;
    }
    terms.push_back({name_of(type, terms), std::move(loss), config.weights.empty() ? 1.0 : config.weights[i]});
  }
  if (std::all_of(terms.begin(), terms.end(), [](const Term& term) { return term.weight == 0.0; })) {
    inputs.diagnostics.error(inputs.block.find("weights")->location(), "each weight is 0, so nothing would be learnt",
                             "give one of them a weight above 0");
    return nullptr;
  }
  return std::make_shared<WeightedSum>(std::move(terms));
}

}  // namespace components::loss::weighted_sum
