#include "runner/cli/group/import/axolotl_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/axolotl_prompt.h"
#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/local_files.h"
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

/// A part of the records, in percent or by their number; the end of a number may be open.
struct Range {
  double begin = 0, end = 100;
  bool is_number = false;

  bool has_end() const { return !is_number || end > 0; }
};

/// Which records of a set count; `split`: of a data set of the Hub its name, "" of files and folders.
struct Part {
  Range range;
  std::string split = {};
  std::string of_folder = {};  ///< of a folder that is here the name of the split
};

/// One side of a range, with or without `%`; "" leaves the number as it is.
bool read_side(std::string_view part, bool is_number, double& number) {
  if (part.empty()) return true;
  if (part.ends_with('%') == is_number) return false;
  const char* const end = part.data() + part.size() - (is_number ? 0 : 1);
  const auto [at, error] = std::from_chars(part.data(), end, number);
  const bool is_whole = number == std::floor(number);
  return error == std::errc{} && at == end && number >= 0 && (is_number ? is_whole : number <= 100);
}

/// `train[:20%]` or `train[:1000]`: the name of a split and the part of it. Nothing for what is neither.
std::optional<std::pair<std::string, Range>> split_of(const std::string& text) {
  const std::size_t bracket = text.find('[');
  if (bracket == std::string::npos) return std::pair{text, Range{}};
  const std::string_view inside = std::string_view(text).substr(bracket + 1);
  const std::size_t colon = inside.find(':');
  if (colon == std::string_view::npos || !inside.ends_with("]")) return std::nullopt;
  Range range;
  range.is_number = inside.size() > 2 && inside.find('%') == std::string_view::npos;
  if (range.is_number) range.end = 0;
  const bool is_good = read_side(inside.substr(0, colon), range.is_number, range.begin) &&
                       read_side(inside.substr(colon + 1, inside.size() - colon - 2), range.is_number, range.end) &&
                       (range.begin < range.end || !range.has_end());
  return is_good ? std::optional(std::pair{text.substr(0, bracket), range}) : std::nullopt;
}

/// As `split` of a data set has it; "" for all.
std::string text_of(const Range& range) {
  if (range.is_number) {
    const std::string begin = range.begin > 0 ? core::number_text(range.begin) : "";
    return "[" + begin + ":" + (range.has_end() ? core::number_text(range.end) : "") + "]";
  }
  const std::string begin = range.begin > 0 ? percent_of(range.begin / 100) : "";
  const std::string end = range.end < 100 ? percent_of(range.end / 100) : "";
  return begin.empty() && end.empty() ? "" : begin + ":" + end;
}

