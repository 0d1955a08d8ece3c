// Records of several texts, and of questions, for heads that read them.

#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/questions.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensor_spec.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"
#include "tests/support/paths.h"

using components::kAttentionMask;
using components::kInput;
using components::kPositions;
using components::kTarget;
using components::kTextsAt;
using components::kTokenTypes;
using components::data::Dataset;
using components::data::LabelKind;
using tests::BuildData;
using tests::fetched;
using tests::good_data;
using tests::TokenizerFolder;
using Json = nlohmann::json;
using Values = std::vector<double>;

namespace {

constexpr BuildData kTexts{.labels = LabelKind::kTexts}, kScores{.labels = LabelKind::kScores},
    kSpans{.labels = LabelKind::kSpans}, kChoices{.labels = LabelKind::kChoices};

std::string block(const std::string& more = "", const std::string& file = "a.jsonl") {
  return "{type: jsonl, path: " + file + ", tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

class Folder : public TokenizerFolder {
 public:
  explicit Folder(const std::string& records, const std::string& tokenizer = "bert.json")
      : TokenizerFolder(tests::tokenizer_file(tokenizer), "{}") {
    write("a.jsonl", records);
  }
};

std::string text_of(const Dataset& data, std::int64_t index) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {index}, kInput)) ids.push_back(static_cast<std::int64_t>(id));
  return data.decode(ids);
}

std::string problem_of(const std::string& records, const BuildData& options, const std::string& more = "") {
  const Folder folder(records);
  const auto built = tests::build_data(block(more), options);
  CHECK(built.data == nullptr);
  return built.messages;
}

bool says(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("texts of a record stand behind each other, each as it is alone", "[data][jsonl][texts]") {
  Folder folder(R"({"anchor": "the people", "positive": "we", "negative": "of the"}
{"anchor": "of", "positive": "we the people of", "negative": "the"}
)");
  const auto data = good_data(block(), kTexts);
  CHECK(text_of(*data, 0) == "[CLS] the people [SEP] [CLS] we [SEP] [CLS] of the [SEP]");
  CHECK(fetched(*data, {0, 1}, kTextsAt) == Values{0, 4, 7, 0, 3, 9});
  CHECK(fetched(*data, {0}, kPositions) == Values{0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3});
  CHECK(data->signature().at(kPositions).max_length == 2048);
  CHECK(data->signature().find(kTarget) == nullptr);
  CHECK(data->signature().find(kAttentionMask) != nullptr);
  CHECK(data->parts_of(1).size() == 3);
  CHECK(data->target_names() == std::vector<std::string>{"anchor", "positive", "negative"});
  // What is filled behind a row starts again where a text may be no longer.
  CHECK(fetched(*good_data(block(", max_seq_len: 6, pad_to_multiple_of: 16"), kTexts), {1}, kPositions) ==
        Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0});

  folder.write("new.jsonl", "{\"text\": \"of\"}\n");
  BuildData rows{.name = "new", .train = data.get(), .labels = LabelKind::kTexts};
  rows.new_rows = true;
  const auto fresh = good_data(block("", "new.jsonl"), rows);
  CHECK(fetched(*fresh, {0}, kTextsAt) == Values{0});
  CHECK(fetched(*fresh, {0}, kPositions) == Values{0, 1, 2});
  CHECK(fresh->target_names() == std::vector<std::string>{"text"});
}

TEST_CASE("each text is cut by itself, and keeps the tokenizer's tokens", "[data][jsonl][texts]") {
  const Folder folder("{\"query\": \"the people of the\", \"document\": \"we\"}\n");
  const auto data = good_data(block(", max_seq_len: 4"), kTexts);
  CHECK(text_of(*data, 0) == "[CLS] the people [SEP] [CLS] we [SEP]");
  CHECK(data->account().cut == 1);
  CHECK(data->signature().at(kPositions).max_length == 4);
}

TEST_CASE("pairs with a score have it as their target", "[data][jsonl][texts]") {
  const Folder folder(R"({"sentence1": "the people", "sentence2": "we", "score": 0.5}
{"sentence1": "of", "sentence2": "of", "score": 1}
)");
  const auto data = good_data(block(), kScores);
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{0.5, 1});
  CHECK(fetched(*data, {0, 1}, kTextsAt) == Values{0, 4, 0, 3});
}

