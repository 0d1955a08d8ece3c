// Adapters against PEFT: logits, loss, the gradient of every trained parameter, and those after five AdamW steps.
// tests/parity/make_adapters.py wrote the folders of tests/parity/adapters.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/block/quantized.h"
#include "components/loss/loss.h"
#include "components/ops/kernel_policy.h"
#include "components/optimizer/optimizer.h"
#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/tensor/autocast.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/model_type.h"
#include "runner/train/experiment/experiment.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/tensors_torch.h"

namespace {

namespace fs = std::filesystem;

using components::NamedTensor;
using components::TensorMap;
using runner::checkpoint::TensorSource;
using runner::core::Node;
using runner::train::Experiment;

/// Shares of the largest entry; of the loss in bfloat16, which loses more where scores are as far apart as here.
/// kRounded: where numbers are rounded to 8 bits, which a difference in the last place may send the other way.
constexpr double kRounded = 0.02, kBound = 1e-4, kAfterSteps = 1e-3, kBf16Bound = 0.05;

constexpr const char* kKeys[] = {"r",
                                 "lora_alpha",
                                 "target_modules",
                                 "exclude_modules",
                                 "use_rslora",
                                 "bias",
                                 "init_lora_weights",
                                 "lora_dropout",
                                 "layers_to_transform",
                                 "use_dora",
                                 "modules_to_save"};

constexpr std::int64_t kPrompt = 4;  ///< PROMPT of make_adapters.py

struct Plain {
  explicit Plain(bool plain) { components::set_fused_kernels(!plain); }
  ~Plain() { components::set_fused_kernels(true); }
};

/// A processor that has units for bfloat16.
struct Bf16Units {
  Bf16Units() { components::pretend_bf16_units(true); }
  ~Bf16Units() { components::pretend_bf16_units(std::nullopt); }
};

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(tests::source_dir() + "/tests/parity/adapters")) {
    found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// One adapter of a case: the default one lies in the case's folder, others below.
struct OfFolder {
  std::string name, folder;
};

std::vector<OfFolder> adapters_of(const std::string& folder) {
  std::vector<OfFolder> found = {{"default", folder}};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back({entry.path().filename().string(), entry.path().string()});
  }
  return found;
}

/// The model's folder and the adapters' blocks, from PEFT's configurations.
struct Case {
  std::string base, blocks;
};

Case case_of(const std::string& folder) {
  Case found;
  for (const OfFolder& adapter : adapters_of(folder)) {
    const Node config =
        runner::core::parse_json(runner::core::read_file(adapter.folder + "/adapter_config.json", 1 << 20).value())
            .value();
    found.base = tests::source_dir() + "/tests/parity/" + config.find("base_model_name_or_path")->as_string();
    found.blocks += (found.blocks.empty() ? "{type: lora, name: " : ", {type: lora, name: ") + adapter.name;
    for (const char* key : kKeys) {
      const Node* value = config.find(key);
      if (!value->is_null()) found.blocks += std::string(", ") + key + ": " + runner::core::to_json(*value, -1);
    }
    found.blocks += "}";
  }
  return found;
}

/// PEFT's name of a parameter of a layer, in front of its last part.
std::string peft_name(const components::adapter::AdaptedLayer& layer, const std::string& what) {
  return "base_model.model." + layer.module + what;
}

/// A tensor under that name with one of `infixes` in front of one of its parts, or none; "" where there is none.
std::string known_name(const TensorSource& source, const std::string& name, const std::vector<std::string>& infixes) {
  if (source.find(name) != nullptr) return name;
  for (const std::string& infix : infixes) {
    for (std::size_t at = name.find('.'); at != std::string::npos; at = name.find('.', at + 1)) {
      const std::string known = name.substr(0, at + 1) + infix + name.substr(at + 1);
      if (source.find(known) != nullptr) return known;
    }
  }
  return "";
}

