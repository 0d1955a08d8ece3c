#include "runner/cli/group/import/axolotl_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::lower;
using core::Node;
using words::asks_for_something;
using words::Reader;
using Kind = words::Outcome::Kind;

/// A part of the records, in percent.
struct Range {
  double begin = 0, end = 100;
};

/// Which records of a set count; `split`: of a data set of the Hub its name, "" of files.
struct Part {
  Range range;
  std::string split = {};
};

/// `train[:20%]`: the name of a split and the part of it. Nothing for what is not in percent.
std::optional<std::pair<std::string, Range>> split_of(const std::string& text) {
  const std::size_t bracket = text.find('[');
  if (bracket == std::string::npos) return std::pair{text, Range{}};
  const std::string_view inside = std::string_view(text).substr(bracket + 1);
  const std::size_t colon = inside.find(':');
  if (colon == std::string_view::npos || !inside.ends_with("]")) return std::nullopt;
  Range range;
  const auto read = [](std::string_view part, double& number) {
    if (part.empty()) return true;
    const char* const end = part.data() + part.size() - 1;
    const auto [at, error] = std::from_chars(part.data(), end, number);
    return part.ends_with('%') && error == std::errc{} && at == end && number >= 0 && number <= 100;
  };
  const bool is_good = read(inside.substr(0, colon), range.begin) &&
                       read(inside.substr(colon + 1, inside.size() - colon - 2), range.end) && range.begin < range.end;
  return is_good ? std::optional(std::pair{text.substr(0, bracket), range}) : std::nullopt;
}

/// As `split` of a data set has it; "" for all.
std::string text_of(const Range& range) {
  const std::string begin = range.begin > 0 ? percent_of(range.begin / 100) : "";
  const std::string end = range.end < 100 ? percent_of(range.end / 100) : "";
  return begin.empty() && end.empty() ? "" : begin + ":" + end;
}

/// The sets of one list.
class Sets {
 public:
  /// `key`: `datasets`, `test_datasets` or `pretraining_dataset`.
  Sets(Reader& reader, const char* key)
      : reader_(reader), key_(key), words_(words::find(words::table_of("axolotl").words, "datasets")->inner) {
    const Node* written = reader_.get(key);
    if (written == nullptr) return;
    if (written->is_string() && is_pretraining()) {
      Node set = Node::mapping(written->location());
      set.set("path", *written);
      lists_ = Node::sequence({std::move(set)});
    } else if (written->is_mapping() && is_pretraining()) {
      lists_ = Node::sequence({*written});
    } else if (written->is_sequence()) {
      lists_ = *written;
    } else {
      reader_.refuse(*written, key_, key_ + " must be a list of {path, type}",
                     "write " + key_ + ": [{path: FILE.jsonl, type: chat_template}]");
    }
    for (const Node& set : lists_.items()) made_.push_back(read(set, made_.size()));
  }

  /// One block; `part`: of each set, in fractions of what it has. Null without sets.
  Node joined(double begin, double end) const {
    std::vector<Node> sets;
    for (const auto& [set, part] : made_) {
      const double size = part.range.end - part.range.begin;
      sets.push_back(set);
      std::string split = text_of({part.range.begin + size * begin, part.range.begin + size * end});
      if (!part.split.empty()) split = part.split + (split.empty() ? "" : "[" + split + "]");
      if (!split.empty()) sets.back().set("split", Node::string(split));
    }
    return sets.empty() ? Node::null() : joined_sets(std::move(sets), "");
  }
  bool has_chat() const { return has_chat_; }

 private:
  bool is_pretraining() const { return key_ == "pretraining_dataset"; }
  bool is_streamed() const { return is_pretraining() || reader_.get("streaming") != nullptr; }
  bool has_pairs() const { return reader_.get("rl") != nullptr; }

  std::pair<Node, Part> read(const Node& set, std::size_t number) {
    prefix_ = key_ + "[" + std::to_string(number) + "].";
    words::Draft draft;
    draft.put("type", Node::string("jsonl"));
    if (!set.is_mapping() || set.find("path") == nullptr || !set.find("path")->is_string()) {
      reader_.refuse(set, key_, "a data set needs a path", "write {path: FILE.jsonl, type: chat_template}");
      return {draft.ordered(), {}};
    }
    reader_.read_block(set, words_, prefix_, draft);
    const Part part = take_split(set);
    draft.put("path", paths(set));
    if (const Node* name = set.find("name"); !part.split.empty() && name != nullptr && asks_for_something(*name)) {
      draft.put("subset", Node::string(name->scalar_text()));
    }
    take_form(set, draft);
    take_options(draft);
    return {draft.ordered(), part};
  }

