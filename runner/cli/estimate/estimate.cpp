#include "runner/cli/estimate/estimate.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "runner/cli/engine_or_fail.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/facts.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

using core::Node;
using pretrained::TensorShape;

constexpr std::int64_t kLengthMax = 2048;  ///< of a sample, where none is given

std::int64_t elements_of(const std::vector<TensorShape>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t sum, const TensorShape& one) { return sum + one.elements(); });
}

/// How the linear weights are kept, and how many bytes the other numbers and the cache have, as bitsandbytes loads
/// them.
struct LoadedForm {
  const char* quantization;  ///< of a recipe; "" for none
  std::int64_t item_bytes;
};

LoadedForm loaded_form(const std::string& type) {
  if (type == "int8") return {"{load_in_8bit: true}", 2};
  if (type == "int4") return {"{load_in_4bit: true, bnb_4bit_quant_type: nf4}", 4};
  return {"", type == "float32" ? 4 : 2};
}

/// Bytes of keys and values.
std::int64_t cache_bytes(const pretrained::Facts& facts, bool has_cache, std::int64_t tokens, std::int64_t item_bytes) {
  if (!has_cache) return 0;
  const std::int64_t layers = facts.integer("decoder_layers", facts.integer("layers"));
  const std::int64_t groups = facts.integer("kv_heads", facts.integer("heads"));
  const std::int64_t sources = facts.has("decoder_layers") ? 2 : 1;  // a decoder also keeps those of what it looks at
  return sources * 2 * layers * groups * facts.head() * tokens * item_bytes;
}

/// A way to train, as keys of a recipe.
struct Way {
  std::string name;
  bool adapts = false, shards = false;
  std::string quantization = {};
};

class Estimator {
 public:
  Estimator(Session& session, const SizedModel& model, const EstimateFlags& flags, engine::Engine& engine)
      : session_(session),
        model_(model),
        flags_(flags),
        engine_(engine),
        type_(*pretrained::find_model_type(model.model_type, model.head)),
        facts_(type_, *model.config) {
    const std::int64_t positions = facts_.longest_text(facts_.integer("positions", 0));
    length_ = flags.max_seq_len.value_or(positions > 0 ? std::min(positions, kLengthMax) : kLengthMax);
  }

  std::optional<MemoryReport> run() {
    core::Diagnostics diagnostics;
    const auto whole = estimate(recipe_of({}, false), {.trains = false}, diagnostics);
    if (!whole) {
      session_.show(diagnostics);
      session_.exit_code = core::kExitUsage;
      return std::nullopt;
    }
    MemoryReport report{model_.title, model_.model_type, model_.architecture, "config", model_.told};
    for (const engine::ModelTensor& tensor : whole->tensors) tensors_.push_back({tensor.name, tensor.shape});
    report.sizes = module_sizes(type_, *model_.config, tensors_);
    for (const std::string& type : flags_.dtypes) report.types.push_back(row_of(type, report.sizes));
    report.training = flags_.optimizer + ", " + flags_.precision + ", micro-batches of " +
                      std::to_string(flags_.micro_batch_size) + " x " + core::with_commas(length_) + " tokens";
    for (const Way& way : ways()) report.ways.push_back(row_of(way));
    return report;
  }

 private:
  TypeRow row_of(const std::string& type, const pretrained::ModuleSizes& sizes) {
    TypeRow row{type, sizes_in(type, sizes), {}, {}};
    const LoadedForm form = loaded_form(type);
    row.loaded = elements_of(tensors_) * form.item_bytes;
    if (*form.quantization != '\0') row.loaded = loaded_quantized(form);
    const bool has_cache = model_.head == pretrained::kCausalLm || model_.head == pretrained::kSeq2SeqLm;
    row.cache = cache_bytes(facts_, has_cache, flags_.tokens, form.item_bytes);
    return row;
  }

  std::optional<std::int64_t> loaded_quantized(const LoadedForm& form) {
    core::Diagnostics diagnostics;
    const auto sizes =
        estimate(recipe_of({"", false, false, form.quantization}, false), {.trains = false}, diagnostics);
    if (!sizes) return std::nullopt;
    std::int64_t rest = 0;
    for (const engine::ModelTensor& tensor : sizes->tensors) rest += TensorShape{tensor.name, tensor.shape}.elements();
    return sizes->quantized_bytes + rest * form.item_bytes;
  }

  std::vector<Way> ways() const {
    const std::string lora = "LoRA, r " + std::to_string(flags_.lora_r);
    std::vector<Way> all = {{"all weights"},
                            {lora, true},
                            {lora + ", 8 bits", true, false, "{load_in_8bit: true}"},
                            {lora + ", 4 bits", true, false, "{load_in_4bit: true, bnb_4bit_quant_type: nf4}"}};
    if (flags_.num_processes > 1) {
      const std::string over = ", sharded over " + std::to_string(flags_.num_processes);
      all.push_back({"all weights" + over, false, true});
      all.push_back({lora + over, true, true});
    }
    return all;
  }

