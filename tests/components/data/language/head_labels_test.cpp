// Labels of texts that a model's head tells, in records of jsonl.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kAttentionMask;
using components::kInput;
using components::kTarget;
using components::kTokenTypes;
using components::data::Dataset;
using components::data::LabelKind;
using tests::BuildData;
using tests::fetched;
using tests::good_data;
using tests::TokenizerFolder;
using Values = std::vector<double>;
using Names = std::vector<std::string>;

namespace {

constexpr double kNone = components::kPadTarget;

std::string block(const std::string& more = "", const std::string& file = "a.jsonl") {
  return "{type: jsonl, path: " + file + ", tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

class Folder : public TokenizerFolder {
 public:
  explicit Folder(const std::string& records) : TokenizerFolder(tests::tokenizer_file("bert.json"), "{}") {
    write("a.jsonl", records);
  }
};

std::string text_of(const Dataset& data, std::int64_t index) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {index}, kInput)) ids.push_back(static_cast<std::int64_t>(id));
  return data.decode(ids);
}

Names class_names(const Dataset& data) {
  Names names;
  for (std::int64_t i = 0; i < data.signature().at(kTarget).num_classes; ++i) names.push_back(data.class_name(i));
  return names;
}

/// What is said of a set that cannot be built, behind its place.
std::string problem_of(const std::string& records, BuildData options, const std::string& more = "") {
  const Folder folder(records);
  const auto built = tests::build_data(block(more), options);
  CHECK(built.data == nullptr);
  return built.messages;
}

bool says(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

constexpr const char* kFruit = R"({"text": "the people", "label": "pear"}
{"text": "of", "label": "apple"}
{"text": "we the", "label": "pear"}
)";

}  // namespace

TEST_CASE("names of classes are numbered in the order of their bytes", "[data][jsonl][labels]") {
  const Folder folder(kFruit);
  const auto data = good_data(block(), {.labels = LabelKind::kClass});
  const auto& target = data->signature().at(kTarget);
  CHECK(target.num_classes == 2);
  CHECK(target.shape == std::vector<std::int64_t>{components::kBatch});
  CHECK(class_names(*data) == Names{"apple", "pear"});
  CHECK(fetched(*data, {0, 1, 2}, kTarget) == Values{1, 0, 1});
  CHECK(text_of(*data, 0) == "[CLS] the people [SEP]");
  CHECK(data->signature().find(kAttentionMask) != nullptr);
  CHECK(data->predicted_positions(0) == 0);
}

TEST_CASE("another set and a model number classes as they have them", "[data][jsonl][labels]") {
  Folder folder(kFruit);
  const auto train = good_data(block(), {.labels = LabelKind::kClass});
  folder.write("b.jsonl", "{\"text\": \"of\", \"label\": \"pear\"}\n{\"text\": \"we\", \"label\": 0}\n");
  const auto val = good_data(block("", "b.jsonl"), {.name = "val", .train = train.get(), .labels = LabelKind::kClass});
  CHECK(fetched(*val, {0, 1}, kTarget) == Values{1, 0});
  folder.write("c.jsonl", "{\"text\": \"of\", \"label\": \"paer\"}\n");
  const auto wrong =
      tests::build_data(block("", "c.jsonl"), {.name = "val", .train = train.get(), .labels = LabelKind::kClass});
  CHECK(says(wrong.messages, "c.jsonl:1"));
  CHECK(says(wrong.messages, "data.train has no record with the label \"paer\": its labels are \"apple\", \"pear\""));
  CHECK(says(wrong.messages, "did you mean pear?"));

  const auto of_model =
      good_data(block(), {.labels = LabelKind::kClass, .model_classes = {.names = {"pear", "plum", "apple"}}});
  CHECK(class_names(*of_model) == Names{"pear", "plum", "apple"});
  CHECK(fetched(*of_model, {0, 1, 2}, kTarget) == Values{0, 2, 0});
  // A model that has other classes has none of these.
  const auto others =
      tests::build_data(block(), {.labels = LabelKind::kClass, .model_classes = {.names = {"fig", "plum"}}});
  REQUIRE(others.data != nullptr);
  CHECK(class_names(*others.data) == Names{"apple", "pear"});
  CHECK(says(others.messages, "its own are \"apple\", \"pear\", and the model's \"fig\", \"plum\""));
}

