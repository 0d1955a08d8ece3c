#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "components/template/library/filters.h"

// Filters of texts and numbers.

namespace components::jinja {
namespace {

/// A filter that makes a text of a text as a whole.
template <std::string (*kMake)(std::string_view)>
Value changed(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "this filter", arguments, {});
  const Value source = subject.is_text() ? subject : machine.text(machine.as_text(subject));
  machine.charge(source.bytes().size() * 2 + sizeof(Text));
  return made_from(source, kMake(source.bytes()));
}

/// As Jinja's: words are what white space, "-" and opening brackets divide.
std::string filter_title(std::string_view text) {
  std::string made;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at;
    const char32_t c = next_code_point(text, next);
    const std::string_view one = text.substr(at, next - at);
    made += inside ? lower(one) : upper(one);
    inside = !(is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<');
    at = next;
  }
  return made;
}

Value subject_text(Machine& machine, const Value& subject) {
  return subject.is_text() ? subject : machine.text(machine.as_text(subject));
}

/// Of the filters that do not make a text of what is none.
Value only_text(Machine& machine, const std::string& filter, const Value& subject) {
  if (subject.is_undefined()) machine.fail(subject.absence());
  if (!subject.is_text()) {
    machine.fail("filter " + filter + " needs a text, got a " + std::string(subject.type_name()));
  }
  return subject;
}

Value trim(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter trim", arguments, {"chars"});
  const Value text = subject_text(machine, subject);
  const bool has = parameters.find(0) && !parameters.find(0)->is_none();
  const std::string* characters = has ? &parameters.text(0) : nullptr;
  machine.step(characters ? (characters->size() + 1) * text.bytes().size() / 64 : text.bytes().size() / 256);
  const std::size_t begin = leading(text.bytes(), characters);
  const std::size_t end = text.bytes().size() - (begin < text.bytes().size() ? trailing(text.bytes(), characters) : 0);
  machine.charge(sizeof(Text) + end - begin);
  return part_of(text.as_text(), begin, end);
}

Value string(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter string", arguments, {});
  return subject_text(machine, subject);
}

Value replace(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter replace", arguments, {"old", "new", "count"});
  Arguments given;
  given.positional = {subject_text(machine, parameters.get(0)), subject_text(machine, parameters.get(1))};
  if (parameters.find(2) && !parameters.find(2)->is_none()) given.positional.push_back(*parameters.find(2));
  const Value text = subject_text(machine, subject);
  return find_method(text, "replace")(machine, text, given);
}

Value safe(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter safe", arguments, {});
  Text text = machine.as_text(subject);
  text.is_markup = true;
  return machine.text(std::move(text));
}

template <bool kAlways>
Value escape(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter escape", arguments, {});
  const Value text = subject_text(machine, subject);
  if (text.as_text().is_markup && !kAlways) return text;
  machine.charge(text.bytes().size() * 5);
  Text made = made_from(text, escaped(text.bytes())).as_text();
  made.is_markup = true;
  return machine.text(std::move(made));
}

Value indent(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter indent", arguments, {"width", "first", "blank"});
  const Value width = parameters.get(0, Value::integer(4)), text = only_text(machine, "indent", subject);
  std::string space;
  if (width.is_text()) {
    space = width.bytes();
  } else {
    const std::int64_t count = std::max<std::int64_t>(machine.integer(width, "the width of indent"), 0);
    machine.charge(static_cast<std::size_t>(count));
    space.assign(static_cast<std::size_t>(count), ' ');
  }
  const std::string& bytes = text.bytes();
  const bool first = parameters.is_true(1, false), blank = parameters.is_true(2, false);
  TextBuilder builder;
  for (std::size_t at = 0; at < bytes.size() || at == 0;) {
    machine.step();
    std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    if ((at == 0 ? first : true) && (end > at || blank || (at == 0 && first))) {
      machine.charge(space.size());
      builder.add(space);
    }
    end = std::min(end + 1, bytes.size());
    builder.add(text.as_text(), at, end);
    if (end == at || end == bytes.size()) {
      if (blank && end > 0 && bytes[end - 1] == '\n') builder.add(space);
      break;
    }
    at = end;
  }
  return machine.text(builder.take());
}

Value wordcount(Machine& machine, const Value& subject, Arguments&) {
  const Value text = subject_text(machine, subject);
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.bytes().size();) {
    const char32_t c = next_code_point(text.bytes(), at);
    const bool is_word = c == '_' || is_alphabetic(c) || (c >= '0' && c <= '9');
    if (is_word && !inside) ++count;
    inside = is_word;
  }
  machine.step(text.bytes().size() / 4);
  return Value::integer(count);
}

