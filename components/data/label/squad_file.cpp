#include "components/data/label/squad_file.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/byte_source.h"

namespace components::data {
namespace {

using runner::core::ByteSource;
using runner::core::Node;
using runner::core::RunError;

constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::size_t kFileMax = std::size_t{1} << 30;
constexpr std::int64_t kValuesMax = 100'000'000;

std::string whole_file(const std::string& path) {
  ByteSource bytes(path);
  std::string text, chunk(kChunk, '\0');
  for (std::size_t read = bytes.read(chunk.data(), kChunk); read > 0; read = bytes.read(chunk.data(), kChunk)) {
    text.append(chunk, 0, read);
    if (text.size() > kFileMax) {
      throw RunError(path + ": longer than " + with_commas(static_cast<std::int64_t>(kFileMax)) + " bytes",
                     "write each question as a line of JSON");
    }
  }
  if (!bytes.problem().empty()) throw RunError(path + ": " + bytes.problem());
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  std::vector<std::string> read() {
    auto parsed = runner::core::parse_json(whole_file(path_), {.depth_max = 16, .values_max = kValuesMax});
    if (!parsed) throw RunError(path_ + ": " + parsed.failure().message);
    for (const Node& article : list(parsed.value(), "data", "the file")) {
      for (const Node& paragraph : list(article, "paragraphs", "an article")) {
        for (const Node& question : list(paragraph, "qas", "a paragraph")) add(article, paragraph, question);
      }
    }
    return std::move(records_);
  }

 private:
  const std::vector<Node>& list(const Node& object, const char* key, const char* of) const {
    const Node* found = object.is_mapping() ? object.find(key) : nullptr;
    if (found != nullptr && found->is_sequence()) return found->items();
    throw RunError(path_ + ": " + of + " has no list \"" + key + "\"",
                   "a file of SQuAD is {data: [{paragraphs: [{context, qas: [...]}]}]}");
  }

  void add(const Node& article, const Node& paragraph, const Node& question) {
    Node record = Node::mapping();
    const auto copy = [&record](const Node& from, const char* key) {
      const Node* value = from.is_mapping() ? from.find(key) : nullptr;
      if (value != nullptr) record.set(key, *value);
    };
    copy(question, "id");
    copy(article, "title");
    copy(paragraph, "context");
    copy(question, "question");
    // One object for each answer becomes one object of lists, as the data set has it.
    if (const Node* answers = question.is_mapping() ? question.find("answers") : nullptr; answers != nullptr) {
      if (!answers->is_sequence()) throw RunError(path_ + ": answers of a question are no list");
      Node texts = Node::sequence(), starts = Node::sequence(), lists = Node::mapping();
      for (const Node& answer : answers->items()) {
        const Node* text = answer.is_mapping() ? answer.find("text") : nullptr;
        const Node* start = answer.is_mapping() ? answer.find("answer_start") : nullptr;
        texts.items().push_back(text != nullptr ? *text : Node());
        starts.items().push_back(start != nullptr ? *start : Node());
      }
      lists.set("text", std::move(texts));
      lists.set("answer_start", std::move(starts));
      record.set("answers", std::move(lists));
    }
    records_.push_back(to_json(record, -1));
  }

  const std::string& path_;
  std::vector<std::string> records_;
};

}  // namespace

std::vector<std::string> squad_records(const std::string& path) { return Reader(path).read(); }

bool is_squad_file(const std::string& path) {
  ByteSource bytes(path);
  std::string text(256, '\0');
  text.resize(bytes.read(text.data(), text.size()));
  std::string begin;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') begin += c;
  }
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (begin.starts_with(kMark)) begin.erase(0, kMark.size());
  return begin.starts_with("{\"data\":[") || begin.starts_with("{\"version\":");
}

}  // namespace components::data
