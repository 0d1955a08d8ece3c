#include "runner/cli/group/import/trainer_data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::Node;
using words::Reader;
using Kind = words::Outcome::Kind;

constexpr std::size_t kFirstLineMax = 1U << 20U;

/// A key of the configuration and its value; no key for a set that is none.
struct Named {
  std::string key;
  const Node* value = nullptr;
};

Named first_of(const Reader& reader, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const Node* value = reader.get(key)) return {key, value};
  }
  return {};
}

class Sets {
 public:
  Sets(Reader& reader, const TrainerMethod& method) : reader_(reader), method_(method) {}

  Node of_file(const Named& named) {
    const std::string path = named.value->scalar_text();
    Node made = Node::mapping(named.value->location());
    const bool has_records = is_record_file(path);
    if (!has_records && !path.ends_with(".txt")) {
      reader_.refuse(*named.value, named.key, path + " is neither text nor records",
                     "write a file of .txt, .jsonl or .parquet");
    }
    made.set("type", Node::string(has_records ? "jsonl" : "text"));
    const RecordForm form = has_records ? form_of(path) : RecordForm::kText;
    made.set("path",
             Node::string(form == RecordForm::kArray ? lines_of_array(reader_, *named.value, named.key, path) : path));
    add_options(made, form, has_records, named.key);
    return made;
  }

  /// A name of the Hub, or a folder or file here.
  Node of_name(const std::string& key, const Node& name, const Node* subset, const Node* split) {
    const std::string text = name.scalar_text();
    std::error_code failed;
    if (is_record_file(text)) return of_file({key, &name});
    Node made = Node::mapping(name.location());
    made.set("type", Node::string("jsonl"));
    const auto said = [](const Node* value) {
      return value != nullptr && words::asks_for_something(*value) ? value->scalar_text() : std::string();
    };
    if (fs::is_directory(text, failed)) {
      made.set("path", Node::string(text + "/*.jsonl"));
    } else {
      const std::string part = said(split);
      name_data_set(text, said(subset), part.empty() ? "train" : part, made);
    }
    add_options(made, RecordForm::kUnknown, true, key);
    return made;
  }

  /// One of TRL's `datasets`.
  Node of_block(const Node& block, std::size_t number) {
    const std::string prefix = "datasets[" + std::to_string(number) + "].";
    const Node* path = block.is_mapping() ? block.find("path") : nullptr;
    if (path == nullptr || !path->is_string()) {
      reader_.refuse(block, "datasets", "a data set needs a path", "write {path: OWNER/NAME}");
      return Node::mapping();
    }
    words::Draft none;
    reader_.read_block(block, words::find(words::table_of("trl").words, "datasets")->inner, prefix, none);
    const Node* files = block.find("data_files");
    if (files != nullptr && files->is_string()) return of_file({prefix + "data_files", files});
    return of_name(prefix + "path", *path, block.find("name"), block.find("split"));
  }

 private:
  bool is_of_text() const { return method_.tool == TrainerMethod::Tool::kTrainer; }

  void add_options(Node& made, RecordForm form, bool has_records, const std::string& key) {
    const Node* field = reader_.get("dataset_text_field");
    if (has_records && field != nullptr && field->scalar_text() != "text") {
      Node columns = Node::mapping();
      columns.set("text", *field);
      made.set("columns", std::move(columns));
    }
    // Of TRL null is no limit; 1024 is its default, and run_clm.py's.
    const Node* length = first_of(reader_, {"block_size", "max_seq_length", "max_length"}).value;
    const Node* written = reader_.config().find("max_length");
    const bool is_unlimited = method_.is_trl() && written != nullptr && written->is_null();
    if (length != nullptr) {
      made.set("max_seq_len", *length);
    } else if (!is_unlimited && (!has_records || method_.is_trl())) {
      made.set("max_seq_len", Node::integer(1024));
    }
    if (!has_records) return;
    if (reader_.get("packing") != nullptr && !method_.is_dpo) made.set("packing", Node::boolean(true));
    add_loss(made, form, key);
    if (first_of(reader_, {"streaming", "dataset_streaming"}).value != nullptr)
      made.set("streaming", Node::boolean(true));
  }

  /// TRL learns all of a conversation, and of a prompt with a completion the latter.
  void add_loss(Node& made, RecordForm form, const std::string& key) {
    if (method_.is_dpo || is_of_text()) return;
    const bool completions = reader_.get("completion_only_loss") != nullptr;
    const bool is_unsaid = !completions && !says(reader_.config(), "completion_only_loss", false);
    if (reader_.get("assistant_only_loss") != nullptr || completions) return;
    if (is_unsaid && (form == RecordForm::kPrompt || form == RecordForm::kText)) return;
    made.set("loss_on", Node::string("all"));
    if (is_unsaid && form != RecordForm::kMessages) {
      reader_.diagnostics().warning(
          made.location(), "TRL learns all tokens of messages, and of a prompt with a completion the completion",
          "remove loss_on: all from the data set if its records have a prompt and a completion");
      reader_.note(key, Kind::kChanged, "data.train.path; loss_on: all is for records of messages");
    }
  }

  Reader& reader_;
  const TrainerMethod& method_;
};

