#include "components/template/machine/functions.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <unordered_map>
#include <utility>

namespace components::jinja {
namespace {

constexpr std::int64_t kRangeMax = 100'000;  // of Jinja2's sandbox

class Function : public Callable {
 public:
  using Body = Value (*)(Machine& machine, Arguments& arguments);
  explicit Function(Body body) : body_(body) {}
  Value call(Machine& machine, Arguments& arguments) const override { return body_(machine, arguments); }

 private:
  Body body_;
};

class BoundMethod : public Callable {
 public:
  BoundMethod(Value self, Method method) : self_(std::move(self)), method_(method) { depth = depth_of(self_) + 1; }
  Value call(Machine& machine, Arguments& arguments) const override { return method_(machine, self_, arguments); }

 private:
  Value self_;
  Method method_;
};

/// Has `next()`, `reset()` and `current`.
class Cycler : public Callable {
 public:
  explicit Cycler(std::vector<Value> items) : items(std::move(items)) {
    for (const Value& item : this->items) depth = std::max(depth, depth_of(item) + 1);
  }
  Value call(Machine& machine, Arguments&) const override { machine.fail("a cycler is used by its next()"); }

  std::vector<Value> items;
  mutable std::size_t at = 0;
};

/// "" at first, then its text.
class Joiner : public Callable {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  Value call(Machine&, Arguments&) const override {
    return std::exchange(used_, true) ? separator_ : Value::text(std::string());
  }

