#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/data.h"
#include "components/data/fields/odd_roles.h"
#include "components/data/language/encoded_text.h"
#include "components/data/language/head_records.h"
#include "components/data/language/jsonl_keys.h"
#include "components/data/language/jsonl_record.h"
#include "components/data/language/source_text.h"
#include "components/data/recipe_tokenizer.h"
#include "components/data/record/record_cache.h"
#include "components/data/record/record_set.h"
#include "components/data/record/record_stream.h"
#include "components/tensor/tensor_spec.h"
#include "components/tokenizer/chat/chat_writer.h"
#include "generated/data/jsonl.h"
#include "runner/core/text/utf8.h"

namespace components::data::jsonl {
namespace {

using runner::core::Failure;
using runner::core::Result;
using tokenizer::Encoding;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

constexpr const char* kAssistant = "assistant";
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

RecordColumns columns_of(const Config& config) {
  if (!config.columns) return {};
  const auto name = [](const std::optional<std::string>& field) { return field.value_or(""); };
  RecordColumns columns;
  columns.text = name(config.columns->text);
  columns.prompt = name(config.columns->prompt);
  columns.completion = name(config.columns->completion);
  columns.messages = name(config.columns->messages);
  columns.chosen = name(config.columns->chosen);
  columns.rejected = name(config.columns->rejected);
  columns.label = name(config.columns->label);
  columns.system = name(config.columns->system);
  columns.tools = name(config.columns->tools);
  columns.instruction = name(config.columns->instruction);
  columns.input = name(config.columns->input);
  columns.output = name(config.columns->output);
  columns.of_messages.role = name(config.columns->role);
  columns.of_messages.content = name(config.columns->content);
  return columns;
}

/// Makes samples of records.
class Encoder {
 public:
  /// `chat`: or why there is none, which only a conversation asks for.
  Encoder(std::shared_ptr<const Tokenizer> tokenizer, Result<tokenizer::ChatWriterPtr> chat, const Config& config,
          bool labelled)
      : tokenizer_(std::move(tokenizer)),
        chat_(std::move(chat)),
        loss_on_(config.loss_on),
        ends_(config.train_on_eos),
        learns_thoughts_(config.train_on_thinking) {
    columns_ = columns_of(config);
    if (config.roles) {
      const auto add = [this](const std::vector<std::string>& words, const char* role) {
        for (const std::string& word : words) columns_.of_messages.roles[word] = role;
      };
      add(config.roles->system, "system");
      add(config.roles->user, "user");
      add(config.roles->assistant, "assistant");
      add(config.roles->tool, "tool");
    }
    columns_.labelled = labelled;
    columns_.instructions_are_chat = config.chat_format && !config.chat_format->is_null();
    if (!chat_) return;
    columns_.of_messages.reads = [writer = chat_.value()](std::string_view field) { return writer->reads(field); };
    end_ = tokenizer_->id_of(chat_.value()->end_of_turn());
  }

  Result<Sequence> operator()(const std::string& text, std::int64_t /*vocab_size*/) const {
    const Result<TextRecord> record = parse_text_record(text, columns_);
    if (!record) return record.failure();
    Result<Sequence> encoded = encode(record.value());
    if (!encoded) return encoded;
    encoded.value().unread = record.value().unread;
    encoded.value().fields = record.value().fields;
    return encoded;
  }

 private:
  using Spans = std::vector<std::pair<std::size_t, std::size_t>>;  ///< characters [begin, end), in order

  /// The text of a conversation, and what of it counts in the loss.
  struct Written {
    std::string text;
    Encoding encoding;
    Spans answers, unlearnt;  ///< that count, and those that do not
    Spans thoughts;           ///< that do not count, within answers
    std::size_t last = 0;     ///< the message behind the last one that counts
  };

  Result<Sequence> encode(const TextRecord& record) const {
    if (columns_.labelled && !record.is_pair()) return labelled_record(record);
    switch (record.kind) {
      case TextRecord::Kind::kText: return encoded_text(*tokenizer_, record.text);
      case TextRecord::Kind::kCompletion: return completion(record);
      case TextRecord::Kind::kMessages: return conversation(record);
      case TextRecord::Kind::kPair:
      case TextRecord::Kind::kMessagePair: return pair(record);
    }
    return Failure{"", ""};
  }

