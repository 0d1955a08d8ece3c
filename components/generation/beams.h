#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "components/generation/beam_search.h"
#include "components/generation/generator.h"
#include "components/generation/passes.h"

namespace components::generation {

/// Continues prompts by beam search. A prompt is computed once for all its beams, a source is encoded once, and beams
/// that part get a copy of what they do not have in common.
class BeamGenerator {
 public:
  /// `slots`: of the passes, a multiple of `options.beams.count`, which are searched at a time for one prompt each.
  /// Options and passes outlive it.
  BeamGenerator(const Options& options, std::optional<std::int32_t> decoder_start, Passes& passes, std::size_t slots);

  /// As Generator::generate(), with `beams.returned` sequences of each prompt, best first, which the receiver gets
  /// when its search has ended. `numbers`: of each prompt.
  Times generate(std::span<const std::vector<std::int32_t>> prompts, Receiver& receiver,
                 std::span<const std::int64_t> numbers);

 private:
  /// What the cache has of a slot, also after its search has ended: the next prompt may begin alike.
  struct Slot {
    std::vector<std::int32_t> tokens;
    std::int64_t computed = 0;  // the first of them
  };
  class Run;

  const Options& options_;
  std::optional<std::int32_t> decoder_start_;
  Passes& passes_;
  std::vector<Slot> slots_;
};

}  // namespace components::generation
