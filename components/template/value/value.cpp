#include "components/template/value/value.h"

#include <algorithm>
#include <functional>

namespace components::jinja {
namespace {

constexpr std::size_t kEntriesWithoutIndex = 16;

Value convert(const runner::core::Node& node, std::int32_t message) {
  using Kind = runner::core::Node::Kind;
  switch (node.kind()) {
    case Kind::kNull: return Value::none();
    case Kind::kBool: return Value::boolean(node.as_bool());
    case Kind::kInteger: return Value::integer(node.as_integer());
    case Kind::kFloat: return Value::floating(node.as_double());
    case Kind::kString: {
      Text text{node.as_string()};
      if (message != kNoMessage && !text.bytes.empty()) text.origins = {{0, text.bytes.size(), message, true}};
      return Value::text(std::move(text));
    }
    case Kind::kSequence: {
      auto list = std::make_shared<List>();
      list->message = message;
      list->items.reserve(node.items().size());
      for (const runner::core::Node& item : node.items()) {
        list->items.push_back(convert(item, message));
        list->weight += weight_of(list->items.back());
      }
      return Value::list(std::move(list));
    }
    case Kind::kMapping: break;
  }
  auto mapping = std::make_shared<Mapping>();
  mapping->message = message;
  mapping->entries.reserve(node.entries().size());
  for (const auto& entry : node.entries()) {
    const Value key = convert(runner::core::Node::string(entry.key), message);
    Value value = convert(entry.value, message);
    mapping->weight += weight_of(key) + weight_of(value);
    mapping->set(key, std::move(value));
  }
  return Value::mapping(std::move(mapping));
}

}  // namespace

const Value* Mapping::find(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (name.is_text() && name.bytes() == key) return &value;
  }
  return nullptr;
}

const Value* Mapping::find(const Value& key) const {
  if (key.is_text()) return find(std::string_view(key.bytes()));
  for (const auto& [name, value] : entries) {
    if (equal(name, key)) return &value;
  }
  return nullptr;
}

void Mapping::set(const Value& key, Value value) {
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
  if (entries.size() <= kEntriesWithoutIndex) return;
  for (std::size_t i = index_.empty() ? 0 : entries.size() - 1; i < entries.size(); ++i) {
    if (entries[i].first.is_text()) index_.emplace(entries[i].first.bytes(), i);
  }
}

Value Value::none() {
  Value value;
  value.kind_ = Kind::kNone;
  return value;
}

Value Value::boolean(bool from) {
  Value value;
  value.kind_ = Kind::kBool;
  value.number_.integer = from ? 1 : 0;
  return value;
}

Value Value::integer(std::int64_t from) {
  Value value;
  value.kind_ = Kind::kInteger;
  value.number_.integer = from;
  return value;
}

Value Value::floating(double from) {
  Value value;
  value.kind_ = Kind::kFloat;
  value.number_.floating = from;
  return value;
}

Value Value::text(std::string bytes) { return text(Text{std::move(bytes)}); }

Value Value::text(Text from) {
  Value value;
  value.kind_ = Kind::kText;
  value.object_ = std::make_shared<Text>(std::move(from));
  return value;
}

Value Value::list(std::vector<Value> items, Sequence sequence) {
  auto made = std::make_shared<List>();
  made->sequence = sequence;
  made->items = std::move(items);
  return list(std::move(made));
}

Value Value::list(std::shared_ptr<List> from) {
  Value value;
  value.kind_ = Kind::kList;
  value.object_ = std::move(from);
  return value;
}

Value Value::mapping(std::shared_ptr<Mapping> from) {
  Value value;
  value.kind_ = Kind::kMapping;
  value.object_ = std::move(from);
  return value;
}

Value Value::name_space(std::shared_ptr<Mapping> attributes) {
  Value value = mapping(std::move(attributes));
  value.kind_ = Kind::kNamespace;
  return value;
}

Value Value::callable(std::shared_ptr<const Callable> from) {
  Value value;
  value.kind_ = Kind::kCallable;
  value.object_ = std::const_pointer_cast<Callable>(std::move(from));
  return value;
}

