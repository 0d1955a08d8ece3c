// Models of Transformers folders against what Transformers computes of them: logits, loss, the gradient of every
// parameter, and weights after five AdamW steps. tests/parity/make.py wrote the folders of tests/parity/models.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/generation/generator.h"
#include "components/loss/loss.h"
#include "components/model/model.h"
#include "components/ops/kernel_policy.h"
#include "components/optimizer/optimizer.h"
#include "components/part/weight.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/json.h"
#include "runner/pretrained/config.h"
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
using runner::pretrained::ModelType;
using runner::pretrained::WeightRule;

/// Shares of the largest entry.
constexpr double kBound = 1e-4, kAfterSteps = 1e-3;
constexpr double kRounding = 3e-6;  ///< make.py's ROUNDING

struct Plain {
  explicit Plain(bool plain) { components::set_fused_kernels(!plain); }
  ~Plain() { components::set_fused_kernels(true); }
};

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(tests::source_dir() + "/tests/parity/models")) {
    if (entry.is_directory()) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A model with the weights of its folder, and its batches.
struct Subject {
  std::shared_ptr<components::model::Model> model;
  std::shared_ptr<components::loss::Loss> loss;
  const ModelType* type = nullptr;
  TensorMap unpadded, padded;
};

/// What the folder's model ends with, by the second part of its name: make.py's HEADS.
std::string head_of(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  const std::string second = name.substr(name.find('-') + 1);
  return second.substr(0, second.find('-'));
}
bool has_head(const std::string& folder) {
  const std::string head = head_of(folder);
  return head == "texts" || head == "tags" || head == "masked" || head == "spans";
}

std::unique_ptr<runner::train::Experiment> load(const std::string& folder) {
  auto experiment = tests::experiment_of("init_from: " + folder + "\ndata: {train: {type: ids, path: " + folder +
                                         "/ids.jsonl}}\noptimizer: {type: adamw, lr: 0.001}\n"
                                         "training: {max_steps: 1, micro_batch_size: 2}\n");
  const runner::resolve::Recipe& recipe = experiment->recipe;
  runner::core::Diagnostics diagnostics;
  const auto weights = runner::checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                                          *experiment->model, recipe.output_dir, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(weights);
  CHECK(weights->filled == weights->tensors);
  runner::checkpoint::load_init_weights(*weights, *experiment->model);
  return experiment;
}

/// The tensor of the model that Transformers keeps as these, with `prefix` before their names; undefined when there is
/// none.
at::Tensor expected_of(const TensorSource& source, const ModelType& type, const std::string& prefix,
                       const std::string& name) {
  const WeightRule* rule = type.rule_of(name);
  if (rule == nullptr) return {};
  const std::int64_t number = *runner::pretrained::number_in(rule->name, name);
  // Gradients and steps are those of the stack in memory.
  const std::string stack = prefix + runner::pretrained::with_number(rule->stacked, number);
  if (rule->is_of_experts()) return source.find(stack) != nullptr ? source.tensor(stack) : at::Tensor();
  std::vector<at::Tensor> parts;
  for (const std::string& from : rule->from) {
    std::string there = prefix + runner::pretrained::with_number(from, number);
    for (const auto& [end, other] : type.old_ends) {
      if (there.ends_with(end) && source.find(there) == nullptr)
        there.replace(there.size() - end.size(), end.size(), other);
    }
    if (source.find(there) != nullptr) parts.push_back(source.tensor(there));
  }
  if (parts.size() != rule->from.size()) return {};
  const at::Tensor whole = parts.size() == 1 ? parts.front() : at::cat(parts, 0);
  return rule->transposed ? whole.t() : whole;
}

double distance(const at::Tensor& found, const at::Tensor& expected) {
  return (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
}

/// A batch of the records with an attention mask, or of the others, for a head for classes: as data give it, but for
/// the mask, which is there without padding, too.
TensorMap batch_of(const std::vector<Node>& records, bool padded) {
  std::map<std::string, std::vector<at::Tensor>> rows;
  for (const Node& record : records) {
    if ((record.find("attention_mask") != nullptr) != padded) continue;
    const auto length = static_cast<std::int64_t>(record.find("input_ids")->items().size());
    for (const Node::Entry& entry : record.entries()) {
      std::vector<double> numbers;
      if (entry.value.is_sequence()) {
        for (const Node& number : entry.value.items()) numbers.push_back(number.as_double());
      } else {
        numbers.push_back(entry.value.as_double());
      }
      const bool is_float = entry.value.is_sequence() && !entry.value.items().front().is_integer();
      const at::Tensor row = at::tensor(numbers, at::kDouble).to(is_float ? at::kFloat : at::kLong);
      rows[entry.key].push_back(entry.value.is_sequence() ? row : row.squeeze(0));
    }
    if (!padded) rows["attention_mask"].push_back(at::ones({length}, at::kLong));
  }
  TensorMap batch;
  batch.set(components::kInput, at::stack(rows.at("input_ids")));
  batch.set(components::kAttentionMask, at::stack(rows.at("attention_mask")).to(at::kBool));
  batch.set(components::kTarget, at::stack(rows.at("labels")));
  if (rows.contains("token_type_ids")) batch.set(components::kTokenTypes, at::stack(rows.at("token_type_ids")));
  return batch;
}

/// Of such a batch.
components::BatchSpec spec_of(const TensorMap& batch, const std::string& head, std::int64_t classes) {
  using components::Dtype, components::kBatch, components::kTime;
  constexpr std::int64_t kLength = 16;
  components::BatchSpec spec;
  const auto add = [&spec](const char* name, Dtype dtype, std::vector<std::int64_t> shape) -> components::TensorSpec& {
    spec.tensors.push_back({name, dtype, std::move(shape), false});
    spec.tensors.back().max_length = kLength;
    return spec.tensors.back();
  };
  add(components::kInput, Dtype::kInt64, {kBatch, kTime}).padded = true;
  add(components::kAttentionMask, Dtype::kBool, {kBatch, kTime}).padded = true;
  if (batch.find(components::kTokenTypes) != nullptr) add(components::kTokenTypes, Dtype::kInt64, {kBatch, kTime});
  const at::Tensor& target = batch.at(components::kTarget);
  if (head == "texts" && target.is_floating_point()) {
    add(components::kTarget, Dtype::kFloat32, {kBatch, target.size(1)});
  } else if (head == "texts") {
    add(components::kTarget, Dtype::kInt64, {kBatch}).num_classes = classes;
  } else if (head == "spans") {
    add(components::kTarget, Dtype::kInt64, {kBatch, 2});
  } else {
    components::TensorSpec& of_target = add(components::kTarget, Dtype::kInt64, {kBatch, kTime});
    of_target.has_ignored = true;
    of_target.in_place = head == "masked";
    (head == "tags" ? of_target.num_classes : of_target.vocab_size) = classes;
  }
  return spec;
}

/// Without data sets, which give targets of other kinds of their own.
Subject load_head(const std::string& folder) {
  runner::core::Diagnostics diagnostics;
  Node block = tests::block("model", "{type: transformers, config: {}}");
  block.set("config", *runner::pretrained::read_config(folder + "/config.json", diagnostics));
  std::vector<Node> records;
  std::ifstream file(folder + "/ids.jsonl");
  for (std::string line; std::getline(file, line);) {
    records.push_back(runner::core::parse_json(line).value());
  }
  Subject subject;
  subject.type = runner::pretrained::model_type_of(block);
  subject.unpadded = batch_of(records, false);
  subject.padded = batch_of(records, true);
  const TensorSource weights(folder + "/model.safetensors"), expected(folder + "/expected.safetensors");
  const std::int64_t classes = expected.tensor("unpadded/logits").size(-1);
  const components::BatchSpec spec = spec_of(subject.unpadded, head_of(folder), classes);
  components::part::DrawnWeights drawn;
  subject.model = components::model::build(block, {spec, drawn, block, diagnostics});
  INFO(runner::core::render(diagnostics));
  REQUIRE(subject.model != nullptr);
  for (const NamedTensor& parameter : subject.model->parameters()) {
    INFO(parameter.name);
    const at::Tensor weight = expected_of(weights, *subject.type, "", parameter.name);
    REQUIRE(weight.defined());
    REQUIRE(weight.sizes() == parameter.tensor.sizes());
    parameter.tensor.detach().copy_(weight);
  }
  const bool has_values = subject.unpadded.at(components::kTarget).is_floating_point();
  const Node of_loss = tests::block("loss", has_values                   ? "{type: mse}"
                                            : head_of(folder) == "spans" ? "{type: answer_span}"
                                                                         : "{type: cross_entropy}");
  subject.loss = components::loss::build(of_loss, {subject.model->outputs(), spec, of_loss, diagnostics});
  INFO(runner::core::render(diagnostics));
  REQUIRE(subject.loss != nullptr);
  return subject;
}

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = first; i < end; ++i) found.push_back(i);
  return found;
}

