#include "components/template/answers.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/json.h"

namespace {

using namespace components::jinja;

/// What the assistant learns of a chat, each range a text; an error is the only one.
std::vector<std::string> learned(const std::string& source, const std::string& messages) {
  const Template parsed = Template::parse(source, "t").value();
  Chat chat;
  chat.messages = runner::core::parse_json(messages).value();
  const auto rendering = parsed.render(chat).value();
  const auto answers = answers_of(parsed, chat, rendering, generation_prompt(parsed, chat).value());
  if (!answers) return {answers.failure().message};
  std::vector<std::string> texts;
  for (const auto& [begin, end, message] : answers.value()) texts.push_back(rendering.text.substr(begin, end - begin));
  return texts;
}

constexpr const char* kTurns =
    R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])";
using Texts = std::vector<std::string>;

TEST_CASE("an assistant learns what its pass wrote behind the generation prompt", "[template]") {
  const std::string prompt = "{% if add_generation_prompt %}<assistant>{% endif %}";
  const Texts expected = {"b<end>", "d<end>"};
  CHECK(learned("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}" + prompt, kTurns) == expected);
  // Through a macro, slices, a block, an index and a namespace.
  CHECK(learned("{% macro turn(m) %}<{{ m.role }}>{{ m.content | trim }}<end>{% endmacro %}"
                "{% for m in messages[0:] %}{{ turn(m) }}{% endfor %}" +
                    prompt,
                kTurns) == expected);
  CHECK(learned("{% for m in messages %}{% set t %}<{{ m.role }}>{{ m.content }}{% endset %}{{ t }}<end>{% endfor %}" +
                    prompt,
                kTurns) == expected);
  CHECK(learned("{% for i in range(messages | length) %}<{{ messages[i].role }}>{{ messages[i].content }}<end>"
                "{% endfor %}" +
                    prompt,
                kTurns) == expected);
  CHECK(learned("{% set n = namespace(t='') %}{% for m in messages %}"
                "{% set n.t = n.t + '<' + m.role + '>' + m.content + '<end>' %}{% endfor %}{{ n.t }}" +
                    prompt,
                kTurns) == expected);
}

TEST_CASE("a prompt that opens a thought does not cut an answer without one", "[template]") {
  CHECK(learned("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
                "{% if add_generation_prompt %}<assistant><think>{% endif %}",
                R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "<b>"}])") == Texts{"<b><end>"});
}

TEST_CASE("what opens the text before an answer is not learned", "[template]") {
  CHECK(learned("{% for m in messages %}{% if loop.first %}<s>{% if m.role != 'system' %}<system>Hi.<end>{% endif %}"
                "{% endif %}<{{ m.role }}>\n{{ m.content }}<end>{% endfor %}"
                "{% if add_generation_prompt %}<assistant>\n<think>{% endif %}",
                R"([{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"},
                    {"role": "assistant", "content": "c"}])") == Texts{"a<end>", "c<end>"});
}

TEST_CASE("an end of the text in place of the prompt is the end of the last answer", "[template]") {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% else %}</s>{% endif %}";
  CHECK(learned(source, kTurns) == Texts{"b<end>", "d<end></s>"});
  // Both in the pass of the last message.
  CHECK(learned("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% if loop.last %}"
                "{% if add_generation_prompt %}<assistant>{% else %}</s>{% endif %}{% endif %}{% endfor %}",
                kTurns) == Texts{"b<end>", "d<end></s>"});
  // Behind what another wrote it belongs to no answer.
  CHECK(learned(source, R"([{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}])") ==
        Texts{"a<end>"});
}

