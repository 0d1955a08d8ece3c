#include "runner/pretrained/write/export.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "runner/artifact/safetensors_layout.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/adapter_task.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/dtype.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_config.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/packed_reader.h"
#include "runner/pretrained/packed/quantization_config.h"
#include "runner/pretrained/sentence_folder.h"
#include "runner/pretrained/write/made_tensor.h"
#include "runner/pretrained/write/merge.h"
#include "runner/pretrained/write/packer.h"
#include "runner/pretrained/write/quantized_weights.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using artifact::TensorBytes;
using core::Node;
using core::RunError;

constexpr const char* kGenerationFile = "generation_config.json";
constexpr std::string_view kBias = ".bias";
constexpr double kIntegerMax = 1e15;
constexpr const char* kVersion = "5.24.0";  // of Transformers, whose way of writing this is

using Tensors = std::vector<WrittenTensor>;  ///< as Transformers has them

void transpose(const char* from, char* to, std::int64_t rows, std::int64_t columns, std::int64_t item) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::memcpy(to + (c * rows + r) * item, from + (r * columns + c) * item, static_cast<std::size_t>(item));
    }
  }
}

/// The matrices of each expert of a stack.
void take_experts(TensorBytes bytes, const WeightRule& rule, std::int64_t number, Tensors& to) {
  const std::int64_t experts = bytes.shape[0];
  const auto matrices = static_cast<std::int64_t>(rule.from.size());
  const std::int64_t rows = bytes.shape[1] / matrices;
  bytes.shape = {experts * bytes.shape[1], bytes.shape[2]};
  std::int64_t first = 0;
  for (std::string& name : rule.parts(number, experts)) {
    TensorBytes part = artifact::rows_of(bytes, first, rows);
    part.name = std::move(name);
    to.push_back({std::move(part)});
    first += rows;
  }
}

void take(const TensorBytes& bytes, const WeightRule& rule, std::int64_t number, const Node& config, Tensors& to) {
  if (rule.is_of_experts()) return take_experts(bytes, rule, number, to);
  const std::int64_t item = artifact::safetensors_item_bytes(bytes.dtype);
  if (rule.transposed) {
    to.push_back({{with_number(rule.from.front(), number),
                   bytes.dtype,
                   {bytes.shape[1], bytes.shape[0]},
                   nullptr,
                   bytes.bytes}});
    to.back().make = [bytes, item] {
      std::vector<char> turned(static_cast<std::size_t>(bytes.bytes)), scratch;
      const char* const from = artifact::bytes_at(bytes, 0, bytes.bytes, scratch);
      transpose(from, turned.data(), bytes.shape[0], bytes.shape[1], item);
      return turned;
    };
    return;
  }
  const std::vector<std::int64_t> rows = rows_of_parts(rule, bytes.shape[0], Facts(config));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < rule.from.size(); ++i) {
    TensorBytes part = artifact::rows_of(bytes, first, rows[i]);
    part.name = with_number(rule.from[i], number);
    to.push_back({std::move(part)});
    first += rows[i];
  }
}

/// Biases that Transformers always has and this model does not: as many zeros as the weight beside one has outputs.
void add_zeros(const artifact::SafetensorsReader& reader, const ModelType& type, Tensors& to) {
  for (const WeightRule& rule : type.weights) {
    if (!rule.else_zeros) continue;
    const std::string weight = rule.name.substr(0, rule.name.rfind('.')) + ".weight";
    for (const TensorBytes& bytes : reader.tensors()) {
      const std::optional<std::int64_t> number = number_in(weight, bytes.name);
      if (!number || reader.find(with_number(rule.name, *number)) != nullptr) continue;
      const std::int64_t size = bytes.shape[0] * artifact::safetensors_item_bytes(bytes.dtype);
      to.push_back({{with_number(rule.from.front(), *number), bytes.dtype, {bytes.shape[0]}, nullptr, size}});
      to.back().make = [size] { return std::vector<char>(static_cast<std::size_t>(size)); };
    }
  }
}

