#include "components/tokenizer/post_processor.h"

#include <algorithm>
#include <utility>

#include "components/tokenizer/text/unicode.h"
#include "components/tokenizer/text/vocabulary.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using runner::core::RunError;

constexpr char32_t kSpaceChar = 0x120;  // what stands for the byte of a space

class InOrder final : public PostProcessor {
 public:
  explicit InOrder(std::vector<std::unique_ptr<PostProcessor>> parts) : parts_(std::move(parts)) {}
  void apply(Encoded& encoded, bool add_special_tokens, Growth& growth) const override {
    for (const auto& part : parts_) part->apply(encoded, add_special_tokens, growth);
  }
  void apply(EncodedPair& pair, bool add_special_tokens, Growth& growth) const override {
    for (const auto& part : parts_) part->apply(pair, add_special_tokens, growth);
  }
  std::size_t added_to_text() const override {
    std::size_t count = 0;
    for (const auto& part : parts_) count += part->added_to_text();
    return count;
  }
  std::size_t added_to_pair() const override {
    std::size_t count = 0;
    for (const auto& part : parts_) count += part->added_to_pair();
    return count;
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> parts_;
};

/// Takes white space at both ends of tokens out of their offsets.
class TrimOffsets final : public PostProcessor {
 public:
  TrimOffsets(bool trim, bool add_prefix_space) : trim_(trim), add_prefix_space_(add_prefix_space) {}

  void apply(Encoded& encoded, bool, Growth&) const override {
    if (!trim_ || !encoded.trim_offsets) return;
    std::vector<Offsets>& offsets = encoded.encoding.offsets;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const std::vector<char32_t> chars = code_points(encoded.text_of(i));
      const auto blank = [](char32_t c) { return c == kSpaceChar || char_table().is(c, kSpace); };
      auto leading = static_cast<std::uint32_t>(std::find_if_not(chars.begin(), chars.end(), blank) - chars.begin());
      const auto trailing =
          static_cast<std::uint32_t>(std::find_if_not(chars.rbegin(), chars.rend(), blank) - chars.rbegin());
      Offsets& own = offsets[i];
      if (leading > 0) {
        // A single one may be what was added before the text, so it stays; several are not.
        if (add_prefix_space_ && leading == 1 && (i == 0 || own.begin == 0)) leading = 0;
        own.begin = std::min(own.begin + leading, own.end);
      }
      if (trailing > 0 && own.end >= trailing) own.end = std::max(own.end - trailing, own.begin);
    }
  }

  void apply(EncodedPair& pair, bool add_special_tokens, Growth& growth) const override {
    apply(pair.first, add_special_tokens, growth);
    apply(pair.second, add_special_tokens, growth);
  }
  std::size_t added_to_text() const override { return 0; }
  std::size_t added_to_pair() const override { return 0; }

 private:
  bool trim_, add_prefix_space_;
};

/// Ids around the text, which may stand several times, or around two of them.
class Template final : public PostProcessor {
 public:
  struct Item {
    bool text = false;
    std::vector<std::int32_t> ids = {};  // of what is not the text
    std::int32_t type_id = 0;
    bool second = false;  // of a pair
  };
  Template(const std::vector<Item>& items, std::vector<Item> pair) : pair_(std::move(pair)) {
    for (const Item& item : items) {
      if (items_.empty() || item.text || items_.back().text) {
        items_.push_back(item);
      } else {
        items_.back().ids.insert(items_.back().ids.end(), item.ids.begin(), item.ids.end());
      }
    }
  }

  void apply(Encoded& encoded, bool add_special_tokens, Growth& growth) const override {
    Encoding result;
    const Encoding& text = encoded.encoding;
    std::size_t size = 0;
    for (const Item& item : items_) size += item.text ? text.ids.size() : add_special_tokens ? item.ids.size() : 0;
    growth.add(size);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      if (item.text) {
        result.ids.insert(result.ids.end(), text.ids.begin(), text.ids.end());
        result.offsets.insert(result.offsets.end(), text.offsets.begin(), text.offsets.end());
      } else if (add_special_tokens) {
        std::span<const std::int32_t> ids = item.ids;
        if (encoded.only_missing && i == 0) ids = ids.first(ids.size() - written_before(ids, text.ids));
        if (encoded.only_missing && i + 1 == items_.size()) ids = ids.subspan(written_behind(ids, text.ids));
        result.ids.insert(result.ids.end(), ids.begin(), ids.end());
        if (encoded.with_offsets) result.offsets.resize(result.ids.size());
      }
    }
    encoded.encoding = std::move(result);
  }

  void apply(EncodedPair& pair, bool add_special_tokens, Growth& growth) const override {
    if (pair.joined) throw RunError("two post-processors of the tokenizer join a pair");
    Encoded all;
    all.with_offsets = pair.first.with_offsets;
    all.trim_offsets = pair.first.trim_offsets;
    all.vocabulary = pair.first.vocabulary;
    for (const Item& item : pair_) {
      if (!item.text && !add_special_tokens) continue;
      Encoded part;
      if (item.text) {
        part = item.second ? pair.second : pair.first;
      } else {
        part.encoding.ids = item.ids;
        part.encoding.offsets.resize(all.with_offsets ? item.ids.size() : 0);
        part.encoding.origins.assign(item.ids.size(), Origin::kAdded);
      }
      part.encoding.type_ids.assign(part.encoding.ids.size(), item.type_id);
      growth.add(all.encoding.ids.size() + part.encoding.ids.size());
      all.append(part);
    }
    pair = {std::move(all), {}, true};
  }
  std::size_t added_to_text() const override { return added_by(items_); }
  std::size_t added_to_pair() const override { return added_by(pair_); }

 private:
  static std::size_t added_by(const std::vector<Item>& items) {
    std::size_t count = 0;
    for (const Item& item : items) count += item.ids.size();
    return count;
  }

  std::vector<Item> pair_;
  std::vector<Item> items_;  // between two of them that are not the text stands the text
};

