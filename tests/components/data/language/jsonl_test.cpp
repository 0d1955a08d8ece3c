#include <ATen/Parallel.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "components/data/stream.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/chat/chat_format.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"
#include "tests/support/paths.h"

using components::kAttentionMask;
using components::kInput;
using components::kTarget;
using components::tokenizer::Message;
using runner::core::Node;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using tests::TokenizerFolder;
using Values = std::vector<double>;

namespace {

constexpr double kPad = components::kPadTarget;
constexpr std::int64_t kBytesMax = 1 << 20;

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

/// The low half of FNV-1a, as tests/parity/conversations.py has it.
std::string digest(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(value & 0xffffffffU));
  return digits;
}

std::string spaced(const Values& numbers) {
  std::string text;
  for (const double number : numbers) {
    text += (text.empty() ? "" : " ") + std::to_string(static_cast<std::int64_t>(number));
  }
  return text;
}

Node read_recorded() {
  const std::string path = tests::source_dir() + "/tests/components/data/recorded/conversations.json";
  return runner::core::parse_json(runner::core::read_file(path, kBytesMax).value()).value();
}

/// The tokenizer of the examples with the special tokens of all chat formats.
std::string tokenizer_with(const Node& added_tokens) {
  Node tokenizer = runner::core::parse_json(tests::example_tokenizer()).value();
  Node* added = tokenizer.find("added_tokens");
  for (const Node& token : added_tokens.items()) added->items().push_back(token);
  return to_json(tokenizer, -1);
}

std::vector<Message> messages_of(const Node& recorded) {
  std::vector<Message> messages;
  for (const Node& one : recorded.items()) {
    messages.push_back({one.items()[0].as_string(), one.items()[1].as_string()});
  }
  return messages;
}

std::string record_of(const std::vector<Message>& messages) {
  Node list = Node::sequence();
  for (const Message& message : messages) {
    Node one = Node::mapping();
    one.set("role", Node::string(message.role));
    one.set("content", Node::string(message.content));
    list.items().push_back(std::move(one));
  }
  return R"({"messages": )" + to_json(list, -1) + "}\n";
}

/// The places of what the loss counts, by what each position is to predict.
Values counted_places(const Values& target) {
  Values places;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] != kPad) places.push_back(static_cast<double>(i + 1));
  }
  return places;
}

/// Compares a format with what Transformers makes of its template.
void compare(const std::string& name, const Node& recorded, const std::string& tokenizer, const Node& conversations) {
  const TokenizerFolder folder("");
  folder.write("tokenizer.json", tokenizer);
  folder.write("tokenizer_config.json", R"({"bos_token": ")" + recorded.find("bos")->as_string() +
                                            R"(", "eos_token": ")" + recorded.find("eos")->as_string() + "\"}");
  const auto* known = components::tokenizer::find_chat_format(name);
  REQUIRE(known != nullptr);
  const auto format = known->with_tokens_of(*components::tokenizer::read_tokenizer("tokenizer.json").value());
  REQUIRE(format);
  const auto& cases = recorded.find("cases")->items();
  std::vector<std::string> digests;
  std::vector<const Node*> accepted;
  std::string records;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<Message> messages = messages_of(conversations.items()[i]);
    INFO(name << ", conversation " << i << ": " << record_of(messages));
    const auto text = format.value().render(messages), prompted = format.value().render(messages, true);
    const std::string expected = (cases[i].is_string() ? cases[i] : cases[i].items()[0]).as_string();
    if (expected == "refused") {
      CHECK(!text);
      continue;
    }
    REQUIRE(text);
    CHECK(digest(text.value().text) + digest(prompted.value().text) == expected.substr(0, 16));
    records += record_of(messages);
    digests.push_back(expected.substr(16));
    accepted.push_back(&cases[i]);
  }
  folder.write("a.jsonl", records);
  const auto data = good_data(block(", chat_format: " + name));
  REQUIRE(data->size() == static_cast<std::int64_t>(digests.size()));
  for (std::size_t i = 0; i < digests.size(); ++i) {
    INFO(name << ", record " << i);
    const auto index = static_cast<std::int64_t>(i);
    const Values ids = fetched(*data, {index}, kInput), places = counted_places(fetched(*data, {index}, kTarget));
    CHECK(digest(spaced(ids)) + digest(spaced(places)) == digests[i]);
    if (accepted[i]->is_string()) continue;
    CHECK(ids == numbers(accepted[i]->items()[1]));
    CHECK(places == numbers(accepted[i]->items()[2]));
  }
  if (recorded.find("template") == nullptr) return;
  folder.write("chat_template.jinja", recorded.find("template")->as_string());
  const auto found = good_data(block(""));  // by the template beside the tokenizer
  CHECK(fetched(*found, {0}, kInput) == fetched(*data, {0}, kInput));
}

}  // namespace