Value center(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter center", arguments, {"width"});
  const Value text = subject_text(machine, subject);
  const auto size = static_cast<std::int64_t>(code_points(text.bytes()));
  const std::int64_t width = parameters.integer(0, 80), room = width > size ? width - size : 0;
  machine.charge(static_cast<std::size_t>(room));
  machine.charge(text.bytes().size());
  const std::int64_t left = room / 2 + (room & width & 1);
  TextBuilder builder;
  builder.add(std::string(static_cast<std::size_t>(left), ' '));
  builder.add(text.as_text());
  builder.add(std::string(static_cast<std::size_t>(room - left), ' '));
  return machine.text(builder.take());
}

Value truncate(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t length = parameters.integer(0, 255), leeway = parameters.integer(3, 5);
  if (subject.is_list() || subject.is_mapping() || subject.is_undefined()) {
    // Whatever has a length and is not longer is left as it is.
    Arguments none;
    const std::int64_t size = find_filter("length")(machine, subject, none).as_integer();
    if (size - std::max<std::int64_t>(leeway, 0) <= length) return subject;
  }
  const Value text = only_text(machine, "truncate", subject), end = parameters.get(2, Value::text(std::string("...")));
  const std::string& tail = end.is_text() ? end.bytes() : parameters.text(2);
  const auto tail_size = static_cast<std::int64_t>(code_points(tail));
  if (length < tail_size) machine.fail("filter truncate needs a length of at least that of its end");
  machine.step(text.bytes().size() / 32);
  if (static_cast<std::int64_t>(code_points(text.bytes())) - std::max<std::int64_t>(leeway, 0) <= length) return text;
  std::size_t cut = byte_of(text.bytes(), static_cast<std::size_t>(length - tail_size));
  if (!parameters.is_true(1, false)) cut = std::min(cut, text.bytes().substr(0, cut).rfind(' '));
  machine.charge(cut + tail.size());
  TextBuilder builder;
  builder.add(text.as_text(), 0, cut);
  builder.add(tail);
  return machine.text(builder.take());
}

Value urlencode(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter urlencode", arguments, {});
  const auto quoted = [&](const Value& value, bool is_query) {
    static constexpr std::string_view kDigits = "0123456789ABCDEF", kSafe = "_.-~";
    const std::string text = machine.str(value);
    machine.charge(text.size() * 3);
    std::string made;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      const bool is_plain =
          byte < 0x80 && (std::isalnum(byte) || kSafe.find(c) != std::string_view::npos || (c == '/' && !is_query));
      if (is_plain) {
        made += c;
      } else if (c == ' ' && is_query) {
        made += '+';
      } else {
        made += '%';
        made += kDigits[byte >> 4U];
        made += kDigits[byte & 15U];
      }
    }
    return made;
  };
  if (subject.is_text() || !(subject.is_mapping() || subject.is_list())) {
    return made_from(subject, quoted(subject, false));
  }
  std::string made;
  const auto add = [&](const Value& key, const Value& value) {
    made += (made.empty() ? "" : "&") + quoted(key, true) + "=" + quoted(value, true);
  };
  if (subject.is_mapping()) {
    for (const auto& [key, value] : subject.as_mapping().entries) add(key, value);
  } else {
    for (const Value& pair : machine.items(subject)) {
      const std::vector<Value> both = machine.items(pair);
      if (both.size() != 2) machine.fail("filter urlencode needs pairs");
      add(both[0], both[1]);
    }
  }
  return made_from(subject, made);
}

Value format(Machine& machine, const Value& subject, Arguments& arguments) {
  const Value text = subject_text(machine, subject);
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    machine.fail("filter format accepts values with names or without, not both");
  }
  if (arguments.named.empty()) {
    return machine.text(percent_format(machine, text.as_text(), machine.list(arguments.positional, Sequence::kTuple)));
  }
  auto named = std::make_shared<Mapping>();
  for (const auto& [name, value] : arguments.named) machine.set(*named, Value::text(name), value);
  return machine.text(percent_format(machine, text.as_text(), machine.mapping(std::move(named))));
}