TEST_CASE("choices are pairs with the question", "[data][jsonl][texts]") {
  const Folder folder(R"({"question": "of", "choices": ["we", "the people"], "label": 1}
{"sent1": "of", "sent2": "the", "ending0": "people", "ending1": "we", "label": 0}
)");
  const auto data = good_data(block(), kChoices);
  CHECK(text_of(*data, 0) == "[CLS] of [SEP] we [SEP] [CLS] of [SEP] the people [SEP]");
  CHECK(text_of(*data, 1) == "[CLS] of [SEP] the people [SEP] [CLS] of [SEP] the we [SEP]");
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{1, 0});
  CHECK(fetched(*data, {0}, kTokenTypes) == Values{0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1});
  CHECK(data->signature().at(kTarget).num_classes == 2);
}

TEST_CASE("windows of questions are those of Transformers' example", "[data][jsonl][texts][recorded]") {
  const Json recorded =
      Json::parse(std::ifstream(tests::source_dir() + "/tests/components/data/language/recorded/answers.json"));
  const std::string length = ", max_seq_len: " + std::to_string(recorded["max_length"].get<int>()) +
                             ", stride: " + std::to_string(recorded["stride"].get<int>());
  for (const Json& c : recorded["cases"]) {
    INFO(c.dump());
    const Folder folder(c["record"].dump() + "\n", c["file"].get<std::string>());
    const auto data = good_data(block(length), kSpans);
    REQUIRE(data->size() == static_cast<std::int64_t>(c["windows"].size()));
    const components::data::Questions* questions = data->questions();
    REQUIRE(questions != nullptr);
    REQUIRE(questions->all.size() == 1);
    CHECK(questions->some_have_none == c["record"]["answers"]["text"].empty());
    for (std::int64_t i = 0; i < data->size(); ++i) {
      const Json& window = c["windows"][static_cast<std::size_t>(i)];
      CHECK(fetched(*data, {i}, kInput) == window["ids"].get<Values>());
      CHECK(fetched(*data, {i}, kTarget) == window["span"].get<Values>());
      const std::size_t at = questions->windows[static_cast<std::size_t>(i)].at;
      for (std::size_t token = 0; token < window["ids"].size(); ++token) {
        const Json& place = window["offsets"][token];
        CHECK(questions->offsets[at + 2 * token] == (place.is_null() ? -1 : place[0].get<int>()));
        CHECK(questions->offsets[at + 2 * token + 1] == (place.is_null() ? -1 : place[1].get<int>()));
      }
    }
  }
}

TEST_CASE("SQuAD's own files are questions, each with its number", "[data][jsonl][texts]") {
  const Folder folder(R"({"version": "v2.0", "data": [{"title": "t", "paragraphs": [
  {"context": "the people of the", "qas": [
    {"id": "a", "question": "of", "answers": [{"text": "people", "answer_start": 4}, {"text": "the", "answer_start": 0}]},
    {"id": "b", "question": "we", "answers": [], "is_impossible": true}]},
  {"context": "we", "qas": [{"id": 3, "question": "the", "answers": [{"text": "we", "answer_start": 0}]}]}]}]})");
  const auto data = good_data(block(), kSpans);
  const components::data::Questions& questions = *data->questions();
  REQUIRE(questions.all.size() == 3);
  CHECK(questions.contexts.size() == 2);
  CHECK(questions.all[0].answers == std::vector<std::string>{"people", "the"});
  CHECK(questions.all[1].id == "b");
  CHECK(questions.all[2].id == "3");
  CHECK(data->record_of(2)->number == 3);
  CHECK(questions.some_have_none);
  CHECK(questions.text_of(0, 4, 10) == "people");
  CHECK(text_of(*data, 0) == "[CLS] of [SEP] the people of the [SEP]");
  CHECK(fetched(*data, {0, 1, 2}, kTarget) == Values{4, 4, 0, 0, 3, 3});
}

