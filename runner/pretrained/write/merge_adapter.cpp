#include "runner/pretrained/write/merge_adapter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/adapter_task.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/dtype.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_config.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/packed_reader.h"
#include "runner/pretrained/packed/quantization_config.h"
#include "runner/pretrained/write/merge.h"
#include "runner/pretrained/write/packer.h"
#include "runner/pretrained/write/quantized_weights.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using core::Node;
using core::RunError;

constexpr std::int64_t kConfigBytesMax = 2 << 20;
constexpr const char* kGenerationFile = "generation_config.json";

std::string base_of(const MergeRequest& request, const Node& config) {
  if (request.base.empty()) {
    auto base = base_of_adapter(request.adapter, config);
    if (base) return base.value();
    throw RunError(base.failure().message, base.failure().hint + ": --base FOLDER", core::kExitUsage);
  }
  if (config_of_folder(request.base).empty()) {
    throw RunError("no " + std::string(kConfigFile) + " in the folder " + request.base,
                   "name the Transformers folder of the base model", core::kExitUsage);
  }
  return request.base;
}

Node config_of(const std::string& base) {
  core::Diagnostics diagnostics;
  auto config = read_config(config_of_folder(base), diagnostics);
  if (config) return *std::move(config);
  const core::Failure failure = first_error(diagnostics);
  throw RunError(failure.message, failure.hint, core::kExitUsage);
}

/// What the merged model is: the base's type, with the head that the adapter was trained with.
const ModelType& type_of(const MergeRequest& request, const Node& adapter, const Node& base) {
  const ModelType& type = model_type_of_config(base);
  const Node* task = adapter.find("task_type");
  const std::string head = task != nullptr && task->is_string() ? head_of_task(task->as_string()) : "";
  if (head.empty() || head == kCausalLm || head == type.head) return type;
  if (const ModelType* other = find_model_type(type.name, head)) return *other;
  throw RunError("the adapter of " + request.adapter + " is for " + task->as_string() + ", and " + type.name +
                     " has no head " + head,
                 "name the folder of the model that the adapter was trained for: --base FOLDER", core::kExitUsage);
}

bool is_weight(const ModelType& type, const std::string& name) {
  return std::any_of(type.weights.begin(), type.weights.end(), [&name](const WeightRule& rule) {
    return std::any_of(rule.from.begin(), rule.from.end(),
                       [&name](const std::string& from) { return number_in(from, name).has_value(); });
  });
}

/// Those of a model with the head of `type`, under the names that such a class saves: the base may have another head,
/// or none.
std::vector<WrittenTensor> of_head(const ModelType& type, const std::vector<WrittenTensor>& merged,
                                   const std::string& base) {
  std::vector<WrittenTensor> all;
  std::set<std::string> names;
  for (WrittenTensor tensor : merged) {
    std::string name = type.own_name(tensor.bytes.name);
    if (!is_weight(type, name)) continue;  // of the base's own head
    names.insert(name);
    tensor.bytes.name = std::move(name);
    all.push_back(std::move(tensor));
  }
  for (const WeightRule& rule : type.weights) {
    const std::string& name = rule.from.front();
    if (!rule.else_new || !name.ends_with(".weight") || names.contains(name)) continue;
    throw RunError(
        "neither the adapter nor the base " + base + " has " + name + ", which " + type.architecture + " has",
        "name the folder of the model that the adapter was trained for: --base FOLDER", core::kExitUsage);
  }
  return all;
}

/// The base's, with another type of the weights where one is given, and the head of `type` where `labels` says for how
/// many. `quantization`: its quantization_config; null: none.
std::string config_text(const std::string& base, const std::string& dtype, const ModelType& type, std::int64_t labels,
                        const Node& quantization) {
  Node config = core::parse_json(core::read_file(config_of_folder(base), kConfigBytesMax).value()).value();
  config.erase(kQuantizationConfig);
  if (!quantization.is_null()) config.set(kQuantizationConfig, quantization);
  if (!dtype.empty()) {
    config.erase("torch_dtype");
    config.set("dtype", Node::string(dtype_name(dtype)));
  }
  if (labels > 0) {
    config.set("architectures", Node::sequence({Node::string(type.architecture)}));
    set_labels(labels, {}, config);
  }
  return core::to_json(config) + "\n";
}

