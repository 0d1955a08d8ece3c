#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace components::metric {

/// A tag of the scheme IOB2, or of IOBES: `B-PER`, `I-PER`, `O`.
struct EntityTag {
  char mark = 'O';  ///< B, I, E, S, or O
  int type = -1;    ///< of O: -1
};

/// What the tags of a model mean.
struct EntityTags {
  std::vector<EntityTag> tags;     ///< by class
  std::vector<std::string> types;  ///< `PER`, `LOC`, in the order of their bytes
};

/// Nothing when a name is no such tag, or none names a type.
std::optional<EntityTags> entity_tags(const std::vector<std::string>& class_names);

/// Neighbouring words of a sentence that are one entity.
struct Entity {
  int type;
  std::int64_t first, last;  ///< words
  bool operator==(const Entity&) const = default;
};

/// Those that the tags of a sentence tell, in order. `strict`: an entity begins with B alone; else a change of the
/// type, or a tag behind O, begins one, too.
///
/// Source  seqeval 1.2.2: get_entities(), and scheme.IOB2 for `strict`
std::vector<Entity> entities_of(std::span<const EntityTag> sentence, bool strict);

}  // namespace components::metric
