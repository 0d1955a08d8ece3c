#include "runner/cli/group/import/factory_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/local_files.h"
#include "runner/cli/group/import/trainer_data.h"
#include "runner/cli/group/import/trainer_rules.h"
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

constexpr std::string_view kOnline = "ONLINE";   ///< as dataset_dir: sets are named as on the Hub
constexpr std::string_view kRemote = "REMOTE:";  ///< before the Hub's data set with dataset_info.json and the files
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
    if (folder_ == kOnline) return;
    if (folder_.starts_with(kRemote)) {
      const std::string repository = folder_.substr(kRemote.size());
      return reader_.refuse(
          *reader_.get("dataset_dir"), "dataset_dir",
          "what the data sets are stands in the Hub's data set " + repository + ", and an import connects to nothing",
          "download that repository, and write dataset_dir: FOLDER");
    }
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
    warn_of_unknown(entry);
    Node made = Node::mapping(at_);
    made.set("type", Node::string("jsonl"));
    const std::string hub = folder_ == kOnline ? name_ : text_of(entry, "hf_hub_url");
    if (hub.empty()) {
      made.set("path", files_at(path_of(entry)));
    } else {
      take_hub(entry, hub, made);
    }
    columns_ = Node::mapping();
    roles_ = Node::mapping();
    take_form(entry);
    if (!columns_.entries().empty()) made.set("columns", columns_);
    if (!roles_.entries().empty()) made.set("roles", roles_);
    take_first(entry, made);
    add_options(made);
    return made;
  }

  /// LLaMA-Factory does not read them either, but they may be misspelt.
  void warn_of_unknown(const Node* entry) {
    static const std::vector<std::string> kKeys = {"hf_hub_url",      "ms_hub_url", "om_hub_url", "script_url",
                                                   "cloud_file_name", "file_name",  "file_sha1",  "formatting",
                                                   "ranking",         "subset",     "split",      "folder",
                                                   "num_samples",     "columns",    "tags"};
    static const std::vector<std::string> kColumns = {"system",   "tools",    "images",  "videos", "audios",
                                                      "chosen",   "rejected", "kto_tag", "prompt", "query",
                                                      "response", "history",  "messages"};
    static const std::vector<std::string> kTags = {"role_tag",        "content_tag",  "user_tag",  "assistant_tag",
                                                   "observation_tag", "function_tag", "system_tag"};
    const auto check = [this](const Node* block, const std::string& prefix, const std::vector<std::string>& known) {
      if (block == nullptr || !block->is_mapping()) return;
      for (const Node::Entry& one : block->entries()) {
        if (std::find(known.begin(), known.end(), one.key) != known.end()) continue;
        const std::string near = core::closest(one.key, known);
        reader_.diagnostics().warning(at_,
                                      prefix + core::escape_for_terminal(one.key) + " of " + name_ +
                                          " in dataset_info.json is not a key of LLaMA-Factory, and is not read",
                                      near.empty() ? "remove it" : "did you mean " + near + "?");
      }
    };
    if (entry == nullptr || !entry->is_mapping()) return;
    check(entry, "", kKeys);
    check(entry->find("columns"), "columns.", kColumns);
    check(entry->find("tags"), "tags.", kTags);
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
    for (const char* key : {"ms_hub_url", "om_hub_url", "script_url", "cloud_file_name"}) {
      if (text_of(entry, key).empty()) continue;
      refuse(name_ + " is named by " + key + ", which roux does not read",
             "fetch the set, and write its file_name into dataset_info.json");
    }
    const std::string file = text_of(entry, "file_name");
    return folder_ + "/" + (file.empty() ? name_ + ".jsonl" : file);
  }

  /// A file, or all of a folder.
  Node files_at(const std::string& path) {
    std::error_code failed;
    if (!std::filesystem::is_directory(path, failed)) return Node::string(path);
    auto files = files_of_folder(path);
    if (files && !hub::reads("jsonl", files.value().kind)) {
      files = core::Failure{path + " holds " + hub::words_of(files.value().kind),
                            "write their records into files of .jsonl"};
    }
    if (files) return files.value().node();
    refuse(files.failure().message, files.failure().hint);
    return Node::string(path);
  }

  /// How many records are used: of `max_samples` the first ones, of a stream all.
  void take_first(const Node* entry, Node& made) {
    const auto number = [](const Node* value) {
      return value != nullptr && value->is_integer() && value->as_integer() > 0 ? value->as_integer() : 0;
    };
    std::int64_t first = number(reader_.get("max_samples"));
    const std::int64_t drawn = number(entry != nullptr && entry->is_mapping() ? entry->find("num_samples") : nullptr);
    if (reader_.get("streaming") != nullptr && key_ == "dataset") {
      return reader_.note("max_samples", Kind::kNoEffect, "of a stream all records are used");
    }
    if (drawn > 0) {
      reader_.diagnostics().warning(at_,
                                    "num_samples of " + name_ + ": the first " + std::to_string(drawn) +
                                        " records are used, where LLaMA-Factory draws them",
                                    "draw some with {type: subset, of: ..., samples: N, random: true}");
      first = first > 0 ? std::min(first, drawn) : drawn;
    }
    if (first == 0) return;
    const Node* held_out = reader_.get("val_size");
    if (held_out != nullptr && held_out->is_number() && held_out->as_double() < 1)
      reader_.note("max_samples", Kind::kTaken, "data.train.split; of a set with fewer records write their number");
    const Node* split = made.find("split");
    made.set("split",
             Node::string((split != nullptr ? split->scalar_text() : "") + "[:" + std::to_string(first) + "]"));
  }

  /// Which fields records have.
  void take_form(const Node* entry) {
    const Node* columns = entry != nullptr && entry->is_mapping() ? entry->find("columns") : nullptr;
    for (const char* key : {"images", "videos", "audios"}) {
      if (!text_of(columns, key).empty())
        return refuse(name_ + " has " + key + ", and roux trains on text", "leave it out of " + key_);
    }
    if (!text_of(columns, "tools").empty() && reader_.get("template") != nullptr)
      return refuse("tools of the records of " + name_ +
                        " are written by the chat template of the tokenizer, and template names another format",
                    "remove template, or write the tools into the system message");
    const std::string label = text_of(columns, "kto_tag");
    const bool is_kto = method_.pair_loss == "kto";
    if (is_kto && label.empty()) {
      return refuse("stage kto learns from labels, and " + name_ + " names no kto_tag",
                    "write its field into columns of dataset_info.json, or use stage: dpo with pairs");
    }
    if (!is_kto && !label.empty())
      return refuse("the records of " + name_ + " have labels, which only stage kto learns from", "use stage: kto");
    if (is_kto && label != "label") columns_.set("label", Node::string(label));
    if (method_.is_pretraining) {
      const std::string field = text_of(columns, "prompt");
      columns_.set("text", Node::string(field.empty() ? "instruction" : field));
      if (field == "text") columns_.erase("text");
      return;
    }
    if (method_.is_of_pairs && !is_kto) return take_pairs(entry);
    const std::string form = text_of(entry, "formatting");
    return form == "sharegpt" || form == "openai" ? take_messages(entry) : take_instructions(columns);
  }

  /// Of messages, each of a pair is one behind those of the prompt; of Alpaca's fields, an answer to the instruction.
  void take_pairs(const Node* entry) {
    if (entry == nullptr) return;
    const std::string form = text_of(entry, "formatting");
    const Node* columns = entry->find("columns");
    if (form != "sharegpt" && form != "openai") {
      for (const char* key : {"chosen", "rejected"}) {
        const std::string field = text_of(columns, key);
        if (field.empty()) {
          return refuse(name_ + " names no field " + key + ", and the training is on pairs",
                        "write columns: {chosen: FIELD, rejected: FIELD} into its entry of dataset_info.json");
        }
        columns_.set(key, Node::string(field));
      }
      take_instructions(columns);
      columns_.erase("output");  // there is none
      if (columns_.find("instruction") == nullptr) columns_.set("instruction", Node::string("instruction"));
      return;
    }
    if (!text_of(columns, "system").empty()) {
      return refuse("the field " + text_of(columns, "system") + " of the records of " + name_ + " is not read of pairs",
                    "write it as the first message");
    }
    const auto put = [&](const char* column, const char* key, const char* usual) {
      const std::string field = text_of(columns, key);
      columns_.set(column, Node::string(field.empty() ? usual : field));
    };
    put("prompt", "messages", "conversations");
    put("chosen", "chosen", "chosen");
    put("rejected", "rejected", "rejected");
    take_tags(entry);
  }

  void take_messages(const Node* entry) {
    const Node* columns = entry->find("columns");
    const std::string field = text_of(columns, "messages");
    columns_.set("messages", Node::string(field.empty() ? "conversations" : field));
    for (const char* key : {"system", "tools"}) {
      const std::string name = text_of(columns, key);
      if (!name.empty() && name != key) columns_.set(key, Node::string(name));
    }
    take_tags(entry);
  }

  /// What a message's fields and the speakers are called, where roux has to be told.
  void take_tags(const Node* entry) {
    const Node* tags = entry->find("tags");
    const std::string role = text_of(tags, "role_tag"), content = text_of(tags, "content_tag");
    if (!role.empty() && role != "role" && role != "from") columns_.set("role", Node::string(role));
    if (!content.empty() && content != "content" && content != "value") columns_.set("content", Node::string(content));
    const std::string usual_tool = role == "role" ? "tool" : "observation";
    for (const auto& [key, meant, usual, other] :
         {std::array<std::string, 4>{"system_tag", "system", "system", "system"},
          {"user_tag", "user", "human", "user"},
          {"assistant_tag", "assistant", "gpt", "assistant"},
          {"observation_tag", "tool", usual_tool, "tool"}}) {
      const std::string name = text_of(tags, key.c_str());
      if (!name.empty() && name != usual && name != other) roles_.set(meant, Node::sequence({Node::string(name)}));
    }
    const std::string call = text_of(tags, "function_tag");
    if (!call.empty() && call != "function_call" && !text_of(entry->find("columns"), "tools").empty()) {
      refuse("answers of " + name_ + " that call tools have the role " + call + ", and not function_call",
             "rename the role in the data");
    }
  }

  /// Alpaca's fields. They are a conversation where the set has a chat format of its own.
  void take_instructions(const Node* columns) {
    for (const auto& [key, usual] : {std::array{"prompt", "instruction"}, {"query", "input"}, {"response", "output"}}) {
      const std::string field = text_of(columns, key);
      if (!field.empty() && field != usual) columns_.set(usual, Node::string(field));
    }
    for (const auto& [key, usual] : {std::array{"system", "system"}, {"history", "history"}}) {
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
    if ((packs || (method_.is_pretraining && reader_.config().find("packing") == nullptr)) && !method_.is_of_pairs)
      made.set("packing", Node::boolean(true));
    if (method_.is_pretraining) {
      reader_.note("cutoff_len", Kind::kChanged,
                   "data.train.max_seq_len; each text is cut there, where LLaMA-Factory joins them and cuts the whole");
    } else {
      reader_.note("cutoff_len", Kind::kChanged,
                   "data.train.max_seq_len; a longer record is cut at its end, where LLaMA-Factory shortens its prompt "
                   "first, too");
    }
    if (method_.is_pretraining) {
    } else if (reader_.get("packing") != nullptr && reader_.get("neat_packing") == nullptr) {
      reader_.note("packing", Kind::kChanged,
                   "data.train.packing; attention does not cross records, as with neat_packing");
    }
    add_loss(made);
    if (reader_.get("streaming") != nullptr && key_ == "dataset") made.set("streaming", Node::boolean(true));
    if (const Node* most = reader_.get("buffer_size"); most != nullptr && reader_.get("streaming") != nullptr)
      made.set("shuffle_buffer", *most);
    const Node* format = reader_.get("template");
    if (format == nullptr || method_.is_pretraining) return;
    auto name = taken(reader_, method_, "template", *format);
    if (!name) return;
    // An empty one takes the template's own away.
    if (const Node* system = reader_.config().find("default_system"); system != nullptr && system->is_string()) {
      if (!name->is_mapping()) {
        Node block = Node::mapping();
        block.set("type", *name);
        *name = std::move(block);
      }
      name->set("default_system", *system);
    }
    made.set("chat_format", std::move(*name));
  }

  void add_loss(Node& made) {
    if (method_.is_of_pairs || method_.is_pretraining) return;
    const Node *prompts = reader_.get("train_on_prompt"), *last = reader_.get("mask_history");
    if (prompts != nullptr && last != nullptr && key_ == "dataset") {
      reader_.refuse(*last, "mask_history", "train_on_prompt and mask_history say two things", "keep one of them");
    }
    if (prompts != nullptr) made.set("loss_on", Node::string("all"));
    if (last == nullptr) return;
    made.set("loss_on", Node::string("last"));
    reader_.note("mask_history", Kind::kChanged,
                 "data.train.loss_on: last; a record longer than cutoff_len is cut at its end, not at its beginning");
  }

  Reader& reader_;
  const TrainerMethod& method_;
  std::string folder_, key_, name_;
  core::Location at_;
  Node table_, columns_, roles_;
  bool is_read_ = false;
};

