#include "runner/cli/estimate/sized_model.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "runner/artifact/tensor_set.h"
#include "runner/cli/hub/weight_headers.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/name.h"
#include "runner/hub/web_file.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/model_type.h"

namespace runner::cli {

namespace fs = std::filesystem;
using core::Node;

/// A temporary folder with one config.json, of a model whose weights are not quantized.
class ConfigFolder {
 public:
  explicit ConfigFolder(const Node& config) {
    std::error_code failed;
    path_ = (fs::temp_directory_path(failed) / "roux-config-XXXXXX").string();
    if (failed || mkdtemp(path_.data()) == nullptr) throw core::RunError("cannot create a folder " + path_);
    Node whole = Node::mapping();
    for (const Node::Entry& entry : config.entries()) {
      if (entry.key != kQuantized) whole.set(entry.key, entry.value);
    }
    core::write_file_atomic(path_ + "/" + pretrained::kConfigFile, core::to_json(whole)).value();
  }
  ~ConfigFolder() {
    std::error_code failed;
    fs::remove_all(path_, failed);
  }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;

  const std::string& path() const { return path_; }
  static constexpr std::int64_t kConfigBytesMax = 2 << 20;  ///< as runner/pretrained/config.cpp
  static constexpr const char* kQuantized = "quantization_config";

 private:
  std::string path_;
};

namespace {

constexpr const char* kNamed = "name hf://OWNER/NAME, a folder of Transformers, a config.json or a recipe";

std::string text_of(const Node* node) { return node != nullptr && node->is_string() ? node->as_string() : ""; }

/// Null for what is no JSON object.
std::optional<Node> read_object(const std::string& path) {
  const auto text = core::read_file(path, ConfigFolder::kConfigBytesMax);
  if (!text) return std::nullopt;
  auto parsed = core::parse_json(text.value());
  if (!parsed || !parsed.value().is_mapping()) return std::nullopt;
  return std::move(parsed.value());
}

bool has_ending(const std::string& path, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&path](const char* one) { return path.ends_with(one); });
}

bool is_config(const Node& object) {
  return object.find("model_type") != nullptr || object.find("architectures") != nullptr;
}

bool is_gguf(const std::string& path) {
  std::string start(4, '\0');
  std::ifstream file(path, std::ios::binary);
  return path.ends_with(".gguf") || (file.read(start.data(), 4) && start == "GGUF");
}

class Finder {
 public:
  Finder(Session& session, const std::string& word) : session_(session), word_(word) {}

  std::optional<SizedModel> find() {
    found_.title = word_;
    const bool is_found = hub::is_name(word_) || hub::is_web_file(word_) ? find_on_server() : find_here();
    return is_found ? std::make_optional(std::move(found_)) : std::nullopt;
  }

 private:
  bool fail(const std::string& message, const std::string& hint) {
    session_.fail(message, hint);
    return false;
  }

  bool refuse_gguf() {
    return fail(word_ + " is a GGUF file, whose types are its own",
                "name the folder of Transformers that it was made from, or a recipe with init_from: " + word_);
  }

  bool find_here() {
    std::error_code failed;
    if (!fs::exists(word_, failed)) {
      const std::string on_hub = hub::meant_name(word_);
      return fail(word_ + " does not exist",
                  on_hub.empty() ? kNamed : "a model of the Hugging Face Hub is named " + on_hub);
    }
    if (fs::is_directory(word_, failed)) return take_folder(word_, word_);
    if (is_gguf(word_)) return refuse_gguf();
    if (word_.ends_with(".safetensors") || word_.ends_with(".safetensors.index.json")) {
      found_.told = "the sizes are those of the tensors in the file";
      return take_headers(word_);
    }
    const auto object = read_object(word_);
    if (!object || !is_config(*object)) {
      return fail(word_ + " is neither a configuration of Transformers nor a recipe", kNamed);
    }
    if (!knows(*object)) {
      return fail("model_type is " + core::quote(text_of(object->find("model_type"))) +
                      ", whose classes roux does not know, and " + word_ + " holds no sizes of weights",
                  "name a folder with its safetensors, or hf://OWNER/NAME: their headers tell");
    }
    if (fs::path(word_).filename() == pretrained::kConfigFile) {
      const std::string beside = fs::path(word_).parent_path().string();
      return take_config(*object, word_, beside.empty() ? "." : beside);
    }
    found_.held = std::make_shared<ConfigFolder>(*object);
    return take_config(*object, word_, found_.held->path());
  }

  static bool knows(const Node& config) {
    return pretrained::find_model_type(text_of(config.find("model_type")), "") != nullptr;
  }

  /// `weights`: a folder with safetensors, or with their headers.
  bool take_folder(const std::string& folder, const std::string& weights) {
    const std::string config = pretrained::config_of_folder(folder);
    if (config.empty()) {
      if (!pretrained::adapter_config_of_folder(folder).empty()) return refuse_adapter(folder);
      found_.told = "the folder has no config.json: the sizes are those of the tensors in its files";
      return take_headers(weights);
    }
    const auto object = read_object(config);
    if (object && knows(*object)) return take_config(*object, config, folder);
    if (!object) return fail(config + " holds no JSON object", "copy it again from where the model is from");
    found_.model_type = text_of(object->find("model_type"));
    found_.told = "model_type is " + core::quote(found_.model_type) +
                  ", whose classes roux does not know: the sizes are those of the tensors in its files";
    return take_headers(weights);
  }

