// What mask_tokens hides, leaves alone and asks for. T: positions of a sample.

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/tokenizer.h"
#include "components/transform/transform.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"

namespace components::transform {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kPadding = 0, kFirst = 2, kLast = 3, kMask = 4;  // [PAD], [CLS], [SEP], [MASK] of bert.txt

std::shared_ptr<const tokenizer::Tokenizer> read(const std::string& file) {
  return tokenizer::read_tokenizer(tests::source_dir() + "/tests/components/tokenizer/files/" + file).value();
}

/// Sequences of ids below `vocab_size`, each with itself as target.
BatchSpec of_ids(std::int64_t vocab_size) {
  TensorSpec input{kInput, Dtype::kInt64, {kBatch, kTime}, false};
  input.vocab_size = vocab_size;
  TensorSpec target = input;
  target.name = kTarget;
  target.in_place = true;
  return {{input, target}};
}

struct Made {
  std::shared_ptr<Transform> transform;
  std::string messages;
};

Made make(const std::string& text, const BatchSpec& data, std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  const runner::core::Node block = tests::block("transform", text);
  runner::core::Diagnostics diagnostics;
  auto transform = build(block, {data, std::move(tokenizer), "data.train", block, diagnostics});
  return {std::move(transform), runner::core::render(diagnostics, {.color = false, .excerpts = false})};
}

std::shared_ptr<Transform> masking(const std::string& keys = "", const std::string& file = "bert.txt") {
  const auto tokenizer = read(file);
  const Made made = make("{type: mask_tokens" + keys + "}", of_ids(tokenizer->id_limit()), tokenizer);
  INFO(made.messages);
  REQUIRE(made.transform != nullptr);
  return made.transform;
}

struct Masked {
  Ids input, target;
};

/// A sample of these ids, `front` and `behind` padding ids around them. `targets`: nothing: the ids.
Masked masked(const Transform& transform, const Ids& ids, const Draw& draw, std::int64_t front = 0,
              std::int64_t behind = 0, const Ids& targets = {}, const Ids& positions = {}) {
  Ids input(static_cast<std::size_t>(front), kPadding), target(static_cast<std::size_t>(front), kPadTarget);
  input.insert(input.end(), ids.begin(), ids.end());
  const Ids& its = targets.empty() ? ids : targets;
  target.insert(target.end(), its.begin(), its.end());
  input.resize(input.size() + static_cast<std::size_t>(behind), kPadding);
  target.resize(input.size(), kPadTarget);
  TensorMap sample;
  sample.set(kInput, at::tensor(input).unsqueeze(0));
  sample.set(kTarget, at::tensor(target).unsqueeze(0));
  if (front + behind > 0) {
    at::Tensor mask = at::ones({1, static_cast<std::int64_t>(input.size())}, at::kBool);
    mask.narrow(1, 0, front).fill_(false);
    mask.narrow(1, mask.size(1) - behind, behind).fill_(false);
    sample.set(kAttentionMask, mask);
  }
  if (!positions.empty()) sample.set(kPositions, at::tensor(positions).unsqueeze(0));
  transform.apply(sample, draw);
  const auto values = [&](const char* name) {
    const at::Tensor row = sample.at(name)[0].contiguous();
    return Ids(row.const_data_ptr<std::int64_t>(), row.const_data_ptr<std::int64_t>() + row.numel());
  };
  return {values(kInput), values(kTarget)};
}

/// Ids of tokens with a text: `count` of them, all but the special ones in turn.
Ids text_ids(std::int64_t count) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(5 + i % 600);
  return ids;
}

/// Within four deviations of what is expected of that many draws. The draws are those of a fixed seed.
bool is_near(std::int64_t count, std::int64_t draws, double probability) {
  const double expected = static_cast<double>(draws) * probability;
  return std::abs(static_cast<double>(count) - expected) <= 4 * std::sqrt(expected * (1 - probability));
}

}  // namespace

TEST_CASE("tokens are chosen, replaced and kept in the published proportions", "[transform]") {
  struct Case {
    const char* keys;
    double probability, replace, random;
  };
  const Case cases[] = {{"", 0.15, 0.8, 0.1},
                        {", probability: 0.4, replace: 0.5, random: 0.5", 0.4, 0.5, 0.5},
                        {", mlm_probability: 0.3, mask_replace_prob: 1, random_replace_prob: 0", 0.3, 1, 0},
                        {", probability: 1, replace: 0, random: 0", 1, 0, 0}};
  const Ids ids = text_ids(40'000);
  const auto count = static_cast<std::int64_t>(ids.size());
  for (const Case& c : cases) {
    INFO(c.keys);
    const auto transform = masking(c.keys);
    CHECK(transform->signature().at(kTarget).has_ignored);
    const Masked made = masked(*transform, ids, {7, 0, 0});
    std::int64_t chosen = 0, masks = 0, others = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (made.target[i] == kPadTarget) {
        REQUIRE(made.input[i] == ids[i]);
        continue;
      }
      REQUIRE(made.target[i] == ids[i]);
      REQUIRE((made.input[i] >= 0 && made.input[i] < 700));
      ++chosen;
      masks += made.input[i] == kMask ? 1 : 0;
      others += made.input[i] != kMask && made.input[i] != ids[i] ? 1 : 0;
    }
    CHECK(is_near(chosen, count, c.probability));
    CHECK(is_near(masks, chosen, c.replace + c.random / 700));
    CHECK(is_near(others, chosen, c.random * 698 / 700));
  }
  CHECK(masking()->describe() == "15 % of tokens masked");
  CHECK(masking(", probability: 0.125, whole_words: true")->describe() == "12.5 % of words masked");
}

