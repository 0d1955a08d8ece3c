#include "runner/engine/texts/text_writer.h"

#include <utility>

#include "runner/core/error.h"

namespace runner::engine {

namespace generation = components::generation;

TextWriter::TextWriter(Options options, const std::vector<std::int64_t>& sequences, GenerationSink& sink)
    : options_(std::move(options)), sink_(sink) {
  const std::int64_t samples = options_.config.num_return_sequences;
  for (const std::int64_t sequence : sequences) {
    texts_.push_back(
        {generation::TextStream(options_.decode), generation::StopStrings(options_.config.stop_strings), {}});
    texts_.back().made.prompt = sequence / samples;
    texts_.back().made.sample = sequence % samples;
  }
}

bool TextWriter::token(std::size_t sequence, std::int32_t id, float log_probability) {
  Text& text = texts_[sequence];
  text.made.tokens.push_back(id);
  if (options_.request.logprobs) text.made.logprobs.push_back(log_probability);
  if (!options_.end_ids.contains(id)) show(text, text.stops.feed(text.stream.push(id)));
  return !text.stops.stopped();
}

bool TextWriter::ends(std::size_t sequence, std::span<const std::int32_t> made) {
  if (options_.config.stop_strings.empty()) return false;
  Text copy = texts_[sequence];
  for (const std::int32_t id : made) copy.stops.feed(copy.stream.push(id));
  return copy.stops.stopped();
}

void TextWriter::ended(std::size_t sequence, generation::End how) {
  Text& text = texts_[sequence];
  if (!text.stops.stopped()) show(text, text.stops.feed(text.stream.finish()) + text.stops.finish());
  switch (how) {
    case generation::End::kToken: text.made.finish_reason = "eos"; break;
    case generation::End::kReceiver: text.made.finish_reason = "stop"; break;
    case generation::End::kLength: text.made.finish_reason = "length"; break;
    case generation::End::kInterrupted: text.made.finish_reason = "interrupted"; break;
    case generation::End::kNotFinite:
      throw core::RunError("the model's outputs are not finite",
                           "its weights may hold NaN; try an earlier checkpoint, or --precision 32-true");
    case generation::End::kNoneLeft:
      throw core::RunError("no token is left that may follow: the settings leave out all of the vocabulary",
                           "raise no_repeat_ngram_size, or lower min_new_tokens, max_new_tokens or num_beams");
  }
  sink_.done(text.made);
  text = {generation::TextStream(nullptr), generation::StopStrings({}), {}};
}

bool TextWriter::interrupted() {
  if (options_.before_pass) options_.before_pass();
  return options_.request.interrupted && options_.request.interrupted();
}

void TextWriter::show(Text& text, const std::string& piece) {
  if (piece.empty()) return;
  text.made.text += piece;
  sink_.piece(text.made.prompt, text.made.sample, piece);
}

}  // namespace runner::engine
