#include "generated/sampler/grid.h"  // Config; declares make()
#include "components/sampler/math/grid_points.h"
#include "components/sampler/sampler.h"

namespace components::sampler::grid {
namespace {

class Grid final : public Sampler {
 public:
  explicit Grid(std::shared_ptr<const Space> space) : space_(std::move(space)), walk_(*space_) {}

  std::optional<Point> propose(const std::vector<Tried>& tried) const override {
    if (tried.size() + 1 < count_) {
      walk_ = GridPoints(*space_);
      count_ = 0;
    }
    for (; count_ <= tried.size(); ++count_) newest_ = walk_.next();
    return newest_;
  }

 private:
  std::shared_ptr<const Space> space_;
  // Position of the last variant, so that the next one is one step away; a cache only.
  mutable GridPoints walk_;
  mutable std::size_t count_ = 0;
  mutable std::optional<Point> newest_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config&, const Inputs& inputs) { return std::make_shared<Grid>(inputs.space); }

}  // namespace components::sampler::grid
