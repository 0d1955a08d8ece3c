#include "runner/cli/generation/model_source.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "generated/section/generation.h"
#include "generated/section/launch.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/cli/local_device.h"
#include "runner/cli/prediction/adapter_flag.h"
#include "runner/cli/recorded_recipe.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/hub/name.h"
#include "runner/hub/web_file.h"
#include "runner/launch/rank_environment.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/folder_writer.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "vocab.json", "tokenizer.model"};

/// A recipe for the model of a Transformers folder, with a data set that needs no file.
std::shared_ptr<const core::Source> recipe_of_folder(const std::string& folder, const std::string& tokenizer) {
  auto source = std::make_shared<core::Source>();
  source->name = folder;
  source->text = "init_from: {path: " + recipe_text(folder) + "}\n" +
                 "tokenizer: {type: file, path: " + recipe_text(tokenizer) + "}\n";
  return source;
}

/// The weights of a folder are those to use, and nothing else may be named; false when the session failed.
bool use_folder(Session& session, const std::string& folder, const std::string& tokenizer,
                engine::GenerateRequest& request) {
  if (!request.checkpoint.empty() || !request.run.empty()) {
    session.fail(folder + " is a folder of weights, and " +
                     (request.run.empty() ? "--checkpoint names others" : "--run names a run"),
                 "name the weights once");
    return false;
  }
  if (!pretrained::has_tokenizer(tokenizer)) {
    session.fail("no tokenizer in the folder " + tokenizer,
                 "put the model's " + core::joined(kTokenizerFiles, " or ") + " there");
    return false;
  }
  request.checkpoint = folder;
  return true;
}

/// Whether a folder may be a run; the session failed when it is another one.
bool may_be_run(Session& session, const std::string& word) {
  std::error_code ignored;
  if (!fs::is_directory(word, ignored) || fs::exists(fs::path(word) / "run.db", ignored)) return true;
  session.fail("no " + std::string(pretrained::kConfigFile) + " in the folder " + word,
               "name a folder of Transformers, a run, or a recipe; a checkpoint of roux is named by --checkpoint");
  return false;
}

}  // namespace

std::optional<resolve::Recipe> load_model_recipe(Session& session, RecipeFlags& flags, engine::GenerateRequest& request,
                                                 const std::vector<recipe::Override>& forced) {
  const auto name = hub::parse_name(flags.path);
  if (name && !name.value().file.empty()) {
    session.fail(flags.path + " names a file, and a model is a whole repository",
                 "write hf://" + name.value().repository());
    return std::nullopt;
  }
  if (hub::is_web_file(flags.path)) {
    session.fail(flags.path + " names a file, and a model is a folder of several",
                 "write hf://OWNER/NAME, or name a folder on this machine");
    return std::nullopt;
  }
  const auto here = session.fetched_path(flags.path, hub::Part::kAll);
  if (!here) return std::nullopt;
  flags.path = *here;
  const std::string example = "roux " + request.command + " BASE --adapter " + flags.path;
  if (!use_base(session, flags.path, request.adapters, example)) return std::nullopt;
  const bool is_folder = !pretrained::config_of_folder(flags.path).empty();
  const bool of_adapter = !request.adapters.empty() && pretrained::has_tokenizer(request.adapters.front());
  const std::string tokenizer = of_adapter ? request.adapters.front() : flags.path;
  if (is_folder) {
    if (!use_folder(session, flags.path, tokenizer, request)) return std::nullopt;
  } else if (!is_recipe(flags.path)) {
    if (!may_be_run(session, flags.path)) return std::nullopt;
    if (!use_run(session, flags, request.run)) return std::nullopt;
  }
  const auto weights = session.unpacked_path(request.checkpoint);
  if (!weights) return std::nullopt;
  request.checkpoint = weights->empty() ? "last" : *weights;
  session.hub = HubUse::kSettings;
  auto options = session.changes(flags);
  if (!options) return std::nullopt;
  options->use = recipe::Use{};
  options->overrides.push_back({recipe::Override::Kind::kDefault, "generation={}", "roux " + request.command});
  options->overrides.insert(options->overrides.end(), forced.begin(), forced.end());
  for (recipe::Override& change : adapter_change(request.adapters)) options->overrides.push_back(std::move(change));
  if (!is_folder) keep_batch_sizes(flags.path, *options);
  return is_folder ? session.load(recipe_of_folder(flags.path, tokenizer), *options)
                   : session.load(flags.path, *options);
}

void warn_of_idle_flags(const Session& session, const resolve::Recipe& recipe) {
  if (launch::another_process_reports()) return;
  core::Diagnostics diagnostics;
  const auto warn = [&](const char* key, const char* without, const char* remedy) {
    const core::Location& location = recipe.location(std::string("generation.") + key);
    if (!location.known() || location.source->kind != core::Source::Kind::kFlag) return;
    diagnostics.warning(location, std::string(key) + " has no effect without " + without,
                        std::string("add ") + remedy + ", or leave it out");
  };
  if (!recipe.generation->do_sample) {
    for (const char* key : {"temperature", "top_k", "top_p", "min_p"}) warn(key, "do_sample", "--do-sample");
  }
  if (recipe.generation->num_beams == 1) {
    for (const char* key : {"length_penalty", "early_stopping"}) warn(key, "beams", "--num-beams 4");
  }
  session.show(diagnostics);
}

void tell_one_process(const resolve::Recipe& recipe, const std::string& what) {
  const std::int64_t processes = recipe.launch->num_processes;
  if (processes == 1) return;
  core::log_info(what + " takes one process, not launch.num_processes: " + std::to_string(processes));
}

engine::Engine* engine_for(Session& session, resolve::Recipe& recipe, engine::GenerateRequest& request) {
  const auto device = local_device(session, recipe, request.rank);
  if (!device) return nullptr;
  recipe.settle_device(device->name);
  request.gpu_names = device->gpu_names;
  return engine_or_fail(session);
}

}  // namespace runner::cli