/// `mix_strategy` and `interleave_probs`: how sets are joined.
SetMixture mixture_of(Reader& reader, const TrainerMethod& method, std::size_t sets) {
  const Node *strategy = reader.get("mix_strategy"), *shares = reader.get("interleave_probs");
  const auto stopping = strategy != nullptr ? taken(reader, method, "mix_strategy", *strategy) : std::nullopt;
  if (!stopping || sets < 2) {
    reader.note("interleave_probs", Kind::kNoEffect, "the sets follow one another");
    if (sets < 2) reader.note("mix_strategy", Kind::kNoEffect, "there is one set");
    return {};
  }
  SetMixture mixture{.weights = {}, .stopping = stopping->as_string()};
  for (const Node& share : shares != nullptr ? items_of(*shares) : std::vector<Node>(sets, Node::string("1"))) {
    double weight = 0;
    const std::string text = share.scalar_text();
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (error == std::errc{} && at == text.data() + text.size() && weight > 0)
      mixture.weights.push_back(Node::floating(weight));
  }
  if (mixture.weights.size() == sets) return mixture;
  reader.refuse(*shares, "interleave_probs", "interleave_probs has to be a number above 0 for each set of dataset",
                "write as many numbers as sets, such as 0.7,0.3");
  return {};
}

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
  if (const Node* part = number_of(reader, "val_size"); part != nullptr && part->as_double() > 0)
    held_out = part->as_double();
  const SetMixture mixture = mixture_of(reader, method, train.size());
  put_sets(reader, std::move(train), std::move(val), {"val_size", held_out}, mixture);
}

}  // namespace runner::cli
