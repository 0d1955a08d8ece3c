#include <string>

#include "runner/core/platform/program_path.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/cache.h"
#include "runner/hub/settings.h"
#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

/// The file that was downloaded; null for none.
const core::Source* downloaded_source(const SettledTree& tree) {
  const auto settings = hub::read_settings();
  if (!settings) return nullptr;  // what needs a cache says so
  for (const auto& source : tree.sources()) {
    if (source->kind == core::Source::Kind::kFile && hub::is_downloaded(source->name, settings.value())) {
      return source.get();
    }
  }
  return nullptr;
}

}  // namespace

void programs(SettledTree& tree) {
  struct Kind {
    const char *list, *type;
  };
  static constexpr Kind kKinds[] = {{"callbacks", "command"}, {"trackers", "plugin"}};
  for (const Kind& kind : kKinds) {
    const core::Node* list = tree.value(kind.list);
    if (list == nullptr || !list->is_sequence()) continue;
    for (std::size_t i = 0; i < list->items().size(); ++i) {
      const std::string path = std::string(kind.list) + "[" + std::to_string(i) + "]";
      if (tree.text(path + ".type") != kind.type) continue;
      if (tree.text(path + ".type") == "command" && !core::starts_programs()) {
        tree.error(path,
                   std::string(core::kProgramsVariable) + " is neither off, 0, false nor no, which start no program",
                   "set it to off, or unset it to start programs");
      }
      const core::Source* source = downloaded_source(tree);
      if (source == nullptr) return;
      const std::string file = core::escape_for_terminal(source->name);
      tree.error(path, path + " runs a program, and " + file + " was downloaded",
                 "read the recipe; if you trust the program, copy the files of the recipe to a folder of your own");
    }
  }
}

}  // namespace runner::resolve
