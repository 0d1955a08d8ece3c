#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "components/tokenizer/tokenizer.h"
#include "tests/support/cost.h"
#include "tests/support/temp_dir.h"

using components::tokenizer::read_tokenizer;

namespace {

void write(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

/// What is wrong with a tokenizer.json, without the folder.
std::string problem_of(const std::string& content) {
  const tests::TempDir folder;
  write(folder / "tokenizer.json", content);
  const auto read = read_tokenizer(folder / "tokenizer.json");
  if (read) return "";
  const std::string& message = read.failure().message;
  return message.substr(message.find("tokenizer.json"));
}

std::string with(const std::string& fields,
                 const std::string& model = R"("vocab":{"a":0,"b":1,"ab":2},"merges":["a b"])") {
  return "{" + fields + (fields.empty() ? "" : ",") + "\"model\":{\"type\":\"BPE\"," + model + "}}";
}

std::string unigram(const std::string& vocabulary) {
  return R"({"model":{"type":"Unigram","unk_id":0,"vocab":[)" + vocabulary + "]}}";
}

}  // namespace

TEST_CASE("a damaged tokenizer.json is refused with file and field", "[tokenizer][damaged]") {
  struct Case {
    std::string content, problem;
  };
  const Case cases[] = {
      {with(""), ""},
      {"", "tokenizer.json: it is not valid JSON from byte 1 on"},
      {"[]", "tokenizer.json: it is not a JSON object"},
      {"{}", "tokenizer.json: model is missing"},
      {R"({"model":{"type":"WordLevel","vocab":{"a":0}}})",
       "tokenizer.json: model.type is \"WordLevel\", a model that roux does not know"},
      {R"({"model":{"vocab":{"a":0}}})", "tokenizer.json: model.type is missing"},
      {R"({"model":{"type":"BPE","vocab":[["a",-1.5]],"merges":[]}})", "tokenizer.json: model.vocab is not an object"},
      {R"({"model":{"type":"WordPiece","vocab":[["[UNK]",0]]}})", "tokenizer.json: model.vocab is not an object"},
      {R"({"model":{"type":"WordPiece","vocab":{"a":0}}})",
       "tokenizer.json: model.unk_token: model.vocab has no token \"[UNK]\""},
      {R"({"model":{"type":"WordPiece","vocab":{"a":0},"unk_token":"a","max_input_chars_per_word":-1}})",
       "tokenizer.json: model.max_input_chars_per_word is not an integer from 0 to 2147483647"},
      {R"({"model":{"vocab":{"a":0},"unk_token":"a","continuing_subword_prefix":"##"}})", ""},
      {unigram(R"(["a",-1.5])"), ""},
      {R"({"model":{"vocab":[["a",-1.5]],"unk_id":0}})", ""},
      {unigram(""), "tokenizer.json: model.vocab has no tokens"},
      {R"({"model":{"type":"Unigram","vocab":{"a":0}}})",
       "tokenizer.json: model.vocab is not a list of tokens with their scores"},
      {R"({"model":{"type":"Unigram"}})", "tokenizer.json: model.vocab is not a list of tokens with their scores"},
      {unigram(R"("a")"), "tokenizer.json: model.vocab[0] is not a token with its score"},
      {unigram(R"(["a",0],["b"])"), "tokenizer.json: model.vocab[1] is not a token with its score"},
      {unigram(R"(["a",0,1])"), "tokenizer.json: model.vocab[0] is not a token with its score"},
      {unigram(R"([0,"a"])"), "tokenizer.json: model.vocab[0] is not a token with its score"},
      {unigram(R"(["a",{}])"), "tokenizer.json: model.vocab[0] is not a token with its score"},
      {unigram(R"({"a":0})"), "tokenizer.json: model.vocab[0] is not a token with its score"},
      {unigram(R"(["a",0],["a",1])"), "tokenizer.json: model.vocab[1] is \"a\", which another one is, too"},
      {R"({"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":1}})",
       "tokenizer.json: model.unk_id is 1, but model.vocab has 1 tokens"},
      {with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"AA=A"})"),
       "tokenizer.json: normalizer.precompiled_charsmap is not base64"},
      {with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"CAAAAA=="})"),
       "tokenizer.json: normalizer.precompiled_charsmap is cut short"},
      {with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAABh"})"),
       "tokenizer.json: normalizer.precompiled_charsmap has texts that are not UTF-8 or not ended"},
      {with("", R"("vocab":{"a":0},"merges":["a b"])"),
       "tokenizer.json: model.merges[0]: \"a\" and \"b\" need the token \"b\", which model.vocab lacks"},
      {with("", R"("vocab":{"a":0,"b":1},"merges":["a b"])"),
       "tokenizer.json: model.merges[0]: \"a\" and \"b\" need the token \"ab\", which model.vocab lacks"},
      // What a merge makes would be one of its own parts.
      {with("", R"("vocab":{"a":0,"":1},"merges":[["a",""]])"),
       "tokenizer.json: model.merges[0]: one of the two is empty"},
      {with("", R"("vocab":{"a":0,"b":1,"ab":0},"merges":["a b"])"),
       "tokenizer.json: model.vocab.ab has the id 0, which another token has, too"},
      {with("", R"("vocab":{"a":0,"a":1},"merges":[])"), "tokenizer.json: model.vocab.a appears twice"},
      {with("", R"("vocab":{"a":-1},"merges":[])"),
       "tokenizer.json: model.vocab.a is -1, not an id from 0 to 15999999"},
      {with("", R"("vocab":{"a":1.5},"merges":[])"), "tokenizer.json: model.vocab.a is not an id"},
      {with("", R"("vocab":{"a":[1]},"merges":[])"), "tokenizer.json: model.vocab.a is not an id"},
      {with("", R"("vocab":{"a":0},"merges":["a"])"),
       "tokenizer.json: model.merges[0] is \"a\", not two tokens with a space between them"},
      {with("", R"("vocab":{"a":0},"merges":[["a","a","a"]])"),
       "tokenizer.json: model.merges[0] holds more than two tokens"},
      {with("", R"("vocab":{"a":0},"merges":[["a"]])"), "tokenizer.json: model.merges[0] is not two tokens"},
      {with("", R"("vocab":{"a":0},"merges":[],"unk_token":"<unk>")"),
       "tokenizer.json: model.unk_token: model.vocab has no token \"<unk>\""},
      {with("", R"("vocab":{"a":0},"merges":[],"dropout":0.1)"),
       "tokenizer.json: model.dropout is not 0: roux encodes a text the same way each time"},
      {with(R"("normalizer":{"type":"Precompiled"})"), "tokenizer.json: normalizer.precompiled_charsmap is missing"},
      {with(R"("normalizer":{"type":"BertNormalizer","lowercase":1})"),
       "tokenizer.json: normalizer.lowercase is neither true nor false"},
      {with(R"("normalizer":{"type":"Upper"})"),
       "tokenizer.json: normalizer.type is \"Upper\", a normalizer that roux does not know"},
      {with(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"UnicodeScripts"}]})"),
       "tokenizer.json: pre_tokenizer.pretokenizers[1].type is \"UnicodeScripts\", a pre-tokenizer that roux does not "
       "know"},
      {with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})"),
       "tokenizer.json: pre_tokenizer.pattern.Regex: the pattern \"(\" is wrong at byte 1: missing closing "
       "parenthesis"},
      {with(R"("pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"isolated"})"),
       "tokenizer.json: pre_tokenizer.behavior is \"isolated\", which roux does not know"},
      {with(R"("post_processor":{"type":"Fancy"})"),
       "tokenizer.json: post_processor.type is \"Fancy\", a post-processor that roux does not know"},
      {with(R"("decoder":{"type":"CTC"})"),
       "tokenizer.json: decoder.type is \"CTC\", a decoder that roux does not know"},
      {with(R"("decoder":{"type":"Strip","content":"ab","start":1,"stop":0})"),
       "tokenizer.json: decoder.content is not one character, but \"ab\""},
      {with(R"("decoder":[])"), "tokenizer.json: decoder is not an object"},
      {with(R"("added_tokens":[{"id":7,"content":"<x>"}])"),
       "tokenizer.json: added_tokens[0].id is 7, but the token \"<x>\" has the id 3, the first that is free"},
      {with(R"("added_tokens":[{"content":"<x>"}])"), "tokenizer.json: added_tokens[0].id is missing"},
      {with(R"("added_tokens":[{"id":3,"content":"<x>","special":1}])"),
       "tokenizer.json: added_tokens[0].special is neither true nor false"},
      {with(
           R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}],"special_tokens":{}})"),
       "tokenizer.json: post_processor.single[0].SpecialToken.id is \"<s>\", which special_tokens lacks"},
      {R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}", "tokenizer.json: a" +
                                                                             [] {
                                                                               std::string zeros;
                                                                               for (int i = 0; i < 63; ++i)
                                                                                 zeros += "[0]";
                                                                               return zeros;
                                                                             }() +
                                                                             " is nested deeper than 64 levels"},
  };
  for (const Case& c : cases) {
    INFO(c.content);
    CHECK(problem_of(c.content) == c.problem);
  }
}