std::int32_t special_of(const Fields& fields, std::string_view key) {
  // `["</s>", 2]`
  const runner::core::Node* pair = fields.find(key);
  if (pair == nullptr || !pair->is_sequence() || pair->items().size() != 2 || !pair->items()[1].is_integer() ||
      pair->items()[1].as_integer() < 0 || pair->items()[1].as_integer() >= Vocabulary::kIdsMax) {
    throw fields.error(key, "is not a token with its id");
  }
  return static_cast<std::int32_t>(pair->items()[1].as_integer());
}

std::vector<Template::Item> read_items(const Fields& fields, const char* list) {
  std::vector<Template::Item> items;
  for (const Fields& piece : fields.objects(list)) {
    Template::Item item;
    const auto type_of = [](const Fields& of) {
      return of.has("type_id") ? static_cast<std::int32_t>(of.integer("type_id", 0, Vocabulary::kIdsMax - 1)) : 0;
    };
    if (piece.has("Sequence")) {
      const Fields sequence = piece.object("Sequence");
      const std::string id = sequence.text("id");
      const bool of_pair = std::string_view(list) == "pair";
      if (id != "A" && !(of_pair && id == "B")) {
        throw piece.error("Sequence.id", of_pair ? "is neither \"A\" nor \"B\"" : "is not \"A\"");
      }
      item.text = true;
      item.second = id == "B";
      item.type_id = type_of(sequence);
      items.push_back(std::move(item));
      continue;
    }
    const Fields special = piece.object("SpecialToken");
    item.type_id = type_of(special);
    const std::string name = special.text("id");
    const Fields tokens = fields.object("special_tokens");
    if (!tokens.has(name)) {
      throw piece.error("SpecialToken.id", "is " + runner::core::quote(name) + ", which special_tokens lacks");
    }
    const Fields token = tokens.object(name);
    const runner::core::Node* ids = token.find("ids");
    if (ids == nullptr || !ids->is_sequence()) throw token.error("ids", "is not a list of ids");
    for (const runner::core::Node& id : ids->items()) {
      if (!id.is_integer() || id.as_integer() < 0 || id.as_integer() >= Vocabulary::kIdsMax) {
        throw token.error("ids", "holds what is no id");
      }
      item.ids.push_back(static_cast<std::int32_t>(id.as_integer()));
    }
    items.push_back(std::move(item));
  }
  return items;
}

constexpr bool kText = true;

std::unique_ptr<PostProcessor> make_template(const Fields& fields) {
  std::vector<Template::Item> pair = {{kText, {}, 0, false}, {kText, {}, 1, true}};  // when nothing is said
  if (fields.has("pair")) pair = read_items(fields, "pair");
  return std::make_unique<Template>(read_items(fields, "single"), std::move(pair));
}

/// `first` before a text and `last` behind each; of a pair `middle` before the second text.
std::unique_ptr<PostProcessor> make_frame(std::int32_t first, std::int32_t last, std::vector<std::int32_t> middle,
                                          std::int32_t type_of_second) {
  const Template::Item begin{false, {first}}, end{false, {last}}, text{kText};
  std::vector<Template::Item> pair = {begin, text, end, {false, std::move(middle)}};
  pair.push_back({kText, {}, type_of_second, true});
  pair.push_back({false, {last}, type_of_second});
  return std::make_unique<Template>(std::vector<Template::Item>{begin, text, end}, std::move(pair));
}

}  // namespace

std::size_t written_before(std::span<const std::int32_t> before, std::span<const std::int32_t> text) {
  std::size_t count = std::min(before.size(), text.size());
  while (!std::equal(before.end() - static_cast<std::ptrdiff_t>(count), before.end(), text.begin())) --count;
  return count;
}

std::size_t written_behind(std::span<const std::int32_t> behind, std::span<const std::int32_t> text) {
  std::size_t count = std::min(behind.size(), text.size());
  while (!std::equal(text.end() - static_cast<std::ptrdiff_t>(count), text.end(), behind.begin())) --count;
  return count;
}

