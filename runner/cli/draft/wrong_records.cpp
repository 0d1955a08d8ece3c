#include "runner/cli/draft/wrong_records.h"

#include <algorithm>

#include "runner/core/scalar.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::Failure;

/// Behind the name of the file.
std::string by_jq(const std::string& filter) {
  return "jq -c '" + filter + "' FILE > records.jsonl makes such records";
}

bool is_list(const FieldFacts* field) {
  return field != nullptr && field->text_lists > 0 && field->all(field->text_lists + field->empty_lists);
}

bool is_object(const FieldFacts* field) { return field != nullptr && field->all(field->mappings); }

}  // namespace

std::optional<Failure> why_unread(const std::vector<FieldFacts>& fields, TaskRequest::Model model) {
  const auto field = [&fields](const char* name) { return find(fields, name); };
  if (const FieldFacts* data = field("data"); data != nullptr && data->records == 1 && data->mapping_lists == 1) {
    return Failure{
        "the file is one object with a list \"data\", as SQuAD's own is, and a record has question, context and "
        "answers",
        by_jq(".data[].paragraphs[] | .context as $c | .qas[] | {id, question, context: $c, answers: {text: "
              "[.answers[].text], answer_start: [.answers[].answer_start]}}")};
  }
  const FieldFacts* anchor = field("query") != nullptr ? field("query") : field("anchor");
  if (const FieldFacts* pos = field("pos"); anchor != nullptr && is_list(pos)) {
    const bool has_negatives = is_list(field("neg"));
    return Failure{"\"pos\" is a list, and a record has one text that belongs to another: anchor, positive, negative",
                   by_jq(". as $r | .pos[] | {anchor: $r." + anchor->name + ", positive: ." +
                         (has_negatives ? ", negative: $r.neg[0]}" : "}"))};
  }
  if (is_object(field("choices")) && field("question") != nullptr) {
    return Failure{"\"choices\" is an object, and a record has question, a list choices and the number of one, label",
                   by_jq("{question, choices: .choices.text, label: (.answerKey as $k | .choices.label | index($k))}")};
  }
  if (const FieldFacts* both = field("translation"); is_object(both) && both->keys.size() == 2) {
    const bool is_encoder = model == TaskRequest::Model::kEncoder;
    const std::string first = is_encoder ? "anchor" : "prompt", second = is_encoder ? "positive" : "completion";
    return Failure{"\"translation\" is an object of " + core::quote(both->keys[0]) + " and " +
                       core::quote(both->keys[1]) + ", and a record has " + first + " and " + second,
                   by_jq("{" + first + ": .translation[" + core::quote(both->keys[0]) + "], " + second +
                         ": .translation[" + core::quote(both->keys[1]) + "]}")};
  }
  const bool has_answers = field("question") != nullptr && is_object(field("answers"));
  if (has_answers && model != TaskRequest::Model::kEncoder) {
    return Failure{
        "\"answers\" is an object, which an encoder learns to find in the context, and a model that writes "
        "has prompt and completion",
        by_jq("select(.answers.text[0]) | {prompt: (.context + \"\\n\" + .question), completion: "
              ".answers.text[0]}") +
            "; or name an encoder"};
  }
  return std::nullopt;
}

std::optional<Failure> why_no_names(const std::string& path, const std::vector<FieldFacts>& fields) {
  if (!path.ends_with(".csv") && !path.ends_with(".tsv")) return std::nullopt;
  const auto at = std::ranges::find_if(fields, [](const FieldFacts& one) {
    const auto read = core::resolve_scalar(one.name);
    return read.ok() && read.value().is_number();
  });
  constexpr std::size_t kNameMax = 30;
  const bool has_text = std::ranges::any_of(fields, [](const FieldFacts& one) { return one.name.size() > kNameMax; });
  if (at == fields.end() || !has_text) return std::nullopt;
  return Failure{path + " has " + core::quote(at->name) + " in its first row, which names the columns",
                 "write such a row: text,label"};
}

std::optional<Failure> why_no_label(const FieldFacts& label) {
  const std::string name = core::quote(label.name);
  const std::int64_t numbers = label.whole + label.numbers;
  if (label.values.size() == 1 && *label.values.begin() == "-1") {
    return Failure{"each " + name + " is -1, which says there is no label",
                   "name a file with labels; `roux predict` tells those of this one"};
  }
  if (label.all(label.empty_lists))
    return Failure{"each " + name + " is an empty list, so no record has a label", "name the field of the labels"};
  if (label.texts > 0 && numbers > 0 && label.all(label.texts + numbers + label.switches)) {
    return Failure{
        name + " is a name in " + std::to_string(label.texts) + " records and a number in " + std::to_string(numbers),
        "write the labels of all records as names, or as numbers from 0"};
  }
  const std::int64_t lists = label.text_lists + label.number_lists + label.empty_lists;
  if (lists > 0 && !label.all(lists)) {
    return Failure{
        name + " is a list in " + std::to_string(lists) + " of " + std::to_string(label.records) + " records",
        "write a list in each record, or in none"};
  }
  if (label.text_lists > 0 && label.number_lists > 0) {
    return Failure{name + " has lists of names and lists of numbers",
                   "write the labels of all records as names, or as 0 or 1 for each class"};
  }
  if (label.all(label.texts)) {
    const bool is_more = label.values.size() >= FieldFacts::kValuesMax;
    return Failure{name + " has " + (is_more ? "at least " : "") + std::to_string(label.values.size()) +
                       " different texts in " + std::to_string(label.records) + " records, too many to be classes",
                   "give each class several records, or train on the texts alone: --task text"};
  }
  return std::nullopt;
}

}  // namespace runner::cli
