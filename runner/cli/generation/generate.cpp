#include "runner/cli/generation/generate.h"

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "generated/section/generation.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/generation/generated_text.h"
#include "runner/cli/local_device.h"
#include "runner/cli/prediction/output_file.h"
#include "runner/cli/recorded_recipe.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/config.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::Node;

constexpr int kInterrupted = 128 + SIGINT;
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "vocab.json", "tokenizer.model"};

volatile std::sig_atomic_t interrupts = 0;  // a handler can access nothing else

/// Ctrl-C ends the work after the next token; a second one ends the program.
class InterruptWatch {
 public:
  InterruptWatch() {
    interrupts = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) {
      if (interrupts != 0) _exit(kInterrupted);
      interrupts = 1;
    };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptWatch() { sigaction(SIGINT, &before_, nullptr); }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static bool received() { return interrupts != 0; }

 private:
  struct sigaction before_ = {};
};

/// A recipe for the model of a Transformers folder, with a data set that needs no file.
std::shared_ptr<const core::Source> recipe_of_folder(const std::string& folder) {
  auto source = std::make_shared<core::Source>();
  source->name = folder;
  Node path = Node::mapping();
  path.set("path", Node::string(folder));
  std::string escaped = core::to_json(path.entries().front().value, -1);
  for (std::size_t at = 0; (at = escaped.find("${", at)) != std::string::npos; at += 3) escaped.insert(at, "$");
  source->text = "init_from: {path: " + escaped + "}\n" + "tokenizer: {type: file, path: " + escaped + "}\n" +
                 "data: {train: {type: synthetic, task: regression, num_samples: 1}}\n"
                 "optimizer: {type: sgd, lr: 1.0}\n"
                 "training: {max_steps: 1, micro_batch_size: 1}\n";
  return source;
}

/// The weights of a folder are those to use, and nothing else may be named; false when the session failed.
bool use_folder(Session& session, GenerateFlags& flags) {
  const std::string& folder = flags.recipe.path;
  if (!flags.request.checkpoint.empty() || !flags.request.run.empty()) {
    session.fail(folder + " is a folder of weights, and " +
                     (flags.request.run.empty() ? "--checkpoint names others" : "--run names a run"),
                 "name the weights once");
    return false;
  }
  std::error_code ignored;
  bool has_tokenizer = false;
  for (const char* file : kTokenizerFiles) has_tokenizer |= fs::is_regular_file(fs::path(folder) / file, ignored);
  if (!has_tokenizer) {
    session.fail("no tokenizer in the folder " + folder,
                 "put the model's " + core::joined(kTokenizerFiles, " or ") + " there");
    return false;
  }
  flags.request.checkpoint = folder;
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

std::optional<resolve::Recipe> load(Session& session, GenerateFlags& flags) {
  const bool is_folder = !pretrained::config_of_folder(flags.recipe.path).empty();
  if (is_folder) {
    if (!use_folder(session, flags)) return std::nullopt;
  } else if (!is_recipe(flags.recipe.path)) {
    if (!may_be_run(session, flags.recipe.path)) return std::nullopt;
    if (!use_run(session, flags.recipe, flags.request.run)) return std::nullopt;
  }
  if (flags.request.checkpoint.empty()) flags.request.checkpoint = "last";
  auto options = session.changes(flags.recipe);
  if (!options) return std::nullopt;
  options->overrides.push_back({recipe::Override::Kind::kDefault, "generation={}", "roux generate"});
  return is_folder ? session.load(recipe_of_folder(flags.recipe.path), *options)
                   : session.load(flags.recipe.path, *options);
}

/// Flags for drawing tokens, where none is drawn. A recipe may have them for other calls.
void warn_of_greedy(const Session& session, const resolve::Recipe& recipe) {
  if (recipe.generation->do_sample) return;
  core::Diagnostics diagnostics;
  for (const char* key : {"temperature", "top_k", "top_p", "min_p"}) {
    const core::Location& location = recipe.location(std::string("generation.") + key);
    if (!location.known() || location.source->kind != core::Source::Kind::kFlag) continue;
    diagnostics.warning(location, std::string(key) + " has no effect without do_sample",
                        "add --do-sample, or leave it out");
  }
  session.show(diagnostics);
}

std::string rate_text(std::int64_t tokens, double seconds) {
  if (seconds <= 0) return "";
  return " (" + core::short_number(static_cast<double>(tokens) / seconds, 3) + " tokens/s)";
}

void tell(const engine::GenerationReport& report) {
  core::log_info("prompt: " + core::counted_large(report.prompt_tokens, "token", "tokens") +
                 rate_text(report.prompt_tokens, report.prefill_seconds) +
                 "; generated: " + core::counted_large(report.new_tokens, "token", "tokens") +
                 rate_text(report.decoded_tokens, report.decode_seconds));
}

/// Whether the one text is shown while it is made; nothing when the session failed.
std::optional<bool> streams(Session& session, const GenerateFlags& flags, std::int64_t samples) {
  const std::int64_t texts = static_cast<std::int64_t>(flags.request.prompts.size()) * samples;
  if (flags.format == "text" && texts > 1) {
    session.fail("--format text shows one text, and there are " + core::with_commas(texts), "write --format jsonl");
    return std::nullopt;
  }
  const bool to_terminal = flags.output.empty() && isatty(STDOUT_FILENO) == 1;
  return flags.format == "text" || (flags.format.empty() && texts == 1 && to_terminal && !flags.request.logprobs);
}

}  // namespace

void generate(Session& session, GenerateFlags& flags) {
  auto prompts = read_prompts(session, flags.prompts);
  if (!prompts) return;
  engine::GenerateRequest& request = flags.request;
  request.prompts = *std::move(prompts);
  request.chat = flags.prompts.chat;
  request.system = flags.prompts.system;
  request.truncate_left = flags.truncate == "left";
  auto recipe = load(session, flags);
  if (!recipe) return;
  const std::int64_t samples = recipe->generation->num_return_sequences;
  const std::optional<bool> stream = streams(session, flags, samples);
  if (!stream) return;
  warn_of_greedy(session, *recipe);
  const auto device = local_device(session, *recipe);
  if (!device) return;
  recipe->settle_device(device->name);
  request.gpu_names = device->gpu_names;
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;

  OutputFile file(flags.output);
  TextStream text(file, flags.output.empty() && isatty(STDOUT_FILENO) == 1);
  JsonLines lines(request.prompts, file, {samples, request.logprobs});
  const InterruptWatch watch;
  request.interrupted = InterruptWatch::received;
  core::Diagnostics diagnostics;
  engine::GenerationSink& sink = *stream ? static_cast<engine::GenerationSink&>(text) : lines;
  const auto report = engine->generate(*recipe, request, sink, diagnostics);
  session.exit_code = !report ? core::kExitUsage : InterruptWatch::received() ? kInterrupted : core::kExitDone;
  if (report) {
    file.finish();
    tell(*report);
  }
  session.show(diagnostics);
}

}  // namespace runner::cli
