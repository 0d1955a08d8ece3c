#include <memory>

#include "components/optimizer/optimizer.h"
#include "components/optimizer/schedule_free.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adamw_schedule_free.h"  // Config; declares make()

namespace components::optimizer::adamw_schedule_free {

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  const ScheduleFree::Options options{.lr = config.lr,
                                      .weight_decay = config.weight_decay,
                                      .momentum = config.betas[0],
                                      .beta2 = config.betas[1],
                                      .eps = config.eps,
                                      .warmup_steps = config.warmup_steps,
                                      .r = config.r,
                                      .weight_lr_power = config.weight_lr_power};
  return std::make_shared<ScheduleFree>(inputs.groups, options);
}

}  // namespace components::optimizer::adamw_schedule_free
