#pragma once

#include <memory>
#include <string>

namespace runner::core {

/// One text that values can come from: a recipe file, a schema fragment, or one flag of the command line.
struct Source {
  enum class Kind { kFile, kFlag, kDefault };

  std::string name;  ///< As the user wrote it: `recipes/gpt.yaml`, `--set training.max_steps=ten`.
  std::string text;  ///< The whole text of a file; empty for the others.
  Kind kind = Kind::kFile;
};

/// Where a value or a key stands. Cheap to copy: the text is shared.
struct Location {
  std::shared_ptr<const Source> source;  ///< Null when the value has no location.
  int line = 0;                          ///< From 1; 0 means the source as a whole.
  int column = 0;                        ///< From 1, in code points.
  int width = 1;                         ///< Code points to underline, at least 1.

  bool known() const { return source != nullptr; }
  /// `recipes/gpt.yaml:14:19`, or just the name without a line; "" when unknown.
  std::string text() const;
};

}  // namespace runner::core