Subject load_language_model(const std::string& folder, const TensorSource& expected) {
  const auto experiment = load(folder);
  Subject subject;
  subject.model = experiment->model;
  subject.loss = experiment->loss;
  subject.type = runner::pretrained::model_type_of(experiment->recipe.model);
  const std::int64_t first = expected.tensor("unpadded/logits").size(0);
  experiment->train_data->fetch(numbers(0, first), subject.unpadded);
  experiment->train_data->fetch(numbers(first, experiment->train_data->size()), subject.padded);
  return subject;
}

/// Mean loss of a batch, with its graph.
at::Tensor mean_loss(const Subject& subject, TensorMap batch) {
  const auto count = static_cast<double>(subject.loss->count(batch));
  std::vector<double> ratios;
  for (const std::int64_t further : subject.loss->further_counts(batch)) {
    ratios.push_back(count / static_cast<double>(further));
  }
  if (!ratios.empty()) batch.set(components::loss::kCountRatios, at::tensor(ratios, at::kFloat));
  subject.model->forward_for_loss(batch);
  return subject.loss->sum(batch, 1.0 / count) / count;
}

void check_batch(const Subject& subject, const TensorSource& expected, const std::string& prefix,
                 const TensorMap& batch) {
  TensorMap tensors = batch;
  {
    const at::NoGradGuard no_grad;
    subject.model->forward(tensors);
  }
  const at::Tensor logits = expected.tensor(prefix + "logits");
  const double largest = logits.abs().max().item<double>();
  // A decoder's padding sees what is before it, as in Transformers.
  const bool has_decoder = batch.find(components::kDecoderInput) != nullptr;
  const at::Tensor* mask = has_decoder ? nullptr : batch.find(components::kAttentionMask);
  at::Tensor difference = (tensors.at(components::kOutput) - logits).abs().amax(-1);
  if (mask != nullptr && difference.sizes() == mask->sizes())
    difference = difference.masked_fill(mask->logical_not(), 0);
  CHECK(difference.max().item<double>() <= kBound * largest);

  tests::clear_gradients(*subject.model);
  subject.loss->take_figures();
  const at::Tensor mean = mean_loss(subject, batch);
  if (expected.find(prefix + "aux_loss") != nullptr) {
    CHECK(subject.loss->figure_names() == std::vector<std::string>{"aux_loss"});
    const components::loss::Figures figures = subject.loss->take_figures();
    CHECK(figures.sums.front() / static_cast<double>(figures.counts.front()) ==
          Approx(expected.tensor(prefix + "aux_loss").item<double>()).epsilon(kBound));
  }
  mean.backward();
  CHECK(mean.item<double>() == Approx(expected.tensor(prefix + "loss").item<double>()).epsilon(kBound));
  double all = 0;
  for (const NamedTensor& parameter : subject.model->parameters()) {
    all = std::max(all, parameter.tensor.grad().abs().max().item<double>());
  }
  for (const NamedTensor& parameter : subject.model->parameters()) {
    INFO(prefix << "grad/" << parameter.name);
    const at::Tensor wanted = expected_of(expected, *subject.type, prefix + "grad/", parameter.name);
    REQUIRE(wanted.defined());
    // The softmax of spans and choices is over logits that one bias moves alike: here more gradients are nothing but
    // rounding, which make.py leaves out of the steps by the same bound.
    const std::string& head = subject.type->head;
    const bool moves_alike =
        head == runner::pretrained::kQuestionAnswering || head == runner::pretrained::kMultipleChoice;
    if (moves_alike && wanted.abs().max().item<double>() <= kRounding * all) {
      CHECK(parameter.tensor.grad().abs().max().item<double>() <= kRounding * all);
      continue;
    }
    // A gradient that is zero but for rounding has no size of its own.
    const double size = std::max(wanted.abs().max().item<double>(), 1e-3 * all);
    CHECK(distance(parameter.tensor.grad(), wanted) <= kBound * size);
  }
}

