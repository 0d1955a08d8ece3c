#include "runner/core/metric_direction.h"

#include <algorithm>
#include <array>

namespace runner::core {
namespace {

constexpr std::array<std::string_view, 7> kHigher = {"accuracy", "accuracies", "f1", "auc", "r2", "margin", "chosen"};
constexpr std::array<std::string_view, 6> kLower = {"loss", "perplexity", "mse", "mae", "error", "rejected"};

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

MetricDirection metric_direction(std::string_view metric) {
  const std::string_view name = metric.substr(metric.rfind('/') + 1);
  if (name == "loss_scale") return MetricDirection::kUnknown;  // of the gradient scaler: a setting, not a loss
  if (contains_any(name, kHigher)) return MetricDirection::kHigher;
  if (contains_any(name, kLower)) return MetricDirection::kLower;
  return MetricDirection::kUnknown;
}

}  // namespace runner::core