  Part take_split(const Node& set) {
    const Node *written = set.find("split"), *files = set.find("data_files");
    const bool is_named = !is_local(set) && (files == nullptr || !asks_for_something(*files));
    if (written == nullptr || !asks_for_something(*written)) return {.range = {}, .split = is_named ? "train" : ""};
    const auto split = split_of(written->scalar_text());
    if (!split) {
      reader_.refuse(*written, prefix_ + "split", "the split " + core::quote(written->scalar_text()) + " is not read",
                     "write a part in percent, such as \"train[:10%]\"");
      return {};
    }
    if (split->first != "train" && is_local(set)) {
      reader_.refuse(*written, prefix_ + "split", "a file has no split " + core::quote(split->first),
                     "remove it, and name the file of the split in path");
    }
    return {.range = split->second, .split = is_named ? split->first : ""};
  }

  static bool names_file(const std::string& path) {
    static constexpr const char* kEndings[] = {".jsonl", ".json", ".gz", ".parquet", ".arrow"};
    return std::any_of(std::begin(kEndings), std::end(kEndings),
                       [&path](const char* ending) { return path.ends_with(ending); });
  }
  static bool is_local(const Node& set) {
    const std::string path = set.find("path")->as_string();
    std::error_code failed;
    const bool is_of_hub = std::count(path.begin(), path.end(), '/') == 1 && path.find('<') == std::string::npos;
    return names_file(path) || fs::exists(path, failed) || path.starts_with(".") || !is_of_hub || path.front() == '/';
  }

  /// Files here or in a data set of the Hub.
  Node paths(const Node& set) {
    const Node* files = set.find("data_files");
    std::vector<Node> found;
    if (files != nullptr && files->is_sequence()) {
      for (const Node& file : files->items()) found.push_back(Node::string(path_of(set, file.scalar_text())));
    }
    if (found.size() > 1) return Node::sequence(std::move(found));
    if (found.size() == 1) return found.front();
    return Node::string(path_of(set, files != nullptr && files->is_string() ? files->as_string() : ""));
  }

  std::string path_of(const Node& set, const std::string& file) {
    const std::string path = set.find("path")->as_string();
    std::error_code failed;
    if (fs::is_directory(path, failed)) return path + "/" + (file.empty() ? "*.jsonl" : file);
    if (lower(path) == "json" && !file.empty()) return file;
    if (is_local(set)) return !file.empty() && !names_file(path) ? file : path;
    const Node* revision = set.find("revision");
    const bool has_revision = revision != nullptr && asks_for_something(*revision);
    const std::string folder = "hf://datasets/" + path + (has_revision ? "@" + revision->scalar_text() : "");
    return file.empty() ? folder : folder + "/" + file;
  }

  /// Which fields a record has.
  void take_form(const Node& set, words::Draft& draft) {
    const Node* type = set.find("type");
    if (is_pretraining()) return take_texts(set, "text_column", draft);
    if (const Node* kind = reader_.get("rl")) {
      const std::string name = lower(kind->scalar_text());
      return name == "dpo" || name == "ipo" ? take_pair(set, draft) : void();  // another one is an error already
    }
    const std::string form = type != nullptr && type->is_string() ? lower(type->as_string()) : "";
    if (form == "completion" || form == "pretrain") {
      take_texts(set, "field", draft);
    } else if (form == "chat_template" || form.starts_with("sharegpt")) {
      take_messages(set, draft);
      take_chat_format(set, draft);
    } else if (type == nullptr || type->is_null() || (type->is_string() && form.empty())) {
      is_ids_ = true;  // tokenized before
      draft.put("type", Node::string("ids"));
    } else if (form != "alpaca") {
      refuse_form(set,
                  "write records of {prompt, completion}, {messages} or {text}; with them use type: "
                  "chat_template, alpaca or completion");
    }
  }

