#include "runner/cli/prediction/evaluate.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "runner/cli/engine_or_fail.h"
#include "runner/cli/launch_flags.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/local_device.h"
#include "runner/cli/prediction/adapter_flag.h"
#include "runner/cli/prediction/prediction_file.h"
#include "runner/cli/prediction/returned_tensors.h"
#include "runner/cli/prediction/work_signals.h"
#include "runner/cli/recorded_recipe.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {

Command add_eval_command(Command app, const char* name, const char* title, EvalFlags& flags) {
  Command command = app.add_subcommand(name, title);
  command
      .add_option("RECIPE", flags.recipe.path,
                  "Recipe, or a run with its recorded recipe: id or a prefix of it, name, folder, or `last`")
      .required();
  add_changes(command, flags.recipe);
  add_override_flags(command, flags.recipe);
  add_work_launch_flags(command, flags.recipe);
  flags.request.command = name;
  flags.request.data.clear();
  flags.request.checkpoint = "last";
  command
      .add_option("--checkpoint", flags.request.checkpoint,
                  "Checkpoint: last (default), best, step-000500, a folder; or weights: a Transformers folder, a file")
      .type_name("CHECKPOINT");
  add_adapter_flag(command, flags.request.adapters);
  command.add_option("--data", flags.request.data, "Data set of the recipe; val by default").type_name("SET");
  command
      .add_option(
          "--run", flags.request.run,
          "Run whose checkpoints to use: id or a prefix of it, name, folder, or `last`; the newest of the recipe by "
          "default")
      .type_name("RUN");
  command
      .add_option("--profile", flags.request.profile,
                  "Record batches as the recipe's `profiler` says, and write trace and table to this folder")
      .type_name("DIR")
      .check([](const std::string& folder) { return folder.empty() ? "must name a folder" : ""; });
  return command;
}

namespace {

/// New rows are read as the training set is; false when the command line says something else of them.
bool is_clear(Session& session, const EvalFlags& flags) {
  if (flags.request.input.empty()) return true;
  if (!flags.request.data.empty()) {
    session.fail("--input names the rows to predict, and --data " + flags.request.data + " a set of the recipe",
                 "use one of them");
    return false;
  }
  std::vector<std::string> changes = flags.recipe.sets;
  changes.insert(changes.end(), flags.recipe.changes.begin(), flags.recipe.changes.end());
  for (const std::string& change : changes) {
    const std::size_t begin = change.find_first_not_of("+~");
    const std::string path = begin == std::string::npos ? "" : change.substr(begin, change.find('=') - begin);
    if ((path != "data" && !path.starts_with("data.")) || path == "data.train.path") continue;
    session.fail("--input names the rows to predict, and " + change + " changes the data of the recipe",
                 "use one of them: new rows are read as data.train was");
    return false;
  }
  return true;
}

/// A profile that cannot be written is worth knowing before the evaluation.
bool can_profile(Session& session, const EvalFlags& flags) {
  if (flags.request.profile.empty()) return true;
  const auto made = core::make_folders(flags.request.profile);
  if (made && access(flags.request.profile.c_str(), W_OK | X_OK) == 0) return true;
  session.fail(
      "--profile " + flags.request.profile + ": " + (made ? "the folder cannot be written to" : made.failure().message),
      "name a folder that can be made and written to");
  return false;
}

/// What both commands hand to the engine.
struct Prepared {
  resolve::Recipe recipe;
  engine::EvalRequest request;
  engine::Engine* engine;

