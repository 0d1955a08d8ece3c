// Drives the built schema_gen on small trees of fragments.

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "runner/core/platform/files.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;
using tests::TempDir;

namespace {

constexpr const char* kKinds =
    R"([{"kind": "lr_scheduler", "title": "Schedulers", "namespace": "components::lr_scheduler",
  "header": "components/lr_scheduler/lr_scheduler.h", "product": "Scheduler", "layer": "engine"}])";
constexpr const char* kStep = R"({
  "title": "Steps",
  "description": "Falls every `every` steps.",
  "x-source": "A paper",
  "properties": {
    "every": {"type": "integer", "minimum": 1, "x-unit": "optimizer steps", "description": "Steps of one tread."},
    "factor": {"type": "number", "default": 0.1, "description": "Of the tread before."},
    "shape": {"type": "string", "enum": ["sharp", "round-off"], "default": "sharp", "description": "Of an edge."},
    "floor": {"type": "number", "default": null, "description": "Lowest factor."},
    "register": {"type": "integer", "default": 3, "description": "A word of C++."},
    "at": {"type": "array", "items": {"type": "integer"}, "default": [1, 2], "x-single": true, "description": "Edges."}
  },
  "examples": [{"type": "step", "every": 10}]
})";

class Tree {
 public:
  Tree() {
    put("kinds.json", kKinds);
    put("lr_scheduler/step.json", kStep);
  }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(schemas() + "/" + name).parent_path());
    runner::core::write_file_atomic(schemas() + "/" + name, text).value();
  }

  void remove(const std::string& name) const { fs::remove(schemas() + "/" + name); }

  /// Exit status; what was said is in `said`, with the folder's own name taken out.
  int generate(std::string* said = nullptr) const {
    const std::string command = tests::build_dir() + "/bin/schema_gen --schemas " + schemas() + " --out " +
                                (dir_ / "out") + " 2>" + (dir_ / "said");
    const int status = std::system(command.c_str());
    std::string text = runner::core::read_file(dir_ / "said", 1 << 20).value();
    for (std::size_t at; (at = text.find(schemas() + "/")) != std::string::npos;) text.erase(at, schemas().size() + 1);
    if (said) *said = text;
    return WEXITSTATUS(status);
  }

  std::string out(const std::string& name) const {
    return runner::core::read_file(dir_ / ("out/" + name), 1 << 20).value();
  }
  fs::file_time_type written(const std::string& name) const { return fs::last_write_time(dir_ / ("out/" + name)); }
  bool has(const std::string& name) const { return fs::exists(dir_ / ("out/" + name)); }

 private:
  std::string schemas() const { return dir_ / "schemas"; }
  TempDir dir_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a fragment becomes a Config, a parser and a row of the table", "[schema_gen]") {
  const Tree tree;
  std::string said;
  REQUIRE(tree.generate(&said) == 0);
  CHECK(said == "");
  const std::string header = tree.out("lr_scheduler/step.h");
  CHECK(contains(header, R"(namespace components::lr_scheduler::step {

enum class Shape { kSharp, kRoundOff };
std::string_view to_text(Shape value);

/// Falls every `every` steps.
/// Source: A paper
struct Config {
  std::int64_t every{};  ///< Steps of one tread. [optimizer steps]
  double factor = 0.1;  ///< Of the tread before.
  Shape shape = Shape::kSharp;  ///< Of an edge.
  std::optional<double> floor;  ///< Lowest factor.
  std::int64_t register_ = 3;  ///< A word of C++.
  std::vector<std::int64_t> at{1, 2};  ///< Edges.
};
)"));
  CHECK(contains(header, "std::shared_ptr<Scheduler> make(const Config& config, const Inputs& inputs);"));
  CHECK(
      contains(tree.out("base/configs_lr_scheduler.cpp"), "config.every = read_integer(required(block, \"every\"));"));
  CHECK(contains(tree.out("base/configs_lr_scheduler.cpp"),
                 "if (const Node* value = given(block, \"register\")) config.register_ = read_integer(*value);"));
  CHECK(contains(tree.out("engine/make_lr_scheduler.cpp"), "return step::make(step::parse_config(block), inputs);"));
  CHECK(contains(tree.out("base/fragments.cpp"), kStep));
  CHECK(contains(tree.out("reference/lr_scheduler.md"),
                 "| `every` | integer, at least 1; optimizer steps | **required** | Steps of one tread. |\n"));
}

