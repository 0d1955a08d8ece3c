#include "runner/resolve/pretrained_model.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/hub/name.h"
#include "runner/hub/web_file.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/quantization_config.h"
#include "runner/pretrained/sentence_folder.h"
#include "runner/pretrained/separate_head.h"
#include "runner/resolve/model_head.h"
#include "runner/resolve/quantized_folder.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;

using core::Diagnostics;
using core::Node;

constexpr const char *kModel = "transformers", *kReward = "reward";  ///< kReward: a head, and its loss

bool is_missing(const Node& recipe, const char* key) {
  const Node* value = recipe.find(key);
  return value == nullptr || (value->is_null() && value->history().empty());
}

/// A block of type `transformers`; null for any other.
Node* transformers_block(Node& recipe) {
  Node* model = recipe.find("model");
  if (model == nullptr) return nullptr;
  if (model->is_string() && model->as_string() == kModel) {
    Node block = Node::mapping(model->location());
    block.set("type", *model);
    *model = std::move(block);
  }
  const Node* type = model->is_mapping() ? model->find("type") : nullptr;
  return type != nullptr && type->is_string() && type->as_string() == kModel ? model : nullptr;
}

std::optional<Node> read_named(const Node& named, Diagnostics& diagnostics) {
  const std::string& path = named.as_string();
  std::error_code failed;
  if (hub::is_name(path)) {
    diagnostics.error(named.location(), path + " is not in the cache of the Hugging Face Hub",
                      "`roux fetch` with this recipe downloads it");
    return std::nullopt;
  }
  if (!fs::is_directory(path, failed)) return pretrained::read_config(path, diagnostics);
  const std::string file = pretrained::config_of_folder(path);
  if (!file.empty()) return pretrained::read_config(file, diagnostics);
  diagnostics.error(named.location(), "no " + std::string(pretrained::kConfigFile) + " in the folder " + path);
  return std::nullopt;
}

/// Calls `use` for a data set, or for those that it is made of.
template <typename Set, typename Use>
void each_set(Set& set, const Use& use) {
  if (!set.is_mapping()) return;
  use(set);
  if (auto* const sets = set.find("sets"); sets != nullptr && sets->is_sequence()) {
    for (auto& one : sets->items()) each_set(one, use);
  }
  if (auto* const of = set.find("of")) each_set(*of, use);
}

bool has_type(const Node& set, std::initializer_list<const char*> types) {
  const Node* type = set.find("type");
  return type != nullptr && type->is_string() &&
         std::find(types.begin(), types.end(), type->as_string()) != types.end();
}

/// Whether a data set reads text or has transforms, which need a tokenizer.
bool has_text(const Node& recipe) {
  const Node* data = recipe.find("data");
  if (data == nullptr || !data->is_mapping()) return false;
  bool has = false;
  for (const Node::Entry& set : data->entries()) {
    each_set(set.value, [&has](const Node& one) {
      const Node* transforms = one.find("transforms");
      const bool masks = transforms != nullptr && !(transforms->is_sequence() && transforms->items().empty());
      has = has || masks || has_type(one, {"text", "text_lines", "jsonl"});
    });
  }
  return has;
}

/// Whether `init_from.head` asks for a reward model.
bool is_reward(const Node& recipe) {
  const Node* source = recipe.find("init_from");
  const Node* head = source != nullptr && source->is_mapping() ? source->find("head") : nullptr;
  return head != nullptr && head->is_string() && head->as_string() == kReward;
}

/// Whether the recipe's model has a head of embeddings.
bool is_embedding(const Node& model) {
  const Node* head = model.find("head");
  return head != nullptr && head->is_string() && head->as_string() == pretrained::kEmbedding;
}

