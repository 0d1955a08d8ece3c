#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/data.h"
#include "components/data/language/encoded_text.h"
#include "components/data/language/jsonl_record.h"
#include "components/data/language/recipe_tokenizer.h"
#include "components/data/record/odd_roles.h"
#include "components/data/record/record_set.h"
#include "components/data/record/record_stream.h"
#include "components/tensor/tensor_spec.h"
#include "components/tokenizer/chat/chat_writer.h"
#include "generated/data/jsonl.h"

namespace components::data::jsonl {
namespace {

using runner::core::Failure;
using runner::core::Result;
using tokenizer::Encoding;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kShuffleBuffer = 10'000;  ///< records, where the key `shuffle_buffer` is left out

/// Positions of the bytes of a text that begin a character, counted.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// How many ids two lists begin with alike.
std::size_t common_beginning(const Ids& one, const Ids& other) {
  return static_cast<std::size_t>(std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first -
                                  one.begin());
}

/// Makes samples of records.
class Encoder {
 public:
  /// `chat`: or why there is none, which only a conversation asks for.
  Encoder(std::shared_ptr<const Tokenizer> tokenizer, Result<tokenizer::ChatWriterPtr> chat, const Config& config)
      : tokenizer_(std::move(tokenizer)),
        chat_(std::move(chat)),
        all_(config.loss_on == LossOn::kAll),
        streams_(config.streaming) {
    if (config.columns) {
      const auto name = [](const std::optional<std::string>& field) { return field.value_or(""); };
      columns_ = {name(config.columns->text),     name(config.columns->prompt), name(config.columns->completion),
                  name(config.columns->messages), name(config.columns->chosen), name(config.columns->rejected)};
    }
    columns_.instructions_are_chat = config.chat_format && !config.chat_format->is_null();
  }

  Result<Sequence> operator()(const std::string& text, std::int64_t /*vocab_size*/) const {
    const Result<TextRecord> record = parse_text_record(text, columns_);
    if (!record) return record.failure();
    Result<Sequence> encoded = encode(record.value());
    if (encoded) encoded.value().unread = record.value().unread;
    return encoded;
  }

 private:
  using Spans = std::vector<std::pair<std::size_t, std::size_t>>;  ///< characters [begin, end)

  Result<Sequence> encode(const TextRecord& record) const {
    switch (record.kind) {
      case TextRecord::Kind::kText: return encoded_text(*tokenizer_, record.text);
      case TextRecord::Kind::kCompletion: return completion(record);
      case TextRecord::Kind::kMessages: return conversation(record);
      case TextRecord::Kind::kPair:
      case TextRecord::Kind::kMessagePair: return pair(record);
    }
    return Failure{"", ""};
  }

  /// With the place of each token.
  Result<Encoding> encoded(const std::string& text, tokenizer::EncodeOptions options) const {
    options.with_offsets = true;
    options.trim_offsets = false;
    return tokenizer_->encode(text, options);
  }

  /// A token that lies in both belongs to the completion, which it is a part of the beginning of.
  Result<Sequence> completion(const TextRecord& record) const {
    auto encoding = encoded(record.prompt + record.text, tokenizer_->for_text());
    if (!encoding) return encoding.failure();
    const std::size_t begin = characters(record.prompt);
    Sequence sequence = labelled(encoding.value(), {{begin, begin + characters(record.text)}});
    // Of an empty completion what stands at the end is the prompt's, unless the tokenizer has added it.
    const auto& offsets = encoding.value().offsets;
    const bool of_prompt = record.text.empty() && !offsets.empty() && offsets.back() != tokenizer::Offsets{};
    add_end(*tokenizer_, sequence, of_prompt);
    if (sequence.input.empty()) return Failure{"prompt and completion are empty", ""};
    return sequence;
  }

