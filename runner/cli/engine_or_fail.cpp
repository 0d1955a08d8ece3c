#include "runner/cli/engine_or_fail.h"

#include "runner/core/error.h"

namespace runner::cli {

engine::Engine* engine_or_fail(Session& session) {
  auto loaded = engine::load_engine();
  if (loaded.ok()) return loaded.value();
  session.fail(loaded.failure().message, loaded.failure().hint, core::kExitFailed);
  return nullptr;
}

}  // namespace runner::cli
