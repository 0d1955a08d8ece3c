#include <algorithm>
#include <cmath>
#include <utility>

#include "components/template/library/filters.h"

// Filters of lists and mappings.

namespace components::jinja {
namespace {

Value folded(Machine& machine, const Value& value) {
  if (!value.is_text()) return value;
  machine.charge(value.bytes().size());
  return Value::text(lower(value.bytes()));
}

/// Values to sort or to compare by: of an attribute where one is given, texts in lower case where case does not count.
std::vector<Value> keys_of(Machine& machine, const std::vector<Value>& items, const Value& attribute, bool is_cased,
                           const Value& otherwise = Value()) {
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) {
    Value key = attribute.is_none() ? item : attribute_at(machine, item, attribute, otherwise);
    keys.push_back(is_cased ? std::move(key) : folded(machine, key));
  }
  return keys;
}

Value first(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter first", arguments, {});
  if (subject.is_text() && !subject.bytes().empty()) return machine.item(subject, Value::integer(0));
  if (subject.is_list() && subject.as_list().sequence == Sequence::kIterator) {
    List& list = subject.as_list();
    if (list.taken < list.items.size()) return list.items[list.taken++];
  } else if (subject.is_list()) {
    if (!subject.items().empty()) return subject.items()[0];
  } else {
    const std::vector<Value> items = machine.items(subject);
    if (!items.empty()) return items[0];
  }
  return Value::undefined("no first item, the sequence was empty");
}

Value last(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter last", arguments, {});
  if (subject.is_list() && subject.as_list().sequence == Sequence::kIterator) {
    machine.fail("filter last needs a sequence: put \"| list\" before it");
  }
  if (subject.is_list() && !subject.items().empty()) return subject.items().back();
  const std::vector<Value> items = machine.items(subject);
  return items.empty() ? Value::undefined("no last item, the sequence was empty") : items.back();
}

Value length(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter length", arguments, {});
  switch (subject.kind()) {
    case Value::Kind::kUndefined: return Value::integer(0);
    case Value::Kind::kText:
      machine.step(subject.bytes().size() / 64);
      return Value::integer(static_cast<std::int64_t>(code_points(subject.bytes())));
    case Value::Kind::kMapping: return Value::integer(static_cast<std::int64_t>(subject.as_mapping().entries.size()));
    case Value::Kind::kLoop: return Value::integer(static_cast<std::int64_t>(subject.as_loop().items.items().size()));
    case Value::Kind::kList:
      if (subject.as_list().sequence != Sequence::kIterator) {
        return Value::integer(static_cast<std::int64_t>(subject.items().size()));
      }
      [[fallthrough]];
    default: machine.fail("a " + std::string(subject.type_name()) + " has no length");
  }
}

Value list(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter list", arguments, {});
  return machine.list(machine.items(subject));
}

Value join(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter join", arguments, {"d", "attribute"});
  const Text between = machine.as_text(parameters.get(0, Value::text(std::string())));
  const Value attribute = parameters.get(1, Value::none());
  TextBuilder builder;
  bool is_first = true;
  for (const Value& item : machine.items(subject)) {
    machine.step();
    if (!is_first) {
      machine.charge(between.bytes.size());
      builder.add(between);
    }
    is_first = false;
    const Value part = attribute.is_none() ? item : attribute_at(machine, item, attribute, Value());
    machine.charge(part.is_text() ? part.bytes().size() : 0);
    builder.add(machine.as_text(part));
  }
  return machine.text(builder.take());
}

Value items(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter items", arguments, {});
  if (subject.is_undefined()) return machine.list({}, Sequence::kIterator);
  if (!subject.is_mapping()) {
    machine.fail("filter items needs a mapping, got a " + std::string(subject.type_name()));
  }
  return machine.list(machine.items(find_method(subject, "items")(machine, subject, arguments)), Sequence::kIterator);
}

Value dictsort(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (subject.is_undefined()) machine.fail(subject.absence());
  if (!subject.is_mapping()) {
    machine.fail("filter dictsort needs a mapping, got a " + std::string(subject.type_name()));
  }
  const std::string by = parameters.find(1) ? parameters.text(1) : "key";
  if (by != "key" && by != "value") machine.fail("filter dictsort sorts by \"key\" or \"value\", got \"" + by + "\"");
  Arguments none;
  std::vector<Value> pairs = find_method(subject, "items")(machine, subject, none).items();
  std::vector<Value> keys;
  for (const Value& pair : pairs) {
    const Value& key = pair.items()[by == "key" ? 0 : 1];
    keys.push_back(parameters.is_true(0, false) ? key : folded(machine, key));
  }
  return machine.list(sorted(machine, std::move(pairs), parameters.is_true(2, false), &keys));
}

Value default_value(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter default", arguments, {"default_value", "boolean"});
  if (subject.is_undefined() || (parameters.is_true(1, false) && !subject.is_true())) {
    return parameters.get(0, Value::text(std::string()));
  }
  return subject;
}

Value sort(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Value> all = machine.items(subject);
  const Value attribute = parameters.get(2, Value::none());
  std::vector<Value> keys;
  if (attribute.is_text() && attribute.bytes().find(',') != std::string::npos) {
    for (const Value& item : all) {
      std::vector<Value> key;
      for (std::size_t at = 0; at <= attribute.bytes().size();) {
        const std::size_t end = std::min(attribute.bytes().find(',', at), attribute.bytes().size());
        const Value part = Value::text(attribute.bytes().substr(at, end - at));
        key.push_back(keys_of(machine, {item}, part, parameters.is_true(1, false))[0]);
        at = end + 1;
      }
      keys.push_back(machine.list(std::move(key)));
    }
  } else {
    keys = keys_of(machine, all, attribute, parameters.is_true(1, false));
  }
  return machine.list(sorted(machine, std::move(all), parameters.is_true(0, false), &keys));
}

template <bool kMax>
Value extreme(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, kMax ? "filter max" : "filter min", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> all = machine.items(subject);
  if (all.empty()) return Value::undefined("no aggregated item, the sequence was empty");
  const auto keys = keys_of(machine, all, parameters.get(1, Value::none()), parameters.is_true(0, false));
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (kMax ? machine.less(keys[best], keys[i]) : machine.less(keys[i], keys[best])) best = i;
  }
  return all[best];
}

