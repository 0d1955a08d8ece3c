#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/philox.h"
#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/tokenizer.h"
#include "components/transform/transform.h"
#include "generated/transform/mask_tokens.h"  // Config; declares make()
#include "runner/core/text/text.h"

// T: positions of the sample, padding included

namespace components::transform::mask_tokens {
namespace {

/// What a mask needs to know of a tokenizer, by id.
struct Vocabulary {
  std::int64_t mask = 0;
  std::vector<bool> special;    ///< never masked
  std::vector<bool> continues;  ///< a word that an earlier token began; empty: words are not told apart
};

/// Of numbers that are drawn, this fraction is below it.
bool below(std::uint32_t number, double fraction) { return static_cast<double>(number) * 0x1p-32 < fraction; }

class MaskTokens final : public Transform {
 public:
  MaskTokens(const Config& config, BatchSpec signature, Vocabulary vocabulary)
      : config_(config), signature_(std::move(signature)), vocabulary_(std::move(vocabulary)) {
    signature_.find(kTarget)->has_ignored = true;
  }

  BatchSpec signature() const override { return signature_; }

  void apply(TensorMap& sample, const Draw& draw) const override {
    const at::Tensor input = sample.at(kInput), target = sample.at(kTarget);  // [1, T]
    const at::Tensor *mask = sample.find(kAttentionMask), *positions = sample.find(kPositions);
    auto* const ids = input.mutable_data_ptr<std::int64_t>();
    auto* const asked = target.mutable_data_ptr<std::int64_t>();
    const bool* const real = mask != nullptr ? mask->const_data_ptr<bool>() : nullptr;
    const std::int64_t* const places = positions != nullptr ? positions->const_data_ptr<std::int64_t>() : nullptr;
    std::uint32_t number = 0;  // of the id among those that are no padding, however wide the batch is
    bool in_word = false, chosen = false;
    for (std::int64_t i = 0; i < input.size(1); ++i) {
      if (real != nullptr && !real[i]) {
        in_word = false;
        asked[i] = kPadTarget;
        continue;
      }
      const std::array<std::uint32_t, 4> words =
          philox({number++, static_cast<std::uint32_t>(draw.index), static_cast<std::uint32_t>(draw.index >> 32),
                  static_cast<std::uint32_t>(draw.epoch)},
                 draw.seed);
      const auto id = static_cast<std::size_t>(ids[i]);
      if (asked[i] == kPadTarget || is(vocabulary_.special, id)) {
        in_word = false;
        asked[i] = kPadTarget;
        continue;
      }
      const bool begins_text = places != nullptr && places[i] == 0;
      if (!in_word || begins_text || !is(vocabulary_.continues, id)) chosen = below(words[0], config_.probability);
      in_word = true;
      if (chosen) {
        replace(ids[i], words);
      } else {
        asked[i] = kPadTarget;
      }
    }
  }

  std::string describe() const override {
    return runner::core::short_number(100 * config_.probability, 4) + " % of " +
           (config_.whole_words ? "words" : "tokens") + " masked";
  }

 private:
  static bool is(const std::vector<bool>& marked, std::size_t id) { return id < marked.size() && marked[id]; }

  void replace(std::int64_t& id, const std::array<std::uint32_t, 4>& words) const {
    if (below(words[1], config_.replace)) {
      id = vocabulary_.mask;
    } else if (below(words[1], config_.replace + config_.random)) {
      id = static_cast<std::int64_t>(std::uint64_t{words[2]} * vocabulary_.special.size() >> 32U);
    }
  }

