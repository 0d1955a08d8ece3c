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
  List(const Config& config, const Inputs& inputs) {
    for (const auto& given : config.points) {
      Node values = Node::mapping();
      for (const auto& [path, value] : given) values.set(path, value);
      auto point = inputs.space->locate(values);
      points_.push_back(std::move(point).value());
    }
    if (!config.then) return;
    then_type_ = config.then->find("type")->as_string();
    const auto own = runner::sections::sampler_common::parse_config(*config.then).seed;
    then_ =
        build(*config.then, {inputs.space, own ? static_cast<std::uint64_t>(*own) : inputs.seed, inputs.objectives});
  }

  std::optional<Point> propose(const std::vector<Tried>& tried) const override {
    if (tried.size() < points_.size()) return points_[tried.size()];
    if (then_ == nullptr) return std::nullopt;
    const std::size_t number = tried.size() - points_.size();
    if (then_type_ == "grid") return rest_of_grid(number);
    // The list's own variants come first; a sampler that learns can use them.
    if (then_type_ == "list") return then_->propose({tried.end() - static_cast<std::ptrdiff_t>(number), tried.end()});
    return then_->propose(tried);
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

  std::vector<Point> points_;
  std::shared_ptr<Sampler> then_;
  std::string then_type_;
  // Position in the grid, so that the next one is one step away; a cache only.
  mutable std::vector<Tried> walked_;
  mutable std::vector<Point> rest_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<List>(config, inputs);
}

}  // namespace components::sampler::list
