#include "components/data/fields/field_counts.h"

#include <algorithm>

#include "components/data/fields/unread_fields.h"

namespace components::data {

using runner::core::Node;

void FieldUse::add(const std::string& name, bool is_read) {
  const auto holds = [&name](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (holds(read)) return;
  if (is_read) {
    std::erase(unread, name);
    read.push_back(name);
  } else if (!holds(unread)) {
    unread.push_back(name);
  }
}

void FieldUse::add_all(const Node& object, const std::vector<std::string>& read_names) {
  for (const Node::Entry& entry : object.entries()) {
    if (!asks_for_something(&entry.value)) continue;
    add(entry.key, std::find(read_names.begin(), read_names.end(), entry.key) != read_names.end());
  }
}

void FieldCounts::add(const FieldUse& use) {
  if (use == last_) {
    ++like_last_;
    return;
  }
  count(last_, like_last_);
  last_ = use;
  like_last_ = 1;
}

void FieldCounts::count(const FieldUse& use, std::int64_t records) {
  const auto add = [&](const std::vector<std::string>& names, bool is_read) {
    for (const std::string& name : names) {
      auto place = places_.find(name);
      if (place == places_.end()) {
        if (counts_.size() == kNamesMax) continue;
        place = places_.emplace(name, counts_.size()).first;
        counts_.push_back({name});
      }
      FieldCount& its = counts_[place->second];
      its.records += records;
      if (is_read) its.read += records;
    }
  };
  if (records == 0) return;
  add(use.read, true);
  add(use.unread, false);
}

std::vector<FieldCount> FieldCounts::list() const {
  FieldCounts all = *this;
  all.count(last_, like_last_);
  return std::move(all.counts_);
}

}  // namespace components::data
