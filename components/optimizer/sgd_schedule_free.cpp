#include <memory>

#include "components/optimizer/optimizer.h"
#include "components/optimizer/schedule_free.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/sgd_schedule_free.h"  // Config; declares make()

namespace components::optimizer::sgd_schedule_free {

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  const ScheduleFree::Options options{.lr = config.lr,
                                      .weight_decay = config.weight_decay,
                                      .momentum = config.momentum,
                                      .beta2 = {},
                                      .eps = 0.0,
                                      .warmup_steps = config.warmup_steps,
                                      .r = config.r,
                                      .weight_lr_power = config.weight_lr_power};
  return std::make_shared<ScheduleFree>(inputs.groups, options);
}

}  // namespace components::optimizer::sgd_schedule_free