TEST_CASE("conversations become the ids of Transformers, and only answers count", "[data][jsonl]") {
  const Node recorded = read_recorded();
  const std::string tokenizer = tokenizer_with(*recorded.find("added_tokens"));
  CHECK(recorded.find("formats")->entries().size() == 13);
  for (const Node::Entry& format : recorded.find("formats")->entries()) {
    compare(format.key, format.value, tokenizer, *recorded.find("conversations"));
  }
}

TEST_CASE("a text that its format begins with the start token gets no second one", "[data][jsonl]") {
  const TokenizerFolder folder(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
      "\n{\"text\": \"a\"}\n");
  Node tokenizer = runner::core::parse_json(tests::example_tokenizer()).value();
  tokenizer.set("post_processor", runner::core::parse_json(R"({"type": "TemplateProcessing", "pair": [],
    "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}})")
                                      .value());
  folder.write("tokenizer.json", to_json(tokenizer, -1));
  folder.write("tokenizer_config.json", R"({"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"})");
  const auto data = good_data(block(", chat_format: llama3"));
  CHECK(whole(*data, 0).substr(0, 31) == "<|im_start|><|start_header_id|>");
  CHECK(whole(*data, 1) == "<|im_start|>a<|im_end|>");  // the tokenizer's, of a plain text
}