 private:
  Value separator_;
  mutable bool used_ = false;
};

Value range(Machine& machine, Arguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty()) machine.fail("range accepts one to three numbers");
  std::array<std::int64_t, 3> bounds = {0, 0, 1};
  for (std::size_t i = 0; i < given.size(); ++i) bounds[i] = machine.integer(given[i], "a bound of range");
  if (given.size() == 1) std::swap(bounds[0], bounds[1]);
  const auto [begin, end, by] = bounds;
  if (by == 0) machine.fail("the step of range cannot be 0");
  std::vector<Value> items;
  for (std::int64_t i = begin; by > 0 ? i < end : i > end;) {
    if (static_cast<std::int64_t>(items.size()) == kRangeMax) {
      machine.fail("range has more than " + std::to_string(kRangeMax) +
                   " numbers, the most that Jinja2's sandbox allows");
    }
    machine.step();
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  Value made = machine.list(std::move(items), Sequence::kRange);
  made.as_list().range_end = end;
  return made;
}

/// What dict(...) makes.
std::shared_ptr<Mapping> mapping_of(Machine& machine, Arguments& arguments) {
  auto made = std::make_shared<Mapping>();
  if (arguments.positional.size() > 1) machine.fail("dict accepts one value and named ones");
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is_mapping()) {
      for (const auto& [key, value] : from.as_mapping().entries) machine.set(*made, key, value);
    } else {
      for (const Value& pair : machine.items(from)) {
        const std::vector<Value> both = machine.items(pair);
        if (both.size() != 2) machine.fail("dict needs pairs, got " + std::to_string(both.size()) + " values");
        machine.set(*made, both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) machine.set(*made, Value::text(name), value);
  return made;
}

Value make_mapping(Machine& machine, Arguments& arguments) { return machine.mapping(mapping_of(machine, arguments)); }

Value make_namespace(Machine& machine, Arguments& arguments) {
  auto made = mapping_of(machine, arguments);
  for (const auto& entry : made->entries) {
    if (entry.first.is_text() && entry.first.bytes().starts_with('_')) {
      machine.fail("a namespace cannot have the attribute \"" + entry.first.bytes() + "\": it begins with \"_\"");
    }
  }
  return machine.name_space(std::move(made));
}

Value raise_exception(Machine& machine, Arguments& arguments) {
  const Parameters parameters(machine, "raise_exception", arguments, {"message"});
  machine.fail("the template refuses this: " + machine.str(parameters.get(0)));
}

Value strftime_now(Machine& machine, Arguments& arguments) {
  const Parameters parameters(machine, "strftime_now", arguments, {"format"});
  const std::string& format = parameters.text(0);
  // One directive may become some 60 bytes.
  const std::size_t room = format.size() * 64 + 64;
  machine.charge(room);
  std::string made(room, '\0');
  made.resize(std::strftime(made.data(), made.size(), format.c_str(), &machine.now()));
  return machine.text(std::move(made));
}

Value cycler(Machine& machine, Arguments& arguments) {
  if (arguments.positional.empty()) machine.fail("cycler needs at least one value");
  auto made = std::make_shared<Cycler>(arguments.positional);
  machine.limit_depth(made->depth);
  return Value::callable(std::move(made));
}

Value joiner(Machine& machine, Arguments& arguments) {
  const Parameters parameters(machine, "joiner", arguments, {"sep"});
  return Value::callable(std::make_shared<Joiner>(parameters.get(0, Value::text(std::string(", ")))));
}

Value lipsum(Machine& machine, Arguments&) {
  machine.fail("lipsum writes text by chance, which a chat cannot contain");
}

const std::unordered_map<std::string_view, Value>& globals() {
  static const std::unordered_map<std::string_view, Value> table = [] {
    std::unordered_map<std::string_view, Value> made;
    const auto add = [&](std::string_view name, Function::Body body) {
      made.emplace(name, Value::callable(std::make_shared<Function>(body)));
    };
    add("range", range);
    add("dict", make_mapping);
    add("namespace", make_namespace);
    add("raise_exception", raise_exception);
    add("strftime_now", strftime_now);
    add("cycler", cycler);
    add("joiner", joiner);
    add("lipsum", lipsum);
    return made;
  }();
  return table;
}

const Cycler* cycler_of(const Value& self) {
  return self.kind() == Value::Kind::kCallable ? dynamic_cast<const Cycler*>(&self.as_callable()) : nullptr;
}

Value next_of_cycler(Machine&, const Value& self, Arguments&) {
  const Cycler& of = *cycler_of(self);
  const Value& value = of.items[of.at];
  of.at = (of.at + 1) % of.items.size();
  return value;
}

Value reset_cycler(Machine&, const Value& self, Arguments&) {
  cycler_of(self)->at = 0;
  return Value::none();
}

Value cycle(Machine& machine, const Value& self, Arguments& arguments) {
  if (arguments.positional.empty()) machine.fail("loop.cycle needs at least one value");
  return arguments.positional[self.as_loop().index % arguments.positional.size()];
}

Value changed(Machine& machine, const Value& self, Arguments& arguments) {
  Loop& loop = self.as_loop();
  const bool same = loop.has_seen && loop.seen.size() == arguments.positional.size() &&
                    std::equal(loop.seen.begin(), loop.seen.end(), arguments.positional.begin(),
                               [&](const Value& a, const Value& b) { return machine.same(a, b); });
  for (const Value& value : arguments.positional) machine.limit_depth(loop.depth + depth_of(value) + 1);
  loop.has_seen = true;
  // What it has seen may hold the loop itself: as text it does not.
  loop.seen.clear();
  for (const Value& value : arguments.positional) {
    if (value.kind() != Value::Kind::kLoop && value.kind() != Value::Kind::kNamespace) loop.seen.push_back(value);
  }
  return Value::boolean(!same);
}

}  // namespace

Value global(std::string_view name) {
  const auto found = globals().find(name);
  return found == globals().end() ? Value() : found->second;
}

Value bound_method(const Value& self, Method method) {
  return Value::callable(std::make_shared<BoundMethod>(self, method));
}

Value loop_attribute(Machine&, const Value& value, std::string_view name) {
  const Loop& loop = value.as_loop();
  const std::vector<Value>& items = loop.items.items();
  const auto index = static_cast<std::int64_t>(loop.index), size = static_cast<std::int64_t>(items.size());
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 >= size);
  if (name == "length") return Value::integer(size);
  if (name == "revindex") return Value::integer(size - index);
  if (name == "revindex0") return Value::integer(size - index - 1);
  if (name == "depth") return Value::integer(static_cast<std::int64_t>(loop.depth0) + 1);
  if (name == "depth0") return Value::integer(static_cast<std::int64_t>(loop.depth0));
  if (name == "previtem") {
    return index > 0 ? items[loop.index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < size ? items[loop.index + 1] : Value::undefined("there is no next item");
  }
  if (name == "cycle") return bound_method(value, cycle);
  if (name == "changed") return bound_method(value, changed);
  return Value::undefined("'LoopContext object' has no attribute '" + std::string(name) + "'");
}

Value callable_attribute(const Value& self, std::string_view name) {
  const Cycler* cycler = name == "current" ? cycler_of(self) : nullptr;
  return cycler ? cycler->items[cycler->at] : Value();
}

Method find_callable_method(const Value& self, std::string_view name) {
  if (!cycler_of(self)) return nullptr;
  return name == "next" ? next_of_cycler : name == "reset" ? reset_cycler : nullptr;
}

Parameters::Parameters(Machine& machine, std::string_view who, Arguments& arguments,
                       std::initializer_list<std::string_view> names)
    : machine_(machine), who_(who), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    machine.fail(std::string(who) + " accepts " + std::to_string(names_.size()) + " arguments, got " +
                 std::to_string(arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) machine.fail(std::string(who) + " has no argument \"" + name + "\"");
    const auto i = static_cast<std::size_t>(found - names_.begin());
    if (values_[i]) machine.fail(std::string(who) + " got \"" + name + "\" twice");
    values_[i] = &value;
  }
}

const Value& Parameters::get(std::size_t i) const {
  if (!values_[i]) machine_.fail(std::string(who_) + " needs the argument \"" + std::string(names_[i]) + "\"");
  return *values_[i];
}

std::int64_t Parameters::integer(std::size_t i, std::int64_t otherwise) const {
  if (!values_[i]) return otherwise;
  return machine_.integer(*values_[i], "\"" + std::string(names_[i]) + "\" of " + std::string(who_));
}

const std::string& Parameters::text(std::size_t i) const {
  const Value& value = get(i);
  if (value.is_undefined()) machine_.fail(value.absence());
  if (!value.is_text()) {
    machine_.fail("\"" + std::string(names_[i]) + "\" of " + std::string(who_) + " must be a text, got a " +
                  std::string(value.type_name()));
  }
  return value.bytes();
}

}  // namespace components::jinja
