// Single records with a label, as those of jsonl where the loss is of them.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/tensor/preferences.h"
#include "components/tensor/tensor_spec.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kDesirable;
using components::kInput;
using components::kRejectedAt;
using components::kTarget;
using tests::BuildData;
using tests::fetched;
using tests::TokenizerFolder;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;
const BuildData kLabelled = {.labels = components::data::LabelKind::kDesirable};

std::string block(const std::string& more = "") {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

/// A row as texts: both sequences, what is learnt of each in brackets, and its label.
struct Row {
  std::string own, other;
  bool desirable;
  bool operator==(const Row&) const = default;
};

std::string marked(const components::data::Dataset& data, const Values& input, const Values& target, std::size_t first,
                   std::size_t end) {
  std::vector<std::int64_t> prompt, completion;
  for (std::size_t i = first; i < end; ++i) {
    const bool counts = i > first && target[i - 1] != kPad;
    if (counts) CHECK(target[i - 1] == input[i]);
    (counts ? completion : prompt).push_back(static_cast<std::int64_t>(input[i]));
  }
  return data.decode(prompt) + "[" + data.decode(completion) + "]";
}

std::vector<Row> rows_of(const std::string& text) {
  const auto data = tests::good_data(text, kLabelled);
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    const Values input = fetched(*data, {i}, kInput), target = fetched(*data, {i}, kTarget);
    const auto middle = static_cast<std::size_t>(fetched(*data, {i}, kRejectedAt)[0]);
    rows.push_back({marked(*data, input, target, 0, middle), marked(*data, input, target, middle, input.size()),
                    fetched(*data, {i}, kDesirable)[0] != 0.0});
  }
  return rows;
}

std::string one_line(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n')) text[at] = ' ';
  return text + "\n";
}

}  // namespace

TEST_CASE("a labelled record is a row beside its prompt with the completion before it", "[data][jsonl][labelled]") {
  const TokenizerFolder folder(R"({"prompt": "Say hi:", "completion": " hi", "label": true})"
                               "\n"
                               R"({"prompt": "Why?", "completion": " So, so.", "label": false})"
                               "\n"
                               R"({"prompt": "How?", "completion": " By foot.<|im_end|>", "label": true})"
                               "\n");
  const std::vector<Row> expected = {
      {"Say hi:[ hi<|im_end|>]", "Say hi:[ By foot.<|im_end|>]", true},
      {"Why?[ So, so.<|im_end|>]", "Why?[ hi<|im_end|>]", false},
      {"How?[ By foot.<|im_end|>]", "How?[ So, so.<|im_end|>]", true},
  };
  CHECK((rows_of(block()) == expected));
  CHECK(tests::good_data(block(), kLabelled)->describe().find("3 labelled records") != std::string::npos);
}

TEST_CASE("a pair is two labelled records", "[data][jsonl][labelled]") {
  const TokenizerFolder folder(R"({"prompt": "Say hi:", "chosen": " hi", "rejected": " no"})"
                               "\n"
                               R"({"prompt": "Why?", "chosen": " So.", "rejected": " Eh."})"
                               "\n");
  const std::vector<Row> expected = {
      {"Say hi:[ hi<|im_end|>]", "Say hi:[ Eh.<|im_end|>]", true},
      {"Why?[ So.<|im_end|>]", "Why?[ hi<|im_end|>]", true},
      {"Say hi:[ no<|im_end|>]", "Say hi:[ So.<|im_end|>]", false},
      {"Why?[ Eh.<|im_end|>]", "Why?[ no<|im_end|>]", false},
  };
  CHECK((rows_of(block()) == expected));
}

TEST_CASE("labelled conversations, other names and lengths", "[data][jsonl][labelled]") {
  const TokenizerFolder folder(
      one_line(R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}],
                   "label": false})") +
      one_line(R"({"prompt": [{"role": "user", "content": "c"}], "completion": "d", "label": true})"));
  const std::string a = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n";
  const std::string c = "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n";
  const std::vector<Row> expected = {{a + "[b<|im_end|>\n]", a + "[d<|im_end|>\n]", false},
                                     {c + "[d<|im_end|>\n]", c + "[b<|im_end|>\n]", true}};
  CHECK((rows_of(block(", chat_format: chatml")) == expected));

  folder.write("a.jsonl", R"({"q": "Say hi:", "a": " hi", "good": true})"
                          "\n"
                          R"({"q": "Why?", "a": " So so so so so so so so.", "good": false})"
                          "\n");
  const std::string names = ", columns: {prompt: q, completion: a, label: good}";
  CHECK(
      (rows_of(block(names)).back() == Row{"Why?[ So so so so so so so so.<|im_end|>]", "Why?[ hi<|im_end|>]", false}));
  const auto cut = tests::good_data(block(names + ", max_seq_len: 6"), kLabelled);
  for (const std::int64_t row : {0, 1}) {
    const double middle = fetched(*cut, {row}, kRejectedAt)[0];
    CHECK(middle <= 6.0);
    CHECK(static_cast<double>(fetched(*cut, {row}, kInput).size()) - middle <= 6.0);
  }
}

