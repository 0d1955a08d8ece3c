#include "runner/pretrained/export.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "runner/artifact/io/io.h"
#include "runner/artifact/probe.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/artifact/shards.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/units.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/model_config.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using artifact::TensorBytes;
using core::Node;
using core::RunError;

constexpr const char* kGenerationFile = "generation_config.json";
constexpr const char* kVersion = "5.24.0";  // of Transformers, whose way of writing this is
constexpr std::int64_t kSpareBytes = 1 << 20;
constexpr std::array kTokenizerFiles = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "vocab.txt",
                                        "chat_template.jinja"};

/// The tensors as Transformers has them. Those that are not in a file lie in `made`.
struct Tensors {
  std::vector<TensorBytes> all;
  std::vector<std::unique_ptr<std::vector<char>>> made;
};

void transpose(const char* from, char* to, std::int64_t rows, std::int64_t columns, std::int64_t item) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::memcpy(to + (c * rows + r) * item, from + (r * columns + c) * item, static_cast<std::size_t>(item));
    }
  }
}

/// Rows of each part of a joined tensor.
std::vector<std::int64_t> rows_of_parts(const WeightRule& rule, std::int64_t rows, const Node& config) {
  if (rule.from.size() == 1) return {rows};
  if (rule.from.size() == 2) return {rows / 2, rows / 2};
  const std::int64_t heads = config.find("num_attention_heads")->as_integer();
  const Node* shared = config.find("num_key_value_heads");
  const std::int64_t groups = shared != nullptr && shared->is_integer() ? shared->as_integer() : heads;
  const std::int64_t head = rows / (heads + 2 * groups);
  return {heads * head, groups * head, groups * head};
}

void take(const TensorBytes& bytes, const WeightRule& rule, std::int64_t number, const Node& config, Tensors& to) {
  const std::int64_t item = artifact::safetensors_item_bytes(bytes.dtype);
  if (rule.transposed) {
    auto turned = std::make_unique<std::vector<char>>(static_cast<std::size_t>(bytes.bytes));
    transpose(static_cast<const char*>(bytes.data), turned->data(), bytes.shape[0], bytes.shape[1], item);
    to.all.push_back({with_number(rule.from.front(), number),
                      bytes.dtype,
                      {bytes.shape[1], bytes.shape[0]},
                      turned->data(),
                      bytes.bytes});
    to.made.push_back(std::move(turned));
    return;
  }
  const std::int64_t of_row = bytes.shape[0] > 0 ? bytes.bytes / bytes.shape[0] : 0;
  const std::vector<std::int64_t> rows = rows_of_parts(rule, bytes.shape[0], config);
  const char* first = static_cast<const char*>(bytes.data);
  for (std::size_t i = 0; i < rule.from.size(); ++i) {
    std::vector<std::int64_t> shape = bytes.shape;
    shape[0] = rows[i];
    to.all.push_back({with_number(rule.from[i], number), bytes.dtype, std::move(shape), first, rows[i] * of_row});
    first += rows[i] * of_row;
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
      to.made.push_back(std::make_unique<std::vector<char>>(static_cast<std::size_t>(size)));
      to.all.push_back(
          {with_number(rule.from.front(), *number), bytes.dtype, {bytes.shape[0]}, to.made.back()->data(), size});
    }
  }
}

Tensors rename(const artifact::SafetensorsReader& reader, const ModelType& type, const Node& config) {
  Tensors renamed;
  for (const TensorBytes& bytes : reader.tensors()) {
    bool found = false;
    for (const WeightRule& rule : type.weights) {
      const std::optional<std::int64_t> number = number_in(rule.name, bytes.name);
      if (!number) continue;
      take(bytes, rule, *number, config, renamed);
      found = true;
      break;
    }
    if (!found) {
      throw RunError("Transformers' " + type.name + " has no tensor for " + bytes.name, "", core::kExitUsage);
    }
  }
  add_zeros(reader, type, renamed);
  return renamed;
}

/// `float32`, as configurations call the type of the weights.
std::string dtype_name(const std::string& dtype) {
  static const std::map<std::string, std::string> kNames = {
      {"F32", "float32"}, {"BF16", "bfloat16"}, {"F16", "float16"}, {"F64", "float64"}};
  const auto at = kNames.find(dtype);
  return at != kNames.end() ? at->second : "float32";
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
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const Node* value = config.find(key);
    if (value != nullptr && !value->is_null()) fields[key] = *value;
  }
  return sorted_json(std::move(fields));
}

/// The folder that the recipe began from, while it is there.
std::string source_folder(const Node& resolved) {
  const Node* path = resolved.at_path("init_from.path");
  if (path == nullptr || !path->is_string()) return "";
  if (path->as_string().starts_with("hf://")) return path->as_string();  // no longer in the cache
  std::error_code failed;
  const fs::path source(path->as_string());
  const fs::path folder = fs::is_directory(source, failed) ? source : source.parent_path();
  const Node* type = resolved.at_path("model.type");
  const bool pretrained = type != nullptr && type->is_string() && type->as_string() == "transformers";
  return pretrained || !config_of_folder(folder.string()).empty() ? folder.string() : "";
}

class Writer {
 public:
  explicit Writer(const ExportRequest& request) : request_(request) {}