Tensors rename(const artifact::SafetensorsReader& reader, const ModelType& type, const Node& config) {
  Tensors renamed;
  for (const TensorBytes& bytes : reader.tensors()) {
    bool found = adapter_tensor(bytes.name).has_value();  // beside the model's own
    for (const WeightRule& rule : type.weights) {
      const std::optional<std::int64_t> number = number_in(rule.name, bytes.name);
      if (found || !number) continue;
      take(bytes, rule, *number, config, renamed);
      found = true;
    }
    if (!found) {
      throw RunError("Transformers' " + type.name + " has no tensor for " + bytes.name, "", core::kExitUsage);
    }
  }
  add_zeros(reader, type, renamed);
  return renamed;
}

std::string sorted_json(std::map<std::string, Node> fields) {
  Node sorted = Node::mapping();
  for (auto& [key, value] : fields) sorted.set(key, std::move(value));
  return core::to_json(sorted) + "\n";
}

Node as_float(const Node& value) { return value.is_integer() ? Node::floating(value.as_double()) : value; }

std::string config_text(const Node& config, const ModelType& type, const std::string& dtype) {
  std::map<std::string, Node> fields;
  for (const Node::Entry& entry : config.entries()) {
    // A null there is not the same as nothing for every class.
    if (entry.key == "head_dim" && entry.value.is_null()) continue;
    const Field* field = type.field(entry.key);
    const bool is_float =
        field != nullptr && std::find(field->types.begin(), field->types.end(), "number") != field->types.end();
    fields[entry.key] = is_float ? as_float(entry.value) : entry.value;
  }
  // The classes take no integer there.
  if (const auto rope = fields.find("rope_parameters"); rope != fields.end()) {
    for (Node::Entry& entry : rope->second.entries()) {
      if (entry.key != "original_max_position_embeddings") entry.value = as_float(entry.value);
    }
  }
  fields["architectures"] = Node::sequence({Node::string(type.architecture)});
  fields["dtype"] = Node::string(dtype_name(dtype));
  fields["transformers_version"] = Node::string(kVersion);
  return sorted_json(std::move(fields));
}

std::string generation_text(const Node& config) {
  std::map<std::string, Node> fields = {{"_from_model_config", Node::boolean(true)},
                                        {"transformers_version", Node::string(kVersion)}};
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"}) {
    const Node* value = config.find(key);
    if (value != nullptr && !value->is_null()) fields[key] = *value;
  }
  return sorted_json(std::move(fields));
}

/// The folder that the recipe began from, while it is there.
std::string source_folder(const Node& resolved) {
  const Node* path = resolved.at_path("init_from.path");
  if (path == nullptr || !path->is_string()) return "";
  for (const char* scheme : {"hf://", "https://", "http://"}) {
    if (path->as_string().starts_with(scheme)) return path->as_string();  // no longer in the cache
  }
  std::error_code failed;
  const fs::path source(path->as_string());
  const fs::path folder = fs::is_directory(source, failed) ? source : source.parent_path();
  const Node* type = resolved.at_path("model.type");
  const bool pretrained = type != nullptr && type->is_string() && type->as_string() == "transformers";
  return pretrained || !config_of_folder(folder.string()).empty() ? folder.string() : "";
}

/// The folder of the recipe's own tokenizer, of files under the names that folders of Transformers have; "": none.
std::string tokenizer_folder(const Node& resolved) {
  const Node* path = resolved.at_path("tokenizer.path");
  if (path == nullptr || !path->is_string()) return "";
  std::error_code failed;
  const fs::path source(path->as_string());
  const fs::path folder = fs::is_directory(source, failed) ? source : fs::absolute(source, failed).parent_path();
  return has_tokenizer(folder.string()) ? folder.string() : "";
}

/// The adapters' blocks of the recipe.
std::vector<const Node*> adapters_of(const Node& resolved) {
  std::vector<const Node*> blocks;
  const Node* adapters = resolved.find("adapters");
  if (adapters == nullptr) return blocks;
  for (const Node& block : adapters->items()) blocks.push_back(&block);
  return blocks;
}

/// With its head. The class of a model without one says nothing of what it is read for.
const ModelType& type_of(const Node& resolved, const Node& config) {
  const ModelType* own = model_type_of(*resolved.find("model"));
  return own != nullptr && own->head == kEmbedding ? *own : model_type_of_config(config);
}

