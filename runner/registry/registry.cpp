#include "runner/registry/registry.h"

#include <algorithm>

#include "runner/core/error.h"
#include "runner/core/text/suggest.h"
#include "runner/recipe/read.h"

namespace runner::registry {
namespace {

constexpr std::string_view kSection = "section";

std::string file_name_of(std::string_view kind, std::string_view name) {
  return "schemas/" + std::string(kind) + "/" + std::string(name) + ".json";
}

/// The build's own tables passed schema_gen; an error now is a bug in roux.
core::Node read_embedded(const char* file_name, std::string_view json) {
  auto source = std::make_shared<core::Source>(core::Source{file_name, std::string(json), core::Source::Kind::kFile});
  core::Diagnostics diagnostics;
  std::optional<core::Node> node = recipe::read_json(source, {}, diagnostics);
  RUNNER_ASSERT(node && !diagnostics.has_errors(), "schema_gen has read this table before");
  return *node;
}

}  // namespace

struct Registry::Slot {
  std::string file_name;
  std::string_view embedded;           ///< parsed on demand
  std::unique_ptr<Fragment> fragment;  ///< null until then
};

Registry::Registry(const Embedded& embedded) : aliases_json_(embedded.aliases_json) {
  if (!embedded.kinds_json.empty()) {
    const core::Node kinds = read_embedded("schemas/kinds.json", embedded.kinds_json);
    for (const core::Node& item : kinds.items()) {
      const auto text = [&](const char* key) { return item.find(key) ? item.find(key)->as_string() : std::string(); };
      kinds_.push_back(
          {text("kind"), text("title"), text("namespace"), text("header"), text("product"), text("layer")});
    }
  }
  if (!embedded.first_defaults_json.empty())
    first_defaults_ = read_embedded("schemas/hashed_keys.json", embedded.first_defaults_json);
  for (const EmbeddedFragment& fragment : embedded.fragments) {
    auto slot = std::make_shared<Slot>();
    slot->embedded = fragment.json;
    slots_[std::string(fragment.kind)].emplace(std::string(fragment.name), std::move(slot));
  }
}

Registry& Registry::builtin() {
  static Registry registry(embedded_fragments());
  return registry;
}

const std::vector<Kind>& Registry::kinds() const { return kinds_; }

const Kind* Registry::find_kind(std::string_view kind) const {
  for (const Kind& candidate : kinds_)
    if (candidate.name == kind) return &candidate;
  return nullptr;
}

std::vector<std::string> Registry::names(std::string_view kind) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  const auto found = slots_.find(kind);
  if (found == slots_.end()) return names;
  for (const auto& [name, slot] : found->second) names.push_back(name);
  return names;
}

const Fragment* Registry::find(std::string_view kind, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto of_kind = slots_.find(kind);
  if (of_kind == slots_.end()) return nullptr;
  const auto found = of_kind->second.find(name);
  if (found == of_kind->second.end()) return nullptr;
  Slot& slot = *found->second;
  if (!slot.fragment) {
    core::Diagnostics diagnostics;
    std::optional<Fragment> fragment = parse_fragment(std::string(kind), std::string(name), file_name_of(kind, name),
                                                      std::string(slot.embedded), diagnostics);
    RUNNER_ASSERT(fragment.has_value(), "schema_gen has read this fragment before");
    if (const core::Node* later = first_defaults_.find(fragment->path())) {
      for_each_key(*fragment, [later](const std::string& key, Property& property) {
        if (const core::Node* first = later->find(key)) property.first_default = *first;
      });
    }
    slot.fragment = std::make_unique<Fragment>(std::move(*fragment));
  }
  return slot.fragment.get();
}

const Fragment* Registry::common(std::string_view kind) const { return find(kSection, std::string(kind) + "_common"); }

std::vector<std::string> Registry::suggestions(std::string_view kind, std::string_view name) const {
  const std::vector<std::string> own = names(kind);
  // `torch.optim.AdamW`, `nn.Linear`, `components/adamw`: the name is what comes last.
  const std::size_t cut = name.find_last_of("./:");
  const std::string_view last = cut == std::string_view::npos ? name : name.substr(cut + 1);
  std::vector<std::string> near = core::all_closest(last, own);
  if (!near.empty() || aliases_json_.empty()) return near;
  const core::Node aliases = read_embedded("schemas/aliases.json", aliases_json_);
  const core::Node* components = aliases.find("components");
  if (!components) return near;
  std::vector<std::string> words;
  std::map<std::string, std::string> targets;  // by word
  for (const core::Node& row : components->items()) {
    if (row.find("kind")->as_string() != kind) continue;
    const std::string& target = row.find("name")->as_string();
    if (std::find(own.begin(), own.end(), target) == own.end()) continue;
    words.push_back(row.find("word")->as_string());
    targets.emplace(words.back(), target);
  }
  for (const std::string& word : core::all_closest(last, words)) {
    const std::string& target = targets.at(word);
    if (std::find(near.begin(), near.end(), target) == near.end()) near.push_back(target);
  }
  return near;
}

std::string Registry::suggest(std::string_view kind, std::string_view name) const {
  const std::vector<std::string> near = suggestions(kind, name);
  return near.size() == 1 ? near.front() : "";
}

bool Registry::add(const std::string& kind, const std::string& name, const std::string& file_name,
                   const std::string& json, core::Diagnostics& diagnostics) {
  const auto source = std::make_shared<core::Source>(core::Source{file_name, json, core::Source::Kind::kFile});
  const core::Location location{source, 0, 0, 1};
  if (!find_kind(kind)) {
    std::vector<std::string> known;
    for (const Kind& candidate : kinds_) known.push_back(candidate.name);
    const std::string near = core::closest(kind, known);
    std::string hint = near.empty() ? "`roux list` shows the kinds" : "did you mean \"" + near + "\"?";
    diagnostics.error(location, "no kind of component is called \"" + kind + "\"", std::move(hint));
    return false;
  }
  std::optional<Fragment> fragment = parse_fragment(kind, name, file_name, json, diagnostics);
  if (!fragment) return false;
  auto slot = std::make_shared<Slot>();
  slot->file_name = file_name;
  slot->fragment = std::make_unique<Fragment>(std::move(*fragment));

  const std::lock_guard lock(mutex_);
  const auto [taken, added] = slots_[kind].emplace(name, std::move(slot));
  if (added) return true;
  const std::string owner = taken->second->file_name.empty() ? "roux itself" : taken->second->file_name;
  diagnostics.error(location, kind + "/" + name + " is already defined in " + owner, "use another component name");
  return false;
}

}  // namespace runner::registry
