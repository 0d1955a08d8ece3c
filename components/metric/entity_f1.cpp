// B: samples   T: positions   C: classes

#include <ATen/ops/argmax.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/metric/class_counts.h"
#include "components/metric/classes.h"
#include "components/metric/entities.h"
#include "generated/metric/entity_f1.h"  // Config; declares make()

namespace components::metric::entity_f1 {
namespace {

class EntityF1 final : public Metric {
 public:
  EntityF1(EntityTags tags, metric::Average average, bool strict, std::optional<std::int64_t> ignore_index)
      : tags_(std::move(tags)),
        average_(average),
        strict_(strict),
        ignore_index_(ignore_index),
        counts_(tags_.types.size()) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const char* name : {"entity_f1", "entity_precision", "entity_recall"}) {
      if (average_ != metric::Average::kNone) {
        names.emplace_back(name);
        continue;
      }
      for (const std::string& type : tags_.types) names.push_back(std::string(name) + "/" + type);
    }
    return names;
  }
  void reset() override {
    words_ = 0.0;
    counts_.assign(counts_.size(), {});
  }

  void update(const JudgedBatch& batch) override {
    const at::Tensor& target = batch.tensors.at(kTarget);
    const at::Tensor counted_BT = counted_targets(target, ignore_index_).to(at::kCPU).contiguous();
    const at::Tensor guess_BT = at::argmax(batch.tensors.at(kOutput), -1).to(at::kCPU).contiguous();
    const at::Tensor target_BT = target.to(at::kCPU).contiguous();
    const auto* const is_counted = counted_BT.const_data_ptr<bool>();
    const auto* const guess = guess_BT.const_data_ptr<std::int64_t>();
    const auto* const actual = target_BT.const_data_ptr<std::int64_t>();
    const std::int64_t length = target_BT.size(1);
    std::vector<EntityTag> guessed, wanted;
    for (std::int64_t row = 0; row < target_BT.size(0); ++row) {
      guessed.clear();
      wanted.clear();
      for (std::int64_t i = row * length; i < (row + 1) * length; ++i) {
        if (!is_counted[i]) continue;
        guessed.push_back(tags_.tags.at(static_cast<std::size_t>(guess[i])));
        wanted.push_back(tags_.tags.at(static_cast<std::size_t>(actual[i])));
      }
      words_ += static_cast<double>(wanted.size());
      count(entities_of(guessed, strict_), entities_of(wanted, strict_));
    }
  }

  std::vector<double> values() const override {
    if (words_ == 0.0) return std::vector<double>(names().size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<double> values;
    for (const auto score : {f1, precision, recall}) {
      if (average_ == metric::Average::kNone) {
        for (const ClassCount& one : counts_) values.push_back(score(one));
      } else {
        values.push_back(average_ == metric::Average::kMicro ? score(total()) : mean(score));
      }
    }
    return values;
  }
  std::string why_undefined() const override { return words_ == 0.0 ? "no target counts" : "there is no entity"; }
  bool higher_is_better() const override { return true; }

  std::vector<double> sums() const override {
    std::vector<double> sums = {words_};
    for (const ClassCount& one : counts_) sums.insert(sums.end(), {one.hits, one.guessed, one.actual});
    return sums;
  }
  void set_sums(std::span<const double> sums) override {
    words_ = sums[0];
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = {sums[3 * i + 1], sums[3 * i + 2], sums[3 * i + 3]};
  }

 private:
  static double f1(const ClassCount& one) { return ratio(2.0 * one.hits, one.guessed + one.actual); }
  static double precision(const ClassCount& one) { return ratio(one.hits, one.guessed); }
  static double recall(const ClassCount& one) { return ratio(one.hits, one.actual); }

  void count(const std::vector<Entity>& guessed, const std::vector<Entity>& wanted) {
    for (const Entity& one : guessed) {
      ClassCount& of_type = counts_[static_cast<std::size_t>(one.type)];
      of_type.guessed += 1.0;
      if (std::find(wanted.begin(), wanted.end(), one) != wanted.end()) of_type.hits += 1.0;
    }
    for (const Entity& one : wanted) counts_[static_cast<std::size_t>(one.type)].actual += 1.0;
  }

  ClassCount total() const {
    ClassCount total;
    for (const ClassCount& one : counts_) {
      total.hits += one.hits;
      total.guessed += one.guessed;
      total.actual += one.actual;
    }
    return total;
  }

  /// A type that is neither there nor told has no part in it, as seqeval has it.
  template <typename Score>
  double mean(Score score) const {
    std::vector<double> scores, weights;
    for (const ClassCount& one : counts_) {
      scores.push_back(score(one));
      const bool counts = one.actual + one.guessed > 0.0;
      weights.push_back(average_ == metric::Average::kWeighted ? one.actual : counts ? 1.0 : 0.0);
    }
    if (average_ == metric::Average::kWeighted && total().actual == 0.0) return 0.0;
    return defined_mean(scores, weights);
  }

  EntityTags tags_;
  metric::Average average_;
  bool strict_;
  std::optional<std::int64_t> ignore_index_;
  double words_ = 0.0;
  std::vector<ClassCount> counts_;  // by type
};

}  // namespace

std::shared_ptr<Metric> make(const Config& config, const Inputs& inputs) {
  if (!takes_classes("entity_f1", inputs)) return nullptr;
  const std::optional<EntityTags> tags = entity_tags(inputs.class_names);
  if (!tags || inputs.find(kTarget)->shape.size() != 2) {
    std::string names;
    for (const std::string& name : inputs.class_names) names += (names.empty() ? "" : ", ") + name;
    inputs.diagnostics.error(inputs.block.location(),
                             "entity_f1 needs a tag of IOB2 for each word, such as B-PER and O, and the data have " +
                                 (names.empty() ? "none" : names),
                             "use accuracy or f1 for other tags");
    return nullptr;
  }
  const auto average = average_of(std::make_optional(config.average), "entity_f1", inputs);
  if (!average) return nullptr;
  return std::make_shared<EntityF1>(*tags, *average, config.strict, inputs.ignore_index);
}

}  // namespace components::metric::entity_f1