/// `reward` is a head by its name in `init_from` alone.
void refuse_reward(Node& model, Diagnostics& diagnostics) {
  Node* head = model.find("head");
  if (head == nullptr || !head->is_string() || head->as_string() != kReward) return;
  diagnostics.error(
      head->location(), "model.head is reward, which is sequence_classification with one value for a text",
      "write head: sequence_classification, num_labels: 1 and loss: reward; of a folder, init_from: {path: "
      "FOLDER, head: reward}");
  *head = Node::string(pretrained::kSequenceClassification, head->location());  // so that nothing else refuses it
}

/// Whether a model of some type has a head of that name; validation refuses others with what is meant.
bool is_head(const Node& head) {
  const std::vector<std::string> types = pretrained::model_types();
  return std::any_of(types.begin(), types.end(), [&head](const std::string& type) {
    return pretrained::find_model_type(type)->has_head(head.as_string());
  });
}

/// Gives `model.head` what `init_from.head` says.
void take_head(Node& recipe, Node* model, Diagnostics& diagnostics) {
  if (model != nullptr) refuse_reward(*model, diagnostics);
  const Node* source = recipe.find("init_from");
  const Node* head = source != nullptr && source->is_mapping() ? source->find("head") : nullptr;
  if (head == nullptr || !head->is_string() || (!is_reward(recipe) && !is_head(*head))) return;
  if (model == nullptr) {
    diagnostics.error(head->location(), "init_from.head is set, but the model is none of Transformers",
                      "name a folder of Transformers, or remove it");
    return;
  }
  if (is_reward(recipe) && is_missing(*model, "num_labels")) {
    Node one = Node::integer(1, head->location());
    one.add_history({"init_from.head: reward", core::Origin::kSettled});
    model->set("num_labels", std::move(one), head->location());
  }
  const std::string name = is_reward(recipe) ? pretrained::kSequenceClassification : head->as_string();
  const Node* own = model->find("head");
  if (own != nullptr && own->is_string() && own->as_string() != name) {
    diagnostics.error(head->location(),
                      "init_from.head is " + head->as_string() + ", and model.head is " + own->as_string(),
                      "remove one of them");
    return;
  }
  if (own != nullptr && own->is_string()) return;
  Node taken = Node::string(name, head->location());
  taken.add_history({"init_from.head", core::Origin::kSettled});
  model->set("head", std::move(taken), head->location());
}

/// A value that the folder gives.
void settle(Node& model, const char* key, Node value, const std::string& folder, const core::Location& location) {
  if (!is_missing(model, key)) return;
  value.add_history({"init_from: " + folder + "/modules.json", core::Origin::kSettled});
  model.set(key, std::move(value), location);
}

/// Gives a model of embeddings what a Sentence Transformers folder says of it. The longest text, or nothing.
std::optional<std::int64_t> take_sentence_folder(const Node& source, Node& model, Diagnostics& diagnostics) {
  const std::string& folder = source.as_string();
  if (!pretrained::is_sentence_folder(folder)) return std::nullopt;
  if (!is_missing(model, "head") && !is_embedding(model)) return std::nullopt;
  const auto found = pretrained::read_sentence_folder(folder);
  if (!found) {
    diagnostics.error(source.location(), found.failure().message, found.failure().hint);
    return std::nullopt;
  }
  settle(model, "head", Node::string(pretrained::kEmbedding, source.location()), folder, source.location());
  settle(model, "pooling", Node::string(found.value().pooling, source.location()), folder, source.location());
  settle(model, "normalize", Node::boolean(found.value().normalize, source.location()), folder, source.location());
  return found.value().max_seq_length;
}

/// Whether the model ends with something that can be trained.
void check_head(const Node& model, const Node& config, Diagnostics& diagnostics) {
  const Node* head = model.find("head");
  if (head != nullptr && (!head->is_string() || !is_head(*head))) head = nullptr;
  const auto found = pretrained::check_head(config, head != nullptr ? head->as_string() : "");
  const Node& at = head != nullptr ? *head : model;
  if (!found) diagnostics.error(at.location(), found.failure().message, found.failure().hint);
}

