#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/metric/text/text_metric.h"
#include "components/metric/text/words.h"
#include "generated/metric/bleu.h"  // Config; declares make()

namespace components::metric::bleu {
namespace {

constexpr std::size_t kLongest = 4;  ///< words that are compared at a time

/// Of all texts together, so that nothing depends on how they are spread over processes.
class Bleu final : public TextMetric {
 public:
  std::vector<std::string> names() const override { return {"bleu"}; }
  void reset() override {
    texts_ = told_words_ = right_words_ = 0.0;
    told_ = right_ = {};
  }

  void judge_text(const std::string& told, const std::string& right) override {
    const std::vector<std::string> of_told = bleu_words(told), of_right = bleu_words(right);
    texts_ += 1.0;
    told_words_ += static_cast<double>(of_told.size());
    right_words_ += static_cast<double>(of_right.size());
    for (std::size_t size = 1; size <= kLongest; ++size) {
      std::map<std::string, int> left = neighbours(of_right, size);
      for (const auto& [words, count] : neighbours(of_told, size)) {
        told_[size - 1] += count;
        const auto same = left.find(words);
        if (same != left.end()) right_[size - 1] += std::min(count, same->second);
      }
    }
  }

  std::vector<double> values() const override {
    if (texts_ == 0.0) return {std::numeric_limits<double>::quiet_NaN()};
    if (*std::max_element(right_.begin(), right_.end()) == 0.0) return {0.0};
    double logs = 0.0, smoothing = 1.0;
    for (std::size_t i = 0; i < kLongest; ++i) {
      if (told_[i] == 0.0) return {0.0};  // no text is that long
      if (right_[i] == 0.0) smoothing *= 2.0;
      logs += std::log(right_[i] == 0.0 ? 100.0 / (smoothing * told_[i]) : 100.0 * right_[i] / told_[i]);
    }
    const double brevity = told_words_ < right_words_ ? std::exp(1.0 - right_words_ / told_words_) : 1.0;
    return {brevity * std::exp(logs / static_cast<double>(kLongest))};
  }

  std::vector<double> sums() const override {
    std::vector<double> sums = {texts_, told_words_, right_words_};
    sums.insert(sums.end(), told_.begin(), told_.end());
    sums.insert(sums.end(), right_.begin(), right_.end());
    return sums;
  }
  void set_sums(std::span<const double> sums) override {
    texts_ = sums[0];
    told_words_ = sums[1];
    right_words_ = sums[2];
    std::copy_n(sums.begin() + 3, kLongest, told_.begin());
    std::copy_n(sums.begin() + 3 + kLongest, kLongest, right_.begin());
  }

 private:
  /// How often each series of `size` words is there.
  static std::map<std::string, int> neighbours(const std::vector<std::string>& words, std::size_t size) {
    std::map<std::string, int> counts;
    for (std::size_t i = 0; i + size <= words.size(); ++i) {
      std::string series;
      for (std::size_t j = i; j < i + size; ++j) series += words[j] + ' ';  // no word has a space
      ++counts[series];
    }
    return counts;
  }

  double texts_ = 0.0, told_words_ = 0.0, right_words_ = 0.0;
  std::array<double, kLongest> told_{}, right_{};  ///< series of 1 to 4 words: all, and those that are right
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs&) { return std::make_shared<Bleu>(); }

}  // namespace components::metric::bleu