Value sum(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter sum", arguments, {"attribute", "start"});
  Value total = parameters.get(1, Value::integer(0));
  const Value attribute = parameters.get(0, Value::none());
  if (total.is_text()) machine.fail("filter sum adds numbers: join texts with filter join");
  for (const Value& item : machine.items(subject)) {
    machine.step();
    total = machine.add(total, attribute.is_none() ? item : attribute_at(machine, item, attribute, Value()));
  }
  return total;
}

Value unique(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter unique", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> all = machine.items(subject);
  const auto keys = keys_of(machine, all, parameters.get(1, Value::none()), parameters.is_true(0, false));
  Mapping seen;
  std::vector<Value> chosen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    machine.step();
    const std::size_t before = seen.entries.size();
    machine.set(seen, keys[i], Value::none());
    if (seen.entries.size() > before) chosen.push_back(all[i]);
  }
  return machine.list(std::move(chosen), Sequence::kIterator);
}

Value reverse(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter reverse", arguments, {});
  if (subject.is_text()) return machine.slice(subject, Value::none(), Value::none(), Value::integer(-1));
  if (subject.is_list() && subject.as_list().sequence == Sequence::kIterator) {
    std::vector<Value> all = machine.items(subject);
    std::reverse(all.begin(), all.end());
    return machine.list(std::move(all));
  }
  std::vector<Value> all = machine.items(subject);
  std::reverse(all.begin(), all.end());
  return machine.list(std::move(all), Sequence::kIterator);
}

