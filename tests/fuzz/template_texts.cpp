#include "tests/fuzz/template_texts.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "components/template/answers.h"
#include "components/template/template.h"
#include "runner/core/json.h"
#include "runner/core/text/utf8.h"

namespace tests {
namespace {

using components::jinja::Chat;
using components::jinja::Piece;
using components::jinja::Rendering;
using components::jinja::RenderOptions;
using components::jinja::Template;
using runner::core::Node;

constexpr std::size_t kBytesMax = 1 << 14;
// What stands alone in a template, and what begins or ends something there.
constexpr std::string_view kWords[] = {"{% for m in messages %}",
                                       "{% endfor %}",
                                       "{% if m %}",
                                       "{% else %}",
                                       "{% elif x %}",
                                       "{% endif %}",
                                       "{%- set x = m.content -%}",
                                       "{% set n = namespace(a='', l=[]) %}",
                                       "{% set n.a = n.a ~ m %}",
                                       "{% set n.l = n.l + [n.l, m] %}",
                                       "{% set x %}",
                                       "{% endset %}",
                                       "{% macro f(a, b=1) %}",
                                       "{% endmacro %}",
                                       "{{ f(m, *messages, **m) }}",
                                       "{% call(y) f(1) %}",
                                       "{{ caller(1) }}",
                                       "{% endcall %}",
                                       "{% filter upper %}",
                                       "{% endfilter %}",
                                       "{% generation %}",
                                       "{% endgeneration %}",
                                       "{% raw %}",
                                       "{% endraw %}",
                                       "{# ",
                                       " #}",
                                       "{% break %}",
                                       "{% continue %}",
                                       "{% for i in range(9) recursive %}",
                                       "{{ loop(messages) }}",
                                       "{{ loop.changed(m) }}",
                                       "{{ loop.cycle(1, m) }}",
                                       "{{ messages[i].content }}",
                                       "{{ messages[::-1] | tojson(indent=2) }}",
                                       "{% with x = m %}",
                                       "{% endwith %}",
                                       "{{ raise_exception('a') }}",
                                       "{{ strftime_now('%Y %j %') }}",
                                       "messages",
                                       "m.content",
                                       "m['role']",
                                       "m.tool_calls",
                                       " | trim",
                                       " | join(', ', attribute='role')",
                                       " | map('upper') | list",
                                       " | selectattr('role', 'in', m)",
                                       " | groupby('role')",
                                       " | dictsort",
                                       " | sort(reverse=true)",
                                       " | unique",
                                       " | batch(2, 0)",
                                       " | slice(3)",
                                       " | indent(2)",
                                       " | replace('a', m)",
                                       " | int(base=16)",
                                       " | round(-2)",
                                       " | format(1, m)",
                                       " | urlencode",
                                       " | truncate(3)",
                                       " | striptags",
                                       " | default(x, true)",
                                       " | first",
                                       " | attr('items')",
                                       ".split('a', 1)",
                                       ".rsplit()",
                                       ".strip('ab')",
                                       ".format(m, a=1)",
                                       ".ljust(9, 'x')",
                                       ".splitlines(true)",
                                       ".items()",
                                       ".get('a', m)",
                                       "[1:-1:2]",
                                       "[-1]",
                                       "[::-1]",
                                       " is defined",
                                       " is not string",
                                       " is divisibleby 3",
                                       " in messages",
                                       " not in x",
                                       " if x else y",
                                       " and ",
                                       " or ",
                                       "not ",
                                       " ~ ",
                                       " + ",
                                       " - ",
                                       " * ",
                                       " / ",
                                       " // ",
                                       " % ",
                                       " ** ",
                                       " < ",
                                       " == ",
                                       "(",
                                       ")",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       ", ",
                                       ": ",
                                       "|",
                                       ".",
                                       "'%5.2f|%-9s|%(a)s' % ",
                                       "'{:>9,.3f} {0[a].b!r}'",
                                       "9223372036854775807",
                                       "-1",
                                       "0",
                                       "1e308",
                                       "0x7F",
                                       "1_0",
                                       "'\\u00e4\\x41'",
                                       "\"",
                                       "'",
                                       "none",
                                       "true",
                                       "[m, m]",
                                       "{'a': m, 1: 2}",
                                       "dict(a=1)",
                                       "cycler(1, m)",
                                       "joiner()",
                                       "__class__",
                                       "\xC3\xA4",
                                       "\xF0\x9F\x98\x80",
                                       "\r\n",
                                       "-%}",
                                       "+%}",
                                       "{%+",
                                       "{{-",
                                       "-}}",
                                       "%}",
                                       "}}",
                                       "{%",
                                       "{{",
                                       "{#"};

const std::vector<Chat>& chats() {
  static const std::vector<Chat> made = [] {
    std::vector<Chat> all;
    for (const char* text : {R"([{"role": "system", "content": "Be \u00e4."}, {"role": "user", "content": " a <b>\n"},
              {"role": "assistant", "content": "b", "reasoning_content": "c",
               "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]},
              {"role": "tool", "content": "1", "name": "f"}, {"role": "assistant", "content": "\ud83d\ude00 d"}])",
                             R"([{"role": "assistant", "content": [{"type": "text", "text": "a"}]}])", "[]"}) {
      Chat chat;
      chat.messages = runner::core::parse_json(text).value();
      chat.variables.set("x", Node::string("a b"));
      chat.variables.set("m", runner::core::parse_json(R"({"role": "user", "a": {"b": [3, 1]}})").value());
      all.push_back(chat);
      chat.add_generation_prompt = true;
      all.push_back(std::move(chat));
    }
    return all;
  }();
  return made;
}

void check(const Rendering& rendering, std::size_t messages) {
  const auto is_message = [&](std::int32_t index) {
    return index >= components::jinja::kNoMessage && index < static_cast<std::int32_t>(messages);
  };
  std::size_t at = 0;
  for (const Piece& piece : rendering.pieces) {
    if (piece.begin != at || piece.end <= at) std::abort();
    if (!is_message(piece.message) || !is_message(piece.pass)) std::abort();
    at = piece.end;
  }
  if (at != rendering.text.size()) std::abort();
  if (runner::core::find_invalid_utf8(rendering.text) != std::string_view::npos) std::abort();
}

}  // namespace

