#include "runner/cli/engine_or_fail.h"

#include <filesystem>
#include <system_error>

#include "runner/core/error.h"

namespace runner::cli {

engine::Engine* engine_or_fail(Session& session) {
  // LibTorch's libraries end the process when they find no current folder.
  std::error_code lost;
  const auto folder = std::filesystem::current_path(lost);
  if (lost) {
    session.fail("the current folder was removed", "change to one that exists, such as with `cd ~`");
    return nullptr;
  }
  auto loaded = engine::load_engine();
  if (loaded.ok()) return loaded.value();
  session.fail(loaded.failure().message, loaded.failure().hint, core::kExitFailed);
  return nullptr;
}

}  // namespace runner::cli
