// Beam search, and tokens that are left out, against what Transformers generates. tests/parity/cases/beams.py recorded
// it.

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/generation/generator.h"
#include "components/model/model.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/diagnostics.h"
#include "runner/train/experiment/experiment.h"
#include "tests/support/paths.h"
#include "tests/support/torch/built_experiment_torch.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"

namespace {

using components::generation::BeamOptions;
using components::generation::End;
using components::generation::Options;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

constexpr std::int64_t kNumBeams = 4, kNewTokens = 30;  // where the settings have no others

Json read_recorded() {
  return Json::parse(std::ifstream(tests::source_dir() + "/tests/components/generation/recorded/beams.json"));
}

std::shared_ptr<components::model::Model> load(const std::string& name) {
  const std::string folder = tests::source_dir() + "/tests/parity/models/" + name;
  const auto experiment = tests::experiment_of("init_from: " + folder + "\ndata: {train: {type: ids, path: " + folder +
                                               "/ids.jsonl}}\noptimizer: {type: sgd, lr: 1.0}\n"
                                               "training: {max_steps: 1, micro_batch_size: 1}\n");
  const runner::resolve::Recipe& recipe = experiment->recipe;
  runner::core::Diagnostics diagnostics;
  const auto weights = runner::checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root,
                                                          *experiment->model, recipe.output_dir, diagnostics);
  INFO(runner::core::render(diagnostics));
  REQUIRE(weights);
  runner::checkpoint::load_init_weights(*weights, *experiment->model);
  experiment->model->set_training(false);
  return experiment->model;
}

BeamOptions::Stopping stopping_of(const Json& settings) {
  const Json when = settings.value("early_stopping", Json(false));
  if (when.is_string()) return BeamOptions::Stopping::kNever;
  return when.get<bool>() ? BeamOptions::Stopping::kFull : BeamOptions::Stopping::kEstimate;
}

Options options_of(const Json& settings, const Ids& end_ids) {
  Options options;
  options.sampling.repetition_penalty = settings.value("repetition_penalty", 1.0);
  options.left_out = {settings.value("no_repeat_ngram_size", std::int64_t{0}),
                      settings.value("min_new_tokens", std::int64_t{0})};
  options.beams = {settings.value("num_beams", kNumBeams), settings.value("length_penalty", 1.0), stopping_of(settings),
                   settings.value("num_return_sequences", std::int64_t{1})};
  options.max_new_tokens = settings.value("max_new_tokens", kNewTokens);
  options.end_ids = end_ids;
  options.log_probabilities = true;
  return options;
}

struct Texts final : components::generation::Receiver {
  bool token(std::size_t sequence, std::int32_t id, float log_probability) override {
    if (of.size() <= sequence) of.resize(sequence + 1);
    of[sequence].push_back(id);
    all_below_0 = all_below_0 && log_probability < 0;
    return true;
  }
  void ended(std::size_t sequence, End how) override { ends[sequence] = how; }

  std::vector<Ids> of;
  std::map<std::size_t, End> ends;
  bool all_below_0 = true;
};

Texts generated(const components::model::Model& model, const Json& recorded, const Options& options) {
  Texts texts;
  components::generation::Generator(model, options).generate(recorded.at("prompts").get<std::vector<Ids>>(), texts);
  return texts;
}

bool is_end(const Ids& end_ids, std::int32_t id) {
  return std::find(end_ids.begin(), end_ids.end(), id) != end_ids.end();
}

}  // namespace

TEST_CASE("beam search gives the texts of Transformers", "[golden][generation][beams]") {
  std::size_t count = 0, ended = 0;
  for (const Json& recorded : read_recorded()) {
    const auto model = load(recorded.at("model"));
    const auto end_ids = recorded.at("end_ids").get<Ids>();
    for (const Json& search : recorded.at("searches")) {
      const auto expected = search.at("texts").get<std::vector<Ids>>();
      for (const std::int64_t batch : {9, 64}) {  // one or two prompts at a time, or all
        INFO(recorded.at("model") << " " << recorded.at("end_ids") << " " << search.at("settings") << " " << batch);
        Options options = options_of(search.at("settings"), end_ids);
        options.batch = batch;
        const Texts texts = generated(*model, recorded, options);
        CHECK(texts.of == expected);
        CHECK(texts.all_below_0);
        for (const auto& [sequence, how] : texts.ends) {
          const bool by_token = is_end(end_ids, expected.at(sequence).back());
          CHECK(how == (by_token ? End::kToken : End::kLength));
        }
      }
      count += expected.size();
      for (const Ids& text : expected) ended += is_end(end_ids, text.back()) ? 1U : 0U;
    }
  }
  CHECK(count == 840);
  CHECK(ended > 150);
}

TEST_CASE("another device gives the beams of the CPU", "[.][accelerator]") {
  tests::accelerator::install();
  for (const Json& recorded : read_recorded()) {
    const auto model = load(recorded.at("model"));
    const c10::Device device(tests::device_training::kFirst);
    for (const auto& tensors : {model->parameters(), model->buffers(), model->constants()}) {
      components::move_to(tensors, device);
    }
    for (const std::size_t which : {1U, 8U, 15U}) {
      const Json& search = recorded.at("searches").at(which);
      INFO(recorded.at("model") << " " << search.at("settings"));
      const Options options = options_of(search.at("settings"), recorded.at("end_ids").get<Ids>());
      CHECK(generated(*model, recorded, options).of == search.at("texts").get<std::vector<Ids>>());
    }
  }
}
