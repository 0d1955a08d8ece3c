#include "runner/registry/boxed.h"

#include <catch2/catch.hpp>
#include <string>

namespace {

using runner::registry::Boxed;

struct Section;
struct Recipe {
  Boxed<Section> section;
  Boxed<Section> absent{nullptr};
};

// Section is not known here.
Recipe copy(const Recipe& recipe) { return recipe; }
void assign(Recipe& to, const Recipe& from) { to = from; }

struct Section {
  std::string word;
};

}  // namespace

TEST_CASE("a boxed value is copied, and an assigned one keeps its address", "[registry][boxed]") {
  Recipe recipe{Boxed(Section{"first"})};
  const Recipe before = copy(recipe);
  const Section* const address = &*recipe.section;
  recipe.section = Section{"second"};
  CHECK(recipe.section->word == "second");
  CHECK(&*recipe.section == address);
  CHECK(before.section->word == "first");

  assign(recipe, before);
  recipe.section->word = "third";
  CHECK(before.section->word == "first");
}

TEST_CASE("a boxed value may be absent", "[registry][boxed]") {
  Recipe recipe{Boxed(Section{"first"})};
  CHECK(recipe.section);
  CHECK_FALSE(copy(recipe).absent);
  recipe.absent = Section{"here"};
  CHECK(copy(recipe).absent->word == "here");
}