/// Collects the ids of each sequence.
struct Written final : components::generation::Receiver {
  std::vector<std::vector<std::int32_t>> of;
  bool token(std::size_t sequence, std::int32_t id, float) override {
    of[sequence].push_back(id);
    return true;
  }
  void ended(std::size_t, components::generation::End) override {}
};

/// What the model writes of each source of a batch, greedily and without an end; where it has no encoder, behind the
/// first two ids of each row. Fewer sequences at a time than there are sources, so that slots serve several.
void check_generated(const Subject& subject, const TensorSource& expected, const std::string& prefix,
                     const TensorMap& batch) {
  constexpr std::size_t kPrompt = 2;
  if (expected.find(prefix + "generated") == nullptr) return;
  const at::Tensor wanted = expected.tensor(prefix + "generated"), ids = batch.at(components::kInput);
  const at::Tensor* mask = batch.find(components::kAttentionMask);
  std::vector<std::vector<std::int32_t>> sources;
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    sources.emplace_back();
    for (std::int64_t i = 0; i < ids.size(1); ++i) {
      if (!subject.model->decoder_start() && sources.back().size() == kPrompt) break;
      if (mask == nullptr || (*mask)[row][i].item<bool>()) sources.back().push_back(ids[row][i].item<std::int32_t>());
    }
  }
  components::generation::Options options;
  options.max_new_tokens = wanted.size(1);
  subject.model->set_training(false);
  for (const std::int64_t slots : {1, 2}) {
    Written written;
    written.of.resize(sources.size());
    options.batch = slots;
    components::generation::Generator(*subject.model, options).generate(sources, written);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      INFO(prefix << "generated/" << i);
      const at::Tensor row = wanted[static_cast<std::int64_t>(i)].contiguous();
      const auto* const first = row.const_data_ptr<std::int64_t>();
      CHECK(written.of[i] == std::vector<std::int32_t>(first, first + row.numel()));
    }
  }
  subject.model->set_training(true);
}