  /// As TRL does: encoded whole, and the completion begins where it leaves the prompt's tokens.
  Result<Sequence> labelled_record(const TextRecord& record) const {
    Result<Sequence> sequence =
        record.kind == TextRecord::Kind::kCompletion ? labelled_text(record) : labelled_conversation(record);
    if (sequence) sequence.value().desirable = record.desirable;
    return sequence;
  }

  Result<Sequence> labelled_text(const TextRecord& record) const {
    return with_prompt(encoded_prompt(record), ended(record, record.text));
  }

  Result<Sequence> labelled_conversation(const TextRecord& record) const {
    TextRecord prompt = record;
    prompt.messages.resize(record.completion_from);
    const auto from = record.messages.begin() + static_cast<std::ptrdiff_t>(record.completion_from);
    return with_prompt(continued(prompt, {}), continued(prompt, {from, record.messages.end()}));
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
    Spans thoughts;
    if (!learns_thoughts_) {
      std::size_t at = 0, counted = begin;
      for (const tokenizer::Answer& thought : tokenizer::thoughts_of(record.text)) {
        add_span(record.text, thought.begin, thought.end, at, counted, thoughts);
      }
    }
    Sequence sequence = labelled(encoding.value(), {{begin, begin + characters(record.text)}}, {}, thoughts);
    // Of an empty completion what stands at the end is the prompt's, unless the tokenizer has added it.
    const auto& offsets = encoding.value().offsets;
    const bool of_prompt = record.text.empty() && !offsets.empty() && offsets.back() != tokenizer::Offsets{};
    add_end(*tokenizer_, sequence, of_prompt);
    if (sequence.input.empty()) return Failure{"prompt and completion are empty", ""};
    return sequence;
  }

  /// Whether `loss_on` and the message itself have its answer learnt.
  bool counts(const TextRecord& record, std::size_t message, std::size_t last) const {
    if (!record.messages[message].is_learnt) return false;
    switch (loss_on_) {
      case LossOn::kCompletion: return message >= record.completion_from;
      case LossOn::kLast: return message == last;
      case LossOn::kAssistant:
      case LossOn::kAll: break;
    }
    return true;
  }

  /// Bytes [begin, end) as characters of the text. `at`, `counted`: bytes, and the characters in them.
  static void add_span(const std::string& text, std::size_t begin, std::size_t end, std::size_t& at,
                       std::size_t& counted, Spans& spans) {
    const std::size_t first = counted + characters(std::string_view(text).substr(at, begin - at));
    counted = first + characters(std::string_view(text).substr(begin, end - begin));
    at = end;
    spans.emplace_back(first, counted);
  }

  Result<Written> written(const TextRecord& record, const tokenizer::Chat& chat) const {
    auto rendered = chat_.value()->render(chat);
    if (!rendered) return rendered.failure();
    Written whole;
    whole.text = std::move(rendered.value().text);
    auto encoding = encoded(whole.text, {.add_special_tokens = false});
    if (!encoding) return encoding.failure();
    whole.encoding = std::move(encoding.value());
    if (whole.encoding.ids.empty()) {
      return Failure{"the chat format writes nothing of this conversation",
                     "look for a loop over another name than messages, or a condition that is never true"};
    }
    std::size_t last = 0;
    for (std::size_t i = 0; i < chat.messages.size(); ++i) {
      if (chat.messages[i].role == kAssistant) last = i;
    }
    std::size_t at = 0, counted = 0;
    for (const tokenizer::Answer& answer : rendered.value().answers) {
      const bool is_learnt = counts(record, answer.message, last);
      add_span(whole.text, answer.begin, answer.end, at, counted, is_learnt ? whole.answers : whole.unlearnt);
      if (is_learnt) whole.last = std::max(whole.last, answer.message + 1);
    }
    take_completion(record, chat, whole);
    if (learns_thoughts_) return whole;
    at = counted = 0;
    for (const tokenizer::Answer& thought : rendered.value().thoughts) {
      add_span(whole.text, thought.begin, thought.end, at, counted, whole.thoughts);
    }
    return whole;
  }

