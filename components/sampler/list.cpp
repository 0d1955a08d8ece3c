#include "generated/sampler/list.h"  // Config; declares make()
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
    const auto own = runner::sections::sampler_common::parse_config(*config.then).seed;
    then_ =
        build(*config.then, {inputs.space, own ? static_cast<std::uint64_t>(*own) : inputs.seed, inputs.objectives});
  }

  std::optional<Point> propose(const std::vector<Tried>& tried) const override {
    if (tried.size() < points_.size()) return points_[tried.size()];
    return then_ != nullptr ? then_->propose(tried) : std::nullopt;
  }

 private:
  std::vector<Point> points_;
  std::shared_ptr<Sampler> then_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<List>(config, inputs);
}

}  // namespace components::sampler::list
