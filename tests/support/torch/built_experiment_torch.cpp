#include "tests/support/torch/built_experiment_torch.h"

#include <catch2/catch.hpp>
#include <utility>

#include "tests/support/folder.h"

namespace tests {

Built build_recipe(const std::string& text, const std::vector<std::string>& sets) {
  const Folder folder;
  folder.write("recipe.yaml", text);
  std::string corpus;
  for (int i = 0; i < 2000; ++i) corpus += static_cast<char>('a' + i * i % 23);
  folder.write("corpus.txt", corpus);
  return build_recipe_file(sets);
}

std::unique_ptr<runner::train::Experiment> experiment_of(const std::string& recipe,
                                                         const std::vector<std::string>& sets) {
  Built built = build_recipe(recipe, sets);
  INFO(built.messages);
  REQUIRE(built.experiment != nullptr);
  CHECK(built.messages == "");
  return std::move(built.experiment);
}

}  // namespace tests