  Result<Sequence> conversation(const TextRecord& record) const {
    if (!chat_) return Failure{"a conversation, but " + chat_.failure().message, chat_.failure().hint};
    const auto rendered = chat_.value()->render(record.messages);
    if (!rendered) return rendered.failure();
    const std::string& text = rendered.value().text;
    auto encoding = encoded(text, {.add_special_tokens = false});
    if (!encoding) return encoding.failure();
    if (encoding.value().ids.empty()) {
      return Failure{"the chat format writes nothing of this conversation",
                     "look for a loop over another name than messages, or a condition that is never true"};
    }
    Spans answers;
    std::size_t at = 0, counted = 0;  // bytes, and the characters in them
    for (const auto& [begin, finish] : rendered.value().answers) {
      const std::size_t first = counted + characters(std::string_view(text).substr(at, begin - at));
      counted = first + characters(std::string_view(text).substr(begin, finish - begin));
      answers.emplace_back(first, counted);
      at = finish;
    }
    Sequence sequence = labelled(encoding.value(), answers);
    sequence.odd_roles = odd_roles(record.messages);
    return sequence;
  }

  Result<Sequence> pair(const TextRecord& record) const {
    if (streams_) return Failure{"a pair of chosen and rejected, but streaming is true", "remove streaming"};
    if (all_) return Failure{"a pair of chosen and rejected, but loss_on is all", "remove loss_on"};
    return record.kind == TextRecord::Kind::kPair ? pair_of_texts(record) : pair_of_conversations(record);
  }

  /// Both completions end with the end token, which one that is written out counts as.
  Result<Sequence> pair_of_texts(const TextRecord& record) const {
    const auto eos = tokenizer_->special().eos;
    if (!eos)
      return Failure{"a pair of chosen and rejected, but the tokenizer has no end token",
                     "name it as eos_token in the tokenizer_config.json beside tokenizer.json"};
    const auto encoded = [&](const std::string& text) -> Result<Ids> {
      auto encoding = tokenizer_->encode(text, tokenizer_->for_text());
      if (!encoding) return encoding.failure();
      return std::move(encoding.value().ids);
    };
    const auto ended = [&](const std::string& completion) {
      auto ids = encoded(record.prompt + completion);
      if (ids && (ids.value().empty() || ids.value().back() != *eos)) ids.value().push_back(*eos);
      return ids;
    };
    return pair_of_ids(encoded(record.prompt), ended(record.text), ended(record.rejected));
  }

  /// A conversation ends as its format ends it: nothing is put behind that.
  Result<Sequence> pair_of_conversations(const TextRecord& record) const {
    if (!chat_) return Failure{"a conversation, but " + chat_.failure().message, chat_.failure().hint};
    if (record.messages.back().role == "assistant") {
      return Failure{"the prompt of a pair ends with a message of the assistant",
                     "end it with the message that chosen and rejected answer"};
    }
    const auto encoded = [&](const std::vector<tokenizer::Message>& answer) -> Result<Ids> {
      std::vector<tokenizer::Message> all = record.messages;
      all.insert(all.end(), answer.begin(), answer.end());
      const auto rendered = chat_.value()->render(all, /*answer=*/answer.empty());
      if (!rendered) return rendered.failure();
      auto encoding = tokenizer_->encode(rendered.value().text, {.add_special_tokens = false});
      if (!encoding) return encoding.failure();
      return std::move(encoding.value().ids);
    };
    return pair_of_ids(encoded({}), encoded(record.chosen_messages), encoded(record.rejected_messages));
  }

  /// As TRL does: each sequence is encoded whole, and its completion begins where one of the two leaves the prompt.
  static Result<Sequence> pair_of_ids(const Result<Ids>& prompt, const Result<Ids>& chosen,
                                      const Result<Ids>& rejected) {
    for (const auto* one : {&prompt, &chosen, &rejected}) {
      if (!*one) return one->failure();
    }
    const std::size_t begin =
        std::min(common_beginning(prompt.value(), chosen.value()), common_beginning(prompt.value(), rejected.value()));
    for (const auto& [name, ids] : {std::pair{"chosen", &chosen}, std::pair{"rejected", &rejected}}) {
      if (ids->value().size() == begin) return Failure{std::string(name) + " adds no token to the prompt", ""};
    }
    const auto with_prompt = [begin](const Ids& ids) {
      Sequence sequence;
      sequence.input = sequence.labels = ids;
      std::fill_n(sequence.labels.begin(), begin, static_cast<std::int32_t>(kPadTarget));
      return sequence;
    };
    return pair_of(with_prompt(chosen.value()), with_prompt(rejected.value()));
  }

