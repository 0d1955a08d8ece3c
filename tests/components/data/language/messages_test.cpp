// What the messages of a record say: each field is written by the chat format, changes what is learnt, or is told.

#include <ATen/ops/equal.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/data/stream.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::kInput;
using components::kTarget;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using tests::TokenizerFolder;

namespace {

constexpr double kPad = components::kPadTarget;
const std::string kChatml = ", chat_format: chatml";
const std::string kTemplate = ", chat_format: {template: chat.jinja}";

/// Writes all that it is given, and a prompt for an answer.
constexpr const char* kTools =
    "{% if tools %}T{% for tool in tools %}({{ tool.function.name }}){% endfor %};{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}:"
    "{% if m.reasoning_content is defined and thinking | default(true) %}[{{ m.reasoning_content }}]{% endif %}"
    "{{ m.content if m.content is defined else '-' }}"
    "{% for call in m.tool_calls or [] %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}"
    "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}";

std::string block(const std::string& more) {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

std::string text_of(const components::data::Dataset& data, std::int64_t index, const char* port) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {index}, port)) {
    if (id != kPad) ids.push_back(static_cast<std::int64_t>(id));
  }
  return data.decode(ids);
}

std::string turns(const std::string& first, const std::string& second) {
  return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b")" + first +
         R"(}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d")" + second + "}]}\n";
}

struct Case {
  std::string record, more, text, counted;  ///< `text` "": as the one before
};

void check(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(c.record);
    folder.write("chat.jinja", kTools);
    const auto built = build_data(block(c.more));
    INFO(built.messages);
    REQUIRE(built.data != nullptr);
    if (!c.text.empty()) text = c.text;
    CHECK(text_of(*built.data, 0, kInput) == text);
    CHECK(text_of(*built.data, 0, kTarget) == c.counted);
    CHECK(built.messages.find("not read") == std::string::npos);
  }
}

}  // namespace

TEST_CASE("a message's content may be parts, and its fields a template's", "[data][jsonl][messages]") {
  const std::string user = "<|im_start|>user:a<|im_end|>", answer = "<|im_start|>assistant:";
  check({
      {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "image_url": null}, "b"]},)"
       R"( {"role": "assistant", "content": "c", "tool_calls": null, "name": null}]})",
       kTemplate, "<|im_start|>user:ab<|im_end|><|im_start|>assistant:c<|im_end|>", "c<|im_end|>"},
      // Arguments stay a text or an object, as apply_chat_template has them; a call may lack `function`.
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls":)"
       R"( [{"type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}, {"name": "g",)"
       R"( "arguments": {"y": 2}}]}], "tools": [{"type": "function", "function": {"name": "f"}}]})",
       kTemplate, "T(f);" + user + answer + R"(-f"{\"x\": 1}"g{"y": 2}<|im_end|>)",
       R"(-f"{\"x\": 1}"g{"y": 2}<|im_end|>)"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "",)"
       R"( "function_call": {"name": "f", "arguments": "{}"}}], "tools": "[{\"function\": {\"name\": \"f\"}}]"})",
       kTemplate, "T(f);" + user + answer + "f\"{}\"<|im_end|>", "f\"{}\"<|im_end|>"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "function_call",)"
       R"( "value": "{\"name\": \"f\", \"arguments\": {}}"}, {"from": "observation", "value": "3"},)"
       R"( {"from": "gpt", "value": "b"}], "system": "s"})",
       kTemplate,
       "<|im_start|>system:s<|im_end|>" + user + answer + "-f{}<|im_end|><|im_start|>tool:3<|im_end|>" + answer +
           "b<|im_end|>",
       "-f{}<|im_end|>b<|im_end|>"},
      // Reasoning has three names.
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "thinking": "r", "content": "b"}]})",
       kTemplate, user + answer + "[r]b<|im_end|>", "[r]b<|im_end|>"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "reasoning": "r", "content": "b"}]})",
       ", chat_format: {template: chat.jinja, variables: {thinking: false}}", user + answer + "b<|im_end|>",
       "b<|im_end|>"},
      // A prompt with its completion, each a text, a message or several.
      {R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]})",
       kTemplate, user + answer + "b<|im_end|>", "b<|im_end|>"},
      {R"({"prompt": "a", "completion": {"role": "assistant", "content": "b"}})", kTemplate, "", "b<|im_end|>"},
      {R"({"prompt": {"role": "user", "content": "a"}, "completion": "b"})", kTemplate, "", "b<|im_end|>"},
      // LLaMA-Factory's version 1.
      {R"({"messages": [{"role": "user", "content": [{"type": "text", "value": "a"}], "loss_weight": 0.0},)"
       R"( {"role": "assistant", "content": [{"type": "text", "value": "b"}], "loss_weight": 0.0},)"
       R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d", "loss_weight": 1.0}]})",
       kTemplate, user + answer + "b<|im_end|><|im_start|>user:c<|im_end|>" + answer + "d<|im_end|>", "d<|im_end|>"},
      // A set's own names.
      {R"({"chat": [{"who": "customer", "says": "a"}, {"who": "bot", "says": "b"}], "rules": "s"})",
       ", columns: {messages: chat, role: who, content: says, system: rules}, roles: {user: customer, "
       "assistant: [agent, bot]}" +
           kChatml,
       "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
       "b<|im_end|>"},
  });
}

