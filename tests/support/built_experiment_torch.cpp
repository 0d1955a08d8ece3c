#include "tests/support/built_experiment_torch.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <utility>

#include "components/tensors.h"
#include "runner/registry/load.h"
#include "runner/registry/registry.h"
#include "tests/support/folder.h"

namespace tests {

Built build_recipe(const std::string& text, const std::vector<std::string>& sets) {
  const Folder folder;
  folder.write("recipe.yaml", text);
  std::string corpus;
  for (int i = 0; i < 2000; ++i) corpus += static_cast<char>('a' + i * i % 23);
  folder.write("corpus.txt", corpus);
  runner::core::Diagnostics diagnostics;
  runner::recipe::ComposeOptions options;
  for (const std::string& set : sets) options.overrides.push_back({runner::recipe::Override::Kind::kSet, set});
  const auto recipe =
      runner::registry::load_recipe("recipe.yaml", options, runner::registry::Registry::builtin(), diagnostics);
  Built built;
  if (recipe) built.experiment = runner::train::build_experiment(*recipe, {}, diagnostics);
  built.messages = runner::core::render(diagnostics, {});
  return built;
}

std::unique_ptr<runner::train::Experiment> experiment_of(const std::string& recipe,
                                                         const std::vector<std::string>& sets) {
  Built built = build_recipe(recipe, sets);
  INFO(built.messages);
  REQUIRE(built.experiment != nullptr);
  CHECK(built.messages == "");
  return std::move(built.experiment);
}

bool same_weights(const runner::train::Experiment& a, const runner::train::Experiment& b) {
  const auto left = a.model->parameters(), right = b.model->parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].tensor.nbytes() != right[i].tensor.nbytes()) return false;
    if (std::memcmp(left[i].tensor.const_data_ptr(), right[i].tensor.const_data_ptr(), left[i].tensor.nbytes()) != 0) {
      return false;
    }
  }
  return left.size() == right.size();
}

}  // namespace tests