/// A parameter that is no adapter's, from what PEFT has of it under one of its names. Undefined where it has none.
at::Tensor whole_of(const Experiment& experiment, const TensorSource& source, const std::string& prefix,
                    const std::string& name, const std::vector<std::string>& infixes = {}) {
  const auto& type = *runner::pretrained::model_type_of(experiment.recipe.model);
  for (const auto& rule : type.weights) {
    const auto number = runner::pretrained::number_in(rule.name, name);
    if (!number) continue;
    std::vector<at::Tensor> parts;
    for (const std::string& from : rule.from) {
      const std::string there =
          prefix + "base_model.model." + type.memory_name(runner::pretrained::with_number(from, *number));
      const std::string known = known_name(source, there, infixes);
      if (known.empty()) continue;
      const at::Tensor part = source.tensor(known);
      parts.push_back(rule.transposed && part.dim() == 2 ? part.t() : part);
    }
    if (parts.size() == rule.from.size()) return at::cat(parts, 0);
  }
  return {};
}

/// The name in roux of a layer's tensor that PEFT calls `.lora_A.weight` behind the layer.
std::string own_name(const components::adapter::AdaptedLayer& layer, const std::string& suffix,
                     const std::string& adapter) {
  if (adapter == "default") return layer.name + suffix;
  const std::size_t end = std::min(suffix.find('.', 1), suffix.size());
  return layer.name + suffix.substr(0, end) + "." + adapter + suffix.substr(end);
}

void fill(const Experiment& experiment, const components::adapter::Adapter& adapter, const OfFolder& of_folder) {
  const at::NoGradGuard no_grad;
  const TensorSource source(of_folder.folder + "/adapter_model.safetensors");
  for (const NamedTensor& parameter : experiment.model->parameters()) {
    for (const auto& layer : adapter.layers()) {
      for (const std::string suffix : {".lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector"}) {
        if (parameter.name == own_name(layer, suffix, of_folder.name))
          parameter.tensor.copy_(source.tensor(peft_name(layer, suffix)));
      }
    }
    const at::Tensor whole = whole_of(experiment, source, "", parameter.name);
    if (whole.defined()) parameter.tensor.copy_(whole);
  }
}

/// `options`: of the data set. `more`: lines of the recipe.
std::unique_ptr<Experiment> load(const std::string& folder, const std::string& options = "",
                                 const std::string& more = "") {
  const Case of_folder = case_of(folder);
  auto experiment = tests::experiment_of("init_from: " + of_folder.base + "\nadapters: [" + of_folder.blocks +
                                         "]\ndata: {train: {type: ids, path: " + of_folder.base + "/ids.jsonl" +
                                         options + "}}\noptimizer: {type: adamw, lr: 0.001}\n" +
                                         "training: {max_steps: 1, micro_batch_size: 2}\n" + more);
  const runner::resolve::Recipe& recipe = experiment->recipe;
  runner::core::Diagnostics diagnostics;
  const auto weights = runner::checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                                          *experiment->model, recipe.output_dir, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(weights);
  CHECK(weights->filled == weights->tensors);
  runner::checkpoint::load_init_weights(*weights, *experiment->model);
  const std::vector<OfFolder> adapters = adapters_of(folder);
  for (std::size_t i = 0; i < adapters.size(); ++i) fill(*experiment, *experiment->adapters.at(i), adapters[i]);
  return experiment;
}

/// What PEFT has for a trained parameter, with `prefix` before its names.
at::Tensor expected_of(const Experiment& experiment, const TensorSource& source, const std::string& prefix,
                       const std::string& name) {
  for (std::size_t i = 0; i < experiment.adapters.size(); ++i) {
    const std::string adapter = experiment.recipe.adapters[i].find("name")->as_string();
    for (const auto& layer : experiment.adapters[i]->layers()) {
      for (const std::string part : {".lora_A", ".lora_B", ".lora_magnitude_vector"}) {
        const std::string suffix = part.ends_with("vector") ? part : part + ".weight";
        if (name == own_name(layer, suffix, adapter))
          return source.tensor(prefix + peft_name(layer, part + "." + adapter + ".weight"));
      }
    }
  }
  const at::Tensor whole = whole_of(experiment, source, prefix, name, {"base_layer.", "modules_to_save.default."});
  if (whole.defined()) return whole;
  FAIL("Transformers has no " << name);
  return {};
}

