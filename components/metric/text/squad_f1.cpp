#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/metric/text/text_metric.h"
#include "components/metric/text/words.h"
#include "generated/metric/squad_f1.h"  // Config; declares make()

namespace components::metric::squad_f1 {
namespace {

/// Of the words that both have, as often as both have them.
double f1_of(const std::vector<std::string>& told, const std::vector<std::string>& right) {
  if (told.empty() || right.empty()) return told == right ? 1.0 : 0.0;
  std::map<std::string, int> left;
  for (const std::string& word : right) ++left[word];
  double both = 0.0;
  for (const std::string& word : told) {
    if (left[word]-- > 0) both += 1.0;
  }
  return 2.0 * both / static_cast<double>(told.size() + right.size());
}

class SquadF1 final : public MeanTextScores {
 public:
  SquadF1() : MeanTextScores({"squad_f1", "squad_exact_match"}, 100.0) {}

 protected:
  std::vector<double> scores(const std::string& told, const std::string& right) const override {
    const std::vector<std::string> of_told = squad_words(told), of_right = squad_words(right);
    return {f1_of(of_told, of_right), of_told == of_right ? 1.0 : 0.0};
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs&) { return std::make_shared<SquadF1>(); }

}  // namespace components::metric::squad_f1
