#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <utility>

#include "components/template/machine/functions.h"
#include "components/template/machine/machine.h"

namespace components::jinja {
namespace {

enum class Order { kLess, kEqual, kGreater, kNone };

Order order_of(double a, double b) {
  return a < b ? Order::kLess : a > b ? Order::kGreater : a == b ? Order::kEqual : Order::kNone;
}

const char* sign_of(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSubtract: return "-";
    case Op::kMultiply: return "*";
    case Op::kDivide: return "/";
    case Op::kFloorDivide: return "//";
    case Op::kModulo: return "%";
    default: return "**";
  }
}

bool compares_in_order(const Value& a, const Value& b) {
  return a.is_list() && b.is_list() && a.as_list().sequence == b.as_list().sequence &&
         a.as_list().sequence <= Sequence::kTuple;
}

/// Fails where Python's `<` does.
Order compare(Machine& machine, const Value& a, const Value& b) {
  machine.step();
  if (a.is_integral() && b.is_integral()) {
    return a.as_integer() < b.as_integer()   ? Order::kLess
           : a.as_integer() > b.as_integer() ? Order::kGreater
                                             : Order::kEqual;
  }
  if (a.is_number() && b.is_number()) return order_of(a.as_double(), b.as_double());
  if (a.is_text() && b.is_text()) {
    machine.step(std::min(a.bytes().size(), b.bytes().size()) / 64);
    const int order = a.bytes().compare(b.bytes());  // UTF-8 is in the order of code points
    return order < 0 ? Order::kLess : order > 0 ? Order::kGreater : Order::kEqual;
  }
  if (compares_in_order(a, b)) {
    const Machine::Level level(machine);
    const std::size_t common = std::min(a.items().size(), b.items().size());
    for (std::size_t i = 0; i < common; ++i) {
      machine.step();
      if (!machine.same(a.items()[i], b.items()[i])) return compare(machine, a.items()[i], b.items()[i]);
    }
    return order_of(static_cast<double>(a.items().size()), static_cast<double>(b.items().size()));
  }
  if (a.is_undefined()) machine.fail(a.absence());
  if (b.is_undefined()) machine.fail(b.absence());
  machine.fail("\"<\" cannot compare a " + std::string(a.type_name()) + " with a " + std::string(b.type_name()));
}

/// Python's pow() of integers with a natural exponent.
std::int64_t power(Machine& machine, std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  bool fits = true;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) fits = fits && !__builtin_mul_overflow(result, base, &result);
    if (exponent > 1) fits = fits && !__builtin_mul_overflow(base, base, &base);
    if (!fits) machine.fail("the result of \"**\" does not fit into 64 bits");
  }
  return result;
}

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value of_integers(Machine& machine, Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool fits = true;
  switch (op) {
    case Op::kAdd: fits = !__builtin_add_overflow(a, b, &result); break;
    case Op::kSubtract: fits = !__builtin_sub_overflow(a, b, &result); break;
    case Op::kMultiply: fits = !__builtin_mul_overflow(a, b, &result); break;
    case Op::kPower:
      if (b < 0 && a == 0) machine.fail("division by zero");
      if (b < 0) return Value::floating(std::pow(static_cast<double>(a), static_cast<double>(b)));
      result = power(machine, a, b);
      break;
    default:
      if (b == 0) machine.fail("division by zero");
      if (op == Op::kDivide) return Value::floating(static_cast<double>(a) / static_cast<double>(b));
      if (b == -1) {
        fits = a != std::numeric_limits<std::int64_t>::min();
        result = op == Op::kModulo || !fits ? 0 : -a;
      } else {
        result = op == Op::kFloorDivide ? floor_divided(a, b) : a - floor_divided(a, b) * b;
      }
  }
  if (!fits) machine.fail("the result of \"" + std::string(sign_of(op)) + "\" does not fit into 64 bits");
  return Value::integer(result);
}

Value of_doubles(Machine& machine, Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return Value::floating(a + b);
    case Op::kSubtract: return Value::floating(a - b);
    case Op::kMultiply: return Value::floating(a * b);
    case Op::kPower: {
      if (a == 0 && b < 0) machine.fail("division by zero");
      const double result = std::pow(a, b);
      if (!std::isfinite(result) && std::isfinite(a) && std::isfinite(b)) {
        machine.fail("the result of \"**\" is not a number that a float can hold");
      }
      return Value::floating(result);
    }
    default: break;
  }
  if (b == 0) machine.fail("division by zero");
  if (op == Op::kDivide) return Value::floating(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (op == Op::kModulo) return Value::floating(rest);
  return Value::floating(std::floor((a - rest) / b + 0.5));
}

