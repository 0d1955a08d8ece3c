#include "runner/train/step/window_start.h"

#include "runner/core/error.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {

void WindowStart::note(const Loader::Position& position) {
  position_ = position;
  if (kept_.random) random_ = components::RandomState::now(experiment_.device);
  if (kept_.buffers) buffers_.emplace(experiment_.model->buffers());
}

void WindowStart::restore() const {
  RUNNER_ASSERT(kept_.random && buffers_, "what is to be undone was kept");
  random_.restore();
  buffers_->restore();
}

}  // namespace runner::train