/// Where a gradient is zero but for rounding AdamW makes steps of whole lr of it, in any direction.
void check_steps(const Subject& subject, const TensorSource& expected, const TensorMap& batch) {
  constexpr int kSteps = 5;
  constexpr double kRate = 1e-3;
  const auto node =
      tests::block("optimizer", "{type: adamw, lr: 0.001, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01}");
  runner::core::Diagnostics diagnostics;
  const auto parameters = subject.model->parameters();
  const auto optimizer =
      components::optimizer::build(node, {components::optimizer::make_param_groups(node, parameters, diagnostics)});
  for (int step = 0; step < kSteps; ++step) {
    tests::clear_gradients(*subject.model);
    mean_loss(subject, batch).backward();
    optimizer->step();
  }
  for (const NamedTensor& parameter : parameters) {
    INFO("after/" << parameter.name);
    const at::Tensor wanted = expected_of(expected, *subject.type, "unpadded/after/", parameter.name);
    const at::Tensor gradient = expected_of(expected, *subject.type, "unpadded/grad/", parameter.name).abs();
    REQUIRE(wanted.defined());
    // What is no number there hangs on rounding in Transformers too.
    const at::Tensor difference = (parameter.tensor.detach() - wanted).abs().nan_to_num(0);
    const at::Tensor sure = gradient > 1e-4 * gradient.max();
    CHECK(difference.masked_fill(sure.logical_not(), 0).max().item<double>() <=
          kAfterSteps * wanted.nan_to_num(0).abs().max().item<double>());
    CHECK(difference.max().item<double>() <= 2 * kSteps * kRate);
  }
}

}  // namespace

TEST_CASE("models of Transformers folders compute what Transformers computes", "[golden][pretrained]") {
  for (const std::string& folder : folders()) {
    for (const bool plain : {false, true}) {
      DYNAMIC_SECTION(fs::path(folder).filename().string() << (plain ? ", plain operations" : "")) {
        const Plain as_asked(plain);
        const TensorSource expected(folder + "/expected.safetensors");
        const Subject subject = has_head(folder) ? load_head(folder) : load_language_model(folder, expected);
        check_batch(subject, expected, "unpadded/", subject.unpadded);
        check_batch(subject, expected, "padded/", subject.padded);
        check_generated(subject, expected, "unpadded/", subject.unpadded);
        check_generated(subject, expected, "padded/", subject.padded);
        check_steps(subject, expected, subject.unpadded);
      }
    }
  }
}
