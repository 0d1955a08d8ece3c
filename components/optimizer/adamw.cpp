#include <memory>

#include "components/optimizer/adam_family.h"
#include "components/optimizer/optimizer.h"
#include "components/tensor/tensors.h"
#include "generated/optimizer/adamw.h"  // Config; declares make()

namespace components::optimizer::adamw {

std::shared_ptr<Optimizer> make(const Config& config, const Inputs& inputs) {
  const AdamFamily::Options options{.lr = config.lr,
                                    .beta1 = config.betas[0],
                                    .beta2 = config.betas[1],
                                    .eps = config.eps,
                                    .weight_decay = config.weight_decay,
                                    .amsgrad = config.amsgrad,
                                    .maximize = config.maximize,
                                    .decoupled = true};
  return std::make_shared<AdamFamily>(inputs.groups, options);
}

}  // namespace components::optimizer::adamw
