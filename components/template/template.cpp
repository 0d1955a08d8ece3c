#include "components/template/template.h"

#include <algorithm>
#include <array>

#include "components/template/machine/machine.h"
#include "components/template/syntax/parser.h"
#include "components/template/thoughts.h"
#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

/// Under these names messages carry their reasoning. The first is the one that most templates read.
constexpr std::array<std::string_view, 3> kReasoning = {"reasoning_content", "thinking", "reasoning"};

Failure located(const std::string& name, const Failed& failed) {
  return Failure{name + ":" + std::to_string(failed.place.line) + ":" + std::to_string(failed.place.column) + ": " +
                 failed.message};
}

/// Without nulls; what reasons under one name does so under those that templates read.
Node normalized(const Node& message) {
  Node made = Node::mapping();
  const Node* reasoning = nullptr;
  for (const std::string_view name : kReasoning) {
    const Node* found = message.find(name);
    if (!reasoning && found && !found->is_null()) reasoning = found;
  }
  if (reasoning && !(message.find("thinking") && !message.find("thinking")->is_null()))
    made.set("thinking", *reasoning);
  for (const auto& entry : message.entries()) {
    if (!entry.value.is_null()) made.set(entry.key, entry.value);
  }
  if (reasoning) made.set("reasoning_content", *reasoning);
  return made;
}

/// Of a message, tells what of its texts is a thought: its reasoning, and what stands between marks in its content.
Value with_thoughts(Value message) {
  for (auto& [key, value] : message.as_mapping().entries) {
    if (!value.is_text() || value.as_text().origins.empty()) continue;
    Text text = value.as_text();
    const Origin whole = text.origins[0];
    if (std::find(kReasoning.begin(), kReasoning.end(), key.bytes()) != kReasoning.end()) {
      text.origins[0].part = Part::kThought;
      value = Value::text(std::move(text));
    } else if (key.bytes() == "content") {
      Text parted{text.bytes};
      std::size_t at = 0;
      const auto add = [&](std::size_t end, Part part) {
        if (at >= end) return;
        Origin origin = whole;
        origin.begin = at;
        origin.end = at = end;
        origin.part = part;
        parted.origins.push_back(origin);
      };
      for (const Thought& thought : thoughts_in(text.bytes)) {
        add(thought.begin, Part::kAnswer);
        add(thought.text_begin, Part::kThoughtMark);
        add(thought.text_end, Part::kThought);
        add(thought.end, Part::kThoughtMark);
      }
      add(text.bytes.size(), Part::kAnswer);
      value = Value::text(std::move(parted));
    }
  }
  return message;
}

Value list_of(std::vector<Value> messages) {
  const Value list = Value::list(std::move(messages));
  for (const Value& message : list.items()) {
    list.as_list().weight += weight_of(message);
    if (list.as_list().source == kNoMessage) list.as_list().source = message_of(message);
  }
  return list;
}

std::vector<Piece> pieces_of(const Text& text) {
  std::vector<Piece> pieces;
  const auto add = [&](Piece piece) {
    if (piece.begin >= piece.end) return;
    if (!pieces.empty()) {
      Piece& last = pieces.back();
      if (last.message == piece.message && last.by_text == piece.by_text && last.pass == piece.pass &&
          last.in_generation == piece.in_generation && last.part == piece.part) {
        last.end = piece.end;
        return;
      }
    }
    pieces.push_back(piece);
  };
  std::size_t at = 0;
  for (const Origin& origin : text.origins) {
    add({at, origin.begin});
    add({origin.begin, origin.end, origin.message, origin.by_text, origin.in_generation, origin.pass,
         origin.by_text ? origin.part : Part::kAnswer});
    at = origin.end;
  }
  add({at, text.bytes.size()});
  return pieces;
}

}  // namespace

Result<Template> Template::parse(std::string_view source, std::string name) {
  if (source.size() > kSourceMax) {
    return Failure{name + ": a template may have " + std::to_string(kSourceMax) + " bytes, this one has " +
                   std::to_string(source.size())};
  }
  try {
    if (const std::size_t at = runner::core::find_invalid_utf8(source); at != std::string_view::npos) {
      return Failure{name + ": byte " + std::to_string(at) + " is not UTF-8"};
    }
    Template made;
    made.tree_ = std::make_shared<const Tree>(parse_template(source));
    made.name_ = std::move(name);
    return made;
  } catch (const Failed& failed) {
    return located(name, failed);
  }
}

Result<Rendering> Template::render(const Value& variables, const RenderOptions& options) const {
  try {
    Text text = Machine(*tree_, variables.as_mapping(), options).run();
    std::vector<Piece> pieces = pieces_of(text);
    return Rendering{std::move(text.bytes), std::move(pieces)};
  } catch (const Failed& failed) {
    return located(name_, failed);
  }
}

Result<Rendering> Template::render(const Chat& chat, const RenderOptions& options) const {
  const Result<Value> variables = variables_of(chat);
  if (!variables) return variables.failure();
  return render(variables.value(), options);
}

bool is_of_chat(std::string_view variable) { return variable == "messages" || variable == "add_generation_prompt"; }

bool Template::has_generation() const { return tree_->has_generation; }

bool Template::names(std::string_view word) const { return tree_->words.find(word) != tree_->words.end(); }

Result<Value> variables_of(const Chat& chat) {
  auto variables = std::make_shared<Mapping>();
  std::vector<Value> messages;
  for (const Node& message : chat.messages.items()) {
    if (message.kind() != Node::Kind::kMapping) {
      return Failure{"message " + std::to_string(messages.size() + 1) + " of the chat is not a mapping"};
    }
    const auto index = static_cast<std::int32_t>(messages.size());
    messages.push_back(with_thoughts(Value::from_message(normalized(message), index)));
  }
  variables->set(Value::text(std::string("tools")), Value::from(chat.tools));
  variables->set(Value::text(std::string("documents")), Value::from(chat.documents));
  for (const auto& entry : chat.variables.entries()) {
    const Node* own = entry.key == "tools" ? &chat.tools : entry.key == "documents" ? &chat.documents : nullptr;
    if (own == nullptr || own->is_null()) variables->set(Value::text(entry.key), Value::from(entry.value));
  }
  variables->set(Value::text(std::string("messages")), list_of(std::move(messages)));
  variables->set(Value::text(std::string("add_generation_prompt")), Value::boolean(chat.add_generation_prompt));
  return Value::mapping(std::move(variables));
}

}  // namespace components::jinja