  WayRow row_of(const Way& way) {
    WayRow row{way.name};
    core::Diagnostics diagnostics;
    const engine::SizeRequest request{length_, true, model_.is_bf16};
    if (const auto plain = estimate(recipe_of(way, false), request, diagnostics)) {
      row.trained = plain->trained_elements;
      row.plain = plain->training;
    }
    if (row.plain) {
      core::Diagnostics of_recomputing;
      if (const auto less = estimate(recipe_of(way, true), request, of_recomputing)) row.recomputed = less->training;
      return row;
    }
    for (const core::Diagnostic& one : diagnostics.all()) {
      if (one.severity == core::Severity::kError && row.why_not.empty()) row.why_not = one.message;
    }
    return row;
  }

  std::string recipe_of(const Way& way, bool recomputes) const {
    std::string text = "init_from: " + core::to_json(Node::string(model_.folder), -1) + "\n";
    text += "model: {type: transformers, head: " + model_.head + "}\n";
    text += "data: {train: {type: synthetic, task: regression, num_samples: 1}}\n";  // whose place shapes take
    text += "optimizer: {type: " + flags_.optimizer + ", lr: 1.0e-4}\n";
    text += "training: {max_steps: 1, micro_batch_size: " + std::to_string(flags_.micro_batch_size) + "}\n";
    text += "device: cpu\nprecision: " + flags_.precision + "\n";
    if (recomputes) text += "activation_checkpointing: full\n";
    if (way.adapts) {
      // The layers of experts are not adapted.
      const char* const layers = facts_.mixtures().empty() ? ", target_modules: all-linear"
                                                           : ", target_modules: [q_proj, k_proj, v_proj, o_proj]";
      text += "adapters: [{type: lora, r: " + std::to_string(flags_.lora_r) + layers + "}]\n";
    }
    if (!way.quantization.empty()) text += "quantization: " + way.quantization + "\n";
    if (way.shards) {
      text += "launch: {num_processes: " + std::to_string(flags_.num_processes) + "}\n";
      text += "parallelism: {shard: parameters}\n";
    }
    return text;
  }

  std::optional<engine::SizeEstimate> estimate(const std::string& text, const engine::SizeRequest& request,
                                               core::Diagnostics& diagnostics) {
    const auto source = std::make_shared<core::Source>();
    source->name = "estimate-memory";
    source->text = text;
    recipe::ComposeOptions options;
    options.use = recipe::Use{};
    core::Diagnostics* const kept = std::exchange(session_.kept, &diagnostics);
    const auto recipe = session_.load(source, options);
    session_.kept = kept;
    session_.exit_code = 0;
    return recipe ? engine_.estimate_sizes(*recipe, request, diagnostics) : std::nullopt;
  }

  Session& session_;
  const SizedModel& model_;
  const EstimateFlags& flags_;
  engine::Engine& engine_;
  const pretrained::ModelType& type_;
  const pretrained::Facts facts_;
  std::int64_t length_ = 0;
  std::vector<TensorShape> tensors_;
};

MemoryReport report_of_headers(const SizedModel& model, const EstimateFlags& flags) {
  MemoryReport report{model.title, model.model_type, "", "headers", model.told};
  report.sizes = pretrained::module_sizes(model.tensors);
  for (const std::string& type : flags.dtypes) report.types.push_back({type, sizes_in(type, report.sizes), {}, {}});
  return report;
}

}  // namespace

std::optional<MemoryReport> estimate_model(Session& session, const SizedModel& model, const EstimateFlags& flags) {
  if (!model.config) return report_of_headers(model, flags);
  engine::Engine* const engine = engine_or_fail(session);
  if (engine == nullptr) return std::nullopt;
  return Estimator(session, model, flags, *engine).run();
}

MemoryReport report_of_plan(const std::string& title, const engine::Plan& plan, const EstimateFlags& flags) {
  MemoryReport report{title, "", "", "recipe"};
  report.sizes.parameters = plan.parameters;
  constexpr std::int64_t kFloatBytes = 4;
  for (const engine::BlockPlan& block : plan.blocks) {
    const std::int64_t bytes = kFloatBytes * block.parameters;
    report.sizes.total += bytes;
    if (bytes > report.sizes.largest) report.sizes.largest_names.clear();
    report.sizes.largest = std::max(report.sizes.largest, bytes);
    if (bytes == report.sizes.largest) report.sizes.largest_names.push_back(block.name);
  }
  for (const std::string& type : flags.dtypes) report.types.push_back({type, sizes_in(type, report.sizes), {}, {}});
  report.plan = plan;
  return report;
}

}  // namespace runner::cli
