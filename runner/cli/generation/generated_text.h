#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cli/prediction/output_file.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// [{"role": "user", "content": "..."}, ...], of pairs of role and content.
std::string messages_json(const std::vector<std::pair<std::string, std::string>>& messages);

/// ` (12.3 tokens/s)`; "" where no time was measured.
std::string rate_text(std::int64_t tokens, double seconds);

/// Shows one text on standard output while it is made.
class TextStream final : public engine::GenerationSink {
 public:
  /// `terminal`: what a terminal must not see is escaped. `file`: outlives this.
  TextStream(OutputFile& file, bool terminal) : file_(file), terminal_(terminal) {}

  void piece(std::int64_t prompt, std::int64_t sample, std::string_view text) override;
  void done(const engine::Generated& generated) override;

 private:
  OutputFile& file_;
  bool terminal_;
  bool line_is_open_ = false;
};

/// Writes one JSON line a text, in the order of the prompts, each as soon as those before it are there.
class JsonLines final : public engine::GenerationSink {
 public:
  struct Options {
    std::int64_t samples = 1;  ///< of each prompt; more than one: lines have `sample`
    bool logprobs = false;
  };

  /// `prompts` and `file`: outlive this.
  JsonLines(const std::vector<engine::Prompt>& prompts, OutputFile& file, const Options& options)
      : prompts_(prompts), file_(file), options_(options) {}

  void piece(std::int64_t, std::int64_t, std::string_view) override {}
  void done(const engine::Generated& generated) override;
  /// How many of the first lines are there.
  std::int64_t made() const { return next_; }
  /// Writes the lines of an interrupted work that come after missing ones.
  void finish();

 private:
  std::string line_of(const engine::Generated& generated) const;

  const std::vector<engine::Prompt>& prompts_;
  OutputFile& file_;
  Options options_;
  std::map<std::int64_t, std::string> waiting_;  ///< by place in the output
  std::int64_t next_ = 0;
};

}  // namespace runner::cli
