#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runner/engine/engine.h"

namespace runner::cli {

/// A message of the user and what the model answered.
struct Turn {
  std::string question, answer;
};

/// What was said so far. All of it is kept; the oldest turns may be left out of prompts.
class Conversation {
 public:
  explicit Conversation(std::string system = "") : system_(std::move(system)) {}

  const std::string& system() const { return system_; }  ///< "": none
  bool empty() const { return turns_.empty(); }

  void add(Turn turn) { turns_.push_back(std::move(turn)); }
  /// Takes the last turn back. Nothing when there is none.
  std::optional<Turn> take_last();

  /// The messages for an answer to `question`: the system message, the turns without those left out, the question.
  engine::Prompt prompt(const std::string& question) const;
  /// The same without any turn.
  engine::Prompt prompt_alone(const std::string& question) const;
  /// Leaves the oldest turn out of prompts from now on. False when there is none.
  bool leave_out_oldest();

  std::size_t message_count() const { return 2 * turns_.size() + (system_.empty() ? 0 : 1); }
  /// {"messages": [{"role": "user", "content": "..."}, ...]}, of all turns; without a line end.
  std::string json() const;

 private:
  engine::Prompt prompt_from(std::size_t first, const std::string& question) const;

  std::string system_;
  std::vector<Turn> turns_;
  std::size_t first_ = 0;  ///< the first turn that prompts hold
};

}  // namespace runner::cli
