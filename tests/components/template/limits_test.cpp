#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "components/template/template.h"
#include "runner/core/json.h"
#include "runner/core/node.h"

namespace {

using namespace components::jinja;
using runner::core::Node;

std::string failure_of(const std::string& source, const RenderOptions& options = {}) {
  const auto parsed = Template::parse(source, "t.jinja");
  if (!parsed) return parsed.failure().message;
  Chat chat;
  chat.messages = runner::core::parse_json(R"([{"role": "user", "content": "a"}])").value();
  const auto rendering = parsed.value().render(chat, options);
  return rendering ? "" : rendering.failure().message;
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string made;
  for (std::size_t i = 0; i < times; ++i) made += part;
  return made;
}

/// `body` 10^10 times.
std::string for_ever(const std::string& body) {
  return "{% for a in range(99999) %}{% for b in range(99999) %}" + body + "{% endfor %}{% endfor %}";
}

TEST_CASE("a template that loops, nests or grows is refused with the name of the limit", "[template]") {
  struct Case {
    std::string source;
    const char* limit;
  };
  // Small in memory and long to walk through: each level holds the one before it twice.
  const std::string twice =
      "{% set n = namespace(l=[1]) %}{% for a in range(90) %}{% set n.l = [n.l, n.l] %}{% endfor %}";
  const std::string tuples =
      "{% set n = namespace(l=(1,)) %}{% for a in range(90) %}{% set n.l = (n.l, n.l) %}{% endfor %}";
  const std::string long_text = "{% set t = 'ab' * 500000 %}{% set u = t ~ '' %}{% set w = 'ab' * 200000 ~ 'c' %}";
  const Case cases[] = {
      // Work.
      {for_ever(""), "made_bytes"},
      {"{% set r = range(9999) %}" + repeated("{% for a in r %}", 9) + repeated("{% endfor %}", 9), "steps"},
      {long_text + for_ever("{% set x = t == u %}"), "steps"},
      {long_text + for_ever("{% set x = w in t %}"), "steps"},
      {long_text + for_ever("{% set x = t.find(w) %}"), "steps"},
      {long_text + for_ever("{% set x = t.replace(w, '') %}"), "steps"},
      {long_text + for_ever("{% set x = t.startswith(u) %}"), "steps"},
      {long_text + for_ever("{% set x = t[9999] %}"), "steps"},
      {long_text + for_ever("{% set x = t | int %}"), "steps"},
      {long_text + for_ever("{% set x = t | float %}"), "steps"},
      {long_text + "{% set d = {t: 1} %}" + for_ever("{% set x = d[u] %}"), "steps"},
      {twice + "{% set m = n.l %}" + twice + "{{ n.l == m }}", "steps"},
      {twice + "{% set m = n.l %}" + twice + "{{ [n.l, m] | sort }}", "steps"},
      {twice + "{{ n.l in [[n.l, 1]] }}", "steps"},
      {twice + "{{ n.l is eq [n.l, 1] }}", "steps"},
      {twice + "{{ n.l }}", "made_bytes"},
      {twice + "{{ n.l | tojson }}", "steps"},
      {tuples + "{% set d = {n.l: 1} %}", "steps"},
      {tuples + "{{ {}[n.l] }}", "steps"},
      // Text and lists.
      {for_ever("ab"), "made_bytes"},
      {"{{ 'a' * 999999999999 }}", "made_bytes"},
      {"{{ [1, 2] * 4611686018427387904 }}", "made_bytes"},
      {"{{ 'x'.ljust(4611686018427387904, '\U0001F600') }}", "made_bytes"},
      {"{{ 'x' | center(9223372036854775807) }}", "made_bytes"},
      {"{{ 'a\nb' | indent(9223372036854775807) }}", "made_bytes"},
      {"{{ [1] | tojson(indent=9223372036854775807) }}", "made_bytes"},
      {"{{ [1] | batch(9223372036854775807, 0) | list }}", "made_bytes"},
      {"{{ [1] | slice(9223372036854775807) | list }}", "made_bytes"},
      {"{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}", "made_bytes"},
      {"{% set n = namespace(l=[1]) %}{% for a in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}", "made_bytes"},
      {"{% set n = namespace(d={}) %}" + for_ever("{% set n.d = dict(n.d, **{'k' ~ a ~ '.' ~ b: 1}) %}"), "made_bytes"},
      {for_ever("{% macro f() %}{% endmacro %}{% set x = 1 %}"), "made_bytes"},
      // Depth, of the tree too.
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "depth"},
      {"{% macro f(x) %}{{ " + repeated("not ", 80) + "f(x) }}{% endmacro %}{{ f(1) }}", "depth"},
      {"{% macro f(x) %}" + repeated("{% if 1 %}", 45) + "{{ f(x) }}" + repeated("{% endif %}", 45) +
           "{% endmacro %}{{ f(1) }}",
       "depth"},
      {"{% macro f(x) %}" + repeated("{% with a = 1 %}", 45) + "{{ f(x) }}" + repeated("{% endwith %}", 45) +
           "{% endmacro %}{{ f(1) }}",
       "depth"},
      {"{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{% call f() %}{% endcall %}", "depth"},
      {"{% for x in [[1]] recursive %}{{ loop([[x]]) }}{% endfor %}", "depth"},
      {"{% set n = namespace(l=[]) %}{% for a in range(999) %}{% set n.l = [n.l] %}{% endfor %}", "depth"},
      {"{% set n = namespace(c=1) %}{% for a in range(999) %}{% set n.c = cycler(n.c) %}{% endfor %}", "depth"},
      {"{% set n = namespace() %}{% set n.n = n %}{{ n }}", "depth"},
      {"{{ 1" + repeated(" + 1", 50'000) + " }}", "depth"},
      {"{{ a" + repeated(".b", 50'000) + " }}", "depth"},
      {"{{ a" + repeated("()", 50'000) + " }}", "depth"},
      {"{{ 1" + repeated(" | abs", 50'000) + " }}", "depth"},
      {"{{ 1" + repeated(" if 1", 50'000) + " }}", "depth"},
      {"{{ " + repeated("-", 50'000) + "1 }}", "depth"},
      {"{{ " + repeated("[", 50'000) + repeated("]", 50'000) + " }}", "depth"},
      {repeated("{% if 1 %}", 50'000), "depth"},
      {"{% if 1 %}" + repeated("{% elif 1 %}", 40'000) + "{% endif %}", "depth"},
  };
  for (const Case& one : cases) {
    INFO(one.source.substr(0, 300));
    const std::string message = failure_of(one.source);
    INFO(message);
    CHECK(message.ends_with("(limit " + std::string(one.limit) + ")"));
  }
}

TEST_CASE("the limits of a rendering are what its options say", "[template]") {
  RenderOptions options;
  options.limits = {.steps = 1'000, .output_bytes = 100, .made_bytes = 15'000, .made_times_input = 0, .depth = 20};
  CHECK(failure_of("{% for a in 'aaaaaaaaaa' %}{% for b in range(50) %}{{ '' }}{% endfor %}{% endfor %}", options) ==
        "t.jinja:1:52: the template takes more than 1000 steps (limit steps)");
  CHECK(failure_of("{{ 'a' * 60 }}{{ 'a' * 60 }}", options) ==
        "t.jinja:1:22: the text is longer than 100 bytes (limit output_bytes)");
  CHECK(failure_of("{% set x = 'a' * 20000 %}", options) ==
        "t.jinja:1:16: the template makes more than 15000 bytes of values (limit made_bytes)");
  CHECK(failure_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", options) ==
        "t.jinja:1:20: calls, blocks and expressions are nested more than 20 deep (limit depth)");
  CHECK(failure_of(std::string(Template::kSourceMax + 1, 'a')) ==
        "t.jinja: a template may have 524288 bytes, this one has 524289");
}

TEST_CASE("chains that Jinja2 takes are taken", "[template]") {
  CHECK(failure_of("{{ 1" + repeated(" + 1", 150) + " }}").empty());
  CHECK(failure_of("{{ 1" + repeated(" ~ 1", 5'000) + " }}").empty());
  CHECK(failure_of("{% if 0 %}" + repeated("{% elif 0 %}", 80) + "{% endif %}").empty());
  CHECK(failure_of("{% macro f(x) %}{% if x %}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(60) }}").empty());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep memory that was freed
TEST_CASE("what a rendering holds at a time is bounded", "[template]") {
  const std::string growing[] = {
      "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
      "{% set n = namespace(l=[]) %}{% for a in range(99999) %}{% set n.l = n.l + ['a' ~ a] %}{% endfor %}",
      for_ever("{% macro f() %}{% endmacro %}{% set x = 1 %}{% set y = 2 %}"),
      "{{ [1] | slice(9223372036854775807) | list }}",
      "{% for a in range(99999) %}{% for i in range(1) %}x{{ messages[i].content }}y{% endfor %}{% endfor %}",
  };
  for (const std::string& source : growing) {
    INFO(source);
    // In a process of its own, whose peak is that of this rendering.
    const pid_t child = ::fork();
    if (child == 0) {
      struct rusage before {
      }, after{};
      ::getrusage(RUSAGE_SELF, &before);
      failure_of(source);
      ::getrusage(RUSAGE_SELF, &after);
      ::_exit(static_cast<int>((after.ru_maxrss - before.ru_maxrss) >> 10));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) < 192);  // MiB, three times the default limit
  }
}
#endif

}  // namespace
