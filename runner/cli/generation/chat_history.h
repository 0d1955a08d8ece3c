#pragma once

#include <string>
#include <vector>

namespace runner::cli {

/// What was typed at the prompt of `roux chat`, over its calls: a file with a JSON string a line, which its user alone
/// may read. A call appends to it, so that several at a time lose nothing.
class ChatHistory {
 public:
  /// XDG_STATE_HOME/roux/chat_history, else ~/.local/state/roux/chat_history; "" where the environment names neither.
  static std::string usual_path();

  /// `path` "": nothing is read or kept.
  explicit ChatHistory(std::string path) : path_(std::move(path)) {}

  /// The last messages, the oldest first. A file that has become long is shortened to them.
  std::vector<std::string> load();
  /// Appends a message; one that equals the last one, or is very long, is not kept. After a failure none is.
  void add(const std::string& message);
  /// Why nothing is kept; "" while all is well.
  const std::string& problem() const { return problem_; }

 private:
  void fail(const std::string& what);

  std::string path_, last_, problem_;
};

}  // namespace runner::cli