TEST_CASE("a recipe may write the texts of a chat format", "[data][jsonl]") {
  const TokenizerFolder folder(
      R"({"messages": [{"role": "user", "content": " a "}, {"role": "assistant", "content": "b"}]})");
  const auto data = good_data(
      block(R"(, chat_format: {begin: "^", before_user: "Q: ", after_user: "\n", before_assistant: "A:", )"
            R"(assistant_start: " ", assistant_end: "{eos}", after_assistant: "\n", default_system: "Answer.", )"
            R"(after_system: "\n\n", system_in: first_user, strip: true})"));
  CHECK(whole(*data, 0) == "^Q: Answer.\n\n a\nA: b<|im_end|>\n");
  CHECK(counted(*data, 0) == " b<|im_end|>");
  const auto changed = good_data(block(", chat_format: {type: chatml, default_system: Brief.}"));
  CHECK(whole(*changed, 0) ==
        "<|im_start|>system\nBrief.<|im_end|>\n<|im_start|>user\n a <|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n");
  const char* texts = "before_user: a, before_assistant: b, assistant_end: c";
  struct Case {
    std::string written, message;
  };
  const Case cases[] = {
      {"lama2", R"(no chat format is called "lama2")"},
      {"{type: zephir}", R"(did you mean "zephyr"?)"},
      {"{before_user: a}", "chat_format needs assistant_end"},
      {std::string("{") + texts + ", befor_system: x}", R"(did you mean "before_system"?)"},
      {std::string("{") + texts + ", strip: 3}", "chat_format.strip must be true or false, got 3"},
      {std::string("{") + texts + ", system_in: first}", R"(chat_format.system_in is "first")"},
      {"[3]", "chat_format must be a name or a mapping, got [3]"},
      {"mistral", "the chat format mistral writes the tokenizer's bos_token, and it has none"},
  };
  for (const Case& c : cases) {
    const auto built = build_data(block(", chat_format: " + c.written));
    INFO(c.written << ": " << built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
  }
}

TEST_CASE("a conversation that its format refuses is named with the reason", "[data][jsonl]") {
  struct Case {
    const char *format, *messages, *message;
  };
  const Case cases[] = {
      {"mistral_v0_1", R"([{"role": "system", "content": "a"}])", "there is no system message"},
      {"llama2", R"([{"role": "assistant", "content": "a"}])", "a.jsonl:1: messages[0] has the role \"assistant\""},
      {"mistral", R"([{"role": "user", "content": "a"}, {"role": "user", "content": "a"}])",
       "a.jsonl:1: messages[1] has the role \"user\", but in the chat format mistral roles alternate"},
      {"zephyr", R"([{"role": "tool", "content": "a"}])",
       "in the chat format zephyr roles are system, user and assist"},
      {"llama3_1", R"([{"role": "user", "content": "a"}, {"role": "system", "content": "a"}])",
       "only the first message may have it"},
  };
  for (const Case& c : cases) {
    const TokenizerFolder folder(std::string(R"({"messages": )") + c.messages + "}\n");
    folder.write("tokenizer_config.json", R"({"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"})");
    const auto built = build_data(block(std::string(", chat_format: ") + c.format));
    INFO(built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
  }
}

TEST_CASE("a chat format names what generation needs", "[data][jsonl]") {
  CHECK(components::tokenizer::find_chat_format("qwen2")->answer_prompt() == "<|im_start|>assistant\n");
  CHECK(components::tokenizer::find_chat_format("qwen2")->end_of_turn() == "<|im_end|>");
  CHECK(components::tokenizer::find_chat_format("llama2")->answer_prompt().empty());
  CHECK(components::tokenizer::find_chat_format("llama2")->end_of_turn() == "{eos}");
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
      {R"({"text": null, "prompt": "Say hi: ", "completion": "hi"})", "", "Say hi: hi<|im_end|>",
       " hi<|im_end|>"},  // one token
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
    const TokenizerFolder folder(c.record);
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
      {"{\"text\": ", "", "a.jsonl:2: it is not valid JSON from byte 10 on"},
      {"[1]", "", "a.jsonl:2: not an object"},
      {R"({"texts": "a"})", "",
       "a.jsonl:2: has none of the fields text, prompt and completion, chosen and rejected, instruction"},
      {R"({"text": 3})", "", "a.jsonl:2: text is a number, not a text"},
      {R"({"prompt": "a"})", "", "a.jsonl:2: completion is missing"},
      {R"({"messages": []})", ", chat_format: chatml", "a.jsonl:2: messages is empty"},
      {R"({"messages": [{"role": "user"}]})", ", chat_format: chatml", "a.jsonl:2: messages[0].content is missing"},
      {R"({"messages": [{"role": "user", "content": "a"}]})", "",
       "a.jsonl:2: a conversation, but there is no chat template"},
      {R"({"text": "a"})", ", columns: {text: body}", "body is missing"},
      {R"({"prompt": "a", "completion": "b", "label": false})", "", "a.jsonl:2: label is false: a bad answer"},
      {R"({"messages": [{"role": "assistant", "content": "b"}], "label": false})", ", chat_format: chatml",
       "a.jsonl:2: label is false: a bad answer"},
      {R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}]})", ", chat_format: chatml",
       "a.jsonl:2: messages[0].tool_calls is not read, and without it the message is an empty answer"},
      {R"({"messages": [{"role": "assistant", "content": null, "function_call": {"name": "f"}}]})",
       ", chat_format: chatml", "a.jsonl:2: messages[0].function_call is not read"},
      {R"({"messages": [{"role": "assistant", "content": null, "refusal": "I cannot."}]})", ", chat_format: chatml",
       "a.jsonl:2: messages[0].refusal is not read, and without it the message is an empty answer"},
      {R"({"question": "How far is it?", "chosen": "The moon is far.", "rejected": "The sun."})", "",
       "a.jsonl:2: prompt is missing, and chosen and rejected do not begin with the text of question"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(std::string("\n") + c.record + "\n");
    const auto built = build_data(block(c.more));
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
    INFO(built.messages);
  }
}

