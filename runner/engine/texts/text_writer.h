#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "components/generation/generator.h"
#include "components/generation/stop_strings.h"
#include "components/generation/text_stream.h"
#include "generated/section/generation.h"
#include "runner/engine/texts/generation.h"

namespace runner::engine {

/// Turns tokens into text for the sink.
class TextWriter final : public components::generation::Receiver {
 public:
  /// How texts are written; what is referred to outlives the writer.
  struct Options {
    components::generation::TextStream::Decode decode;
    const GenerateRequest& request;
    const sections::generation::Config& config;
    const std::set<std::int32_t>& end_ids;
    std::function<void()> before_pass;  ///< may be empty
  };

  /// `sequences`: numbers of the texts among all samples of all prompts.
  TextWriter(Options options, const std::vector<std::int64_t>& sequences, GenerationSink& sink);

  bool token(std::size_t sequence, std::int32_t id, float log_probability) override;
  bool ends(std::size_t sequence, std::span<const std::int32_t> made) override;
  void ended(std::size_t sequence, components::generation::End how) override;
  bool interrupted() override;

 private:
  struct Text {
    components::generation::TextStream stream;
    components::generation::StopStrings stops;
    Generated made;
  };

  void show(Text& text, const std::string& piece);

  Options options_;
  GenerationSink& sink_;
  std::vector<Text> texts_;
};

}  // namespace runner::engine
