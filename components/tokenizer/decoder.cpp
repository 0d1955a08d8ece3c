#include "components/tokenizer/decoder.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "components/tokenizer/replacement.h"
#include "components/tokenizer/text/byte_chars.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kReplacementCharacter = "\xEF\xBF\xBD";

class InOrder final : public Decoder {
 public:
  explicit InOrder(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  void apply(Texts& tokens, Growth& growth) const override {
    for (const auto& part : parts_) part->apply(tokens, growth);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

class ByteLevel final : public Decoder {
 public:
  void apply(Texts& tokens, Growth&) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of_token(token).value_or(token);
    tokens = {with_replacements(bytes)};
  }
};

class Replace final : public Decoder {
 public:
  explicit Replace(const Fields& fields) : replacement_(fields) {}
  void apply(Texts& tokens, Growth& growth) const override {
    for (std::string& token : tokens) token = replacement_.apply(token, growth);
  }

 private:
  Replacement replacement_;
};

class ByteFallback final : public Decoder {
 public:
  void apply(Texts& tokens, Growth&) const override {
    Texts result;
    std::string bytes;
    const auto end_bytes = [&] {
      if (bytes.empty()) return;
      if (runner::core::find_invalid_utf8(bytes) == std::string_view::npos) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), kReplacementCharacter);
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const int byte = byte_of_name(token); byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      end_bytes();
      result.push_back(std::move(token));
    }
    end_bytes();
    tokens = std::move(result);
  }
};

class Fuse final : public Decoder {
 public:
  void apply(Texts& tokens, Growth&) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  }
};

class Strip final : public Decoder {
 public:
  Strip(const Fields& fields)
      : start_(static_cast<std::size_t>(fields.integer("start", 0, 1'000'000))),
        stop_(static_cast<std::size_t>(fields.integer("stop", 0, 1'000'000))) {
    append_utf8(content_, fields.character("content"));
  }
  void apply(Texts& tokens, Growth&) const override {
    for (std::string& token : tokens) {
      std::string_view left = token;
      for (std::size_t i = 0; i < start_ && left.starts_with(content_); ++i) left.remove_prefix(content_.size());
      for (std::size_t i = 0; i < stop_ && left.ends_with(content_); ++i) left.remove_suffix(content_.size());
      if (left.size() < token.size()) token = std::string(left);
    }
  }

 private:
  std::size_t start_, stop_;
  std::string content_;
};

class Metaspace final : public Decoder {
 public:
  explicit Metaspace(const Fields& fields) {
    append_utf8(replacement_, fields.character("replacement"));
    const bool prefix = fields.flag("add_prefix_space", true);
    drops_first_ = fields.text("prepend_scheme", prefix ? "always" : "never") != "never";
  }
  void apply(Texts& tokens, Growth& growth) const override {
    const Replacement with_space(make_literal(replacement_), " "), with_nothing(make_literal(replacement_), "");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = (i == 0 && drops_first_ ? with_nothing : with_space).apply(tokens[i], growth);
    }
  }

 private:
  std::string replacement_;
  bool drops_first_;
};

class Suffix final : public Decoder {
 public:
  explicit Suffix(const std::string& suffix) : between_(make_literal(suffix), " "), last_(make_literal(suffix), "") {}
  void apply(Texts& tokens, Growth& growth) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = (i + 1 == tokens.size() ? last_ : between_).apply(tokens[i], growth);
    }
  }

 private:
  Replacement between_, last_;
};

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)) {
    if (!cleanup) return;
    for (const auto& [before, after] : kTidied) tidied_.emplace_back(make_literal(before), after);
  }
  void apply(Texts& tokens, Growth& growth) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else if (i > 0) {
        token.insert(0, " ");
      }
      if (token.find(' ') == std::string::npos) continue;  // all of them begin with one
      for (const Replacement& replacement : tidied_) token = replacement.apply(token, growth);
    }
  }

 private:
  // One after another, as the library does it.
  static constexpr std::pair<const char*, const char*> kTidied[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

  std::string prefix_;
  std::vector<Replacement> tidied_;
};

}  // namespace

int byte_of_name(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? static_cast<int>(byte) : -1;
}

std::unique_ptr<Decoder> make_wordpiece_decoder(std::string prefix, bool cleanup) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}

std::unique_ptr<Decoder> make_decoder(const Fields& fields) {
  const std::string type = fields.text("type");
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> parts;
    for (const Fields& part : fields.objects("decoders")) parts.push_back(make_decoder(part));
    return std::make_unique<InOrder>(std::move(parts));
  }
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Replace") return std::make_unique<Replace>(fields);
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return std::make_unique<Strip>(fields);
  if (type == "Metaspace") return std::make_unique<Metaspace>(fields);
  if (type == "BPEDecoder") return std::make_unique<Suffix>(fields.text("suffix", "</w>"));
  if (type == "WordPiece") return make_wordpiece_decoder(fields.text("prefix", "##"), fields.flag("cleanup", true));
  throw fields.error("type", "is " + runner::core::quote(type) + ", a decoder that roux does not know",
                     "it knows Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder "
                     "and WordPiece");
}

}  // namespace components::tokenizer