/// `"ab" * 3`, `[1] * 3`.
Value repeated(Machine& machine, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = value.is_text() ? value.bytes().size() : value.items().size() * sizeof(Value);
  machine.charge(size, count);
  if (value.is_text()) {
    TextBuilder builder;
    for (std::size_t i = 0; i < count && size > 0; ++i) builder.add(value.as_text());
    Text text = builder.take();
    text.is_markup = value.as_text().is_markup;
    return machine.text(std::move(text));
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < count && size > 0; ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return machine.list(std::move(items), value.as_list().sequence);
}

bool repeats(const Value& value) {
  return value.is_text() || (value.is_list() && value.as_list().sequence <= Sequence::kTuple);
}

}  // namespace

bool Machine::same(const Value& a, const Value& b) {
  const bool is_one = a.identity() && a.identity() == b.identity();
  if (!is_one) step(std::min(weight_of(a), weight_of(b)) - 1);
  return equal(a, b);
}

bool Machine::is_key(const Value& value) {
  if (value.is_list()) step(weight_of(value));
  return value.hashable();
}

const Value* Machine::find(const Mapping& mapping, const Value& key) {
  const std::uint64_t weight = weight_of(key);
  // A number or a tuple is compared with each.
  step(key.is_text() ? weight - 1 : mapping.entries.size() * std::min(weight, kWeightMax));
  return mapping.find(key);
}

bool Machine::less(const Value& a, const Value& b) { return compare(*this, a, b) == Order::kLess; }

bool Machine::less_or_equal(const Value& a, const Value& b) {
  const Order order = compare(*this, a, b);
  return order == Order::kLess || order == Order::kEqual;
}

bool Machine::contains(const Value& container, const Value& value) {
  if (container.is_undefined()) return false;
  if (container.is_text()) {
    if (!value.is_text()) {
      fail("\"in\" looks for a text in a text, got a " + std::string(value.type_name()));
    }
    step_search(container.bytes(), value.bytes());
    return container.bytes().find(value.bytes()) != std::string::npos;
  }
  if (container.is_mapping()) {
    if (!is_key(value)) fail("a " + std::string(value.type_name()) + " cannot be a key");
    return find(container.as_mapping(), value) != nullptr;
  }
  if (container.is_list() && container.as_list().sequence != Sequence::kIterator) {
    step(container.items().size());
    return std::any_of(container.items().begin(), container.items().end(),
                       [&](const Value& item) { return same(item, value); });
  }
  const std::vector<Value> all = items(container);
  return std::any_of(all.begin(), all.end(), [&](const Value& item) { return same(item, value); });
}

Value Machine::add(const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    const Text &left = a.as_text(), &right = b.as_text();
    charge(left.bytes.size() + right.bytes.size());
    TextBuilder builder;
    const bool is_markup = left.is_markup || right.is_markup;
    const auto put = [&](const Value& part) {
      if (is_markup && !part.as_text().is_markup) {
        builder.add(made_from(part, escaped(part.bytes())).as_text());
      } else {
        builder.add(part.as_text());
      }
    };
    put(a);
    put(b);
    Text text = builder.take();
    text.is_markup = is_markup;
    charge(sizeof(Text) + text.origins.size() * sizeof(Origin));
    return Value::text(std::move(text));
  }
  if (a.is_list() && b.is_list() && compares_in_order(a, b)) {
    std::vector<Value> items = a.items();
    charge(b.items().size() * sizeof(Value));
    items.insert(items.end(), b.items().begin(), b.items().end());
    return list(std::move(items), a.as_list().sequence);
  }
  return arithmetic(Op::kAdd, a, b);
}

Value Machine::arithmetic(Op op, const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return of_integers(*this, op, a.as_integer(), b.as_integer());
  if (a.is_number() && b.is_number()) return of_doubles(*this, op, a.as_double(), b.as_double());
  if (op == Op::kMultiply && repeats(a) && b.is_integral()) return repeated(*this, a, b.as_integer());
  if (op == Op::kMultiply && repeats(b) && a.is_integral()) return repeated(*this, b, a.as_integer());
  if (op == Op::kModulo && a.is_text()) return text(percent_format(*this, a.as_text(), b));
  if (a.is_undefined()) fail(a.absence());
  if (b.is_undefined()) fail(b.absence());
  fail("\"" + std::string(sign_of(op)) + "\" cannot combine a " + std::string(a.type_name()) + " with a " +
       std::string(b.type_name()));
}

