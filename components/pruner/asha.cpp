#include "generated/pruner/asha.h"  // Config; declares make()
#include "components/pruner/halving.h"
#include "components/pruner/pruner.h"

namespace components::pruner::asha {
namespace {

class Asha final : public Pruner {
 public:
  explicit Asha(const Config& config)
      : rungs_(static_cast<double>(config.min_steps), config.reduction_factor), promotes_(config.promote) {}

  void record(const Curve& curve) override { rungs_.record(curve); }
  bool should_prune(const Curve& mine) const override { return rungs_.should_prune(mine); }
  bool promotes() const override { return promotes_; }
  std::optional<PrunedTrial> promoted() const override { return rungs_.promoted(); }

 private:
  Halving rungs_;
  bool promotes_;
};

}  // namespace

std::shared_ptr<Pruner> make(const Config& config, const Inputs&) { return std::make_shared<Asha>(config); }

}  // namespace components::pruner::asha
