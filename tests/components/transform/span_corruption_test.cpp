// What span_corruption cuts out, and what a model reads and writes of it. Numbers: recorded/spans.json, by
// recorded/spans.py.

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/tokenizer.h"
#include "components/transform/spans.h"
#include "components/transform/transform.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "tests/support/blocks.h"
#include "tests/support/paths.h"
#include "tests/support/torch/tensors_torch.h"

namespace components::transform {
namespace {

using Ids = std::vector<std::int64_t>;
using tests::golden::Json;

constexpr std::int64_t kVocabulary = 48;  // of the words of recipes/examples/data/numbers
constexpr std::int64_t kEnd = 1, kFirst = 45, kSecond = 44, kStart = 7;

std::shared_ptr<const tokenizer::Tokenizer> words() {
  return tokenizer::read_tokenizer(tests::source_dir() + "/recipes/examples/data/numbers").value();
}

/// Texts of up to that many ids, each with itself as target. `masked`: of different lengths.
BatchSpec texts_of(std::int64_t length, bool masked) {
  TensorSpec input{kInput, Dtype::kInt64, {kBatch, kTime}, false};
  input.vocab_size = kVocabulary;
  input.max_length = length;
  input.padded = masked;
  TensorSpec target = input, mask = input;
  target.name = kTarget;
  target.in_place = true;
  mask.name = kAttentionMask;
  mask.dtype = Dtype::kBool;
  mask.vocab_size = 0;
  BatchSpec data{{input, target}};
  if (masked) data.tensors.push_back(mask);
  return data;
}

struct Made {
  std::shared_ptr<Transform> transform;
  std::string messages;
};

Made make(const std::string& keys, const BatchSpec& data, std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  const runner::core::Node block = tests::block("transform", "{type: span_corruption" + keys + "}");
  runner::core::Diagnostics diagnostics;
  auto transform = build(block, {data, std::move(tokenizer), "data.train", block, diagnostics, kStart});
  return {std::move(transform), runner::core::render(diagnostics, {.color = false, .excerpts = false})};
}

struct Read {
  Ids source, target, decoder;
};

Read read(const Transform& transform, const Ids& ids, const Draw& draw, bool masked = false, const Ids& target = {}) {
  TensorMap sample;
  sample.set(kInput, at::tensor(ids).unsqueeze(0));
  sample.set(kTarget, at::tensor(target.empty() ? ids : target).unsqueeze(0));
  if (masked) sample.set(kAttentionMask, at::ones({1, std::ssize(ids)}, at::kBool));
  transform.apply(sample, draw);
  const auto values = [&](const char* name) {
    const at::Tensor row = sample.at(name)[0].contiguous();
    return Ids(row.const_data_ptr<std::int64_t>(), row.const_data_ptr<std::int64_t>() + row.numel());
  };
  if (masked) CHECK(at::equal(sample.at(kAttentionMask), at::ones_like(sample.at(kInput), at::kBool)));
  return {values(kInput), values(kTarget), values(kDecoderInput)};
}

/// The text that was cut.
Ids joined(const Read& read) {
  Ids text;
  for (const std::int64_t id : read.source) {
    const auto span = std::ranges::find(read.target, id);
    if (id == kEnd || span == read.target.end()) {
      text.push_back(id);
      continue;
    }
    for (auto at = span + 1; *at != kEnd && *at != kSecond; ++at) text.push_back(*at);
  }
  return text;
}

}  // namespace

TEST_CASE("texts are cut as t5 cuts them", "[transform]") {
  const Json recorded = Json::parse(
      runner::core::read_file(tests::source_dir() + "/tests/components/transform/recorded/spans.json", 1 << 20)
          .value());
  for (const Json& one : recorded["sizes"]) {
    INFO(one.dump());
    const SpanCounts counts = span_counts(one[0], one[1], one[2]);
    CHECK(counts.tokens == one[3]);
    CHECK(counts.spans == one[4]);
  }
  const auto sentinels = recorded["sentinels"].get<std::vector<std::int32_t>>();
  REQUIRE(recorded["texts"].size() > 10);
  for (const Json& one : recorded["texts"]) {
    INFO(one.dump());
    std::vector<bool> mask;
    for (const Json& bit : one["mask"]) mask.push_back(bit == 1);
    const CutText cut = cut_spans(one["ids"].get<Ids>(), mask, sentinels, recorded["end"]);
    CHECK(cut.source == one["source"].get<Ids>());
    CHECK(cut.target == one["target"].get<Ids>());
  }
}

TEST_CASE("all masks of as many tokens and spans are equally likely", "[transform]") {
  // Of 8 tokens 4 in 2 spans: 3 ways to part what is cut out, and 3 to part what stays.
  std::map<std::vector<bool>, std::int64_t> seen;
  constexpr std::int64_t kDraws = 9'000;
  for (std::int64_t i = 0; i < kDraws; ++i) ++seen[span_mask(8, {4, 2}, {11, i % 3, i / 3})];
  CHECK(seen.size() == 9);
  for (const auto& [mask, times] : seen) {
    CHECK(std::ranges::count(mask, true) == 4);
    CHECK(!mask.front());
    CHECK(mask.back());
    CHECK((times > 870 && times < 1'130));  // four deviations
  }
  CHECK(span_counts(0, 0.15, 3).tokens == 0);
  CHECK(span_mask(1, span_counts(1, 0.15, 3), {}) == std::vector<bool>{false});
  // More than half: each span is behind a token that stays.
  CHECK(span_counts(10, 0.9, 1).spans == 1);
  CHECK(span_mask(10, span_counts(10, 0.9, 1), {}).front() == false);
}

TEST_CASE("a text and its spans make up the text", "[transform]") {
  const Made made = make(", noise_density: 0.4, mean_noise_span_length: 2", texts_of(9, false), words());
  INFO(made.messages);
  REQUIRE(made.transform != nullptr);
  const Transform& transform = *made.transform;
  CHECK(transform.describe() == "40 % of tokens cut out in spans of 2");
  CHECK(transform.changes_lengths());
  const BatchSpec signature = transform.signature();
  CHECK(names_of(signature.tensors) == "input, target, decoder_input_ids");
  CHECK(signature.at(kInput).max_length == 8);   // 5 that stay, 2 sentinels, the end
  CHECK(signature.at(kTarget).max_length == 7);  // 4 that are cut out, 2 sentinels, the end
  CHECK_FALSE(signature.padded());
  CHECK_FALSE(signature.at(kTarget).in_place);
  CHECK(signature.at(kDecoderInput).max_length == 7);
  CHECK(transform.longest_of(9) == 8);
  const Ids ids = {10, 11, 12, 13, 14, 15, 16, 17, 18};
  const Read first = read(transform, ids, {3, 2, 5});
  CHECK(std::ssize(first.source) == 8);
  CHECK(std::ssize(first.target) == 7);
  CHECK(first.target.front() == kFirst);
  CHECK(first.target.back() == kEnd);
  Ids shifted = {kStart};
  shifted.insert(shifted.end(), first.target.begin(), first.target.end() - 1);
  CHECK(first.decoder == shifted);
  Ids whole = ids;
  whole.push_back(kEnd);
  bool differ = false;
  for (const Draw& other : {Draw{3, 2, 5}, Draw{4, 2, 5}, Draw{3, 1, 5}, Draw{3, 2, 6}, Draw{3, 3, 5}}) {
    const Read again = read(transform, ids, other);
    CHECK(joined(again) == whole);
    differ = differ || again.source != first.source;
  }
  CHECK(differ);
  CHECK(read(transform, ids, {3, 2, 5}).source == first.source);
}

TEST_CASE("the end of a text is in no span", "[transform]") {
  const Made made = make(", noise_density: 0.5", texts_of(4, true), words());
  REQUIRE(made.transform != nullptr);
  CHECK(names_of(made.transform->signature().tensors) == "input, target, attention_mask, decoder_input_ids");
  CHECK(made.transform->signature().padded());
  const Read cut = read(*made.transform, {10, 11, kEnd}, {1, 0, 0}, true);
  CHECK(cut.source == Ids{10, kFirst, kEnd});
  CHECK(cut.target == Ids{kFirst, 11, kEnd});
  const Read short_text = read(*made.transform, {10, kEnd}, {1, 0, 0}, true);
  CHECK(short_text.source == Ids{10, kEnd});
  CHECK(short_text.target == Ids{kEnd});
  CHECK(short_text.decoder == Ids{kStart});
  CHECK(read(*made.transform, {10, 11, kEnd}, {1, 0, 0}, true, {kPadTarget, 11, kEnd}).source == cut.source);
  CHECK_THROWS_AS(read(*made.transform, {10, 11, kEnd}, {1, 0, 0}, true, {10, 12, kEnd}), runner::core::RunError);
}

TEST_CASE("what spans cannot be cut out of is refused with a remedy", "[transform]") {
  const auto refused = [](const BatchSpec& data, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                          const std::string& keys = "") { return make(keys, data, std::move(tokenizer)).messages; };
  const BatchSpec texts = texts_of(9, true);
  BatchSpec next = texts, packed = texts, made = texts, few = texts;
  next.find(kTarget)->in_place = false;
  packed.tensors.push_back({kPositions, Dtype::kInt64, {kBatch, kTime}, false});
  made.tensors.push_back({kDecoderInput, Dtype::kInt64, {kBatch, kTime}, false});
  few.find(kInput)->vocab_size = 45;
  const std::string begin = "transform.yaml:1:1: error: span_corruption cuts spans out of single texts, and data.train";
  CHECK(refused(next, words()) == begin +
                                      " is not made of ids of a tokenizer\n"
                                      "  hint: give the recipe a tokenizer: {type: file, path: FOLDER} that has "
                                      "sentinels <extra_id_0>, ...\n");
  CHECK(refused(packed, words()) == begin + " has several in a row\n  hint: remove packing from data.train\n");
  CHECK(refused(made, words()) == begin + " has sources and targets already\n  hint: remove this transform\n");
  CHECK(refused(texts, nullptr) ==
        "transform.yaml:1:1: error: span_corruption needs the sentinels of a tokenizer, and the recipe has no "
        "tokenizer\n  hint: add tokenizer: {type: file, path: FOLDER}\n");
  const std::string bert = tests::source_dir() + "/tests/components/tokenizer/files/bert.txt";
  CHECK(refused(texts, tokenizer::read_tokenizer(bert).value()).find("has no token <extra_id_0>\n") !=
        std::string::npos);
  CHECK(refused(few, words()).find("are up to 45, and ids of data.train are below 45\n") != std::string::npos);
  CHECK(refused(texts_of(60, true), words()).find("cuts 3 spans out of 60 tokens, and the tokenizer") !=
        std::string::npos);
}

}  // namespace components::transform
