// Every recipe in tests/golden/bad is wrong; beside it stands the whole of what `roux validate` says about it.
// UPDATE_GOLDEN=1 rewrites the expectations; then read the diff.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <regex>

#include "runner/core/platform/files.h"
#include "runner/resolve/corrections.h"
#include "runner/resolve/load.h"
#include "tests/support/paths.h"

using runner::core::Diagnostics;

namespace {

// Recipes are named relative to their folder, so that messages are the same everywhere.
class InFolder {
 public:
  explicit InFolder(const std::string& folder) : before_(::get_current_dir_name()) {
    REQUIRE(::chdir(folder.c_str()) == 0);
  }
  ~InFolder() {
    if (::chdir(before_) != 0) std::abort();
    std::free(before_);
  }

 private:
  char* before_;
};

/// A component that is added changes how many there are, and must not change these files.
std::string without_counts(const std::string& told) {
  static const std::regex count("shows all [0-9]+");
  return std::regex_replace(told, count, "shows all N");
}

}  // namespace

TEST_CASE("what a hint says to write instead of a word is no error", "[golden][recipe][hints]") {
  const InFolder folder(tests::source_dir() + "/tests/golden/bad");
  int tried = 0;
  for (const std::string& path : runner::core::glob("*.{yaml,json}")) {
    const std::string text = runner::core::read_file(path, 4 << 20).value();
    const auto check = [&](const std::string& recipe) {
      Diagnostics told;
      const auto source = std::make_shared<const runner::core::Source>(
          runner::core::Source{path, recipe, runner::core::Source::Kind::kFile});
      runner::resolve::load_recipe_text(source, {}, runner::registry::Registry::builtin(), told);
      return told;
    };
    const Diagnostics told = check(text);
    for (const auto& correction : runner::resolve::corrections_of(told, path)) {
      ++tried;
      INFO(correction.at.text() << ": " << correction.wrong << " becomes " << correction.right);
      const auto fixed = runner::resolve::corrected(text, correction);
      REQUIRE(fixed);
      const Diagnostics after = check(*fixed);
      INFO(render(after));
      // Where the word alone does not mend it, the next error is another one.
      const auto has = [](const Diagnostics& all, const std::string& message) {
        return std::any_of(all.all().begin(), all.all().end(), [&](const auto& one) { return one.message == message; });
      };
      for (const auto& one : told.all()) {
        if (one.location.line == correction.at.line && one.location.column == correction.at.column)
          CHECK_FALSE(has(after, one.message));
      }
    }
  }
  CHECK(tried >= 40);
}

TEST_CASE("the errors of a wrong recipe are reported", "[golden][recipe]") {
  const InFolder folder(tests::source_dir() + "/tests/golden/bad");
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  const auto recipes = runner::core::glob("*.{yaml,json,jsonnet,toml}");
  CHECK(recipes.size() >= 200);
  for (const std::string& path : recipes) {
    DYNAMIC_SECTION(path) {
      Diagnostics diagnostics;
      const auto recipe = runner::resolve::load_recipe(path, {}, runner::registry::Registry::builtin(), diagnostics);
      CHECK_FALSE(recipe);
      CHECK(diagnostics.has_errors());
      const std::string expected_path = path.substr(0, path.rfind('.')) + ".expected";
      const std::string told = without_counts(render(diagnostics));
      if (update) runner::core::write_file_atomic(expected_path, told).value();
      CHECK(told == runner::core::read_file(expected_path, 1 << 20).value());
    }
  }
}
