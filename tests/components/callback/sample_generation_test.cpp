#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <catch2/catch.hpp>

#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "tests/components/callback/fake_run.h"
#include "tests/components/data/building.h"
#include "tests/support/blocks.h"
#include "tests/support/folder.h"

using tests::build_callback;
using tests::FakeRun;

namespace {

/// Text, a small model of it (dropout on), and a run that holds both.
struct Scene {
  Scene() {
    folder.write("text.txt", "the quick brown fox jumps over the lazy dog");
    data = tests::good_data("{type: text, path: text.txt, max_seq_len: 8}");
    at::manual_seed(1);
    const auto node = tests::block("model", "{type: gpt, n_layer: 1, n_head: 2, n_embd: 16, dropout: 0.5}");
    runner::core::Diagnostics diagnostics;
    components::part::DrawnWeights weights;
    model = components::model::build(node, {data->signature(), weights, node, diagnostics});
    REQUIRE(model != nullptr);
    model->set_training(true);
  }

  /// Texts of a training of `steps` steps, two to an epoch.
  std::vector<std::pair<std::string, std::string>> texts(const std::string& keys, int steps) const {
    FakeRun run(*model, *data);
    const auto built = build_callback("{type: sample_generation, max_new_tokens: 4, " + keys + "}", data->signature());
    INFO(built.messages);
    REQUIRE(built.callback != nullptr);
    for (run.step_ = 1; run.step_ <= steps; ++run.step_) {
      run.epoch_ = static_cast<double>(run.step_) / 2;
      built.callback->on_step_end(run);
    }
    run.step_ = steps;
    built.callback->on_train_end(run);
    return run.texts_;
  }

  tests::Folder folder;
  std::shared_ptr<components::data::Dataset> data;
  std::shared_ptr<components::model::Model> model;
};

}  // namespace

TEST_CASE("samples are written as often as asked, and once at the end", "[callback][sample_generation]") {
  const Scene scene;
  struct Case {
    const char* keys;
    int steps;
    std::size_t texts;
  };
  static constexpr Case cases[] = {
      {"temperature: 1", 6, 1}, {"every: 3", 6, 2},   {"every: 4", 6, 2},
      {"every: 1ep", 6, 3},     {"every: 2ep", 6, 2}, {"every: 3, num_samples: 2", 6, 4},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.keys) { CHECK(scene.texts(c.keys, c.steps).size() == c.texts); }
  }
}

TEST_CASE("a sample continues its prompt, also past the context", "[callback][sample_generation]") {
  const Scene scene;
  const auto texts = scene.texts("prompt: 'the quick brown fox', num_samples: 2", 1);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].first == "sample/1");
  CHECK(texts[1].first == "sample/2");
  for (const auto& [name, text] : texts) CHECK(text.rfind("the quick brown fox", 0) == 0);
  CHECK(texts[0].second != texts[1].second);
}

TEST_CASE("the likeliest token is the one of temperature 0 and of top_k 1", "[callback][sample_generation]") {
  const Scene scene;
  const auto cold = scene.texts("temperature: 0", 1);
  CHECK(cold == scene.texts("temperature: 0", 3));
  CHECK(cold == scene.texts("temperature: 2, top_k: 1", 1));
  CHECK(cold == scene.texts("temperature: 1e-9", 1));
  CHECK(cold == scene.texts("temperature: 1e-300", 1));
  CHECK(scene.texts("temperature: 100", 1) != scene.texts("temperature: 100", 2));
  CHECK(scene.texts("top_k: 1000", 1) == scene.texts("temperature: 0.8", 1));
}

TEST_CASE("a sample leaves the training as it was", "[callback][sample_generation]") {
  const Scene scene;
  const auto next_draw = [&](bool sample) {
    at::manual_seed(3);
    if (sample) scene.texts("temperature: 1, every: 1", 2);
    return at::rand({1}).item<float>();
  };
  CHECK(next_draw(true) == next_draw(false));
  components::TensorMap first, second;  // dropout is on again: two passes differ
  scene.data->fetch(std::vector<std::int64_t>{0}, first);
  scene.data->fetch(std::vector<std::int64_t>{0}, second);
  scene.model->forward(first);
  scene.model->forward(second);
  CHECK_FALSE(at::equal(first.at("output"), second.at("output")));
}

TEST_CASE("a resumed run does not write a sample twice", "[callback][sample_generation]") {
  const Scene scene;
  FakeRun run(*scene.model, *scene.data);
  const std::string recipe = "{type: sample_generation, max_new_tokens: 1, every: 2}";
  const auto before = build_callback(recipe, scene.data->signature()).callback;
  run.step_ = 2;
  before->on_step_end(run);
  const auto after = build_callback(recipe, scene.data->signature()).callback;
  tests::hand_over_state(*before, *after);
  run.step_ = 3;
  after->on_step_end(run);
  CHECK(run.texts_.size() == 1);
}

TEST_CASE("ids that are not text are refused before the first step", "[callback][sample_generation]") {
  const Scene scene;
  const tests::Folder folder;
  folder.write("ids.u16", std::string(64, '\1'));
  const auto ids = tests::good_data("{type: tokens, path: ids.u16, vocab_size: 300, max_seq_len: 8}");
  CHECK(tests::compatibility_errors("{type: sample_generation}", *scene.model, *ids) ==
        "callback.yaml:1:1: error: sample_generation continues text, but the ids of data.train are not text\n"
        "  hint: remove it, or train on data such as {type: text}\n");
  CHECK(tests::compatibility_errors("{type: sample_generation}", *scene.model, *scene.data).empty());
}

TEST_CASE("samples need text, and an interval of steps or epochs", "[callback][sample_generation]") {
  const auto messages = [](const std::string& text, std::int64_t vocab_size) {
    components::BatchSpec data;
    data.tensors = {{components::kInput, components::Dtype::kInt64, {components::kBatch, components::kTime}, false}};
    data.tensors[0].vocab_size = vocab_size;
    return build_callback(text, data).messages;
  };
  CHECK(messages("{type: sample_generation}", 0) ==
        "callback.yaml:1:1: error: sample_generation continues text, but the training set is not text\n"
        "  hint: remove it, or train on data such as {type: text}\n");
  CHECK(messages("{type: sample_generation, every: 30min}", 256) ==
        "callback.yaml:1:34: error: every is 30min, but samples are written at intervals of steps or epochs\n"
        "  hint: write an integer for steps, or `1ep`\n");
}
