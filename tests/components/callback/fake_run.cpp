#include "tests/components/callback/fake_run.h"

#include <ATen/core/Tensor.h>

#include <catch2/catch.hpp>

#include "runner/core/picture/canvas.h"
#include "runner/recipe/read.h"
#include "tests/support/blocks.h"

namespace tests {
namespace {

using runner::core::Node;

class Written final : public runner::core::StateWriter {
 public:
  void value(std::string_view name, Node value) override { node_.set(name, std::move(value)); }
  void tensor(std::string_view, const at::Tensor&) override { FAIL("no tensor was expected"); }
  Node node_ = Node::mapping();
};

class Read final : public runner::core::StateReader {
 public:
  explicit Read(Node node) : node_(std::move(node)) {}
  const Node& value(std::string_view name) const override {
    REQUIRE(has(name));
    return *node_.find(name);
  }
  bool has(std::string_view name) const override { return node_.find(name) != nullptr; }
  at::Tensor tensor(std::string_view) const override { throw std::runtime_error("no tensor was expected"); }

 private:
  Node node_;
};

}  // namespace

void FakeRun::log_image(const std::string& name, const std::string& caption, const runner::core::Canvas& image) {
  images_.push_back(name + ": " + caption + ", " + std::to_string(image.width()) + " x " +
                    std::to_string(image.height()));
}

BuiltCallback build_callback(const std::string& text, const components::BatchSpec& data,
                             const std::vector<std::string>& metrics) {
  const Node node = block("callback", text);
  runner::core::Diagnostics diagnostics;
  auto callback = components::callback::build(node, {node, diagnostics, data, metrics});
  CHECK((callback == nullptr) == diagnostics.has_errors());
  return {callback, runner::core::render(diagnostics, {.color = false, .excerpts = false})};
}

std::string compatibility_errors(const std::string& text, const components::model::Model& model,
                                 const components::data::Dataset& data) {
  const Node node = block("callback", text);
  runner::core::Diagnostics diagnostics;
  const std::vector<std::string> metrics = {"loss", "val/loss"};
  const auto callback = components::callback::build(node, {node, diagnostics, data.signature(), metrics});
  REQUIRE(callback != nullptr);
  callback->check_compatibility(model, data, node, diagnostics);
  return runner::core::render(diagnostics, {.color = false, .excerpts = false});
}

void hand_over_state(const runner::core::Stateful& from, runner::core::Stateful& to) {
  Written written;
  from.save_state(written);
  runner::core::Diagnostics diagnostics;
  const auto source = std::make_shared<runner::core::Source>(
      runner::core::Source{"trainer.json", to_json(written.node_), runner::core::Source::Kind::kFile});
  const auto node = runner::recipe::read_json(source, {}, diagnostics);
  REQUIRE(node.has_value());
  to.load_state(Read(*node));
}

}  // namespace tests
