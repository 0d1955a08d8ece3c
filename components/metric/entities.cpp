#include "components/metric/entities.h"

#include <algorithm>
#include <string_view>

namespace components::metric {
namespace {

constexpr std::string_view kMarks = "BIES";

bool ends(const EntityTag& before, const EntityTag& now) {
  if (before.mark == 'O') return false;
  if (before.mark == 'E' || before.mark == 'S') return true;
  return now.mark == 'B' || now.mark == 'S' || now.mark == 'O' || before.type != now.type;
}

bool begins(const EntityTag& before, const EntityTag& now, bool strict) {
  if (now.mark == 'O') return false;
  if (now.mark == 'B' || now.mark == 'S') return true;
  if (strict) return false;
  return before.mark == 'O' || before.mark == 'E' || before.mark == 'S' || before.type != now.type;
}

}  // namespace

std::optional<EntityTags> entity_tags(const std::vector<std::string>& class_names) {
  EntityTags all;
  for (const std::string& name : class_names) {
    if (name == "O") continue;
    if (name.size() < 3 || name[1] != '-' || kMarks.find(name[0]) == std::string_view::npos) return std::nullopt;
    all.types.push_back(name.substr(2));
  }
  if (all.types.empty()) return std::nullopt;
  std::sort(all.types.begin(), all.types.end());
  all.types.erase(std::unique(all.types.begin(), all.types.end()), all.types.end());
  for (const std::string& name : class_names) {
    EntityTag tag;
    if (name != "O") {
      tag.mark = name[0];
      tag.type =
          static_cast<int>(std::lower_bound(all.types.begin(), all.types.end(), name.substr(2)) - all.types.begin());
    }
    all.tags.push_back(tag);
  }
  return all;
}

std::vector<Entity> entities_of(std::span<const EntityTag> sentence, bool strict) {
  std::vector<Entity> found;
  EntityTag before;
  bool open = false;  // the last one of `found` goes on
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    const EntityTag& now = sentence[i];
    const auto at = static_cast<std::int64_t>(i);
    if (ends(before, now)) open = false;
    if (begins(before, now, strict)) {
      found.push_back({now.type, at, at});
      open = true;
    } else if (open) {
      found.back().last = at;
    }
    before = now;
  }
  return found;
}

}  // namespace components::metric
