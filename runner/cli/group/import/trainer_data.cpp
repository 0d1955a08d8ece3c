#include "runner/cli/group/import/trainer_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/local_files.h"
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
    made.set("path", Node::string(path));
    add_options(made, form, has_records, named.key);
    return made;
  }

  /// A name of the Hub, or a folder or file here.
  Node of_name(const std::string& key, const Node& name, const Node* subset, const Node* split) {
    const std::string text = name.scalar_text();
    std::error_code failed;
    if (is_record_file(text)) {
      Node made = of_file({key, &name});
      const std::string part = split != nullptr ? split->scalar_text() : "";
      if (const std::size_t slice = part.find('['); slice != std::string::npos)
        made.set("split", Node::string(part.substr(slice), split->location()));
      return made;
    }
    Node made = Node::mapping(name.location());
    made.set("type", Node::string("jsonl"));
    const auto said = [](const Node* value) {
      return value != nullptr && words::asks_for_something(*value) ? value->scalar_text() : std::string();
    };
    const std::string part = said(split).empty() ? "train" : said(split);
    if (fs::is_directory(text, failed)) return of_folder(key, name, said(subset), part);
    if (text.starts_with(".") || text.starts_with("/")) {
      reader_.refuse(name, key, core::quote(text) + " is not here", "name a folder or a file of records that is here");
    }
    name_data_set(text, said(subset), part, made);
    add_options(made, RecordForm::kUnknown, true, key);
    return made;
  }

  /// Of a split of a folder here the files that `load_dataset` finds.
  Node of_folder(const std::string& key, const Node& name, const std::string& subset, const std::string& split) {
    Node made = Node::mapping(name.location());
    const std::string plain = split.substr(0, split.find('[')), part = split.substr(plain.size());
    const auto files = files_of_split(name.scalar_text(), subset, plain);
    if (!files) {
      reader_.refuse(name, key, files.failure().message, files.failure().hint);
      return made;
    }
    const bool has_records = hub::reads("jsonl", files.value().kind);
    if (!has_records && !is_of_text()) {
      reader_.refuse(name, key, name.scalar_text() + " holds " + hub::words_of(files.value().kind),
                     "write their records into files of .jsonl, and name these");
    }
    made.set("type", Node::string(has_records ? "jsonl" : "text"));
    made.set("path", files.value().node());
    if (!part.empty()) made.set("split", Node::string(part));
    add_options(made, has_records ? form_of(files.value().paths.front()) : RecordForm::kText, has_records, key);
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
    const Node *files = block.find("data_files"), *folder = block.find("data_dir");
    if (folder != nullptr && words::asks_for_something(*folder)) {
      reader_.refuse(*folder, prefix + "data_dir", "data_dir chooses a folder of a data set, which roux does not",
                     "name its files in data_files, or the folder in path where it is here");
    }
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
    const Named said = first_of(reader_, {"block_size", "max_seq_length", "max_length"});
    const Node* length = said.value;
    for (const char* other : {"max_seq_length", "max_length"}) {
      const Node* second = reader_.get(other);
      if (second == nullptr || said.key == other || second->scalar_text() == length->scalar_text()) continue;
      reader_.refuse(*second, other, said.key + " and " + other + " say two lengths", "keep one of them");
    }
    const Node* written = reader_.config().find("max_length");
    const bool is_unlimited = method_.is_trl() && written != nullptr && written->is_null();
    if (length != nullptr) {
      made.set("max_seq_len", *length);
    } else if (is_unlimited) {
      made.set("too_long", Node::string("error"));
      reader_.note("max_length", Kind::kChanged,
                   "data.train.too_long: error; no record is cut, and max_seq_len is that of the model, at most 2,048");
    } else if (!has_records || method_.is_trl() || is_of_text()) {
      made.set("max_seq_len", Node::integer(1024));
    }
    // TRL leaves longer pairs out, where it cuts other records.
    if (method_.is_trl() && method_.is_reward() && made.find("max_seq_len") != nullptr)
      made.set("too_long", Node::string("drop"));
    if (!has_records) return;
    if (is_of_text()) return add_joined(made, key);
    add_template(made);
    if (reader_.get("packing") != nullptr && !method_.is_of_pairs) made.set("packing", Node::boolean(true));
    add_loss(made, form, key);
    add_streaming(made);
  }

  /// Transformers' script joins all texts and cuts blocks.
  void add_joined(Node& made, const std::string& key) {
    made.set("packing", Node::boolean(true));
    reader_.note(key, Kind::kChanged, "data.train.path; each record ends with an end token, and is cut at block_size");
    reader_.diagnostics().warning(made.location(),
                                  "the script joins the texts of all records and cuts them into blocks; here each "
                                  "record is cut at the length of a block, and has an end token",
                                  "write the texts into a file of .txt, which is joined and cut so");
    add_streaming(made);
  }

  void add_streaming(Node& made) {
    if (first_of(reader_, {"streaming", "dataset_streaming"}).value != nullptr)
      made.set("streaming", Node::boolean(true));
  }

  /// TRL's `chat_template_path`: the file of a template, or the folder of a tokenizer with one.
  void add_template(Node& made) {
    const Node* path = method_.is_trl() ? reader_.get("chat_template_path") : nullptr;
    if (path == nullptr) return;
    const std::string text = path->scalar_text();
    if (!text.ends_with(".jinja") && !text.ends_with(".j2")) {
      return reader_.refuse(*path, "chat_template_path",
                            "chat_template_path " + core::quote(text) + " is a tokenizer, whose tokens are added, too",
                            "write the file of its template, chat_template.jinja, and name that");
    }
    Node format = Node::mapping();
    format.set("template", *path);
    made.set("chat_format", std::move(format));
  }

  /// TRL learns all of a conversation, and of a prompt with a completion the latter.
  void add_loss(Node& made, RecordForm form, const std::string& key) {
    if (method_.is_of_pairs) return;
    if (says(reader_.config(), "completion_only_loss", false))
      reader_.note("completion_only_loss", Kind::kTaken, "data.train.loss_on: all");
    const bool completions = reader_.get("completion_only_loss") != nullptr;
    if (completions && form == RecordForm::kMessages && reader_.get("assistant_only_loss") == nullptr) {
      made.set("loss_on", Node::string("all"));
      return reader_.note("completion_only_loss", Kind::kChanged,
                          "data.train.loss_on: all; of messages TRL learns every token, whatever it says");
    }
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

/// `fraction` of TRL's `datasets`: shares of a mixture that ends where one of the sets has no record left.
SetMixture mixture_of(Reader& reader, const Node& sets) {
  SetMixture mixture{.weights = {}, .stopping = "first"};
  for (const Node& set : sets.items()) {
    const Node* share = set.is_mapping() ? set.find("fraction") : nullptr;
    if (share != nullptr && share->is_number() && share->as_double() > 0) mixture.weights.push_back(*share);
  }
  if (mixture.weights.empty() || mixture.weights.size() == sets.items().size()) return mixture;
  reader.refuse(sets, "datasets", "fraction is not said of all sets, or not above 0", "write fraction for each set");
  return {};
}

/// What is held out for `data.val`.
HeldOut held_out_of(Reader& reader) {
  for (const auto& [key, factor] : {std::pair{"test_split_size", 1.0}, {"validation_split_percentage", 0.01}}) {
    const Node* part = reader.get(key);
    if (part == nullptr) continue;
    const double size = part->is_number() ? part->as_double() * factor : 0;
    if (size > 0 && (size < 1 || factor == 1.0)) return {key, size, /*is_first=*/factor != 1.0};
    reader.refuse(*part, key, std::string(key) + " is " + part->scalar_text() + ", not a part of the records",
                  factor == 1.0 ? "write a part, such as test_split_size: 0.05" : "write percents below 100");
  }
  return {};
}

/// The number of records of a split that takes the first ones: `[:1000]` or `train[:1000]`.
std::optional<std::int64_t> first_ones(const std::string& split) {
  const std::size_t begin = split.find("[:");
  if (begin == std::string::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = split.data() + split.size() - 1;
  const auto [at, error] = std::from_chars(split.data() + begin + 2, end, number);
  return error == std::errc{} && at == end && number > 0 ? std::optional(number) : std::nullopt;
}

/// The sets without what is held out of them, or that alone: `train` of the Hub becomes `train[:95%]`. A part of
/// `[:1000]` is one of these records; of another part it would be another one.
std::vector<Node> parts_of(Reader& reader, std::vector<Node> sets, const HeldOut& held_out, bool is_held_out) {
  for (Node& set : sets) {
    const Node* written = set.find("split");
    const std::string split = written != nullptr ? written->scalar_text() : "";
    const std::string name = split.substr(0, split.find('['));
    std::string part;
    if (const auto first = first_ones(split); first && held_out.size < 1) {
      const auto border = std::to_string(std::llround(static_cast<double>(*first) * (1 - held_out.size)));
      part = is_held_out ? "[" + border + ":" + std::to_string(*first) + "]" : "[:" + border + "]";
    } else if (split.ends_with(']')) {
      if (!is_held_out) {
        reader.refuse(set, "split", "a part is held out of " + core::quote(split) + ", a part itself",
                      "name the split alone, or write split of data.train and data.val into the recipe");
      }
    } else if (held_out.size >= 1) {
      const auto number = "-" + std::to_string(std::llround(held_out.size));
      part = is_held_out ? "[" + number + ":]" : "[:" + number + "]";
    } else {
      const std::string border = percent_of(held_out.is_first ? held_out.size : 1 - held_out.size);
      part = is_held_out == held_out.is_first ? ":" + border : border + ":";
      if (!name.empty()) part = "[" + part + "]";
    }
    set.set("split", Node::string(name + part));
  }
  return sets;
}

/// `max_train_samples`: blocks of texts, or records.
void take_first_samples(Reader& reader) {
  const Node *most = reader.get("max_train_samples"), *train = reader.draft().find("data.train");
  if (most == nullptr || train == nullptr) return;
  if (first_of(reader, {"streaming"}).value != nullptr) {
    return reader.refuse(*most, "max_train_samples",
                         "max_train_samples takes the first samples, and of a stream all are",
                         "remove it, or streaming");
  }
  Node subset = Node::mapping(train->location());
  subset.set("type", Node::string("subset"));
  subset.set("samples", *most);
  subset.set("of", *train);
  reader.draft().put("data.train", std::move(subset));
}

/// A stream of the Hub is that of train, whole; sets to evaluate on are read before. Whether there is a stream.
bool settle_streams(std::vector<Node>& train, std::vector<Node>& val) {
  bool found = false;
  for (Node& set : train) {
    if (set.find("streaming") == nullptr) continue;
    found = true;
    const Node* split = set.find("split");
    if (split != nullptr && split->scalar_text() == "train") set.erase("split");
  }
  for (Node& set : val) set.erase("streaming");
  return found;
}

/// The first record of a file of lines, or of an array; "" where it does not end here.
std::string first_record(const std::string& text, std::size_t begin) {
  if (text[begin] != '[') return text.substr(begin, text.find('\n', begin) - begin);
  const std::size_t first = text.find('{', begin);
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t at = first; at < text.size(); ++at) {
    const char c = text[at];
    if (in_text) {
      if (c == '\\') ++at;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return text.substr(first, at + 1 - first);
    }
  }
  return "";
}

}  // namespace

