#include "runner/cli/generation/generate.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "generated/section/generation.h"
#include "runner/cli/generation/generated_text.h"
#include "runner/cli/generation/interrupt_watch.h"
#include "runner/cli/generation/model_source.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/prediction/output_file.h"
#include "runner/cli/prediction/work_signals.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

void tell(const engine::GenerationReport& report) {
  core::log_info("prompt: " + core::counted_large(report.prompt_tokens, "token", "tokens") +
                 rate_text(report.prompt_tokens, report.prefill_seconds) +
                 "; generated: " + core::counted_large(report.new_tokens, "token", "tokens") +
                 rate_text(report.decoded_tokens, report.decode_seconds));
}

/// Says what is there after Ctrl-C, which ends the work after the next token. `made`: nothing for a text that is shown
/// while it is made.
void tell_interrupted(std::optional<std::int64_t> made, std::int64_t all, const std::string& output) {
  const std::string where = output.empty() ? "" : " in " + output;
  const std::string texts = core::counted_large(all, "text", "texts");
  core::log_warning("interrupted by SIGINT: " +
                    (made ? std::to_string(*made) + " of " + texts + (output.empty() ? " were made" : " are") + where +
                                ", the last ones unfinished"
                          : "the text" + where + " ends early"));
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

/// The prompts would be gone.
bool overwrites_prompts(Session& session, const GenerateFlags& flags) {
  std::error_code failed;
  if (flags.output.empty() || flags.prompts.file.empty() ||
      !std::filesystem::equivalent(flags.output, flags.prompts.file, failed)) {
    return false;
  }
  session.fail("--output " + flags.output + " is the file of --prompts, which it would replace", "name another file");
  return true;
}

/// The sink of a rank whose texts rank 0 writes.
class WrittenElsewhere final : public engine::GenerationSink {
 public:
  void piece(std::int64_t, std::int64_t, std::string_view) override {}
  void done(const engine::Generated&) override {}
};

/// Makes the texts of a rank above 0.
void generate_for_rank_0(Session& session, const resolve::Recipe& recipe, const engine::GenerateRequest& request,
                         engine::Engine& engine) {
  WrittenElsewhere sink;
  core::Diagnostics diagnostics;
  const auto report = among_ranks([&] { return engine.generate(recipe, request, sink, diagnostics); });
  session.exit_code = report ? core::kExitDone : core::kExitUsage;  // rank 0 says whether it was interrupted
  if (diagnostics.has_errors()) session.show(diagnostics);
}

/// Has the texts made by the recipe's processes, unless this is one of them or it is a single text. False when it was
/// done so, or the session failed.
bool works_here(Session& session, const resolve::Recipe& recipe, bool single, engine::GenerateRequest& request) {
  const bool starts = starts_ranks(recipe);
  if (single && starts) {
    tell_one_process(recipe, "one text");
    return true;
  }
  if (starts) {
    launch_ranks(session, recipe);
    return false;
  }
  request.rank = rank_at_work(session, recipe);
  return session.exit_code == core::kExitDone;
}

}  // namespace

void generate(Session& session, GenerateFlags& flags) {
  end_work_on_signals("nothing was generated");
  auto prompts = read_prompts(session, flags.prompts);
  if (!prompts || overwrites_prompts(session, flags)) return;
  engine::GenerateRequest& request = flags.request;
  request.prompts = *std::move(prompts);
  request.chat = flags.prompts.chat;
  request.system = flags.prompts.system;
  request.truncate_left = flags.truncate == "left";
  auto recipe = load_model_recipe(session, flags.recipe, request);
  if (!recipe) return;
  const std::int64_t samples = recipe->generation->num_return_sequences;
  const std::optional<bool> stream = streams(session, flags, samples);
  if (!stream) return;
  warn_of_idle_flags(session, *recipe);
  const bool single = request.prompts.size() == 1 && samples == 1;
  if (!works_here(session, *recipe, single, request)) return;
  engine::Engine* engine = engine_for(session, *recipe, request);
  if (engine == nullptr) return;
  const InterruptWatch watch;
  request.interrupted = InterruptWatch::received;
  if (request.rank && request.rank->rank > 0) return generate_for_rank_0(session, *recipe, request, *engine);

  OutputFile file(flags.output);
  TextStream text(file, flags.output.empty() && isatty(STDOUT_FILENO) == 1);
  JsonLines lines(request.prompts, file, {samples, request.logprobs});
  core::Diagnostics diagnostics;
  engine::GenerationSink& sink = *stream ? static_cast<engine::GenerationSink&>(text) : lines;
  const auto report = among_ranks([&] { return engine->generate(*recipe, request, sink, diagnostics); });
  const auto all = static_cast<std::int64_t>(request.prompts.size()) * samples;
  const bool is_cut_short = InterruptWatch::received() || (!*stream && lines.made() < all);
  session.exit_code = !report ? core::kExitUsage : is_cut_short ? kInterrupted : core::kExitDone;
  if (report && is_cut_short && !InterruptWatch::received())
    core::log_warning("another process was interrupted: some of the " + std::to_string(all) + " texts are missing");
  if (report) {
    lines.finish();
    file.finish();
    if (InterruptWatch::received())
      tell_interrupted(*stream ? std::nullopt : std::optional(lines.made()), all, flags.output);
    tell(*report);
  }
  session.show(diagnostics);
}

}  // namespace runner::cli
