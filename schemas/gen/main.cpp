// schema_gen: fragments -> config headers, parsers, tables, the editors' schema and the reference pages.
//
//   schema_gen --schemas DIR --out DIR
//
// A file is written only when its text changes, so that a new description does not recompile the world.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/recipe/read.h"
#include "runner/registry/alias.h"
#include "runner/registry/reference/editor_schema.h"
#include "schemas/gen/generator.h"

namespace runner::registry {

/// The generator links the registry's objects, but has nothing embedded: it is what makes the tables.
const Embedded& embedded_fragments() {
  static const Embedded none;
  return none;
}

}  // namespace runner::registry

namespace schemas::gen {
namespace {

namespace fs = std::filesystem;
using runner::core::Diagnostics;
using runner::core::Node;
using runner::registry::Fragment;
using runner::registry::Kind;
using runner::registry::Property;

constexpr std::int64_t kFragmentBytesMax = 1 << 20;

std::string read(const fs::path& path) { return runner::core::read_file(path.string(), kFragmentBytesMax).value(); }

std::optional<Node> read_tree(const fs::path& path, Diagnostics& diagnostics) {
  auto source = std::make_shared<runner::core::Source>(
      runner::core::Source{path.string(), read(path), runner::core::Source::Kind::kFile});
  return runner::recipe::read_json(source, {}, diagnostics);
}

void read_kinds(const fs::path& path, Schemas& schemas, Diagnostics& diagnostics) {
  schemas.kinds_json = read(path);
  const std::optional<Node> kinds = read_tree(path, diagnostics);
  if (!kinds) return;
  for (const Node& item : kinds->items()) {
    const auto text = [&](const char* key) -> std::string {
      const Node* value = item.find(key);
      if (value && value->is_string() && !value->as_string().empty()) return value->as_string();
      diagnostics.error(item.location(), "a kind needs the text \"" + std::string(key) + "\"");
      return "";
    };
    Kind kind{text("kind"), text("title"), text("namespace"), text("header"), text("product"), text("layer")};
    if (kind.layer != "base" && kind.layer != "engine" && kind.layer != "roux")
      diagnostics.error(item.location(), "layer must be base, engine or roux, got \"" + kind.layer + "\"");
    schemas.kinds.push_back(std::move(kind));
  }
}

void read_folder(const fs::path& folder, const std::string& kind, Schemas& schemas, Diagnostics& diagnostics) {
  std::vector<fs::path> paths;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Fragment>& fragments = schemas.fragments[kind];
  for (const fs::path& path : paths) {
    auto fragment =
        runner::registry::parse_fragment(kind, path.stem().string(), path.string(), read(path), diagnostics);
    if (fragment) fragments.push_back(std::move(*fragment));
  }
}

/// Every x-kind must name a kind, and every section key a fragment of its name.
void check_references(const Schemas& schemas, Diagnostics& diagnostics) {
  std::vector<std::string> kinds;
  for (const Kind& kind : schemas.kinds) kinds.push_back(kind.name);
  std::function<void(const Property&)> check = [&](const Property& property) {
    if (property.type == Property::Type::kComponent &&
        std::find(kinds.begin(), kinds.end(), property.kind) == kinds.end()) {
      const std::string near = runner::core::closest(property.kind, kinds);
      diagnostics.error(property.location, "no kind is called \"" + property.kind + "\"",
                        near.empty() ? "schemas/kinds.json lists them" : "did you mean \"" + near + "\"?");
    }
    if (property.type == Property::Type::kSection) {
      const auto& sections = schemas.of("section");
      const auto same = [&](const Fragment& fragment) { return fragment.name == property.name; };
      if (std::none_of(sections.begin(), sections.end(), same))
        diagnostics.error(property.location, "schemas/section/" + property.name + ".json is missing");
    }
    if (property.element) check(*property.element);
    for (const Property& member : property.properties) check(member);
  };
  for (const auto& [kind, fragments] : schemas.fragments)
    for (const Fragment& fragment : fragments)
      for (const Property& property : fragment.properties) check(property);
}

/// A common key beside a component's own would be read by both and meant by one.
void check_common(const Schemas& schemas, Diagnostics& diagnostics) {
  for (const Kind& kind : schemas.kinds)
    for (const Fragment& common : schemas.of("section")) {
      if (common.name != kind.name + "_common") continue;
      for (const Fragment& fragment : schemas.of(kind.name))
        for (const Property& property : fragment.properties)
          if (common.find(property.name))
            diagnostics.error(property.location, "the key \"" + property.name + "\" is common to every " + kind.name,
                              "schemas/section/" + common.name + ".json has it already");
    }
}

/// Every alias must lead to a key that is there, and must not hide one.
void check_aliases(const Schemas& schemas, const fs::path& path, Diagnostics& diagnostics) {
  Diagnostics found;
  const runner::registry::AliasTable table = runner::registry::parse_aliases(schemas.aliases_json, found);
  diagnostics.add_all(found);
  const runner::core::Location location{
      std::make_shared<runner::core::Source>(runner::core::Source{path.string(), "", {}}), 0, 0, 1};
  const auto section = [&](const std::string& name) -> const Fragment* {
    for (const Fragment& fragment : schemas.of("section"))
      if (fragment.name == name) return &fragment;
    return nullptr;
  };
  const auto in_kind = [&](const std::string& kind, const std::string& key) {
    if (key == "type") return true;
    for (const Fragment& fragment : schemas.of(kind))
      if (fragment.find(key)) return true;
    const Fragment* common = section(kind + "_common");
    return common && common->find(key);
  };
  const Fragment* top = section("recipe");
  if (!top) return;
  for (const runner::registry::Alias& alias : table.aliases) {
    const std::size_t dot = alias.path.find('.');
    const Property* property = top->find(runner::registry::section_of(alias.path));
    if (property != nullptr && alias.path.find('[') != std::string::npos) property = property->element.get();
    bool known = property != nullptr;
    if (known && dot != std::string::npos) {
      const std::string key = alias.path.substr(dot + 1);
      const Fragment* inner = section(property->name);
      known = property->type == Property::Type::kComponent ? in_kind(property->kind, key) : inner && inner->find(key);
    }
    if (!known)
      diagnostics.error(location,
                        "the alias " + alias.word + " leads to " + alias.path + ", which is no key of a recipe");
    for (const std::string& at : alias.at) {
      const Fragment* hidden = section(at.empty() ? "recipe" : at);
      if (hidden && hidden->find(alias.word))
        diagnostics.error(location,
                          "the alias " + alias.word + " hides a key of " + (at.empty() ? "the top level" : at));
    }
  }
}

Schemas read_schemas(const fs::path& root, Diagnostics& diagnostics) {
  Schemas schemas;
  read_kinds(root / "kinds.json", schemas, diagnostics);
  if (fs::exists(root / "aliases.json")) {
    schemas.aliases_json = read(root / "aliases.json");
    read_tree(root / "aliases.json", diagnostics);
  }
  if (fs::exists(root / "hashed_keys.json")) schemas.hashed_keys_json = read(root / "hashed_keys.json");
  for (const Kind& kind : schemas.kinds) read_folder(root / kind.name, kind.name, schemas, diagnostics);
  read_folder(root / "section", "section", schemas, diagnostics);
  check_references(schemas, diagnostics);
  check_common(schemas, diagnostics);
  if (!schemas.aliases_json.empty()) check_aliases(schemas, root / "aliases.json", diagnostics);
  return schemas;
}

/// The tables as the program will see them.
runner::registry::Registry registry_of(const Schemas& schemas) {
  runner::registry::Embedded embedded;
  embedded.kinds_json = schemas.kinds_json;
  embedded.aliases_json = schemas.aliases_json;
  for (const auto& [kind, fragments] : schemas.fragments)
    for (const Fragment& fragment : fragments)
      embedded.fragments.push_back({fragment.kind, fragment.name, fragment.text});
  return runner::registry::Registry(embedded);
}

void write_if_changed(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    const auto old = runner::core::read_file(path.string(), std::int64_t{1} << 30);
    if (old.ok() && old.value() == text) return;
  }
  fs::create_directories(path.parent_path());
  runner::core::write_file_atomic(path.string(), text).value();
}

/// The headers of components that are gone: whoever still includes one is told by the compiler.
void remove_stale(const fs::path& out, const Schemas& schemas, const Outputs& outputs) {
  for (const auto& [kind, fragments] : schemas.fragments) {
    if (!fs::is_directory(out / kind)) continue;
    std::vector<fs::path> stale;
    for (const auto& entry : fs::directory_iterator(out / kind)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".h" && !outputs.contains(kind + "/" + path.filename().string())) stale.push_back(path);
    }
    for (const fs::path& path : stale) fs::remove(path);
  }
}