bool is_record_file(const std::string& path) {
  static constexpr const char* kEndings[] = {".json", ".jsonl", ".gz", ".zst", ".parquet", ".arrow", ".feather"};
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
  const auto record = core::parse_json(first_record(line, begin));
  if (!record || !record.value().is_mapping()) return RecordForm::kUnknown;
  for (const auto& [key, form] : {std::pair{"messages", RecordForm::kMessages},
                                  {"conversations", RecordForm::kMessages},
                                  {"prompt", RecordForm::kPrompt},
                                  {"text", RecordForm::kText}}) {
    if (record.value().find(key) != nullptr) return form;
  }
  return RecordForm::kUnknown;
}

void name_data_set(const std::string& name, const std::string& subset, const std::string& split, Node& block) {
  block.set("path", Node::string("hf://datasets/" + name));
  if (!subset.empty()) block.set("subset", Node::string(subset));
  if (!split.empty()) block.set("split", Node::string(split));
}

void put_sets(Reader& reader, std::vector<Node> train, std::vector<Node> val, const HeldOut& held_out,
              const SetMixture& mixture) {
  if (train.empty()) return;
  const bool is_streamed = settle_streams(train, val);
  if (is_streamed) {
    for (const Node& set : train) {
      if (set.find("streaming") != nullptr) continue;
      return reader.refuse(set, "streaming", "some sets are streamed, and others are not",
                           "stream all sets of the training, or none");
    }
    if (train.size() > 1) {
      const char* key = reader.get("streaming") != nullptr ? "streaming" : "dataset_streaming";
      reader.note(key, Kind::kChanged, "data.train.sets[].streaming; each set is shuffled in a buffer of its own");
    }
  }
  if (is_streamed && held_out.size > 0 && val.empty()) {
    return reader.refuse(*reader.get(held_out.key), held_out.key,
                         held_out.key + " holds a part out, and of a stream there is none",
                         "remove " + held_out.key + ", or streaming");
  }
  const bool is_number = held_out.size >= 1;
  if (!val.empty() || held_out.size <= 0) {
    reader.draft().put("data.train", joined_sets(std::move(train), mixture));
    if (!val.empty()) reader.draft().put("data.val", joined_sets(std::move(val), mixture));
    return;
  }
  if (is_number && (train.size() > 1 || held_out.size != std::floor(held_out.size))) {
    const Node* written = reader.get(held_out.key);
    return reader.refuse(*written, held_out.key,
                         held_out.key + " is " + written->scalar_text() +
                             (train.size() > 1 ? ", a number of records of several sets" : ", not a number of records"),
                         "write a part of them, such as " + held_out.key + ": 0.05");
  }
  if (!held_out.is_first) reader.note(held_out.key, Kind::kChanged, kHeldOutText);
  reader.draft().put("data.train", joined_sets(parts_of(reader, train, held_out, false), mixture));
  reader.draft().put("data.val", joined_sets(parts_of(reader, std::move(train), held_out, true), mixture));
}