TEST_CASE("of a template without a generation prompt what stands in front of the answer's text is not learned",
          "[template]") {
  const std::string turns = "{% for m in messages %}<{{ m.role }}>\n{{ m.content }}<end>\n{% endfor %}";
  CHECK(learned(turns, kTurns) == Texts{"b<end>\n", "d<end>\n"});
  CHECK(learned("<s>" + turns + "</s>", kTurns) == Texts{"b<end>\n", "d<end>\n</s>"});
  // Where an answer has no text, another one says where it would begin.
  CHECK(learned(turns, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}])") ==
        Texts{"<end>\n"});
  CHECK(learned(turns, R"([{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"},
                           {"role": "assistant", "content": "c"}])") == Texts{"a<end>\n", "c<end>\n"});
  // A blank belongs to the answer, as of Llama 2.
  CHECK(learned("{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %}"
                " {{ m.content }} </s>{% endif %}{% endfor %}",
                kTurns) == Texts{" b </s>", " d </s>"});
  // The prompt stands behind all messages whether or not it is asked for, as of the first template of Llama 3.
  CHECK(learned(turns + "{{ '<assistant>\n' }}", kTurns) == Texts{"b<end>\n", "d<end>\n"});
  // Later answers may have another beginning.
  CHECK(learned("{% for m in messages %}<{{ 'bot' if loop.index > 2 else m.role }}>{{ m.content }}<end>{% endfor %}",
                kTurns) == Texts{"b<end>", "d<end>"});
}

TEST_CASE("an empty answer without a beginning is an error that shows it", "[template]") {
  CHECK(learned("{% for m in messages %}<{{ 'bot' if loop.index > 2 else m.role }}>{{ m.content }}<end>{% endfor %}",
                R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                    {"role": "user", "content": "c"}, {"role": "assistant", "content": ""}])") ==
        Texts{"the template writes \"<bot><end>\" for message 4, an answer without text, and in front of others "
              "\"<assistant>\": where this one begins is not known"});
}

TEST_CASE("of what stands behind all messages end tokens alone are learned", "[template]") {
  const std::string turns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}";
  const std::string prompt = "{% if add_generation_prompt %}<assistant>{% endif %}";
  CHECK(learned(turns + "</s>\n[EOS]" + prompt, kTurns) == Texts{"b<end>", "d<end></s>\n[EOS]"});
  CHECK(learned(turns + "THE END</s>" + prompt, kTurns) ==
        Texts{"the template writes \"THE END</s>\" behind the last answer, outside of a loop over the messages, so it "
              "belongs to none"});
  CHECK(learned(turns + "THE END</s>", kTurns) ==
        Texts{"the template writes \"THE END</s>\" behind the last answer, outside of a loop over the messages, so it "
              "belongs to none"});
  // Blocks say what is learned.
  CHECK(learned("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}!"
                "{% endgeneration %}{% else %}{{ m.content }}{% endif %}<end>{% endfor %}THE END",
                kTurns) == Texts{"b!", "d!"});
}

TEST_CASE("another role than the assistant's is no answer", "[template]") {
  CHECK(learned("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}",
                R"([{"role": "user", "content": "a"}, {"role": "model", "content": "b"},
                    {"role": "bard", "content": "b"}, {"role": "assistant", "content": "c"}])") == Texts{"c<end>"});
}

TEST_CASE("the name of a tool in its result is not learned", "[template]") {
  CHECK(learned("{% set n = namespace() %}{% for m in messages %}{% if m.call %}{% set n.name = m.call %}{% endif %}"
                "<{{ m.role }}{{ ' ' + n.name if m.role == 'tool' }}>{{ m.content }}{{ m.call }}<end>{% endfor %}"
                "{% if add_generation_prompt %}<assistant>{% endif %}",
                R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "call": "f"},
                    {"role": "tool", "content": "1"}, {"role": "assistant", "content": "b"}])") ==
        Texts{"f<end>", "b<end>"});
}

TEST_CASE("generation blocks decide what is learned", "[template]") {
  CHECK(learned("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}!"
                "{% endgeneration %}{% else %}{{ m.content }}{% endif %}<end>{% endfor %}",
                kTurns) == Texts{"b!", "d!"});
}

TEST_CASE("an answer that no pass wrote is an error that shows it", "[template]") {
  CHECK(learned("{{ messages[0].content }}:{{ messages[-1].content }}.",
                R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])") ==
        Texts{"the template writes \"b\" into the answer of message 2 outside of a loop over the messages, so it "
              "belongs to none"});
}

}  // namespace
