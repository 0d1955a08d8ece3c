#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "components/generation/beam_search.h"
#include "components/generation/left_out.h"
#include "components/generation/sampling.h"
#include "components/model/model.h"
#include "components/tensor/autocast.h"

namespace components::generation {

struct Options {
  Sampling sampling;
  LeftOut left_out;
  BeamOptions beams;
  std::int64_t max_new_tokens = 256;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> end_ids;  ///< each ends a sequence
  std::int64_t batch = 16;            ///< sequences at a time
  std::int64_t positions = 0;         ///< of the model: prompt and new tokens together; 0: no limit
  bool slides = false;                ///< at the limit the first tokens are forgotten instead; without a cache only
  bool log_probabilities = false;
  AutocastOptions autocast;
};

/// `kNoneLeft`: no token was left that may follow.
enum class End { kToken, kLength, kReceiver, kInterrupted, kNotFinite, kNoneLeft };

/// Gets the tokens as they are made; of a beam search all those of a text when the search has ended.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A new token of a sequence; NaN where log-probabilities are not asked for. False ends the sequence after it.
  virtual bool token(std::size_t sequence, std::int32_t id, float log_probability) = 0;
  virtual void ended(std::size_t sequence, End how) = 0;
  /// Of a beam search: whether token() ends a text of these new tokens after the last of them.
  virtual bool ends(std::size_t /*sequence*/, std::span<const std::int32_t> /*made*/) { return false; }
  /// Asked before each pass: true ends all that goes on.
  virtual bool interrupted() { return false; }
};

struct Times {
  std::int64_t prompt_tokens = 0, new_tokens = 0;
  std::int64_t decoded_tokens = 0;                 ///< those of the new ones that no pass of a prompt gave
  double prefill_seconds = 0, decode_seconds = 0;  ///< of passes with, and without, tokens of a prompt
};

/// Whether every block of the model has a cached form, so that a position is computed once.
bool has_cache(const model::Model& model);

/// Continues prompts; of a model with an encoder, writes texts of them: each prompt is a source, which the encoder
/// reads once. What its slots have computed stays: a prompt that begins like one before, as the next turn of a
/// conversation does, is computed from where it differs.
class Generator {
 public:
  /// The model outlives it, is in evaluation mode, and keeps its weights; its hooks run only where it has no cache.
  Generator(const model::Model& model, const Options& options);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// Continues each prompt, none of which is empty, until an end token, `max_new_tokens`, the model's last position or
  /// the receiver ends it. A sequence's tokens depend on its prompt, its number and the options, not on those beside
  /// it: on the CPU the logits have the same bits in any batch and behind any shared prefix. Without a cache the whole
  /// text is computed for each token. `first` is the number of the first prompt's sequence; the receiver counts from 0.
  /// With several beams each prompt has `beams.returned` sequences, which the receiver counts on, best first.
  Times generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver, std::int64_t first = 0);
  /// The same with the number of each prompt's sequence.
  Times generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver,
                 std::span<const std::int64_t> numbers);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace components::generation