/// Of a head for labels; 0 for another one.
std::int64_t labels_of(const ModelType& type, const std::vector<WrittenTensor>& tensors) {
  if (!type.tells_labels()) return 0;
  const std::string& weight = type.rule_of("head.weight")->from.front();
  const auto at = std::find_if(tensors.begin(), tensors.end(),
                               [&weight](const WrittenTensor& tensor) { return tensor.bytes.name == weight; });
  return at != tensors.end() ? at->bytes.shape[0] : 0;
}

/// Several add up where each is a product and no more.
void check_is_plain(const std::string& folder, const OpenedAdapter& adapter) {
  const bool is_dora = adapter.config.find("use_dora")->as_bool();
  if (!is_dora && adapter.file.biases().empty() && adapter.file.modules().empty()) return;
  throw RunError(folder + (is_dora ? " is an adapter of DoRA" : " holds biases or whole modules of the model") +
                     ", and cannot be merged beside another one",
                 "merge one after the other: the folder of the first is the --base of the second", core::kExitUsage);
}

}  // namespace

Exported merge_adapter(const MergeRequest& request) {
  const OpenedAdapter adapter = open_adapter(request.adapter).value();
  const std::string base = base_of(request, adapter.config);
  const Node base_config = config_of(base);
  const ModelType& type = type_of(request, adapter.config, base_config);
  const std::vector<std::string> modules = linear_modules(type, base_config);
  check_holds_all(adapter, modules).value();
  const std::string set = artifact::find_tensor_set(base).value();
  artifact::verify_tensor_set(set).value();
  const auto reader = PackedReader::open(set).value();
  // Of weights in fewer bits, what they stand for.
  const bool is_quantized = reader->has_packed() || request.base_form;
  const std::string dtype = request.dtype.empty() && is_quantized ? "BF16" : request.dtype;
  if (request.base_form && reader->has_packed()) {
    throw RunError("the weights of " + base + " are quantized, and --base-quantized says how others were",
                   "leave it out", core::kExitUsage);
  }
  std::deque<OpenedAdapter> more;
  for (const std::string& other : request.more) {
    more.push_back(open_adapter(other).value());
    check_holds_all(more.back(), modules).value();
  }
  Merge merge(type, adapter);
  if (!more.empty()) check_is_plain(request.adapter, adapter);
  for (std::size_t i = 0; i < more.size(); ++i) {
    check_is_plain(request.more[i], more[i]);
    for (const LowRankPair& pair : more[i].file.pairs()) merge.add(pair, adapter_scale(more[i].config));
  }
  std::optional<Packer> was_packed;
  if (request.base_form) was_packed.emplace(type, base_config, *request.base_form);
  std::vector<WrittenTensor> tensors;
  for (const artifact::TensorBytes& tensor : reader->tensors()) {
    const PackedWeight* packed = reader->packed(tensor.name);
    const bool turns = is_turned(type, type.own_name(tensor.name));
    tensors.push_back(packed != nullptr ? unpacked(tensor.name, *packed, turns) : WrittenTensor{tensor});
    if (was_packed && was_packed->packs(tensor)) {
      tensors.back() = rounded(tensors.back(), *request.base_form, turns);
    }
  }
  std::vector<WrittenTensor> merged = merge.apply(tensors, request.quantize ? "" : dtype).value();
  if (has_head_of_labels(type)) merged = of_head(type, merged, base);
  const std::int64_t labels = labels_of(type, merged);

  Exported done;
  Node quantization;
  if (request.quantize) {
    Packer packer(type, base_config, *request.quantize);
    merged = packer.packed(merged, dtype);
    quantization = packer.config_field();
    done.quantization_error = packer.relative_error();
  }
  done.model_type = type.name;
  done.base = base;
  done.tensors = static_cast<std::int64_t>(merged.size());
  for (const WrittenTensor& tensor : merged) done.bytes += tensor.bytes.bytes;
  std::vector<std::string> sources = {request.adapter, base, set};  // `set` may be a link to elsewhere
  sources.insert(sources.end(), request.more.begin(), request.more.end());
  FolderWriter folder({request.folder, request.force, done.bytes, std::move(sources)});
  folder.write_model(merged, request.shard_bytes_max);
  if (dtype.empty() && labels == 0 && quantization.is_null()) {
    folder.copy(base, kConfigFile);
  } else {
    folder.write_text(kConfigFile, config_text(base, dtype, type, labels, quantization));
  }
  folder.copy(base, kGenerationFile);
  done.source = has_tokenizer(request.adapter) ? request.adapter : base;
  done.copied = folder.copy_tokenizer(done.source);
  done.files = folder.finish();
  return done;
}

}  // namespace runner::pretrained
