#include "runner/resolve/rules/rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/hub/name.h"
#include "runner/pretrained/model_type.h"
#include "runner/registry/wording.h"
#include "runner/resolve/rules/streamed_set.h"

namespace runner::resolve {

using core::Node;
using registry::enumerated;

namespace {

/// `:90%`, `[10%:20%]`, or all for nothing; nothing for what is no split, or one that counts records.
std::optional<std::pair<double, double>> split_of(const SettledTree& tree, const std::string& set) {
  if (tree.was_refused(set + ".split")) return std::nullopt;
  std::string text = tree.text(set + ".split").value_or(":");
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    const bool is_share = text == ":" || text.find('%') != std::string::npos;
    if (!is_share || text.find('-') != std::string::npos) return std::nullopt;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto percent = [](std::string_view part, double otherwise) {
    double number = otherwise;
    std::from_chars(part.data(), part.data() + part.size(), number);
    return number;
  };
  const std::string_view whole = text;
  return std::pair(percent(whole.substr(0, colon), 0.0), percent(whole.substr(colon + 1), 100.0));
}

/// Whether a set is named by its repository, and its files are not here.
bool is_of_hub(const SettledTree& tree, const std::string& set) {
  const Node* path = tree.value(set + ".path");
  const Node* first = path != nullptr && path->items().size() == 1 ? &path->items().front() : path;
  const auto name = hub::parse_name(first != nullptr && first->is_string() ? first->as_string() : "");
  return name && name.value().file.empty();
}

}  // namespace

std::vector<std::string> evaluated_sets(const SettledTree& tree) {
  std::vector<std::string> names;
  const Node* data = tree.value("data");
  if (data == nullptr) return names;
  for (const Node::Entry& entry : data->entries()) {
    if (entry.key != "train") names.push_back(entry.key);
  }
  return names;
}

void train_set(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (data == nullptr || !data->is_mapping() || data->find("train") != nullptr) return;
  std::vector<std::string> names;
  for (const Node::Entry& entry : data->entries()) names.push_back(entry.key);
  if (names.empty())
    return tree.error("data", "data needs a data set called train", "add train: {type: text, path: ...}");
  std::string near = core::closest("train", names);
  // People call it by other words, none of which is near.
  for (const char* word : {"training", "train_set", "train_data", "train_dataset"}) {
    if (near.empty() && std::find(names.begin(), names.end(), word) != names.end()) near = word;
  }
  tree.error("data", "data needs a data set called train, it has " + enumerated(names, "and", names.size()),
             near.empty() ? "train is the training set; all others are evaluated" : "rename " + near + " to train");
}

void data_set_names(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (data == nullptr) return;
  for (const Node::Entry& entry : data->entries()) {
    const bool fits = !entry.key.empty() && std::all_of(entry.key.begin(), entry.key.end(), [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (!fits)
      tree.error_at(entry.key_location,
                    "the name of a data set must be letters, digits, '_' and '-', got " + core::in_quotes(entry.key),
                    "metrics are called NAME/loss after it");
  }
}

namespace {

bool same_place(const core::Location& one, const core::Location& other) {
  return one.source == other.source && one.line == other.line && one.column == other.column;
}

}  // namespace

/// Samples that are trained on say little about others.
void held_out(SettledTree& tree) {
  const Node* train = tree.value("data.train.path");
  if (train == nullptr) return;
  const auto same = [&tree](const std::string& set, const char* key) {
    const Node *first = tree.value("data.train." + std::string(key)), *second = tree.value(set + "." + key);
    return first == nullptr || second == nullptr ? first == second : first->same_value(*second);
  };
  for (const std::string& name : evaluated_sets(tree)) {
    const std::string set = "data." + name;
    const Node *one = tree.value("data.train"), *other = tree.value(set);
    if (same_place(one->location(), other->location())) continue;  // a set that is applied, whatever was trained on
    if (is_of_hub(tree, set)) continue;                            // the splits are known when their files are here
    if (!same(set, "path") || !same(set, "exclude") || !same(set, "type") || !same(set, "split_by")) continue;
    const auto trained = split_of(tree, "data.train"), evaluated = split_of(tree, set);
    if (!trained || !evaluated) continue;
    if (std::max(trained->first, evaluated->first) >= std::min(trained->second, evaluated->second)) continue;
    tree.warning(set, set + " evaluates samples of data.train: both read the same part of the same files",
                 "write split: \":90%\" in train and split: \"90%:\" in " + name);
  }
}

namespace {

/// What counts the passes over a set.
void refuse_epochs(SettledTree& tree) {
  const auto counts_epochs = [](const Node* value) {
    if (value == nullptr || !value->is_string()) return false;
    const auto interval = core::parse_interval(value->as_string());
    return interval && interval.value().unit == core::Interval::Unit::kEpochs;
  };
  const auto refuse = [&tree](const std::string& path) {
    tree.error(path, path + " counts epochs, but data.train is a stream, which has none", "count optimizer steps");
  };
  if (tree.given("training.max_epochs")) {
    tree.error("training.max_epochs", "training.max_epochs counts epochs, but data.train is a stream, which has none",
               "use max_steps");
  }
  for (const char* path : {"eval.eval_steps", "checkpoint.save_steps"}) {
    if (counts_epochs(tree.value(path))) refuse(path);
  }
  const Node* callbacks = tree.value("callbacks");
  if (callbacks == nullptr || !callbacks->is_sequence()) return;
  for (const Node& callback : callbacks->items()) {
    if (const Node* on = callback.find("on"); on != nullptr && on->is_sequence()) {
      for (const Node& event : on->items()) {
        if (!event.is_string() || event.as_string() != "epoch") continue;
        tree.error_at(event.location(), "`on` has epoch, but data.train is a stream, which has none",
                      "use save or evaluation, which can come at intervals of steps");
      }
    }
    const Node* every = callback.find("every");
    if (!counts_epochs(every)) continue;
    tree.error_at(every->location(), "`every` counts epochs, but data.train is a stream, which has none",
                  "count optimizer steps");
  }
}

/// Whether a stream is somewhere within a set.
bool holds_stream(const Node& set) {
  if (streaming_of(set) != nullptr) return true;
  const Node *of = set.is_mapping() ? set.find("of") : nullptr, *sets = set.is_mapping() ? set.find("sets") : nullptr;
  return (of != nullptr && holds_stream(*of)) ||
         (sets != nullptr && sets->is_sequence() &&
          std::any_of(sets->items().begin(), sets->items().end(), holds_stream));
}

/// Streams within other sets: `concat` has them alone or not at all, others number their samples. As the data sets
/// themselves refuse them. `name`: how messages call the set.
void refuse_streamed_parts(SettledTree& tree, const Node& set, const std::string& name) {
  if (!set.is_mapping()) return;
  if (const Node* of = set.find("of"); of != nullptr && of->is_mapping()) {
    if (const Node* streaming = streaming_of(*of)) {
      tree.error_at(streaming->location(), name + " is streamed, and subset and fold number their samples",
                    "remove streaming, or use the set as it is");
    }
    refuse_streamed_parts(tree, *of, name);
  }
  const Node* sets = set.find("sets");
  if (sets == nullptr || !sets->is_sequence()) return;
  const auto name_of = [&name](std::size_t i) { return name + ".sets[" + std::to_string(i) + "]"; };
  std::optional<std::size_t> streamed;
  for (std::size_t i = 0; i < sets->items().size(); ++i) {
    if (!streamed && streaming_of(sets->items()[i]) != nullptr) streamed = i;
    refuse_streamed_parts(tree, sets->items()[i], name_of(i));
  }
  if (!streamed) return;
  for (std::size_t i = 0; i < sets->items().size(); ++i) {
    const Node& one = sets->items()[i];
    if (!one.is_mapping() || holds_stream(one)) continue;  // which is one, or an error already
    tree.error_at(one.location(), name_of(i) + " is read into memory, and " + name_of(*streamed) + " is a stream",
                  "make all sets jsonl with streaming: true, or remove streaming from all");
  }
}

}  // namespace

/// Samples that come one after the other cannot be ordered by what follows, and do not end.
void streamed_sets(SettledTree& tree) {
  if (const Node* data = tree.value("data"); data != nullptr && data->is_mapping()) {
    for (const Node::Entry& entry : data->entries()) refuse_streamed_parts(tree, entry.value, "data." + entry.key);
  }
  const auto streaming_in = [&tree](const std::string& set) {
    const Node* block = tree.value(set);
    return block != nullptr ? streaming_of(*block) : nullptr;
  };
  for (const std::string& name : evaluated_sets(tree)) {
    const std::string set = "data." + name;
    const Node* streaming = streaming_in(set);
    if (streaming == nullptr) continue;
    tree.error_at(streaming->location(), set + " is evaluated as a whole: only data.train can be a stream",
                  "remove streaming, and use fewer or smaller files");
  }
  if (streaming_in("data.train") == nullptr) return;
  refuse_epochs(tree);
  const bool ends = tree.given("training.max_steps") || tree.given("training.max_time");
  if (!ends && !tree.given("training.max_epochs") && !tree.was_refused("training")) {
    tree.error("training", "data.train is a stream, which has no end: training needs max_steps or max_time",
               "add max_steps: 1000");
  }
  const auto refuse = [&tree](const std::string& key, const std::string& what) {
    tree.error("loader." + key, "loader." + key + " " + what + ", but data.train is a stream", "remove " + key);
  };
  if (tree.given("loader.num_samples")) refuse("num_samples", "sets the length of an epoch");
  if (tree.is_true("loader.replacement")) refuse("replacement", "draws from the whole set");
  if (tree.is_true("loader.balance_classes")) refuse("balance_classes", "needs the classes of all samples");
  if (tree.is_true("loader.group_by_length")) refuse("group_by_length", "needs the lengths of all samples");
  if (tree.is_true("loader.drop_last")) refuse("drop_last", "is about the end of an epoch");
  const Node* seedable = tree.value("loader.use_seedable_sampler");
  if (seedable != nullptr && seedable->is_bool() && !seedable->as_bool()) {
    refuse("use_seedable_sampler", "draws a permutation of the whole set");
  }
}

namespace {

const Node* transforms_of(const Node& set) {
  const Node* transforms = set.find("transforms");
  return transforms != nullptr && transforms->is_sequence() && !transforms->items().empty() ? transforms : nullptr;
}

/// The sets that a set is made of, with the names that messages have for them; none of one that reads files.
std::vector<std::pair<std::string, const Node*>> parts_of(const Node& set, const std::string& name) {
  std::vector<std::pair<std::string, const Node*>> parts;
  const Node *sets = set.find("sets"), *of = set.find("of");
  if (of != nullptr && of->is_mapping()) parts.emplace_back(name + ".of", of);
  if (sets == nullptr || !sets->is_sequence()) return parts;
  for (std::size_t i = 0; i < sets->items().size(); ++i) {
    if (sets->items()[i].is_mapping()) parts.emplace_back(name + ".sets[" + std::to_string(i) + "]", &sets->items()[i]);
  }
  return parts;
}

/// What is drawn for a sample depends on its place in an epoch, which a part does not know.
void refuse_transforms_of_parts(SettledTree& tree, const Node& set, const std::string& name, const std::string& whole) {
  for (const auto& [its_name, part] : parts_of(set, name)) {
    if (const Node* transforms = transforms_of(*part)) {
      tree.error_at(transforms->location(), its_name + " has transforms, which change the samples of a whole set",
                    "write them under " + whole);
    }
    refuse_transforms_of_parts(tree, *part, its_name, whole);
  }
}

/// Whether its records are texts or tokens, which do not say by themselves which ones were masked.
bool holds_texts(const Node& set) {
  const auto parts = parts_of(set, "");
  if (std::any_of(parts.begin(), parts.end(), [](const auto& one) { return holds_texts(*one.second); })) return true;
  const Node* type = set.find("type");
  const std::string word = type != nullptr && type->is_string() ? type->as_string() : "";
  return word == "jsonl" || word == "text" || word == "text_lines" || word == "tokens";
}

/// A transform that makes labels, and the head that learns them.
struct MadeLabels {
  const char *transform, *head, *what;
};
constexpr std::array kMadeLabels = {
    MadeLabels{"mask_tokens", pretrained::kMaskedLm, " asks for tokens that it has masked, and "},
    MadeLabels{"span_corruption", pretrained::kSeq2SeqLm, " asks for a text that a decoder writes of another, and "}};

/// What a model does in place of it.
std::string head_text(const Node& model, const std::string& head) {
  const Node* type = model.is_mapping() ? model.find("type") : nullptr;
  if (head.empty()) return "model " + (type != nullptr ? type->scalar_text() : "") + " has no head for them";
  return "the model's head is " + head + (head == "causal_lm" ? ", which tells each next token" : "");
}

}  // namespace

void transforms(SettledTree& tree) {
  const Node *data = tree.value("data"), *model = tree.value("model");
  if (data == nullptr || !data->is_mapping()) return;
  const pretrained::ModelType* type_of_model =
      model != nullptr && model->is_mapping() ? pretrained::model_type_of(*model) : nullptr;
  const std::string head = type_of_model != nullptr ? type_of_model->head : "";
  const bool tells_masked = head == pretrained::kMaskedLm;
  // A head that is misspelt was refused.
  bool is_told = tree.was_refused("model.head") || tree.was_refused("init_from.head");
  for (const Node::Entry& entry : data->entries()) {
    const std::string name = "data." + entry.key;
    if (!entry.value.is_mapping()) continue;
    refuse_transforms_of_parts(tree, entry.value, name, name);
    if (model == nullptr) continue;
    const Node* transforms = transforms_of(entry.value);
    const bool refused = tree.was_refused(name + ".transforms");  // what is wrong with them was said
    const bool lacks_masks = transforms == nullptr && !refused && tells_masked && holds_texts(entry.value);
    if (lacks_masks && tree.text(name + ".columns.label")) {
      if (!is_told) {
        tree.error(name + ".columns.label", name + " has labels, and the model's head is masked_lm, which tells words",
                   "add a head: init_from: {path: " + tree.text("init_from.path").value_or("FOLDER") +
                       ", head: sequence_classification}");
      }
      is_told = true;
    } else if (lacks_masks && !is_told) {
      tree.error(name, "the model's head is masked_lm, and nothing masks tokens of " + name,
                 "add transforms: [{type: mask_tokens}] to it");
    }
    if (transforms == nullptr) continue;
    if (tells_masked && transforms->items().size() > 1) {
      tree.error_at(transforms->items()[1].location(),
                    name + " masks tokens twice, and what the first one asks for is lost", "keep one of them");
    }
    for (const Node& one : transforms->items()) {
      const Node* type = one.is_mapping() ? one.find("type") : nullptr;
      for (const MadeLabels& made : kMadeLabels) {
        if (type == nullptr || !type->is_string() || type->as_string() != made.transform || head == made.head) continue;
        tree.error_at(one.location(), std::string(made.transform) + made.what + head_text(*model, head),
                      std::string("use a model with head: ") + made.head + ", or remove transforms");
      }
    }
  }
}

}  // namespace runner::resolve