TEST_CASE("special tokens, padding and what the set leaves out are never chosen", "[transform]") {
  const auto all = masking(", probability: 1, replace: 1, random: 0");
  const Masked framed = masked(*all, {kFirst, 50, 51, kLast, 52, kLast}, {1, 0, 0}, 1, 2);
  CHECK(framed.input == Ids{kPadding, kFirst, kMask, kMask, kLast, kMask, kLast, kPadding, kPadding});
  CHECK(framed.target == Ids{kPadTarget, kPadTarget, 50, 51, kPadTarget, 52, kPadTarget, kPadTarget, kPadTarget});
  const Masked answer = masked(*all, {50, 51, 52}, {1, 0, 0}, 0, 0, {kPadTarget, 51, kPadTarget});
  CHECK(answer.input == Ids{50, kMask, 52});
  CHECK(answer.target == Ids{kPadTarget, 51, kPadTarget});
  // A mask that stands in the text is no answer.
  CHECK(masked(*all, {50, kMask}, {1, 0, 0}).target == Ids{50, kPadTarget});
}

TEST_CASE("what is masked depends on seed, epoch and index alone", "[transform]") {
  const auto transform = masking(", probability: 0.5");
  const Ids ids = text_ids(64);
  const Masked first = masked(*transform, ids, {3, 2, 5});
  const Masked again = masked(*transform, ids, {3, 2, 5});
  CHECK(first.input == again.input);
  CHECK(first.target == again.target);
  for (const Draw& other : {Draw{4, 2, 5}, Draw{3, 1, 5}, Draw{3, 2, 6}, Draw{3, 2, 5 + (std::int64_t{1} << 32)}}) {
    CHECK(masked(*transform, ids, other).target != first.target);
  }
  // Wider batches, on either side, change nothing of the sample.
  for (const auto& [front, behind] : {std::pair{0, 3}, std::pair{4, 0}}) {
    const Masked wide = masked(*transform, ids, {3, 2, 5}, front, behind);
    CHECK(Ids(wide.input.begin() + front, wide.input.end() - behind) == first.input);
    CHECK(Ids(wide.target.begin() + front, wide.target.end() - behind) == first.target);
  }
}

TEST_CASE("whole words are masked or left as a whole", "[transform]") {
  const auto tokenizer = read("bert.txt");
  Ids ids;
  std::vector<std::size_t> begins;  // of each token the place of the first one of its word
  for (std::int32_t id = 5; std::ssize(ids) < 4'000; id = 5 + (id + 32) % 695) {
    const bool continues = tokenizer->token_of(id).value().starts_with("##");
    begins.push_back(continues && !begins.empty() ? begins.back() : ids.size());
    ids.push_back(id);
  }
  const Masked words = masked(*masking(", probability: 0.3, whole_words: true"), ids, {9, 0, 0});
  std::int64_t chosen = 0, several = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    REQUIRE((words.target[i] == kPadTarget) == (words.target[begins[i]] == kPadTarget));
    chosen += begins[i] == i && words.target[i] != kPadTarget ? 1 : 0;
    several += begins[i] != i && words.target[i] != kPadTarget ? 1 : 0;
  }
  CHECK(chosen > 100);
  CHECK(several > 20);
  // A word ends with its document, even where the next one begins in the middle of a word.
  const auto continued = tokenizer->id_of("##e");
  REQUIRE(continued);
  const auto all = masking(", probability: 0.5, whole_words: true");
  bool differ = false;
  for (std::int64_t index = 0; index < 16; ++index) {
    const Masked one = masked(*all, {50, *continued}, {9, 0, index});
    CHECK((one.target[0] == kPadTarget) == (one.target[1] == kPadTarget));
    const Masked packed = masked(*all, {50, *continued}, {9, 0, index}, 0, 0, {}, {0, 0});
    differ = differ || (packed.target[0] == kPadTarget) != (packed.target[1] == kPadTarget);
  }
  CHECK(differ);
}

TEST_CASE("what cannot be masked is refused with a remedy", "[transform]") {
  const auto bert = read("bert.txt");
  const BatchSpec ids = of_ids(700);
  BatchSpec next = ids, pairs = ids;
  next.find(kTarget)->in_place = false;
  pairs.tensors.push_back({kRejectedAt, Dtype::kInt64, {kBatch}, false});
  const BatchSpec rows{{{kInput, Dtype::kFloat32, {kBatch, 3}, false}}};
  const auto refused = [](const std::string& keys, const BatchSpec& data,
                          std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
    return make("{type: mask_tokens" + keys + "}", data, std::move(tokenizer)).messages;
  };
  CHECK(refused("", rows, bert) ==
        "transform.yaml:1:1: error: mask_tokens masks ids of tokens, and data.train has none\n"
        "  hint: remove transforms\n");
  CHECK(refused("", pairs, bert) ==
        "transform.yaml:1:1: error: mask_tokens masks ids of tokens, and data.train has pairs of chosen and rejected\n"
        "  hint: use records of texts\n");
  CHECK(refused("", next, bert) ==
        "transform.yaml:1:1: error: mask_tokens masks ids of tokens, and data.train is not made of ids of a tokenizer\n"
        "  hint: give the recipe a tokenizer: {type: file, path: FOLDER} that has a mask token\n");
  CHECK(refused("", ids, nullptr) ==
        "transform.yaml:1:1: error: mask_tokens needs the mask token of a tokenizer, and the recipe has no tokenizer\n"
        "  hint: add tokenizer: {type: file, path: FOLDER}\n");
  CHECK(refused("", of_ids(4), bert).find("the mask token of") != std::string::npos);
  CHECK(refused("", of_ids(60'000), read("gpt2.json")).find("needs a mask token, and the tokenizer") !=
        std::string::npos);
}

}  // namespace components::transform
