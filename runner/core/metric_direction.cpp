#include "runner/core/metric_direction.h"

#include <algorithm>
#include <array>

namespace runner::core {
namespace {

constexpr std::array<std::string_view, 16> kHigher = {
    "accuracy", "accuracies", "f1",       "auc",    "auroc",  "r2",    "precision", "recall",
    "pearson",  "spearman",   "matthews", "margin", "chosen", "match", "bleu",      "rouge"};
constexpr std::array<std::string_view, 8> kLower = {"loss", "perplexity", "bits_per_byte", "mse",
                                                    "mae",  "error",      "rejected",      "distillation"};

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

MetricDirection metric_direction(std::string_view metric) {
  const std::size_t slash = metric.rfind('/');
  const std::string_view name = metric.substr(slash + 1);
  if (name == "loss_scale") return MetricDirection::kUnknown;  // of the gradient scaler: a setting, not a loss
  if (contains_any(name, kHigher)) return MetricDirection::kHigher;
  if (contains_any(name, kLower)) return MetricDirection::kLower;
  // `val/f1/2` and `val/entity_f1/PER` are those of a class, as `val/f1`.
  return slash == std::string_view::npos ? MetricDirection::kUnknown : metric_direction(metric.substr(0, slash));
}

}  // namespace runner::core