TEST_CASE("a fragment that is removed takes its header and its row along", "[schema_gen]") {
  const Tree tree;
  tree.put("lr_scheduler/flat.json", R"({"title": "F", "description": "D.", "examples": ["flat"]})");
  REQUIRE(tree.generate() == 0);
  CHECK(tree.has("lr_scheduler/flat.h"));
  tree.remove("lr_scheduler/flat.json");
  REQUIRE(tree.generate() == 0);
  CHECK_FALSE(tree.has("lr_scheduler/flat.h"));
  CHECK(tree.has("lr_scheduler/step.h"));
  CHECK_FALSE(contains(tree.out("engine/make_lr_scheduler.cpp"), "flat"));
}

TEST_CASE("a text that stays the same is not written again", "[schema_gen]") {
  const Tree tree;
  REQUIRE(tree.generate() == 0);
  const auto header = tree.written("lr_scheduler/step.h");
  const auto table = tree.written("base/fragments.cpp");
  tree.put("lr_scheduler/flat.json", R"({"title": "F", "description": "D.", "examples": ["flat"]})");
  REQUIRE(tree.generate() == 0);
  CHECK(tree.written("lr_scheduler/step.h") == header);
  CHECK(tree.written("base/fragments.cpp") != table);
  CHECK(contains(tree.out("engine/make_lr_scheduler.cpp"), "{\"flat\", "));
}

TEST_CASE("what cannot become C++ or leads nowhere is refused, and nothing is written", "[schema_gen]") {
  struct Case {
    const char* name;
    const char* file;
    std::string text;
    const char* said;
  };
  const auto with_key = [](const std::string& key, const std::string& property) {
    return R"({"title": "T", "description": "D.", "examples": ["bad"],
 "properties": {")" +
           key + "\": " + property + "}}";
  };
  const Case cases[] = {
      {"two words of one enumerator", "lr_scheduler/bad.json",
       with_key("mode", R"({"type": "string", "enum": ["a-b", "a_b"], "description": "K."})"),
       R"(lr_scheduler/bad.json:2:17: error: the word "a_b" of mode makes no enumerator of its own
    2 |  "properties": {"mode": {"type": "string", "enum": ["a-b", "a_b"], "description": "K."}}}
      |                 ^~~~~~
  hint: choose another word; the name goes into generated C++
)"},
      {"an unknown kind", "lr_scheduler/bad.json",
       with_key("inner", R"({"x-kind": "lr_schedule", "description": "K."})"),
       R"(lr_scheduler/bad.json:2:17: error: no kind is called "lr_schedule"
    2 |  "properties": {"inner": {"x-kind": "lr_schedule", "description": "K."}}}
      |                 ^~~~~~~
  hint: did you mean "lr_scheduler"?
)"},
      {"a section that is not there", "section/recipe.json",
       with_key("loader", R"({"x-kind": "section", "description": "K."})"),
       R"(section/recipe.json:2:17: error: schemas/section/loader.json is missing
    2 |  "properties": {"loader": {"x-kind": "section", "description": "K."}}}
      |                 ^~~~~~~~
)"},
      {"a common key twice", "section/lr_scheduler_common.json",
       with_key("every", R"({"type": "number", "description": "K."})"),
       R"(lr_scheduler/step.json:6:5: error: the key "every" is common to every lr_scheduler
    6 |     "every": {"type": "integer", "minimum": 1, "x-unit": "optimizer steps", "description": "Steps of...
      |     ^~~~~~~
  hint: schemas/section/lr_scheduler_common.json has it already
)"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const Tree tree;
      tree.put(c.file, c.text);
      std::string said;
      CHECK(tree.generate(&said) == 2);
      CHECK(said == c.said);
      CHECK_FALSE(tree.has("lr_scheduler/step.h"));
    }
  }
}

