#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "components/template/machine/functions.h"

// Python's two ways of filling in a text.

namespace components::jinja {
namespace {

constexpr std::int64_t kWidthMax = 1'000'000, kPrecisionMax = 300;

/// How one value is written. Both ways have these in common.
struct Style {
  std::string fill = " ";
  char align = '\0';  ///< < > ^ =
  char sign = '-';
  bool is_alternate = false, has_commas = false;
  std::int64_t width = 0, precision = -1;
  char type = 's';
};

std::string with_commas(std::string digits) {
  for (std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size()); end > 3;) {
    end -= 3;
    digits.insert(end, ",");
  }
  return digits;
}

std::string in_base(std::uint64_t value, int base, bool upper_case) {
  std::array<char, 70> buffer{};
  std::string made(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base).ptr);
  return upper_case ? upper(made) : made;
}

std::string padded(Machine& machine, const Style& style, const std::string& sign, const std::string& body, char align) {
  const auto size = static_cast<std::int64_t>(code_points(sign) + code_points(body));
  const std::int64_t room = std::max<std::int64_t>(style.width - size, 0);
  machine.charge(static_cast<std::size_t>(room) * style.fill.size() + body.size() + sign.size());
  const std::int64_t left = align == '<' ? 0 : align == '^' ? room / 2 : room;
  std::string made = align == '=' ? sign : "";
  for (std::int64_t i = 0; i < left; ++i) made += style.fill;
  made += align == '=' ? body : sign + body;
  for (std::int64_t i = left; i < room; ++i) made += style.fill;
  return made;
}

/// The digits of a number without its sign.
std::string number_text(Machine& machine, const Style& style, const Value& value) {
  const char type = style.type;
  if (value.is_integral() &&
      (type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' || type == 'o' || type == 'b')) {
    const std::int64_t number = value.as_integer();
    const std::uint64_t size = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    std::string digits = in_base(size, base, type == 'X');
    if (style.precision > static_cast<std::int64_t>(digits.size())) {
      digits.insert(0, static_cast<std::size_t>(style.precision) - digits.size(), '0');
    }
    if (style.has_commas) digits = with_commas(digits);
    return base != 10 && style.is_alternate ? std::string("0") + type + digits : digits;
  }
  const double number = std::abs(value.as_double());
  const bool is_upper = type == 'F' || type == 'E' || type == 'G';
  if (std::isnan(number) || std::isinf(number)) {
    const std::string name = std::isnan(number) ? "nan" : "inf";
    return (is_upper ? upper(name) : name) + (type == '%' ? "%" : "");
  }
  std::array<char, 16> format{};
  const char letter = type == '%' ? 'f' : type == 'F' ? 'f' : type;
  std::snprintf(format.data(), format.size(), "%%%s.*%c", style.is_alternate ? "#" : "", letter);
  std::array<char, 700> buffer{};
  const int precision = static_cast<int>(style.precision < 0 ? 6 : style.precision);
  const int length =
      std::snprintf(buffer.data(), buffer.size(), format.data(), precision, type == '%' ? number * 100 : number);
  std::string made(buffer.data(), static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(buffer.size()) - 1)));
  machine.charge(made.size());
  if (style.has_commas) made = with_commas(made);
  return type == '%' ? made + "%" : made;
}

std::string number(Machine& machine, const Style& style, const Value& value) {
  const bool negative = value.is_integral() ? value.as_integer() < 0 : std::signbit(value.as_double());
  const std::string sign = negative ? "-" : style.sign == '-' ? "" : std::string(1, style.sign);
  return padded(machine, style, sign, number_text(machine, style, value), style.align ? style.align : '>');
}

std::int64_t read_number(Machine& machine, const std::string& text, std::size_t& at, std::int64_t most) {
  std::int64_t value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > most) machine.fail("a width or precision of a format is at most " + std::to_string(most));
  }
  return value;
}

/// Of `%`: values in turn, or by name.
class Percent {
 public:
  Percent(Machine& machine, const Text& format, const Value& values)
      : machine_(machine),
        format_(format.bytes),
        values_(values),
        is_tuple_(values.is_list() && values.as_list().sequence == Sequence::kTuple) {
    std::size_t begin = 0;
    for (std::size_t at = format_.find('%'); at != std::string::npos; at = format_.find('%', begin)) {
      builder_.add(format, begin, at);
      begin = at + 1;
      one(begin);
    }
    builder_.add(format, begin, format_.size());
    // What can be asked for a key may be left unused: a list, too.
    const bool may_be_left = values.is_mapping() || (values.is_list() && !is_tuple_);
    if (!may_be_left && used_ < count()) machine.fail("the format has fewer places than there are values");
  }

  Text take() { return builder_.take(); }

 private:
  std::size_t count() const { return is_tuple_ ? values_.items().size() : 1; }

  Value next() {
    if (used_ >= count()) machine_.fail("the format has more places than there are values");
    return is_tuple_ ? values_.items()[used_++] : (++used_, values_);
  }