/// The loss that a language model has, or one with a head of labels, and why.
std::pair<const char*, const char*> usual_loss(const Node& model) {
  const std::string head = head_of(model);
  if (head == pretrained::kEmbedding) return {"multiple_negatives", "a head of embeddings"};
  if (head == pretrained::kQuestionAnswering) return {"answer_span", "a head of question answering"};
  if (head == pretrained::kMultipleChoice) return {"cross_entropy", "a head of multiple choice"};
  const std::string problem = problem_type_of(model);
  if (problem.empty()) return {"cross_entropy", "a language model"};
  if (problem == pretrained::kRegression) return {"mse", "a head of values"};
  if (problem == pretrained::kSeveralLabels) return {"bce_with_logits", "a head of several classes"};
  return {"cross_entropy", "a head of classes"};
}

/// Whether `init_from`, or its path, was refused: an error has been reported.
bool is_refused(const Node* source) {
  if (source != nullptr && source->is_mapping()) source = source->find("path");
  return source != nullptr && source->is_refused();
}

/// Without the configuration nothing can be said of them, so that they are not reported as missing.
void leave_open(Node& recipe) {
  for (const char* key : {"model", "loss"}) {
    if (!is_missing(recipe, key)) continue;
    recipe.set(key, Node::refused(recipe.location()), recipe.location());
  }
}

constexpr const char* kLengthKeys[] = {"max_seq_len", "block_size",     "seq_len",
                                       "max_length",  "context_length", "max_source_length"};
constexpr std::int64_t kLengthDefault = 2048;  ///< of records

/// The context length of a configured model; 0 where it says none.
std::int64_t positions_of(const Node& model) {
  const Node* config = model.find("config");
  if (config == nullptr || !config->is_mapping()) return 0;
  const pretrained::Facts facts(*config);
  const Node* written = model.find("max_position_embeddings");
  const bool is_written = written != nullptr && written->is_integer();
  const std::int64_t positions = is_written ? written->as_integer() : facts.integer("positions", 0);
  return facts.longest_text(positions);
}

/// Records are cut to the model's context length where the recipe says no other.
void settle_lengths(Node& recipe, std::int64_t positions) {
  Node* const data = recipe.find("data");
  if (data == nullptr || !data->is_mapping() || positions <= 0 || positions >= kLengthDefault) return;
  const auto settle = [positions](Node& set) {
    if (!has_type(set, {"jsonl"})) return;
    if (std::any_of(std::begin(kLengthKeys), std::end(kLengthKeys),
                    [&](const char* key) { return set.find(key) != nullptr; })) {
      return;
    }
    Node length = Node::integer(positions, set.location());
    length.add_history({"the model's context length", core::Origin::kSettled});
    set.set(kLengthKeys[0], std::move(length), set.location());
  };
  for (Node::Entry& set : data->entries()) each_set(set.value, settle);
}

}  // namespace

const Node* source_of(const Node& recipe) {
  const Node* source = recipe.find("init_from");
  if (source != nullptr && source->is_mapping()) source = source->find("path");
  return source != nullptr && source->is_string() ? source : nullptr;
}

