#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_map>

#include "components/template/machine/functions.h"

// The methods of Python's str, list and dict.

namespace components::jinja {
namespace {

using MethodTable = std::unordered_map<std::string_view, Method>;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

enum class Side { kBoth, kLeft, kRight };

template <Side kSide>
Value strip(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "strip", arguments, {"chars"});
  const bool has = parameters.find(0) && !parameters.find(0)->is_none();
  const std::string* characters = has ? &parameters.text(0) : nullptr;
  const std::string& bytes = self.bytes();
  machine.step(characters ? (characters->size() + 1) * bytes.size() / 64 : bytes.size() / 256);
  const std::size_t begin = kSide == Side::kRight ? 0 : leading(bytes, characters);
  const std::size_t end =
      bytes.size() - (kSide == Side::kLeft || begin == bytes.size() ? 0 : trailing(bytes, characters));
  machine.charge(sizeof(Text) + end - begin);
  return part_of(self.as_text(), begin, end);
}

/// The most that a split may divide; Python's -1 is no limit.
std::size_t splits_of(const Parameters& parameters, std::size_t i) {
  const std::int64_t splits = parameters.integer(i, -1);
  return splits < 0 ? kNoLimit : static_cast<std::size_t>(splits);
}

/// Where `separator` stands: from the left, or from the right.
std::vector<std::size_t> places(std::string_view text, std::string_view separator, std::size_t most, bool from_right) {
  std::vector<std::size_t> found;
  if (!from_right) {
    for (std::size_t at = 0; found.size() < most; at += separator.size()) {
      at = text.find(separator, at);
      if (at == std::string_view::npos) break;
      found.push_back(at);
    }
    return found;
  }
  for (std::size_t end = text.size(); found.size() < most && end >= separator.size();) {
    const std::size_t at = text.rfind(separator, end - separator.size());
    if (at == std::string_view::npos) break;
    found.push_back(at);
    end = at;
  }
  std::reverse(found.begin(), found.end());
  return found;
}

const std::string& separator_of(Machine& machine, const Parameters& parameters) {
  const std::string& separator = parameters.text(0);
  if (separator.empty()) machine.fail("a text cannot be split at an empty text");
  return separator;
}

template <bool kFromRight>
Value split(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "split", arguments, {"sep", "maxsplit"});
  const Text& text = self.as_text();
  machine.step(text.bytes.size() / 64);
  machine.charge(text.bytes.size());
  const std::size_t most = splits_of(parameters, 1);
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  if (!parameters.find(0) || parameters.find(0)->is_none()) {
    ranges = words(text.bytes, kFromRight ? kNoLimit : most);
    if (kFromRight && ranges.size() > most) {
      // From the right: what is left of them stays one, with the white space before it.
      const std::size_t joined = ranges.size() - most;
      ranges[joined - 1].first = 0;
      ranges.erase(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(joined - 1));
    }
  } else {
    const std::string& separator = separator_of(machine, parameters);
    machine.step_search(text.bytes, separator);
    std::size_t begin = 0;
    for (const std::size_t at : places(text.bytes, separator, most, kFromRight)) {
      ranges.emplace_back(begin, at);
      begin = at + separator.size();
    }
    ranges.emplace_back(begin, text.bytes.size());
  }
  machine.charge(ranges.size() * (sizeof(Text) + sizeof(Value)));
  machine.step(ranges.size());
  std::vector<Value> parts;
  parts.reserve(ranges.size());
  for (const auto& [begin, end] : ranges) parts.push_back(part_of(text, begin, end));
  return machine.list(std::move(parts));
}

template <bool kFromRight>
Value partition(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "partition", arguments, {"sep"});
  const std::string& separator = separator_of(machine, parameters);
  const Text& text = self.as_text();
  machine.charge(text.bytes.size() + 3 * sizeof(Text));
  machine.step_search(text.bytes, separator);
  const std::size_t at = kFromRight ? text.bytes.rfind(separator) : text.bytes.find(separator);
  const Value empty = Value::text(std::string());
  if (at == std::string::npos) {
    return kFromRight ? machine.list({empty, empty, self}, Sequence::kTuple)
                      : machine.list({self, empty, empty}, Sequence::kTuple);
  }
  const std::size_t end = at + separator.size();
  return machine.list({part_of(text, 0, at), part_of(text, at, end), part_of(text, end, text.bytes.size())},
                      Sequence::kTuple);
}

