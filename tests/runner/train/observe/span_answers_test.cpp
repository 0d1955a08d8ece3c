#include "runner/train/observe/span_answers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "tests/support/paths.h"

using components::data::Questions;
using Json = nlohmann::json;

namespace runner::train {
namespace {

Questions questions_of(const Json& recorded) {
  Questions questions;
  questions.contexts = {recorded["record"]["context"].get<std::string>()};
  questions.all.push_back({"a", 0, {}});
  for (const Json& window : recorded["windows"]) {
    questions.windows.push_back({0, questions.offsets.size()});
    for (const Json& place : window["offsets"]) {
      for (const std::size_t side : {0U, 1U})
        questions.offsets.push_back(place.is_null() ? -1 : place[side].get<int>());
    }
  }
  return questions;
}

}  // namespace

// Recorded from Transformers' arithmetic by tests/parity/cases/answers.py.
TEST_CASE("the answer to a question is the best span of all of its windows", "[train][answers][recorded]") {
  const Json recorded =
      Json::parse(std::ifstream(tests::source_dir() + "/tests/components/data/language/recorded/answers.json"));
  for (const Json& c : recorded["cases"]) {
    INFO(c["record"].dump());
    for (const char* key : {"answer", "or_none"}) {
      Questions questions = questions_of(c);
      questions.some_have_none = std::string(key) == "or_none";
      SpanAnswers answers(questions);
      CHECK_FALSE(answers.answer_to(0));
      std::int64_t window = 0;
      for (const Json& logits : c["logits"]) {
        // Two more positions are padding, with logits that would be the best.
        auto first = logits[0].get<std::vector<double>>(), last = logits[1].get<std::vector<double>>();
        const auto real = static_cast<std::int64_t>(first.size());
        for (auto* side : {&first, &last}) side->insert(side->end(), {99.0, 99.0});
        components::TensorMap batch;
        batch.set(components::kOutput,
                  at::stack({at::tensor(first, at::kFloat), at::tensor(last, at::kFloat)}, 1).unsqueeze(0));
        at::Tensor mask = at::full({1, real + 2}, true, at::kBool);
        mask.narrow(1, real, 2).fill_(false);
        batch.set(components::kAttentionMask, mask);
        answers.add(window++, batch);
      }
      const auto answer = answers.answer_to(0);
      REQUIRE(answer);
      CHECK(answer->text == c[key]["text"].get<std::string>());
      CHECK(answer->score == Approx(c[key]["score"].get<double>()));
    }
  }
}

}  // namespace runner::train