TEST_CASE("numbers of classes are what they are", "[data][jsonl][labels]") {
  const Folder folder("{\"sentence\": \"of\", \"label\": 2}\n{\"sentence\": \"the\", \"label\": false}\n");
  const auto built = tests::build_data(block(), {.labels = LabelKind::kClass});
  CHECK(says(built.messages, "notice: no record of data.train has the class 1, of the 3 from 0 to the largest"));
  const auto& data = built.data;
  REQUIRE(data != nullptr);
  CHECK(class_names(*data) == Names{"0", "1", "2"});
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{2, 0});
  const auto named =
      good_data(block(), {.labels = LabelKind::kClass, .model_classes = {.names = {"a", "b", "c", "d"}}});
  CHECK(class_names(*named) == Names{"a", "b", "c", "d"});
  // A trained head keeps the classes that these records lack, and more than it has make a new one.
  const auto trained = good_data(block(), {.labels = LabelKind::kClass, .model_classes = {.count = 5}});
  CHECK(class_names(*trained) == Names{"0", "1", "2", "3", "4"});
  CHECK(fetched(*trained, {0, 1}, kTarget) == Values{2, 0});
  const auto others = tests::build_data(block(), {.labels = LabelKind::kClass, .model_classes = {.count = 2}});
  REQUIRE(others.data != nullptr);
  CHECK(class_names(*others.data) == Names{"0", "1", "2"});
}

TEST_CASE("names of which only some are the model's are refused where its head would be kept",
          "[data][jsonl][labels]") {
  const Folder folder(kFruit);
  const auto built = [](components::data::ModelClasses classes) {
    return tests::build_data(block(), {.labels = LabelKind::kClass, .model_classes = std::move(classes)});
  };
  const auto misspelt = built({.names = {"Pear", "apple"}});
  CHECK(misspelt.data == nullptr);
  CHECK(says(misspelt.messages, "error: data.train has labels that the model does not have"));
  CHECK(says(misspelt.messages, "its own are \"apple\", \"pear\", and the model's \"Pear\", \"apple\""));
  CHECK(says(misspelt.messages, "init_from.exclude: \"head.*\""));
  const auto foreign = built({.names = {"good", "bad"}});
  CHECK(foreign.data != nullptr);
  CHECK(says(foreign.messages, "warning: data.train has labels"));
  // A head with another number of classes begins at random anyway.
  const auto fewer = built({.names = {"apple", "plum", "Pear"}});
  CHECK(fewer.data != nullptr);
  CHECK_FALSE(says(fewer.messages, "init_from.exclude"));
  const auto excluded = built({.names = {"Pear", "apple"}, .is_new_head = true});
  CHECK(excluded.messages.empty());
  REQUIRE(excluded.data != nullptr);
  CHECK(class_names(*excluded.data) == Names{"apple", "pear"});
}

TEST_CASE("both texts of a pair stand between the tokenizer's tokens, also where they are cut",
          "[data][jsonl][labels]") {
  const Folder folder(R"({"premise": "the people of the", "hypothesis": "we", "label": 1}
{"premise": "of", "hypothesis": "the", "label": 0}
)");
  const auto whole = good_data(block(), {.labels = LabelKind::kClass});
  CHECK(text_of(*whole, 0) == "[CLS] the people of the [SEP] we [SEP]");
  CHECK(fetched(*whole, {0}, kTokenTypes) == Values{0, 0, 0, 0, 0, 0, 1, 1});
  CHECK(whole->account().cut == 0);
  const auto cut = good_data(block(", max_seq_len: 6"), {.labels = LabelKind::kClass});
  CHECK(text_of(*cut, 0) == "[CLS] the people [SEP] we [SEP]");
  CHECK(cut->account().cut == 1);
  const auto dropped = tests::build_data(block(", max_seq_len: 6, too_long: drop"), {.labels = LabelKind::kClass});
  REQUIRE(dropped.data != nullptr);
  CHECK(dropped.data->size() == 1);
  const auto first = good_data(block(", max_seq_len: 4, columns: {text: premise}"), {.labels = LabelKind::kClass});
  CHECK(text_of(*first, 0) == "[CLS] the people [SEP]");
}

