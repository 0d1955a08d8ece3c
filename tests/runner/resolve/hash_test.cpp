#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/former_values.h"
#include "runner/resolve/load.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;
using core::Node;
using registry::Registry;

const std::string kFixture = tests::source_dir() + "/tests/fixtures/format_1/";
constexpr const char* kKilledSwa = "killed-swa-1qjtrsebdnt";
constexpr const char* kKilledSwaHash = "06967e7dc541779c";

std::string text_of(const fs::path& path) { return core::read_file(path.string(), 1 << 20).value(); }

std::string resolved_path(const std::string& run) { return kFixture + "place/runs/" + run + "/resolved.json"; }

/// The hash of what a registry makes of a recorded recipe when it is read as a recipe.
std::string hash_of(const std::string& path, const std::vector<std::string>& sets = {},
                    const Registry& registry = Registry::builtin()) {
  recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({recipe::Override::Kind::kSet, set});
  core::Diagnostics diagnostics;
  const auto recipe = load_recipe(path, options, registry, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(recipe.has_value());
  return recipe->hash(registry);
}

/// A copy of schemas/, its generator, and the tables that a program built from it has.
class Schemas {
 public:
  Schemas() {
    fs::copy(fs::path(tests::source_dir()) / "schemas", dir_ / "schemas", fs::copy_options::recursive);
    generate();
  }

  void replace(const std::string& fragment, const std::string& text, const std::string& by) const {
    const fs::path path = dir_ / ("schemas/" + fragment);
    std::string json = text_of(path);
    const std::size_t at = json.find(text);
    REQUIRE(at != std::string::npos);
    core::write_file_atomic(path.string(), json.replace(at, text.size(), by)).value();
  }

  void add_key(const std::string& fragment, const std::string& key) const {
    replace(fragment, "\"properties\": {", "\"properties\": {\n" + key + ",");
  }

  void generate() const {
    const std::string command =
        tests::build_dir() + "/bin/schema_gen --schemas " + (dir_ / "schemas") + " --out " + (dir_ / "out");
    const int status = std::system(command.c_str());
    REQUIRE(WEXITSTATUS(status) == 0);
  }

  /// The target `reference`.
  void commit() const {
    fs::copy_file(dir_ / "out/schemas/hashed_keys.json", dir_ / "schemas/hashed_keys.json",
                  fs::copy_options::overwrite_existing);
  }

  const Registry& registry() {
    generate();
    texts_.clear();
    registry::Embedded embedded = registry::embedded_fragments();
    for (auto& fragment : embedded.fragments) {
      const std::string name = std::string(fragment.kind) + "/" + std::string(fragment.name) + ".json";
      fragment.json =
          *texts_.insert(texts_.end(), std::make_unique<std::string>(text_of(dir_ / ("schemas/" + name))))->get();
    }
    const Node keys = core::parse_json(text_of(dir_ / "out/schemas/hashed_keys.json")).value();
    texts_.push_back(std::make_unique<std::string>(core::to_json(*keys.find("later"), -1)));
    embedded.first_defaults_json = *texts_.back();
    registry_ = std::make_unique<Registry>(embedded);
    return *registry_;
  }

 private:
  tests::TempDir dir_;
  std::vector<std::unique_ptr<std::string>> texts_;  ///< the registry refers to them
  std::unique_ptr<Registry> registry_;
};

}  // namespace

TEST_CASE("a run's recipe has its recorded hash, as it was settled then and as it is read today", "[resolve][hash]") {
  const Node expected = core::parse_json(text_of(kFixture + "expected.json")).value();
  const auto& runs = expected.find("runs")->entries();
  CHECK(runs.size() == 12);
  for (const Node::Entry& run : runs) {
    INFO(run.key);
    const std::string name = run.key + "-" + run.value.find("id")->as_string();
    const std::string folder = kFixture + "place/runs/" + name;
    const std::string& hash = run.value.find("recipe_hash")->as_string();
    Recipe recorded;
    recorded.root = read_recorded_recipe(folder, resolved_path(name)).value();
    CHECK(recorded.hash() == hash);
    // Only these two were started with a --set that counts.
    std::vector<std::string> sets;
    if (run.key == "finished-a") sets = {"seed=11"};
    if (run.key == "finished-b") sets = {"seed=12"};
    const std::string written = folder + (fs::exists(folder + "/recipe.yaml") ? "/recipe.yaml" : "/recipe.json");
    CHECK(hash_of(written, sets) == hash);
  }
}

