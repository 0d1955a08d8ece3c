#include "generated/sampler/grid.h"  // Config; declares make()
#include "components/sampler/math/grid_points.h"
#include "components/sampler/sampler.h"

namespace components::sampler::grid {
namespace {

constexpr std::int64_t kCountedMax = 100'000;

class Grid final : public Sampler {
 public:
  explicit Grid(std::shared_ptr<const Space> space) : space_(std::move(space)) {}

  bool is_finite() const override { return true; }
  bool is_exhaustive() const override { return true; }

  std::optional<std::int64_t> count(std::int64_t most) const override {
    std::int64_t count = 0;
    const auto visit = [&](const Point&) { return ++count <= most; };
    if (!for_each_grid_point(*space_, visit, kCountedMax)) return std::nullopt;
    return count;
  }

  void check(const runner::core::Node& block, runner::core::Diagnostics& diagnostics) const override {
    for (const Dimension& dimension : space_->dimensions()) {
      if (dimension.count() > 0) continue;
      diagnostics.error(block.location(), "a grid tries all values, but " + dimension.name + " has infinitely many",
                        "give it values: [...] or steps of q, or use another sampler");
    }
  }

  std::optional<Point> propose(const std::vector<Observation>& observations) const override {
    if (!walk_ || observations.size() + 1 < walked_) {
      walk_.emplace(*space_);
      walked_ = 0;
    }
    for (; walked_ <= observations.size(); ++walked_) newest_ = walk_->next();
    return newest_;
  }

 private:
  std::shared_ptr<const Space> space_;
  // Position of the last variant, so that the next one is one step away; a cache only.
  mutable std::optional<GridPoints> walk_;
  mutable std::size_t walked_ = 0;
  mutable std::optional<Point> newest_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config&, const Inputs& inputs) { return std::make_shared<Grid>(inputs.space); }

}  // namespace components::sampler::grid
