#include <algorithm>
#include <unordered_map>

#include "components/template/machine/functions.h"

namespace components::jinja {
namespace {

template <Value::Kind... kKinds>
bool is_kind(Machine&, const Value& value, Arguments&) {
  return ((value.kind() == kKinds) || ...);
}

bool is_defined(Machine&, const Value& value, Arguments&) { return !value.is_undefined(); }
bool is_true_value(Machine&, const Value& value, Arguments&) { return value.is_bool() && value.is_true(); }
bool is_false_value(Machine&, const Value& value, Arguments&) { return value.is_bool() && !value.is_true(); }
bool is_number(Machine&, const Value& value, Arguments&) { return value.is_number(); }

bool is_sequence(Machine&, const Value& value, Arguments&) {
  // What has a length and items, in Python; Jinja's undefined values have both.
  return value.is_undefined() || value.is_text() || value.is_mapping() ||
         (value.is_list() && value.as_list().sequence <= Sequence::kRange);
}

bool is_iterable(Machine&, const Value& value, Arguments&) {
  return value.is_text() || value.is_mapping() || value.is_list() || value.is_undefined() ||
         value.kind() == Value::Kind::kLoop;
}

bool is_callable(Machine&, const Value& value, Arguments&) {
  return value.kind() == Value::Kind::kCallable || value.kind() == Value::Kind::kLoop;
}

const Value& other(Machine& machine, Arguments& arguments) {
  if (arguments.positional.size() != 1) machine.fail("this test needs one value to compare with");
  return arguments.positional[0];
}

bool is_equal(Machine& machine, const Value& value, Arguments& arguments) {
  return machine.same(value, other(machine, arguments));
}
bool is_not_equal(Machine& machine, const Value& value, Arguments& arguments) {
  return !machine.same(value, other(machine, arguments));
}
bool is_less(Machine& machine, const Value& value, Arguments& arguments) {
  return machine.less(value, other(machine, arguments));
}
bool is_greater(Machine& machine, const Value& value, Arguments& arguments) {
  return machine.less(other(machine, arguments), value);
}
bool is_less_or_equal(Machine& machine, const Value& value, Arguments& arguments) {
  return machine.less_or_equal(value, other(machine, arguments));
}
bool is_greater_or_equal(Machine& machine, const Value& value, Arguments& arguments) {
  return machine.less_or_equal(other(machine, arguments), value);
}
bool is_in(Machine& machine, const Value& value, Arguments& arguments) {
  return machine.contains(other(machine, arguments), value);
}

bool is_same_as(Machine& machine, const Value& value, Arguments& arguments) {
  const Value& with = other(machine, arguments);
  if (value.kind() != with.kind()) return false;
  return value.is_text() || !value.identity() ? machine.same(value, with) : value.identity() == with.identity();
}

Value rest_of(Machine& machine, const Value& value, std::int64_t by) {
  return machine.arithmetic(Op::kModulo, value, Value::integer(by));
}
bool is_odd(Machine& machine, const Value& value, Arguments&) {
  return equal(rest_of(machine, value, 2), Value::integer(1));
}
bool is_even(Machine& machine, const Value& value, Arguments&) {
  return equal(rest_of(machine, value, 2), Value::integer(0));
}
bool is_divisible(Machine& machine, const Value& value, Arguments& arguments) {
  return equal(machine.arithmetic(Op::kModulo, value, other(machine, arguments)), Value::integer(0));
}

bool has_letters(std::string_view text) { return upper(text) != lower(text); }
bool is_lower(Machine& machine, const Value& value, Arguments&) {
  const std::string text = machine.str(value);
  return has_letters(text) && lower(text) == text;
}
bool is_upper(Machine& machine, const Value& value, Arguments&) {
  const std::string text = machine.str(value);
  return has_letters(text) && upper(text) == text;
}

bool is_escaped(Machine&, const Value& value, Arguments&) { return value.is_text() && value.as_text().is_markup; }
bool is_name(Machine& machine, const Value& value) {
  if (!machine.is_key(value)) machine.fail("a " + std::string(value.type_name()) + " is no name");
  return value.is_text();
}
bool is_filter(Machine& machine, const Value& value, Arguments&) {
  return is_name(machine, value) && find_filter(value.bytes());
}
bool is_test(Machine& machine, const Value& value, Arguments&) {
  return is_name(machine, value) && find_test(value.bytes());
}

}  // namespace

Test find_test(std::string_view name) {
  using Kind = Value::Kind;
  static const std::unordered_map<std::string_view, Test> table = {
      {"defined", is_defined},
      {"undefined", is_kind<Kind::kUndefined>},
      {"none", is_kind<Kind::kNone>},
      {"boolean", is_kind<Kind::kBool>},
      {"true", is_true_value},
      {"false", is_false_value},
      {"integer", is_kind<Kind::kInteger>},
      {"float", is_kind<Kind::kFloat>},
      {"number", is_number},
      {"string", is_kind<Kind::kText>},
      {"mapping", is_kind<Kind::kMapping>},
      {"sequence", is_sequence},
      {"iterable", is_iterable},
      {"callable", is_callable},
      {"sameas", is_same_as},
      {"escaped", is_escaped},
      {"in", is_in},
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible},
      {"lower", is_lower},
      {"upper", is_upper},
      {"filter", is_filter},
      {"test", is_test},
      {"==", is_equal},
      {"eq", is_equal},
      {"equalto", is_equal},
      {"!=", is_not_equal},
      {"ne", is_not_equal},
      {"<", is_less},
      {"lt", is_less},
      {"lessthan", is_less},
      {"<=", is_less_or_equal},
      {"le", is_less_or_equal},
      {">", is_greater},
      {"gt", is_greater},
      {"greaterthan", is_greater},
      {">=", is_greater_or_equal},
      {"ge", is_greater_or_equal},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace components::jinja
