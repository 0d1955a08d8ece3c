#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/core/text/suggest.h"
#include "runner/registry/registry.h"
#include "runner/registry/wording.h"

namespace runner::cli {
namespace {

using core::Node;

struct ListFlags {
  std::string kind, format = "text";
};

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

/// One row for each component, whether of one kind or of all.
void print_json(const registry::Registry& registry, const std::vector<std::string>& kinds) {
  Node rows = Node::sequence();
  for (const std::string& kind : kinds) {
    for (const std::string& name : registry.names(kind)) {
      const registry::Fragment& fragment = *registry.find(kind, name);
      Node row = Node::mapping();
      row.set("kind", Node::string(kind));
      row.set("name", Node::string(name));
      row.set("title", Node::string(fragment.title));
      if (!fragment.holds.empty()) {
        Node records = Node::sequence();
        for (const std::string& word : fragment.holds) records.items().push_back(Node::string(word));
        row.set("records", std::move(records));
      }
      rows.items().push_back(std::move(row));
    }
  }
  std::printf("%s\n", core::to_json(rows).c_str());
}

void print_all(const registry::Registry& registry) {
  bool first = true;
  for (const registry::Kind& each : registry.kinds()) {
    std::printf("%s%s: %s\n", first ? "" : "\n", each.name.c_str(), each.title.c_str());
    print_rows(titles(registry, each.name), "  ");
    first = false;
  }
}

void list(const ListFlags& flags, Session& session) {
  const registry::Registry& registry = registry::Registry::builtin();
  std::vector<std::string> known;
  for (const registry::Kind& each : registry.kinds()) known.push_back(each.name);
  const std::string& kind = flags.kind;
  if (kind.empty()) return flags.format == "json" ? print_json(registry, known) : print_all(registry);
  known.push_back("section");
  if (std::find(known.begin(), known.end(), kind) != known.end()) {
    return flags.format == "json" ? print_json(registry, {kind}) : print_rows(titles(registry, kind), "");
  }
  std::string near = core::closest(kind, known);
  // `optimizers` for `optimizer`.
  if (near.empty() && kind.ends_with('s')) near = core::closest(kind.substr(0, kind.size() - 1), known);
  session.fail("no kind of component is called \"" + kind + "\"",
               near.empty() ? "`roux list` lists all kinds" : "did you mean `roux list " + near + "`?");
}

}  // namespace

void add_list(Command app, Session& session) {
  const auto flags = std::make_shared<ListFlags>();
  Command command = app.add_subcommand("list", "List the components that a recipe can use");
  command.add_option("KIND", flags->kind, "Kind: model, optimizer, ...; all by default");
  add_format(command, flags->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux list\n"
      "  roux list optimizer\n"
      "  roux list optimizer --format json\n");
  command.callback([flags, &session] { session.command = [flags, &session] { list(*flags, session); }; });
}

}  // namespace runner::cli
