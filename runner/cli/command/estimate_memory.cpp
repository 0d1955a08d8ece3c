#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/estimate/estimate.h"
#include "runner/cli/estimate/plan_recipe.h"
#include "runner/cli/estimate/report_text.h"
#include "runner/cli/estimate/sized_model.h"
#include "runner/cli/flags.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/registry.h"

namespace runner::cli {
namespace {

constexpr std::int64_t kCountMax = std::int64_t{1} << 40;

bool knows_optimizer(Session& session, const std::string& name) {
  const auto& registry = registry::Registry::builtin();
  if (registry.find("optimizer", name) != nullptr) return true;
  const auto near = registry.suggestions("optimizer", name);
  const std::string meant = core::joined(near, " or ", [](const std::string& one) { return core::quote(one); });
  session.fail("no optimizer is called " + core::quote(name),
               (near.empty() ? "" : "did you mean " + meant + "? ") + std::string("`roux list optimizer` shows all"));
  return false;
}

/// Of a recipe the other flags would say what its keys do.
bool has_only_types(Session& session, const std::vector<Option>& of_models) {
  for (const Option& option : of_models) {
    if (option.count() == 0) continue;
    session.fail(option.name() + " is of a model, and a recipe has its own keys for that",
                 "remove it, or change the recipe with --set");
    return false;
  }
  return true;
}

std::optional<MemoryReport> make_report(Session& session, const EstimateFlags& flags,
                                        const std::vector<Option>& of_models) {
  const std::string& word = flags.recipe.path;
  if (names_recipe(word)) {
    if (!has_only_types(session, of_models)) return std::nullopt;
    const auto plan = plan_recipe(session, flags.recipe);
    return plan ? std::make_optional(report_of_plan(word, *plan, flags)) : std::nullopt;
  }
  if (!flags.recipe.sets.empty() || !flags.recipe.set_files.empty() || !flags.recipe.changes.empty()) {
    session.fail("--set changes a recipe, and " + word + " is none", "remove it");
    return std::nullopt;
  }
  if (!knows_optimizer(session, flags.optimizer)) return std::nullopt;
  const auto model = find_sized_model(session, word);
  return model ? estimate_model(session, *model, flags) : std::nullopt;
}

void estimate_memory(Session& session, const EstimateFlags& flags, const std::vector<Option>& of_models) {
  const auto report = make_report(session, flags, of_models);
  if (!report) return;
  std::printf("%s%s", (flags.format == "json" ? report_json(*report, flags) : report_text(*report, flags)).c_str(),
              flags.format == "json" ? "\n" : "");
}

/// The flags that describe how a model is used and trained.
std::vector<Option> add_model_flags(Command command, EstimateFlags& flags) {
  return {
      command.add_option("--optimizer", flags.optimizer, "Optimizer of the training (adamw)").type_name("NAME"),
      accept_only(
          command.add_option("--precision", flags.precision, "Precision of the training (32-true)").type_name("WORD"),
          {"32-true", "bf16-mixed", "16-mixed", "bf16-true"}),
      command.add_option("--micro-batch-size", flags.micro_batch_size, "Samples of a pass of the training (1)")
          .type_name("N")
          .in_range<std::int64_t>(1, 1 << 20),
      command
          .add_option("--max-seq-len", flags.max_seq_len,
                      "Tokens of a sample; by default the model's context length, at most 2048")
          .type_name("N")
          .in_range<std::int64_t>(1, 1 << 24),
      command
          .add_option("--num-processes,--num_processes", flags.num_processes,
                      "Also training that is sharded over this many processes")
          .type_name("N")
          .in_range<std::int64_t>(1, 1 << 16),
      command.add_option("--lora-r", flags.lora_r, "Rank of the adapters (16)")
          .type_name("N")
          .in_range<std::int64_t>(1, 1 << 16),
      command.add_option("--tokens", flags.tokens, "Also inference with a cache of this many tokens")
          .type_name("N")
          .in_range<std::int64_t>(0, kCountMax)};
}

/// What Accelerate's command has beside them: the library is the only one that roux reads, and no code is run.
void add_accelerate_flags(Command command, std::string& library, bool& trusts) {
  accept_only(command.add_option("--library_name,--library-name", library, "").type_name("WORD").group(""),
              {"transformers"});
  command.add_flag("--trust_remote_code,--trust-remote-code", trusts, "").group("");
}

}  // namespace

void add_estimate_memory(Command app, Session& session) {
  struct All {
    EstimateFlags flags;
    std::string library;
    bool trusts = false;
  };
  const auto all = std::make_shared<All>();
  EstimateFlags& flags = all->flags;
  flags.dtypes.assign(std::begin(pretrained::kSizedTypes), std::end(pretrained::kSizedTypes));
  Command command =
      app.add_subcommand("estimate-memory", "Estimate the memory of a model by type, in training and inference");
  command.add_option("MODEL", flags.recipe.path, "hf://OWNER/NAME, a Transformers folder, its config.json, or a recipe")
      .required();
  add_override_flags(command, flags.recipe);
  const std::vector<std::string> known = flags.dtypes;
  accept_only(
      command.add_option("--dtypes", flags.dtypes, "Types of the weights: " + core::joined(known)).type_name("WORD"),
      known);
  const std::vector<Option> of_models = add_model_flags(command, flags);
  add_format(command, flags.format, {"text", "json"});
  add_accelerate_flags(command, all->library, all->trusts);
  command.footer(
      "\nNo weights are read. Largest layer, total and training with Adam are those of `accelerate estimate-memory`;\n"
      "inference adds what int8 and int4 leave in float16 and float32. Training is estimated as `roux plan` does.\n"
      "Of a type of models that roux does not have, the headers of its safetensors tell the sizes.\n"
      "\nExamples:\n"
      "  roux estimate-memory hf://HuggingFaceTB/SmolLM2-135M --tokens 4096\n"
      "  roux estimate-memory models/llama --optimizer adamw_8bit --precision bf16-true --num-processes 4\n"
      "  roux estimate-memory config.json --dtypes float16 int8 int4 --format json\n"
      "  roux estimate-memory recipe.yaml");
  command.callback([&session, all, of_models] {
    session.command = [&session, all, of_models] { estimate_memory(session, all->flags, of_models); };
  });
}

}  // namespace runner::cli
