#include "runner/cli/group/import/factory_v1.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/launch/command_line.h"
#include "runner/cli/group/import/launch/foreign_file.h"
#include "runner/cli/group/import/trainer_data.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/read.h"
#include "runner/resolve/sharding/words.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::Node;
using words::Reader;
using Kind = words::Outcome::Kind;

std::string text_of(const Node& set, const char* key, const char* usual) {
  const Node* value = set.find(key);
  return value != nullptr && !value->is_null() ? value->scalar_text() : usual;
}

/// One set, as a file of them has it.
Node set_of(const std::string& path, bool is_local, const core::Location& at) {
  Node set = Node::mapping(at);
  set.set("path", Node::string(path, at), at);
  set.set("source", Node::string(is_local ? "local" : "hf_hub", at), at);
  Node sets = Node::mapping(at);
  sets.set("default", std::move(set), at);
  return sets;
}

bool is_here(const std::string& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

/// What one set of the file comes to.
class Set {
 public:
  Set(Reader& reader, const TrainerMethod& method, const Node::Entry& entry)
      : reader_(reader), method_(method), name_(entry.key), set_(entry.value), made_(Node::mapping(set_.location())) {}

  Node read() {
    made_.set("type", Node::string("jsonl"));
    if (!set_.is_mapping() || text_of(set_, "path", "").empty()) {
      refuse(set_, "the set " + core::quote(name_) + " has no path", "write path: FILE or OWNER/NAME");
      return made_;
    }
    check_keys();
    take_path();
    take_form();
    take_size();
    const Node* length = reader_.get("cutoff_len");
    made_.set("max_seq_len", length != nullptr ? *length : Node::integer(2048));
    const Node* strategy = reader_.get("batching_strategy");
    const auto packing = strategy != nullptr ? taken(reader_, method_, "batching_strategy", *strategy) : std::nullopt;
    if (packing && !method_.is_of_pairs) made_.set("packing", *packing);
    if (const Node* streaming = set_.find("streaming"); streaming != nullptr && words::asks_for_something(*streaming))
      made_.set("streaming", Node::boolean(true));
    // The template of the model, which is told of each answer whether it has reasoning.
    Node variables = Node::mapping(), format = Node::mapping();
    variables.set("enable_thinking", Node::boolean(false));
    format.set("variables", std::move(variables));
    made_.set("chat_format", std::move(format));
    return made_;
  }

 private:
  void refuse(const Node& at, const std::string& message, const std::string& hint) {
    reader_.refuse(at, "train_dataset", message, hint);
  }

  void check_keys() {
    static constexpr const char* kKeys[] = {"path", "source", "split", "converter", "size", "weight", "streaming"};
    for (const Node::Entry& entry : set_.entries()) {
      const auto is = [&](const char* key) { return entry.key == key; };
      if (std::any_of(std::begin(kKeys), std::end(kKeys), is) || !words::asks_for_something(entry.value)) continue;
      refuse(entry.value, core::quote(entry.key) + " is not a key of a set of version 1", "remove it");
    }
  }

  void take_path() {
    const std::string path = text_of(set_, "path", ""), source = text_of(set_, "source", "hf_hub");
    const std::string split = text_of(set_, "split", "train");
    std::error_code failed;
    if (source == "hf_hub") return name_data_set(path, "", split, made_);
    if (source != "local") {
      return refuse(*set_.find("source"),
                    "the set " + core::quote(name_) + " is of " + core::quote(source) + ", which roux does not read",
                    "fetch it, and write source: local with the path of its file");
    }
    const bool is_folder = fs::is_directory(path, failed);
    if (!is_folder && !is_record_file(path)) {
      refuse(*set_.find("path"), core::quote(path) + " has no records that roux reads",
             "write them into a file of .jsonl or .parquet");
    }
    if (split != "train")
      refuse(*set_.find("split"), "a file has no split " + core::quote(split), "remove it, and name the split's file");
    made_.set("path", Node::string(is_folder ? path + "/*.jsonl" : path));
  }

  /// Which fields records have.
  void take_form() {
    const std::string converter = text_of(set_, "converter", "");
    const bool is_known = converter.empty() || converter == "alpaca" || converter == "sharegpt" || converter == "pair";
    if (!is_known) {
      return refuse(*set_.find("converter"), "there is no converter " + core::quote(converter),
                    "use alpaca, sharegpt or pair");
    }
    if (method_.is_of_pairs != (converter == "pair") && !converter.empty()) {
      return refuse(*set_.find("converter"),
                    "the set " + core::quote(name_) +
                        (method_.is_of_pairs ? " has answers, and the training is on pairs"
                                             : " has pairs, and the training is on answers"),
                    "leave it out");
    }
    Node columns = Node::mapping();
    if (method_.is_of_pairs) {
      columns.set("chosen", Node::string(converter.empty() ? "chosen_messages" : "chosen"));
      columns.set("rejected", Node::string(converter.empty() ? "rejected_messages" : "rejected"));
    } else if (converter != "alpaca") {
      columns.set("messages", Node::string(converter.empty() ? "messages" : "conversations"));
    }
    if (converter == "alpaca") {
      reader_.note("train_dataset", Kind::kChanged,
                   "data.train; a line break stands between an instruction and its input, and a conversation is one "
                   "record");
    } else if (!method_.is_of_pairs) {
      reader_.note("train_dataset", Kind::kChanged,
                   "data.train; a conversation is one record, where version 1 makes one for each answer");
    }
    if (!columns.entries().empty()) made_.set("columns", std::move(columns));
  }

  /// `size` records are drawn there, with repetitions.
  void take_size() {
    const Node *size = set_.find("size"), *weight = set_.find("weight");
    const bool is_weighted = weight != nullptr && weight->is_number() && weight->as_double() != 1;
    if (is_weighted || (weight != nullptr && !weight->is_null() && !weight->is_number())) {
      refuse(*weight, "weight draws records of " + core::quote(name_) + " with repetitions",
             "remove it, and mix sets by `weights` of `data: {type: concat}`");
    }
    if (size == nullptr || size->is_null()) return;
    if (!size->is_integer() || size->as_integer() < 1)
      return refuse(*size, "size is " + size->scalar_text() + ", not a number of records", "write size: 500");
    const std::string number = size->scalar_text();
    reader_.diagnostics().warning(
        size->location(),
        "size of " + core::quote(name_) + ": the first " + number + " records are used, where LLaMA-Factory draws them",
        "draw some with {type: subset, of: ..., samples: N, random: true}");
    const Node* split = made_.find("split");
    made_.set("split", Node::string((split != nullptr ? split->scalar_text() : "") + "[:" + number + "]"));
  }

  Reader& reader_;
  const TrainerMethod& method_;
  const std::string& name_;
  const Node& set_;
  Node made_;
};

/// Blocks name what they configure.
void check_names(Reader& reader) {
  for (const auto& [key, usual] :
       {std::pair{"peft_config", "lora"}, {"dist_config", "fsdp2"}, {"optim_config", "muon"}}) {
    const Node* block = reader.get(key);
    if (block == nullptr || !block->is_mapping() || block->find("name") != nullptr) continue;
    reader.refuse(*block, key, std::string(key) + " has no name", std::string("write name: ") + usual + " into it");
  }
  const Node *name = reader.get("dist_config.name"), *file = reader.get("dist_config.config_file");
  if (name != nullptr && name->scalar_text() == "deepspeed" && file == nullptr) {
    reader.refuse(*name, "dist_config.name", "deepspeed has no config_file",
                  "write config_file: FILE into dist_config");
  }
}

}  // namespace