  void one(std::size_t& at) {
    machine_.step();
    Style style;
    std::optional<Value> named;
    if (at < format_.size() && format_[at] == '(') {
      const std::size_t end = format_.find(')', at);
      if (end == std::string::npos || !values_.is_mapping()) machine_.fail("a name in a format needs a mapping");
      const std::string key = format_.substr(at + 1, end - at - 1);
      const Value* found = values_.as_mapping().find(key);
      if (!found) machine_.fail("the format names \"" + key + "\", which the mapping lacks");
      named = *found;
      at = end + 1;
    }
    bool left = false, zero = false;
    for (; at < format_.size() && std::string_view("-+ #0").find(format_[at]) != std::string_view::npos; ++at) {
      left = left || format_[at] == '-';
      zero = zero || format_[at] == '0';
      style.is_alternate = style.is_alternate || format_[at] == '#';
      if (format_[at] == '+' || (format_[at] == ' ' && style.sign != '+')) style.sign = format_[at];
    }
    const auto read = [&](std::int64_t most) {
      if (at < format_.size() && format_[at] == '*') {
        ++at;
        return std::min(machine_.integer(next(), "a width of a format"), most);
      }
      return read_number(machine_, format_, at, most);
    };
    style.width = read(kWidthMax);
    if (at < format_.size() && format_[at] == '.') {
      ++at;
      style.precision = std::max<std::int64_t>(read(kPrecisionMax), 0);
    }
    while (at < format_.size() && (format_[at] == 'l' || format_[at] == 'h' || format_[at] == 'L')) ++at;
    if (at >= format_.size()) machine_.fail("the format ends behind \"%\"");
    style.type = format_[at++];
    if (style.type == '%') return builder_.add("%");
    write(style, named ? *named : next(), left, zero);
  }

  void write(Style style, const Value& value, bool left, bool zero) {
    if (style.type == 's' || style.type == 'r' || style.type == 'a') {
      Text text = style.type == 's' ? machine_.as_text(value) : Text{machine_.repr(value)};
      if (style.precision >= 0) {
        text = part_of(text, 0, byte_of(text.bytes, static_cast<std::size_t>(style.precision))).as_text();
      }
      const auto room = static_cast<std::size_t>(
          std::max<std::int64_t>(style.width - static_cast<std::int64_t>(code_points(text.bytes)), 0));
      machine_.charge(room + text.bytes.size());
      if (!left) builder_.add(std::string(room, ' '));
      builder_.add(text);
      if (left) builder_.add(std::string(room, ' '));
      return;
    }
    if (style.type == 'c' && value.is_integral() && value.as_integer() >= 0 && value.as_integer() < 0x110000) {
      std::string one;
      append_code_point(one, static_cast<char32_t>(value.as_integer()));
      return builder_.add(one);
    }
    static constexpr std::string_view kNumbers = "diuxXofFeEgG";
    if (kNumbers.find(style.type) == std::string_view::npos) {
      machine_.fail(std::string("a format has no \"%") + style.type + "\"");
    }
    if (!value.is_number()) {
      machine_.fail(std::string("\"%") + style.type + "\" needs a number, got a " + std::string(value.type_name()));
    }
    const bool is_whole = std::string_view("diuxXo").find(style.type) != std::string_view::npos;
    if (is_whole && !value.is_integral()) {
      if (!std::isfinite(value.as_double()) || std::abs(value.as_double()) > 9.2e18) {
        machine_.fail("the number does not fit into 64 bits");
      }
      return write(style, Value::integer(static_cast<std::int64_t>(value.as_double())), left, zero);
    }
    style.align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) style.fill = "0";
    builder_.add_from(number(machine_, style, value), kNoMessage);
  }

  Machine& machine_;
  const std::string& format_;
  const Value& values_;
  bool is_tuple_;
  std::size_t used_ = 0;
  TextBuilder builder_;
};

/// Of str.format().
class Braces {
 public:
  Braces(Machine& machine, const Arguments& arguments) : machine_(machine), arguments_(arguments) {}