TEST_CASE("what of a conversation is learnt follows the set and the messages", "[data][jsonl][messages]") {
  const std::string text =
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
      "<|im_start|>assistant\nd<|im_end|>\n";
  const std::string prompted =
      R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
      R"( {"role": "user", "content": "c"}], "completion": [{"role": "assistant", "content": "d"}]})";
  check({
      {turns("", ""), kChatml, text, "b<|im_end|>d<|im_end|>"},
      {turns("", ""), kChatml + ", loss_on: assistant", text, "b<|im_end|>d<|im_end|>"},
      {turns("", ""), kChatml + ", loss_on: last", "", "d<|im_end|>"},
      {turns("", ""), kChatml + ", loss_on: all, train_on_eos: none", "",
       "user\na\n<|im_start|>assistant\nb\n<|im_start|>user\nc\n<|im_start|>assistant\nd\n"},
      {turns("", ""), kChatml + ", train_on_eos: last", "", "bd<|im_end|>"},
      {turns("", ""), kChatml + ", train_on_eos: none", "", "bd"},
      {turns("", ""), kChatml + ", train_on_eos: all", "", "<|im_end|>b<|im_end|><|im_end|>d<|im_end|>"},
      {turns(R"(, "weight": 0)", R"(, "weight": 1)"), kChatml, "", "d<|im_end|>"},
      {turns(R"(, "loss": false)", R"(, "loss": true)"), kChatml, "", "d<|im_end|>"},
      {turns(R"(, "train": false)", ""), kChatml + ", loss_on: all", "",
       "user\na<|im_end|>\n<|im_start|>assistant\n\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>"
       "\n"},
      {prompted, kChatml + ", loss_on: assistant", "", "b<|im_end|>d<|im_end|>"},
      {prompted, kChatml, "", "d<|im_end|>\n"},  // all of the completion, as TRL has it
      {prompted, kTemplate,
       "<|im_start|>user:a<|im_end|><|im_start|>assistant:b<|im_end|><|im_start|>user:c<|im_end|><|im_start|>assistant:"
       "d<|im_end|>",
       "d<|im_end|>"},
      // What stands behind the last answer that counts is left out: it changes nothing.
      {turns("", R"(, "training": false)"), kChatml,
       "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n", "b<|im_end|>"},
  });
}

TEST_CASE("a message that cannot be kept is an error with its place", "[data][jsonl][messages]") {
  const std::string answer = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": )";
  const Case cases[] = {
      {answer + R"("b", "weight": 0.5}]})", "", "a.jsonl:1: messages[1].weight is 0.5, and an answer counts", ""},
      {answer + R"("b", "train": "no"}]})", "", "messages[1].train is a text", ""},
      {R"({"messages": [{"role": "user", "content": "a", "train": true}]})", "",
       "messages[0].train is true for the role \"user\", and only answers", ""},
      {answer + R"([{"type": "image_url", "image_url": {"url": "x"}}]}]})", "",
       "messages[1].content[0] is of the type \"image_url\", and only text is read", ""},
      {answer + R"([{"type": "text", "text": null}]}]})", "", "messages[1].content[0].text is null, not a text", ""},
      {answer + "3}]}", "", "messages[1].content is a number, not a text", ""},
      {answer + R"("b"}], "tools": "none"})", kTemplate, "tools is a text, not a list of tools in JSON", ""},
      {answer + R"("b"}], "tools": [{"name": "f"}, "g"]})", kTemplate, "tools[1] is a text, not a tool", ""},
      {answer + R"("b", "tool_calls": "f"}]})", kTemplate, "messages[1].tool_calls is a text, not a list of calls", ""},
      {answer + R"(null, "tool_calls": {"name": "f"}}]})", kTemplate,
       "messages[1].tool_calls is an object, not a list of calls", ""},
      {answer + R"("b", "tool_calls": [{"name": "f"}, null]}]})", kTemplate,
       "messages[1].tool_calls[1] is null, not a call", ""},
      {answer + R"(null, "function_call": "f"}]})", kTemplate, "messages[1].function_call is a text, not a call", ""},
      {"{\n  \"text\": \"a\"\n}\n", "", "a.jsonl:1: an object over several lines", ""},
      {answer + R"("b"}], "tools": {"name": "f"}})", kTemplate, "tools is an object, not a list of tools", ""},
      {R"({"prompt": {"role": "user", "content": "a"}})", "", "completion is missing", ""},
  };
  for (const Case& c : cases) {
    const TokenizerFolder folder(c.record);
    folder.write("chat.jinja", kTools);
    const auto built = build_data(block(c.more.empty() ? kChatml : c.more));
    INFO(c.record << built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.text) != std::string::npos);
  }
}

