#include "components/data/language/question_windows.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "components/data/fields/unread_fields.h"
#include "components/data/language/messages.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::data {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;
using tokenizer::Encoding;
using tokenizer::Origin;

bool has(const Node& object, const std::string& key) {
  const Node* value = object.find(key);
  return value != nullptr && !value->is_null();
}

/// A whole question with its context, as the tokenizer joins them.
struct Whole {
  const Encoding& encoding;
  std::size_t first = 0, end = 0;  ///< tokens of the context
};

/// Tokens [from, to) of the context, and all others.
void add_window(const Whole& whole, std::size_t from, std::size_t to, Sequence& sequence) {
  const Encoding& encoding = whole.encoding;
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_context = encoding.origins[i] == Origin::kSecond;
      sequence.input.push_back(encoding.ids[i]);
      if (!encoding.type_ids.empty()) sequence.types.push_back(encoding.type_ids[i]);
      sequence.offsets.push_back(is_context ? static_cast<std::int32_t>(encoding.offsets[i].begin) : -1);
      sequence.offsets.push_back(is_context ? static_cast<std::int32_t>(encoding.offsets[i].end) : -1);
    }
  };
  if (!sequence.input.empty()) sequence.begins.push_back(static_cast<std::int32_t>(sequence.input.size()));
  add(0, whole.first);
  add(from, to);
  add(whole.end, encoding.ids.size());
}

}  // namespace

QuestionEncoder::QuestionEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, QuestionColumns columns,
                                 Options options)
    : tokenizer_(std::move(tokenizer)), columns_(std::move(columns)), options_(options) {}

Result<QuestionEncoder::Record> QuestionEncoder::read(const Node& object) const {
  const auto name = [](const std::string& written, const char* usual) { return written.empty() ? usual : written; };
  const std::string question = name(columns_.question, "question"), context = name(columns_.context, "context"),
                    answers = name(columns_.answers, "answers");
  for (const auto& [field, column] : {std::pair{question, "text"}, {context, "text_pair"}}) {
    if (has(object, field)) continue;
    std::vector<std::string> names;
    for (const Node::Entry& entry : object.entries()) names.push_back(runner::core::quote(entry.key));
    return Failure{field + " is missing: its fields are " + runner::core::joined(names),
                   std::string("name the field: columns: {") + column + ": FIELD}"};
  }
  Record record;
  for (const auto& [field, to] : {std::pair{question, &record.question}, {context, &record.context}}) {
    auto text = text_of(object, field);
    if (!text) return text.failure();
    *to = std::move(text.value());
  }
  record.question.erase(0, std::min(record.question.find_first_not_of(" \t\r\n"), record.question.size()));
  if (const Node* id = object.find("id"); id != nullptr && !id->is_null()) {
    record.id = id->is_string() ? id->as_string() : id->scalar_text();
  }
  record.unread = unread_fields(object, {question, context, answers}, false);
  record.fields.add_all(object, {question, context, options_.reads_answers ? answers : question, "id"});
  if (!options_.reads_answers && !has(object, answers)) return record;
  const auto refuse = [&answers](const std::string& what) {
    return Failure{answers + what,
                   "write answers: {text: [TEXT, ...], answer_start: [CHARACTER, ...]}, both empty of a "
                   "question without an answer"};
  };
  if (!has(object, answers)) return refuse(" is missing");
  const Node& given = *object.find(answers);
  if (!given.is_mapping()) return refuse(" is " + runner::core::to_json(given, -1) + ", not an object");
  const Node *texts = given.find("text"), *starts = given.find("answer_start");
  if (texts == nullptr || starts == nullptr || !texts->is_sequence() || !starts->is_sequence() ||
      texts->items().size() != starts->items().size()) {
    return refuse(" does not have as many text as answer_start");
  }
  for (std::size_t i = 0; i < texts->items().size(); ++i) {
    const Node &text = texts->items()[i], &start = starts->items()[i];
    const std::string which = answers + ".text[" + std::to_string(i) + "]";
    if (!text.is_string() || !start.is_integer()) return refuse(" holds something else than a text and a number");
    const auto length = static_cast<std::int64_t>(runner::core::count_code_points(text.as_string()));
    Answer answer{text.as_string(), start.as_integer(), start.as_integer() + length};
    const auto all = static_cast<std::int64_t>(runner::core::count_code_points(record.context));
    if (length == 0 || answer.begin < 0 || answer.end > all) {
      return Failure{which + " is " + (length == 0 ? std::string("empty") : "not within the context") +
                         ": answer_start " + std::to_string(answer.begin) + ", of " + std::to_string(all) +
                         " characters",
                     "leave such records out: on_bad_record: skip"};
    }
    // At another place it is found: files count characters in other ways.
    if (record.context.find(answer.text) == std::string::npos) {
      return Failure{which + " is " + runner::core::quote(answer.text) + ", which the context does not have",
                     "correct it, or leave such records out: on_bad_record: skip"};
    }
    record.answers.push_back(std::move(answer));
  }
  return record;
}

