#include "runner/cli/explain/page.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace runner::cli {

using core::Node;

void print_wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kTextWidth = 100;
  std::string line;
  const auto flush = [&] {
    std::printf("%*s%s\n", static_cast<int>(indent), "", line.c_str());
    line.clear();
  };
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (!line.empty() && indent + line.size() + 1 + word.size() > kTextWidth) flush();
    line += (line.empty() ? "" : " ") + word;
    start = end + 1;
  }
  if (!line.empty()) flush();
}

std::string flow_text(const Node& value) {
  std::string text;
  if (value.is_sequence()) {
    for (const Node& item : value.items()) text += (text.empty() ? "" : ", ") + flow_text(item);
    return "[" + text + "]";
  }
  if (value.is_mapping()) {
    for (const Node::Entry& entry : value.entries())
      text += (text.empty() ? "" : ", ") + entry.key + ": " + flow_text(entry.value);
    return "{" + text + "}";
  }
  if (!value.is_string()) return value.scalar_text();
  const std::string& word = value.as_string();
  const bool plain = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) != 0 && word != "true" &&
                     word != "false" && word != "null" && std::all_of(word.begin(), word.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == '*';
                     });
  return plain ? word : core::to_json(value, -1);
}

void print_json(const Node& node) { std::printf("%s\n", core::to_json(node).c_str()); }

}  // namespace runner::cli