  bool is_first() const { return !request.rank || request.rank->rank == 0; }
};

/// Nothing when the session failed, or other processes have done the work.
std::optional<Prepared> prepare(Session& session, EvalFlags& flags) {
  if (!is_clear(session, flags)) return std::nullopt;
  if (!is_recipe(flags.recipe.path) && !use_run(session, flags.recipe, flags.request.run)) return std::nullopt;
  if (!can_profile(session, flags)) return std::nullopt;
  session.hub = HubUse::kSettings;
  engine::EvalRequest request = flags.request;
  const auto weights = session.unpacked_path(request.checkpoint);
  if (!weights) return std::nullopt;
  request.checkpoint = *weights;
  if (!use_base(session, request.checkpoint, request.adapters, "--checkpoint BASE --adapter " + request.checkpoint)) {
    return std::nullopt;
  }
  auto options = session.changes(flags.recipe);
  if (!options) return std::nullopt;
  options->use = recipe::Use{request.data.empty() ? "val" : request.data, request.input};
  for (recipe::Override& change : adapter_change(request.adapters)) options->overrides.push_back(std::move(change));
  keep_batch_sizes(flags.recipe.path, *options);
  auto recipe = session.load(flags.recipe.path, *options);
  if (!recipe) return std::nullopt;
  if (!can_all_read(session, *recipe, "--input", request.input)) return std::nullopt;
  if (starts_ranks(*recipe)) {
    launch_ranks(session, *recipe);
    return std::nullopt;
  }
  request.rank = rank_at_work(session, *recipe);
  if (session.exit_code != core::kExitDone) return std::nullopt;
  const auto device = local_device(session, *recipe, request.rank);
  if (!device) return std::nullopt;
  recipe->settle_device(device->name);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return std::nullopt;
  if (request.data.empty()) request.data = "val";
  request.gpu_names = device->gpu_names;
  return Prepared{*std::move(recipe), std::move(request), engine};
}

/// `160 samples`, or `16 of 160 samples: eval.max_batches is 1` if only a part was read.
std::string samples_text(const engine::SamplesRead& read) {
  if (read.samples >= read.of_set) return core::counted(read.samples, "sample", "samples");
  return std::to_string(read.samples) + " of " + core::counted(read.of_set, "sample", "samples") +
         ": eval.max_batches is " + std::to_string(read.max_batches.value_or(0));
}

void print(const engine::Evaluation& found, bool json) {
  if (json) {
    core::Node line = core::Node::mapping();
    line.set("checkpoint", core::Node::string(found.checkpoint));
    line.set("data", core::Node::string(found.set));
    line.set("samples", core::Node::integer(found.read.samples));
    for (const auto& [name, value] : found.metrics) line.set(name, core::Node::floating(value));
    std::printf("%s\n", core::to_json(line, -1).c_str());
    return;
  }
  std::printf("%s on %s (%s)\n", core::escape_for_terminal(found.checkpoint).c_str(),
              core::escape_for_terminal(found.set).c_str(), samples_text(found.read).c_str());
  for (const auto& [name, value] : found.metrics)
    std::printf("  %-14s %.6g\n", core::escape_for_terminal(name).c_str(), value);
}

/// Says that a set is a part of its file: it may have been meant as the whole.
void note_part(const engine::PredictedSet& made, const engine::EvalRequest& request) {
  if (!request.input.empty() || made.records <= made.read.of_set) return;
  core::log_info("data." + request.data + " is " + core::with_commas(made.read.of_set) + " of the " +
                 core::with_commas(made.records) + " rows of " + core::joined(made.files) +
                 " (split or missing: drop); --input predicts all rows of a file");
}

/// The format that was asked for, by flag or name; "": none.
std::string tensor_format(const EvalFlags& flags, const std::string& output) {
  if (!flags.format.empty()) return flags.format;
  for (const char* format : {"safetensors", "jsonl", "json", "csv"}) {
    if (output.ends_with(std::string(".") + format)) return format;
  }
  return "";
}

/// Whether the output has a form for what is asked for; false when the session failed.
bool can_write(Session& session, const EvalFlags& flags) {
  const engine::EvalRequest& request = flags.request;
  const bool tensors = !request.returns.empty();
  const std::string format = tensor_format(flags, request.output);
  if (tensors && format == "csv") {
    session.fail("--return gives tensors, which CSV has no form for", "write jsonl, json or safetensors");
    return false;
  }
  if (tensors && format == "safetensors" && request.output.empty()) {
    session.fail("--format safetensors needs a file", "add --output FILE.safetensors");
    return false;
  }
  if (!tensors && flags.format == "safetensors") {
    session.fail("--format safetensors holds tensors, and predict writes rows",
                 "add --return logits, or leave --format out");
    return false;
  }
  return true;
}

/// The sink of a rank whose predictions rank 0 writes.
class WrittenElsewhere final : public engine::PredictionSink {
 public:
  void begin(const engine::PredictionNames&) override {}
  void add(const engine::Prediction&) override {}
};

std::optional<engine::PredictedSet> predict_into(engine::PredictionSink& sink, const Prepared& prepared,
                                                 core::Diagnostics& diagnostics) {
  return among_ranks([&] { return prepared.engine->predict(prepared.recipe, prepared.request, sink, diagnostics); });
}

void predict_for_rank_0(Session& session, const Prepared& prepared) {
  WrittenElsewhere sink;
  core::Diagnostics diagnostics;
  const bool made = predict_into(sink, prepared, diagnostics).has_value();
  session.exit_code = made ? core::kExitDone : core::kExitUsage;
  if (diagnostics.has_errors()) session.show(diagnostics);
}

void return_tensors(Session& session, const EvalFlags& flags, const Prepared& prepared) {
  const engine::EvalRequest& request = prepared.request;
  ReturnedTensors file(request.output, tensor_format(flags, request.output));
  core::Diagnostics diagnostics;
  const auto made = predict_into(file, prepared, diagnostics);
  if (made) {
    file.finish();
    const std::string what = core::counted_large(file.rows(), "tensor", "tensors");
    if (!request.output.empty()) core::log_info("wrote " + what + " to " + request.output);
    if (file.rows() < made->read.of_set) core::log_warning("predicted " + samples_text(made->read));
  }
  session.exit_code = made ? core::kExitDone : core::kExitUsage;
  session.show(diagnostics);
}

}  // namespace