TEST_CASE("what a record says beside its texts is told once, with its count", "[data][jsonl]") {
  struct Case {
    const char *records, *more, *told;  ///< what is told; "" for nothing
  };
  const Case cases[] = {
      {R"({"instruction": "a", "output": "b", "system": "Be kind.", "history": [["a", "b"]]})"
       "\n"
       R"({"instruction": "a", "output": "b", "system": "", "history": [], "id": 7})"
       "\n"
       R"({"instruction": "a", "output": "b", "system": "Be brief."})",
       "", "history of 1 record, such as a.jsonl:1; system of 2 records, such as a.jsonl:1"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "tools": "[{}]"})",
       ", chat_format: chatml", "tools of 1 record, such as a.jsonl:1"},
      {R"({"text": "a", "label": 0})", "", "label of 1 record, such as a.jsonl:1"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "weight": 0})",
       ", chat_format: chatml", "weight of 1 record, such as a.jsonl:1"},
      {R"({"text": "a", "messages": [{"role": "user", "content": "a"}]})", "",
       "messages of 1 record, such as a.jsonl:1"},
      {R"({"question": "a", "answer": "b", "id": 1, "system": "c"})",
       ", columns: {prompt: question, completion: answer}", "system of 1 record, such as a.jsonl:1"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b",)"
       R"( "reasoning_content": "c", "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "d", "name": "e"}]})",
       ", chat_format: chatml",
       "messages[].name of 1 record, such as a.jsonl:1; messages[].reasoning_content of 1 record, such as a.jsonl:1; "
       "messages[].tool_calls of 1 record, such as a.jsonl:1"},
      {R"({"question": "Is it?", "chosen": "Is it? Yes.", "rejected": "Is it? No.", "system": "Be kind."})", "",
       "system of 1 record, such as a.jsonl:1"},
      {R"({"prompt": "a", "completion": "b", "label": true, "tools": null, "meta": {"label": 1}})", "", ""},
      {R"({"messages": [{"role": "assistant", "content": "b", "tool_calls": [], "name": ""}], "system": ""})",
       ", chat_format: chatml", ""},
  };
  for (const Case& c : cases) {
    INFO(c.records << c.more);
    const TokenizerFolder folder(c.records);
    const auto built = build_data(block(c.more));
    CHECK(built.data != nullptr);
    INFO(built.messages);
    const bool told =
        built.messages.find(std::string("data.train: not read are ") + c.told + "\n") != std::string::npos;
    CHECK(told == (*c.told != '\0'));
    CHECK((built.messages.find("not read") != std::string::npos) == told);
  }
  // A stream tells what its first records hold.
  const TokenizerFolder folder(cases[0].records);
  const auto streamed = build_data(block(", streaming: true, max_seq_len: 512"));
  INFO(streamed.messages);
  CHECK(streamed.messages.find(std::string("data.train: of the first 3 lines not read are ") + cases[0].told + "\n") !=
        std::string::npos);
}

TEST_CASE("a stream that begins with line ends alone is refused before it is read whole", "[data][jsonl]") {
  const TokenizerFolder folder(std::string(5'000'000, '\n') + "{\"text\": \"a\"}\n");
  const auto built = build_data(block(", streaming: true, max_seq_len: 2, on_bad_record: skip"));
  INFO(built.messages);
  CHECK(built.data == nullptr);
  CHECK(built.messages.find("more than 4.2 MB of blank lines in a row") != std::string::npos);
}

