#pragma once

#include <string>

#include "runner/engine/engine.h"

namespace runner::distributed {
class ProcessGroup;
}
namespace runner::engine {

// What ranks tell rank 0 of their work. The bytes are for a rank of the same program.

/// Sends bytes, at least one, to another rank, which receives them. Both block; `site` as in ProcessGroup.
void send_bytes(distributed::ProcessGroup& ranks, int to, const std::string& bytes, const char* site);
std::string receive_bytes(distributed::ProcessGroup& ranks, int from, const char* site);

/// Appends a prediction, without what rank 0 knows of its sample by the index: unit, number, file and kept columns.
void append(std::string& bytes, const Prediction& prediction);
/// Takes the next one from `bytes`, beginning at `at`, which moves behind it.
Prediction prediction_at(const std::string& bytes, std::size_t& at);

/// The same of what was generated.
void append(std::string& bytes, const Generated& generated);
Generated generated_at(const std::string& bytes, std::size_t& at);

}  // namespace runner::engine
