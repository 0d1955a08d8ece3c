#include "components/template/library/filters.h"

#include <utility>

// Filters that take others or tests by their names, and the table of all.

namespace components::jinja {
namespace {

/// The first argument, taken out: the name of a filter, a test or an attribute.
Value take_first(Machine& machine, Arguments& arguments, const char* what) {
  if (arguments.positional.empty()) machine.fail(std::string("this filter needs ") + what);
  Value taken = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return taken;
}

const std::string& name_of(Machine& machine, const Value& value) {
  if (!value.is_text()) machine.fail("a filter or a test is named by a text, got a " + std::string(value.type_name()));
  return value.bytes();
}

Value map(Machine& machine, const Value& subject, Arguments& arguments) {
  std::vector<Value> made;
  if (!subject.is_true()) return machine.list({}, Sequence::kIterator);
  if (arguments.positional.empty() && !arguments.named.empty()) {
    const Parameters parameters(machine, "filter map", arguments, {"attribute", "default"});
    for (const Value& item : machine.items(subject)) {
      const Value otherwise = parameters.get(1, Value::none());
      made.push_back(attribute_at(machine, item, parameters.get(0), otherwise.is_none() ? Value() : otherwise));
    }
    return machine.list(std::move(made), Sequence::kIterator);
  }
  const Value name = take_first(machine, arguments, "the name of a filter, or attribute=");
  for (const Value& item : machine.items(subject)) {
    made.push_back(machine.filter(name_of(machine, name), item, arguments));
  }
  return machine.list(std::move(made), Sequence::kIterator);
}

template <bool kSelect, bool kByAttribute>
Value choose(Machine& machine, const Value& subject, Arguments& arguments) {
  Value attribute;
  if (!subject.is_true()) return machine.list({}, Sequence::kIterator);
  if (kByAttribute) attribute = take_first(machine, arguments, "the name of an attribute");
  Value name;
  const bool has_test = !arguments.positional.empty();
  if (has_test) name = take_first(machine, arguments, "the name of a test");
  std::vector<Value> made;
  for (const Value& item : machine.items(subject)) {
    machine.step();
    const Value value = kByAttribute ? attribute_at(machine, item, attribute, Value()) : item;
    const bool holds = has_test ? machine.test(name_of(machine, name), value, arguments) : value.is_true();
    if (holds == kSelect) made.push_back(item);
  }
  return machine.list(std::move(made), Sequence::kIterator);
}

Value attr(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter attr", arguments, {"name"});
  parameters.text(0);
  // Of a mapping this is not its entry: only what Python's getattr() finds.
  if (!subject.is_mapping()) return machine.attribute(subject, parameters.get(0));
  const Method method = find_method(subject, parameters.text(0));
  return method ? bound_method(subject, method)
                : Value::undefined("'dict object' has no attribute '" + parameters.text(0) + "'");
}

}  // namespace

const FilterTable& choosing_filters() {
  static const FilterTable table = {
      {"map", map},
      {"select", choose<true, false>},
      {"reject", choose<false, false>},
      {"selectattr", choose<true, true>},
      {"rejectattr", choose<false, true>},
      {"attr", attr},
  };
  return table;
}

Filter find_filter(std::string_view name) {
  static const FilterTable all = [] {
    FilterTable made = text_filters();
    made.insert(list_filters().begin(), list_filters().end());
    made.insert(choosing_filters().begin(), choosing_filters().end());
    return made;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace components::jinja