TEST_CASE("a record may have several classes, by name or as 0 and 1", "[data][jsonl][labels]") {
  Folder folder(R"({"text": "the", "labels": ["b", "a"]}
{"text": "of", "labels": []}
{"text": "we", "labels": ["c"]}
)");
  const auto named = good_data(block(), {.labels = LabelKind::kClasses});
  CHECK(named->target_names() == Names{"a", "b", "c"});
  CHECK(fetched(*named, {0, 1, 2}, kTarget) == Values{1, 1, 0, 0, 0, 0, 0, 0, 1});
  folder.write("b.jsonl",
               "{\"text\": \"in\", \"labels\": []}\n{\"text\": \"the\", \"labels\": [0, 1]}\n{\"text\": \"of\", "
               "\"labels\": [1, 1]}\n");
  const auto bits =
      good_data(block("", "b.jsonl"), {.labels = LabelKind::kClasses, .model_classes = {.names = {"x", "y"}}});
  CHECK(fetched(*bits, {0, 1, 2}, kTarget) == Values{0, 0, 0, 1, 1, 1});
  CHECK(bits->target_names() == Names{"x", "y"});
  // A set without a label has the classes of the training set.
  folder.write("none.jsonl", "{\"text\": \"the\", \"labels\": []}\n{\"text\": \"of\", \"labels\": []}\n");
  for (const auto& train : {named, bits}) {
    const auto none =
        good_data(block("", "none.jsonl"), {.name = "val", .train = train.get(), .labels = LabelKind::kClasses});
    CHECK(none->target_names() == train->target_names());
    CHECK(fetched(*none, {0, 1}, kTarget) == Values(2 * train->target_names().size(), 0.0));
  }
  const auto untold = tests::build_data(block("", "none.jsonl"), {.labels = LabelKind::kClasses});
  CHECK(untold.data == nullptr);
  CHECK(says(untold.messages, "error: no record of data.train has a label"));
}

TEST_CASE("labels of a regression are values", "[data][jsonl][labels]") {
  const Folder folder("{\"text\": \"the\", \"label\": 2.5}\n{\"text\": \"of\", \"label\": -1}\n");
  const auto data = good_data(block(), {.labels = LabelKind::kValues});
  CHECK(data->signature().at(kTarget).shape == std::vector<std::int64_t>{components::kBatch, 1});
  CHECK(fetched(*data, {0, 1}, kTarget) == Values{2.5, -1});
}

TEST_CASE("the first token of each word has its tag", "[data][jsonl][labels]") {
  const Folder folder(R"({"tokens": ["the", "unaffordable", "people"], "ner_tags": ["O", "B-X", "O"]}
{"tokens": ["of", "we"], "ner_tags": ["B-X", "O"]}
)");
  const auto data = good_data(block(), {.labels = LabelKind::kTags});
  CHECK(class_names(*data) == Names{"B-X", "O"});
  const Values first = fetched(*data, {0}, kTarget);
  CHECK(first.size() == fetched(*data, {0}, kInput).size());
  CHECK(first.front() == kNone);
  CHECK(first.back() == kNone);
  Values tags;
  for (const double tag : first) {
    if (tag != kNone) tags.push_back(tag);
  }
  CHECK(tags == Values{1, 0, 1});
  CHECK(fetched(*data, {1}, kTarget) == Values{kNone, 0, 1, kNone});
}

