#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "components/template/template.h"
#include "runner/core/result.h"

namespace components::jinja {

/// Bytes [begin, end) of a rendered text that a message's answer is, or a part of it.
struct Range {
  std::size_t begin = 0, end = 0;
  std::int32_t message = kNoMessage;  ///< index in Chat::messages
};
/// In order and without overlap; neighbours of one message are one.
using Ranges = std::vector<Range>;

/// What the template writes for an answer that is to be generated: what `add_generation_prompt` adds behind the
/// messages before the first answer of the chat. Of a template that adds nothing, what it writes in front of the text
/// of an answer, unless that is white space. Failure: as Template::render().
runner::core::Result<std::string> generation_prompt(const Template& chat_template, const Chat& chat,
                                                    const RenderOptions& options = {});

/// The bytes that an assistant learns, of one rendering. Where the template has `{% generation %}` these are its
/// blocks. Elsewhere they are what the passes of the assistant's messages wrote behind the generation prompt, the end
/// token included, without the texts of others (a template may write the result of a tool there). An end token that the
/// template writes behind all messages is learned when the last one is the assistant's.
///
/// chat     that was rendered, without a generation prompt at its end
/// prompt   generation_prompt() of it
/// Failure  a part of an answer, or a text behind the last one, belongs to no message; it is shown
runner::core::Result<Ranges> answers_of(const Template& chat_template, const Chat& chat, const Rendering& rendering,
                                        std::string_view prompt);

}  // namespace components::jinja