/// What the recipe says of the vectors of texts.
SentenceFolder vectors_of(const Node& resolved) {
  const Node& model = *resolved.find("model");
  const Node *pooling = model.find("pooling"), *normalize = model.find("normalize");
  const Node* length = resolved.at_path("data.train.max_seq_len");
  SentenceFolder folder;
  folder.pooling = pooling != nullptr && pooling->is_string()
                       ? pooling->as_string()
                       : Facts(*model_type_of(model), *model.find("config")).text("output.pool");
  folder.normalize = normalize == nullptr || !normalize->is_bool() || normalize->as_bool();
  if (length != nullptr && length->is_integer()) folder.max_seq_length = length->as_integer();
  return folder;
}

/// In the exported folder, as PEFT's save_pretrained has it: the default adapter lies in that itself.
std::string in_folder_of(const Node& block, const char* file) {
  const std::string name = adapter_of_block(block);
  return name == kDefaultAdapter ? file : name + "/" + file;
}

/// As the recipe's `precision` says.
const char* type_of_products(const Node& resolved) {
  const Node* mode = resolved.at_path("precision.mode");
  const std::string word = mode != nullptr && mode->is_string() ? mode->as_string() : "";
  return word.starts_with("bf16") ? "bfloat16" : word.starts_with("16") ? "float16" : "float32";
}

class Writer {
 public:
  explicit Writer(const ExportRequest& request) : request_(request), blocks_(adapters_of(request.resolved)) {}

  Exported write() {
    check_request();
    if (!request_.adapter.empty()) adapter_.emplace(open_adapter(request_.adapter).value());
    reader_ = artifact::open_tensors(request_.tensors).value();
    if (request_.base && request_.merge) base_ = PackedReader::open(request_.base->source).value();
    const core::Result<Node> config = config_of_recipe(
        request_.resolved, [this](const std::string& name) { return shape_of(name); }, request_.labels);
    if (!config) throw RunError(config.failure().message, config.failure().hint, core::kExitUsage);
    config_ = config.value();
    type_ = &type_of(request_.resolved, config_);
    done_.model_type = type_->name;
    done_.source = source_folder(request_.resolved);
    tokenizer_ = tokenizer_folder(request_.resolved);
    if (tokenizer_.empty()) tokenizer_ = done_.source;
    tensors_ = rename(*reader_, *type_, config_);
    if (base_ != nullptr) add_base();
    done_.is_adapter = !blocks_.empty() && !request_.merge;
    if (done_.is_adapter) {
      write_adapters();
    } else {
      write_model();
    }
    return std::move(done_);
  }

 private:
  /// One adapter to write.
  struct Adapter {
    const Node* block;
    std::vector<WrittenTensor> tensors;
    std::vector<std::string> modules = {};
  };

  void count(const std::vector<WrittenTensor>& written) {
    done_.tensors += static_cast<std::int64_t>(written.size());
    for (const WrittenTensor& tensor : written) done_.bytes += tensor.bytes.bytes;
  }

  void write_adapters() {
    std::vector<Adapter> adapters;
    for (const Node* block : blocks_) {
      adapters.push_back(adapter_of(*block));
      count(adapters.back().tensors);
    }
    FolderWriter folder({request_.folder, request_.force, done_.bytes, sources()});
    for (const Adapter& adapter : adapters) {
      folder.write_tensors(in_folder_of(*adapter.block, kAdapterFile), adapter.tensors);
      folder.write_text(in_folder_of(*adapter.block, kAdapterConfigFile), adapter_config_text(adapter_config(adapter)));
    }
    copy_from_source(folder);
    done_.files = folder.finish();
  }

  void write_model() {
    std::vector<WrittenTensor> written = model_tensors(request_.quantize ? "" : dtype());
    const std::string of_numbers = dtype().empty() ? written.front().bytes.dtype : dtype();
    Node config = config_;
    if (request_.quantize) {
      const Node* skip = quantization() != nullptr ? quantization()->find("llm_int8_skip_modules") : nullptr;
      Packer packer(*type_, config_, *request_.quantize, skip, type_of_products(request_.resolved));
      written = packer.packed(written, dtype());
      config.set(kQuantizationConfig, packer.config_field());
      done_.quantization_error = packer.relative_error();
    }
    count(written);
    if (request_.write) return request_.write({written, config_, *type_, tokenizer_});
    FolderWriter folder({request_.folder, request_.force, done_.bytes, sources()});
    folder.write_model(written, request_.shard_bytes_max);
    folder.write_text(kConfigFile, config_text(config, *type_, of_numbers));
    if (type_->head == kEmbedding) {
      for (const auto& [name, text] : sentence_files(vectors_of(request_.resolved), config_width())) {
        folder.write_text(name, text);
      }
    }
    copy_from_source(folder);
    done_.files = folder.finish();
  }

