#include <algorithm>
#include <cstdio>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/group/examples.h"

namespace runner::cli {
namespace {

void list_examples(Session& session, const std::string& format) {
  const auto folder = examples_or_fail(session);
  if (!folder) return;
  const std::vector<Example> examples = examples_in(*folder);
  if (format == "json") {
    core::Node rows = core::Node::sequence();
    for (const Example& example : examples) {
      core::Node row = core::Node::mapping();
      row.set("recipe", core::Node::string("recipes/" + example.path));
      row.set("summary", core::Node::string(example.summary));
      rows.items().push_back(std::move(row));
    }
    std::printf("%s\n", core::to_json(rows).c_str());
    return;
  }
  std::size_t width = 0;
  for (const Example& example : examples) width = std::max(width, example.path.size());
  for (const Example& example : examples) {
    std::printf("recipes/%-*s  %s\n", static_cast<int>(width), example.path.c_str(), example.summary.c_str());
  }
}

}  // namespace

void add_examples_list(Command group, Session& session) {
  const auto format = std::make_shared<std::string>("text");
  Command command = group.add_subcommand("list", "List the recipes that come with roux");
  add_format(command, *format, {"text", "json"});
  command.callback([&session, format] { session.command = [&session, format] { list_examples(session, *format); }; });
}

}  // namespace runner::cli
