#include "runner/cli/group/git_state_of.h"

#include <atomic>

#include "generated/section/capture.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

std::shared_future<artifact::GitState> git_state_of(const resolve::Recipe& recipe) {
  const auto& capture = *recipe.capture;
  if (!capture.git) return {};
  const std::atomic<bool> stop{false};
  std::promise<artifact::GitState> code;
  code.set_value(artifact::read_git_state({".", capture.diff_limit}, stop));
  return code.get_future().share();
}

}  // namespace runner::cli