Value splitlines(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "splitlines", arguments, {"keepends"});
  const Text& text = self.as_text();
  const bool keeps = parameters.is_true(0, false);
  std::vector<Value> lines;
  machine.charge(text.bytes.size());
  for (std::size_t begin = 0, at = 0; at < text.bytes.size();) {
    const std::size_t end = at;
    const char32_t c = next_code_point(text.bytes, at);
    const bool ends_line = (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (c == '\r' && at < text.bytes.size() && text.bytes[at] == '\n') ++at;
    if (!ends_line && at < text.bytes.size()) continue;
    machine.step();
    machine.charge(sizeof(Text));
    lines.push_back(part_of(text, begin, keeps || !ends_line ? at : end));
    begin = at;
  }
  return machine.list(std::move(lines));
}

/// The part of a text that `start` and `end` name, in bytes.
std::pair<std::size_t, std::size_t> range_of(Machine& machine, const std::string& bytes, const Parameters& parameters,
                                             std::size_t first) {
  const auto given = [&](std::size_t i) { return parameters.find(i) && !parameters.find(i)->is_none(); };
  if (!given(first) && !given(first + 1)) return {0, bytes.size()};
  machine.step(bytes.size() / 64);
  const auto size = static_cast<std::int64_t>(code_points(bytes));
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    std::int64_t at = given(i) ? parameters.integer(i, 0) : otherwise;
    if (at < 0) at = std::max<std::int64_t>(at + size, 0);
    return at;
  };
  const std::int64_t begin = bound(first, 0), end = std::min(bound(first + 1, size), size);
  if (begin > end) return {1, 0};
  return {byte_of(bytes, static_cast<std::size_t>(begin)), byte_of(bytes, static_cast<std::size_t>(end))};
}

template <bool kAtEnd>
Value has_affix(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, kAtEnd ? "endswith" : "startswith", arguments, {"prefix", "start", "end"});
  const auto [begin, end] = range_of(machine, self.bytes(), parameters, 1);
  if (begin > end) return Value::boolean(false);
  const std::string_view part = std::string_view(self.bytes()).substr(begin, end - begin);
  const auto fits = [&](const Value& affix) {
    if (!affix.is_text()) {
      machine.fail(std::string(kAtEnd ? "endswith" : "startswith") + " needs a text or a tuple of texts, got a " +
                   std::string(affix.type_name()));
    }
    machine.step(1 + affix.bytes().size() / 64);
    return kAtEnd ? part.ends_with(affix.bytes()) : part.starts_with(affix.bytes());
  };
  const Value& affix = parameters.get(0);
  if (affix.is_list() && affix.as_list().sequence == Sequence::kTuple) {
    return Value::boolean(std::any_of(affix.items().begin(), affix.items().end(), fits));
  }
  return Value::boolean(fits(affix));
}

template <bool kAtEnd>
Value without_affix(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, kAtEnd ? "removesuffix" : "removeprefix", arguments, {"affix"});
  const std::string &bytes = self.bytes(), &affix = parameters.text(0);
  machine.step(affix.size() / 64);
  if (affix.empty() || !(kAtEnd ? bytes.ends_with(affix) : bytes.starts_with(affix))) return self;
  machine.charge(bytes.size());
  return kAtEnd ? part_of(self.as_text(), 0, bytes.size() - affix.size())
                : part_of(self.as_text(), affix.size(), bytes.size());
}

Value replace(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "replace", arguments, {"old", "new", "count"});
  parameters.text(1);
  const Text &text = self.as_text(), &with = parameters.get(1).as_text();
  const std::string& old = parameters.text(0);
  const std::size_t most = splits_of(parameters, 2);
  machine.step_search(text.bytes, old);
  machine.charge(text.bytes.size());
  TextBuilder builder;
  std::size_t begin = 0;
  const auto put = [&](std::size_t at) {
    machine.step();
    machine.charge(with.bytes.size());
    builder.add(text, begin, at);
    builder.add(with);
  };
  if (old.empty()) {
    std::size_t count = 0;
    for (std::size_t at = 0; count < most; ++count) {
      put(at);
      begin = at;
      if (at >= text.bytes.size()) break;
      next_code_point(text.bytes, at);
    }
  } else {
    std::size_t count = 0;
    for (std::size_t at = text.bytes.find(old); at != std::string::npos && count < most; ++count) {
      put(at);
      begin = at + old.size();
      at = text.bytes.find(old, begin);
    }
  }
  builder.add(text, begin, text.bytes.size());
  Text made = builder.take();
  made.is_markup = text.is_markup;
  return machine.text(std::move(made));
}

Value join(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "join", arguments, {"iterable"});
  TextBuilder builder;
  bool is_first = true;
  if (parameters.get(0).is_undefined()) return Value::text(std::string());
  for (const Value& item : machine.items(parameters.get(0))) {
    if (!item.is_text()) machine.fail("join needs texts, got a " + std::string(item.type_name()));
    machine.step();
    machine.charge(item.bytes().size() + self.bytes().size());
    if (!is_first) builder.add(self.as_text());
    is_first = false;
    builder.add(item.as_text());
  }
  return machine.text(builder.take());
}

