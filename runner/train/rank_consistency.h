#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runner/resolve/load.h"
#include "runner/train/experiment/train_request.h"
#include "runner/train/save/resume.h"

namespace components::model {
class Model;
}
namespace runner::distributed {
class ProcessGroup;
}
namespace runner::store {
class RunWriter;
}

namespace runner::train {

// What the processes of one training have to agree on. All of these are collectives.

/// Meets the others where the request says that there are any; null: this process trains alone. RunError when one of
/// them does not come, or runs another recipe, another program, or on other instructions or threads: named with both.
std::shared_ptr<distributed::ProcessGroup> meet_ranks(const resolve::Recipe& recipe, const TrainRequest& request);

/// RunError when the weights of two ranks differ.
void refuse_other_weights(distributed::ProcessGroup& ranks, const components::model::Model& model);

/// The first rank chooses how the run begins, the others are told. Nothing when it was refused, which that rank says.
std::optional<Start> choose_together(distributed::ProcessGroup* ranks, core::Diagnostics& diagnostics,
                                     const std::function<Start()>& choose);

/// The first rank opens the run; the others get a writer that keeps nothing, of the same run.
std::unique_ptr<store::RunWriter> open_together(distributed::ProcessGroup* ranks,
                                                const std::function<std::unique_ptr<store::RunWriter>()>& open);

}  // namespace runner::train