Result<Sequence> QuestionEncoder::windows_of(const Record& record) const {
  const tokenizer::EncodeOptions options{.add_special_tokens = tokenizer_->settings().add_special_tokens,
                                         .with_offsets = true};
  const auto encoding = tokenizer_->encode_pair(record.question, record.context, options);
  if (!encoding) return encoding.failure();
  const std::vector<Origin>& origins = encoding.value().origins;
  const auto first = std::find(origins.begin(), origins.end(), Origin::kSecond);
  if (first == origins.end()) return Failure{"the context has no token", ""};
  const auto end = std::find_if(first, origins.end(), [](Origin origin) { return origin != Origin::kSecond; });
  const Whole whole{encoding.value(), static_cast<std::size_t>(first - origins.begin()),
                    static_cast<std::size_t>(end - origins.begin())};
  const std::size_t context = whole.end - whole.first, others = origins.size() - context;
  std::size_t room = context;
  const auto stride = static_cast<std::size_t>(options_.stride);
  if (options_.max_length && origins.size() > static_cast<std::size_t>(*options_.max_length)) {
    const auto most = static_cast<std::size_t>(*options_.max_length);
    room = most > others ? most - others : 0;
    if (room <= stride) {
      return Failure{"the question leaves room for " + std::to_string(room) + " tokens of the context, and stride is " +
                         std::to_string(stride),
                     "use a larger max_seq_len, or a smaller stride"};
    }
  }
  Sequence sequence;
  for (std::size_t from = 0;; from += room - stride) {
    const std::size_t to = std::min(context, from + room);
    add_window(whole, whole.first + from, whole.first + to, sequence);
    if (to == context) break;
  }
  return sequence;
}

namespace {

/// The tokens of an answer in a window, from `begin` to `end` of its tokens; the first token where it has not all of
/// it.
std::pair<std::int32_t, std::int32_t> span_in(const std::vector<std::int32_t>& offsets, std::size_t begin,
                                              std::size_t end, std::int64_t answer_begin, std::int64_t answer_end) {
  const auto at = [&](std::size_t token, int side) { return offsets[2 * token + static_cast<std::size_t>(side)]; };
  std::size_t first = begin, last = end - 1;
  while (first < end && at(first, 0) < 0) ++first;
  while (last > first && at(last, 0) < 0) --last;
  if (first == end || at(first, 0) > answer_begin || at(last, 1) < answer_end) return {0, 0};
  std::size_t from = first, to = last;
  while (from < last && at(from + 1, 0) <= answer_begin) ++from;
  while (to > first && at(to - 1, 1) >= answer_end) --to;
  return {static_cast<std::int32_t>(from - begin), static_cast<std::int32_t>(to - begin)};
}

}  // namespace

Result<Sequence> QuestionEncoder::operator()(const std::string& text, std::int64_t /*vocab_size*/) const {
  const Result<Node> parsed = runner::core::parse_json(text);
  if (!parsed) return parsed.failure();
  if (!parsed.value().is_mapping()) return Failure{"not an object", ""};
  auto record = read(parsed.value());
  if (!record) return record.failure();
  auto windows = windows_of(record.value());
  if (!windows) return windows;
  Sequence& sequence = windows.value();
  std::vector<std::int32_t> begins = {0};
  begins.insert(begins.end(), sequence.begins.begin(), sequence.begins.end());
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto begin = static_cast<std::size_t>(begins[i]);
    const std::size_t end = i + 1 < begins.size() ? static_cast<std::size_t>(begins[i + 1]) : sequence.input.size();
    std::pair<std::int32_t, std::int32_t> span{0, 0};
    if (!record.value().answers.empty()) {
      const Answer& answer = record.value().answers.front();
      span = span_in(sequence.offsets, begin, end, answer.begin, answer.end);
    }
    sequence.labels.insert(sequence.labels.end(), {span.first, span.second});
  }
  sequence.given = {std::move(record.value().id), std::move(record.value().context)};
  for (Answer& answer : record.value().answers) sequence.given.push_back(std::move(answer.text));
  sequence.unread = std::move(record.value().unread);
  sequence.fields = std::move(record.value().fields);
  return windows;
}

}  // namespace components::data