bool is_factory_v1(const Node& config) {
  static constexpr const char* kOwn[] = {"model_class", "train_dataset", "peft_config",  "kernel_config",
                                         "dist_config", "optim_config",  "quant_config", "lr_scheduler_config"};
  static constexpr const char* kCommands[] = {"train", "sft", "dpo", "rm"};
  const Node* script = config.find(kScript);  // another script may have words of the same name
  const auto is_script = [&](const char* command) { return script->scalar_text() == command; };
  if (script != nullptr && std::none_of(std::begin(kCommands), std::end(kCommands), is_script)) return false;
  return std::any_of(std::begin(kOwn), std::end(kOwn), [&](const char* key) { return config.find(key) != nullptr; });
}

Node factory_v1_sets(const Node& config, core::Diagnostics& diagnostics) {
  const Node* name = config.find("train_dataset");
  if (name == nullptr || !name->is_string() || name->as_string().empty()) return Node::null();
  const std::string path = name->scalar_text();
  if (!path.ends_with(".yaml") && !path.ends_with(".yml"))
    return set_of(path, is_here(path) || is_record_file(path), name->location());
  const recipe::Limits limits;
  const std::string there = resolve::path_beside(*name);
  auto text = core::read_file(there, limits.file_bytes_max);
  if (!text) {
    const std::string records = path.substr(0, path.rfind('.')) + ".jsonl";
    diagnostics.warning(name->location(), "what the data sets are stands in " + path + ", which is not here",
                        "put it there, or their files in place of " + records);
    return set_of(records, true, name->location());
  }
  const auto file =
      std::make_shared<const core::Source>(core::Source{there, std::move(text).value(), core::Source::Kind::kFile});
  auto sets = read_foreign(file, diagnostics);
  if (!sets) return Node::mapping(name->location());
  if (sets->is_mapping() && !sets->entries().empty()) return std::move(*sets);
  diagnostics.error(sets->location(), there + " names no data set", "write NAME: {path: FILE, source: local}");
  return Node::mapping(name->location());
}

