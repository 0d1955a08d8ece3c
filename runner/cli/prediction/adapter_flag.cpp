#include "runner/cli/prediction/adapter_flag.h"

#include <utility>

#include "runner/cli/flags.h"
#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/config.h"

namespace runner::cli {

void add_adapter_flag(Command command, std::string& adapter) {
  command.add_option("--adapter", adapter, "Add the adapter of this PEFT folder to the model's weights")
      .type_name("DIR");
}

std::vector<recipe::Override> adapter_change(const std::string& adapter) {
  if (adapter.empty()) return {};
  return {{recipe::Override::Kind::kSet, "adapters=[{type: lora, path: " + recipe_text(adapter) + "}]",
           "--adapter " + adapter}};
}

bool is_adapter_folder(const std::string& path) {
  return !pretrained::adapter_config_of_folder(path).empty() && pretrained::config_of_folder(path).empty();
}

bool use_base(Session& session, std::string& weights, std::string& adapter, const std::string& example) {
  if (!is_adapter_folder(weights)) return true;
  if (!adapter.empty()) {
    session.fail(weights + " is an adapter, and --adapter names another one", "name the base model, or one adapter");
    return false;
  }
  core::Diagnostics diagnostics;
  const auto config = pretrained::read_adapter_config(weights, diagnostics);
  session.show(diagnostics);
  if (!config) {
    session.exit_code = core::kExitUsage;
    return false;
  }
  auto base = pretrained::base_of_adapter(weights, *config);
  if (!base) {
    session.fail(base.failure().message, base.failure().hint + ": " + example);
    return false;
  }
  adapter = weights;
  weights = std::move(base).value();
  return true;
}

}  // namespace runner::cli
