#pragma once

#include <string_view>

#include "components/template/machine/machine.h"

// What a template can use by name. Undefined, or null, where there is nothing of the name.

namespace components::jinja {

using Filter = Value (*)(Machine& machine, const Value& subject, Arguments& arguments);
using Test = bool (*)(Machine& machine, const Value& subject, Arguments& arguments);
/// A method, with the value that it belongs to.
using Method = Value (*)(Machine& machine, const Value& self, Arguments& arguments);

/// `range`, `namespace`, `raise_exception`, ...
Value global(std::string_view name);
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
Method find_method(const Value& self, std::string_view name);
/// Of cyclers. The attribute is undefined where there is none.
Value callable_attribute(const Value& self, std::string_view name);
Method find_callable_method(const Value& self, std::string_view name);
/// Whether Python's type has a method of the name that changes its value, which the immutable sandbox refuses.
bool is_refused_method(const Value& self, std::string_view name);

Value bound_method(const Value& self, Method method);
Value loop_attribute(Machine& machine, const Value& loop, std::string_view name);

/// The arguments of one call by the names of its parameters.
class Parameters {
 public:
  /// Fails for an argument that has no parameter, or for one that is given twice. `who`: "filter join".
  Parameters(Machine& machine, std::string_view who, Arguments& arguments,
             std::initializer_list<std::string_view> names);

  /// Null where it is not given.
  const Value* find(std::size_t i) const { return values_[i]; }
  const Value& get(std::size_t i) const;  ///< fails where it is not given
  Value get(std::size_t i, const Value& otherwise) const { return values_[i] ? *values_[i] : otherwise; }
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  bool is_true(std::size_t i, bool otherwise) const { return values_[i] ? values_[i]->is_true() : otherwise; }
  const std::string& text(std::size_t i) const;  ///< fails for what is no text

 private:
  Machine& machine_;
  std::string_view who_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

/// json.dumps, as Transformers' `tojson` calls it.
Value to_json(Machine& machine, const Value& value, Arguments& arguments);
/// Python's `%` of a text, and str.format().
Text percent_format(Machine& machine, const Text& format, const Value& values);
Text brace_format(Machine& machine, const Text& format, const Arguments& arguments);
/// `path` as filters name attributes: `a`, `a.b`, `0`. `otherwise`: for what is undefined on the way, where it is not
/// undefined itself.
Value attribute_at(Machine& machine, const Value& value, const Value& path, const Value& otherwise);
/// Sorted by Python's `<`, stable.
std::vector<Value> sorted(Machine& machine, std::vector<Value> items, bool reverse,
                          const std::vector<Value>* keys = nullptr);

}  // namespace components::jinja
