#include "generated/sampler/list.h"  // Config; declares make()

#include <algorithm>
#include <cmath>

#include "components/sampler/sampler.h"
#include "generated/section/sampler_common.h"

namespace components::sampler::list {
namespace {

using runner::core::Node;

class List final : public Sampler {
 public:
  List(const Config& config, const Inputs& inputs) : space_(inputs.space) {
    for (const auto& given : config.points) {
      Node values = Node::mapping();
      for (const auto& [path, value] : given) values.set(path, value);
      auto point = space_->locate(values);
      if (point) points_.push_back(std::move(point).value());  // check() tells of the others
    }
    if (!config.then) return;
    const auto own = runner::sections::sampler_common::parse_config(*config.then).seed;
    then_ =
        build(*config.then, {inputs.space, own ? static_cast<std::uint64_t>(*own) : inputs.seed, inputs.objectives});
  }

  bool is_finite() const override { return then_ == nullptr || then_->is_finite(); }

  std::optional<std::int64_t> count(std::int64_t most) const override {
    const auto count = static_cast<std::int64_t>(points_.size());
    if (then_ != nullptr || count > most) return std::nullopt;
    return count;
  }

  void check(const Node& block, runner::core::Diagnostics& diagnostics) const override {
    for (const Node& values : block.find("points")->items()) {
      const auto point = space_->locate(values);
      if (!point) {
        diagnostics.error(values.location(), "this point is not in the search space: " + point.failure().message,
                          "each sets a value for every active parameter");
      } else if (!space_->allows(point.value())) {
        diagnostics.error(values.location(), "this variant does not meet the constraints");
      }
    }
    if (then_ != nullptr) then_->check(*block.find("then"), diagnostics);
  }

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    if (observations.size() < points_.size()) return points_[observations.size()];
    if (then_ == nullptr) return std::nullopt;
    const std::size_t number = observations.size() - points_.size();
    if (then_->is_exhaustive()) return rest_of_grid(number);
    // The list's own variants come first; a sampler that learns can use them.
    if (dynamic_cast<const List*>(then_.get()) != nullptr)
      return then_->propose({observations.end() - static_cast<std::ptrdiff_t>(number), observations.end()});
    return then_->propose(observations);
  }

 private:
  /// Of all variants that are not in the list, this one.
  std::optional<Point> rest_of_grid(std::size_t number) const {
    while (rest_.size() <= number) {
      const auto point = then_->propose(walked_);
      if (!point) return std::nullopt;
      walked_.emplace_back();
      const auto same = [&point](const Point& listed) { return std::ranges::equal(*point, listed, same_coordinate); };
      if (std::ranges::none_of(points_, same)) rest_.push_back(*point);
    }
    return rest_[number];
  }

  static bool same_coordinate(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

  std::shared_ptr<const Space> space_;
  std::vector<Point> points_;
  std::shared_ptr<Sampler> then_;
  // Position in the grid, so that the next one is one step away; a cache only.
  mutable std::vector<Observation> walked_;
  mutable std::vector<Point> rest_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<List>(config, inputs);
}

}  // namespace components::sampler::list