std::size_t TemplateTexts::border(const std::string& text) {
  const std::size_t at = text.find_first_of("{}%|([.,)] ", below(text.size() + 1));
  return std::min(at, text.size());
}

void TemplateTexts::damage(std::string& text) {
  const std::size_t at = below(3) == 0 ? below(text.size() + 1) : border(text);
  const std::size_t length = std::min(1 + below(24), text.size() - at);
  switch (below(7)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1:
    case 2: text.insert(at, kWords[below(std::size(kWords))]); break;
    case 3: text.replace(at, length, kWords[below(std::size(kWords))]); break;
    case 4: text.erase(at, length); break;
    case 5: {
      const std::string& other = corpus_[below(corpus_.size())];
      const std::size_t from = border(other);
      text.insert(at, other, from, 1 + below(200));
      break;
    }
    default: {
      const std::string part = text.substr(at, length);
      for (std::size_t i = below(100); i > 0; --i) text.insert(at, part);
    }
  }
  if (text.size() > kBytesMax) text.resize(kBytesMax);
}

std::string TemplateTexts::next() {
  std::string text = corpus_[below(corpus_.size())];
  for (std::size_t rounds = 1 + below(6); rounds > 0; --rounds) damage(text);
  return text;
}

void TemplateTexts::read(const std::string& text) {
  const auto parsed = Template::parse(text, "t");
  if (!parsed) return;
  RenderOptions options;
  options.limits = {.steps = 100'000, .output_bytes = 1 << 18, .made_bytes = 1 << 20, .made_times_input = 0};
  for (const Chat& chat : chats()) {
    const auto rendering = parsed.value().render(chat, options);
    if (!rendering) continue;
    check(rendering.value(), chat.messages.items().size());
    const auto prompt = generation_prompt(parsed.value(), chat, options);
    const auto answers = answers_of(parsed.value(), chat, rendering.value(), prompt ? prompt.value() : "");
    if (!answers) continue;
    std::size_t at = 0;
    for (const auto& [begin, end, message] : answers.value()) {
      if (begin < at || end <= begin || end > rendering.value().text.size()) std::abort();
      if (message < 0 || static_cast<std::size_t>(message) >= chat.messages.items().size()) std::abort();
      at = end;
    }
  }
}

}  // namespace tests