TEST_CASE("a section of a section is a Config of its own", "[schema_gen]") {
  const Tree tree;
  tree.put("section/loader.json", R"({"title": "L", "description": "D.", "properties": {
    "shuffle": {"type": "boolean", "default": true, "description": "S."}}})");
  tree.put("section/recipe.json", R"({"title": "T", "description": "D.", "properties": {
    "loader": {"x-kind": "section", "default": {}, "description": "L."},
    "lr_scheduler": {"x-kind": "lr_scheduler", "description": "L."}}})");
  std::string said;
  REQUIRE(tree.generate(&said) == 0);
  const std::string header = tree.out("section/recipe.h");
  CHECK(contains(header, "namespace runner::sections::loader {\nstruct Config;\n}\n"));  // its header is its readers'
  CHECK(contains(header, "  runner::registry::Boxed<runner::sections::loader::Config> loader;  ///< L.\n"));
  CHECK(contains(header, "  runner::core::Node lr_scheduler{};  ///< L.\n"));
  CHECK(contains(tree.out("base/configs_section.cpp"),
                 "config.loader = runner::sections::loader::parse_config(*value);\n"));
}

TEST_CASE("an alias must lead to a key and hide none", "[schema_gen]") {
  const Tree tree;
  tree.put("section/recipe.json", R"({"title": "T", "description": "D.", "properties": {
    "seed": {"type": "integer", "default": 1, "description": "S."},
    "lr_scheduler": {"x-kind": "lr_scheduler", "description": "L."}}})");
  tree.put("aliases.json", R"({"aliases": [
    {"word": "tread", "at": [""], "path": "lr_scheduler.every"},
    {"word": "step", "at": [""], "path": "lr_scheduler.evry"},
    {"word": "seed", "at": [""], "path": "lr_scheduler.every"}], "foreign": []})");
  std::string said;
  CHECK(tree.generate(&said) == 2);
  CHECK(said ==
        "aliases.json: error: the alias step leads to lr_scheduler.evry, which is no key of a recipe\n"
        "aliases.json: error: the alias seed hides a key of the top level\n");
}

TEST_CASE("a new key is listed with its first default, which stays", "[schema_gen]") {
  const Tree tree;
  std::string said;
  tree.put("hashed_keys.json", R"({"always": {"lr_scheduler/step": ["every", "shape"]},
    "later": {"lr_scheduler/step": {"factor": 0.5}}})");
  REQUIRE(tree.generate(&said) == 0);
  CHECK(said == "");
  const std::string keys = tree.out("schemas/hashed_keys.json");
  CHECK(contains(keys, R"("lr_scheduler/step": ["every", "shape"])"));
  CHECK(contains(keys, R"("lr_scheduler/step": {"factor": 0.5, "floor": null, "register": 3, "at": [1, 2]})"));
  CHECK(contains(tree.out("base/fragments.cpp"), R"({"lr_scheduler/step": {"factor": 0.5, "floor": null)"));
  tree.put("hashed_keys.json", keys);
  REQUIRE(tree.generate() == 0);
  CHECK(tree.out("schemas/hashed_keys.json") == keys);
}

TEST_CASE("a listed key that no fragment has is refused", "[schema_gen]") {
  const Tree tree;
  tree.put("hashed_keys.json", R"({"always": {"lr_scheduler/step": ["every", "factr"]},
    "later": {"lr_scheduler/stair": {"width": 1}}})");
  std::string said;
  CHECK(tree.generate(&said) == 2);
  CHECK(said == R"(hashed_keys.json:1:44: error: lr_scheduler/step has no key "factr"
    1 | {"always": {"lr_scheduler/step": ["every", "factr"]},
      |                                            ^~~~~~~
  hint: rename a key here too; remove it when it is gone
hashed_keys.json:2:38: error: lr_scheduler/stair has no key "width"
    2 |     "later": {"lr_scheduler/stair": {"width": 1}}}
      |                                      ^~~~~~~
  hint: rename a key here too; remove it when it is gone
)");
}
