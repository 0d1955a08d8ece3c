#include "schemas/gen/cpp_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace schemas::gen {

std::string camel_case(std::string_view text) {
  std::string name;
  bool start = true;
  for (const unsigned char c : text) {
    if (!std::isalnum(c)) {
      start = true;
    } else {
      name += static_cast<char>(start ? std::toupper(c) : c);
      start = false;
    }
  }
  return name;
}

bool is_cpp_keyword(std::string_view word) {
  static constexpr std::array kWords = {
      "alignas", "alignof", "and",      "asm",     "auto",     "bool",      "break",     "case",     "catch",
      "char",    "class",   "concept",  "const",   "continue", "default",   "delete",    "do",       "double",
      "else",    "enum",    "explicit", "export",  "extern",   "false",     "float",     "for",      "friend",
      "goto",    "if",      "inline",   "int",     "long",     "mutable",   "namespace", "new",      "noexcept",
      "not",     "nullptr", "operator", "or",      "private",  "protected", "public",    "register", "requires",
      "return",  "short",   "signed",   "sizeof",  "static",   "struct",    "switch",    "template", "this",
      "throw",   "true",    "try",      "typedef", "typeid",   "typename",  "union",     "unsigned", "using",
      "virtual", "void",    "volatile", "while",   "xor"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::string cpp_string(std::string_view text) {
  std::string literal = "\"";
  for (const unsigned char c : text) {
    static constexpr char kOctal[] = "01234567";
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      // Three octal digits end by themselves; a hexadecimal escape would swallow what follows.
      literal += {'\\', kOctal[c >> 6], kOctal[(c >> 3) & 7], kOctal[c & 7]};
    } else {
      literal += static_cast<char>(c);
    }
  }
  return literal + "\"";
}

std::string cpp_double(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string cpp_raw_string(std::string_view text) {
  constexpr std::size_t kPieceMax = 60'000;
  std::string literal;
  do {
    const std::string_view piece = text.substr(0, kPieceMax);
    literal += (literal.empty() ? "" : "\n") + std::string("R\"roux(") + std::string(piece) + ")roux\"";
    text.remove_prefix(piece.size());
  } while (!text.empty());
  return literal;
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace schemas::gen