  /// Tokens outside of `spans` have no part in the loss, nor have those that the tokenizer added.
  Sequence labelled(const Encoding& encoding, const Spans& spans) const {
    Sequence sequence;
    sequence.input = encoding.ids;
    if (all_) return sequence;
    for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
      const auto& [begin, finish] = encoding.offsets[i];
      const auto span =
          std::partition_point(spans.begin(), spans.end(), [at = begin](const auto& one) { return one.second <= at; });
      const bool inside = begin < finish && span != spans.end() && finish > span->first;
      sequence.labels.push_back(inside ? encoding.ids[i] : static_cast<std::int32_t>(kPadTarget));
    }
    return sequence;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  Result<tokenizer::ChatWriterPtr> chat_;
  bool all_, streams_;
  RecordColumns columns_;
};

/// Nothing when an error was reported. Why there is none concerns conversations only, unless the recipe names one.
std::optional<Result<tokenizer::ChatWriterPtr>> chat_writer(const Config& config, const Tokenizer& tokenizer,
                                                            const Inputs& inputs) {
  if (!config.chat_format || config.chat_format->is_null()) return tokenizer::chat_writer_of(tokenizer);
  auto written = tokenizer::written_chat_writer(*config.chat_format, tokenizer, inputs.diagnostics);
  if (written == nullptr) return std::nullopt;
  return Result<tokenizer::ChatWriterPtr>(std::move(written));
}

LongRecord long_record(TooLong word) {
  switch (word) {
    case TooLong::kCut: return LongRecord::kCut;
    case TooLong::kDrop: return LongRecord::kDrop;
    case TooLong::kError: break;
  }
  return LongRecord::kError;
}

/// The field that is a whole text whatever else a record has; "" where others are named.
std::string text_field_of(const Config& config) {
  if (!config.columns) return "text";
  const auto& names = *config.columns;
  if (names.text) return *names.text;
  const bool names_others = names.prompt || names.completion || names.messages || names.chosen || names.rejected;
  return names_others ? "" : "text";
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const auto tokenizer = tokenizer_of(config.tokenizer, inputs);
  if (!tokenizer) return nullptr;
  if (*tokenizer == nullptr) {
    inputs.diagnostics.error(inputs.block.location(), "data." + inputs.name + " needs a tokenizer",
                             "add tokenizer: {type: file, path: FOLDER}, or init_from: FOLDER with one");
    return nullptr;
  }
  auto chat = chat_writer(config, **tokenizer, inputs);
  if (!chat) return nullptr;
  RecordSetOptions options;
  options.files = find_text_files(config.path, config.exclude, FileKind::kRecords, inputs);
  if (options.files.empty()) return nullptr;
  const auto share = apply_split(config.split, config.split_by == SplitBy::kFiles, "lines", options.files, inputs);
  if (!share) return nullptr;
  options.share = *share;
  options.max_seq_len = config.max_seq_len;
  options.too_long = long_record(config.too_long);
  options.packing = config.packing;
  options.fill.multiple = config.pad_to_multiple_of;
  options.on_bad_record = config.on_bad_record == OnBadRecord::kSkip ? BadRecord::kSkip : BadRecord::kError;
  options.use(*tokenizer);
  if (config.chat_format) {
    if (std::string file = tokenizer::written_template_file(*config.chat_format); !file.empty()) {
      options.read_beside.push_back(std::move(file));
    }
  }
  options.parse = Encoder(*tokenizer, std::move(*chat), config);
  options.text_field = text_field_of(config);
  options.parse_text = [tokenizer = *tokenizer](const std::string& text) { return encoded_text(*tokenizer, text); };
  if (inputs.name == "train") options.if_too_large = "set streaming: true, and training.max_steps";
  if (!config.streaming || inputs.new_rows) return make_record_set(options, inputs);
  options.shuffle_buffer = config.shuffle_buffer.value_or(kShuffleBuffer);
  return make_record_stream(std::move(options), inputs);
}

}  // namespace components::data::jsonl
