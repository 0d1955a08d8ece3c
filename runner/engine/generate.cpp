#include "runner/engine/generate.h"

namespace runner::engine {

std::optional<GenerationReport> generate_texts(const resolve::Recipe&, const GenerateRequest&, GenerationSink&,
                                               core::Diagnostics& diagnostics) {
  diagnostics.error({}, "generation of text is not built yet");
  return std::nullopt;
}

}  // namespace runner::engine