TEST_CASE("a million added tokens are refused where they are too many", "[tokenizer][damaged]") {
  std::string tokens;
  for (int i = 0; i < 1'000'000; ++i) {
    tokens += (i == 0 ? "" : ",") + std::string(R"({"id":)") + std::to_string(3 + i) + R"(,"content":"<)" +
              std::to_string(i) + R"(>"})";
  }
  CHECK(problem_of(with("\"added_tokens\":[" + tokens + "]")) ==
        "tokenizer.json: added_tokens holds more than 100000 tokens");
}

TEST_CASE("a text that is not UTF-8 is refused with its byte", "[tokenizer]") {
  const tests::TempDir folder;
  write(folder / "tokenizer.json", with(""));
  const auto tokenizer = read_tokenizer(folder.path()).value();
  CHECK(tokenizer->encode("ab\xFF").failure().message == "the text is not UTF-8 at byte 2");
  const std::vector<std::string> texts = {"ab", "\xC3"};
  CHECK(tokenizer->encode_batch(texts, {}, 2).failure().message == "text 1: the text is not UTF-8 at byte 0");
}

TEST_CASE("a stage that makes too much of a text is refused before it is written", "[tokenizer][damaged]") {
  const auto sixty = [](const std::string& part) {
    std::string parts = part;
    for (int i = 1; i < 60; ++i) parts += "," + part;
    return "[" + parts + "]";
  };
  const std::string twice = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
  const std::string normalizer = R"("normalizer":{"type":"Sequence","normalizers":)" + sixty(twice) + "}";
  struct Case {
    std::string fields, problem;
    bool decodes = false;
  };
  const Case cases[] = {
      {normalizer, "the normalizer makes 524288 bytes of 1, more than the 262160 that are allowed"},
      {R"("normalizer":{"type":"Sequence","normalizers":)" +
           sixty(R"({"type":"Prepend","prepend":")" + std::string(100'000, 'b') + "\"}") + "}",
       "the normalizer makes 300001 bytes of 1, more than the 262160 that are allowed"},
      // Each writes the bytes as characters of one or two bytes, but the last one.
      {R"("pre_tokenizer":{"type":"Sequence","pretokenizers":)" + sixty(R"({"type":"ByteLevel","use_regex":false})") +
           "}",
       "the pre-tokenizer makes 524287 bytes of 1, more than the 262160 that are allowed"},
      {R"("post_processor":{"type":"Sequence","processors":)" +
           sixty(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"A"}}]})") + "}",
       "the post-processor makes 524288 tokens of 1, more than the 262160 that are allowed"},
      {R"("decoder":{"type":"Sequence","decoders":)" + sixty(twice) + "}",
       "the decoder makes 524288 bytes of 1, more than the 262160 that are allowed", true},
  };
  for (const Case& c : cases) {
    const tests::TempDir folder;
    write(folder / "tokenizer.json", with(c.fields));
    const auto tokenizer = read_tokenizer(folder.path()).value();
    tests::check_cost_of_refusal([&] {
      for (const bool offsets : {false, true}) {
        const auto encoded = tokenizer->encode("a", {.with_offsets = offsets});
        const std::string problem = encoded ? "" : encoded.failure().message;
        CHECK(problem == (c.decodes ? "" : c.problem));
        CHECK((encoded || !encoded.failure().hint.empty()));
      }
      const auto decoded = tokenizer->decode(std::vector<std::int32_t>{0});
      CHECK((decoded ? "" : decoded.failure().message) == (c.decodes ? c.problem : ""));
    });
  }
  // The normalizer writes added tokens, too.
  CHECK(problem_of(with(normalizer + R"(,"added_tokens":[{"id":3,"content":"<a>","normalized":true}])")) ==
        "tokenizer.json: added_tokens: the normalizer makes 524290 bytes of 3, more than the 262192 that are allowed");
}

