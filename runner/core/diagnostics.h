#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/location.h"

namespace runner::core {

enum class Severity { kError, kWarning, kNotice };

/// What to do about a problem.
struct Hint {
  Hint() = default;
  Hint(const char* shown) : text(shown) {}             // NOLINT(google-explicit-constructor)
  Hint(std::string shown) : text(std::move(shown)) {}  // NOLINT(google-explicit-constructor)
  Hint(std::string shown, std::string instead) : text(std::move(shown)), word(std::move(instead)) {}

  bool empty() const { return text.empty(); }

  std::string text;
  std::string word;  ///< to write in place of what the location points at; "" where it is the user's to choose
};

/// `did you mean "adamw"?`, with the word; empty for "".
Hint did_you_mean(const std::string& word);

/// A place in a file, and what to write there instead. `validate --fix` does.
struct Fix {
  Location location;
  std::string text;
};

/// An error, warning or notice about the user's input, with a hint.
struct Diagnostic {
  Severity severity = Severity::kError;
  Location location;
  std::string message;  ///< What was found and what was expected; lower case, no full stop.
  std::string hint;     ///< Suggested fix; may be empty.
  std::optional<Fix> fix = std::nullopt;
};

/// Collects all problems of one pass, to report them together.
class Diagnostics {
 public:
  void error(Location location, std::string message, Hint hint = {});
  void warning(Location location, std::string message, Hint hint = {});
  void notice(Location location, std::string message, Hint hint = {});
  void add(Diagnostic diagnostic);
  void add_all(const Diagnostics& other);

  bool has_errors() const;
  int error_count() const;
  const std::vector<Diagnostic>& all() const { return items_; }

  /// Sorts by source (in order of first appearance), line and column; drops exact repeats.
  void sort();

 private:
  std::vector<Diagnostic> items_;
};

struct RenderOptions {
  bool color = false;
  bool excerpts = true;  ///< The source line and the carets under it.
};

/// `file:line:col: error: message`, the source line with carets, and `  hint: ...`; docs/errors.md shows it.
/// Tabs count as one column and are shown as one space; long lines are cut around the caret; control bytes are escaped.
std::string render(const Diagnostic& diagnostic, const RenderOptions& options = {});
std::string render(const Diagnostics& diagnostics, const RenderOptions& options = {});

}  // namespace runner::core