  void refuse_form(const Node& set, const char* hint) {
    const Node* type = set.find("type");
    const std::string form = type == nullptr ? "(none)" : type->is_string() ? type->as_string() : "{...}";
    reader_.refuse(type != nullptr ? *type : set, prefix_ + "type", "data sets of type " + form + " have no equivalent",
                   hint);
  }

  void take_texts(const Node& set, const char* key, words::Draft& draft) {
    const Node* field = set.find(key);
    if (field != nullptr && field->is_string() && field->as_string() != "text") draft.put("columns.text", *field);
    is_text_ = true;
    reader_.note(prefix_ + (set.find("type") != nullptr ? "type" : "path"), Kind::kChanged,
                 "a text longer than sequence_len is cut there, where Axolotl makes several of it");
  }

  void take_messages(const Node& set, words::Draft& draft) {
    const Node* field = set.find("field_messages");
    if (field != nullptr && field->is_string() && field->as_string() != "messages" &&
        field->as_string() != "conversations")
      draft.put("columns.messages", *field);
    check_messages(set);
  }

  /// Names within a message.
  void check_messages(const Node& set) {
    const Node *names = set.find("message_property_mappings"), *roles = set.find("roles");
    const auto refuse = [&](const Node& at, const char* key, const char* message, const char* hint) {
      reader_.refuse(at, prefix_ + key, message, hint);
    };
    if (names != nullptr && names->is_mapping()) {
      for (const Node::Entry& entry : names->entries()) {
        const std::string field = entry.value.scalar_text();
        const bool is_usual = (entry.key == "role" && (field == "role" || field == "from")) ||
                              (entry.key == "content" && (field == "content" || field == "value"));
        if (is_usual) continue;
        refuse(entry.value, "message_property_mappings", "messages have `role` and `content`, or `from` and `value`",
               "rename the fields in the data, and remove the key");
      }
    }
    if (roles == nullptr || !roles->is_mapping()) return;
    for (const Node::Entry& entry : roles->entries()) {
      for (const Node& source : entry.value.items()) {
        const std::string name = source.scalar_text();
        const bool is_usual = name == entry.key || (entry.key == "user" && name == "human") ||
                              (entry.key == "assistant" && name == "gpt");
        if (!is_usual)
          refuse(source, "roles", "roles are user or human, assistant or gpt, and system",
                 "rename the role in the data, and remove the key");
      }
    }
  }

  /// Fields of preferences.
  void take_pair(const Node& set, words::Draft& draft) {
    const Node* type = set.find("type");
    const bool is_own = type != nullptr && type->is_mapping();
    const std::string form = type != nullptr && type->is_string() ? lower(type->as_string()) : "";
    const bool is_chat = form == "chat_template.default";
    bool has_format = false;
    for (const char* key : {"prompt_format", "chosen_format", "rejected_format", "field_system"})
      has_format = has_format || (is_own && type->find(key) != nullptr && asks_for_something(*type->find(key)));
    if ((!is_chat && !is_own && form != "user_defined.default") || has_format) {
      return refuse_form(set, "write records of {prompt, chosen, rejected}; with them use type: user_defined.default");
    }
    for (const auto& [name, key, usual] :
         {std::array{"prompt", is_chat ? "field_messages" : "field_prompt", is_chat ? "messages" : "prompt"},
          {"chosen", "field_chosen", "chosen"},
          {"rejected", "field_rejected", "rejected"}}) {
      const Node* field = (is_own ? *type : set).find(key);
      draft.put(std::string("columns.") + name, field != nullptr && field->is_string() ? *field : Node::string(usual));
    }
    if (!is_chat) return;
    check_messages(set);
    take_chat_format(set, draft);
  }

  void take_chat_format(const Node& set, words::Draft& draft) {
    has_chat_ = true;
    const words::Word& word = *words::find(words_, "chat_template");
    const Node* own = set.find("chat_template");
    const bool is_own = own != nullptr && asks_for_something(*own);
    const Node* written = is_own ? own : reader_.get("chat_template");
    if (written == nullptr) return;  // the model's own
    const words::Outcome outcome = reader_.outcome_of(word, *written);
    if (outcome.is_fatal && !is_own) {
      return reader_.refuse(*written, "chat_template",
                            "chat_template " + core::escape_for_terminal(written->scalar_text()) +
                                (outcome.kind == Kind::kPlanned ? " is not supported yet" : " has no equivalent") +
                                (outcome.text.empty() ? "" : ": " + outcome.text),
                            outcome.instead);
    }
    if (!is_own && outcome.kind != Kind::kTaken) reader_.note("chat_template", outcome.kind, outcome.text);
    if (outcome.value) draft.put("chat_format", *outcome.value);
  }

