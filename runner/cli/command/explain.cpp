#include <memory>
#include <string>

#include "runner/cli/commands.h"
#include "runner/cli/explain/component_page.h"
#include "runner/cli/explain/value_page.h"
#include "runner/cli/flags.h"
#include "runner/recipe/document.h"

namespace runner::cli {
namespace {

struct Arguments {
  RecipeFlags flags;
  std::string key, format = "text";
};

/// Says what is missing beside a recipe or run, or that `word` is nothing to explain.
void refuse(const std::string& word, Session& session) {
  const bool is_recipe = recipe::looks_like_recipe(word);
  if (is_recipe || run_of(word, session))
    return session.fail(std::string("roux explain needs a key with a ") + (is_recipe ? "recipe" : "run"),
                        "for example `roux explain " + word + " optimizer.lr`");
  session.fail("\"" + word + "\" is not a component or section",
               "write KIND/NAME, such as optimizer/adamw, or RECIPE KEY or RUN KEY; "
               "`roux list` lists the components");
}

}  // namespace

void add_explain(Command app, Session& session) {
  const auto arguments = std::make_shared<Arguments>();
  Command command = app.add_subcommand("explain", "Explain a component, or where a value of a recipe comes from");
  command
      .add_option("WHAT", arguments->flags.path,
                  "Recipe or run (followed by KEY), KIND/NAME, section, or key of a section")
      .required();
  command.add_option("KEY", arguments->key, "Key of the recipe: optimizer.lr, model.layers[2]");
  add_changes(command, arguments->flags);
  add_override_flags(command, arguments->flags);
  add_format(command, arguments->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux explain recipes/quickstart.yaml optimizer.lr\n"
      "  roux explain last optimizer.lr\n"
      "  roux explain optimizer/adamw\n"
      "  roux explain training\n"
      "  roux explain checkpoint.mode\n"
      "  roux explain model/gpt --format json\n");
  command.callback([arguments, &session] {
    session.command = [arguments, &session] {
      const bool json = arguments->format == "json";
      if (!arguments->key.empty()) return explain_value(arguments->flags, arguments->key, json, session);
      if (!explain_component(arguments->flags.path, json, session)) refuse(arguments->flags.path, session);
    };
  });
}

}  // namespace runner::cli
