#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/metric/text/text_metric.h"
#include "components/metric/text/words.h"
#include "generated/metric/rouge.h"  // Config; declares make()

namespace components::metric::rouge {
namespace {

using Words = std::vector<std::string>;

double f1(double both, double told, double right) { return both > 0.0 ? 2.0 * both / (told + right) : 0.0; }

/// Of neighbouring words, `size` at a time.
double of_neighbours(const Words& told, const Words& right, std::size_t size) {
  if (told.size() < size || right.size() < size) return 0.0;
  const auto at = [size](const Words& words, std::size_t i) {
    return Words(words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + size));
  };
  std::map<Words, int> left;
  for (std::size_t i = 0; i + size <= right.size(); ++i) ++left[at(right, i)];
  double both = 0.0;
  for (std::size_t i = 0; i + size <= told.size(); ++i) {
    if (left[at(told, i)]-- > 0) both += 1.0;
  }
  return f1(both, static_cast<double>(told.size() - size + 1), static_cast<double>(right.size() - size + 1));
}

/// Of the longest series of words that both have in that order.
double of_series(const Words& told, const Words& right) {
  std::vector<std::size_t> row(right.size() + 1);
  for (const std::string& word : told) {
    std::size_t corner = 0;  // of the row before, one to the left
    for (std::size_t i = 0; i < right.size(); ++i) {
      const std::size_t above = row[i + 1];
      row[i + 1] = word == right[i] ? corner + 1 : std::max(above, row[i]);
      corner = above;
    }
  }
  return f1(static_cast<double>(row.back()), static_cast<double>(told.size()), static_cast<double>(right.size()));
}

class Rouge final : public MeanTextScores {
 public:
  Rouge() : MeanTextScores({"rouge1", "rouge2", "rougeL"}, 1.0) {}

 protected:
  std::vector<double> scores(const std::string& told, const std::string& right) const override {
    const Words of_told = rouge_words(told), of_right = rouge_words(right);
    return {of_neighbours(of_told, of_right, 1), of_neighbours(of_told, of_right, 2), of_series(of_told, of_right)};
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs&) { return std::make_shared<Rouge>(); }

}  // namespace components::metric::rouge