  std::int64_t config_width() const { return Facts(*type_, config_).integer("width"); }

  std::vector<std::string> sources() const {
    return {request_.tensors, request_.adapter, done_.source, request_.base ? request_.base->source : ""};
  }

  void check_request() const {
    if (!request_.dtype.empty() && !blocks_.empty() && !request_.merge) {
      throw RunError("--dtype is for models, and this run has adapters, which PEFT keeps in float32",
                     "add --merge to write the model with them, or leave it out", core::kExitUsage);
    }
    if (request_.write && !blocks_.empty() && !request_.merge) {
      throw RunError("the run has adapters, and a GGUF file holds a model", "add --merge to write the model with them",
                     core::kExitUsage);
    }
    if (request_.merge && blocks_.empty()) {
      throw RunError("--merge is for runs with adapters, and this one has none", "leave it out", core::kExitUsage);
    }
    if (!request_.adapter.empty() && !blocks_.empty()) {
      throw RunError("the run has adapters of its own, and --adapter names another one",
                     "use --merge to write the model with its own", core::kExitUsage);
    }
    if (!blocks_.empty() && !request_.merge && request_.quantize) {
      throw RunError("--quantize is of a whole model, and an adapter is written alone",
                     "add --merge, which writes the model with it", core::kExitUsage);
    }
    if (!blocks_.empty() && !request_.merge) check_adapter_export(request_.resolved).value();
  }

  /// As the model has it.
  std::vector<std::int64_t> shape_of(const std::string& name) const {
    if (const TensorBytes* bytes = reader_->find(name)) return bytes->shape;
    if (!request_.base) return {};
    if (base_ == nullptr) return {1, 1};  // an adapter does not say
    std::vector<std::int64_t> shape;
    for (const artifact::BaseRecord::Tensor& tensor : request_.base->tensors) {
      if (tensor.name != name) continue;
      for (const std::string& from : tensor.from) {
        const TensorBytes* bytes = base_->find(from);
        if (bytes == nullptr) return {};
        std::vector<std::int64_t> part = bytes->shape;
        if (tensor.transposed) std::reverse(part.begin(), part.end());
        if (shape.empty()) {
          shape = part;
        } else {
          shape[0] += part[0];
        }
      }
    }
    return shape;
  }

  /// What the checkpoint does not hold, from a file with Transformers' names or roux's own.
  void add_base() {
    const auto is_own = [this](const TensorBytes& tensor) {
      return std::any_of(type_->weights.begin(), type_->weights.end(),
                         [&](const WeightRule& rule) { return number_in(rule.name, tensor.name).has_value(); });
    };
    const bool own = std::any_of(base_->tensors().begin(), base_->tensors().end(), is_own);
    Tensors there;
    if (own) {
      there = rename(*base_, *type_, config_);
    } else {
      for (const TensorBytes& tensor : base_->tensors()) add_of_base(tensor, there);
    }
    std::set<std::string> trained;
    for (const WrittenTensor& tensor : tensors_) trained.insert(tensor.bytes.name);
    const std::set<std::string> quantized = quantized_names();
    for (WrittenTensor& tensor : there) {
      std::string& name = tensor.bytes.name;
      const PackedWeight* packed = base_->packed(name);
      name = type_->own_name(name);  // the file may be of another head
      if (!is_weight(name) || trained.contains(name)) continue;
      if (packed != nullptr) {
        tensor = unpacked(name, *packed, is_turned(*type_, name));
      } else if (quantized.contains(name)) {
        tensor = rounded(tensor, PackForm::of(*quantization()), is_turned(*type_, name));
      }
      tensors_.push_back(std::move(tensor));
    }
  }