/// Records of preferences, by the `type` that says how Axolotl reads them.
struct PairForm {
  enum class Prompt { kText, kMessages, kInConversations };
  const char* type;
  Prompt prompt;
  const char* chat_format = "";  ///< roux's, where the type says it; else that of the set
};
constexpr PairForm kPairForms[] = {
    {"user_defined.default", PairForm::Prompt::kText},
    {"passthrough.default", PairForm::Prompt::kText},
    {"chat_template.default", PairForm::Prompt::kMessages},
    {"chat_template.argilla_chat", PairForm::Prompt::kInConversations},
    {"chat_template.argilla", PairForm::Prompt::kInConversations},
    {"chatml.argilla_chat", PairForm::Prompt::kInConversations, "chatml"},
    {"chatml.ultra", PairForm::Prompt::kInConversations, "chatml"},
    {"llama3.argilla_chat", PairForm::Prompt::kInConversations, "llama3"},
    {"llama3.ultra", PairForm::Prompt::kInConversations, "llama3"},
};

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

  /// One block; from `begin` to `end` of each set, in fractions of what it has. Null without sets.
  Node joined(double begin, double end) const {
    std::vector<Node> sets;
    for (const auto& [set, part] : made_) {
      Range range = part.range;
      if (begin > 0 || end < 1) {
        const double size = range.end - range.begin;
        range.end = rounded(range.begin + size * end, range);
        range.begin = rounded(range.begin + size * begin, range);
      }
      sets.push_back(with_split(set, part, text_of(range)));
    }
    return sets.empty() ? Node::null() : joined_sets(std::move(sets));
  }
  /// Of the only set the last `count` records, or all but these.
  Node slice(std::int64_t count, bool is_end) const {
    const std::string border = "-" + std::to_string(count);
    const auto& [set, part] = made_.front();
    return with_split(set, part, is_end ? "[" + border + ":]" : "[:" + border + "]");
  }
  /// Whether `slice` can be made.
  bool is_one_whole() const {
    return made_.size() == 1 && made_[0].second.range.begin == 0 && made_[0].second.range.end == 100;
  }
  /// Whether a fraction of each can be.
  bool have_ends() const {
    return std::all_of(made_.begin(), made_.end(), [](const auto& one) { return one.second.range.has_end(); });
  }
  std::size_t size() const { return made_.size(); }
  bool has_chat() const { return has_chat_; }
  bool has_variables() const { return has_variables_; }

 private:
  static double rounded(double border, const Range& range) { return range.is_number ? std::round(border) : border; }
  /// `range`: as text_of() writes one.
  static Node with_split(Node set, const Part& part, std::string range) {
    if (!part.split.empty() && !range.empty() && range.front() != '[') range = "[" + range + "]";
    if (const std::string split = part.split + range; !split.empty()) set.set("split", Node::string(split));
    return set;
  }

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
    draft.put("path", paths(set, part));
    if (const Node* name = set.find("name"); !part.split.empty() && name != nullptr && asks_for_something(*name)) {
      draft.put("subset", Node::string(name->scalar_text()));
    }
    take_form(set, draft);
    if (!is_chat_)
      reader_.note(prefix_ + "conversation", Kind::kNoEffect, "it says how messages are written, and here are none");
    take_options(draft);
    return {draft.ordered(), part};
  }

  /// The split that Axolotl reads where none is written.
  const char* usual_split() const { return key_ == "test_datasets" ? "test" : "train"; }
  /// Whether a stream reads it where none is written; no part of a stream can be.
  bool is_usual(const std::string& split) const { return split == "train" && is_streamed() && key_ != "test_datasets"; }

  Part take_split(const Node& set) {
    const Node* written = asked(set, "split");
    const bool has_files = asked(set, "data_files") != nullptr;
    const bool is_named = !is_local(set) && !has_files, is_split_folder = is_folder(set) && !has_files;
    if (written == nullptr) {
      const std::string usual = usual_split();
      return {
          .range = {}, .split = is_named && !is_usual(usual) ? usual : "", .of_folder = is_split_folder ? usual : ""};
    }
    const auto split = split_of(written->scalar_text());
    if (!split) {
      reader_.refuse(*written, prefix_ + "split", "the split " + core::quote(written->scalar_text()) + " is not read",
                     "write a part such as \"train[:10%]\" or \"train[:1000]\"");
      return {};
    }
    if (split->first != "train" && is_local(set) && !is_split_folder) {
      reader_.refuse(*written, prefix_ + "split", "a file has no split " + core::quote(split->first),
                     "remove it, and name the file of the split in path");
    }
    const bool is_part = !text_of(split->second).empty();
    if (is_streamed() && key_ != "test_datasets" && (is_part || (is_named && split->first != "train"))) {
      reader_.refuse(*written, prefix_ + "split",
                     "the split " + core::quote(written->scalar_text()) + " of a stream is not read",
                     "remove it: a stream is that of train, whole");
    }
    return {.range = split->second,
            .split = is_named && !is_usual(split->first) ? split->first : "",
            .of_folder = is_split_folder ? split->first : ""};
  }

  static bool is_folder(const Node& set) {
    std::error_code failed;
    return fs::is_directory(set.find("path")->as_string(), failed);
  }
  static bool names_file(const std::string& path) {
    static constexpr const char* kEndings[] = {".jsonl", ".json", ".gz", ".zst", ".parquet", ".arrow"};
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
  Node paths(const Node& set, const Part& part) {
    const Node* files = set.find("data_files");
    std::vector<Node> found;
    if (files != nullptr && files->is_sequence()) {
      for (const Node& file : files->items()) found.push_back(Node::string(path_of(set, file.scalar_text())));
    }
    if (found.size() > 1) return Node::sequence(std::move(found));
    if (found.size() == 1) return found.front();
    if (!part.of_folder.empty()) return files_of(set, part);
    return Node::string(path_of(set, files != nullptr && files->is_string() ? files->as_string() : ""));
  }

  /// Those of a split of a folder that is here.
  Node files_of(const Node& set, const Part& part) {
    const Node& path = *set.find("path");
    const Node* name = asked(set, "name");
    auto files = files_of_split(path.as_string(), name != nullptr ? name->scalar_text() : "", part.of_folder);
    if (files && !hub::reads("jsonl", files.value().kind)) {
      files = core::Failure{path.as_string() + " holds " + hub::words_of(files.value().kind),
                            "write their records into files of .jsonl, and name these"};
    }
    if (!files) {
      reader_.refuse(path, prefix_ + "path", files.failure().message, files.failure().hint);
      return path;
    }
    Node node = files.value().node();
    if (node.is_sequence()) {
      reader_.note(prefix_ + "path", Kind::kTaken,
                   "data.train.path: the " + std::to_string(node.items().size()) + " files of " + part.of_folder);
    } else {
      reader_.note(prefix_ + "path", Kind::kTaken, "data.train.path: " + node.as_string());
    }
    reader_.note(prefix_ + "split", Kind::kTaken,
                 text_of(part.range).empty() ? "data.train.path" : "data.train.path, data.train.split");
    return node;
  }

  std::string path_of(const Node& set, const std::string& file) {
    const std::string path = set.find("path")->as_string();
    if (is_folder(set)) return path + "/" + file;
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
    for (const char* key : {"reward_model", "process_reward_model"}) {
      if (reader_.get(key) != nullptr) return;  // an error already
    }
    if (is_pretraining()) return take_texts(set, "text_column", draft);
    if (const Node* kind = reader_.get("rl")) {
      const words::Word& word = *words::find(words::table_of("axolotl").words, "rl");
      const bool is_taken = reader_.outcome_of(word, *kind).kind == Kind::kTaken;
      if (!is_taken) return;  // an error already
      return lower(kind->scalar_text()) == "kto" ? take_labelled(set, draft) : take_pair(set, draft);
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
    } else if (form == "alpaca") {
      take_instruction_names(set, draft);
      if (asked(set, "field_system") != nullptr)
        reader_.note(prefix_ + "field_system", Kind::kNoEffect, "type: alpaca reads no system message");
    } else if (type->is_mapping()) {
      take_own_prompt(set, *type, draft);
    } else {
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

  /// Alpaca's fields, where they have names of their own.
  void take_instruction_names(const Node& names, words::Draft& draft) {
    for (const auto& [key, column] :
         {std::pair{"field_instruction", "instruction"}, {"field_input", "input"}, {"field_output", "output"}}) {
      const Node* field = asked(names, key);
      if (field != nullptr && field->scalar_text() != column) draft.put(std::string("columns.") + column, *field);
    }
  }

  /// `type: {field_instruction: FIELD, format: TEXT, ...}`: a prompt around an instruction, which is a chat format for
  /// a conversation of one turn.
  void take_own_prompt(const Node& set, const Node& type, words::Draft& draft) {
    const core::Result<Node> format = format_of_prompt(type);
    if (!format) {
      const Node* at = asked(type, "format");
      return reader_.refuse(at != nullptr ? *at : *set.find("type"), prefix_ + "type", format.failure().message,
                            format.failure().hint);
    }
    take_instruction_names(type, draft);
    draft.put("chat_format", format.value());
    reader_.note(prefix_ + "type", Kind::kChanged,
                 "data.train.columns and chat_format; an input stands behind its instruction in a line of its own, and "
                 "a tokenizer without a begin token needs chat_format without begin");
  }

  void take_texts(const Node& set, const char* key, words::Draft& draft) {
    const Node* field = set.find(key);
    if (field != nullptr && field->is_string() && field->as_string() != "text") draft.put("columns.text", *field);
    is_text_ = true;
    reader_.note(prefix_ + (set.find("type") != nullptr ? "type" : "path"), Kind::kChanged,
                 "a text longer than sequence_len is cut there, where Axolotl makes several of it");
  }

  void take_messages(const Node& set, words::Draft& draft) {
    const Node* field = asked(set, "field_messages");
    if (field == nullptr && !is_share_gpt(set)) draft.put("columns.messages", Node::string("messages"));
    if (field != nullptr) draft.put("columns.messages", *field);
    take_names(set, draft);
    take_system_and_tools(set, draft);
    take_learnt(set, draft);
  }

  static bool is_share_gpt(const Node& set) {
    const Node* type = set.find("type");
    return type != nullptr && type->is_string() && lower(type->as_string()).starts_with("sharegpt");
  }

  static const Node* asked(const Node& set, const char* key) {
    const Node* value = set.find(key);
    return value != nullptr && asks_for_something(*value) ? value : nullptr;
  }

  /// Names within a message.
  void take_names(const Node& set, words::Draft& draft) {
    const auto is_usual = [](const std::string& key, const std::string& field) {
      return (key == "role" && (field == "role" || field == "from")) ||
             (key == "content" && (field == "content" || field == "value"));
    };
    for (const auto& [key, column] : {std::pair{"message_field_role", "role"}, {"message_field_content", "content"}}) {
      const Node* field = asked(set, key);
      if (field != nullptr && !is_usual(column, field->scalar_text()))
        draft.put(std::string("columns.") + column, *field);
    }
    if (const Node* names = asked(set, "message_property_mappings"); names != nullptr && names->is_mapping()) {
      for (const Node::Entry& entry : names->entries()) {
        const std::string field = entry.value.scalar_text();
        if (is_usual(entry.key, field)) continue;
        if (entry.key == "role" || entry.key == "content") {
          draft.put("columns." + entry.key, entry.value);
        } else if (field != entry.key && !(is_reasoning(entry.key) && is_reasoning(field))) {
          reader_.refuse(entry.value, prefix_ + "message_property_mappings",
                         entry.key + " of a message is read from the field of its own name",
                         "rename " + core::quote(field) + " to " + core::quote(entry.key) + " in the data");
        }
      }
    }
    take_roles(set, draft);
  }

  /// What a message's reasoning is called, which is one field.
  bool is_reasoning(const std::string& field) const {
    return words::listed(*words::find(words_, "field_thinking"), field) != nullptr;
  }

  void take_roles(const Node& set, words::Draft& draft) {
    const Node* roles = asked(set, "roles");
    if (roles == nullptr || !roles->is_mapping()) return;
    for (const Node::Entry& entry : roles->entries()) {
      std::vector<Node> own;
      for (const Node& source : words::items_of(entry.value)) {
        const std::string name = source.scalar_text();
        const bool is_usual = name == entry.key || (entry.key == "user" && name == "human") ||
                              (entry.key == "assistant" && name == "gpt");
        if (!is_usual) own.push_back(source);
      }
      static constexpr const char* kRoles[] = {"system", "user", "assistant", "tool"};
      if (std::find(std::begin(kRoles), std::end(kRoles), entry.key) != std::end(kRoles)) {
        if (!own.empty()) draft.put("roles." + entry.key, Node::sequence(std::move(own)));
      } else if (!own.empty()) {
        reader_.refuse(entry.value, prefix_ + "roles", "there is no role " + core::quote(entry.key),
                       "the roles are system, user, assistant and tool");
      }
    }
  }

  void take_system_and_tools(const Node& set, words::Draft& draft) {
    for (const auto& [key, column] : {std::pair{"field_system", "system"}, {"field_tools", "tools"}}) {
      const Node* field = asked(set, key);
      if (field != nullptr && field->scalar_text() != column) draft.put(std::string("columns.") + column, *field);
    }
  }

  /// Which tokens of a conversation count.
  void take_learnt(const Node& set, words::Draft& draft) {
    const Node *roles = set.find("roles_to_train"), *eot = asked(set, "train_on_eot"),
               *eos = asked(set, "train_on_eos");
    if (roles != nullptr && roles->is_sequence() && roles->items().empty()) {
      reader_.refuse(*roles, prefix_ + "roles_to_train",
                     "roles_to_train names no role: messages are learnt only where they are marked",
                     "remove it, and mark the answers that are not learnt with `training: false`");
    }
    if (eot != nullptr && eos != nullptr && lower(eot->scalar_text()) != lower(eos->scalar_text())) {
      return reader_.refuse(*eot, prefix_ + "train_on_eot",
                            "train_on_eot and train_on_eos differ, and the chat format says which token ends a turn",
                            "keep train_on_eot");
    }
    const Node* ends = eot != nullptr ? eot : eos;
    if (ends == nullptr || reader_.get("train_on_inputs") != nullptr) return;  // then all tokens are learnt
    const words::Outcome outcome = reader_.outcome_of(*words::find(words_, "train_on_eos"), *ends);
    if (outcome.value) draft.put("train_on_eos", *outcome.value);
  }

  /// Fields of preferences.
  void take_pair(const Node& set, words::Draft& draft) {
    const Node* type = set.find("type");
    const bool is_own = type != nullptr && type->is_mapping();
    std::string form = type != nullptr && type->is_string() ? lower(type->as_string()) : "";
    if (form.find('.') == std::string::npos) form += ".default";
    const PairForm* known = std::find_if(std::begin(kPairForms), std::end(kPairForms),
                                         [&](const PairForm& one) { return form == one.type; });
    if (is_own) known = std::begin(kPairForms);
    bool has_format = false;
    for (const char* key : {"prompt_format", "chosen_format", "rejected_format"})
      has_format = has_format || (is_own && asked(*type, key) != nullptr);
    if (known == std::end(kPairForms) || has_format) {
      return refuse_form(set,
                         "write records of {prompt, chosen, rejected}; with messages in them use type: "
                         "chat_template.default, with texts user_defined.default");
    }
    const Node& names = is_own ? *type : set;
    const auto put = [&](const char* column, const char* key, const char* usual) {
      const Node* field = asked(names, key);
      draft.put(std::string("columns.") + column, field != nullptr ? *field : Node::string(usual));
    };
    if (known->prompt == PairForm::Prompt::kText) put("prompt", "field_prompt", "prompt");
    if (known->prompt == PairForm::Prompt::kMessages) put("prompt", "field_messages", "messages");
    put("chosen", "field_chosen", "chosen");
    put("rejected", "field_rejected", "rejected");
    if (known->prompt == PairForm::Prompt::kText) return;
    take_names(set, draft);
    if (known->chat_format[0] == '\0') return take_chat_format(set, draft);
    draft.put("chat_format", Node::string(known->chat_format));
  }

  /// Fields of labelled records: texts, or a conversation.
  void take_labelled(const Node& set, words::Draft& draft) {
    const Node* type = set.find("type");
    const std::string form = type != nullptr && type->is_string() ? lower(type->as_string()) : "";
    for (const auto& [name, format] : {std::pair{"chatml.argilla_chat", "chatml"}, {"llama3.argilla_chat", "llama3"}}) {
      if (form != name) continue;
      draft.put("columns.messages", Node::string("completion"));
      return draft.put("chat_format", Node::string(format));
    }
    const bool is_own = type != nullptr && type->is_mapping();
    bool has_format = false;
    for (const auto& [key, usual] : {std::pair{"prompt_format", "{prompt}"}, {"completion_format", "{completion}"}}) {
      const Node* format = is_own ? asked(*type, key) : nullptr;
      has_format = has_format || (format != nullptr && format->scalar_text() != usual);
    }
    if (!is_own || has_format) {
      return refuse_form(
          set,
          "write records of {prompt, completion, label} as whole texts, with type: {field_prompt: prompt}; "
          "or {completion, label} with the messages in completion, and type: llama3.argilla_chat");
    }
    for (const auto& [key, column] :
         {std::pair{"field_prompt", "prompt"}, {"field_completion", "completion"}, {"field_label", "label"}}) {
      const Node* field = asked(*type, key);
      if (field != nullptr && field->scalar_text() != column) draft.put(std::string("columns.") + column, *field);
    }
  }

  void take_chat_format(const Node& set, words::Draft& draft) {
    has_chat_ = is_chat_ = true;
    const Node* own = asked(set, "chat_template");
    if (const Node* conversation = asked(set, "conversation")) {
      const words::Outcome outcome = reader_.outcome_of(*words::find(words_, "conversation"), *conversation);
      if (own == nullptr) return put_format(outcome.value ? *outcome.value : Node::null(), draft);
      reader_.note(prefix_ + "conversation", Kind::kNoEffect, "chat_template of the set says it");
    }
    const words::Word& word = *words::find(words_, "chat_template");
    const Node* written = own != nullptr ? own : reader_.get("chat_template");
    const Node* text = own != nullptr ? asked(set, "chat_template_jinja") : reader_.get("chat_template_jinja");
    if (written == nullptr && text == nullptr) return put_format(Node::null(), draft);  // the model's own
    if (written == nullptr || lower(written->scalar_text()) == "jinja") {
      return take_template(own != nullptr ? set : reader_.config(), own != nullptr ? prefix_ : "", text, draft);
    }
    const words::Outcome outcome = reader_.outcome_of(word, *written);
    if (outcome.is_fatal && own == nullptr) {
      return reader_.refuse(*written, "chat_template",
                            "chat_template " + core::escape_for_terminal(written->scalar_text()) +
                                (outcome.kind == Kind::kPlanned ? " is not supported yet" : " has no equivalent") +
                                (outcome.text.empty() ? "" : ": " + outcome.text),
                            outcome.instead);
    }
    if (own == nullptr && outcome.kind != Kind::kTaken) reader_.note("chat_template", outcome.kind, outcome.text);
    put_format(outcome.value ? *outcome.value : Node::null(), draft);
  }

  /// `chat_template_jinja`: the file of a template, or its text.
  void take_template(const Node& holder, const std::string& prefix, const Node* text, words::Draft& draft) {
    const std::string key = prefix + "chat_template_jinja";
    if (text == nullptr) {
      return reader_.refuse(holder, prefix + "chat_template", "chat_template jinja needs chat_template_jinja",
                            "write chat_template_jinja: FILE");
    }
    if (text->scalar_text().find_first_of("{\n") != std::string::npos) {
      return reader_.refuse(*text, key, "chat_template_jinja is the text of a template, and roux reads its file",
                            "write the text into a file, and chat_template_jinja: FILE");
    }
    Node format = Node::mapping();
    format.set("template", *text);
    put_format(std::move(format), draft);
  }

  /// With the variables that templates get; null: the model's own.
  void put_format(Node format, words::Draft& draft) {
    const Node* variables = reader_.get("chat_template_kwargs");
    const bool is_template = format.is_null() || (format.is_mapping() && format.find("template") != nullptr);
    if (is_template && variables != nullptr && variables->is_mapping()) {
      if (format.is_null()) format = Node::mapping();
      format.set("variables", *variables);
      has_variables_ = true;
    }
    if (!format.is_null()) draft.put("chat_format", std::move(format));
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
    if (const Node* inputs = reader_.get("train_on_inputs"); inputs != nullptr && !has_pairs() && !is_ids_) {
      if (is_chat_) {
        reader_.refuse(*inputs, "train_on_inputs",
                       "train_on_inputs learns what all messages of a chat say, and not what its chat format writes "
                       "before them",
                       "remove it, and write loss_on: all into the recipe's sets to learn every token");
      }
      draft.put("loss_on", Node::string("all"));
    }
    if (const Node* multiple = reader_.get("pad_to_multiple_of")) draft.put("pad_to_multiple_of", *multiple);
    if (is_streamed() && key_ != "test_datasets" && !is_ids_) draft.put("streaming", Node::boolean(true));
    is_text_ = is_ids_ = is_chat_ = false;
  }

  Reader& reader_;
  std::string key_, prefix_;
  const std::vector<words::Word>& words_;
  Node lists_ = Node::sequence();
  std::vector<std::pair<Node, Part>> made_;
  bool has_chat_ = false, has_variables_ = false, is_text_ = false, is_ids_ = false, is_chat_ = false;
};

/// val_set_size, a fraction or a number of records; 0 for none.
double part_held_out(Reader& reader, const Sets& train) {
  const Node* part = reader.get("val_set_size");
  if (part == nullptr || (part->is_number() && part->as_double() == 0)) return 0;
  const double size = part->is_number() ? part->as_double() : -1;
  const bool is_number = size >= 1 && size == std::floor(size) && size < 1e9;
  if ((is_number && train.is_one_whole()) || (size > 0 && size < 1 && train.have_ends())) return size;
  const std::string what = "val_set_size is " + part->scalar_text();
  if (is_number) {
    reader.refuse(*part, "val_set_size", what + ", a number of records, which is taken of one whole set alone",
                  "write a part of them, such as val_set_size: 0.05");
  } else if (size > 0 && size < 1) {
    reader.refuse(*part, "val_set_size", what + ", a part of a split whose end is open",
                  "write the end of the split, such as train[1000:5000]");
  } else {
    reader.refuse(*part, "val_set_size", what + ", neither a part nor a number of records",
                  "write a part of them, such as val_set_size: 0.05");
  }
  return 0;
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
  if (const Node* kind = reader.get("rl"); kind != nullptr && is_streamed && lower(kind->scalar_text()) == "kto") {
    const char* key = pretrains ? "pretraining_dataset" : "streaming";
    refuse_stream_of_labels(reader, *reader.get(key), key);
  }
  if (is_streamed && train.size() > 1) {
    const Node& sets = *reader.get(pretrains ? "pretraining_dataset" : "datasets");
    if (pretrains || reader.get("sample_packing") != nullptr) {
      reader.diagnostics().warning(sets.location(),
                                   "of several sets that are packed as a stream Axolotl reads the first, and the "
                                   "recipe reads all",
                                   "remove the others, or write their shares as `weights` into data.train");
    }
  }
  const double part = reader.get("test_datasets") == nullptr && !is_streamed ? part_held_out(reader, train) : 0;
  if (is_streamed) reader.note("val_set_size", Kind::kNoEffect, "a stream has no part to hold out");
  if (part > 0) reader.note("val_set_size", Kind::kChanged, kHeldOutText);
  if (part >= 1) {
    reader.draft().put("data.train", train.slice(static_cast<std::int64_t>(part), false));
    reader.draft().put("data.val", train.slice(static_cast<std::int64_t>(part), true));
  } else if (Node set = train.joined(0, 1 - part); !set.is_null()) {
    reader.draft().put("data.train", std::move(set));
    if (part > 0) reader.draft().put("data.val", train.joined(1 - part, 1));
  }
  if (Node set = tests.joined(0, 1); !set.is_null()) reader.draft().put("data.val", std::move(set));
  if (!train.has_chat() && !tests.has_chat())
    reader.note("chat_template", Kind::kNoEffect, "no data set is written in a chat format");
  if (!train.has_variables() && !tests.has_variables())
    reader.note("chat_template_kwargs", Kind::kNoEffect, "no chat format of a data set reads variables");
  const Node* steps = reader.get("max_steps");
  if (is_streamed && steps == nullptr) {
    reader.refuse(*reader.get(pretrains ? "pretraining_dataset" : "streaming"), "streaming",
                  "a stream has no end, and max_steps is not there", "write max_steps");
  }
}

}  // namespace runner::cli