Value batch(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter batch", arguments, {"linecount", "fill_with"});
  const std::int64_t count = parameters.integer(0, 0);
  if (!parameters.find(0) || count < 1) machine.fail("filter batch needs a linecount of at least 1");
  const Value fill = parameters.get(1, Value::none());
  std::vector<Value> rows, row;
  for (const Value& item : machine.items(subject)) {
    machine.step();
    if (static_cast<std::int64_t>(row.size()) == count) rows.push_back(machine.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (!fill.is_none()) {
      machine.charge(sizeof(Value), static_cast<std::size_t>(count));
      row.resize(static_cast<std::size_t>(count), fill);
    }
    rows.push_back(machine.list(std::move(row)));
  }
  return machine.list(std::move(rows), Sequence::kIterator);
}

Value slice(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter slice", arguments, {"slices", "fill_with"});
  const std::int64_t count = parameters.integer(0, 0);
  if (!parameters.find(0) || count < 1) machine.fail("filter slice needs at least 1 slice");
  const Value fill = parameters.get(1, Value::none());
  const std::vector<Value> all = machine.items(subject);
  const auto slices = static_cast<std::size_t>(count);
  const std::size_t each = all.size() / slices, longer = all.size() % slices;
  std::vector<Value> rows;
  std::size_t at = 0;
  for (std::size_t i = 0; i < slices; ++i) {
    machine.step();
    const std::size_t size = each + (i < longer ? 1 : 0);
    std::vector<Value> row(all.begin() + static_cast<std::ptrdiff_t>(at),
                           all.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
    if (!fill.is_none() && i >= longer) row.push_back(fill);
    rows.push_back(machine.list(std::move(row)));
  }
  return machine.list(std::move(rows), Sequence::kIterator);
}

Value groupby(Machine& machine, const Value& subject, Arguments& arguments) {
  const Parameters parameters(machine, "filter groupby", arguments, {"attribute", "default", "case_sensitive"});
  const bool is_cased = parameters.is_true(2, false);
  const Value& attribute = parameters.get(0);
  const Value otherwise = parameters.get(1, Value::none());
  const Value absent = otherwise.is_none() ? Value() : otherwise;
  std::vector<Value> all = machine.items(subject);
  const auto keys = keys_of(machine, all, attribute, is_cased, absent);
  all = sorted(machine, std::move(all), false, &keys);
  const auto in_order = keys_of(machine, all, attribute, is_cased, absent);
  std::vector<Value> groups, group;
  const auto end_group = [&](std::size_t end) {
    const Value& of = all[end - group.size()];
    const Value key = attribute_at(machine, of, attribute, absent);
    const Value pair = machine.list({key, machine.list(std::exchange(group, {}))}, Sequence::kTuple);
    pair.as_list().is_group = true;
    groups.push_back(pair);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && !machine.same(in_order[i], in_order[i - 1])) end_group(i);
    group.push_back(all[i]);
  }
  if (!group.empty()) end_group(all.size());
  return machine.list(std::move(groups));
}

}  // namespace

Value attribute_at(Machine& machine, const Value& value, const Value& path, const Value& otherwise) {
  Value at = value;
  const auto move = [&](const Value& key) {
    at = machine.item(at, key);
    if (at.is_undefined() && !otherwise.is_undefined()) at = otherwise;
  };
  machine.step();
  if (!path.is_text()) {
    move(path);
    return at;
  }
  const std::string& bytes = path.bytes();
  for (std::size_t begin = 0; begin <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('.', begin), bytes.size());
    const std::string part = bytes.substr(begin, end - begin);
    const bool is_number =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    move(is_number ? Value::integer(std::stoll(part)) : Value::text(part));
    begin = end + 1;
  }
  return at;
}

std::vector<Value> sorted(Machine& machine, std::vector<Value> items, bool reverse, const std::vector<Value>* keys) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::vector<Value>& by = keys ? *keys : items;
  // One after the other, as Python does: an error is thrown before anything is moved.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reverse ? machine.less(by[b], by[a]) : machine.less(by[a], by[b]);
  });
  std::vector<Value> made;
  made.reserve(items.size());
  for (const std::size_t i : order) made.push_back(items[i]);
  return made;
}

const FilterTable& list_filters() {
  static const FilterTable table = {
      {"first", first},       {"last", last},         {"length", length},
      {"count", length},      {"list", list},         {"join", join},
      {"items", items},       {"dictsort", dictsort}, {"default", default_value},
      {"d", default_value},   {"sort", sort},         {"min", extreme<false>},
      {"max", extreme<true>}, {"sum", sum},           {"unique", unique},
      {"reverse", reverse},   {"batch", batch},       {"slice", slice},
      {"groupby", groupby},
  };
  return table;
}

}  // namespace components::jinja
