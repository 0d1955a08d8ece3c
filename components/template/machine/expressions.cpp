#include <algorithm>
#include <utility>

#include "components/template/machine/functions.h"
#include "components/template/machine/machine.h"

namespace components::jinja {

Value Machine::name(int symbol) {
  for (const Scope* scope = scope_; scope; scope = scope->parent) {
    step(scope->names.size() / 16);
    for (const auto& [name, value] : scope->names) {
      if (name == symbol) return value;
    }
  }
  const auto i = static_cast<std::size_t>(symbol);
  if (variables_[i]) return *variables_[i];
  return globals_[i].is_undefined() ? tree_.absent[i] : globals_[i];
}

Value Machine::evaluate(const Expression& one) {
  step();
  if (one.op == Op::kConstant) return one.value;
  if (one.op == Op::kName) return name(one.symbol);
  const Level level(*this);
  const auto& children = one.children;
  switch (one.op) {
    case Op::kConstant:
    case Op::kName: break;
    case Op::kList:
    case Op::kTuple: {
      std::vector<Value> made;
      made.reserve(children.size());
      for (const Expression& child : children) made.push_back(evaluate(child));
      place_ = one.place;
      return list(std::move(made), one.op == Op::kList ? Sequence::kList : Sequence::kTuple);
    }
    case Op::kMapping: {
      auto made = std::make_shared<Mapping>();
      for (std::size_t i = 0; i + 1 < children.size(); i += 2) {
        const Value key = evaluate(children[i]);
        Value value = evaluate(children[i + 1]);
        place_ = one.place;
        set(*made, key, std::move(value));
      }
      return mapping(std::move(made));
    }
    case Op::kAttribute: {
      const Value object = evaluate(children[0]);
      place_ = one.place;
      return attribute(object, one.value);
    }
    case Op::kItem: {
      const Value object = evaluate(children[0]), key = evaluate(children[1]);
      place_ = one.place;
      Value found = item(object, key);
      choose_message(children[1], found);
      return found;
    }
    case Op::kSlice: {
      const Value object = evaluate(children[0]), begin = evaluate(children[1]), end = evaluate(children[2]);
      const Value by = evaluate(children[3]);
      place_ = one.place;
      return slice(object, begin, end, by);
    }
    case Op::kCall: return evaluate_call(one);
    case Op::kFilter: {
      const Value subject = evaluate(children[0]);
      Arguments given = arguments(one);
      place_ = one.place;
      return filter(one.value.bytes(), subject, given);
    }
    case Op::kTest: {
      const Value subject = evaluate(children[0]);
      Arguments given = arguments(one);
      place_ = one.place;
      return Value::boolean(test(one.value.bytes(), subject, given));
    }
    case Op::kNot: return Value::boolean(!evaluate(children[0]).is_true());
    case Op::kAnd: {
      Value left = evaluate(children[0]);
      return left.is_true() ? evaluate(children[1]) : left;
    }
    case Op::kOr: {
      Value left = evaluate(children[0]);
      return left.is_true() ? left : evaluate(children[1]);
    }
    case Op::kNegative:
    case Op::kPositive: {
      const Value value = evaluate(children[0]);
      place_ = one.place;
      return one.op == Op::kNegative ? arithmetic(Op::kSubtract, Value::integer(0), value)
                                     : arithmetic(Op::kAdd, Value::integer(0), value);
    }
    case Op::kAdd: {
      const Value left = evaluate(children[0]), right = evaluate(children[1]);
      place_ = one.place;
      return add(left, right);
    }
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kFloorDivide:
    case Op::kModulo:
    case Op::kPower: {
      const Value left = evaluate(children[0]), right = evaluate(children[1]);
      place_ = one.place;
      return arithmetic(one.op, left, right);
    }
    case Op::kConcat: {
      TextBuilder builder;
      for (const Expression& child : children) {
        const Value value = evaluate(child);
        if (value.is_text()) {
          charge(value.bytes().size());
          builder.add(value.as_text());
        } else {
          builder.add(as_text(value));
        }
      }
      place_ = one.place;
      return text(builder.take());
    }
    case Op::kCompare: return evaluate_compare(one);
    case Op::kIf: return evaluate(evaluate(children[0]).is_true() ? children[1] : children[2]);
  }
  return Value();
}

Value Machine::evaluate_compare(const Expression& one) {
  Value left = evaluate(one.children[0]);
  for (std::size_t i = 0; i < one.comparisons.size(); ++i) {
    Value right = evaluate(one.children[i + 1]);
    place_ = one.place;
    bool holds = false;
    switch (one.comparisons[i]) {
      case Comparison::kEqual: holds = same(left, right); break;
      case Comparison::kNotEqual: holds = !same(left, right); break;
      case Comparison::kLess: holds = less(left, right); break;
      case Comparison::kGreater: holds = less(right, left); break;
      case Comparison::kLessOrEqual: holds = less_or_equal(left, right); break;
      case Comparison::kGreaterOrEqual: holds = less_or_equal(right, left); break;
      case Comparison::kIn: holds = contains(right, left); break;
      case Comparison::kNotIn: holds = !contains(right, left); break;
    }
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Arguments Machine::arguments(const Expression& one) {
  Arguments given;
  given.positional.reserve(one.positional);
  std::size_t at = 1;
  for (std::size_t i = 0; i < one.positional; ++i) given.positional.push_back(evaluate(one.children[at++]));
  for (const std::string& keyword : one.keywords) given.named.emplace_back(keyword, evaluate(one.children[at++]));
  if (one.has_star) {
    for (Value& value : items(evaluate(one.children[at++]))) given.positional.push_back(std::move(value));
  }
  if (one.has_double_star) {
    const Value named = evaluate(one.children[at++]);
    if (!named.is_mapping()) fail("\"**\" needs a mapping, got a " + std::string(named.type_name()));
    for (const auto& [key, value] : named.as_mapping().entries) {
      if (!key.is_text()) fail("the keys behind \"**\" must be texts");
      given.named.emplace_back(key.bytes(), value);
    }
  }
  return given;
}

Value Machine::evaluate_call(const Expression& one) {
  const Expression& callee = one.children[0];
  if (callee.op == Op::kAttribute) {
    // A method, called at once: no value for it has to be made.
    const Value self = evaluate(callee.children[0]);
    const Method method = find_method(self, callee.value.bytes());
    if (method) {
      Arguments given = arguments(one);
      place_ = one.place;
      return method(*this, self, given);
    }
    place_ = callee.place;
    const Value found = attribute(self, callee.value);
    Arguments given = arguments(one);
    place_ = one.place;
    return call(found, given);
  }
  const Value found = evaluate(callee);
  Arguments given = arguments(one);
  place_ = one.place;
  return call(found, given);
}

Value Machine::call(const Value& callee, Arguments& given) {
  step();
  const Level level(*this);
  if (callee.kind() == Value::Kind::kCallable) return callee.as_callable().call(*this, given);
  if (callee.kind() == Value::Kind::kLoop && given.positional.size() == 1) {
    return recurse(callee.as_loop(), given.positional[0]);
  }
  if (callee.is_undefined()) fail(callee.absence());
  fail("a " + std::string(callee.type_name()) + " cannot be called");
}

Value Machine::filter(const std::string& name, const Value& subject, Arguments& given) {
  const Filter found = find_filter(name);
  if (!found) fail("no filter is called \"" + name + "\"");
  step();
  return found(*this, subject, given);
}

bool Machine::test(const std::string& name, const Value& subject, Arguments& given) {
  const Test found = find_test(name);
  if (!found) fail("no test is called \"" + name + "\"");
  return found(*this, subject, given);
}

Value Machine::attribute(const Value& object, const Value& name) {
  const std::string& bytes = name.bytes();
  if (object.is_undefined()) fail(object.absence());
  if (object.kind() == Value::Kind::kLoop) return loop_attribute(*this, object, bytes);
  if (object.kind() == Value::Kind::kNamespace) {
    if (const Value* found = object.as_mapping().find(bytes)) return *found;
  } else {
    if (const Method method = find_method(object, bytes)) return bound_method(object, method);
    if (is_refused_method(object, bytes)) {
      return Value::undefined("\"" + bytes + "\" of a " + std::string(object.type_name()) +
                              " would change it, which a template may not");
    }
    if (object.is_mapping()) {
      if (const Value* found = object.as_mapping().find(bytes)) return *found;
    }
    if (object.kind() == Value::Kind::kCallable) {
      Value found = callable_attribute(object, bytes);
      if (!found.is_undefined()) return found;
    }
    if (object.is_list() && object.as_list().is_group && (bytes == "grouper" || bytes == "list")) {
      return object.items()[bytes == "list" ? 1 : 0];
    }
  }
  return Value::undefined("'" + std::string(object.type_name()) + " object' has no attribute '" + bytes + "'");
}

Value Machine::item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail(object.absence());
  if (object.is_mapping()) {
    if (is_key(key)) {
      if (const Value* found = find(object.as_mapping(), key)) return *found;
    }
  } else if (key.is_integral() && (object.is_list() || object.is_text())) {
    if (object.is_text()) step(object.bytes().size() / 64);
    const auto size = static_cast<std::int64_t>(object.is_text() ? code_points(object.bytes()) : object.items().size());
    const std::int64_t i = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
    const bool has_items =
        object.is_text() || object.as_list().sequence <= Sequence::kRange;  // a view or an iterator has none
    if (i >= 0 && i < size && has_items) {
      if (object.is_list()) return object.items()[static_cast<std::size_t>(i)];
      const std::size_t begin = byte_of(object.bytes(), static_cast<std::size_t>(i));
      std::size_t end = begin;
      next_code_point(object.bytes(), end);
      charge(sizeof(Text));
      return part_of(object.as_text(), begin, end);
    }
  }
  if (key.is_text() && !object.is_mapping()) return attribute(object, key);
  if (key.is_text()) {
    if (const Method method = find_method(object, key.bytes())) return bound_method(object, method);
  }
  return Value::undefined("'" + std::string(object.type_name()) + " object' has no element " + repr(key));
}

}  // namespace components::jinja
