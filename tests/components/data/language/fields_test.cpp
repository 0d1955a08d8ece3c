// Which fields of records are read, which are not, and how instructions are named.

#include "components/data/fields/field_counts.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/data/stream.h"
#include "components/tensor/tensor_spec.h"
#include "components/tensor/tensors.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::data::field_counts_of;
using components::data::FieldCount;
using components::data::FieldCounts;
using tests::build_data;
using tests::fetched;
using tests::good_data;
using tests::TokenizerFolder;

namespace {

constexpr double kPad = components::kPadTarget;
const std::string kChatml = ", chat_format: chatml";

std::string block(const std::string& more) {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

std::string text_of(const components::data::Dataset& data, const char* port) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {0}, port)) {
    if (id != kPad) ids.push_back(static_cast<std::int64_t>(id));
  }
  return data.decode(ids);
}

/// `name read/records`, in the order in which they are met.
std::string listed(const std::vector<FieldCount>& counts) {
  std::string text;
  for (const FieldCount& one : counts) {
    text += (text.empty() ? "" : ", ") + one.name + " " + std::to_string(one.read) + "/" + std::to_string(one.records);
  }
  return text;
}

constexpr const char* kChats =
    R"({"messages": [{"role": "user", "content": "a", "mood": "glad"}, {"role": "assistant", "content": "b",)"
    R"( "weight": 1}], "system": "s", "id": 1})"
    "\n"
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "name": null}],)"
    R"( "system": "", "id": 2})";

}  // namespace

TEST_CASE("the fields of records and messages are counted, read or not", "[data][jsonl][fields]") {
  struct Case {
    const char *records, *more, *listed;
  };
  const Case cases[] = {
      {kChats, ", chat_format: chatml",
       "messages[].role 2/2, messages[].content 2/2, messages[].weight 1/1, messages 2/2, system 1/1, "
       "messages[].mood 0/1, id 0/2"},
      {R"({"text": "a", "url": "u", "none": null})", "", "text 1/1, url 0/1"},
      {R"({"instruction": "a", "input": "", "output": "b", "context": "c"})", "",
       "instruction 1/1, output 1/1, context 0/1"},
      {R"({"prompt": "a", "chosen": "b", "rejected": "c", "source": "d"})", "",
       "prompt 1/1, chosen 1/1, rejected 1/1, source 0/1"},
      {R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]})",
       ", chat_format: chatml",
       "prompt[].role 1/1, prompt[].content 1/1, completion[].role 1/1, completion[].content 1/1, prompt 1/1, "
       "completion 1/1"},
      // A text that another form leaves out in one record, and that is read in the next one.
      {"{\"text\": \"a\", \"prompt\": \"b\"}\n{\"prompt\": \"b\", \"completion\": \"c\"}", "",
       "text 1/1, prompt 1/2, completion 1/1"},
  };
  for (const Case& c : cases) {
    INFO(c.records);
    const TokenizerFolder folder(c.records);
    const auto built = build_data(block(c.more));
    REQUIRE(built.data != nullptr);
    CHECK(listed(field_counts_of(*built.data)) == c.listed);
  }
}

TEST_CASE("a stream counts the fields of what it has read", "[data][jsonl][fields]") {
  const TokenizerFolder folder(kChats);
  const auto data = good_data(block(kChatml + ", streaming: true, max_seq_len: 64"));
  CHECK(field_counts_of(*data).empty());
  const auto stream = data->open_stream({});
  components::TensorMap batch;
  stream->collate(std::vector{stream->next(true)}, batch);
  CHECK(listed(field_counts_of(*data)) ==
        "messages[].role 1/1, messages[].content 1/1, messages[].weight 1/1, messages 1/1, system 1/1, "
        "messages[].mood 0/1, id 0/1");
}

TEST_CASE("names of fields that are values do not fill the memory", "[data][fields]") {
  FieldCounts counts;
  for (std::size_t i = 0; i < FieldCounts::kNamesMax + 10; ++i) counts.add({{"text"}, {"key" + std::to_string(i)}});
  const auto list = counts.list();
  CHECK(list.size() == FieldCounts::kNamesMax);
  CHECK(list.front().name == "text");
  CHECK(list.front().read == static_cast<std::int64_t>(FieldCounts::kNamesMax) + 10);
}