TEST_CASE("a stream counts unread fields of the records that it encodes", "[data][jsonl]") {
  std::string records;
  for (int i = 1; i <= 12; ++i) {
    records += R"({"text": "a", "label": )" + std::string(i % 3 == 0 ? "1" : "null") +
               (i > 10 ? R"(, "tools": ["b"]})" : "}") + "\n";
  }
  const TokenizerFolder folder(records);
  for (const char* more : {"", ", packing: true"}) {
    const auto built = build_data(block(std::string(", streaming: true, max_seq_len: 2") + more));
    REQUIRE(built.data != nullptr);
    CHECK(built.messages.find("of the first 8 lines not read are label of 2 records, such as a.jsonl:3\n") !=
          std::string::npos);
    const auto stream = built.data->open_stream({});
    CHECK(stream->unread().empty());
    const auto mark = stream->mark();
    for (int i = 0; i < 12; ++i) {
      const auto sample = stream->next(true);
      CHECK(sample->parts().size() == 1);  // which encodes, too, and counts nothing
      components::TensorMap batch;
      stream->collate(std::vector{sample}, batch);
    }
    CHECK(stream->unread() ==
          "of 12 records not read are label of 4 records, such as a.jsonl:3; tools of 2 records, such as a.jsonl:11");
  }
}

TEST_CASE("a role that may be misspelt is told once, with its line", "[data][jsonl]") {
  const auto of_role = [](const std::string& role) {
    return R"({"text": null, "messages": [{"role": "user", "content": "a", "weight": 1}, {"role": ")" + role +
           R"(", "content": "b"}]})" + "\n";
  };
  const TokenizerFolder folder(of_role("assistant") + of_role("asistant") + of_role("asistant") + of_role("User") +
                               of_role("tool") + of_role("critic"));
  const auto built = build_data(block(", chat_format: chatml"));
  REQUIRE(built.data != nullptr);
  const auto count = [&built](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = built.messages.find(text); at != std::string::npos; at = built.messages.find(text, at + 1)) {
      ++found;
    }
    return found;
  };
  CHECK(count("none of a chat") == 3);
  CHECK(count("a.jsonl:2 has the role \"asistant\"") == 1);
  CHECK(count("did you mean assistant?") == 1);
  CHECK(count("a.jsonl:4 has the role \"User\"") == 1);
  CHECK(count("did you mean user?") == 1);
  CHECK(count("a.jsonl:6 has the role \"critic\"") == 1);
}

