#include "tests/support/blocks.h"

#include <catch2/catch.hpp>
#include <memory>

#include "runner/recipe/read.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

namespace tests {

using namespace runner;

core::Node block(const std::string& kind, const std::string& text) {
  core::Diagnostics diagnostics;
  const auto source = std::make_shared<core::Source>(core::Source{kind + ".yaml", text, core::Source::Kind::kFile});
  const auto node = recipe::read_yaml(source, {}, diagnostics);
  core::Node checked;
  if (node) checked = registry::validate_component(*node, kind, kind, registry::Registry::builtin(), diagnostics);
  INFO(core::render(diagnostics));
  REQUIRE_FALSE(diagnostics.has_errors());
  return checked;
}

}  // namespace tests