void evaluate(Session& session, EvalFlags& flags) {
  end_work_on_signals("nothing was measured");
  const auto prepared = prepare(session, flags);
  if (!prepared) return;
  core::Diagnostics diagnostics;
  const auto found =
      among_ranks([&] { return prepared->engine->evaluate(prepared->recipe, prepared->request, diagnostics); });
  if (found && prepared->is_first()) print(*found, flags.format == "json");
  session.exit_code = found ? core::kExitDone : core::kExitUsage;
  if (prepared->is_first() || diagnostics.has_errors()) session.show(diagnostics);
}

void predict(Session& session, EvalFlags& flags) {
  if (!can_write(session, flags)) return;
  end_work_on_signals("nothing was predicted");
  const auto prepared = prepare(session, flags);
  if (!prepared) return;
  if (!prepared->is_first()) return predict_for_rank_0(session, *prepared);
  const engine::EvalRequest& request = prepared->request;
  if (!request.returns.empty()) return return_tensors(session, flags, *prepared);
  const std::string by_name = request.output.ends_with(".csv") ? "csv" : "jsonl";
  PredictionFile file(request.output, flags.format.empty() ? by_name : flags.format);
  core::Diagnostics diagnostics;
  const auto made = predict_into(file, *prepared, diagnostics);
  if (made) {
    file.finish();
    const std::string what = core::counted_large(file.rows(), "row", "rows");
    if (!request.output.empty()) core::log_info("wrote " + what + " to " + request.output);
    note_part(*made, request);
    if (file.rows() < made->read.of_set) core::log_warning("predicted " + samples_text(made->read));
  }
  session.exit_code = made ? core::kExitDone : core::kExitUsage;
  session.show(diagnostics);
}

}  // namespace runner::cli
