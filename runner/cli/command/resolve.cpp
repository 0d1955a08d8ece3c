#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/core/text/utf8.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

using core::Node;

struct Arguments {
  RecipeFlags flags;
  std::string format = "yaml";
  std::string other;
};

std::string shown(const Node* node) { return node == nullptr ? "(not set)" : core::to_json(*node, -1); }

void print_difference(const std::string& path, const Node* left, const Node* right) {
  if (left != nullptr && right != nullptr && left->same_value(*right)) return;
  const auto inner = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (left != nullptr && right != nullptr && left->is_mapping() && right->is_mapping()) {
    for (const Node::Entry& entry : left->entries())
      print_difference(inner(entry.key), &entry.value, right->find(entry.key));
    for (const Node::Entry& entry : right->entries()) {
      if (left->find(entry.key) == nullptr) print_difference(inner(entry.key), nullptr, &entry.value);
    }
    return;
  }
  if (left != nullptr && right != nullptr && left->is_sequence() && right->is_sequence() &&
      left->items().size() == right->items().size()) {
    for (std::size_t i = 0; i < left->items().size(); ++i)
      print_difference(path + "[" + std::to_string(i) + "]", &left->items()[i], &right->items()[i]);
    return;
  }
  std::printf("%s: %s -> %s\n", core::escape_for_terminal(path).c_str(), shown(left).c_str(), shown(right).c_str());
}

void resolve(const Arguments& arguments, Session& session) {
  const auto recipe = session.load(arguments.flags);
  if (arguments.other.empty()) {
    if (!recipe) return;
    const std::string text =
        arguments.format == "json" ? recipe->resolved_json() + "\n" : core::to_yaml(recipe->resolved());
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!text.ends_with('\n')) std::fputc('\n', stdout);
    return;
  }
  // The overrides apply to the first, so that a recipe can be compared with a variant of itself.
  RecipeFlags other;
  other.path = arguments.other;
  other.command = arguments.flags.command;
  const auto second = session.load(other);
  if (!recipe || !second) return;
  const Node left = second->resolved();
  const Node right = recipe->resolved();
  print_difference("", &left, &right);
}

}  // namespace

void add_resolve(Command app, Session& session) {
  const auto arguments = std::make_shared<Arguments>();
  Command command = app.add_subcommand("resolve", "Print a resolved recipe: merged, with defaults and derived values");
  add_recipe_flags(command, arguments->flags);
  add_format(command, arguments->format, {"yaml", "json"});
  command.add_option("--diff", arguments->other, "Print the differences from this recipe, as PATH: ITS VALUE -> VALUE")
      .type_name("OTHER");
  command.footer(
      "\nExamples:\n"
      "  roux resolve recipes/quickstart.yaml\n"
      "  roux resolve recipes/quickstart.yaml --format json --set seed=1\n"
      "  roux resolve mine.yaml --diff recipes/quickstart.yaml\n");
  command.callback(
      [arguments, &session] { session.command = [arguments, &session] { resolve(*arguments, session); }; });
}

}  // namespace runner::cli
