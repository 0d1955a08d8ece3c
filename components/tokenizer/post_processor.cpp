#include "components/tokenizer/post_processor.h"

#include <algorithm>
#include <utility>

#include "components/tokenizer/text/unicode.h"
#include "components/tokenizer/text/vocabulary.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

constexpr char32_t kSpaceChar = 0x120;  // what stands for the byte of a space

class InOrder final : public PostProcessor {
 public:
  explicit InOrder(std::vector<std::unique_ptr<PostProcessor>> parts) : parts_(std::move(parts)) {}
  void apply(Encoded& encoded, bool add_special_tokens, Growth& growth) const override {
    for (const auto& part : parts_) part->apply(encoded, add_special_tokens, growth);
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

 private:
  bool trim_, add_prefix_space_;
};

/// Ids around the text, which may stand several times.
class Template final : public PostProcessor {
 public:
  struct Item {
    bool text = false;
    std::vector<std::int32_t> ids = {};  // of what is not the text
  };
  explicit Template(const std::vector<Item>& items) {
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

 private:
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

std::unique_ptr<PostProcessor> make_template(const Fields& fields) {
  std::vector<Template::Item> items;
  for (const Fields& piece : fields.objects("single")) {
    if (piece.has("Sequence")) {
      if (piece.object("Sequence").text("id") != "A") throw piece.error("Sequence.id", "is not \"A\"");
      items.push_back({true, {}});
      continue;
    }
    const std::string name = piece.object("SpecialToken").text("id");
    const Fields tokens = fields.object("special_tokens");
    if (!tokens.has(name)) {
      throw piece.error("SpecialToken.id", "is " + runner::core::quote(name) + ", which special_tokens lacks");
    }
    const Fields token = tokens.object(name);
    Template::Item item;
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
  return std::make_unique<Template>(std::move(items));
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
  std::vector<Template::Item> items;
  items.push_back({false, {first}});
  items.push_back({true, {}});
  items.push_back({false, {last}});
  return std::make_unique<Template>(std::move(items));
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
    parts.push_back(make_bert_frame(special_of(fields, "cls"), special_of(fields, "sep")));
    return std::make_unique<InOrder>(std::move(parts));
  }
  throw fields.error("type", "is " + runner::core::quote(type) + ", a post-processor that roux does not know",
                     "it knows Sequence, ByteLevel, TemplateProcessing, BertProcessing and RobertaProcessing");
}

}  // namespace components::tokenizer