TEST_CASE("a field that a template does not name is told", "[data][jsonl][messages]") {
  const TokenizerFolder folder(
      R"({"messages": [{"role": "user", "content": "a", "tool_call_id": "n"}, {"role": "assistant", "content": "b"}]})");
  folder.write("chat.jinja", kTools);
  const auto built = build_data(block(", chat_format: {template: chat.jinja, variables: {depth: 3}}"));
  CHECK(built.messages.find("messages[].tool_call_id of 1 record") != std::string::npos);
  CHECK(built.messages.find("the chat template reads no variable \"depth\"") != std::string::npos);
}

TEST_CASE("of two different system messages the one that is not read is told", "[data][jsonl][messages]") {
  const auto told = [](const std::string& field) {
    const TokenizerFolder folder(
        R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant",)"
        R"( "content": "b"}], "system": )" +
        field + "}");
    const auto built = build_data(block(kChatml));
    REQUIRE(built.data != nullptr);
    return built.messages.find("not read are system of 1 record") != std::string::npos;
  };
  CHECK(told(R"("other")"));
  CHECK_FALSE(told(R"("s")"));
  CHECK_FALSE(told("null"));
}

TEST_CASE("a JSON array is read as its records", "[data][jsonl][messages]") {
  const std::string arrays[] = {
      "[{\"text\": \"a\"},{\"text\": \"b, ]\\\"\"},{\"text\": \"c\"}]",
      "\n [\n  {\n    \"text\": \"a\"\n  },\n  {\n    \"text\": \"b, ]\\\"\"\n  },\n  {\"text\": \"c\"}\n]\n",
      "\xEF\xBB\xBF[{\"text\": \"a\"},\r\n{\"text\": \"b, ]\\\"\"},\r\n{\"text\": \"c\"}]\r\n",
  };
  for (const std::string& array : arrays) {
    for (const char* more : {"", ", streaming: true, max_seq_len: 8, shuffle_buffer: 2"}) {
      INFO(array << more);
      const TokenizerFolder folder(array);
      const auto data = good_data(block(more));
      if (*more == '\0') {
        REQUIRE(data->size() == 3);
        CHECK(text_of(*data, 1, kInput) == "b, ]\"<|im_end|>");
        continue;
      }
      // A stream that is continued from each of its places reads on there.
      const auto read = [](components::data::Stream& stream) {
        components::TensorMap batch;
        stream.collate(std::vector{stream.next(true)}, batch);
        return batch.at(kInput);
      };
      const auto stream = data->open_stream({.shuffle = true, .seed = 5});
      for (int i = 0; i < 7; ++i) {
        const auto mark = stream->mark();
        REQUIRE(mark != nullptr);
        const auto again = data->open_stream({.shuffle = true, .seed = 5});
        again->go_to(*mark);
        CHECK(at::equal(read(*again), read(*stream)));
      }
    }
  }
  struct Bad {
    const char *text, *message;
  };
  const Bad cases[] = {
      {"[\n{\"text\": \"a\"},\n{\"text\": 3}]", "a.jsonl:3: text is a number, not a text"},
      {"[\n{\"text\": \"a\"},\n{\"text\": ", "a.jsonl:3: the array is cut short"},
      {"[{\"text\": \"a\"}]\n{}", "a.jsonl:2: the array ends, and something stands behind it"},
      {"[{\"text\": \"a\"},,\n{\"text\": \"a\"}]", "a.jsonl:1: a comma stands in the place of a record"},
      {"[]", "data.train has no usable line, of 0 lines that are not empty"},
      {"[[]]", "a.jsonl:1: not an object"},
  };
  for (const Bad& bad : cases) {
    const TokenizerFolder folder(bad.text);
    const auto built = build_data(block(""));
    INFO(bad.text << built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(bad.message) != std::string::npos);
  }
}