TEST_CASE("an instruction has the names of Alpaca, of Dolly or of its set", "[data][jsonl][fields]") {
  const std::string begins = "Below is an instruction that describes a task";
  const std::string with_input = begins +
                                 ", paired with an input that provides further context. Write a response that "
                                 "appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### "
                                 "Input:\n1 2\n\n### Response:\n",
                    alone = begins +
                            ". Write a response that appropriately completes the request.\n\n### Instruction:\nAdd."
                            "\n\n### Response:\n";
  const std::string chat = "<|im_start|>user\nAdd.<|im_end|>\n<|im_start|>assistant\n3<|im_end|>\n",
                    chat_of_two = "<|im_start|>user\nAdd.\n1 2<|im_end|>\n<|im_start|>assistant\n3<|im_end|>\n";
  struct Case {
    const char* record;
    std::string more, text;
  };
  const Case cases[] = {
      {R"({"instruction": "Add.", "context": "1 2", "response": "3", "category": "sum"})", "",
       with_input + "3<|im_end|>"},
      {R"({"instruction": "Add.", "context": "", "response": "3"})", "", alone + "3<|im_end|>"},
      {R"({"instruction": "Add.", "context": "1 2", "response": "3"})", kChatml, chat_of_two},
      {R"({"instruction": "Add.", "input": "1 2", "response": "3"})", kChatml, chat_of_two},
      {R"({"instruction": "Add.", "input": "", "output": "3", "context": "1 2"})",
       ", columns: {instruction: instruction, input: context, output: output}", with_input + "3<|im_end|>"},
      {R"({"q": "Add.", "a": "3"})", ", columns: {instruction: q, output: a}" + kChatml, chat},
      {R"({"q": "Add.", "about": "1 2", "a": "3", "text": "none"})",
       ", columns: {instruction: q, input: about, output: a}", with_input + "3<|im_end|>"},
      {R"({"input": "Add.", "output": "3"})", ", columns: {instruction: input}", alone + "3<|im_end|>"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(c.record);
    const auto built = build_data(block(c.more));
    INFO(built.messages);
    REQUIRE(built.data != nullptr);
    CHECK(text_of(*built.data, components::kInput) == c.text);
    CHECK(text_of(*built.data, components::kTarget) == "3<|im_end|>");
    CHECK(built.messages.find("not read") == std::string::npos);
  }
}

TEST_CASE("what means something and is not read is told with a way to read it", "[data][jsonl][fields]") {
  const std::string answer = R"({"role": "assistant", "content": "b")";
  struct Case {
    std::string record, more, told, hint;
  };
  const Case cases[] = {
      {R"({"instruction": "a", "output": "b", "history": [["c", "d"]]})", "", "history of 1 record",
       "with a chat_format, such as chatml, system and history of an instruction are read"},
      {R"({"instruction": "a", "input": "", "output": "b", "context": "c"})", "", "context of 1 record",
       "columns: {instruction: FIELD, input: context, output: FIELD} reads context as the input"},
      {R"({"instruction": "a", "context": "c", "response": "b"})",
       ", columns: {prompt: instruction, completion: response}", "context of 1 record",
       "columns: {instruction: FIELD, input: context, output: FIELD} reads context as the input"},
      {R"({"messages": [{"role": "user", "content": "a"}, )" + answer +
           R"(, "thought": "c"}], "system_message": "d", "context": "e"})",
       kChatml,
       "context of 1 record, such as a.jsonl:1; messages[].thought of 1 record, such as a.jsonl:1; system_message of 1 "
       "record",
       "  hint: columns: {system: system_message} reads it as the system message; or write what counts"},
      {R"({"prompt": "a", "chosen": "b", "rejected": "c", "context": "d", "system": "e"})", "",
       "context of 1 record, such as a.jsonl:1; system of 1 record", "  hint: write what counts"},
      {R"({"text": "a", "loss_weight": 0, "mask": [1], "learn": false, "persona": "b", "instructions": "c"})", "",
       "instructions of 1 record, such as a.jsonl:1; learn of 1 record, such as a.jsonl:1; loss_weight of 1 record, "
       "such as a.jsonl:1; mask of 1 record, such as a.jsonl:1; persona of 1 record",
       "write what counts into the texts or messages"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "bard", "content": "b"}, )" + answer + "}]}",
       kChatml, "a.jsonl:1 has the role \"bard\", which is none of a chat",
       "set roles: {assistant: [\"bard\"]} in the set"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(c.record);
    const auto built = build_data(block(c.more));
    INFO(built.messages);
    REQUIRE(built.data != nullptr);
    CHECK(built.messages.find(c.told) != std::string::npos);
    CHECK(built.messages.find(c.hint) != std::string::npos);
  }
}

TEST_CASE("an instruction that lacks a field is an error that names one", "[data][jsonl][fields]") {
  struct Case {
    const char *record, *more, *message;
  };
  const Case cases[] = {
      {R"({"instruction": "a", "answer": "b"})", "",
       "a.jsonl:1: output is missing\n  hint: name the field: columns: {output: answer}"},
      {R"({"q": "a", "a": "b"})", ", columns: {output: a}",
       "a.jsonl:1: instruction is missing\n  hint: name the field: columns: {instruction: FIELD}"},
      {R"({"q": "a", "a": 3})", ", columns: {instruction: q, output: a}", "a.jsonl:1: a is a number, not a text"},
      {R"({"q": "a", "a": "b"})", ", columns: {instruction: q, completion: a}",
       "data.train.columns names an instruction, and parts of another record"},
      {R"({"q": "a", "a": "b"})", ", columns: {text: q, output: a}",
       "data.train.columns names a whole text, and parts of another record"},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(c.record);
    const auto built = build_data(block(c.more));
    INFO(built.messages);
    CHECK(built.data == nullptr);
    CHECK(built.messages.find(c.message) != std::string::npos);
  }
}