TEST_CASE("ids hold several texts, scores, choices and spans", "[data][ids][texts]") {
  const auto of = [](const std::string& line, LabelKind kind) {
    const TokenizerFolder folder(line + "\n");
    return tests::build_data("{type: ids, path: a.jsonl}", {.labels = kind});
  };
  const std::string two = R"({"input_ids": [[1, 2], [3]], "token_type_ids": [[0, 1], [0]])";
  const auto texts = of(two + "}", LabelKind::kTexts);
  REQUIRE(texts.data != nullptr);
  CHECK(fetched(*texts.data, {0}, kTextsAt) == Values{0, 2});
  CHECK(fetched(*texts.data, {0}, kTokenTypes) == Values{0, 1, 0});
  CHECK(fetched(*of(two + R"(, "labels": 0.25})", LabelKind::kScores).data, {0}, kTarget) == Values{0.25});
  CHECK(fetched(*of(two + R"(, "labels": 1})", LabelKind::kChoices).data, {0}, kTarget) == Values{1});
  CHECK(says(of(two + R"(, "labels": 2})", LabelKind::kChoices).messages,
             "labels is 2, not the number of a choice, from 0 to 1"));
  const auto span = of(R"({"input_ids": [1, 2, 3], "labels": [1, 2]})", LabelKind::kSpans);
  REQUIRE(span.data != nullptr);
  CHECK(fetched(*span.data, {0}, kTarget) == Values{1, 2});
  CHECK(span.data->questions() == nullptr);
  CHECK(says(of(R"({"input_ids": [1, 2], "labels": [1, 2]})", LabelKind::kSpans).messages,
             "labels is [1, 2], not the places of the first and last id of an answer, from 0 to 1"));
}

TEST_CASE("a wrong field of several texts is told with what the record has", "[data][jsonl][texts]") {
  const std::string pair = R"({"anchor": "of", "positive": "we"})";
  CHECK(says(problem_of("{\"txt\": \"of\"}\n", kTexts), "the text is missing: its fields are \"txt\""));
  CHECK(says(problem_of(pair + "\n{\"text\": \"of\"}\n", kTexts),
             "a.jsonl:2: 1 text, and the first line of data.train has 2"));
  CHECK(says(problem_of("{\"anchor\": \"of\", \"positive\": 1}\n", kTexts), "positive is a number"));
  CHECK(says(problem_of(pair + "\n", kScores), "the score is missing: its fields are \"anchor\", \"positive\""));
  CHECK(says(problem_of(pair + "\n", kTexts, ", columns: {label: score}"),
             "data.train.columns.label is set, but the loss reads no scores"));
  CHECK(says(problem_of(pair + "\n", kScores, ", columns: {negative: n}"),
             "data.train.columns.negative is set, but the loss compares two texts with their score"));
  CHECK(says(problem_of(pair + "\n", kTexts, ", stride: 4"), "data.train.stride is set, but the model's head gives"));
  CHECK(says(problem_of(pair + "\n", kTexts, ", streaming: true"), "which are read into memory"));
  CHECK(says(problem_of(pair + "\n", {}, ", columns: {negative: n}"), "no head that reads three texts"));
  CHECK(says(problem_of(pair + "\n", {}, ", stride: 4"), "the model's head does not answer questions"));

  CHECK(says(problem_of("{\"question\": \"of\", \"choices\": [\"we\"], \"label\": 0}\n", kChoices),
             "the record has fewer than two choices"));
  CHECK(says(problem_of("{\"question\": \"of\", \"choices\": [\"we\", 1], \"label\": 0}\n", kChoices),
             "choices[1] is a number, not a text"));
  CHECK(says(problem_of("{\"question\": \"of\", \"choices\": [\"we\", \"a\"], \"label\": 2}\n", kChoices),
             "label is 2, not the number of a choice from 0 to 1"));
  CHECK(says(problem_of("{\"question\": \"of\", \"label\": 2}\n", kChoices), "choices is missing"));

  const std::string question = R"({"question": "of", "context": "we the people", "answers": )";
  CHECK(says(problem_of("{\"question\": \"of\"}\n", kSpans), "context is missing: its fields are \"question\""));
  CHECK(says(problem_of(question + "null}\n", kSpans), "answers is missing"));
  CHECK(says(problem_of(question + "[\"we\"]}\n", kSpans), "answers is [\"we\"], not an object"));
  CHECK(says(problem_of(question + R"({"text": ["people"], "answer_start": [9]}})"
                                   "\n",
                        kSpans),
             "answers.text[0] is not within the context: answer_start 9, of 13 characters"));
  CHECK(says(problem_of(question + R"({"text": ["we"], "answer_start": []}})"
                                   "\n",
                        kSpans),
             "answers does not have as many text as answer_start"));
  CHECK(says(problem_of(question + R"({"text": ["she"], "answer_start": [3]}})"
                                   "\n",
                        kSpans),
             "answers.text[0] is \"she\", which the context does not have"));
  CHECK(says(problem_of(question + R"({"text": [], "answer_start": []}})"
                                   "\n",
                        kSpans, ", max_seq_len: 6, stride: 2"),
             "the question leaves room for 2 tokens of the context, and stride is 2"));
  CHECK(says(problem_of("{\"data\": [{\"paragraphs\": 3}]}", kSpans), "an article has no list \"paragraphs\""));
}