Value format(Machine& machine, const Value& self, Arguments& arguments) {
  return machine.text(brace_format(machine, self.as_text(), arguments));
}

template <bool kFromRight, bool kFails>
Value find(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, kFails ? "index" : "find", arguments, {"sub", "start", "end"});
  const std::string &bytes = self.bytes(), &what = parameters.text(0);
  machine.step_search(bytes, what);
  const auto [begin, end] = range_of(machine, bytes, parameters, 1);
  if (begin <= end) {
    const std::string_view part = std::string_view(bytes).substr(begin, end - begin);
    const std::size_t at = kFromRight ? part.rfind(what) : part.find(what);
    if (at != std::string_view::npos) {
      return Value::integer(static_cast<std::int64_t>(code_points(std::string_view(bytes).substr(0, begin + at))));
    }
  }
  if (kFails) machine.fail("index does not find " + machine.repr(parameters.get(0)));
  return Value::integer(-1);
}

Value count(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "count", arguments, {"sub", "start", "end"});
  const std::string& what = parameters.text(0);
  const auto [begin, end] = range_of(machine, self.bytes(), parameters, 1);
  if (begin > end) return Value::integer(0);
  machine.step(self.bytes().size() / 8);
  machine.step_search(self.bytes(), what);
  const std::string_view part = std::string_view(self.bytes()).substr(begin, end - begin);
  if (what.empty()) return Value::integer(static_cast<std::int64_t>(code_points(part)) + 1);
  return Value::integer(static_cast<std::int64_t>(places(part, what, kNoLimit, false).size()));
}

template <std::string (*kMake)(std::string_view)>
Value changed(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "this method", arguments, {});
  machine.charge(self.bytes().size() * 2 + sizeof(Text));
  machine.step(self.bytes().size() / 32);
  return made_from(self, kMake(self.bytes()));
}

bool is_decimal(char32_t c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char32_t c) { return is_decimal(c) || is_alphabetic(c); }

template <bool (*kHolds)(char32_t)>
Value all_are(Machine& machine, const Value& self, Arguments&) {
  const std::string& bytes = self.bytes();
  machine.step(bytes.size() / 32);
  for (std::size_t at = 0; at < bytes.size();) {
    if (!kHolds(next_code_point(bytes, at))) return Value::boolean(false);
  }
  return Value::boolean(!bytes.empty());
}

template <std::string (*kMake)(std::string_view)>
Value is_like(Machine& machine, const Value& self, Arguments&) {
  machine.step(self.bytes().size() / 32);
  return Value::boolean(upper(self.bytes()) != lower(self.bytes()) && kMake(self.bytes()) == self.bytes());
}

/// What is missing to a width.
std::int64_t room_of(std::int64_t width, std::string_view text) {
  const auto size = static_cast<std::int64_t>(code_points(text));
  return width > size ? width - size : 0;
}

template <int kAlign>  // -1: to the left, 0: in the middle, 1: to the right
Value justify(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "this method", arguments, {"width", "fillchar"});
  const std::string fill = parameters.find(1) ? parameters.text(1) : " ";
  if (code_points(fill) != 1) machine.fail("what fills a text must be one character");
  machine.step(self.bytes().size() / 64);
  const std::int64_t width = machine.integer(parameters.get(0), "the width of a text");
  const std::int64_t room = room_of(width, self.bytes());
  machine.charge(fill.size(), static_cast<std::size_t>(room));
  const std::int64_t left = kAlign < 0 ? 0 : kAlign > 0 ? room : room / 2 + (room & width & 1);
  TextBuilder builder;
  for (std::int64_t i = 0; i < left; ++i) builder.add(fill);
  builder.add(self.as_text());
  for (std::int64_t i = left; i < room; ++i) builder.add(fill);
  return machine.text(builder.take());
}

Value zfill(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "zfill", arguments, {"width"});
  const std::string& bytes = self.bytes();
  machine.step(bytes.size() / 64);
  const std::int64_t room = room_of(machine.integer(parameters.get(0), "the width of a text"), bytes);
  if (room == 0) return self;
  machine.charge(static_cast<std::size_t>(room));
  machine.charge(bytes.size());
  const std::size_t sign = bytes.starts_with('-') || bytes.starts_with('+') ? 1 : 0;
  return made_from(self, bytes.substr(0, sign) + std::string(static_cast<std::size_t>(room), '0') + bytes.substr(sign));
}

