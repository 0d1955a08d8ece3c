// Which parts of an answer are thoughts.

#include "components/template/thoughts.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/template/answers.h"
#include "runner/core/json.h"

namespace {

using namespace components::jinja;
using Texts = std::vector<std::string>;

/// What Qwen3's template makes of messages: a thought is taken out of the content, earlier ones are left out, and the
/// last answer has an empty one where it has none.
constexpr const char* kQwen3 =
    "{%- set ns = namespace(last=0) %}"
    "{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}"
    "{%- for message in messages %}"
    "{%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}"
    "{%- endif %}"
    "{%- if message.role != 'assistant' %}{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}"
    "{%- else %}"
    "{%- set reasoning = '' %}"
    "{%- if message.reasoning_content is string %}{%- set reasoning = message.reasoning_content %}"
    "{%- elif '</think>' in content %}"
    "{%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}"
    "{%- set content = content.split('</think>')[-1].lstrip('\\n') %}"
    "{%- endif %}"
    "{%- if loop.index0 > ns.last %}"
    "{{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + "
    "content.lstrip('\\n') }}"
    "{%- else %}{{- '<|im_start|>' + message.role + '\\n' + content }}{%- endif %}"
    "{%- for call in message.tool_calls or [] %}"
    "{{- '\\n<tool_call>\\n' + call | tojson + '\\n</tool_call>' }}{%- endfor %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";
/// Writes contents as they are.
constexpr const char* kChatml =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
/// A channel for thoughts, as gpt-oss has it.
constexpr const char* kChannels =
    "{% for m in messages %}{% if m.thinking %}"
    "{{ '<|start|>' + m.role + '<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}"
    "{{ '<|start|>' + m.role + '<|channel|>final<|message|>' + m.content + '<|return|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}";
/// The prompt opens the thought.
constexpr const char* kOpened =
    "{% for m in messages %}{{ '<' + m.role + '>' }}{% if m.role == 'assistant' %}"
    "<think>\n{% if m.reasoning %}{{ m.reasoning }}{% endif %}\n</think>\n{% endif %}"
    "{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant><think>\n{% endif %}";
constexpr const char* kMarked =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
    "{% if m.thinking %}[THINK]{{ m.thinking | trim }}[/THINK]{% endif %}{{ m.content }}<end>{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

std::string chat(const std::string& answer) {
  return R"([{"role": "user", "content": "<think>a</think>"}, {"role": "assistant", )" + answer + "}]";
}

/// The parts of answers that are no thoughts, those of one message in a row.
std::string without_thoughts(const std::string& source, const std::string& messages) {
  const Template parsed = Template::parse(source, "t").value();
  Chat made;
  made.messages = runner::core::parse_json(messages).value();
  const auto rendering = parsed.render(made).value();
  const auto answers = answers_of(parsed, made, rendering, generation_prompt(parsed, made).value()).value();
  std::string kept = rendering.text;
  std::vector<bool> is_learnt(kept.size(), false);
  for (const Range& range : answers) std::fill_n(is_learnt.begin() + range.begin, range.end - range.begin, true);
  for (const Range& range : thoughts_of(rendering, answers)) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      REQUIRE(is_learnt[i]);
      is_learnt[i] = false;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < kept.size(); ++i) text += is_learnt[i] ? std::string(1, kept[i]) : std::string();
  return text;
}