  Exported write() {
    const auto reader = artifact::open_tensors(request_.tensors).value();
    const auto shape_of = [&](const std::string& name) {
      const TensorBytes* bytes = reader->find(name);
      return bytes != nullptr ? bytes->shape : std::vector<std::int64_t>();
    };
    const core::Result<Node> config = config_to_export(request_.resolved, shape_of);
    if (!config) throw RunError(config.failure().message, config.failure().hint, core::kExitUsage);
    const ModelType& type = *find_model_type(config.value().find("model_type")->as_string());
    const Tensors tensors = rename(*reader, type, config.value());
    done_.model_type = type.name;
    done_.tensors = static_cast<std::int64_t>(tensors.all.size());
    for (const TensorBytes& tensor : tensors.all) done_.bytes += tensor.bytes;
    open_folder();
    try {
      write_tensors(tensors.all);
      write_text(kConfigFile, config_text(config.value(), type, tensors.all.front().dtype));
      copy_tokenizer();
      if (!fs::exists(fs::path(draft_) / kGenerationFile)) write_text(kGenerationFile, generation_text(config.value()));
      finish();
    } catch (...) {
      std::error_code failed;
      fs::remove_all(draft_, failed);
      throw;
    }
    std::sort(done_.files.begin(), done_.files.end());
    return std::move(done_);
  }

 private:
  void open_folder() {
    std::error_code failed;
    if (fs::exists(request_.folder, failed)) {
      if (!fs::is_directory(request_.folder, failed)) {
        throw RunError(request_.folder + " is not a folder", "choose another DIR", core::kExitUsage);
      }
      if (!fs::is_empty(request_.folder, failed) && !request_.force) {
        throw RunError(request_.folder + " exists and is not empty", "choose another DIR, or add --force",
                       core::kExitUsage);
      }
    }
    const fs::path whole = fs::absolute(request_.folder).lexically_normal();
    const fs::path target = whole.has_filename() ? whole : whole.parent_path();
    artifact::make_dirs(io_, target.parent_path().string());
    if (const std::int64_t free = artifact::free_bytes_at(target.parent_path().string());
        free < done_.bytes + kSpareBytes) {
      throw RunError("the model needs " + core::format_bytes(done_.bytes) + ", but " + target.parent_path().string() +
                     " has " + core::format_bytes(free) + " free");
    }
    target_ = target.string();
    const std::string prefix = "." + target.filename().string() + ".";
    remove_old_drafts(target.parent_path(), prefix);
    draft_ = (target.parent_path() / (prefix + std::to_string(::getpid()))).string();
    io_.make_dir(draft_);
  }

  /// Those of processes of this machine that were killed.
  static void remove_old_drafts(const fs::path& folder, const std::string& prefix) {
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(prefix)) continue;
      pid_t process = 0;
      const char* const end = name.data() + name.size();
      const auto read = std::from_chars(name.data() + prefix.size(), end, process);
      const bool is_gone =
          read.ec == std::errc() && read.ptr == end && process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
      if (is_gone) fs::remove_all(entry.path(), failed);
    }
  }

  void write_text(const std::string& name, const std::string& text) {
    const std::string path = (fs::path(draft_) / name).string();
    const int handle = io_.create(path);
    io_.write(handle, path, text.data(), static_cast<std::int64_t>(text.size()));
    io_.sync_file(handle, path);
    io_.close(handle, path);
    done_.files.push_back(name);
  }

  void write_tensors(const std::vector<TensorBytes>& tensors) {
    std::vector<std::pair<std::string, std::int64_t>> sizes;
    for (const TensorBytes& tensor : tensors) sizes.emplace_back(tensor.name, tensor.bytes);
    const artifact::ShardPlan plan = artifact::plan_shards(sizes, request_.shard_bytes_max);
    for (const artifact::ShardPlan::File& file : plan.files) {
      std::vector<TensorBytes> of_file;
      for (const std::size_t i : file.tensors) of_file.push_back(tensors[i]);
      artifact::write_safetensors(io_, (fs::path(draft_) / file.name).string(), std::move(of_file), {{"format", "pt"}},
                                  {});
      done_.files.push_back(file.name);
    }
    if (!plan.index.empty()) {
      write_text(std::string(artifact::kModelFile) + artifact::kIndexEnding, plan.index);
    }
  }

  void copy_tokenizer() {
    done_.source = source_folder(request_.resolved);
    if (done_.source.empty()) return;
    std::error_code failed;
    const auto copy = [&](const std::string& name) {
      const fs::path from = fs::path(done_.source) / name, to = fs::path(draft_) / name;
      if (!fs::is_regular_file(from, failed)) return;
      if (!fs::copy_file(from, to, failed)) throw RunError("cannot copy " + from.string() + ": " + failed.message());
      done_.files.push_back(name);
      done_.copied.push_back(name);
    };
    for (const char* name : kTokenizerFiles) copy(name);
    copy(kGenerationFile);
  }

  /// A folder that is there gets the files one by one; weights of another cut would be read beside the new ones.
  void finish() {
    std::error_code failed;
    io_.sync_dir(draft_);
    if (!fs::exists(target_, failed) || fs::is_empty(target_, failed)) {
      fs::remove(target_, failed);
      io_.rename(draft_, target_);
    } else {
      for (const fs::directory_entry& entry : fs::directory_iterator(target_)) {
        const std::string name = entry.path().filename().string();
        const bool weights = name.starts_with("model") &&
                             (name.ends_with(artifact::kSafetensorsEnding) || name.ends_with(artifact::kIndexEnding));
        if (weights) io_.remove_file(entry.path().string());
      }
      for (const std::string& name : done_.files) {
        io_.rename((fs::path(draft_) / name).string(), (fs::path(target_) / name).string());
      }
      io_.remove_dir(draft_);
    }
    io_.sync_dir(fs::path(target_).parent_path().string());
  }

  const ExportRequest& request_;
  artifact::Io& io_ = artifact::system_io();
  std::string target_, draft_;
  Exported done_;
};

}  // namespace

Exported export_model(const ExportRequest& request) { return Writer(request).write(); }

}  // namespace runner::pretrained