  bool refuse_adapter(const std::string& folder) {
    const auto object = read_object(pretrained::adapter_config_of_folder(folder));
    const std::string base = object ? text_of(object->find("base_model_name_or_path")) : "";
    const std::string on_hub = hub::meant_name(base);
    return fail(word_ + " holds an adapter of PEFT, which is trained and used on its base model",
                base.empty() ? "name the folder of the base model: the estimate has rows for adapters"
                             : "`roux estimate-memory " + (on_hub.empty() ? base : on_hub) +
                                   "` has rows for adapters on that base");
  }

  /// Headers of local files, or of those that were written from a server's.
  bool take_headers(const std::string& path) {
    const auto set = artifact::find_tensor_set(path);
    if (!set) return fail(set.failure().message, set.failure().hint.empty() ? kNamed : set.failure().hint);
    const auto opened = core::attempt([&] { return artifact::open_tensors(set.value()).value(); });
    if (!opened) {
      const std::string& hint = opened.failure().hint;
      return fail(opened.failure().message, hint.empty() ? "copy it again from where the model is from" : hint);
    }
    for (const artifact::TensorBytes& tensor : opened.value()->tensors()) {
      found_.tensors.push_back({tensor.name, tensor.shape});
    }
    return true;
  }

  bool take_config(const Node& written, const std::string& file, const std::string& folder) {
    core::Diagnostics diagnostics;
    found_.config = pretrained::read_config(file, diagnostics);
    session_.show(diagnostics);
    if (!found_.config) {
      session_.exit_code = core::kExitUsage;
      return false;
    }
    found_.folder = folder;
    if (written.find(ConfigFolder::kQuantized) != nullptr) {
      found_.held = std::make_shared<ConfigFolder>(written);
      found_.folder = found_.held->path();
      found_.told = "its weights are quantized already: the sizes are those of the same weights in each type";
    }
    found_.model_type = text_of(found_.config->find("model_type"));
    const Node* dtype = written.find("dtype") != nullptr ? written.find("dtype") : written.find("torch_dtype");
    found_.is_bf16 = text_of(dtype) == "bfloat16";
    choose_class(written.find("architectures"));
    return true;
  }

  /// The class that the configuration names; of the base model, or where it names none or another one, the usual head.
  void choose_class(const Node* architectures) {
    const std::string named =
        architectures != nullptr && architectures->is_sequence() && !architectures->items().empty()
            ? text_of(&architectures->items().front())
            : "";
    const pretrained::ModelType& type = *pretrained::find_model_type(found_.model_type);
    for (const pretrained::HeadName& head : type.heads) {
      if (head.architecture != named) continue;
      found_.head = head.name;
      found_.architecture = named;
      return;
    }
    const auto usual =
        named.empty() ? std::vector<const char*>{pretrained::kCausalLm, pretrained::kSeq2SeqLm, pretrained::kEmbedding}
                      : std::vector<const char*>{pretrained::kCausalLm, pretrained::kSeq2SeqLm, pretrained::kMaskedLm,
                                                 pretrained::kEmbedding};
    for (const char* head : usual) {
      if (!type.has_head(head)) continue;
      found_.head = head;
      break;
    }
    found_.architecture = pretrained::find_model_type(found_.model_type, found_.head)->architecture;
    if (!named.empty()) found_.told = named + " is counted as " + found_.architecture;
  }

  bool find_on_server() {
    const auto name = hub::is_name(word_) ? hub::parse_name(word_) : core::Result<hub::Name>(hub::Name{});
    if (!name) return fail(name.failure().message, name.failure().hint);
    if (word_.ends_with(".gguf")) return refuse_gguf();
    if (!name.value().file.empty() || hub::is_web_file(word_)) return find_file_on_server();
    const auto folder = session_.fetched_path(word_, hub::Part::kSettings);
    if (!folder) return false;
    const std::string config = pretrained::config_of_folder(*folder);
    const auto object = config.empty() ? std::nullopt : read_object(config);
    const bool needs_headers = !object || !knows(*object);
    if (!needs_headers || !pretrained::adapter_config_of_folder(*folder).empty()) return take_folder(*folder, *folder);
    std::optional<core::Failure> why;
    const auto headers = WeightHeaders::fetch(word_, why);
    if (headers) return take_folder(*folder, headers->path());
    return fail("the headers of the weights of " + word_ + " cannot be read" + (why ? ": " + why->message : ""),
                why && !why->hint.empty() ? why->hint : "name a model that has safetensors");
  }

  bool find_file_on_server() {
    if (word_.find(".json") != std::string::npos && word_.find(".safetensors") == std::string::npos) {
      return fail(word_ + " is a file of a repository", "name the repository, or the file's copy on this machine");
    }
    std::optional<core::Failure> why;
    const auto headers = WeightHeaders::fetch(word_, why);
    found_.told = "the sizes are those of the tensors in the file";
    if (headers) return take_headers(headers->path());
    return fail("the header of " + word_ + " cannot be read" + (why ? ": " + why->message : ""),
                why && !why->hint.empty() ? why->hint : "name a file of safetensors");
  }

  Session& session_;
  const std::string& word_;
  SizedModel found_;
};

}  // namespace

bool names_recipe(const std::string& word) {
  std::error_code failed;
  if (hub::is_name(word) || hub::is_web_file(word) || !fs::is_regular_file(word, failed)) return false;
  if (has_ending(word, {".yaml", ".yml", ".jsonnet"})) return true;
  if (!word.ends_with(".json") || word.ends_with(".index.json")) return false;
  const auto object = read_object(word);
  return object && !is_config(*object) &&
         (object->find("model") != nullptr || object->find("recipe_version") != nullptr ||
          object->find("extends") != nullptr || object->find("data") != nullptr);
}

std::optional<SizedModel> find_sized_model(Session& session, const std::string& word) {
  return Finder(session, word).find();
}

}  // namespace runner::cli