double distance(const at::Tensor& found, const at::Tensor& expected) {
  return (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
}

double largest(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

/// Mean loss of a batch, with its graph.
at::Tensor mean_loss(const Experiment& experiment, TensorMap batch, bool bf16 = false) {
  using components::AutocastOptions;
  const components::Autocast autocast({.type = bf16 ? AutocastOptions::Type::kBf16 : AutocastOptions::Type::kNone});
  const at::Tensor counts = at::tensor(experiment.loss->counts(batch)).to(at::kFloat);  // of each of its means
  experiment.model->forward_for_loss(batch);
  return (experiment.loss->parts(batch, 1.0 / counts[0].item<double>()) / counts).sum();
}

void check_logits(const Experiment& experiment, const TensorSource& expected, TensorMap batch,
                  const char* name = "logits", double bound = kBound) {
  const at::NoGradGuard no_grad;
  experiment.model->forward(batch);
  const at::Tensor logits = expected.tensor(name);
  CHECK(distance(batch.at(components::kOutput), logits) <= bound * largest(logits));
}

/// Those of the last backward pass.
void check_grads(const Experiment& experiment, const TensorSource& expected) {
  double all = 0;
  for (const NamedTensor& parameter : experiment.model->trained_parameters()) {
    all = std::max(all, largest(parameter.tensor.grad()));
  }
  for (const NamedTensor& parameter : experiment.model->parameters()) {
    INFO("grad/" << parameter.name);
    CHECK(parameter.tensor.grad().defined() == parameter.tensor.requires_grad());
    if (!parameter.tensor.requires_grad()) continue;
    const at::Tensor wanted = expected_of(experiment, expected, "grad/", parameter.name);
    // A gradient that is zero but for rounding has no size of its own.
    const double size = std::max(largest(wanted), 1e-3 * all);
    CHECK(distance(parameter.tensor.grad(), wanted) <= kBound * size);
  }
}

void check_gradients(const Experiment& experiment, const TensorSource& expected, const TensorMap& batch) {
  tests::clear_gradients(*experiment.model);
  const at::Tensor mean = mean_loss(experiment, batch);
  mean.backward();
  CHECK(mean.item<double>() == Approx(expected.tensor("loss").item<double>()).epsilon(kBound));
  check_grads(experiment, expected);
}

void check_steps(const Experiment& experiment, const TensorSource& expected, const TensorMap& batch) {
  const auto node =
      tests::block("optimizer", "{type: adamw, lr: 0.001, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01}");
  runner::core::Diagnostics diagnostics;
  const auto parameters = experiment.model->trained_parameters();
  const auto optimizer =
      components::optimizer::build(node, {components::optimizer::make_param_groups(node, parameters, diagnostics)});
  for (int step = 0; step < 5; ++step) {
    tests::clear_gradients(*experiment.model);
    mean_loss(experiment, batch).backward();
    optimizer->step();
  }
  for (const NamedTensor& parameter : parameters) {
    INFO("after/" << parameter.name);
    const at::Tensor wanted = expected_of(experiment, expected, "after/", parameter.name);
    const at::Tensor gradient = expected_of(experiment, expected, "grad/", parameter.name).abs();
    // Where a gradient is zero but for rounding AdamW makes steps of whole lr of it.
    const at::Tensor difference = (parameter.tensor.detach() - wanted).abs();
    CHECK(largest(difference.masked_fill(gradient <= 1e-4 * gradient.max(), 0)) <= kAfterSteps * largest(wanted));
  }
}

/// The pairs of TRL's loss, as a set of pairs gives them.
TensorMap pairs_of(const TensorSource& expected) {
  const at::Tensor sequences = expected.tensor("sequences");
  const std::int64_t pairs = sequences.size(0) / 2, width = 2 * sequences.size(1);
  const at::Tensor input = at::zeros({pairs, width}, at::kLong), positions = at::zeros({pairs, width}, at::kLong);
  const at::Tensor target = at::full({pairs, width}, components::kPadTarget, at::kLong);
  const at::Tensor rejected_at = at::zeros({pairs}, at::kLong);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    std::int64_t at = 0;
    for (std::int64_t row = 2 * pair; row < 2 * pair + 2; ++row) {
      if (row % 2 == 1) rejected_at[pair] = at;
      const at::Tensor ids = sequences[row].masked_select(sequences[row].ge(0));
      const std::int64_t length = ids.size(0);
      input[pair].narrow(0, at, length).copy_(ids);
      positions[pair].narrow(0, at, length).copy_(at::arange(length, at::kLong));
      target[pair].narrow(0, at + kPrompt - 1, length - kPrompt).copy_(ids.narrow(0, kPrompt, length - kPrompt));
      at += length;
    }
  }
  TensorMap batch;
  batch.set(components::kInput, input);
  batch.set(components::kPositions, positions);
  batch.set(components::kTarget, target);
  batch.set(components::kRejectedAt, rejected_at);
  batch.set(components::kAttentionMask, at::ones({pairs, width}, at::kBool));
  return batch;
}

void check_preferences(const Experiment& experiment, const TensorSource& expected) {
  const TensorMap batch = pairs_of(expected);
  const auto outputs = experiment.model->outputs();
  components::BatchSpec data = experiment.train_data->signature();
  data.tensors.push_back({components::kRejectedAt, components::Dtype::kInt64, {components::kBatch}, false});
  const auto node = tests::block("loss", "{type: dpo, beta: 0.25}");
  runner::core::Diagnostics diagnostics;
  const auto loss = components::loss::build(node, {outputs, data, node, diagnostics});
  INFO(runner::core::render(diagnostics));
  REQUIRE(loss != nullptr);
  const auto forward = [&experiment](TensorMap tensors) {
    experiment.model->forward_for_loss(tensors);
    return tensors;
  };
  const auto leave_out = [&experiment](bool leave_out) {
    for (const auto& block : experiment.model->blocks()) {
      for (const auto& named : block->linears()) named.linear->leave_out_terms(leave_out);
    }
  };
  leave_out(true);
  at::Tensor reference;
  {
    const at::NoGradGuard no_grad;
    reference = loss->reference_of(forward(batch));
  }
  leave_out(false);
  CHECK(distance(reference, expected.tensor("reference")) <= kBound * largest(reference));
  TensorMap tensors = batch;
  tensors.set(components::kReferenceChosen, reference.select(1, 0).contiguous());
  tensors.set(components::kReferenceRejected, reference.select(1, 1).contiguous());
  tests::clear_gradients(*experiment.model);
  const auto pairs = static_cast<double>(loss->count(batch));
  const at::Tensor mean = loss->sum(forward(tensors), 1.0 / pairs) / pairs;
  mean.backward();
  CHECK(mean.item<double>() == Approx(expected.tensor("loss").item<double>()).epsilon(kBound));
  const auto figures = loss->take_figures().sums;
  const at::Tensor rewards = expected.tensor("rewards").sum(0);
  // Differences of two sums of some tens each.
  CHECK(figures[0] == Approx(rewards[0].item<double>()).margin(1e-4));
  CHECK(figures[1] == Approx(rewards[1].item<double>()).margin(1e-4));
  check_grads(experiment, expected);
}

/// QUANTIZED of cases/quantized.py.
struct Quantized {
  const char *name, *file, *fields;
};
constexpr Quantized kQuantized[] = {
    {"bert-tags", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: nf4, llm_int8_skip_modules: [classifier]"},
    {"gpt2-default", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: nf4"},
    {"gpt2-dora", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true"},
    {"gpt2-default", "quantized8", "load_in_8bit: true"},
    {"llama-all-linear-rslora", "quantized",
     "load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true"},
    {"llama-all-linear-rslora", "quantized8", "load_in_8bit: true, llm_int8_threshold: 2.0"},
    {"llama-default", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: fp4"},
    {"phi3-all-linear", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: nf4"},
    {"qwen2-dora", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: nf4"},
    {"qwen3-default", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: fp4"},
    {"qwen3-default", "quantized8", "load_in_8bit: true, llm_int8_threshold: 0.0"},
    {"t5-all-linear", "quantized", "load_in_4bit: true, bnb_4bit_quant_type: nf4"},
};

TensorMap batch_of(const Experiment& experiment, const TensorSource& expected) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < expected.tensor("logits").size(0); ++i) numbers.push_back(i);
  TensorMap batch;
  experiment.train_data->fetch(numbers, batch);
  return batch;
}

}  // namespace

TEST_CASE("adapters compute what PEFT computes", "[golden][adapter]") {
  CHECK(folders().size() == 32);
  for (const std::string& folder : folders()) {
    for (const bool plain : {false, true}) {
      DYNAMIC_SECTION(fs::path(folder).filename().string() << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const auto experiment = load(folder);
        const TensorSource expected(folder + "/expected.safetensors");
        const TensorMap batch = batch_of(*experiment, expected);
        check_logits(*experiment, expected, batch);
        check_gradients(*experiment, expected, batch);
        check_steps(*experiment, expected, batch);
      }
      if (fs::exists(folder + "/preferences.safetensors")) {
        DYNAMIC_SECTION(fs::path(folder).filename().string()
                        << ", preferences" << (plain ? ", plain operations" : "")) {
          const Plain as_asked(plain);
          const auto experiment = load(folder, ", packing: true, max_seq_len: 16");
          check_preferences(*experiment, TensorSource(folder + "/preferences.safetensors"));
        }
      }
      DYNAMIC_SECTION(fs::path(folder).filename().string() << ", bfloat16" << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const auto experiment = load(folder);
        const TensorSource expected(folder + "/expected.safetensors");
        const Bf16Units units;
        CHECK(mean_loss(*experiment, batch_of(*experiment, expected), true).item<double>() ==
              Approx(expected.tensor("loss").item<double>()).epsilon(kBf16Bound));
      }
    }
  }
}

TEST_CASE("adapters on quantised weights compute what PEFT and bitsandbytes compute",
          "[golden][adapter][quantization]") {
  const std::string all = tests::source_dir() + "/tests/parity/adapters/";
  for (const Quantized& one : kQuantized) {
    const std::string file = all + one.name + "/" + one.file + ".safetensors";
    const std::string section = std::string("quantization: {") + one.fields + "}\n";
    for (const bool plain : {false, true}) {
      DYNAMIC_SECTION(one.name << ", " << one.file << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const auto experiment = load(all + one.name, "", section);
        CHECK(components::block::quantized_count(*experiment->model->blocks().at(1)) > 0);
        const TensorSource expected(file);
        const TensorMap batch = batch_of(*experiment, expected);
        check_logits(*experiment, expected, batch);
        check_gradients(*experiment, expected, batch);
        check_steps(*experiment, expected, batch);
      }
      if (std::string(one.file) != "quantized8") continue;
      DYNAMIC_SECTION(one.name << ", " << one.file << ", in use" << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const auto experiment = load(all + one.name, "", section);
        const TensorSource expected(file);
        experiment->model->set_training(false);
        check_logits(*experiment, expected, batch_of(*experiment, expected), "in_use", kRounded);
      }
    }
    DYNAMIC_SECTION(one.name << ", " << one.file << ", bfloat16") {
      const auto experiment = load(all + one.name, "", section);
      const TensorSource expected(file);
      const Bf16Units units;
      CHECK(mean_loss(*experiment, batch_of(*experiment, expected), true).item<double>() ==
            Approx(expected.tensor("loss").item<double>()).epsilon(kBf16Bound));
    }
  }
}
