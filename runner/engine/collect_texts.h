#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/engine/texts/generation.h"

namespace runner::distributed {
class ProcessGroup;
}
namespace runner::engine {

/// The texts that this rank makes, numbered over all samples of all prompts: prompts are dealt out in turn with all
/// their samples, which share what is computed of the prompt; the samples, where there are fewer prompts than ranks.
/// `together`: a prompt's samples are always of one rank. `ranks` null: all of them.
std::vector<std::int64_t> own_sequences(std::int64_t prompts, std::int64_t samples, distributed::ProcessGroup* ranks,
                                        bool together = false);

/// Brings the texts of all ranks to the sink of rank 0 while they are made. All ranks exchange what they have finished
/// every few passes, as often as the one with the most passes needs.
class TextCollector final : public GenerationSink {
 public:
  TextCollector(distributed::ProcessGroup& ranks, GenerationSink& sink) : ranks_(ranks), sink_(sink) {}

  void piece(std::int64_t prompt, std::int64_t sample, std::string_view text) override;
  void done(const Generated& generated) override;
  /// Call before each pass of the model. A collective, every few calls.
  void begin_pass();
  /// Waits until all ranks are done. Returns what they report together; the times are those of the slowest.
  GenerationReport finish(const GenerationReport& own);

 private:
  /// Whether all ranks are done.
  bool exchange(bool is_done);

  distributed::ProcessGroup& ranks_;
  GenerationSink& sink_;
  std::string waiting_;  ///< texts that rank 0 does not have yet
  std::int64_t passes_ = 0;
};

}  // namespace runner::engine