TEST_CASE("damaged records are named by file and line", "[data][jsonl]") {
  struct Case {
    std::string record, message;
  };
  const Case cases[] = {
      {R"({"text": "a)", "a.jsonl:2: it is not valid JSON from byte 12 on"},
      {std::string(10'000, '['), "a.jsonl:2: it is nested deeper than"},
      {R"({"text": )" + std::string(10'000, '[') + std::string(10'000, ']') + "}",
       "a.jsonl:2: it is nested deeper than"},
      {"{\"text\": \"\xff\"}", "a.jsonl:2: it is not valid JSON from byte 11 on: it is not UTF-8 there"},
      {R"({"text": "\ud800"})", "a.jsonl:2: it is not valid JSON from byte 17 on: half of a surrogate pair"},
      {R"({"text": ["a"]})", "a.jsonl:2: text is a list, not a text"},
      {R"({"messages": {"role": "user"}})", "a.jsonl:2: messages is an object, not a list of messages"},
      {R"({"messages": [3]})", "a.jsonl:2: messages[0] is a number, not a message"},
      {R"({"messages": [{"role": "user", "content": null}]})", "messages[0].content is null, not a text"},
      {R"({"prompt": "a", "completion": true})", "a.jsonl:2: completion is a boolean, not a text"},
      {R"({"text": "a", "text": "b"})", "a.jsonl:2: the key \"text\" appears twice"},
  };
  for (const Case& c : cases) {
    const TokenizerFolder folder("{\"text\": \"good\"}\n" + c.record + "\n{\"text\": \"good\"}\n");
    const auto built = build_data(block(", chat_format: chatml"));
    INFO(c.record.substr(0, 60) << ": " << built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
    const auto skipped = build_data(block(", chat_format: chatml, on_bad_record: skip"));
    REQUIRE(skipped.data != nullptr);
    CHECK(skipped.data->size() == 2);
    CHECK(skipped.messages.find("data.train: skipped 1 of 3 records; a.jsonl:2: ") != std::string::npos);
  }
}

TEST_CASE("records are packed with the loss of each", "[data][jsonl][packing]") {
  const TokenizerFolder folder(
      R"({"prompt": "Say hi: ", "completion": "hi"})"
      "\n"
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
      "\n");
  const auto alone = good_data(block(", chat_format: chatml"));
  const auto packed = good_data(block(", chat_format: chatml, packing: true"));
  CHECK(packed->size() == 1);
  CHECK(whole(*packed, 0) == whole(*alone, 0) + whole(*alone, 1));
  CHECK(counted(*packed, 0) == counted(*alone, 0) + counted(*alone, 1));
}

TEST_CASE("long records are cut, dropped or refused, and short ones padded", "[data][jsonl]") {
  const TokenizerFolder folder("{\"text\": \"aaa bbb ccc ddd eee fff\"}\n{\"text\": \"a\"}\n");
  const auto cut = good_data(block(", max_seq_len: 4"));
  CHECK(cut->size() == 2);
  CHECK(fetched(*cut, {0, 1}, kAttentionMask) == Values{1, 1, 1, 1, 1, 1, 0, 0});
  CHECK(good_data(block(", max_seq_len: 4, too_long: drop"))->size() == 1);
  CHECK(build_data(block(", max_seq_len: 4, too_long: error")).messages.find("longer than max_seq_len 4") !=
        std::string::npos);
}

TEST_CASE("a set encodes the records of its split alone, at the places that they have among all", "[data][jsonl]") {
  const TokenizerFolder folder(
      "{\"text\": \"a\"}\n\nnone\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n{\"text\": \"d\", \"label\": 1}\n");
  const auto train = build_data(block(", split: ':60%', on_bad_record: skip"));
  REQUIRE(train.data != nullptr);
  CHECK(train.data->size() == 2);
  CHECK(train.data->account().records == 3);
  CHECK(train.messages.find("skipped 1 of 3 records; a.jsonl:3: it is not valid JSON") != std::string::npos);
  CHECK(train.messages.find("not read") == std::string::npos);  // which line 6 has, of val
  const auto val = build_data(block(", split: '60%:'"), {"val", train.data.get()});
  INFO(val.messages);
  REQUIRE(val.data != nullptr);  // line 3 is none of its records
  CHECK(val.data->size() == 2);
  CHECK(val.data->record_of(0)->number == 5);
  CHECK(val.messages ==
        "data.yaml:1:21: warning: data.val: not read are label of 1 record, such as a.jsonl:6\n"
        "  hint: write what counts into the texts or messages, or remove it; `roux data show` shows "
        "what is learnt\n");
  CHECK(build_data(block(", split: ':60%'")).data == nullptr);
}

TEST_CASE("a set in memory does not depend on the number of threads that encode it", "[data][jsonl]") {
  std::string records;
  for (int i = 0; i < 300; ++i) {
    records += i % 7 == 3 ? "{\"text\": " + std::to_string(i) + "}\n"
                          : R"({"text": ")" + std::string(static_cast<std::size_t>(1 + i % 40), 'a') + " b" +
                                (i % 11 == 5 ? R"(", "label": 1)" : "\"") + "}\n";
  }
  const TokenizerFolder folder(records);
  const int before = at::get_num_threads();
  const auto built = [](int threads, const std::string& more) {
    at::set_num_threads(threads);
    auto result = build_data(block(", max_seq_len: 12, too_long: drop" + more));
    if (result.data == nullptr) return result.messages;
    result.messages += result.data->describe() + "\n" + result.data->account().reasons;
    for (std::int64_t i = 0; i < result.data->size(); ++i) {
      result.messages += spaced(fetched(*result.data, {i}, kInput)) + "\n";
    }
    return result.messages;
  };
  for (const char* more : {"", ", on_bad_record: skip", ", on_bad_record: skip, packing: true, split: '20%:90%'"}) {
    const std::string of_one = built(1, more);
    CHECK(built(3, more) == of_one);
    CHECK(of_one.find(*more == '\0' ? "more records are wrong" : "label of ") != std::string::npos);
  }
  at::set_num_threads(before);
}
