#include <cstdio>
#include <vector>

#include "runner/cli/group/config.h"
#include "runner/cli/launch_config.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/registry.h"

namespace runner::cli {
namespace {

using core::Node;

void update(Session& session) {
  const auto path = path_to_write(session);
  if (!path) return;
  const auto read = read_launch_config(*path);
  if (!read) return session.fail(read.failure().message, read.failure().hint);
  Node defaults = read.value();
  const Node* launch = defaults.find("launch");
  const registry::Fragment* schema = registry::Registry::builtin().find("section", "launch");
  Node kept = Node::mapping();
  for (const Node::Entry& entry : launch != nullptr ? launch->entries() : std::vector<Node::Entry>()) {
    if (schema->find(entry.key) != nullptr) {
      kept.set(entry.key, entry.value);
    } else {
      std::fprintf(stderr, "skipped launch.%s: no such key\n", core::escape_for_terminal(entry.key).c_str());
    }
  }
  defaults.set("launch", kept);
  write_config(session, *path, launch_config_text(defaults));
}

}  // namespace

void add_config_update(Command group, Session& session) {
  Command command = group.add_subcommand("update", "Rewrite the file, keeping its values and adding new keys");
  command.footer("\nExample:\n  roux config update\n");
  command.callback([&session] { session.command = [&session] { update(session); }; });
}

}  // namespace runner::cli
