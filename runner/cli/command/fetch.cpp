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
#include "runner/resolve/data_set_values.h"
#include "runner/resolve/hub_values.h"

namespace runner::cli {
namespace {

void print(const hub::Located& located) {
  std::printf("%s  %s\n", core::escape_for_terminal(located.pinned).c_str(),
              core::escape_for_terminal(located.path).c_str());
}

struct FetchFlags {
  RecipeFlags recipe;
  std::string subset, split;
};

/// A data set as a whole, or a split of it.
void fetch_data_set_of(Session& session, const hub::Name& name, const FetchFlags& flags) {
  const auto got = core::attempt([&] {
    return fetch_data_set({.name = name, .subset = flags.subset, .split = resolve::split_name(flags.split)},
                          session.quiet);
  });
  if (!got) return session.fail(got.failure().message, got.failure().hint, got.failure().exit_code);
  for (const hub::Located& file : got.value().files) print(file);
}

bool names_data_set(const std::string& path) {
  const auto name = hub::parse_name(path);
  return name && name.value().is_dataset && name.value().file.empty();
}

/// A name has nothing to change.
bool has_changes(Session& session, const RecipeFlags& flags) {
  if (flags.sets.empty() && flags.set_files.empty() && flags.ext.empty() && flags.changes.empty()) return false;
  session.fail(flags.path + " is not a recipe, so nothing in it can be changed", "leave out the changes");
  return true;
}

void fetch_name(Session& session, const RecipeFlags& flags) {
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

void fetch(Session& session, const FetchFlags& flags) {
  handle_training_signals();  // a full disk is an error of the call that writes
  const RecipeFlags& recipe = flags.recipe;
  const bool is_data_set = names_data_set(recipe.path);
  if (!is_data_set && (!flags.subset.empty() || !flags.split.empty())) {
    return session.fail("--subset and --split are of a data set, and " + recipe.path + " names none",
                        "write hf://datasets/OWNER/NAME, or subset and split into the recipe", core::kExitUsage);
  }
  if (hub::is_name(recipe.path) || hub::is_web_file(recipe.path)) {
    if (has_changes(session, recipe)) return;
    return is_data_set ? fetch_data_set_of(session, hub::parse_name(recipe.path).value(), flags)
                       : fetch_name(session, recipe);
  }
  fetch_recipe(session, recipe);
}

}  // namespace

void add_fetch(Command app, Session& session) {
  auto flags = std::make_shared<FetchFlags>();
  Command command = app.add_subcommand("fetch", "Download what a recipe names on the Hugging Face Hub and by https://");
  command
      .add_option("RECIPE", flags->recipe.path,
                  "Recipe, or hf://OWNER/NAME, hf://datasets/OWNER/NAME[/FILE], https://HOST/PATH#sha256=HEX")
      .required();
  add_changes(command, flags->recipe);
  add_override_flags(command, flags->recipe);
  command.add_option("--subset", flags->subset, "Subset of the data set; unset: its default one");
  command.add_option("--split", flags->split, "Split of the data set; unset: all of them");
  command.footer(
      "\nExamples:\n"
      "  roux fetch recipe.yaml\n"
      "  roux fetch hf://HuggingFaceTB/SmolLM2-135M\n"
      "  roux fetch hf://datasets/OWNER/NAME --subset en --split train\n"
      "  HF_TOKEN=hf_... roux fetch hf://meta-llama/Llama-3.2-1B@main\n"
      "  roux fetch https://HOST/train.jsonl#sha256=HEX\n\n"
      "Files of the Hub come into the cache of huggingface_hub, with which it is shared (HF_HUB_CACHE, HF_HOME), "
      "others\n"
      "into roux's own (ROUX_CACHE_DIR). A download that was interrupted is resumed by the same command. Each name is\n"
      "printed with its commit or checksum, and its path.");
  command.callback([&session, flags] { session.command = [&session, flags] { fetch(session, *flags); }; });
}

}  // namespace runner::cli
