// Renders chat templates for tests/parity/templates.py: one JSON object a line in, one out.
//
//   render_templates [--repeat N]
//
// With N it renders each N times, and prints only the seconds that this took, to standard error.

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include "components/template/answers.h"
#include "components/template/template.h"
#include "runner/core/json.h"
#include "runner/core/node.h"

namespace {

using components::jinja::Chat;
using components::jinja::RenderOptions;
using components::jinja::Template;
using runner::core::Node;

Node pair(std::size_t begin, std::size_t end) {
  return Node::sequence(
      {Node::integer(static_cast<std::int64_t>(begin)), Node::integer(static_cast<std::int64_t>(end))});
}

Node error(const std::string& message) {
  Node answer = Node::mapping();
  answer.set("error", Node::string(message));
  return answer;
}

Chat chat_of(const Node& request) {
  Chat chat;
  if (const Node* messages = request.find("messages")) chat.messages = *messages;
  if (const Node* tools = request.find("tools")) chat.tools = *tools;
  if (const Node* prompt = request.find("add_generation_prompt")) chat.add_generation_prompt = prompt->as_bool();
  if (const Node* variables = request.find("variables")) chat.variables = *variables;
  return chat;
}

Node answer_to(const Template& chat_template, const Chat& chat, const RenderOptions& options) {
  const auto rendering = chat_template.render(chat, options);
  if (!rendering) return error(rendering.failure().message);
  Node answer = Node::mapping(), generation = Node::sequence(), learned = Node::sequence();
  answer.set("text", Node::string(rendering.value().text));
  for (const auto& piece : rendering.value().pieces) {
    if (piece.in_generation) generation.items().push_back(pair(piece.begin, piece.end));
  }
  answer.set("generation", generation);
  const auto prompt = generation_prompt(chat_template, chat, options);
  answer.set("prompt", Node::string(prompt ? prompt.value() : ""));
  const auto answers = answers_of(chat_template, chat, rendering.value(), prompt ? prompt.value() : "");
  if (answers) {
    for (const auto& [begin, end, message] : answers.value()) learned.items().push_back(pair(begin, end));
    answer.set("learned", learned);
  } else {
    answer.set("learned_error", Node::string(answers.failure().message));
  }
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeat = argc == 3 && std::string_view(argv[1]) == "--repeat" ? std::atoi(argv[2]) : 0;
  std::map<std::string, runner::core::Result<Template>> templates;
  std::chrono::duration<double> took{};
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = runner::core::parse_json(line);
    if (!request) {
      std::cerr << request.failure().message << "\n";
      return 2;
    }
    const std::string& source = request.value().find("source")->as_string();
    auto known = templates.find(source);
    if (known == templates.end()) known = templates.emplace(source, Template::parse(source, "template")).first;
    const auto& parsed = known->second;
    RenderOptions options;
    if (const Node* now = request.value().find("now"))
      ::strptime(now->as_string().c_str(), "%Y-%m-%d %H:%M:%S", &options.now);
    const Chat chat = chat_of(request.value());
    if (repeat > 0 && parsed) {
      const auto begun = std::chrono::steady_clock::now();
      for (int i = 0; i < repeat; ++i) parsed.value().render(chat, options).value();
      took += std::chrono::steady_clock::now() - begun;
      continue;
    }
    std::cout << to_json(parsed ? answer_to(parsed.value(), chat, options) : error(parsed.failure().message), -1)
              << "\n";
  }
  if (repeat > 0) std::cerr << took.count() << "\n";
}