  /// A completion of messages is all behind the prompt and what asks for the answer, as TRL has it.
  void take_completion(const TextRecord& record, const tokenizer::Chat& chat, Written& whole) const {
    const std::size_t from = record.completion_from;
    if (loss_on_ != LossOn::kCompletion || from == 0 || from >= chat.messages.size()) return;
    const auto first = chat.messages.begin() + static_cast<std::ptrdiff_t>(from);
    const auto is_learnt = [](const tokenizer::Message& message) { return message.is_learnt; };
    if (!std::all_of(first, chat.messages.end(), is_learnt)) return;
    const tokenizer::Chat before{{chat.messages.begin(), first}, chat.tools, chat.variables};
    const auto prompt = chat_.value()->render(before, /*answer=*/true);
    if (!prompt || !whole.text.starts_with(prompt.value().text)) return;
    std::size_t begin = characters(prompt.value().text);
    // A format without a prompt for an answer writes what stands there in front of the answer itself.
    if (first->role == kAssistant && !whole.answers.empty()) begin = std::max(begin, whole.answers.front().first);
    whole.answers = {{begin, characters(whole.text)}};
  }

  Result<Sequence> conversation(const TextRecord& record) const {
    if (!chat_) return Failure{"a conversation, but " + chat_.failure().message, chat_.failure().hint};
    tokenizer::Chat chat{record.messages, record.tools, record.variables};
    auto whole = written(record, chat);
    if (!whole) return whole.failure();
    // Nothing behind the last answer that counts changes the loss, where answers alone are learnt.
    const bool takes_all = loss_on_ == LossOn::kAll || ends_ == TrainOnEos::kAll;
    const bool leaves_out =
        !takes_all && std::any_of(chat.messages.begin(), chat.messages.end(),
                                  [](const tokenizer::Message& message) { return !message.is_learnt; });
    const std::size_t last = whole.value().last;
    if (leaves_out && last > 0 && last < chat.messages.size()) {
      chat.messages.resize(last);
      auto part = written(record, chat);
      const Ids& ids = whole.value().encoding.ids;
      if (part && common_beginning(part.value().encoding.ids, ids) == part.value().encoding.ids.size()) whole = part;
    }
    const Written& chosen = whole.value();
    Sequence sequence = labelled(chosen.encoding, chosen.answers, chosen.unlearnt, chosen.thoughts);
    label_ends(sequence);
    sequence.odd_roles = odd_roles(record.messages);
    return sequence;
  }

  /// Has the end tokens of turns learnt as `train_on_eos` says, whatever else is.
  void label_ends(Sequence& sequence) const {
    if (ends_ == TrainOnEos::kTurn || !end_ || sequence.labels.empty()) return;
    std::size_t last = sequence.labels.size();
    for (std::size_t i = 0; i < sequence.input.size(); ++i) {
      if (sequence.input[i] != *end_) continue;
      if (ends_ == TrainOnEos::kAll) {
        sequence.labels[i] = *end_;
      } else if (sequence.labels[i] != static_cast<std::int32_t>(kPadTarget)) {
        sequence.labels[i] = static_cast<std::int32_t>(kPadTarget);
        last = i;
      }
    }
    if (ends_ == TrainOnEos::kLast && last < sequence.labels.size()) sequence.labels[last] = *end_;
  }

  Result<Sequence> pair(const TextRecord& record) const {
    if (loss_on_ == LossOn::kAll || loss_on_ == LossOn::kLast) {
      return Failure{"a pair of chosen and rejected, but loss_on is " + std::string(to_text(loss_on_)),
                     "remove loss_on: of a pair its completions count"};
    }
    if (ends_ != TrainOnEos::kTurn) {
      return Failure{"a pair of chosen and rejected, but train_on_eos is " + std::string(to_text(ends_)),
                     "remove train_on_eos: of a pair its completions count with their ends"};
    }
    if (!learns_thoughts_) {
      return Failure{"a pair of chosen and rejected, but train_on_thinking is false",
                     "remove train_on_thinking: of a pair its completions count with their thoughts"};
    }
    return record.kind == TextRecord::Kind::kPair ? pair_of_texts(record) : pair_of_conversations(record);
  }

