#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

struct NewFlags {
  std::string model, data, val, task;
  std::vector<std::string> columns;  ///< COLUMN=FIELD, several separated by commas
  std::string output = "recipe.yaml";
  bool force = false;
};

/// `roux new`: looks at a model and at records, and writes a recipe that trains the one on the others.
void write_new_recipe(Session& session, const NewFlags& flags);

}  // namespace runner::cli
