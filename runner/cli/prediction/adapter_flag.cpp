#include "runner/cli/prediction/adapter_flag.h"

#include <utility>

#include "runner/cli/flags.h"
#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/core/node.h"
#include "runner/launch/rank_environment.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/config.h"

namespace runner::cli {

void add_adapter_flag(Command command, std::vector<std::string>& adapters) {
  command
      .add_option("--adapter", adapters, "Add the adapter of this PEFT folder to the model's weights; may be repeated")
      .type_name("DIR")
      .allow_extra_args(false);
}

std::vector<recipe::Override> adapter_change(const std::vector<std::string>& adapters) {
  if (adapters.empty()) return {};
  std::string blocks, shown;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const std::string name = i == 0 ? "" : "name: adapter-" + std::to_string(i + 1) + ", ";
    blocks += (i == 0 ? "{type: lora, " : ", {type: lora, ") + name + "path: " + recipe_text(adapters[i]) + "}";
    shown += (i == 0 ? "--adapter " : " --adapter ") + adapters[i];
  }
  return {{recipe::Override::Kind::kSet, "adapters=[" + blocks + "]", shown}};
}

bool is_adapter_folder(const std::string& path) {
  return !pretrained::adapter_config_of_folder(path).empty() && pretrained::config_of_folder(path).empty();
}

bool use_base(Session& session, std::string& weights, std::vector<std::string>& adapters, const std::string& example) {
  if (!is_adapter_folder(weights)) return true;
  core::Diagnostics diagnostics;
  const auto config = pretrained::read_adapter_config(weights, diagnostics);
  if (!config || !launch::another_process_reports()) session.show(diagnostics);
  if (!config) {
    session.exit_code = core::kExitUsage;
    return false;
  }
  auto base = pretrained::base_of_adapter(weights, *config);
  if (!base) {
    session.fail(base.failure().message, base.failure().hint + ": " + example);
    return false;
  }
  adapters.insert(adapters.begin(), weights);
  weights = std::move(base).value();
  return true;
}

}  // namespace runner::cli