  /// Both completions end with the end token, which one that is written out counts as.
  Result<Sequence> pair_of_texts(const TextRecord& record) const {
    return pair_of_ids(encoded_prompt(record), ended(record, record.text), ended(record, record.rejected));
  }

  Result<Ids> encoded_ids(const std::string& text, const tokenizer::EncodeOptions& options) const {
    auto encoding = tokenizer_->encode(text, options);
    if (!encoding) return encoding.failure();
    return std::move(encoding.value().ids);
  }

  Result<Ids> encoded_prompt(const TextRecord& record) const {
    return encoded_ids(record.prompt, tokenizer_->for_text());
  }

  /// The prompt with a completion of it, and the end token behind that.
  Result<Ids> ended(const TextRecord& record, const std::string& completion) const {
    const auto eos = tokenizer_->special().eos;
    if (!eos) {
      return Failure{std::string(record.is_pair() ? "a pair of chosen and rejected" : "a labelled record") +
                         ", but the tokenizer has no end token",
                     "name it as eos_token in the tokenizer_config.json beside tokenizer.json"};
    }
    auto ids = encoded_ids(record.prompt + completion, tokenizer_->for_text());
    if (ids && (ids.value().empty() || ids.value().back() != *eos)) ids.value().push_back(*eos);
    return ids;
  }

  /// A conversation ends as its format ends it: nothing is put behind that.
  Result<Sequence> pair_of_conversations(const TextRecord& record) const {
    return pair_of_ids(continued(record, {}), continued(record, record.chosen_messages),
                       continued(record, record.rejected_messages));
  }

  /// The messages of the prompt with an answer, or up to where one begins.
  Result<Ids> continued(const TextRecord& record, const std::vector<tokenizer::Message>& answer) const {
    if (!chat_) return Failure{"a conversation, but " + chat_.failure().message, chat_.failure().hint};
    if (record.messages.back().role == kAssistant) {
      const bool is_pair = record.is_pair();
      return Failure{std::string("the prompt of a ") + (is_pair ? "pair" : "labelled record") +
                         " ends with a message of the assistant",
                     is_pair ? "end it with the message that chosen and rejected answer"
                             : "end it with the message that the completion answers"};
    }
    std::vector<tokenizer::Message> all = record.messages;
    all.insert(all.end(), answer.begin(), answer.end());
    const auto rendered = chat_.value()->render({all, record.tools, record.variables}, /*answer=*/answer.empty());
    if (!rendered) return rendered.failure();
    return encoded_ids(rendered.value().text, {.add_special_tokens = false});
  }

  /// As TRL does: each sequence is encoded whole, and its completion begins where one of the two leaves the prompt, or
  /// of two labelled records each by itself.
  Result<Sequence> pair_of_ids(const Result<Ids>& prompt, const Result<Ids>& chosen,
                               const Result<Ids>& rejected) const {
    for (const auto* one : {&prompt, &chosen, &rejected}) {
      if (!*one) return one->failure();
    }
    std::size_t of_chosen = common_beginning(prompt.value(), chosen.value());
    std::size_t of_rejected = common_beginning(prompt.value(), rejected.value());
    if (!columns_.labelled) of_chosen = of_rejected = std::min(of_chosen, of_rejected);
    if (chosen.value().size() == of_chosen) return Failure{"chosen adds no token to the prompt", ""};
    if (rejected.value().size() == of_rejected) return Failure{"rejected adds no token to the prompt", ""};
    return pair_of(behind(of_chosen, chosen.value()), behind(of_rejected, rejected.value()));
  }