  /// The recipe's; null when it has none.
  const Node* quantization() const {
    const Node* section = request_.resolved.find("quantization");
    return section != nullptr && section->is_mapping() ? section : nullptr;
  }

  /// Transformers' names of the weights that were trained on as they are when they are quantised.
  std::set<std::string> quantized_names() const {
    std::set<std::string> names;
    for (const artifact::BaseRecord::Tensor& tensor : request_.base->tensors) {
      if (!tensor.quantized) continue;
      for (const WeightRule& rule : type_->weights) {
        const std::optional<std::int64_t> number = number_in(rule.name, tensor.name);
        if (!number) continue;
        for (const std::string& from : rule.from) names.insert(with_number(from, *number));
      }
    }
    if (quantization() != nullptr && names.empty()) {
      throw RunError("the checkpoint does not say which weights of its base are quantized",
                     "resume the run for a step, which saves one that does", core::kExitUsage);
    }
    return names;
  }

  /// A tensor of a folder; a stack of experts as their matrices.
  void add_of_base(const TensorBytes& tensor, Tensors& there) const {
    for (const WeightRule& rule : type_->weights) {
      if (!rule.is_of_experts() || tensor.shape.size() != 3) continue;
      if (const auto number = number_in(rule.stacked, tensor.name)) return take(tensor, rule, *number, config_, there);
    }
    there.push_back({tensor});
  }

  /// By Transformers' names.
  bool is_weight(const std::string& name) const {
    return std::any_of(type_->weights.begin(), type_->weights.end(), [&](const WeightRule& rule) {
      return std::any_of(rule.from.begin(), rule.from.end(),
                         [&](const std::string& from) { return number_in(from, name).has_value(); });
    });
  }

  /// What floating tensors become; "": they stay what they are.
  std::string dtype() const { return request_.dtype.empty() && quantization() != nullptr ? "BF16" : request_.dtype; }

  std::vector<WrittenTensor> model_tensors(const std::string& dtype) const {
    if (!blocks_.empty()) {
      Merge merge(*type_);
      for (const Node* block : blocks_) {
        for (const LowRankPair& pair : own_pairs(*block)) merge.add(pair, adapter_scale(*block));
      }
      return merge.apply(tensors_, dtype).value();
    }
    if (adapter_) return Merge(*type_, *adapter_).apply(tensors_, dtype).value();
    std::vector<WrittenTensor> all;
    for (const WrittenTensor& tensor : tensors_) all.push_back(converted(tensor, dtype));
    return all;
  }

  /// The A and B of one adapter in the checkpoint, by Transformers' names of their layers.
  std::vector<LowRankPair> own_pairs(const Node& block) const {
    const std::string adapter = adapter_of_block(block);
    std::map<std::string, LowRankPair> pairs;
    for (const TensorBytes& tensor : reader_->tensors()) {
      const auto own = adapter_tensor(tensor.name);
      if (!own || own->adapter != adapter) continue;
      const std::string module = module_of_layer(*type_, own->layer);
      if (module.empty()) {
        throw RunError("Transformers' " + type_->name + " has no layer for " + tensor.name, "", core::kExitUsage);
      }
      LowRankPair& pair = pairs[module];
      pair.module = module;
      switch (own->part) {
        case AdapterTensor::Part::kA: pair.a = &tensor; break;
        case AdapterTensor::Part::kB: pair.b = &tensor; break;
        case AdapterTensor::Part::kMagnitude: pair.magnitude = &tensor; break;
      }
    }
    std::vector<LowRankPair> all;
    for (auto& [module, pair] : pairs) {
      if (pair.a == nullptr || pair.b == nullptr) {
        throw RunError(request_.tensors + " lacks a half of the adapter of " + module);
      }
      all.push_back(std::move(pair));
    }
    if (all.empty()) {
      throw RunError(request_.tensors + " holds no adapter called " + core::quote(adapter), "", core::kExitUsage);
    }
    return all;
  }