const MethodTable& text_methods() {
  static const MethodTable table = {
      {"strip", strip<Side::kBoth>},
      {"lstrip", strip<Side::kLeft>},
      {"rstrip", strip<Side::kRight>},
      {"split", split<false>},
      {"rsplit", split<true>},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"splitlines", splitlines},
      {"startswith", has_affix<false>},
      {"endswith", has_affix<true>},
      {"removeprefix", without_affix<false>},
      {"removesuffix", without_affix<true>},
      {"replace", replace},
      {"join", join},
      {"format", format},
      {"find", find<false, false>},
      {"rfind", find<true, false>},
      {"index", find<false, true>},
      {"rindex", find<true, true>},
      {"count", count},
      {"upper", changed<upper>},
      {"lower", changed<lower>},
      {"casefold", changed<lower>},
      {"title", changed<title>},
      {"capitalize", changed<capitalized>},
      {"swapcase", changed<swapped_case>},
      {"isdigit", all_are<is_decimal>},
      {"isdecimal", all_are<is_decimal>},
      {"isnumeric", all_are<is_decimal>},
      {"isalpha", all_are<is_alphabetic>},
      {"isalnum", all_are<is_alphanumeric>},
      {"isspace", all_are<is_space>},
      {"isupper", is_like<upper>},
      {"islower", is_like<lower>},
      {"istitle", is_like<title>},
      {"ljust", justify<-1>},
      {"rjust", justify<1>},
      {"center", justify<0>},
      {"zfill", zfill},
  };
  return table;
}

Value get(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "get", arguments, {"key", "default"});
  const Value& key = parameters.get(0);
  if (!machine.is_key(key)) machine.fail("a " + std::string(key.type_name()) + " cannot be a key");
  const Value* found = machine.find(self.as_mapping(), key);
  return found ? *found : parameters.get(1, Value::none());
}

template <Sequence kWhat>
Value view(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "this method", arguments, {});
  const Mapping& mapping = self.as_mapping();
  machine.step(mapping.entries.size());
  std::vector<Value> items;
  items.reserve(mapping.entries.size());
  for (const auto& [key, value] : mapping.entries) {
    if (kWhat == Sequence::kKeys) items.push_back(key);
    if (kWhat == Sequence::kValues) items.push_back(value);
    if (kWhat == Sequence::kItems) items.push_back(machine.list({key, value}, Sequence::kTuple));
  }
  return machine.list(std::move(items), kWhat);
}

template <typename Container>
Value copy(Machine& machine, const Value& self, Arguments&) {
  if constexpr (std::is_same_v<Container, List>) {
    return machine.list(self.items());
  } else {
    machine.charge(self.as_mapping().entries.size() * 2 * sizeof(Value));
    return machine.mapping(std::make_shared<Mapping>(self.as_mapping()));
  }
}

const MethodTable& mapping_methods() {
  static const MethodTable table = {
      {"get", get},
      {"items", view<Sequence::kItems>},
      {"keys", view<Sequence::kKeys>},
      {"values", view<Sequence::kValues>},
      {"copy", copy<Mapping>},
  };
  return table;
}

Value list_index(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "index", arguments, {"value"});
  machine.step(self.items().size());
  const auto found = std::find_if(self.items().begin(), self.items().end(),
                                  [&](const Value& item) { return machine.same(item, parameters.get(0)); });
  if (found == self.items().end()) machine.fail("index does not find the value in the list");
  return Value::integer(found - self.items().begin());
}

Value list_count(Machine& machine, const Value& self, Arguments& arguments) {
  const Parameters parameters(machine, "count", arguments, {"value"});
  machine.step(self.items().size());
  return Value::integer(std::count_if(self.items().begin(), self.items().end(),
                                      [&](const Value& item) { return machine.same(item, parameters.get(0)); }));
}

const MethodTable& list_methods() {
  static const MethodTable table = {{"index", list_index}, {"count", list_count}, {"copy", copy<List>}};
  return table;
}

}  // namespace

Method find_method(const Value& self, std::string_view name) {
  const auto in = [&](const MethodTable& table) -> Method {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
  };
  switch (self.kind()) {
    case Value::Kind::kText: return in(text_methods());
    case Value::Kind::kMapping: return in(mapping_methods());
    case Value::Kind::kList: {
      const Sequence sequence = self.as_list().sequence;
      if (sequence > Sequence::kRange || (name == "copy" && sequence != Sequence::kList)) return nullptr;
      return in(list_methods());
    }
    case Value::Kind::kCallable: return find_callable_method(self, name);
    default: return nullptr;
  }
}

bool is_refused_method(const Value& self, std::string_view name) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (self.is_mapping()) return is_one_of({"clear", "pop", "popitem", "setdefault", "update"});
  if (self.is_list() && self.as_list().sequence == Sequence::kList) {
    return is_one_of({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"});
  }
  return false;
}

}  // namespace components::jinja
