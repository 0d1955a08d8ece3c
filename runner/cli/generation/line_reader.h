#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runner/cli/generation/chat_history.h"

namespace runner::cli {

/// A longer message is refused: far more than any model reads.
inline constexpr std::size_t kMessageBytesMax = std::size_t{1} << 20U;

/// Reads lines from standard input.
class LineReader {
 public:
  enum class Got { kLine, kTooLong, kInterrupt, kEnd };

  virtual ~LineReader() = default;
  /// The next line without its end; a terminal shows `prompt` before it. kInterrupt: Ctrl-C at the prompt.
  virtual Got read(const char* prompt, std::string& line) = 0;
  /// Lets the user have this again with the arrow keys.
  virtual void remember(const std::string& message) = 0;
};

/// For a file or a pipe.
std::unique_ptr<LineReader> plain_lines();
/// For a terminal, with editing; `shown` is the stream of that terminal. `history`: outlives it.
std::unique_ptr<LineReader> edited_lines(std::FILE* shown, ChatHistory& history);

/// A message: a line, and as long as lines end with a backslash the next one, too.
LineReader::Got read_message(LineReader& lines, std::string& message);

}  // namespace runner::cli
