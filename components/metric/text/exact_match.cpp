#include <memory>
#include <string>
#include <vector>

#include "components/metric/text/text_metric.h"
#include "generated/metric/exact_match.h"  // Config; declares make()

namespace components::metric::exact_match {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

class ExactMatch final : public MeanTextScores {
 public:
  ExactMatch() : MeanTextScores({"exact_match"}, 1.0) {}

 protected:
  std::vector<double> scores(const std::string& told, const std::string& right) const override {
    return {trimmed(told) == trimmed(right) ? 1.0 : 0.0};
  }
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs&) { return std::make_shared<ExactMatch>(); }

}  // namespace components::metric::exact_match