/// The part of the records that is held out for `data.val`.
double part_held_out(Reader& reader) {
  for (const auto& [key, factor] : {std::pair{"test_split_size", 1.0}, {"validation_split_percentage", 0.01}}) {
    const Node* part = reader.get(key);
    if (part == nullptr) continue;
    const double fraction = part->is_number() ? part->as_double() * factor : 0;
    if (fraction > 0 && fraction < 1) return fraction;
    reader.refuse(*part, key, std::string(key) + " is " + part->scalar_text() + ", not a part of the records",
                  factor == 1.0 ? "write a part, such as test_split_size: 0.05" : "write percents below 100");
  }
  return 0;
}

/// A part of a part would be another one.
void refuse_slices(Reader& reader, const std::vector<Node>& sets) {
  for (const Node& set : sets) {
    const Node* split = set.find("split");
    if (split == nullptr || !split->scalar_text().ends_with(']')) continue;
    reader.refuse(set, "split", "a part is held out of " + core::quote(split->scalar_text()) + ", a part itself",
                  "name the split alone, or write split of data.train and data.val into the recipe");
  }
}

/// The sets with a part of each: `train` of the Hub becomes `train[:95%]`.
std::vector<Node> parts_of(std::vector<Node> sets, const std::string& part) {
  for (Node& set : sets) {
    const Node* split = set.find("split");
    set.set("split", Node::string(split == nullptr ? part : split->scalar_text() + "[" + part + "]"));
  }
  return sets;
}

}  // namespace

bool is_record_file(const std::string& path) {
  static constexpr const char* kEndings[] = {".json", ".jsonl", ".gz", ".parquet", ".arrow", ".feather"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](const char* end) { return path.ends_with(end); });
}

RecordForm form_of(const std::string& path) {
  if (!path.ends_with(".json") && !path.ends_with(".jsonl")) return RecordForm::kUnknown;
  std::ifstream file(path, std::ios::binary);
  std::string line(kFirstLineMax, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t begin = line.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return RecordForm::kUnknown;
  if (line[begin] == '[') return RecordForm::kArray;
  const auto record = core::parse_json(line.substr(begin, line.find('\n', begin) - begin));
  if (!record || !record.value().is_mapping()) return RecordForm::kUnknown;
  for (const auto& [key, form] : {std::pair{"messages", RecordForm::kMessages},
                                  {"conversations", RecordForm::kMessages},
                                  {"prompt", RecordForm::kPrompt},
                                  {"text", RecordForm::kText}}) {
    if (record.value().find(key) != nullptr) return form;
  }
  return RecordForm::kUnknown;
}

std::string lines_of_array(Reader& reader, const Node& at, const std::string& key, const std::string& path) {
  const std::string lines = path.substr(0, path.rfind('.')) + ".jsonl";
  reader.diagnostics().warning(at.location(), path + " is a JSON array, and roux reads one record a line",
                               "jq -c '.[]' " + path + " > " + lines);
  reader.note(key, Kind::kPlanned, "JSON arrays are not read: jq -c '.[]' " + path + " > " + lines);
  return lines;
}

void name_data_set(const std::string& name, const std::string& subset, const std::string& split, Node& block) {
  block.set("path", Node::string("hf://datasets/" + name));
  if (!subset.empty()) block.set("subset", Node::string(subset));
  if (!split.empty()) block.set("split", Node::string(split));
}

void put_sets(Reader& reader, std::vector<Node> train, std::vector<Node> val, double part) {
  if (train.empty()) return;
  const std::string border = val.empty() && part > 0 ? percent_of(1 - part) : "";
  if (border.empty()) {
    reader.draft().put("data.train", joined_sets(std::move(train), ""));
    if (!val.empty()) reader.draft().put("data.val", joined_sets(std::move(val), ""));
    return;
  }
  refuse_slices(reader, train);
  reader.draft().put("data.train", joined_sets(parts_of(train, ":" + border), ""));
  for (Node& set : train) set.erase("streaming");
  reader.draft().put("data.val", joined_sets(parts_of(std::move(train), border + ":"), ""));
}

void take_trainer_data(Reader& reader, const TrainerMethod& method) {
  Sets sets(reader, method);
  std::vector<Node> train, val;
  const Node* several = reader.get("datasets");
  const Named file = first_of(reader, {"train_file"}), tests = first_of(reader, {"validation_file"});
  const Node *name = reader.get("dataset_name"),
             *subset = first_of(reader, {"dataset_config", "dataset_config_name"}).value;
  if (several != nullptr && several->is_sequence()) {
    for (const Node& block : several->items()) train.push_back(sets.of_block(block, train.size()));
  } else if (name != nullptr) {
    train = {sets.of_name("dataset_name", *name, subset, reader.get("dataset_train_split"))};
  } else if (file.value != nullptr) {
    train = {sets.of_file(file)};
  }
  if (tests.value != nullptr) val = {sets.of_file(tests)};
  const Node* eval = reader.config().find("eval_strategy");
  const bool evaluates = eval != nullptr && !eval->is_null() && eval->scalar_text() != "no" &&
                         !says(reader.config(), "eval_strategy", false);
  if (val.empty() && method.is_trl() && evaluates && name != nullptr && !is_record_file(name->scalar_text())) {
    const Node test = Node::string("test");
    const Node* split = reader.get("dataset_test_split");
    val = {sets.of_name("dataset_name", *name, subset, split != nullptr ? split : &test)};
  }
  if (train.empty() && reader.get("model_name_or_path") != nullptr)
    reader.diagnostics().warning(reader.config().location(), "the arguments name no data",
                                 "add data: {train: {type: jsonl, path: FILE.jsonl}} to the recipe");
  put_sets(reader, std::move(train), std::move(val), part_held_out(reader));
}

}  // namespace runner::cli
