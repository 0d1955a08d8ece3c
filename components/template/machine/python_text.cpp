#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "components/template/machine/functions.h"
#include "components/template/machine/machine.h"
#include "runner/core/text/utf8.h"

// Values as Python prints them, and as its json module does.

namespace components::jinja {
namespace {

void append_hex(std::string& into, char32_t c, int digits) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) into += kDigits[(c >> (4U * static_cast<unsigned>(i))) & 15U];
}

bool is_printable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
  }
}

std::string text_repr(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string made(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      made += '\\';
      made += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      made += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_printable(c)) {
      append_code_point(made, c);
    } else {
      made += c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U";
      append_hex(made, c, c < 0x100 ? 2 : c < 0x10000 ? 4 : 8);
    }
  }
  return made + quote;
}

class Json {
 public:
  Json(Machine& machine, const Parameters& parameters)
      : machine_(machine), ascii_(parameters.is_true(0, false)), sort_(parameters.is_true(3, false)) {
    const Value indent = parameters.get(1, Value::none()), separators = parameters.get(2, Value::none());
    is_indented_ = !indent.is_none();
    if (indent.is_text()) indent_ = indent.bytes();
    if (is_indented_ && !indent.is_text()) {
      const std::int64_t width = machine.integer(indent, "the indent of tojson");
      if (width > 0) machine.charge(static_cast<std::size_t>(width));
      indent_.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
    comma_ = is_indented_ ? "," : ", ";
    if (separators.is_none()) return;
    const std::vector<Value> both = machine.items(separators);
    if (both.size() != 2 || !both[0].is_text() || !both[1].is_text()) {
      machine.fail("the separators of tojson must be two texts");
    }
    comma_ = both[0].bytes();
    colon_ = both[1].bytes();
  }

  std::string take() { return std::move(text_); }

  void write(const Value& value) {
    machine_.step();
    const std::size_t before = text_.size();
    switch (value.kind()) {
      case Value::Kind::kNone: text_ += "null"; break;
      case Value::Kind::kBool: text_ += value.is_true() ? "true" : "false"; break;
      case Value::Kind::kInteger: text_ += std::to_string(value.as_integer()); break;
      case Value::Kind::kFloat: text_ += number(value.as_double()); break;
      case Value::Kind::kText: quote(value.bytes()); break;
      case Value::Kind::kMapping: return mapping(value.as_mapping());
      case Value::Kind::kList:
        if (value.as_list().sequence <= Sequence::kTuple) return list(value.items());
        [[fallthrough]];
      default:
        if (value.is_undefined()) machine_.fail("tojson cannot write an undefined value: " + value.absence());
        machine_.fail("tojson cannot write a " + std::string(value.type_name()));
    }
    machine_.charge(text_.size() - before);
  }

 private:
  static std::string number(double value) {
    return std::isnan(value) ? "NaN" : std::isinf(value) ? (value < 0 ? "-Infinity" : "Infinity") : float_text(value);
  }

  void quote(std::string_view text) {
    text_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte >= 0x80 && !ascii_) {
        text_ += text[at++];
        continue;
      }
      const char32_t c = next_code_point(text, at);
      static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
      if (c < 0x80 && kEscaped.find(static_cast<char>(c)) != std::string_view::npos) {
        text_ += '\\';
        text_ += kLetters[kEscaped.find(static_cast<char>(c))];
      } else if (c < 0x20 || (c >= 0x7F && ascii_ && c < 0x10000 && c != 0x7F)) {
        text_ += "\\u";
        append_hex(text_, c, 4);
      } else if (c >= 0x10000) {
        for (const char32_t half : {0xD800 + ((c - 0x10000) >> 10U), 0xDC00 + ((c - 0x10000) & 0x3FFU)}) {
          text_ += "\\u";
          append_hex(text_, half, 4);
        }
      } else {
        text_ += static_cast<char>(c);
      }
    }
    text_ += '"';
  }

  void new_line() {
    if (!is_indented_) return;
    text_ += '\n';
    machine_.charge(indent_.size() * level_);
    for (std::size_t i = 0; i < level_; ++i) text_ += indent_;
  }

  template <typename Parts, typename Write>
  void parts(char open, char close, const Parts& all, Write write) {
    const Machine::Level level(machine_);
    text_ += open;
    ++level_;
    bool first = true;
    for (const auto& part : all) {
      if (!first) text_ += comma_;
      first = false;
      new_line();
      write(part);
    }
    --level_;
    if (!first) new_line();
    text_ += close;
    machine_.charge(2);
  }

  void list(const std::vector<Value>& items) {
    parts('[', ']', items, [&](const Value& item) { write(item); });
  }

  void key(const Value& key) {
    if (key.is_text()) return quote(key.bytes());
    if (key.is_list() || key.is_undefined()) {
      machine_.fail("tojson needs keys that are texts or numbers, got a " + std::string(key.type_name()));
    }
    text_ += '"';
    write(key);
    text_ += '"';
  }

  void mapping(const Mapping& mapping) {
    const auto entry = [&](const auto& part) {
      key(part.first);
      text_ += colon_;
      machine_.charge(part.first.is_text() ? part.first.bytes().size() : 0);
      write(part.second);
    };
    if (!sort_) return parts('{', '}', mapping.entries, entry);
    std::vector<Value> keys;
    for (const auto& part : mapping.entries) keys.push_back(part.first);
    std::vector<std::pair<Value, Value>> entries;
    for (const Value& key : sorted(machine_, std::move(keys), false))
      entries.emplace_back(key, *machine_.find(mapping, key));
    parts('{', '}', entries, entry);
  }

  Machine& machine_;
  std::string text_, indent_, comma_, colon_ = ": ";
  bool ascii_, sort_, is_indented_ = false;
  std::size_t level_ = 0;
};

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string text(buffer.data(), end);
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  const bool negative = text[0] == '-';
  std::string digits = text.substr(negative ? 1 : 0, e - (negative ? 1 : 0));
  std::erase(digits, '.');
  std::string made = negative ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    made += digits[0];
    if (count > 1) made += "." + digits.substr(1);
    const int size = std::abs(exponent);
    return made + (exponent < 0 ? "e-" : "e+") + (size < 10 ? "0" : "") + std::to_string(size);
  }
  if (exponent < 0) return made + "0." + std::string(static_cast<std::size_t>(-exponent) - 1, '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return made + digits + std::string(whole - digits.size(), '0') + ".0";
  return made + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string Machine::str(const Value& value) {
  if (value.is_text()) return value.bytes();
  if (value.is_undefined()) return "";
  return repr(value);
}

Text Machine::as_text(const Value& value) {
  if (value.is_text()) return value.as_text();
  Text made{str(value)};
  const std::int32_t message = message_of(value);
  if (message != kNoMessage && !made.bytes.empty()) made.origins = {{0, made.bytes.size(), message, true}};
  return made;
}

std::string Machine::repr(const Value& value) {
  const Level level(*this);
  step();
  const auto joined = [&](std::string open, const std::vector<Value>& items, const std::string& close) {
    for (std::size_t i = 0; i < items.size(); ++i) open += (i > 0 ? ", " : "") + repr(items[i]);
    charge(open.size());
    return open + close;
  };
  const auto entries = [&](const Mapping& mapping) {
    std::string made = "{";
    for (const auto& [key, item] : mapping.entries) {
      made += (made.size() > 1 ? ", " : "") + repr(key) + ": " + repr(item);
    }
    charge(made.size());
    return made + "}";
  };
  switch (value.kind()) {
    case Value::Kind::kUndefined: return "Undefined";
    case Value::Kind::kNone: return "None";
    case Value::Kind::kBool: return value.is_true() ? "True" : "False";
    case Value::Kind::kInteger: return std::to_string(value.as_integer());
    case Value::Kind::kFloat: return float_text(value.as_double());
    case Value::Kind::kText: {
      charge(value.bytes().size());
      std::string made = text_repr(value.bytes());
      return value.as_text().is_markup ? "Markup(" + made + ")" : made;
    }
    case Value::Kind::kMapping: return entries(value.as_mapping());
    case Value::Kind::kNamespace: return "<Namespace " + entries(value.as_mapping()) + ">";
    case Value::Kind::kLoop:
      return "<LoopContext " + std::to_string(value.as_loop().index + 1) + "/" +
             std::to_string(value.as_loop().items.items().size()) + ">";
    case Value::Kind::kCallable: fail("a " + std::string(value.type_name()) + " has no text");
    case Value::Kind::kList: break;
  }
  const std::vector<Value>& items = value.items();
  switch (value.as_list().sequence) {
    case Sequence::kList: return joined("[", items, "]");
    case Sequence::kTuple: return joined("(", items, items.size() == 1 ? ",)" : ")");
    case Sequence::kKeys: return joined("dict_keys([", items, "])");
    case Sequence::kValues: return joined("dict_values([", items, "])");
    case Sequence::kItems: return joined("dict_items([", items, "])");
    case Sequence::kRange: {
      const std::int64_t first = items.empty() ? 0 : items[0].as_integer();
      const std::int64_t by = items.size() > 1 ? items[1].as_integer() - first : 1;
      return "range(" + std::to_string(first) + ", " + std::to_string(value.as_list().range_end) +
             (by == 1 ? ")" : ", " + std::to_string(by) + ")");
    }
    case Sequence::kIterator: break;
  }
  fail("what a filter makes one by one has no text: put \"| list\" behind it");
}

Value to_json(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters parameters(machine, "filter tojson", arguments,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  Json json(machine, parameters);
  json.write(value);
  Value made = made_from(value, json.take());
  if (!value.is_text() || !value.as_text().is_markup) return made;
  return Value::text(Text{made.bytes(), made.as_text().origins});
}

}  // namespace components::jinja
