#include "tests/fuzz/tokenizer_files.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "components/tokenizer/pipeline.h"
#include "components/tokenizer/sentencepiece.h"
#include "components/tokenizer/tokenizer_file.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace tests {
namespace {

using components::tokenizer::FolderSettings;
using components::tokenizer::Tokenizer;

constexpr std::size_t kBytesMax = 1 << 16;
constexpr std::string_view kWords[] = {"null",
                                       "true",
                                       "false",
                                       "0",
                                       "-1",
                                       "2147483648",
                                       "1e9",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "[[",
                                       "\"a b\",",
                                       "[\"a\",\"b\"],",
                                       "\"(a+)+$\"",
                                       "\"\\\\p{L}\"",
                                       "\"\\\\s+|(?!x)\"",
                                       "\"\\u2581\"",
                                       "\"type\":\"Sequence\",",
                                       "\"ByteLevel\"",
                                       "\"Metaspace\"",
                                       "\"Split\"",
                                       "\"NFC\"",
                                       "\"NFKD\"",
                                       "\"Strip\"",
                                       "\"Lowercase\"",
                                       "\"BertNormalizer\"",
                                       "\"BertPreTokenizer\"",
                                       "\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAABhAA==\"",
                                       "\"StripAccents\"",
                                       "\"Nmt\"",
                                       "\"WordPiece\"",
                                       "\"Unigram\"",
                                       "[\"a\",-1.5],",
                                       "\"unk_id\":0,",
                                       "\"max_input_chars_per_word\":0,",
                                       "\"continuing_subword_prefix\":\"\",",
                                       "[UNK]\n",
                                       "\"Removed\"",
                                       "\"Contiguous\"",
                                       "\"TemplateProcessing\"",
                                       "\"unk_token\":\"a\",",
                                       "\"byte_fallback\":true,",
                                       "\"fuse_unk\":true,",
                                       "\"ignore_merges\":true,",
                                       "\"lstrip\":true,",
                                       "\"single_word\":true,",
                                       "\"normalized\":true,",
                                       "\"add_prefix_space\":true,",
                                       "\"end_of_word_suffix\":\"</w>\",",
                                       "\x0A\x05",
                                       "\x12\x04",
                                       "\x18\x04",
                                       "\xFF\xFF\xFF\xFF\x0F",
                                       "<0xE2>",
                                       "\xE2\x96\x81"};
const std::string kTexts[] = {"",
                              " ",
                              "Hello world",
                              "  it's 1234 o'clock\n\n\tdon't\r\n",
                              "\xE2\x96\x81\xE2\x96\x81"
                              "a b\xE2\x96\x81",
                              "e\xCC\x81\xC3\xA9\xEA\xB0\x81",
                              "\xF0\x9F\x98\x80\xEF\xAC\x81<s></s><|endoftext|><mask> the THE<think>",
                              std::string(300, 'a'),
                              std::string("\0\x01\x7F", 3),
                              "\xC4\xB0\xC5\xBF'\xC5\xBF"};

void use(const Tokenizer& tokenizer) {
  components::tokenizer::EncodeOptions options;
  options.with_offsets = true;
  for (const std::string& text : kTexts) {
    const auto encoding = tokenizer.encode(text, options);
    if (!encoding) continue;
    if (encoding.value().offsets.size() != encoding.value().ids.size()) std::abort();
    for (const auto& offsets : encoding.value().offsets) {
      // The libraries leave an empty token at the end in bytes.
      if (offsets.end > text.size()) std::abort();
    }
    const auto pair = tokenizer.encode_pair(text, "a b", options, components::tokenizer::Truncation{6});
    if (pair && (pair.value().offsets.size() != pair.value().ids.size() || pair.value().ids.size() > 6 ||
                 pair.value().type_ids.size() != pair.value().ids.size() ||
                 pair.value().origins.size() != pair.value().ids.size())) {
      std::abort();
    }
    std::vector<std::int32_t> ids = encoding.value().ids;
    for (const std::int32_t id : ids) {
      if (id < 0) std::abort();
    }
    ids.insert(ids.end(), {-1, 0, 1, 255, 1 << 30});
    const auto decoded = tokenizer.decode(ids, true);
    if (decoded && runner::core::find_invalid_utf8(decoded.value()) != std::string_view::npos) std::abort();
  }
}

}  // namespace

void TokenizerFiles::damage(std::string& file) {
  const std::size_t at = below(file.size() + 1);
  const std::size_t length = std::min(1 + below(24), file.size() - at);
  // What is short stands at both ends of a tokenizer.json, and much of the rest is tokens.
  const std::size_t near_start = std::min(below(1500), file.size());
  switch (below(8)) {
    case 0:
      if (at < file.size()) file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
      break;
    case 1: {
      const std::size_t colon = std::min(file.find(':', near_start), file.size());
      const std::size_t end = std::min(file.find_first_of(",}", colon), file.size());
      if (colon + 1 < end) file.replace(colon + 1, end - colon - 1, kWords[below(std::size(kWords))]);
      break;
    }
    case 2: file.insert(near_start, kWords[below(std::size(kWords))]); break;
    case 3: file.insert(at, kWords[below(std::size(kWords))]); break;
    case 4: file.erase(at, length); break;
    case 5: {
      const std::string& other = corpus_[below(corpus_.size())];
      file.replace(at, length, other, below(other.size()), length);
      break;
    }
    case 6: {
      const std::size_t quote = std::min(file.find('"', near_start), file.size());
      const std::size_t end = std::min(file.find('"', std::min(quote + 1, file.size())), file.size());
      if (end > quote) file.replace(quote, end - quote + (end < file.size() ? 1 : 0), kWords[below(std::size(kWords))]);
      break;
    }
    default: {
      const std::string part = file.substr(at, length);
      for (std::size_t i = below(100); i > 0; --i) file.insert(at, part);
    }
  }
  if (file.size() > kBytesMax) file.resize(kBytesMax);
}

std::string TokenizerFiles::next() {
  std::string file = corpus_[below(corpus_.size())];
  for (std::size_t rounds = 1 + below(3); rounds > 0; --rounds) damage(file);
  return file;
}

void TokenizerFiles::read(const std::string& file) {
  const std::string exact(file);  // without room after it, so that a sanitizer sees what reads too far
  try {
    if (exact.starts_with('{')) {
      use(*components::tokenizer::make_pipeline(components::tokenizer::read_tokenizer_json(exact, "tokenizer.json"),
                                                FolderSettings{}, {"tokenizer.json", "", "", {}}));
    } else if (exact.starts_with('[')) {
      use(*components::tokenizer::make_bert_pipeline(components::tokenizer::read_vocab_txt(exact, "vocab.txt"),
                                                     FolderSettings{}, {"vocab.txt", "", "", {}}));
    } else {
      use(*components::tokenizer::make_sentencepiece(
          components::tokenizer::read_sentencepiece_model(exact, "tokenizer.model"), FolderSettings{},
          {"tokenizer.model", "", "", {}}));
    }
  } catch (const runner::core::RunError&) {
  }
}

}  // namespace tests