void complete_pretrained(Node& recipe, Diagnostics& diagnostics) {
  if (!recipe.is_mapping()) return;
  // A copy: what is set below moves the recipe's nodes.
  if (is_refused(recipe.find("init_from"))) leave_open(recipe);
  const Node* const written = source_of(recipe);
  const std::optional<Node> source = written != nullptr ? std::make_optional(*written) : std::nullopt;
  const std::string of_folder = source ? pretrained::config_of_folder(source->as_string()) : "";
  if (!of_folder.empty() && is_missing(recipe, "model")) {
    Node block = Node::mapping(source->location());
    block.set("type", Node::string(kModel, source->location()));
    block.add_history({"init_from: " + of_folder, core::Origin::kSettled});
    recipe.set("model", std::move(block), source->location());
  }
  Node* const own = recipe.find("model");
  if (!of_folder.empty() && own != nullptr && own->is_mapping() && own->find("type") == nullptr) {
    Node type = Node::string(kModel, own->location());
    type.add_history({"init_from: " + of_folder, core::Origin::kSettled});
    own->set("type", std::move(type), own->location());
  }
  if (!of_folder.empty() && is_missing(recipe, "tokenizer") && has_text(recipe) &&
      pretrained::has_tokenizer(source->as_string())) {
    Node block = Node::mapping(source->location());
    block.set("type", Node::string("file", source->location()));
    Node path = Node::string(source->as_string(), source->location());
    path.set_history(source->history());  // its name on the Hub, if it has one
    block.set("path", std::move(path));
    block.add_history({"init_from: " + source->as_string(), core::Origin::kSettled});
    recipe.set("tokenizer", std::move(block), source->location());
  }
  if (!of_folder.empty()) take_quantization(recipe, of_folder, diagnostics);
  Node* const model = transformers_block(recipe);
  std::error_code failed;
  // A block without a configuration changes the model of the folder.
  const bool is_of_source = is_missing(recipe, "model") || (model != nullptr && is_missing(*model, "config"));
  if (source && of_folder.empty() && is_of_source && !hub::is_web_file(source->as_string()) &&
      (fs::is_directory(source->as_string(), failed) || !fs::exists(source->as_string(), failed))) {
    if (model != nullptr) model->set("config", Node::refused(model->location()));
    if (hub::is_name(source->as_string())) {
      leave_open(recipe);
      diagnostics.error(
          source->location(),
          "init_from gives the model, and " + source->as_string() + " is not in the cache of the Hugging Face Hub",
          "`roux fetch` with this recipe downloads it; or write the model");
      return;
    }
    leave_open(recipe);
    const bool there = fs::is_directory(source->as_string(), failed);
    const std::string on_hub = hub::meant_name(source->as_string());
    const bool adapter = !pretrained::adapter_config_of_folder(source->as_string()).empty();
    diagnostics.error(source->location(),
                      "init_from gives the model if it is a folder with " + std::string(pretrained::kConfigFile) +
                          ", and " + source->as_string() +
                          (adapter ? " holds an adapter of PEFT"
                           : there ? " has none"
                                   : " is not there"),
                      adapter ? "name the base model there, and the adapter by adapters: [{type: lora, path: " +
                                    source->as_string() + "}]"
                      : on_hub.empty() ? "correct the path, or write the model"
                                       : "a model of the Hugging Face Hub is named " + on_hub);
    return;
  }
  take_head(recipe, model, diagnostics);
  if (model == nullptr) return;
  const std::int64_t longest =  // 0: the folder says none
      source && !of_folder.empty() ? take_sentence_folder(*source, *model, diagnostics).value_or(0) : 0;
  const Node* const config = model->find("config");
  std::optional<Node> checked;
  if (config == nullptr || config->is_null()) {
    if (of_folder.empty()) return;  // validation says that it is missing
    checked = pretrained::read_config(of_folder, diagnostics);
    if (checked) pretrained::settle_separate_head(source->as_string(), *checked);
    if (checked) checked->add_history({"init_from: " + of_folder, core::Origin::kSettled});
  } else {
    checked = config->is_string() ? read_named(*config, diagnostics) : pretrained::check_config(*config, diagnostics);
  }
  if (checked) checked->erase(pretrained::kQuantizationConfig);  // of weights: the recipe's own section has it
  if (checked) check_head(*model, *checked, diagnostics);
  model->set("config", checked ? std::move(*checked) : Node::null(model->location()));
  const std::int64_t positions = positions_of(*model);
  settle_lengths(recipe, longest > 0 && (positions <= 0 || longest < positions) ? longest : positions);
  if (!of_folder.empty() && is_missing(recipe, "loss")) {
    const auto [type, why] = is_reward(recipe) ? std::pair(kReward, "a reward model") : usual_loss(*model);
    Node loss = Node::string(type, source->location());
    loss.add_history({"init_from: " + of_folder + ", " + why, core::Origin::kSettled});
    recipe.set("loss", std::move(loss), source->location());
  }
}

}  // namespace runner::resolve