void take_trainer_data(Reader& reader, const TrainerMethod& method) {
  Sets sets(reader, method);
  std::vector<Node> train, val;
  const Node* several = reader.get("datasets");
  const Named file = first_of(reader, {"train_file"}), tests = first_of(reader, {"validation_file"});
  const Node *name = reader.get("dataset_name"),
             *subset = first_of(reader, {"dataset_config", "dataset_config_name"}).value;
  SetMixture mixture;
  if (several != nullptr && several->is_sequence()) {
    for (const Node& block : several->items()) train.push_back(sets.of_block(block, train.size()));
    mixture = mixture_of(reader, *several);
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
  if (name == nullptr || tests.value != nullptr || val.empty())
    reader.note("dataset_test_split", Kind::kNoEffect, "nothing is evaluated on a split of dataset_name");
  if (train.empty() && reader.get("model_name_or_path") != nullptr)
    reader.diagnostics().warning(reader.config().location(), "the arguments name no data",
                                 "add data: {train: {type: jsonl, path: FILE.jsonl}} to the recipe");
  HeldOut held_out = held_out_of(reader);
  const bool is_script = method.script != nullptr && method.script->scalar_text().find("run_clm") != std::string::npos;
  const bool is_streamed = first_of(reader, {"streaming", "dataset_streaming"}).value != nullptr;
  if (is_script && file.value != nullptr && val.empty() && held_out.size <= 0 && !is_streamed)
    held_out = {file.key, 0.05, /*is_first=*/true};  // the script's own default
  put_sets(reader, std::move(train), std::move(val), held_out, mixture);
  take_first_samples(reader);
}

}  // namespace runner::cli
