// Which thoughts of an answer are learnt.

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "components/tensor/tensor_spec.h"
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
const std::string kLeftOut = ", train_on_thinking: false";
/// Writes the thought of an answer as Qwen3's template does.
constexpr const char* kTemplate =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' }}{% if m.role == 'assistant' %}"
    "{% set thought = m.reasoning_content or '' %}{% set content = m.content %}"
    "{% if '</think>' in content %}{% set thought = content.split('</think>')[0].split('<think>')[-1] %}"
    "{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{ '<think>\n' + thought.strip() + '\n</think>\n\n' + content.lstrip() }}{% else %}{{ m.content }}{% endif %}"
    "{{ '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}";

std::string block(const std::string& more) {
  return "{type: jsonl, path: a.jsonl, tokenizer: {type: file, path: tokenizer.json}" + more + "}";
}

std::string learnt(const components::data::Dataset& data) {
  std::vector<std::int64_t> ids;
  for (const double id : fetched(data, {0}, kTarget)) {
    if (id != kPad) ids.push_back(static_cast<std::int64_t>(id));
  }
  return data.decode(ids);
}

std::string turns(const std::string& answer) {
  return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
         R"( {"role": "user", "content": "c"}, {"role": "assistant", )" +
         answer + "}]}\n";
}

}  // namespace

TEST_CASE("thoughts of an answer are learnt unless they are left out", "[data][jsonl][thoughts]") {
  struct Case {
    std::string record, more, whole, rest;  ///< the first token of a sample is no target
  };
  const std::string own = ", chat_format: {template: chat.jinja}", chatml = ", chat_format: chatml";
  const std::string user = "<|im_start|>user:", assistant = "<|im_start|>assistant:", end = "<|im_end|>";
  const std::string field = turns(R"("reasoning": "t \u00e9", "content": "d")"),
                    tags = turns(R"("content": "<think>\nt \u00e9\n</think>\n\nd")");
  const std::string empty = "<think>\n\n</think>\n\n", thought = "<think>\nt é\n</think>\n\n";
  const Case cases[] = {
      {field, own, empty + "b" + end + thought + "d" + end, "b" + end + "d" + end},
      {tags, own, empty + "b" + end + thought + "d" + end, "b" + end + "d" + end},
      {tags, chatml, "b" + end + thought + "d" + end, "b" + end + "d" + end},
      {tags, chatml + ", loss_on: last", thought + "d" + end, "d" + end},
      {tags, chatml + ", train_on_eos: none", "b" + thought + "d", "bd"},
      {field, own + ", loss_on: all",
       "user:a" + end + assistant + empty + "b" + end + user + "c" + end + assistant + thought + "d" + end,
       "user:a" + end + assistant + "b" + end + user + "c" + end + assistant + "d" + end},
      {R"({"prompt": [{"role": "user", "content": "<think>a</think>"}],)"
       R"( "completion": [{"role": "assistant", "content": "<think>t</think>d"}]})",
       chatml, "<think>t</think>d" + end + "\n", "d" + end + "\n"},
      {R"({"prompt": "\u00e9<think>a</think>", "completion": "<think>\u00e9</think> d<think>u</think>."})", "",
       "<think>é</think> d<think>u</think>." + end, " d." + end},
      {R"({"prompt": "a<think>", "completion": "t</think>d"})", "", "t</think>d" + end, "d" + end},
      {R"({"text": "<think>t</think>d"})", "", "think>t</think>d" + end, "think>t</think>d" + end},
  };
  for (const Case& c : cases) {
    INFO(c.record << c.more);
    const TokenizerFolder folder(c.record);
    folder.write("chat.jinja", kTemplate);
    const auto with = good_data(block(c.more)), without = good_data(block(c.more + kLeftOut));
    CHECK(learnt(*with) == c.whole);
    CHECK(learnt(*without) == c.rest);
    CHECK(fetched(*with, {0}, kInput) == fetched(*without, {0}, kInput));
  }
}

TEST_CASE("a pair learns its completions with their thoughts", "[data][jsonl][thoughts]") {
  const TokenizerFolder folder(R"({"prompt": "a", "chosen": "b", "rejected": "c"})");
  const auto built = build_data(block(kLeftOut));
  CHECK(built.messages.find("a pair of chosen and rejected, but train_on_thinking is false") != std::string::npos);
  CHECK(built.messages.find("remove train_on_thinking") != std::string::npos);
}