std::int64_t Machine::integer(const Value& value, std::string_view what) const {
  if (value.is_undefined()) fail(value.absence());
  if (!value.is_integral()) {
    fail(std::string(what) + " must be an integer, got a " + std::string(value.type_name()));
  }
  return value.as_integer();
}

Value Machine::slice(const Value& subject, const Value& begin, const Value& end, const Value& by) {
  if (subject.is_undefined()) fail(subject.absence());
  if (!subject.is_text() && !(subject.is_list() && subject.as_list().sequence <= Sequence::kRange)) {
    fail("a " + std::string(subject.type_name()) + " has no slices");
  }
  const std::int64_t step_by = by.is_none() ? 1 : integer(by, "the step of a slice");
  if (step_by == 0) fail("the step of a slice cannot be 0");
  if (subject.is_text()) step(subject.bytes().size() / 64);
  const auto size =
      static_cast<std::int64_t>(subject.is_text() ? code_points(subject.bytes()) : subject.items().size());
  const std::int64_t low = step_by > 0 ? 0 : -1, high = step_by > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, std::int64_t otherwise) {
    if (value.is_none()) return otherwise;
    std::int64_t at = integer(value, "a bound of a slice");
    if (at < 0) at += size;
    return std::clamp(at, low, high);
  };
  const std::int64_t first = bound(begin, step_by > 0 ? low : high), last = bound(end, step_by > 0 ? high : low);
  if (subject.is_text() && step_by == 1) {
    const std::size_t from = byte_of(subject.bytes(), static_cast<std::size_t>(first));
    const std::size_t to = std::max(from, byte_of(subject.bytes(), static_cast<std::size_t>(std::max(first, last))));
    charge(to - from + sizeof(Text));
    return part_of(subject.as_text(), from, to);
  }
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = first; step_by > 0 ? i < last : i > last;) {
    step();
    chosen.push_back(i);
    if (__builtin_add_overflow(i, step_by, &i)) break;
  }
  if (subject.is_list()) {
    std::vector<Value> items;
    items.reserve(chosen.size());
    for (const std::int64_t i : chosen) items.push_back(subject.items()[static_cast<std::size_t>(i)]);
    Value made = list(std::move(items), subject.as_list().sequence);
    if (size > 1 && subject.as_list().sequence == Sequence::kRange) {
      const std::int64_t start = subject.items()[0].as_integer(), by_before = subject.items()[1].as_integer() - start;
      made.as_list().range_end = start + last * by_before;
    }
    return made;
  }
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < subject.bytes().size();) {
    step();
    starts.push_back(at);
    next_code_point(subject.bytes(), at);
  }
  starts.push_back(subject.bytes().size());
  TextBuilder builder;
  for (const std::int64_t i : chosen) {
    builder.add(subject.as_text(), starts[static_cast<std::size_t>(i)], starts[static_cast<std::size_t>(i) + 1]);
  }
  return text(builder.take());
}

std::vector<Value> Machine::items(const Value& value) {
  std::vector<Value> made;
  switch (value.kind()) {
    case Value::Kind::kUndefined: return made;
    case Value::Kind::kList: {
      List& from = value.as_list();
      charge(from.items.size() * sizeof(Value));
      step(from.items.size() / 8);
      if (from.sequence != Sequence::kIterator) return from.items;
      made.assign(from.items.begin() + static_cast<std::ptrdiff_t>(from.taken), from.items.end());
      from.taken = from.items.size();
      return made;
    }
    case Value::Kind::kMapping:
      charge(value.as_mapping().entries.size() * sizeof(Value));
      for (const auto& entry : value.as_mapping().entries) made.push_back(entry.first);
      return made;
    case Value::Kind::kText:
      for (std::size_t at = 0; at < value.bytes().size();) {
        step();
        charge(sizeof(Value) + sizeof(Text));
        const std::size_t begin = at;
        next_code_point(value.bytes(), at);
        made.push_back(part_of(value.as_text(), begin, at));
        if (value.as_text().is_markup)
          made.back() = Value::text(Text{made.back().bytes(), made.back().as_text().origins});
      }
      return made;
    default: break;
  }
  fail("a " + std::string(value.type_name()) + " cannot be iterated over");
}

}  // namespace components::jinja
