#include "runner/recipe/yaml_errors.h"

#include <algorithm>

#include "runner/core/text/utf8.h"

namespace runner::recipe {
namespace {

struct Row {
  std::string_view begins_with;  // of yaml-cpp's message
  const char* message;
  const char* hint;
};

constexpr Row kRows[] = {
    {"illegal map value", "a colon is not allowed here", "put text that holds \": \" in quotes"},
    {"illegal map key", "a key is not allowed here", "check the indentation of this line"},
    {"illegal block entry", "a list entry (-) is not allowed here",
     "begin the list on a line of its own, below its key"},
    {"illegal flow end", "a closing bracket without an opening one", "remove it, or put the text in quotes"},
    {"end of map flow not found", "this { is never closed, or a comma is missing between two entries",
     "close it with }"},
    {"end of sequence flow not found", "this [ is never closed, or a comma is missing between two entries",
     "close it with ]"},
    {"end of map not found", "this line does not fit into the mapping above it",
     "check its indentation, and that a colon and a space follow every key"},
    {"end of sequence not found", "this line does not fit into the list above it",
     "check its indentation, and that every entry begins with \"- \""},
    {"illegal EOF in scalar", "the file ends inside a quoted text", "close the quote"},
    {"illegal document indicator in scalar", "--- or ... inside a quoted text", "close the quote before this line"},
    {"illegal tab", "a tab in the indentation", "indent with spaces"},
    {"unknown escape character", "a backslash before a character that has no escape in double quotes",
     "write \\\\ for a backslash, or use single quotes"},
    {"bad character found while scanning hex number", "the escape is not followed by enough hexadecimal digits",
     "write \\\\ for a backslash, or use single quotes"},
    {"invalid unicode", "the escape names no Unicode character", "write \\\\ for a backslash, or use single quotes"},
    {"alias not found after *", "a value that begins with * is an alias, but no name follows",
     "put the text in quotes"},
    {"illegal character found while scanning alias", "a value that begins with * names an alias",
     "put the text in quotes"},
    {"anchor not found after &", "a value that begins with & is an anchor, but no name follows",
     "put the text in quotes"},
    {"illegal character found while scanning anchor", "a value that begins with & names an anchor",
     "put the text in quotes"},
    {"cannot assign multiple anchors", "two anchors on one value", "keep one of them"},
    {"cannot assign multiple tags", "tags (!) are not allowed in a recipe", "remove them"},
    {"aliases can't have any content", "an alias (*) followed by a value of its own", "remove one of them"},
    {"cannot set zero indentation", "the number after | or > must be 1 to 9", "remove it"},
    {"unexpected character in block scalar", "| or > must end the line", "begin the text on the next line"},
    {"illegal character in scalar", "a character that is not allowed here", "put the text in quotes"},
    {"illegal character found while scanning tag", "tags (!) are not allowed in a recipe", "put the text in quotes"},
    {"tag handle", "tags (!) are not allowed in a recipe", "put the text in quotes"},
    {"end of verbatim tag", "tags (!) are not allowed in a recipe", "put the text in quotes"},
    {"YAML directives", "a %YAML line has one version", "remove the line"},
    {"bad YAML version", "a %YAML line needs a version such as 1.2", "remove the line"},
    {"YAML major version too large", "the %YAML line asks for a newer YAML", "remove the line"},
    {"repeated YAML directive", "a second %YAML line", "remove the line"},
    {"TAG directives", "tags are not allowed in a recipe", "remove the line"},
    {"repeated TAG directive", "tags are not allowed in a recipe", "remove the line"},
};

// The unquoted reference in `{a: ${x}}` is the most frequent of all: YAML sees two opening braces.
bool has_bare_reference(std::string_view line) {
  const std::size_t at = line.find("${");
  if (at == std::string_view::npos || at == 0) return false;
  return line[at - 1] != '"' && line[at - 1] != '\'';
}

}  // namespace

YamlError explain_yaml_error(std::string_view library_message, std::string_view line, std::string_view rest) {
  if (has_bare_reference(line) && line.find_first_of("[{") < line.find("${")) {
    return {"a ${...} without quotes inside [...] or {...}", "write \"${...}\" with quotes around it", true};
  }
  if (library_message.starts_with("the referenced anchor is not defined")) {
    const std::string_view alias = rest.substr(0, rest.find_first_of(" \t\r\n,]}"));
    return {"no anchor for the alias " + core::quote(alias),
            "an anchor (&name) must precede its aliases; put text that begins with * in quotes", false};
  }
  if (library_message.starts_with("unknown token") && !rest.empty()) {
    const std::size_t length = std::max<std::size_t>(core::utf8_length(rest, 0), 1);
    return {"a value cannot begin with " + core::quote(rest.substr(0, length)), "put the text in quotes", false};
  }
  for (const Row& row : kRows) {
    if (library_message.starts_with(row.begins_with)) return {row.message, row.hint, false};
  }
  return {"invalid YAML: " + core::escape_for_terminal(library_message), "", false};
}

std::string_view line_around(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
}

// Offset of the first tab that indents something, up to `end`.
std::size_t find_indenting_tab(std::string_view text, std::size_t end) {
  for (std::size_t line = 0; line < std::min(end + 1, text.size());) {
    const std::size_t first = std::min(text.find_first_not_of(" \t", line), text.size());
    const std::size_t tab = text.substr(line, first - line).find('\t');
    const bool blank = first == text.size() || text[first] == '\n' || text[first] == '\r' || text[first] == '#';
    if (tab != std::string_view::npos && !blank) return line + tab;
    line = std::min(text.find('\n', first), text.size() - 1) + 1;
  }
  return std::string_view::npos;
}

// The quote that was still open when the text ended, searched for from the last value that was complete.
std::size_t find_open_quote(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    const bool begins_value = at == 0 || std::string_view(" \t\n[{,:").find(text[at - 1]) != std::string_view::npos;
    if ((text[at] != '"' && text[at] != '\'') || !begins_value) continue;
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != text[at]) end += text[at] == '"' && text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) return at;
    at = end;
  }
  return std::string_view::npos;
}

// Two slips that yaml-cpp notices only later: `key:value`, and `-entry`. The offset of the missing space, if it is
// near.
std::size_t find_missing_space(std::string_view text, std::size_t at) {
  std::string_view line = line_around(text, at);
  for (int i = 0; i < 3; ++i) {
    const std::size_t begin = static_cast<std::size_t>(line.data() - text.data());
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos) {
      const std::string_view word = line.substr(first, line.find_first_of(" \t\r", first) - first);
      const std::size_t colon = word.find(':');
      const bool is_key =
          colon != std::string_view::npos && colon > 0 && colon + 1 < word.size() && word[colon + 1] != ':';
      if (is_key && word.find_first_of("\"'{[/") > colon) return begin + first + colon;
      if (word.size() > 1 && word[0] == '-' && word[1] != '-' && word != "---") return begin + first;
    }
    if (begin < 2) break;
    line = line_around(text, begin - 1);
    if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  }
  return std::string_view::npos;
}

}  // namespace runner::recipe