/// A text as Python's int() or float() reads it: without white space around it, "_" between digits.
std::string number_text(std::string_view text) {
  const std::size_t begin = leading(text);
  if (begin == text.size()) return "";
  std::string made(text.substr(begin, text.size() - begin - trailing(text)));
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] != '_') continue;
    if (i == 0 || i + 1 == made.size() || !std::isalnum(static_cast<unsigned char>(made[i - 1])) ||
        !std::isalnum(static_cast<unsigned char>(made[i + 1]))) {
      return "";
    }
  }
  std::erase(made, '_');
  if (made.starts_with('+')) made.erase(0, made.size() > 1 && made[1] == '-' ? 2 : 1);
  return made;
}

const Value* read_float(Machine& machine, const Value& subject, Value& into) {
  if (subject.is_number()) {
    into = Value::floating(subject.as_double());
    return &into;
  }
  if (subject.is_undefined()) machine.fail(subject.absence());
  if (!subject.is_text()) return nullptr;
  machine.step(subject.bytes().size() / 8);
  const std::string text = number_text(subject.bytes());
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ptr != text.data() + text.size()) return nullptr;
  if (read.ec == std::errc::result_out_of_range) {
    value = text.find("e-") != std::string::npos || text.find("E-") != std::string::npos
                ? 0.0
                : std::numeric_limits<double>::infinity();
    if (text[0] == '-') value = -value;
  }
  into = Value::floating(value);
  return &into;
}

Value integer_of(Machine& machine, double value, const Value& otherwise) {
  if (std::isnan(value) || std::isinf(value)) return otherwise;
  if (std::abs(value) >= 9.2e18) machine.fail("the number does not fit into 64 bits");
  return Value::integer(static_cast<std::int64_t>(value));
}

Value to_integer(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter int", arguments, {"default", "base"});
  const Value otherwise = parameters.get(0, Value::integer(0));
  const std::int64_t base = parameters.integer(1, 10);
  if (subject.is_integral()) return Value::integer(subject.as_integer());
  if (subject.kind() == Value::Kind::kFloat) return integer_of(machine, subject.as_double(), otherwise);
  if (subject.is_undefined()) machine.fail(subject.absence());
  if (!subject.is_text()) return otherwise;
  machine.step(subject.bytes().size() / 8);
  std::string text = number_text(subject.bytes());
  const bool negative = text.starts_with('-');
  std::string digits = negative ? text.substr(1) : text;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    if ((letter == 'x' && base == 16) || (letter == 'o' && base == 8) || (letter == 'b' && base == 2))
      digits.erase(0, 2);
  }
  if (base >= 2 && base <= 36 && !digits.empty() && digits[0] != '-') {
    std::int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
    if (read.ptr == digits.data() + digits.size()) {
      if (read.ec != std::errc()) machine.fail("the number " + text.substr(0, 40) + " does not fit into 64 bits");
      return Value::integer(negative ? -value : value);
    }
  }
  Value made;
  return read_float(machine, subject, made) ? integer_of(machine, made.as_double(), otherwise) : otherwise;
}

Value to_float(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter float", arguments, {"default"});
  Value made;
  return read_float(machine, subject, made) ? made : parameters.get(0, Value::floating(0.0));
}

Value absolute(Machine& machine, const Value& subject, Arguments&) {
  if (subject.kind() == Value::Kind::kFloat) return Value::floating(std::abs(subject.as_double()));
  const std::int64_t value = machine.integer(subject, "the value of abs");
  return value < 0 ? machine.arithmetic(Op::kSubtract, Value::integer(0), subject) : Value::integer(value);
}

/// Python's round(): half to even, on the decimal digits that the number has.
double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -300) return 0.0;
  if (digits < 0) {
    const double by = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / by) * by;
  }
  std::array<char, 700> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed,
                                 static_cast<int>(digits))
                       .ptr;
  double made = value;
  std::from_chars(buffer.data(), end, made);
  return made;
}