TEST_CASE("a thought is what its field wrote, with the marks around it", "[template][thoughts]") {
  struct Case {
    const char *source, *answer, *kept;
  };
  const Case cases[] = {
      {kQwen3, R"("reasoning_content": "t", "content": "b")", "b<|im_end|>\n"},
      {kQwen3, R"("thinking": "\n t > u \n\n", "content": "\n\nb")", "b<|im_end|>\n"},
      {kQwen3, R"("reasoning": "t", "content": "b <think>u</think>c")", "b c<|im_end|>\n"},
      {kQwen3, R"("reasoning": "b", "content": "b")", "b<|im_end|>\n"},
      {kQwen3, R"("reasoning": "t", "content": "", "tool_calls": [{"name": "f"}])",
       "<tool_call>\n{\"name\": \"f\"}\n</tool_call><|im_end|>\n"},
      {kQwen3, R"("content": "b")", "b<|im_end|>\n"},
      {kQwen3, R"("reasoning_content": "", "content": "b")", "b<|im_end|>\n"},
      {kQwen3, R"("content": "<think>\nt\n</think>\n\nb")", "b<|im_end|>\n"},
      {kQwen3, R"("content": "<think> t </think>b")", "b<|im_end|>\n"},
      {kQwen3, R"("content": "t</think>b")", "b<|im_end|>\n"},
      {kQwen3, R"("content": "<think>\n\n</think>\n\nb")", "b<|im_end|>\n"},
      {kChatml, R"("content": "<think>\nt\n</think>\n\nb")", "b<|im_end|>\n"},
      {kChatml, R"("content": "t</think>b")", "b<|im_end|>\n"},
      {kChatml, R"("content": "b<thinking>t</thinking> c [THINK]u[/THINK]")", "bc <|im_end|>\n"},
      {kChatml, R"("content": "<think>t")", "<|im_end|>\n"},
      {kChatml, R"("content": "<think></think>")", "<|im_end|>\n"},
      {kChatml, R"("reasoning": "t", "content": "b")", "b<|im_end|>\n"},
      {kChannels, R"("thinking": "t", "content": "b")", "<|start|>assistant<|channel|>final<|message|>b<|return|>"},
      {kChannels, R"("content": "b")", "<|channel|>final<|message|>b<|return|>"},
      {kOpened, R"("reasoning": "t", "content": "b")", "b<end>"},
      {kOpened, R"("content": "b")", "b<end>"},
      {kMarked, R"("thinking": " t ", "content": "b")", "b<end>"},
      {kMarked, R"("content": "b")", "b<end>"},
  };
  for (const Case& c : cases) {
    INFO(c.source << "\n" << c.answer);
    std::string kept = without_thoughts(c.source, chat(c.answer));
    // What the templates write behind the end of a turn.
    if (kept.ends_with('\n') && !std::string(c.kept).ends_with('\n')) kept.pop_back();
    CHECK(kept == c.kept);
  }
}

TEST_CASE("each answer has its own thoughts", "[template][thoughts]") {
  const std::string turns =
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>s</think>b"},)"
      R"( {"role": "user", "content": "c"}, {"role": "assistant", "reasoning": "t", "content": "d"}])";
  CHECK(without_thoughts(kQwen3, turns) == "b<|im_end|>\nd<|im_end|>\n");
  CHECK(without_thoughts(kChatml, turns) == "b<|im_end|>\nd<|im_end|>\n");
  CHECK(without_thoughts(kOpened, turns) == "b<end>d<end>");
}

TEST_CASE("what a template makes of a whole content is no thought", "[template][thoughts]") {
  CHECK(without_thoughts(
            "{% for m in messages %}<{{ m.role }}>{{ m.content | tojson }}<end>{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}",
            R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "[THINK]t[/THINK]b"}])") ==
        "\"[THINK]t[/THINK]b\"<end>");
}

TEST_CASE("marks are found in pairs", "[template][thoughts]") {
  const auto found = [](const std::string& text) {
    Texts texts;
    for (const Thought& one : thoughts_in(text)) texts.push_back(text.substr(one.begin, one.end - one.begin));
    return texts;
  };
  CHECK(found("").empty());
  CHECK(found("a < b [c] <thought>").empty());
  CHECK(found("The mark <think> opens.").empty());
  CHECK(found("<think>a</think> b <think>c</think>") == Texts{"<think>a</think> ", "<think>c</think>"});
  CHECK(found(" <think>a <reasoning> </reasoning>") == Texts{"<think>a <reasoning> </reasoning>"});
  CHECK(found("x <think> <reasoning>a</reasoning>b</think>c") == Texts{"<think> <reasoning>a</reasoning>b</think>"});
  CHECK(found("x <think> <reasoning>a</reasoning>b") == Texts{"<reasoning>a</reasoning>"});
  CHECK(found("<|begin_of_thought|>\na\n<|end_of_thought|>\n\nb") ==
        Texts{"<|begin_of_thought|>\na\n<|end_of_thought|>\n\n"});
  CHECK(found("a</think>b</think>c") == Texts{"a</think>"});
  // In a time that grows with the text alone.
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "x<think><reasoning>";
  CHECK(found(many).empty());
}

}  // namespace