  /// What is said of all sets.
  void take_options(words::Draft& draft) {
    const Node* length = reader_.get("sequence_len");
    if (key_ == "test_datasets" && reader_.get("eval_sequence_len") != nullptr)
      length = reader_.get("eval_sequence_len");
    draft.put("max_seq_len", length != nullptr ? *length : Node::integer(512));
    const Node* strategy = reader_.get("excess_length_strategy");
    const words::Word& word = *words::find(words::table_of("axolotl").words, "excess_length_strategy");
    const words::Outcome outcome = strategy != nullptr ? reader_.outcome_of(word, *strategy) : words::Outcome{};
    draft.put("too_long", is_text_ ? Node::string("cut") : outcome.value ? *outcome.value : Node::string("drop"));
    if (reader_.get("sample_packing") != nullptr && !has_pairs()) draft.put("packing", Node::boolean(true));
    if (reader_.get("train_on_inputs") != nullptr && !has_pairs() && !is_ids_)
      draft.put("loss_on", Node::string("all"));
    if (const Node* multiple = reader_.get("pad_to_multiple_of")) draft.put("pad_to_multiple_of", *multiple);
    if (is_streamed() && key_ != "test_datasets" && !is_ids_) draft.put("streaming", Node::boolean(true));
    is_text_ = is_ids_ = false;
  }

  Reader& reader_;
  std::string key_, prefix_;
  const std::vector<words::Word>& words_;
  Node lists_ = Node::sequence();
  std::vector<std::pair<Node, Part>> made_;
  bool has_chat_ = false, is_text_ = false, is_ids_ = false;
};

/// val_set_size.
std::optional<double> part_held_out(Reader& reader) {
  const Node* part = reader.get("val_set_size");
  if (part == nullptr || (part->is_number() && part->as_double() == 0)) return std::nullopt;
  if (part->is_number() && part->as_double() > 0 && part->as_double() < 1) return part->as_double();
  reader.refuse(*part, "val_set_size", "val_set_size is " + part->scalar_text() + ", a number of records",
                "write a part of them, such as val_set_size: 0.05");
  return std::nullopt;
}

}  // namespace

void take_axolotl_data(Reader& reader) {
  if (reader.get("base_model") == nullptr) return;
  const bool pretrains = reader.get("pretraining_dataset") != nullptr;
  if (reader.get("datasets") == nullptr && !pretrains) {
    return reader.refuse(reader.config(), "datasets", "datasets must be a list of {path, type}",
                         "write datasets: [{path: FILE.jsonl, type: chat_template}]");
  }
  const Sets train(reader, pretrains ? "pretraining_dataset" : "datasets"), tests(reader, "test_datasets");
  const bool is_streamed = pretrains || reader.get("streaming") != nullptr;
  std::optional<double> part;
  if (reader.get("test_datasets") == nullptr && !is_streamed) part = part_held_out(reader);
  if (is_streamed) reader.note("val_set_size", Kind::kNoEffect, "a stream has no part to hold out");
  if (Node set = train.joined(0, 1 - part.value_or(0)); !set.is_null())
    reader.draft().put("data.train", std::move(set));
  if (part) reader.draft().put("data.val", train.joined(1 - *part, 1));
  if (Node set = tests.joined(0, 1); !set.is_null()) reader.draft().put("data.val", std::move(set));
  if (!train.has_chat() && !tests.has_chat())
    reader.note("chat_template", Kind::kNoEffect, "no data set is written in a chat format");
  const Node* steps = reader.get("max_steps");
  if (is_streamed && steps == nullptr) {
    reader.refuse(*reader.get(pretrains ? "pretraining_dataset" : "streaming"), "streaming",
                  "a stream has no end, and max_steps is not there", "write max_steps");
  }
}

}  // namespace runner::cli
