#include "runner/cli/group/import/factory_data.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/trainer_data.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::Node;
using words::items_of;
using words::Reader;
using Kind = words::Outcome::Kind;

constexpr std::size_t kTableBytesMax = 4U << 20U;

/// A text of a mapping; "" for none.
std::string text_of(const Node* mapping, const char* key) {
  const Node* value = mapping != nullptr && mapping->is_mapping() ? mapping->find(key) : nullptr;
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

class Sets {
 public:
  Sets(Reader& reader, const TrainerMethod& method) : reader_(reader), method_(method) {
    const Node* written = reader.get("dataset_dir");
    folder_ = written != nullptr ? written->scalar_text() : "data";
  }

  std::vector<Node> of(const char* key) {
    key_ = key;
    const Node* names = reader_.get(key);
    if (names == nullptr) return {};
    read_table(*names);
    std::vector<Node> sets;
    for (const Node& name : items_of(*names)) {
      name_ = name.scalar_text();
      at_ = name.location();
      sets.push_back(read());
    }
    return sets;
  }

 private:
  void read_table(const Node& names) {
    if (is_read_) return;
    is_read_ = true;
    const auto text = core::read_file(folder_ + "/dataset_info.json", kTableBytesMax);
    auto table = text ? core::parse_json(text.value()) : core::Result<Node>(text.failure());
    if (table && table.value().is_mapping()) {
      table_ = std::move(table).value();
      return;
    }
    reader_.diagnostics().warning(names.location(),
                                  "what the data sets are stands in " + folder_ + "/dataset_info.json, which " +
                                      (text ? "is not a mapping of JSON" : "is not here"),
                                  "put their files in place of NAME.jsonl");
  }

  void refuse(const std::string& message, const std::string& hint) {
    reader_.refuse(Node::string(name_, at_), key_, message, hint);
  }

  Node read() {
    const Node* entry = table_.is_mapping() ? table_.find(name_) : nullptr;
    if (table_.is_mapping() && entry == nullptr) {
      std::vector<std::string> known;
      for (const Node::Entry& one : table_.entries()) known.push_back(one.key);
      const std::string near = core::closest(name_, known);
      refuse(folder_ + "/dataset_info.json has no " + core::quote(name_),
             near.empty() ? "correct the name" : "did you mean " + near + "?");
    }
    Node made = Node::mapping(at_);
    made.set("type", Node::string("jsonl"));
    if (const std::string hub = text_of(entry, "hf_hub_url"); hub.empty()) {
      made.set("path", Node::string(path_of(entry)));
    } else {
      take_hub(entry, hub, made);
    }
    columns_ = Node::mapping();
    take_form(entry);
    if (!columns_.entries().empty()) made.set("columns", columns_);
    add_options(made);
    return made;
  }

  void take_hub(const Node* entry, const std::string& hub, Node& made) {
    const std::string split = text_of(entry, "split");
    name_data_set(hub, text_of(entry, "subset"), split.empty() ? "train" : split, made);
    if (const std::string folder = text_of(entry, "folder"); !folder.empty()) {
      refuse(name_ + " is the folder " + folder + " of " + hub + ", and roux reads the files that the card names",
             "fetch it, and write its file_name into dataset_info.json");
    }
  }

  std::string path_of(const Node* entry) {
    const Node at = Node::string(name_, at_);
    for (const char* key : {"ms_hub_url", "om_hub_url", "script_url", "cloud_file_name"}) {
      if (text_of(entry, key).empty()) continue;
      refuse(name_ + " is named by " + key + ", which roux does not read",
             "fetch the set, and write its file_name into dataset_info.json");
    }
    if (entry != nullptr && entry->is_mapping() && entry->find("num_samples") != nullptr)
      reader_.diagnostics().warning(at_, "num_samples of " + name_ + " is left out: all records are used",
                                    "take the first ones with {type: subset, of: ..., samples: N}");
    const std::string file = text_of(entry, "file_name");
    const std::string path = folder_ + "/" + (file.empty() ? name_ + ".jsonl" : file);
    return form_of(path) == RecordForm::kArray ? lines_of_array(reader_, at, key_, path) : path;
  }

  /// Which fields records have.
  void take_form(const Node* entry) {
    const Node* columns = entry != nullptr && entry->is_mapping() ? entry->find("columns") : nullptr;
    for (const char* key : {"images", "videos", "audios"}) {
      if (!text_of(columns, key).empty())
        return refuse(name_ + " has " + key + ", and roux trains on text", "leave it out of " + key_);
    }
    if (!text_of(columns, "tools").empty())
      return refuse("tools of the records of " + name_ + " are not read", "write them into the system message");
    if (!text_of(columns, "kto_tag").empty())
      return refuse("single labelled records, as those of " + name_ + ", are not trained yet",
                    "use pairs, and stage: dpo");
    if (method_.is_pretraining) {
      const std::string field = text_of(columns, "prompt");
      columns_.set("text", Node::string(field.empty() ? "instruction" : field));
      if (field == "text") columns_.erase("text");
      return;
    }
    if (method_.is_dpo) return take_pairs(entry);
    const std::string form = text_of(entry, "formatting");
    return form == "sharegpt" || form == "openai" ? take_messages(entry, form == "openai") : take_instructions(columns);
  }

  /// Pairs are one message each there, written in the template.
  void take_pairs(const Node* entry) {
    if (entry == nullptr) return;
    const bool is_chat = text_of(entry, "formatting") == "sharegpt";
    refuse(std::string("pairs of ") + (is_chat ? "one message each" : "texts in a template") + ", as those of " +
               name_ + ", are not read",
           "write records of {prompt, chosen, rejected}, each a list of {role, content}, and import them as those of "
           "`trl dpo`");
  }

  void take_messages(const Node* entry, bool is_openai) {
    const Node *columns = entry->find("columns"), *tags = entry->find("tags");
    const auto tag = [&](const char* key, const char* usual) {
      const std::string text = text_of(tags, key);
      return text.empty() ? std::string(usual) : text;
    };
    if (const std::string system = text_of(columns, "system"); !system.empty())
      return refuse("the field " + system + " of the records of " + name_ + " is not read",
                    "write it as the first message");
    const std::string role = tag("role_tag", is_openai ? "role" : "from");
    const std::string content = tag("content_tag", is_openai ? "content" : "value");
    const std::string user = tag("user_tag", is_openai ? "user" : "human");
    const std::string assistant = tag("assistant_tag", is_openai ? "assistant" : "gpt");
    std::string field = text_of(columns, "messages");
    if (field.empty()) field = "conversations";
    const bool is_usual = (user == "user" || user == "human") && (assistant == "assistant" || assistant == "gpt") &&
                          tag("system_tag", "system") == "system";
    if (is_usual && role == "role" && content == "content") {
      if (field != "messages") columns_.set("messages", Node::string(field));
    } else if (!is_usual || role != "from" || content != "value" || field != "conversations") {
      refuse("messages of " + name_ + " have {" + role + ", " + content + "} of " + user + " and " + assistant,
             "rename the fields in the data: messages of {role, content} by user and assistant");
    }
  }

  /// Alpaca's fields. They are a conversation where the set has a chat format of its own.
  void take_instructions(const Node* columns) {
    for (const auto& [key, usual] : {std::array{"prompt", "instruction"},
                                     {"query", "input"},
                                     {"response", "output"},
                                     {"system", "system"},
                                     {"history", "history"}}) {
      const std::string field = text_of(columns, key);
      if (field.empty() || field == usual) continue;
      return refuse("the field of " + std::string(key) + " of " + name_ + " is " + field + ", and not " + usual,
                    std::string("rename it in the data: jq -c '.") + usual + " = ." + field + "' FILE.jsonl");
    }
    if (reader_.get("template") == nullptr && reader_.get("dataset") != nullptr)
      refuse("the records of " + name_ + " are written in a template, and none is named",
             "write template: chatml, or that of the model");
  }

  void add_options(Node& made) {
    const Node* length = reader_.get("cutoff_len");
    made.set("max_seq_len", length != nullptr ? *length : Node::integer(2048));
    const bool packs = reader_.get("packing") != nullptr || reader_.get("neat_packing") != nullptr ||
                       reader_.get("use_packed_sequences") != nullptr;
    if ((packs || (method_.is_pretraining && reader_.config().find("packing") == nullptr)) && !method_.is_dpo)
      made.set("packing", Node::boolean(true));
    if (reader_.get("packing") != nullptr && reader_.get("neat_packing") == nullptr && !method_.is_pretraining)
      reader_.note("packing", Kind::kChanged,
                   "data.train.packing; attention does not cross records, as with neat_packing");
    if (reader_.get("train_on_prompt") != nullptr && !method_.is_dpo) made.set("loss_on", Node::string("all"));
    if (reader_.get("streaming") != nullptr && key_ == "dataset") made.set("streaming", Node::boolean(true));
    if (const Node* most = reader_.get("buffer_size"); most != nullptr && reader_.get("streaming") != nullptr)
      made.set("shuffle_buffer", *most);
    const Node* format = reader_.get("template");
    if (format == nullptr || method_.is_pretraining) return;
    auto name = taken(reader_, method_, "template", *format);
    if (!name) return;
    if (const Node* system = reader_.get("default_system")) {
      if (!name->is_mapping()) {
        Node block = Node::mapping();
        block.set("type", *name);
        *name = std::move(block);
      }
      name->set("default_system", *system);
    }
    made.set("chat_format", std::move(*name));
  }

  Reader& reader_;
  const TrainerMethod& method_;
  std::string folder_, key_, name_;
  core::Location at_;
  Node table_, columns_;
  bool is_read_ = false;
};

}  // namespace

void take_factory_data(Reader& reader, const TrainerMethod& method) {
  if (reader.get("model_name_or_path") == nullptr) return;
  Sets sets(reader, method);
  std::vector<Node> train = sets.of("dataset"), val = sets.of("eval_dataset");
  if (train.empty()) {
    const Node* streamed = reader.get("tokenized_path");
    if (streamed == nullptr && reader.get("export_dir") == nullptr) {
      reader.refuse(reader.config(), "dataset", "dataset is missing: the file does not train",
                    "write dataset: NAME; `roux chat` and `roux generate` use a finished model");
    }
    return;
  }
  if (method.is_pretraining) reader.note("template", Kind::kNoEffect, "texts are learnt as they are");
  double held_out = 0;
  if (const Node* part = reader.get("val_size"); part != nullptr && part->is_number() && part->as_double() > 0) {
    held_out = part->as_double();
    if (held_out >= 1) {
      reader.refuse(*part, "val_size", "val_size is " + part->scalar_text() + ", a number of records",
                    "write a part of them, such as val_size: 0.05");
    }
  }
  put_sets(reader, std::move(train), std::move(val), held_out < 1 ? held_out : 0);
}

}  // namespace runner::cli
