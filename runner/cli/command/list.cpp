#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/core/suggest.h"
#include "runner/registry/wording.h"

namespace runner::cli {
namespace {

void print_rows(const std::vector<std::pair<std::string, std::string>>& rows, const char* indent) {
  std::size_t width = 0;
  for (const auto& [name, title] : rows) width = std::max(width, name.size());
  for (const auto& [name, title] : rows)
    std::printf("%s%-*s  %s\n", indent, static_cast<int>(width), name.c_str(), title.c_str());
}

std::vector<std::pair<std::string, std::string>> titles(const registry::Registry& registry, const std::string& kind) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& name : registry.names(kind)) {
    const registry::Fragment& fragment = *registry.find(kind, name);
    rows.emplace_back(name, fragment.title);
    if (!fragment.holds.empty()) rows.back().second += ": " + registry::enumerated(fragment.holds);
  }
  return rows;
}

void list(const std::string& kind, Session& session) {
  const registry::Registry& registry = registry::Registry::builtin();
  if (kind.empty()) {
    bool first = true;
    for (const registry::Kind& each : registry.kinds()) {
      std::printf("%s%s: %s\n", first ? "" : "\n", each.name.c_str(), each.title.c_str());
      print_rows(titles(registry, each.name), "  ");
      first = false;
    }
    return;
  }
  if (kind == "section" || registry.find_kind(kind) != nullptr) return print_rows(titles(registry, kind), "");
  std::vector<std::string> known = {"section"};
  for (const registry::Kind& each : registry.kinds()) known.push_back(each.name);
  std::string near = core::closest(kind, known);
  // `optimizers` for `optimizer`.
  if (near.empty() && kind.ends_with('s')) near = core::closest(kind.substr(0, kind.size() - 1), known);
  session.fail("no kind of component is called \"" + kind + "\"",
               near.empty() ? "`roux list` lists all kinds" : "did you mean `roux list " + near + "`?");
}

}  // namespace

void add_list(CLI::App& app, Session& session) {
  const auto kind = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("list", "List the components that a recipe can use");
  command->add_option("KIND", *kind, "Kind: model, optimizer, ...; all by default");
  command->footer(
      "\nExamples:\n"
      "  roux list\n"
      "  roux list optimizer\n");
  command->callback([kind, &session] { session.command = [kind, &session] { list(*kind, session); }; });
}

}  // namespace runner::cli
