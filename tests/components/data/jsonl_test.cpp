#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"

using components::kAttentionMask;
using components::kInput;
using components::kTarget;
using runner::core::Node;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;
constexpr std::int64_t kBytesMax = 1 << 20;

std::string tokenizer_text() {
  return runner::core::read_file(tests::source_dir() + "/recipes/examples/data/tokenizer.json", kBytesMax).value();
}

/// A folder with the tokenizer of the examples.
struct Folder {
  tests::Folder folder;
  explicit Folder(const std::string& records) {
    folder.write("tokenizer.json", tokenizer_text());
    folder.write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
    folder.write("a.jsonl", records);
  }
};

std::string block(const std::string& more) {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

/// The text of the tokens that the loss counts, by what each position is to predict.
std::string counted(const components::data::Dataset& data, std::int64_t index) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {index}, kTarget)) {
    if (id != kPad) ids.push_back(static_cast<std::int64_t>(id));
  }
  return data.decode(ids);
}

std::string whole(const components::data::Dataset& data, std::int64_t index) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {index}, kInput)) ids.push_back(static_cast<std::int64_t>(id));
  return data.decode(ids);
}

Values numbers(const Node& list) {
  Values values;
  for (const Node& item : list.items()) values.push_back(static_cast<double>(item.as_integer()));
  return values;
}

}  // namespace

TEST_CASE("conversations become the ids of Transformers, and only answers count", "[data][jsonl]") {
  const Node recorded =
      runner::core::parse_json(
          runner::core::read_file(tests::source_dir() + "/tests/components/data/recorded/conversations.json", kBytesMax)
              .value())
          .value();
  for (const auto& [name, format] :
       {std::pair{"chatml", recorded.find("chatml")}, {"smollm2", recorded.find("smollm2")}}) {
    std::string records;
    for (const Node& one : format->find("cases")->items()) {
      records += R"({"messages": )" + to_json(*one.find("messages"), -1) + "}\n";
    }
    const Folder folder(records);
    const auto named = good_data(block(std::string(", chat_format: ") + name));
    folder.folder.write("chat_template.jinja", format->find("template")->as_string());
    const auto found = good_data(block(""));  // by the template beside the tokenizer
    const auto& cases = format->find("cases")->items();
    REQUIRE(named->size() == static_cast<std::int64_t>(cases.size()));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      INFO(name << ", conversation " << i << ": " << to_json(*cases[i].find("messages"), -1));
      const Values ids = numbers(*cases[i].find("ids"));
      Values target(ids.size(), kPad);
      for (const double at : numbers(*cases[i].find("counted"))) {
        if (at > 0) target[static_cast<std::size_t>(at) - 1] = ids[static_cast<std::size_t>(at)];
      }
      const auto index = static_cast<std::int64_t>(i);
      CHECK(fetched(*named, {index}, kInput) == ids);
      CHECK(fetched(*named, {index}, kTarget) == target);
      CHECK(fetched(*found, {index}, kInput) == ids);
      CHECK(fetched(*found, {index}, kTarget) == target);
    }
  }
}

TEST_CASE("each form of a record is known by its fields", "[data][jsonl]") {
  const std::string alpaca =
      "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
      "### Instruction:\nAdd.\n\n### Response:\n";
  struct Case {
    const char *record, *more;
    std::string text, counted;  ///< all that is fed, and what is learnt of it
  };
  const Case cases[] = {
      {R"({"text": "A text.", "id": 3})", "", "A text.<|im_end|>", " text.<|im_end|>"},
      {R"({"prompt": "Say hi: ", "completion": "hi"})", "", "Say hi: hi<|im_end|>", " hi<|im_end|>"},  // one token
      {R"({"prompt": "Say hi: ", "completion": "hi"})", ", loss_on: all", "Say hi: hi<|im_end|>",
       "ay hi: hi<|im_end|>"},
      {R"({"question": "Why?", "answer": " So."})", ", columns: {prompt: question, completion: answer}",
       "Why? So.<|im_end|>", " So.<|im_end|>"},
      {R"({"instruction": "Add.", "input": "", "output": "3"})", "", alpaca + "3<|im_end|>", "3<|im_end|>"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})",
       ", chat_format: chatml", "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n", "b<|im_end|>"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const Folder folder(c.record);
    const auto data = good_data(block(c.more));
    CHECK(whole(*data, 0) == c.text);
    CHECK(counted(*data, 0) == c.counted);
  }
}

TEST_CASE("a record that is none is refused with its line", "[data][jsonl]") {
  struct Case {
    const char *record, *more, *message;
  };
  const Case cases[] = {
      {"{\"text\": ", "", "not valid JSON"},
      {"[1]", "", "a.jsonl:2: not an object"},
      {R"({"texts": "a"})", "", "a.jsonl:2: has none of the fields text, prompt and completion, instruction, messages"},
      {R"({"text": 3})", "", "a.jsonl:2: text is a number, not a text"},
      {R"({"prompt": "a"})", "", "a.jsonl:2: completion is missing"},
      {R"({"messages": []})", ", chat_format: chatml", "a.jsonl:2: messages is empty"},
      {R"({"messages": [{"role": "user"}]})", ", chat_format: chatml", "a.jsonl:2: messages[0].content is missing"},
      {R"({"messages": [{"role": "user", "content": "a"}]})", "",
       "a.jsonl:2: a conversation, but there is no chat template"},
      {R"({"text": "a"})", ", columns: {text: body}", "body is missing"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const Folder folder(std::string("\n") + c.record + "\n");
    const auto built = build_data(block(c.more));
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
    INFO(built.messages);
  }
}

TEST_CASE("long records are cut, dropped or refused, and short ones padded", "[data][jsonl]") {
  const Folder folder("{\"text\": \"aaa bbb ccc ddd eee fff\"}\n{\"text\": \"a\"}\n");
  const auto cut = good_data(block(", max_seq_len: 4"));
  CHECK(cut->size() == 2);
  CHECK(fetched(*cut, {0, 1}, kAttentionMask) == Values{1, 1, 1, 1, 1, 1, 0, 0});
  CHECK(good_data(block(", max_seq_len: 4, too_long: drop"))->size() == 1);
  CHECK(build_data(block(", max_seq_len: 4, too_long: error")).messages.find("longer than max_seq_len 4") !=
        std::string::npos);
}