bool has_pairs(const Node& sets) {
  if (!sets.is_mapping()) return false;
  return std::any_of(sets.entries().begin(), sets.entries().end(), [](const Node::Entry& entry) {
    return entry.value.is_mapping() && text_of(entry.value, "converter", "") == "pair";
  });
}

void take_factory_v1_data(Reader& reader, const TrainerMethod& method) {
  const Node* written = reader.get("train_dataset");
  if (written != nullptr && !written->is_string()) {
    return reader.refuse(*written, "train_dataset", "train_dataset must be the name of a set or a file of sets",
                         "write train_dataset: FILE or OWNER/NAME");
  }
  if (method.sets.is_null()) {
    if (reader.get("peft_config.export_dir") != nullptr) return;  // an error already
    return reader.refuse(reader.config(), "train_dataset", "train_dataset is missing: the file does not train",
                         "write train_dataset: FILE; `roux chat` and `roux generate` use a finished model");
  }
  check_names(reader);
  std::vector<Node> sets;
  for (const Node::Entry& entry : method.sets.entries()) sets.push_back(Set(reader, method, entry).read());
  put_sets(reader, std::move(sets), {}, {});
  reader.draft().put("recipe_version", Node::integer(1));
  reader.draft().put("loader.drop_last", Node::boolean(true));
}

void take_factory_v1_optimizer(Reader& reader) {
  const Node* written = reader.get("learning_rate");
  const Node rate = written != nullptr ? *written : Node::floating(1e-4);
  reader.draft().put("optimizer.lr", rate);
  if (reader.draft().find("optimizer.type") == nullptr) {
    reader.draft().put("optimizer.type", Node::string("adamw"));
    return reader.draft().put("optimizer.weight_decay", Node::floating(0.01));
  }
  reader.draft().put("optimizer.adamw_lr", rate);
  if (reader.draft().find("adapters") == nullptr) return;
  std::vector<Node> names;
  for (const char* name : {"*embed*", "*lm_head*", "*wte*", "*wpe*", "*lora*"}) names.push_back(Node::string(name));
  reader.draft().put("optimizer.adamw_params", Node::sequence(std::move(names)));
}

}  // namespace runner::cli
