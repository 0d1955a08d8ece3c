#include "runner/cli/group/import/launch/estimate_command.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "runner/core/text/utf8.h"
#include "runner/hub/name.h"

namespace runner::cli {
namespace {

/// The command with the words behind Accelerate's; its models are of the Hub.
std::string own_command(std::span<const ShellWord> words) {
  std::string command = "roux estimate-memory";
  for (const ShellWord& word : words) {
    const std::string on_hub = hub::meant_name(word.text);
    command += " " + (on_hub.empty() ? word.text : on_hub);
  }
  return core::escape_for_terminal(command);
}

}  // namespace

void refuse_estimate(std::span<const ShellWord> words, const std::shared_ptr<const core::Source>& source,
                     core::Diagnostics& diagnostics) {
  const auto at = std::find_if(words.begin(), words.end(), [](const ShellWord& word) {
    const std::string program = word.text.substr(word.text.rfind('/') + 1);
    return program == "accelerate" || program == "accelerate-estimate-memory" ||
           program == "accelerate.commands.estimate";
  });
  if (at == words.end()) return;
  auto next = std::next(at);
  if (at->text.ends_with("accelerate")) {
    if (next == words.end() || next->text != "estimate-memory") return;
    ++next;
  }
  core::Location location;
  location.source = source;
  location.line = at->line;
  location.column = 1;
  diagnostics.error(location, "accelerate estimate-memory trains nothing that a recipe could say",
                    "write `" + own_command({next, words.end()}) + "`");
}

}  // namespace runner::cli