TEST_CASE("ids have labels for a head, too", "[data][ids][labels]") {
  Folder folder(kFruit);
  folder.write("texts.jsonl", "{\"input_ids\": [3, 4, 5], \"labels\": 2}\n{\"input_ids\": [6], \"labels\": 0}\n");
  folder.write("values.jsonl", "{\"input_ids\": [3, 4], \"labels\": [0.5, -1]}\n");
  folder.write("tags.jsonl", R"({"input_ids": [3, 4, 5], "labels": [-100, 2, 0]})");
  const auto of = [](const std::string& file, const BuildData& options) {
    return tests::build_data("{type: ids, path: " + file + "}", options);
  };
  const BuildData tags{.labels = LabelKind::kTags}, one{.labels = LabelKind::kClass};
  const auto texts = of("texts.jsonl", one).data;
  REQUIRE(texts != nullptr);
  CHECK(fetched(*texts, {0, 1}, kTarget) == Values{2, 0});
  CHECK(fetched(*texts, {0, 1}, kInput) == Values{3, 4, 5, 6, 0, 0});
  CHECK(texts->signature().at(kTarget).num_classes == 3);
  const auto values = of("values.jsonl", {.labels = LabelKind::kValues}).data;
  REQUIRE(values != nullptr);
  CHECK(fetched(*values, {0}, kTarget) == Values{0.5, -1});
  const auto tagged = of("tags.jsonl", tags).data;
  REQUIRE(tagged != nullptr);
  CHECK(fetched(*tagged, {0}, kTarget) == Values{kNone, 2, 0});
  CHECK(says(of("values.jsonl", one).messages, "labels is a list, and a record has one class"));
  CHECK(says(of("texts.jsonl", tags).messages, "labels is not a list"));
  folder.write("few.jsonl", R"({"input_ids": [3, 4, 5], "labels": [1]})");
  CHECK(says(of("few.jsonl", tags).messages, "labels has 1 number, and input_ids 3"));
  folder.write("none.jsonl", R"({"input_ids": [3, 4, 5]})");
  CHECK(says(of("none.jsonl", one).messages, "labels is missing, and the model's head learns it"));
}

TEST_CASE("rows to predict have no labels", "[data][jsonl][labels]") {
  Folder folder(kFruit);
  const auto train = good_data(block(), {.labels = LabelKind::kClass});
  folder.write("new.jsonl", "{\"text\": \"of\"}\n");
  const auto rows = good_data(block("", "new.jsonl"),
                              {.name = "new", .train = train.get(), .labels = LabelKind::kClass, .new_rows = true});
  CHECK(text_of(*rows, 0) == "[CLS] of [SEP]");
  CHECK(class_names(*rows) == Names{"apple", "pear"});
}

TEST_CASE("a wrong label or field is told with what the record has", "[data][jsonl][labels]") {
  const BuildData one{.labels = LabelKind::kClass}, several{.labels = LabelKind::kClasses},
      values{.labels = LabelKind::kValues}, tags{.labels = LabelKind::kTags};
  const auto said = problem_of("{\"txt\": \"of\", \"quality\": 1}\n", one);
  CHECK(says(said, "a.jsonl:1"));
  CHECK(says(said, "the text is missing: its fields are \"txt\", \"quality\""));
  CHECK(says(problem_of("{\"sentence1\": \"we\", \"sentence2\": null, \"label\": 1}\n", one), "sentence2 is null"));
  CHECK(says(said, "name the field: columns: {text: FIELD}"));
  CHECK(says(problem_of("{\"text\": \"of\", \"quality\": 1}\n", one), "the label is missing: its fields are"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": 0.5}\n", one), "the number of a class has no fraction"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": -1}\n", one), "classes are numbered from 0"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": [1]}\n", one), "label is a list, and a record has one class"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": {}}\n", one), "label is an object"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": \"a\"}\n{\"text\": \"of\", \"label\": 1}\n", one),
             "the label 1 is a number, and those before it names"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": \"a\"}\n", several), "not a list of classes"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": [2, 0]}\n", several), "not all are 0 or 1"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": \"a\"}\n", values), "label is a text, not a number"));
  CHECK(says(problem_of("{\"text\": \"of\", \"label\": [1, 2]}\n{\"text\": \"of\", \"label\": 1}\n", values),
             "the label has 1 value, and that of the first record has 2"));
  CHECK(says(problem_of("{\"tokens\": [\"of\", \"we\"], \"tags\": [\"O\"]}\n", tags),
             "tags has 1 tag, and tokens has 2"));
  CHECK(says(problem_of("{\"text\": \"of we\", \"tags\": [\"O\"]}\n", tags), "the list of words is missing"));
  for (const char* key : {"packing: true", "streaming: true", "loss_on: all", "train_on_eos: none"}) {
    CHECK(says(problem_of(kFruit, one, std::string(", ") + key), "is set, but the model's head tells labels of texts"));
  }
  CHECK(says(problem_of(kFruit, {}, ", columns: {text_pair: other}"), "has no head that reads two texts"));
}
