#include "runner/registry/wording.h"

#include <algorithm>
#include <cstdio>

namespace runner::registry {
namespace {

constexpr std::size_t kTextShownMax = 60;

/// Control bytes would steer the terminal that shows the message.
std::string visible(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      shown += "\\n";
    } else if (c == '\t') {
      shown += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02X", byte);
      shown += escaped;
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string cut(std::string_view text) {
  if (text.size() <= kTextShownMax) return std::string(text);
  std::size_t end = kTextShownMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

std::string quoted(std::string_view text) { return "\"" + visible(cut(text)) + "\""; }

std::string described(const core::Node& value) {
  switch (value.kind()) {
    case core::Node::Kind::kNull: return "nothing";
    case core::Node::Kind::kString: return quoted(value.as_string());
    case core::Node::Kind::kSequence: return value.items().empty() ? "an empty list" : "a list";
    case core::Node::Kind::kMapping: return value.entries().empty() ? "an empty mapping" : "a mapping";
    default: return cut(value.scalar_text());
  }
}

std::string enumerated(const std::vector<std::string>& words, std::string_view last, std::size_t shown_max) {
  std::string text;
  const std::size_t shown = words.size() <= shown_max ? words.size() : shown_max - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == words.size() ? " " + std::string(last) + " " : ", ";
    text += words[i];
  }
  if (shown < words.size()) text += " and " + std::to_string(words.size() - shown) + " more";
  return text;
}

core::Hint did_you_mean(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::vector<std::string> shown;
  for (const std::string& word : words) shown.push_back(quoted(word));
  return {"did you mean " + enumerated(shown, "or") + "?", words.size() == 1 ? words[0] : ""};
}

std::string kind_word(std::string_view kind) { return kind == "data" ? "data set" : std::string(kind); }

std::string a_kind(std::string_view kind) {
  const std::string word = kind_word(kind);
  return (word.find_first_of("aeiou") == 0 ? "an " : "a ") + word;
}

std::string joined_path(std::string_view block, std::string_view key) {
  return block.empty() ? std::string(key) : std::string(block) + "." + std::string(key);
}

std::string kept_text(const Fragment& tracker) {
  std::vector<std::string> others;
  for (const std::string& word : holdable()) {
    if (std::find(tracker.holds.begin(), tracker.holds.end(), word) == tracker.holds.end()) others.push_back(word);
  }
  return enumerated(tracker.holds) + (others.empty() ? "" : "; no " + enumerated(others, "or"));
}

std::string taken_text(const Fragment& tracker) {
  if (!tracker.configured_by) return "does not include it; list it by name";
  if (tracker.configured_by->empty()) return "always includes it";
  std::vector<std::string> signs;
  for (const ToolSign& sign : *tracker.configured_by) {
    if (!sign.variable.empty()) {
      signs.push_back(sign.variable + (sign.pattern.empty() ? "" : " like " + sign.pattern));
    } else {
      signs.push_back(sign.file + (sign.holds.empty() ? "" : " with " + sign.holds));
    }
  }
  return (signs.size() == 1 ? "includes it if this is found: " : "includes it if one of these is found: ") +
         enumerated(signs, "or");
}

bool is_override(const core::Node::Entry& entry) {
  if (entry.key_location.known() && entry.key_location.source->kind == core::Source::Kind::kFlag) return true;
  return entry.value.has_origin(core::Origin::kFlagFile);
}

std::string line_beside(const core::Location& location, const core::Location& other) {
  if (location.line > 0 && location.source == other.source) return "line " + std::to_string(location.line);
  return location.known() ? location.text() : "elsewhere";
}

}  // namespace runner::registry