int run(const fs::path& root, const fs::path& out) {
  Diagnostics diagnostics;
  Schemas schemas = read_schemas(root, diagnostics);
  Outputs outputs;
  if (!diagnostics.has_errors()) {
    const runner::registry::Registry registry = registry_of(schemas);
    outputs["schemas/recipe.schema.json"] = editor_schema(registry);
    write_hashed_keys((root / "hashed_keys.json").string(), registry, schemas, outputs, diagnostics);
  }
  for (const Kind& kind : schemas.kinds) {
    for (const Fragment& fragment : schemas.of(kind.name)) write_config_header(fragment, &kind, outputs, diagnostics);
    write_parsers(kind.name, schemas.of(kind.name), outputs);
    write_make_table(kind, schemas.of(kind.name), outputs);
  }
  for (const Fragment& fragment : schemas.of("section")) write_config_header(fragment, nullptr, outputs, diagnostics);
  write_parsers("section", schemas.of("section"), outputs);
  write_embedded(schemas, outputs);
  write_reference(schemas, outputs);
  if (!diagnostics.all().empty()) std::fputs(render(diagnostics).c_str(), stderr);
  if (diagnostics.has_errors()) return runner::core::kExitUsage;
  for (const auto& [name, text] : outputs) write_if_changed(out / name, text);
  remove_stale(out, schemas, outputs);
  return runner::core::kExitDone;
}

}  // namespace

const std::vector<Fragment>& Schemas::of(const std::string& kind) const {
  static const std::vector<Fragment> kNone;
  const auto found = fragments.find(kind);
  return found == fragments.end() ? kNone : found->second;
}

}  // namespace schemas::gen

int main(int argc, char** argv) {
  std::string root;
  std::string out;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--schemas") root = argv[i + 1];
    if (flag == "--out") out = argv[i + 1];
  }
  if (root.empty() || out.empty() || argc != 5) {
    std::fputs("usage: schema_gen --schemas DIR --out DIR\n", stderr);
    return runner::core::kExitUsage;
  }
  try {
    return schemas::gen::run(root, out);
  } catch (const runner::core::RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