TEST_CASE("what stands for an unknown token of SentencePiece may not take all memory", "[tokenizer][damaged]") {
  const auto field = [](int number, const std::string& content) {  // of bytes, as a protocol buffer has it
    std::string out;
    for (std::size_t value : {static_cast<std::size_t>(number) << 3 | 2, content.size()}) {
      for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
      out += static_cast<char>(value);
    }
    return out + content;
  };
  const tests::TempDir folder;
  const std::string unknown = field(1, field(1, "<unk>") + "\x18\x02"), letter = field(1, field(1, "a"));
  write(folder / "tokenizer.model", unknown + letter + field(2, "\x18\x02" + field(44, std::string(100'000, 'u'))));
  const auto tokenizer = read_tokenizer(folder.path()).value();
  CHECK(tokenizer->decode(std::vector<std::int32_t>{0, 1}).value().size() == 100'001);
  tests::check_cost_of_refusal([&] {
    CHECK(tokenizer->decode(std::vector<std::int32_t>(100'000, 0)).failure().message ==
          "the decoder makes 8300000 bytes of 500000, more than the 8262144 that are allowed");
  });
}

TEST_CASE("a folder says which tokens are special", "[tokenizer]") {
  const tests::TempDir folder;
  write(folder / "tokenizer.json",
        with(R"("added_tokens":[{"id":3,"content":"<s>","special":true},{"id":4,"content":"</s>","special":true}])"));
  write(folder / "tokenizer_config.json",
        R"({"bos_token":{"content":"<s>","lstrip":false},"pad_token":null,"padding_side":"left","add_bos_token":true,
            "model_max_length":1000000000000000019884624838656,"tokenizer_class":"PreTrainedTokenizerFast"})");
  write(folder / "generation_config.json", R"({"bos_token_id":0,"eos_token_id":[4,3]})");
  const auto tokenizer = read_tokenizer(folder.path()).value();
  CHECK(tokenizer->special().bos == 3);
  CHECK(tokenizer->special().eos == 4);
  CHECK_FALSE(tokenizer->special().pad.has_value());
  CHECK(tokenizer->fill_id() == 4);  // a model without a padding token pads with its end
  CHECK(tokenizer->settings().padding_side == components::tokenizer::Side::kLeft);
  CHECK(tokenizer->settings().add_bos_token == true);
  CHECK_FALSE(tokenizer->settings().model_max_length.has_value());
  CHECK(tokenizer->vocab_size() == 5);
  CHECK(tokenizer->decode(std::vector<std::int32_t>{3, 0, 4}, true).value() == "a");
}

TEST_CASE("vocab.json with merges.txt is a byte-level BPE", "[tokenizer]") {
  const tests::TempDir folder;
  write(folder / "vocab.json", R"({"a":0,"b":1,"ab":2,"\u0120":3,"\u0120ab":4,"<|endoftext|>":5})");
  write(folder / "merges.txt", "#version: 0.2\na b\n\u0120 ab\n");
  write(folder / "special_tokens_map.json", R"({"eos_token":"<|endoftext|>"})");
  const auto tokenizer = read_tokenizer(folder.path()).value();
  CHECK(tokenizer->encode("ab ab<|endoftext|>b").value().ids == std::vector<std::int32_t>{2, 4, 5, 1});
  CHECK(tokenizer->special().eos == 5);
  CHECK(tokenizer->description().format == "vocab.json with merges.txt");

  write(folder / "merges.txt", "#version: 0.2\na b\nab\n");
  CHECK(read_tokenizer(folder.path()).failure().message ==
        folder / "merges.txt:3: \"ab\" is not two tokens with a space between them");
}

TEST_CASE("a damaged vocab.txt is refused with file and line", "[tokenizer][damaged]") {
  const tests::TempDir folder;
  const std::string names = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
  const std::pair<std::string, std::string> cases[] = {
      {names, ""},
      {"", ": it has no tokens"},
      {"[PAD]\n[CLS]\n[SEP]\na\n", ": it has no token \"[UNK]\""},
      {"[PAD]\n[UNK]\n[SEP]\na\n", ": it has no token \"[CLS]\""},
      {"[PAD]\n[UNK]\n[CLS]\na\n", ": it has no token \"[SEP]\""},
      {names + "a\xFF\n", ": it is not UTF-8 at byte 25"},
      {names + std::string(100'001, 'a'), ":5: a token of more than 100,000 bytes"},
  };
  for (const auto& [content, problem] : cases) {
    INFO(problem);
    write(folder / "vocab.txt", content);
    const auto read = read_tokenizer(folder.path());
    CHECK((read ? "" : read.failure().message) == (problem.empty() ? "" : folder / "vocab.txt" + problem));
  }
}

TEST_CASE("of two lines of a vocab.txt that are the same the later one counts", "[tokenizer]") {
  const tests::TempDir folder;
  write(folder / "vocab.txt", "[PAD]\r\n[UNK]\r\na\r\n[CLS]\r\n[SEP]\r\n\r\na\r\n##b");
  const auto tokenizer = read_tokenizer(folder / "vocab.txt").value();
  CHECK(tokenizer->encode("a ab c").value().ids == std::vector<std::int32_t>{3, 6, 6, 7, 1, 4});
  CHECK(tokenizer->id_limit() == 8);
  CHECK(tokenizer->vocab_size() == 7);
  CHECK(tokenizer->description().format == "vocab.txt");
  CHECK(tokenizer->description().model == "WordPiece");
}

TEST_CASE("what no token of a unigram model is for is refused where it has none for that", "[tokenizer][damaged]") {
  const tests::TempDir folder;
  write(folder / "tokenizer.json", R"({"model":{"type":"Unigram","vocab":[["a",-1]]}})");
  const auto tokenizer = read_tokenizer(folder.path()).value();
  CHECK(tokenizer->encode("aa").value().ids == std::vector<std::int32_t>{0, 0});
  CHECK(tokenizer->encode("aba").failure().message ==
        "the tokenizer has no token for \"b\", and model.unk_id names none for what is unknown");
}

TEST_CASE("a folder without a tokenizer says what it needs", "[tokenizer]") {
  const tests::TempDir folder;
  const auto read = read_tokenizer(folder.path());
  CHECK(read.failure().message == folder.path() + ": there is no tokenizer in this folder");
  CHECK(read_tokenizer(folder / "x").failure().message == folder / "x: there is no such file or folder");
}

// Found by the fuzzer: the bytes of the suffix were looked for behind the text.
TEST_CASE("places of tokens lie in the text where a word's suffix falls apart into bytes", "[tokenizer][damaged]") {
  std::string vocabulary = R"("vocab":{"<unk>":0)";
  for (int byte = 0; byte < 256; ++byte) {
    char name[16];
    std::snprintf(name, sizeof name, ",\"<0x%02X>\":%d", byte, byte + 1);
    vocabulary += name;
  }
  const tests::TempDir folder;
  const std::string ending(1000, 'e');
  write(folder / "tokenizer.json",
        with(R"("normalizer":{"type":"Replace","pattern":{"String":"!"},"content":"?"})",
             vocabulary + R"(},"merges":[],"unk_token":"<unk>","byte_fallback":true,"end_of_word_suffix":")" + ending +
                 "\""));
  const auto tokenizer = read_tokenizer(folder / "tokenizer.json");
  REQUIRE(tokenizer);
  const std::string text = "\xC3\xA9!";
  const auto encoding = tokenizer.value()->encode(text, {.with_offsets = true});
  REQUIRE(encoding);
  REQUIRE(encoding.value().offsets.size() == encoding.value().ids.size());
  for (const auto& [begin, end] : encoding.value().offsets) {
    CHECK(begin < end);
    CHECK(end <= 2);
  }
}