  Adapter adapter_of(const Node& block) const {
    std::vector<WrittenTensor> all;
    std::set<std::string> adapted;
    for (const LowRankPair& pair : own_pairs(block)) {
      adapted.insert(pair.module);
      for (const auto& [part, tensor] : {std::pair{AdapterName::Part::kA, pair.a},
                                         {AdapterName::Part::kB, pair.b},
                                         {AdapterName::Part::kMagnitude, pair.magnitude}}) {
        if (tensor == nullptr) continue;  // of DoRA
        all.push_back({*tensor});
        all.back().bytes.name = adapter_name(pair.module, part);
      }
    }
    const std::string bias = block.find("bias")->as_string();
    const Node saved = saved_of(block);
    for (const WrittenTensor& tensor : tensors_) {
      const std::string& name = tensor.bytes.name;
      if (is_saved_module(&saved, name)) {
        WrittenTensor named = tensor;
        named.bytes.name = saved_module_name(type_->memory_name(name));
        all.push_back(converted(named, "F32"));
        continue;
      }
      if (bias == "none" || !name.ends_with(kBias)) continue;
      const std::string module = name.substr(0, name.size() - kBias.size());
      if (bias == "lora_only" && !adapted.contains(module)) continue;
      WrittenTensor named = tensor;
      named.bytes.name = adapter_name(module, AdapterName::Part::kBias, adapted.contains(module));
      all.push_back(converted(named, "F32"));
    }
    return {&block, std::move(all), {adapted.begin(), adapted.end()}};
  }

  /// What is written whole beside the matrices: what was trained so, and what of the head began here at random.
  Node saved_of(const Node& block) const {
    Node saved = saved_modules(block.find("modules_to_save"), type_);
    if (!request_.base || !has_head_of_labels(*type_)) return saved;
    for (const TensorBytes& tensor : reader_->tensors()) {
      const WeightRule* rule = type_->rule_of(tensor.name);
      if (rule == nullptr || !rule->else_new || is_saved_module(&saved, rule->from.front())) continue;
      saved.items().push_back(Node::string(rule->from.front().substr(0, rule->from.front().rfind('.'))));
    }
    return saved;
  }

  /// What PEFT needs to know of them.
  Node adapter_config(const Adapter& adapter) {
    const Node& block = *adapter.block;
    Node config = Node::mapping();
    for (const char* key : {"r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora", "bias"}) {
      config.set(key, *block.find(key));
    }
    const double alpha = block.find("lora_alpha")->as_double();
    if (alpha == std::floor(alpha) && alpha < kIntegerMax) {
      config.set("lora_alpha", Node::integer(static_cast<std::int64_t>(alpha)));
    }
    const bool turns = std::any_of(type_->weights.begin(), type_->weights.end(),
                                   [](const WeightRule& rule) { return rule.transposed; });
    config.set("fan_in_fan_out", Node::boolean(turns));
    config.set("target_modules", target_modules(*type_, config_, adapter.modules));
    if (Node modules = saved_of(block); !modules.items().empty()) config.set("modules_to_save", std::move(modules));
    if (const std::string task = task_of_head(type_->head); !task.empty()) config.set("task_type", Node::string(task));
    if (!done_.source.empty() && !config_of_folder(done_.source).empty()) {
      done_.base = fs::absolute(done_.source).lexically_normal().string();
      config.set("base_model_name_or_path", Node::string(done_.base));
    }
    return config;
  }

  void copy_from_source(FolderWriter& folder) {
    if (!tokenizer_.empty()) done_.copied = folder.copy_tokenizer(tokenizer_);
    if (!done_.source.empty()) {
      if (!done_.is_adapter && folder.copy(done_.source, kGenerationFile)) done_.copied.emplace_back(kGenerationFile);
    }
    if (!done_.is_adapter && !folder.has(kGenerationFile)) folder.write_text(kGenerationFile, generation_text(config_));
  }

  const ExportRequest& request_;
  std::vector<const Node*> blocks_;  ///< of the run's adapters
  std::unique_ptr<artifact::SafetensorsReader> reader_;
  std::unique_ptr<PackedReader> base_;
  std::optional<OpenedAdapter> adapter_;  ///< of the request
  std::string tokenizer_;                 ///< the folder of its files; "": none
  Node config_;
  const ModelType* type_ = nullptr;
  Tensors tensors_;
  Exported done_;
};

}  // namespace

Exported export_model(const ExportRequest& request) { return Writer(request).write(); }

}  // namespace runner::pretrained