std::unique_ptr<PostProcessor> make_bert_frame(std::int32_t first, std::int32_t last) {
  return make_frame(first, last, {}, 1);
}

std::string_view Encoded::text_of(std::size_t place) const {
  const auto at = std::lower_bound(added_texts.begin(), added_texts.end(), place,
                                   [](const auto& entry, std::size_t wanted) { return entry.first < wanted; });
  if (at != added_texts.end() && at->first == place) return at->second;
  return vocabulary->token_of(encoding.ids[place]).value_or("");
}

void cut(Encoding& encoding, std::size_t count, Side side) {
  const std::size_t size = encoding.ids.size();
  if (count >= size) return;
  const std::size_t gone = side == Side::kLeft ? size - count : 0;
  const auto leave = [&](auto& list) {
    if (list.empty()) return;
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(gone));
    list.resize(count);
  };
  leave(encoding.ids);
  leave(encoding.offsets);
  leave(encoding.type_ids);
  leave(encoding.origins);
}

std::size_t room_for_text(const Truncation& truncation, std::size_t added) {
  if (truncation.max_length >= added) return truncation.max_length - added;
  throw RunError("a text cannot be cut to " + std::to_string(truncation.max_length) +
                 " tokens: " + std::to_string(added) + " are added to it");
}

void Encoded::cut(std::size_t count, Side side) {
  const std::size_t size = encoding.ids.size();
  if (count >= size) return;
  const std::size_t gone = side == Side::kLeft ? size - count : 0;
  tokenizer::cut(encoding, count, side);
  std::erase_if(added_texts, [&](const auto& entry) { return entry.first < gone || entry.first >= gone + count; });
  for (auto& [place, text] : added_texts) place -= gone;
}

void Encoded::append(const Encoded& other) {
  const std::size_t before = encoding.ids.size();
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(encoding.ids, other.encoding.ids);
  add(encoding.offsets, other.encoding.offsets);
  add(encoding.type_ids, other.encoding.type_ids);
  add(encoding.origins, other.encoding.origins);
  for (const auto& [place, text] : other.added_texts) added_texts.emplace_back(before + place, text);
}

void shorten(EncodedPair& pair, const Truncation& truncation, std::size_t added) {
  if (truncation.max_length < added) {
    throw RunError("a pair cannot be cut to " + std::to_string(truncation.max_length) +
                   " tokens: " + std::to_string(added) + " are added to it");
  }
  const std::size_t most = truncation.max_length - added;
  const std::size_t first = pair.first.encoding.ids.size(), second = pair.second.encoding.ids.size();
  if (first + second <= most) return;
  const std::size_t excess = first + second - most;
  if (truncation.shortened != Shortened::kLongest) {
    const bool is_first = truncation.shortened == Shortened::kFirst;
    const std::size_t own = is_first ? first : second;
    if (own <= excess && most > 0) {
      throw RunError("a pair cannot be cut to " + std::to_string(truncation.max_length) + " tokens: its " +
                     (is_first ? "first" : "second") + " text has " + std::to_string(own) + ", and " +
                     std::to_string(excess) + " have to go");
    }
    if (most > 0) return (is_first ? pair.first : pair.second).cut(own - excess, truncation.side);
  }
  // The shorter one stays whole where it has no more than half; of an odd number the longer one gets one more.
  std::size_t less = std::min(first, second), more = std::max(less, most - std::min(less, most));
  if (less + more > most) {
    less = most / 2;
    more = less + most % 2;
  }
  pair.first.cut(first > second ? more : less, truncation.side);
  pair.second.cut(first > second ? less : more, truncation.side);
}

std::unique_ptr<PostProcessor> make_post_processor(const Fields& fields) {
  const std::string type = fields.text("type");
  if (type == "Sequence") {
    std::vector<std::unique_ptr<PostProcessor>> parts;
    for (const Fields& part : fields.objects("processors")) parts.push_back(make_post_processor(part));
    return std::make_unique<InOrder>(std::move(parts));
  }
  if (type == "ByteLevel") {
    return std::make_unique<TrimOffsets>(fields.flag("trim_offsets", true), fields.flag("add_prefix_space", true));
  }
  if (type == "TemplateProcessing") return make_template(fields);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    std::vector<std::unique_ptr<PostProcessor>> parts;
    if (type == "RobertaProcessing") {
      parts.push_back(
          std::make_unique<TrimOffsets>(fields.flag("trim_offsets", true), fields.flag("add_prefix_space", true)));
    }
    const std::int32_t first = special_of(fields, "cls"), last = special_of(fields, "sep");
    const bool roberta = type == "RobertaProcessing";
    parts.push_back(roberta ? make_frame(first, last, {last}, 0) : make_bert_frame(first, last));
    return std::make_unique<InOrder>(std::move(parts));
  }
  throw fields.error("type", "is " + runner::core::quote(type) + ", a post-processor that roux does not know",
                     "it knows Sequence, ByteLevel, TemplateProcessing, BertProcessing and RobertaProcessing");
}

}  // namespace components::tokenizer
