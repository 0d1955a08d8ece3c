#include "generated/sampler/grid.h"  // Config; declares make()
#include "components/sampler/sampler.h"
#include "components/sampler/walk.h"

namespace components::sampler::grid {
namespace {

class Grid final : public Sampler {
 public:
  explicit Grid(std::shared_ptr<const Space> space) : space_(std::move(space)) {}

  std::optional<Point> propose(const std::vector<Tried>& tried) const override {
    std::size_t left = tried.size();
    std::optional<Point> found;
    walk_points(*space_, [&](const Point& point) {
      if (left-- > 0) return true;
      found = point;
      return false;
    });
    return found;
  }

 private:
  std::shared_ptr<const Space> space_;
};

}  // namespace

std::shared_ptr<Sampler> make(const Config&, const Inputs& inputs) { return std::make_shared<Grid>(inputs.space); }

}  // namespace components::sampler::grid