  Config config_;
  BatchSpec signature_;
  Vocabulary vocabulary_;
};

/// Whether the tensors are ids, each with itself as target; else an error.
bool are_ids(const Inputs& inputs) {
  const TensorSpec *input = inputs.data.find(kInput), *target = inputs.data.find(kTarget);
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    inputs.diagnostics.error(inputs.block.location(), "mask_tokens masks ids of tokens, and " + inputs.set + what,
                             hint);
    return false;
  };
  if (input == nullptr || input->vocab_size == 0) return refuse(" has none", "remove transforms");
  if (inputs.data.find(kRejectedAt) != nullptr) {
    return refuse(" has pairs of chosen and rejected", "use records of texts");
  }
  if (target == nullptr || !target->in_place) {
    return refuse(" is not made of ids of a tokenizer",
                  "give the recipe a tokenizer: {type: file, path: FOLDER} that has a mask token");
  }
  return true;
}

/// How a vocabulary writes where words begin. Word pieces: what goes on has a prefix. Others: what begins has one; a
/// comma behind a word then belongs to it, as in fairseq's mask_whole_words.
struct WordMark {
  const char* prefix;
  bool begins;
};

std::optional<WordMark> word_mark(const tokenizer::Tokenizer& tokenizer) {
  const bool pieces = tokenizer.description().model == "WordPiece";
  for (const WordMark& mark : {WordMark{"##", false}, WordMark{"\u0120", true}, WordMark{"\u2581", true}}) {
    if (mark.begins == pieces) continue;
    for (std::int32_t id = 0; id < tokenizer.id_limit(); ++id) {
      const auto token = tokenizer.token_of(id);
      if (token && token->starts_with(mark.prefix)) return mark;
    }
  }
  return std::nullopt;
}

/// Nothing when an error was reported. The tokens of ids below `limit`.
std::optional<Vocabulary> vocabulary_of(const tokenizer::Tokenizer& tokenizer, bool whole_words, std::int64_t limit,
                                        const Inputs& inputs) {
  const std::string file = runner::core::in_quotes(tokenizer.description().path);
  const auto refuse = [&](const char* key, const std::string& what, const std::string& hint) {
    const runner::core::Node* value = inputs.block.find(key);
    inputs.diagnostics.error(value != nullptr ? value->location() : inputs.block.location(), what, hint);
    return std::nullopt;
  };
  const auto mask = tokenizer.special().mask;
  if (!mask) {
    return refuse("type", "mask_tokens needs a mask token, and the tokenizer " + file + " has none",
                  "name one of its tokens as mask_token in the tokenizer_config.json beside it");
  }
  if (*mask >= limit) {
    return refuse("type",
                  "the mask token of " + file + " is " + std::to_string(*mask) + ", and ids of " + inputs.set +
                      " are below " + std::to_string(limit),
                  "use the tokenizer of the data, or a larger vocab_size");
  }
  Vocabulary vocabulary{*mask, {}, {}};
  std::optional<WordMark> words;
  if (whole_words) {
    words = word_mark(tokenizer);
    if (!words) {
      return refuse("whole_words",
                    "whole_words is true, but the tokens of " + file + " do not say where words begin: none begins " +
                        "with ##, \u0120 or \u2581",
                    "remove whole_words");
    }
  }
  for (std::int32_t id = 0; id < std::min<std::int64_t>(limit, tokenizer.id_limit()); ++id) {
    vocabulary.special.push_back(tokenizer.is_special(id) || id == *mask);
    if (words) {
      const auto token = tokenizer.token_of(id);
      vocabulary.continues.push_back(token && token->starts_with(words->prefix) != words->begins);
    }
  }
  return vocabulary;
}

}  // namespace

std::shared_ptr<Transform> make(const Config& config, const Inputs& inputs) {
  if (!are_ids(inputs)) return nullptr;
  if (inputs.tokenizer == nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "mask_tokens needs the mask token of a tokenizer, and the recipe has no tokenizer",
                             "add tokenizer: {type: file, path: FOLDER}");
    return nullptr;
  }
  auto vocabulary = vocabulary_of(*inputs.tokenizer, config.whole_words, inputs.data.at(kInput).vocab_size, inputs);
  if (!vocabulary) return nullptr;
  return std::make_shared<MaskTokens>(config, inputs.data, std::move(*vocabulary));
}

}  // namespace components::transform::mask_tokens