Value Value::loop(std::shared_ptr<Loop> from) {
  Value value;
  value.kind_ = Kind::kLoop;
  value.object_ = std::move(from);
  return value;
}

Value Value::undefined(std::string what) {
  Value value;
  value.object_ = std::make_shared<Absence>(Absence{std::move(what)});
  return value;
}

Value Value::from(const runner::core::Node& node) { return convert(node, kNoMessage); }

Value Value::from_message(const runner::core::Node& node, std::int32_t index) {
  Value value = convert(node, index);
  if (!value.is_mapping()) return value;
  value.as_mapping().is_message = true;
  // The name of a role is a word of the template, not a text that the message wrote.
  for (auto& [key, part] : value.as_mapping().entries) {
    if (key.bytes() == "role" && part.is_text()) part = Value::text(part.bytes());
  }
  return value;
}

std::string Value::absence() const {
  return object_ ? static_cast<const Absence*>(object_.get())->what : "the value is undefined";
}

bool Value::is_true() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInteger: return number_.integer != 0;
    case Kind::kFloat: return number_.floating != 0;
    case Kind::kText: return !bytes().empty();
    case Kind::kList: return as_list().sequence == Sequence::kIterator || !items().empty();
    case Kind::kMapping: return !as_mapping().entries.empty();
    case Kind::kNamespace:
    case Kind::kCallable:
    case Kind::kLoop: return true;
  }
  return true;
}

bool Value::hashable() const {
  if (kind_ == Kind::kMapping) return false;
  if (kind_ != Kind::kList) return true;
  if (as_list().sequence != Sequence::kTuple) return as_list().sequence == Sequence::kRange;
  return std::all_of(items().begin(), items().end(), [](const Value& item) { return item.hashable(); });
}

std::string_view Value::type_name() const {
  switch (kind_) {
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInteger: return "int";
    case Kind::kFloat: return "float";
    case Kind::kText: return as_text().is_markup ? "Markup" : "str";
    case Kind::kMapping: return "dict";
    case Kind::kNamespace: return "Namespace";
    case Kind::kCallable: return "function";
    case Kind::kLoop: return "LoopContext";
    case Kind::kList: break;
  }
  switch (as_list().sequence) {
    case Sequence::kList: return "list";
    case Sequence::kTuple: return "tuple";
    case Sequence::kRange: return "range";
    case Sequence::kKeys: return "dict_keys";
    case Sequence::kValues: return "dict_values";
    case Sequence::kItems: return "dict_items";
    case Sequence::kIterator: return "generator";
  }
  return "list";
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_double() == b.as_double();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kText: return a.bytes() == b.bytes();
    case Value::Kind::kList: {
      if (a.identity() == b.identity()) return true;
      const Sequence sequence = a.as_list().sequence;
      if (sequence != b.as_list().sequence || sequence == Sequence::kIterator || sequence == Sequence::kValues) {
        return false;
      }
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), equal);
    }
    case Value::Kind::kMapping: {
      if (a.identity() == b.identity()) return true;
      if (a.as_mapping().entries.size() != b.as_mapping().entries.size()) return false;
      return std::all_of(a.as_mapping().entries.begin(), a.as_mapping().entries.end(), [&](const auto& entry) {
        const Value* other = b.as_mapping().find(entry.first);
        return other && equal(entry.second, *other);
      });
    }
    case Value::Kind::kUndefined:
    case Value::Kind::kNone: return true;
    default: return a.identity() == b.identity();
  }
}

std::uint64_t weight_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kText: return 1 + value.bytes().size() / 64;
    case Value::Kind::kList: return value.as_list().weight;
    case Value::Kind::kMapping: return value.as_mapping().weight;
    default: return 1;
  }
}

std::int32_t message_of(const Value& value) {
  const auto of = [](const auto& container) {
    return container.message != kNoMessage ? container.message : container.source;
  };
  switch (value.kind()) {
    case Value::Kind::kText: return value.as_text().origins.empty() ? kNoMessage : value.as_text().origins[0].message;
    case Value::Kind::kList: return of(value.as_list());
    case Value::Kind::kMapping: return of(value.as_mapping());
    default: return kNoMessage;
  }
}

}  // namespace components::jinja