TEST_CASE("a label beside messages or an instruction is of the last answer", "[data][jsonl][labelled]") {
  const std::string messages =
      R"("messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
      R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])";
  const TokenizerFolder folder(
      "{" + messages +
      R"(, "label": false})"
      "\n"
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "system": "s", "label": true})"
      "\n"
      R"({"instruction": "a", "input": "e", "output": "b", "label": true})"
      "\n");
  const auto turn = [](const char* role, const std::string& text) {
    return "<|im_start|>" + std::string(role) + "\n" + text + "<|im_end|>\n";
  };
  const std::string begin = "<|im_start|>assistant\n";
  const std::string first = turn("user", "a") + turn("assistant", "b") + turn("user", "c") + begin;
  const std::string second = turn("system", "s") + turn("user", "a") + begin;
  const std::string third = turn("user", "a\ne") + begin;
  const std::string b = "[b<|im_end|>\n]", d = "[d<|im_end|>\n]";
  const std::vector<Row> expected = {
      {first + d, first + b, false}, {second + b, second + d, true}, {third + b, third + b, true}};
  CHECK((rows_of(block(", chat_format: chatml")) == expected));
  // A field of another name, also where it is called as that of a completion.
  folder.write(
      "a.jsonl",
      R"({"completion": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "good": true})"
      "\n");
  const std::string named = ", chat_format: chatml, columns: {messages: completion, label: good}";
  CHECK((rows_of(block(named)).front() == Row{turn("user", "a") + begin + b, turn("user", "a") + begin + b, true}));
}

TEST_CASE("what is no labelled record is refused with its line", "[data][jsonl][labelled]") {
  struct Case {
    const char *record, *more, *message;
  };
  const Case cases[] = {
      {R"({"prompt": "a", "completion": "b"})", "", "a.jsonl:1: label is missing"},
      {R"({"prompt": "a", "completion": "b", "label": null})", "", "a.jsonl:1: label is missing"},
      {R"({"prompt": "a", "completion": "b", "label": "yes"})", "", "a.jsonl:1: label is a text, not true or false"},
      {R"({"prompt": "a", "completion": "b", "label": 1})", "", "a.jsonl:1: label is a number, not true or false"},
      {R"({"prompt": "a", "label": true})", "", "a.jsonl:1: completion is missing"},
      {R"({"completion": "a", "label": true})", "", "a.jsonl:1: prompt is missing"},
      {R"({"text": "a", "label": true})", "", "a.jsonl:1: prompt is missing"},
      {R"({"prompt": "a", "chosen": "b"})", "", "a.jsonl:1: rejected is missing"},
      {R"({"prompt": "a", "completion": 1, "label": true})", "", "a.jsonl:1: completion is a number, not a text"},
      {R"({"prompt": "a", "completion": "b", "label": true})", ", columns: {label: good}",
       "a.jsonl:1: good is missing"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
       ", chat_format: chatml", "a.jsonl:1: label is missing"},
      {R"({"messages": [{"role": "assistant", "content": "b"}, {"role": "user", "content": "a"}], "label": true})",
       ", chat_format: chatml", "a.jsonl:1: messages does not end with an answer"},
      {R"({"messages": [{"role": "assistant", "content": "b"}], "label": true})", ", chat_format: chatml",
       "a.jsonl:1: messages does not end with an answer"},
      {R"({"prompt": "a", "completion": "b", "label": true})", ", columns: {messages: chat}",
       "a.jsonl:1: chat is missing"},
      {R"({"prompt": "a", "completion": "b", "label": true})", ", loss_on: all", "data.train.loss_on is all"},
      {R"({"prompt": "a", "completion": "b", "label": true})", ", loss_on: last", "data.train.loss_on is last"},
      {R"({"prompt": "a", "completion": "b", "label": true})", ", packing: true", "data.train.packing is true"},
      {R"({"prompt": "a", "completion": "b", "label": true})", ", streaming: true", "data.train.streaming is true"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(std::string(c.record) + "\n");
    const auto built = tests::build_data(block(c.more), kLabelled);
    INFO(built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
  }
}
