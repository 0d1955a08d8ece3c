#include "runner/core/path.h"

#include <algorithm>
#include <optional>

namespace runner::core {
namespace {

constexpr std::int64_t kIndexMax = 1'000'000;

Failure bad(std::string_view text, const std::string& why) {
  return Failure{"\"" + std::string(text) + "\" is not a path: " + why,
                 "write it as training.max_steps or model.layers[2].p"};
}

std::string quoted_if_needed(std::string_view key) {
  const bool plain = !key.empty() && key.find_first_of(".[]\"=") == std::string_view::npos;
  if (plain) return std::string(key);
  std::string text = "[\"";
  for (const char c : key) text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "\"]";
}

/// The text between `["` and `"]`, with backslash escapes; nothing without an end. `at` is after the opening quote, and
/// then after the closing bracket.
std::optional<std::string> quoted_key(std::string_view text, std::size_t& at) {
  std::string key;
  for (; at < text.size(); ++at) {
    if (text.substr(at, 2) == "\"]") return at += 2, key;
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    key += text[at];
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<PathStep>> parse_path(std::string_view text) {
  std::vector<PathStep> steps;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '[') {
      if (at + 1 < text.size() && text[at + 1] == '"') {
        auto key = quoted_key(text, at += 2);
        if (!key) return bad(text, "[\" has no closing \"]");
        steps.push_back({*std::move(key), -1});
      } else {
        const std::size_t end = text.find(']', at);
        if (end == std::string_view::npos) return bad(text, "[ has no closing ]");
        const std::string_view digits = text.substr(at + 1, end - at - 1);
        std::int64_t index = 0;
        for (const char c : digits) {
          if (c < '0' || c > '9') return bad(text, "[" + std::string(digits) + "] is not a position in a list");
          index = index * 10 + (c - '0');
          if (index > kIndexMax) return bad(text, "[" + std::string(digits) + "] is too large");
        }
        if (digits.empty()) return bad(text, "[] has no position");
        steps.push_back({"", index});
        at = end + 1;
      }
      if (at < text.size() && text[at] != '.' && text[at] != '[') return bad(text, "expected . or [ after ]");
    } else {
      const std::size_t end = std::min(text.find_first_of(".[", at), text.size());
      if (end == at) return bad(text, at == 0 ? "it begins with a dot" : "two dots follow each other");
      steps.push_back({std::string(text.substr(at, end - at)), -1});
      at = end;
    }
    if (at < text.size() && text[at] == '.') {
      ++at;
      if (at == text.size()) return bad(text, "it ends with a dot");
      if (text[at] == '[' && at + 1 < text.size() && text[at + 1] != '"') return bad(text, "a dot stands before [");
    }
  }
  if (steps.empty()) return Failure{"the path is empty", "write it as training.max_steps or model.layers[2].p"};
  return steps;
}

std::string path_text(const std::vector<PathStep>& steps) {
  std::string text;
  for (const PathStep& step : steps) text = step.is_index() ? join_path(text, step.index) : join_path(text, step.key);
  return text;
}

std::string join_path(std::string_view path, std::string_view key) {
  const std::string written = quoted_if_needed(key);
  if (path.empty()) return written;
  return std::string(path) + (written.front() == '[' ? "" : ".") + written;
}

std::string join_path(std::string_view path, std::size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

}  // namespace runner::core