TEST_CASE("a key that the first release lacks counts where it is not its first default", "[resolve][hash]") {
  const std::string path = resolved_path(kKilledSwa);
  CHECK(hash_of(path, {"compile.cuda_graphs=false"}) == kKilledSwaHash);
  CHECK(hash_of(path, {"loader.pin_memory=null"}) == kKilledSwaHash);
  CHECK(hash_of(path, {"loader.pin_memory=false"}) != kKilledSwaHash);
  CHECK(hash_of(path, {"compile.cuda_graphs=true", "device=cuda"}) != hash_of(path, {"device=cuda"}));
  // A key of the first release counts with its default, too; the name and the launch never do.
  CHECK(hash_of(path, {"loader.drop_last=true"}) != kKilledSwaHash);
  CHECK(hash_of(path, {"run_name=other", "output_dir=elsewhere", "launch.timeout=1h"}) == kKilledSwaHash);
}

TEST_CASE("new keys change no hash, a default that is changed later does", "[resolve][hash]") {
  const std::string path = resolved_path(kKilledSwa);
  Schemas schemas;
  const auto hash = [&](const std::vector<std::string>& sets = {}) { return hash_of(path, sets, schemas.registry()); };
  CHECK(hash() == kKilledSwaHash);

  // One in a section, one in a component, and a section with a component as its default.
  schemas.add_key("section/loader.json", R"("lanes": {"type": "integer", "default": 1, "description": "D."})");
  schemas.add_key("optimizer/sgd.json", R"("damping": {"type": "number", "default": 0, "description": "D."})");
  schemas.add_key("section/recipe.json",
                  R"("second": {"x-kind": "lr_scheduler", "default": {"type": "linear"}, "description": "D."})");
  CHECK(hash() == kKilledSwaHash);
  CHECK(hash({"loader.lanes=2"}) != kKilledSwaHash);
  CHECK(hash({"optimizer.damping=0.5"}) != kKilledSwaHash);
  CHECK(hash({"optimizer.damping=0.0"}) == kKilledSwaHash);

  schemas.commit();
  const std::string with_two = hash({"loader.lanes=2"});
  schemas.replace("section/loader.json", R"("integer", "default": 1,)", R"("integer", "default": 2,)");
  CHECK(hash() == with_two);
  CHECK(hash({"loader.lanes=1"}) == kKilledSwaHash);
  schemas.replace("optimizer/sgd.json", R"("number", "default": 0,)", R"("number", "default": 0.5,)");
  CHECK(hash({"loader.lanes=1"}) != kKilledSwaHash);
}

TEST_CASE("a key whose default became null counts as its former default where it is unset", "[resolve][hash]") {
  const std::string path = resolved_path(kKilledSwa);
  const std::string unset = hash_of(path, {"logging_steps=null"});
  CHECK(unset == hash_of(path, {"logging_steps=10"}));
  CHECK(unset != hash_of(path, {"logging_steps=9"}));
}

TEST_CASE("what is unset is no change where the former default is recorded", "[resolve][hash]") {
  const auto with = [](const std::string& value) {
    core::Diagnostics diagnostics;
    recipe::ComposeOptions options;
    options.overrides.push_back({recipe::Override::Kind::kSet, "logging_steps=" + value});
    return load_recipe(resolved_path(kKilledSwa), options, Registry::builtin(), diagnostics).value();
  };
  Recipe unset = with("null");
  const Recipe ten = with("10"), nine = with("9");
  CHECK(list_changes(ten.root, unset.root).empty());
  CHECK(former_values(unset.root, nine.root).entries().empty());
  CHECK(former_values(unset.root, unset.root).entries().empty());
  CHECK(former_values(nine.root, ten.root).entries().empty());
  REQUIRE(list_changes(nine.root, unset.root).size() == 1);
  CHECK(list_changes(nine.root, unset.root)[0].after_text() == "null");
  REQUIRE(list_changes(unset.root, ten.root).size() == 1);
  CHECK(list_changes(unset.root, ten.root)[0].path == "logging_steps");
  CHECK_FALSE(unset.logging_steps.has_value());
  unset.take_values(former_values(unset.root, ten.root));
  CHECK(unset.logging_steps == 10);
  CHECK(unset.resolved_json() == ten.resolved_json());
}

TEST_CASE("x-hash leaves a key out", "[resolve][hash]") {
  Schemas schemas;
  schemas.replace("section/loader.json", R"("drop_last": {)", R"("drop_last": { "x-hash": false,)");
  const Registry& registry = schemas.registry();
  const std::string path = resolved_path(kKilledSwa);
  CHECK(hash_of(path, {"loader.drop_last=true"}, registry) == hash_of(path, {}, registry));
  CHECK(hash_of(path, {}, registry) != kKilledSwaHash);
}

}  // namespace runner::resolve