  Text fill(const Text& format) {
    const Machine::Level level(machine_);
    TextBuilder builder;
    const std::string& bytes = format.bytes;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      if (bytes[at] != '{' && bytes[at] != '}') {
        ++at;
        continue;
      }
      machine_.step();
      builder.add(format, begin, at);
      if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
        builder.add(bytes.substr(at, 1));
        begin = at += 2;
        continue;
      }
      if (bytes[at] == '}') machine_.fail("a single \"}\" in a format");
      std::size_t end = at + 1;
      for (int depth = 1; end < bytes.size(); ++end) {
        depth += bytes[end] == '{' ? 1 : bytes[end] == '}' ? -1 : 0;
        if (depth == 0) break;
      }
      if (end >= bytes.size()) machine_.fail("a \"{\" in a format is not closed");
      builder.add(field(bytes.substr(at + 1, end - at - 1)));
      begin = at = end + 1;
    }
    builder.add(format, begin, bytes.size());
    return builder.take();
  }

 private:
  Text field(const std::string& text) {
    const std::size_t colon = std::min(text.find(':'), text.size()), mark = std::min(text.find('!'), colon);
    Value value = named(text.substr(0, mark));
    if (mark < colon) {
      const std::string conversion = text.substr(mark + 1, colon - mark - 1);
      if (conversion != "r" && conversion != "s") machine_.fail("a format converts with !r or !s, got !" + conversion);
      value = conversion == "r" ? machine_.text(machine_.repr(value)) : machine_.text(machine_.as_text(value));
    }
    std::string spec = colon < text.size() ? text.substr(colon + 1) : "";
    if (spec.find('{') != std::string::npos) spec = fill(Text{spec}).bytes;
    if (spec.empty()) return machine_.as_text(value);
    return made_from(value, styled(value, spec)).as_text();
  }

  Value named(const std::string& name) {
    std::size_t at = std::min(name.find_first_of(".["), name.size());
    const std::string first = name.substr(0, at);
    Value value;
    if (first.empty() || first.find_first_not_of("0123456789") == std::string::npos) {
      const std::size_t i = first.empty() ? next_++ : first.size() > 6 ? 1'000'000 : std::stoul(first);
      if (i >= arguments_.positional.size()) machine_.fail("the format has more places than there are values");
      value = arguments_.positional[i];
    } else {
      const auto found = std::find_if(arguments_.named.begin(), arguments_.named.end(),
                                      [&](const auto& one) { return one.first == first; });
      if (found == arguments_.named.end()) machine_.fail("the format names \"" + first + "\", which is not given");
      value = found->second;
    }
    while (at < name.size()) {
      const bool is_item = name[at] == '[';
      const std::size_t end = std::min(is_item ? name.find(']', at) : name.find_first_of(".[", at + 1), name.size());
      const std::string part = name.substr(at + 1, end - at - 1);
      const bool is_index =
          is_item && !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
      value = machine_.item(value, is_index ? Value::integer(std::stoll(part)) : Value::text(part));
      at = end + (is_item ? 1 : 0);
    }
    return value;
  }

  std::string styled(const Value& value, const std::string& spec) {
    Style style;
    style.type = '\0';
    std::size_t at = 0;
    std::size_t behind_fill = 0;
    if (!spec.empty()) next_code_point(spec, behind_fill);
    const auto is_align = [&](std::size_t i) {
      return i < spec.size() && std::string_view("<>^=").find(spec[i]) != std::string_view::npos;
    };
    if (is_align(behind_fill)) {
      style.fill = spec.substr(0, behind_fill);
      style.align = spec[behind_fill];
      at = behind_fill + 1;
    } else if (is_align(0)) {
      style.align = spec[at++];
    }
    const auto take = [&](std::string_view any) {
      return at < spec.size() && any.find(spec[at]) != std::string_view::npos ? spec[at++] : '\0';
    };
    if (const char sign = take("+- ")) style.sign = sign;
    style.is_alternate = take("#") != '\0';
    if (at < spec.size() && spec[at] == '0' && !style.align) {
      style.fill = "0";
      style.align = value.is_text() ? '<' : '=';
    }
    style.width = read_number(machine_, spec, at, kWidthMax);
    style.has_commas = take(",") != '\0';
    if (take(".")) style.precision = read_number(machine_, spec, at, kPrecisionMax);
    style.type = take("sdxXobeEfFgG%");
    if (at < spec.size()) machine_.fail("the format \":" + spec + "\" is not one of Python's");
    if (!value.is_number() || (value.is_bool() && !style.type)) {
      if (style.type && style.type != 's') machine_.fail("the format \":" + spec + "\" needs a number");
      std::string text = machine_.str(value);
      if (style.precision >= 0) text.resize(byte_of(text, static_cast<std::size_t>(style.precision)));
      return padded(machine_, style, "", text, style.align ? style.align : '<');
    }
    if (style.type == 's') machine_.fail("the format \":" + spec + "\" needs a text");
    if (!style.type && !value.is_integral()) {
      if (style.precision >= 0) {
        style.type = 'g';
        return number(machine_, style, value);
      }
      std::string text = float_text(std::abs(value.as_double()));
      const std::string sign = std::signbit(value.as_double()) ? "-"
                               : style.sign == '-'             ? ""
                                                               : std::string(1, style.sign);
      return padded(machine_, style, sign, style.has_commas ? with_commas(text) : text,
                    style.align ? style.align : '>');
    }
    if (!style.type) style.type = 'd';
    if (style.type != 'd' && style.type != 'x' && style.type != 'X' && style.type != 'o' && style.type != 'b') {
      return number(machine_, style, Value::floating(value.as_double()));
    }
    if (!value.is_integral()) machine_.fail("the format \":" + spec + "\" needs an integer");
    return number(machine_, style, value);
  }

  Machine& machine_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
};

}  // namespace

Text percent_format(Machine& machine, const Text& format, const Value& values) {
  return Percent(machine, format, values).take();
}

Text brace_format(Machine& machine, const Text& format, const Arguments& arguments) {
  return Braces(machine, arguments).fill(format);
}

}  // namespace components::jinja
