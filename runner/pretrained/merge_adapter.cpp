#include "runner/pretrained/merge_adapter.h"

#include <cstddef>
#include <deque>
#include <filesystem>
#include <utility>
#include <vector>

#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/dtype.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/merge.h"
#include "runner/pretrained/model_type.h"

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

/// The base's, with another type of the weights.
std::string config_text(const std::string& base, const std::string& dtype) {
  Node config = core::parse_json(core::read_file(config_of_folder(base), kConfigBytesMax).value()).value();
  config.erase("torch_dtype");
  config.set("dtype", Node::string(dtype_name(dtype)));
  return core::to_json(config) + "\n";
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
  const ModelType& type = model_type_of_config(base_config);
  const std::vector<std::string> modules = linear_modules(type, blocks_of(base_config));
  check_holds_all(adapter, modules).value();
  const std::string set = artifact::find_tensor_set(base).value();
  artifact::verify_tensor_set(set).value();
  const auto reader = artifact::open_tensors(set).value();
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
  std::vector<WrittenTensor> tensors;
  for (const artifact::TensorBytes& tensor : reader->tensors()) tensors.push_back({tensor});
  const std::vector<WrittenTensor> merged = merge.apply(tensors, request.dtype).value();

  Exported done;
  done.model_type = type.name;
  done.base = base;
  done.tensors = static_cast<std::int64_t>(merged.size());
  for (const WrittenTensor& tensor : merged) done.bytes += tensor.bytes.bytes;
  std::vector<std::string> sources = {request.adapter, base, set};  // `set` may be a link to elsewhere
  sources.insert(sources.end(), request.more.begin(), request.more.end());
  FolderWriter folder({request.folder, request.force, done.bytes, std::move(sources)});
  folder.write_model(merged, request.shard_bytes_max);
  if (request.dtype.empty()) {
    folder.copy(base, kConfigFile);
  } else {
    folder.write_text(kConfigFile, config_text(base, request.dtype));
  }
  folder.copy(base, kGenerationFile);
  done.source = has_tokenizer(request.adapter) ? request.adapter : base;
  done.copied = folder.copy_tokenizer(done.source);
  done.files = folder.finish();
  return done;
}

}  // namespace runner::pretrained