  static Result<Sequence> with_prompt(const Result<Ids>& prompt, const Result<Ids>& whole) {
    for (const auto* one : {&prompt, &whole}) {
      if (!*one) return one->failure();
    }
    const std::size_t begin = common_beginning(prompt.value(), whole.value());
    if (whole.value().size() == begin) return Failure{"completion adds no token to the prompt", ""};
    return behind(begin, whole.value());
  }

  /// These ids, of which those from `begin` on are learnt.
  static Sequence behind(std::size_t begin, const Ids& ids) {
    Sequence sequence;
    sequence.input = sequence.labels = ids;
    std::fill_n(sequence.labels.begin(), begin, static_cast<std::int32_t>(kPadTarget));
    return sequence;
  }

  /// Tokens outside of `spans` have no part in the loss, nor have those that the tokenizer added; with `loss_on: all`
  /// those inside of `unlearnt` have none. Nor has a token of `thoughts` alone.
  Sequence labelled(const Encoding& encoding, const Spans& spans, const Spans& unlearnt, const Spans& thoughts) const {
    const auto lies_in = [](const Spans& list, const tokenizer::Offsets& token, bool whole = false) {
      const auto& [begin, finish] = token;
      const auto span =
          std::partition_point(list.begin(), list.end(), [at = begin](const auto& one) { return one.second <= at; });
      if (begin >= finish || span == list.end()) return false;
      return whole ? begin >= span->first && finish <= span->second : finish > span->first;
    };
    Sequence sequence;
    sequence.input = encoding.ids;
    const bool all = loss_on_ == LossOn::kAll;
    if (all && unlearnt.empty() && thoughts.empty() && ends_ == TrainOnEos::kTurn) return sequence;
    for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
      const tokenizer::Offsets& place = encoding.offsets[i];
      const bool counts = (all ? !lies_in(unlearnt, place) : lies_in(spans, place)) && !lies_in(thoughts, place, true);
      sequence.labels.push_back(counts ? encoding.ids[i] : static_cast<std::int32_t>(kPadTarget));
    }
    return sequence;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  Result<tokenizer::ChatWriterPtr> chat_;
  LossOn loss_on_;
  TrainOnEos ends_;
  bool learns_thoughts_;
  std::optional<std::int32_t> end_;  ///< of an answer
  RecordColumns columns_;
};

/// Nothing when an error was reported. Why there is none concerns conversations only, unless the recipe names one.
std::optional<Result<tokenizer::ChatWriterPtr>> chat_writer(const Config& config, const Tokenizer& tokenizer,
                                                            const Inputs& inputs) {
  if (!config.chat_format || config.chat_format->is_null()) {
    auto own = tokenizer::chat_writer_of(tokenizer);
    if (own || !inputs.new_rows) return own;
    return Result<tokenizer::ChatWriterPtr>(
        Failure{own.failure().message, "write texts, {prompt, completion} or {text}, as those of the training"});
  }
  auto written = tokenizer::written_chat_writer(*config.chat_format, tokenizer, inputs.diagnostics);
  if (written == nullptr) return std::nullopt;
  return Result<tokenizer::ChatWriterPtr>(std::move(written));
}

/// False, with an error, where end tokens are to be told apart and an answer ends with none.
bool knows_ends(const Config& config, const Result<tokenizer::ChatWriterPtr>& chat, const Tokenizer& tokenizer,
                const Inputs& inputs) {
  if (config.train_on_eos == TrainOnEos::kTurn || !chat) return true;
  const std::string end = chat.value()->end_of_turn();
  if (tokenizer.id_of(end)) return true;
  inputs.diagnostics.error(location_of(inputs.block, "train_on_eos"),
                           "data." + inputs.name + ".train_on_eos: the chat format ends an answer with " +
                               runner::core::quote(end) + ", which is no token",
                           "remove train_on_eos, or use a chat format whose end is a token of the tokenizer");
  return false;
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
  const bool names_others = names.prompt || names.completion || names.messages || names.chosen || names.rejected ||
                            names.instruction || names.input || names.output;
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
  const bool has_head = are_targets(inputs.labels) || have_vectors(inputs.labels);
  if (!(has_head ? fits_head(config, inputs) : fits_no_head(config, inputs))) return nullptr;
  if (!has_head && config.columns && !name_one_form(*config.columns, inputs)) return nullptr;
  const bool has_source = inputs.labels == LabelKind::kWritten;
  if (has_source && !fits_source(config, inputs)) return nullptr;
  if (!has_source && config.max_target_len) {
    inputs.diagnostics.error(location_of(inputs.block, "max_target_len"),
                             "data." + inputs.name + ".max_target_len is set, but a record is one text here",
                             "remove it: max_seq_len is of the whole text, of prompt and completion together");
    return nullptr;
  }
  auto chat = chat_writer(config, **tokenizer, inputs);
  if (!chat || !knows_ends(config, *chat, **tokenizer, inputs)) return nullptr;
  RecordSetOptions options;
  options.labels = inputs.labels;
  const bool has_none = inputs.labels == LabelKind::kMasked || inputs.labels == LabelKind::kRewards ||
                        (inputs.labels == LabelKind::kDesirable && inputs.new_rows);
  if (has_none) options.labels = LabelKind::kNone;
  const bool labelled = options.labels == LabelKind::kDesirable;
  if (labelled && !fits_labels(config, inputs)) return nullptr;
  options.files = find_text_files(config.path, config.exclude, FileKind::kRecords, inputs);
  if (options.files.empty()) return nullptr;
  // New rows are predicted one and all.
  const auto share = apply_split(inputs.new_rows ? std::nullopt : config.split, config.split_by == SplitBy::kFiles,
                                 "lines", options.files, inputs);
  if (!share) return nullptr;
  options.share = *share;
  options.max_seq_len = config.max_seq_len;
  if (has_source) options.max_target_len = config.max_target_len.value_or(config.max_seq_len);
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
  // A model that looks both ways reads the mask of all sets, or of none.
  options.always_mask = inputs.labels != LabelKind::kNone && inputs.labels != LabelKind::kDesirable &&
                        inputs.labels != LabelKind::kRewards;
  options.settings = encoding_settings(inputs.block, **tokenizer);
  // The cache key needs it: the loss decides how records are encoded, and is not one of the data set's settings.
  if (options.labels != LabelKind::kNone && !are_in_place(options.labels) && !options.settings.empty()) {
    options.settings += "labels " + std::to_string(static_cast<int>(options.labels)) + "\n";
    if (has_source) {
      options.settings +=
          "decoder " + std::to_string(inputs.decoder.start) + " " + std::to_string(inputs.decoder.padding) + "\n";
    }
  }
  if (has_head) {
    const auto length = options.too_long == LongRecord::kCut ? options.max_seq_len : std::nullopt;
    options.parse = encoder_of_head(config, inputs, *tokenizer, length);
  } else if (has_source) {
    const bool cuts = options.too_long == LongRecord::kCut;
    options.parse =
        SourceTextEncoder(*tokenizer, columns_of(config), inputs.decoder,
                          {cuts ? options.max_seq_len : std::nullopt, cuts ? options.max_target_len : std::nullopt});
  } else {
    options.parse = Encoder(*tokenizer, std::move(*chat), config, labelled);
  }
  options.format = {.text_field = labelled || has_head || has_source ? "" : text_field_of(config),
                    .arrays = true,
                    .questions = inputs.labels == LabelKind::kSpans,
                    .words = inputs.labels == LabelKind::kTags};
  options.parse_text = [tokenizer = *tokenizer, field = options.format.text_field](const std::string& text) {
    auto encoded = encoded_text(*tokenizer, text);
    if (encoded) encoded.value().fields.add(field, true);
    return encoded;
  };
  if (inputs.name == "train") options.if_too_large = "set streaming: true, and training.max_steps";
  if (!config.streaming || inputs.new_rows) return make_record_set(options, inputs);
  options.shuffle_buffer = config.shuffle_buffer.value_or(kShuffleBuffer);
  return make_record_stream(std::move(options), inputs);
}

}  // namespace components::data::jsonl
