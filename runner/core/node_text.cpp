// Writes a tree as text: JSON for programs, YAML for people.
#include <charconv>
#include <cmath>

#include "runner/core/node.h"
#include "runner/core/scalar.h"
#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

std::string number_text(const Node& node) {
  if (node.is_integer()) return std::to_string(node.as_integer());
  return Node::floating(node.as_double()).scalar_text();
}

std::string json_scalar(const Node& node) {
  switch (node.kind()) {
    case Node::Kind::kNull: return "null";
    case Node::Kind::kBool: return node.as_bool() ? "true" : "false";
    case Node::Kind::kInteger: return number_text(node);
    case Node::Kind::kFloat: {
      const double value = node.as_double();
      if (std::isnan(value)) return "\"nan\"";
      if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
      return number_text(node);
    }
    default: return json_quote(node.as_string());
  }
}

void write_json(const Node& node, int indent, int depth, std::string& out) {
  const auto new_line = [&](int levels) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(levels), ' ');
  };
  const char* comma = indent < 0 ? ", " : ",";
  if (node.is_sequence()) {
    out += '[';
    bool first = true;
    for (const Node& item : node.items()) {
      if (!first) out += comma;
      first = false;
      new_line(depth + 1);
      write_json(item, indent, depth + 1, out);
    }
    if (!first) new_line(depth);
    out += ']';
  } else if (node.is_mapping()) {
    out += '{';
    bool first = true;
    for (const auto& entry : node.entries()) {
      if (!first) out += comma;
      first = false;
      new_line(depth + 1);
      out += json_quote(entry.key);
      out += ": ";
      write_json(entry.value, indent, depth + 1, out);
    }
    if (!first) new_line(depth);
    out += '}';
  } else {
    out += json_scalar(node);
  }
}

bool is_plain(const std::string& text, bool in_flow) {
  static constexpr std::string_view kFirst = "-?:,[]{}#&*!|>'\"%@` ";
  if (text.empty() || text.back() == ' ' || text.back() == ':') return false;
  const bool leading_dash = text.size() > 1 && text[0] == '-' && text[1] != ' ' && text[1] != '-';
  if (kFirst.find(text[0]) != std::string_view::npos && !leading_dash) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7F || utf8_length(text, i) == 0) return false;
    if (in_flow && std::string_view(",[]{}").find(text[i]) != std::string_view::npos) return false;
    if (text[i] == ':' && text[i + 1] == ' ') return false;
    if (text[i] == '#' && i > 0 && text[i - 1] == ' ') return false;
    if (c >= 0x80) {
      if (c == 0xC2 || c == 0xD8 || c == 0xE2 || c == 0xEF) return false;  // may be NEL, LS, PS, BOM: quoted is right
      i += utf8_length(text, i) - 1;
    }
  }
  const auto read = resolve_scalar(text);
  return read.ok() && read.value().is_string();
}

std::string yaml_scalar(const Node& node, bool in_flow) {
  if (node.is_null()) return "null";
  if (node.is_bool()) return node.as_bool() ? "true" : "false";
  if (node.is_number()) return number_text(node);
  return is_plain(node.as_string(), in_flow) ? node.as_string() : json_quote(node.as_string());
}

std::string yaml_key(const std::string& key) { return yaml_scalar(Node::string(key), false); }

bool is_flat_list(const Node& node) {
  if (!node.is_sequence()) return false;
  for (const Node& item : node.items()) {
    if (item.is_sequence() || item.is_mapping()) return false;
  }
  return true;
}

bool is_inline(const Node& node) {
  if (node.is_mapping()) return node.entries().empty();
  if (!node.is_sequence()) return true;
  constexpr std::size_t kItemsInlineMax = 16;
  return node.items().size() <= kItemsInlineMax && is_flat_list(node);
}

std::string inline_text(const Node& node) {
  if (node.is_mapping()) return "{}";
  if (!node.is_sequence()) return yaml_scalar(node, false);
  std::string out = "[";
  for (const Node& item : node.items()) out += (out.size() > 1 ? ", " : "") + yaml_scalar(item, true);
  return out + "]";
}

// `margin` is the prefix of every line but the first, which the caller has begun.
void write_yaml(const Node& node, const std::string& margin, std::string& out) {
  bool first = true;
  const auto begin = [&] {
    if (!first) out += margin;
    first = false;
  };
  if (is_inline(node)) {
    out += inline_text(node) + "\n";
  } else if (node.is_mapping()) {
    for (const auto& entry : node.entries()) {
      begin();
      out += yaml_key(entry.key) + ":";
      if (is_inline(entry.value)) {
        out += " " + inline_text(entry.value) + "\n";
      } else {
        out += "\n" + margin + "  ";
        write_yaml(entry.value, margin + "  ", out);
      }
    }
  } else {
    for (const Node& item : node.items()) {
      begin();
      out += "- ";
      write_yaml(item, margin + "  ", out);
    }
  }
}

}  // namespace

std::string to_json(const Node& node, int indent) {
  std::string out;
  write_json(node, indent, 0, out);
  return out;
}

std::string to_yaml(const Node& node) {
  std::string out;
  write_yaml(node, "", out);
  return out;
}

}  // namespace runner::core
