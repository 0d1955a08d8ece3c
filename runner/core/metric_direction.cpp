#include "runner/core/metric_direction.h"

#include <algorithm>
#include <array>

namespace runner::core {
namespace {

constexpr std::array<std::string_view, 13> kHigher = {"accuracy", "accuracies", "f1",     "auc",     "auroc",
                                                      "r2",       "precision",  "recall", "pearson", "spearman",
                                                      "matthews", "margin",     "chosen"};
constexpr std::array<std::string_view, 7> kLower = {"loss", "perplexity", "bits_per_byte", "mse",
                                                    "mae",  "error",      "rejected"};

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

MetricDirection metric_direction(std::string_view metric) {
  std::string_view name = metric.substr(metric.rfind('/') + 1);
  // `val/f1/2` is that of a class, as `val/f1`.
  const bool is_class = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
  if (is_class && name.size() < metric.size())
    return metric_direction(metric.substr(0, metric.size() - name.size() - 1));
  if (name == "loss_scale") return MetricDirection::kUnknown;  // of the gradient scaler: a setting, not a loss
  if (contains_any(name, kHigher)) return MetricDirection::kHigher;
  if (contains_any(name, kLower)) return MetricDirection::kLower;
  return MetricDirection::kUnknown;
}

}  // namespace runner::core