Value round_number(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter round", arguments, {"precision", "method"});
  const std::int64_t digits = parameters.integer(0, 0);
  const std::string method = parameters.find(1) ? parameters.text(1) : "common";
  if (subject.is_undefined()) machine.fail(subject.absence());
  if (!subject.is_number()) machine.fail("filter round needs a number, got a " + std::string(subject.type_name()));
  if (method == "common") {
    if (subject.is_integral() && digits >= 0) return Value::integer(subject.as_integer());
    const double made = rounded(subject.as_double(), digits);
    return subject.is_integral() ? integer_of(machine, made, subject) : Value::floating(made);
  }
  if (method != "ceil" && method != "floor") {
    machine.fail("the method of filter round must be common, ceil or floor, got \"" + method + "\"");
  }
  const double by = std::pow(10.0, static_cast<double>(digits)), scaled = subject.as_double() * by;
  return Value::floating((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / by);
}

Value filesizeformat(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter filesizeformat", arguments, {"binary"});
  Value number;
  if (!read_float(machine, subject, number)) machine.fail("filter filesizeformat needs a number");
  const bool binary = parameters.is_true(0, false);
  const double base = binary ? 1024 : 1000, bytes = number.as_double();
  static constexpr std::array<const char*, 8> kDecimal = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  static constexpr std::array<const char*, 8> kBinary = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  if (bytes == 1) return machine.text(std::string("1 Byte"));
  if (!std::isfinite(bytes)) machine.fail("filter filesizeformat needs a finite number");
  if (bytes < base) return machine.text(std::to_string(static_cast<std::int64_t>(bytes)) + " Bytes");
  double unit = base;
  for (std::size_t i = 0;; ++i) {
    unit *= base;
    if (bytes < unit || i == 7) {
      std::array<char, 400> buffer{};
      const auto end =
          std::to_chars(buffer.data(), buffer.data() + buffer.size(), base * bytes / unit, std::chars_format::fixed, 1)
              .ptr;
      return machine.text(std::string(buffer.data(), end) + " " + (binary ? kBinary : kDecimal).at(i));
    }
  }
}

Value striptags(Machine& machine, const Value& subject, Arguments&) {
  const Value text = subject_text(machine, subject);
  std::string made;
  const std::string& bytes = text.bytes();
  machine.charge(bytes.size() * 2);
  // Where the last of each ends: behind it none is looked for again.
  const auto end_of_last = [&](std::string_view mark) {
    const std::size_t at = bytes.rfind(mark);
    return at == std::string::npos ? 0 : at + mark.size();
  };
  const std::size_t last_comment = end_of_last("-->"), last_tag = end_of_last(">");
  for (std::size_t at = 0; at < bytes.size();) {
    const bool is_comment = bytes.compare(at, 4, "<!--") == 0;
    const std::size_t last = is_comment ? last_comment : last_tag;
    if (bytes[at] != '<' || at >= last) {
      made += bytes[at++];
      continue;
    }
    const std::size_t close = bytes.find(is_comment ? "-->" : ">", at);
    if (close == std::string::npos) {
      made += bytes[at++];
    } else {
      at = close + (is_comment ? 3 : 1);
    }
  }
  std::string joined;
  for (const auto& [begin, end] : words(made, std::numeric_limits<std::size_t>::max())) {
    joined += (joined.empty() ? "" : " ") + made.substr(begin, end - begin);
  }
  return made_from(text, joined);
}

Value pprint(Machine& machine, const Value& subject, Arguments&) { return machine.text(machine.repr(subject)); }

template <const char* kWhy>
Value refused(Machine& machine, const Value&, Arguments&) {
  machine.fail(kWhy);
}
constexpr char kRandom[] = "filter random chooses by chance, which a chat cannot depend on";
constexpr char kHtml[] = "the filters urlize, xmlattr and wordwrap are for web pages, a chat has none";

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable table = {
      {"upper", changed<upper>},
      {"lower", changed<lower>},
      {"capitalize", changed<capitalized>},
      {"title", changed<filter_title>},
      {"trim", trim},
      {"string", string},
      {"replace", replace},
      {"safe", safe},
      {"escape", escape<false>},
      {"e", escape<false>},
      {"forceescape", escape<true>},
      {"indent", indent},
      {"wordcount", wordcount},
      {"center", center},
      {"truncate", truncate},
      {"urlencode", urlencode},
      {"format", format},
      {"int", to_integer},
      {"float", to_float},
      {"abs", absolute},
      {"round", round_number},
      {"filesizeformat", filesizeformat},
      {"striptags", striptags},
      {"pprint", pprint},
      {"tojson", to_json},
      {"random", refused<kRandom>},
      {"urlize", refused<kHtml>},
      {"xmlattr", refused<kHtml>},
      {"wordwrap", refused<kHtml>},
  };
  return table;
}

}  // namespace components::jinja
