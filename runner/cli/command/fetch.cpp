#include <cstdio>
#include <memory>
#include <string>

#include "runner/cli/commands.h"
#include "runner/cli/hub/fetching.h"
#include "runner/cli/session.h"
#include "runner/cli/training_signals.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/web_file.h"
#include "runner/recipe/compose.h"
#include "runner/recipe/interpolate.h"
#include "runner/resolve/hub_values.h"

namespace runner::cli {
namespace {

void print(const hub::Located& located) {
  std::printf("%s  %s\n", core::escape_for_terminal(located.pinned).c_str(),
              core::escape_for_terminal(located.path).c_str());
}

void fetch_name(Session& session, const RecipeFlags& flags) {
  if (!flags.sets.empty() || !flags.set_files.empty() || !flags.ext.empty() || !flags.changes.empty()) {
    return session.fail(flags.path + " is not a recipe, so nothing in it can be changed", "leave out the changes");
  }
  const auto located = fetch_named(flags.path, hub::Part::kAll, session.quiet);
  if (!located) {
    return session.fail(located.failure().message, located.failure().hint, located.failure().exit_code);
  }
  print(located.value());
}

/// Only names are needed of the recipe: it is validated when it is used.
void fetch_recipe(Session& session, const RecipeFlags& flags) {
  const auto options = session.changes(flags);
  if (!options) return;
  core::Diagnostics diagnostics;
  const auto open = recipe::compose_uninterpolated(flags.path, *options, diagnostics);
  session.hub = HubUse::kAll;
  core::Node root;
  if (open) {
    root = open->root;
    recipe::interpolate(root, open->recipe_dir, {}, diagnostics);
    if (!diagnostics.has_errors() && session.fetch(*open, diagnostics)) {
      resolve::locate_hub_values(root, diagnostics);
    }
  }
  session.show(diagnostics);
  if (!open || diagnostics.has_errors()) {
    if (session.exit_code == core::kExitDone) session.exit_code = core::kExitUsage;
    return;
  }
  const auto located = resolve::located_values(root);
  for (const hub::Located& value : located) print(value);
  if (located.empty() && !session.quiet) std::printf("the recipe names nothing that has to be fetched\n");
}

void fetch(Session& session, const RecipeFlags& flags) {
  handle_training_signals();  // a full disk is an error of the call that writes
  if (hub::is_name(flags.path) || hub::is_web_file(flags.path)) return fetch_name(session, flags);
  fetch_recipe(session, flags);
}

}  // namespace

void add_fetch(Command app, Session& session) {
  auto flags = std::make_shared<RecipeFlags>();
  Command command = app.add_subcommand("fetch", "Download what a recipe names on the Hugging Face Hub and by https://");
  command
      .add_option("RECIPE", flags->path,
                  "Recipe, or hf://OWNER/NAME, hf://datasets/OWNER/NAME/FILE, https://HOST/PATH#sha256=HEX")
      .required();
  add_changes(command, *flags);
  add_override_flags(command, *flags);
  command.footer(
      "\nExamples:\n"
      "  roux fetch recipe.yaml\n"
      "  roux fetch hf://HuggingFaceTB/SmolLM2-135M\n"
      "  HF_TOKEN=hf_... roux fetch hf://meta-llama/Llama-3.2-1B@main\n"
      "  roux fetch https://HOST/train.jsonl#sha256=HEX\n\n"
      "Files of the Hub come into the cache of huggingface_hub, with which it is shared (HF_HUB_CACHE, HF_HOME), "
      "others\n"
      "into roux's own (ROUX_CACHE_DIR). A download that was interrupted is resumed by the same command. Each name is\n"
      "printed with its commit or checksum, and its path.");
  command.callback([&session, flags] { session.command = [&session, flags] { fetch(session, *flags); }; });
}

}  // namespace runner::cli
