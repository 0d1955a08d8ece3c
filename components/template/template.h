#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/template/machine/render_options.h"
#include "components/template/value/value.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::jinja {

struct Tree;

/// A part of a rendered text, and who wrote it.
struct Piece {
  std::size_t begin = 0, end = 0;     ///< bytes
  std::int32_t message = kNoMessage;  ///< index in `messages`: whose text it is, else the same as `pass`
  bool by_text = false;               ///< the message's own text; else the template's
  bool in_generation = false;         ///< inside `{% generation %}`
  std::int32_t pass = kNoMessage;     ///< the message in whose pass of a loop it was written
  Part part = Part::kAnswer;          ///< of a message's text
};

struct Rendering {
  std::string text;
  std::vector<Piece> pieces;  ///< in order, without gap or overlap, over all of `text`
};

/// What a chat template is given.
struct Chat {
  runner::core::Node messages = runner::core::Node::sequence();  ///< mappings
  runner::core::Node tools = {};                                 ///< a list, or null
  runner::core::Node documents = {};
  bool add_generation_prompt = false;
  /// `bos_token`, `eos_token`, `enable_thinking` and whatever else the template asks for: a mapping. `tools` and
  /// `documents` count where there are none of the two above.
  runner::core::Node variables = runner::core::Node::mapping();
};

/// A Jinja2 template as Transformers 5 runs those of chats: trim_blocks, lstrip_blocks, the immutable sandbox, loop
/// controls, `{% generation %}`, `raise_exception`, `strftime_now` and its own `tojson`. It reaches nothing: no files,
/// no environment, no other template; the time is an argument.
///
/// Copies share the tree. Any number of threads may render at a time.
class Template {
 public:
  static constexpr std::size_t kSourceMax = 512UL << 10U;  ///< the longest of known models has 30 KB

  /// `name`: the file, for messages. Failure: what cannot be parsed, with line and column, or more than kSourceMax
  /// bytes.
  static runner::core::Result<Template> parse(std::string_view source, std::string name);

  /// Failure: what the template does wrong, what it refuses (`raise_exception`) or a limit, with line and column.
  runner::core::Result<Rendering> render(const Chat& chat, const RenderOptions& options = {}) const;
  /// The same with any variables, a mapping.
  runner::core::Result<Rendering> render(const Value& variables, const RenderOptions& options = {}) const;

  /// Whether `{% generation %}` says what an assistant wrote.
  bool has_generation() const;

  /// Whether the template has this word as a name, an attribute or a text: a field that it does not name, it does not
  /// read, unless it writes all of a message.
  bool names(std::string_view word) const;

 private:
  std::shared_ptr<const Tree> tree_;
  std::string name_;
};

/// Whether the chat alone says what this variable is.
bool is_of_chat(std::string_view variable);

/// The variables of a chat as apply_chat_template makes them: a message's nulls are left out, its reasoning stands
/// under each name that templates read. Failure: a message that is not a mapping.
runner::core::Result<Value> variables_of(const Chat& chat);

}  // namespace components::jinja
