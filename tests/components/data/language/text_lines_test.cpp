#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"
#include "tests/components/data/building.h"
#include "tests/support/blocks.h"
#include "tests/support/folder.h"

using tests::build_data;
using tests::fetched;
using tests::good_data;
using Values = std::vector<double>;

namespace {
constexpr double kPad = components::kPadTarget;
}

TEST_CASE("a line is a sample that ends with its end", "[data][text_lines]") {
  const tests::Folder folder;
  folder.write("a.txt", "abc\n\nde\n");
  folder.write("b.txt", "fghij");  // no end
  const auto data = good_data("{type: text_lines, path: '*.txt', max_seq_len: 8}");
  CHECK(data->size() == 3);
  CHECK(data->describe() == "2 files, 13 B, 3 lines of 2 to 5 bytes");
  CHECK(data->tokens_per_sample() == 0);
  CHECK(data->signature().padded());
  CHECK(data->length_of(0) == 3);
  CHECK(data->length_of(2) == 5);
  CHECK(fetched(*data, {0}, "input") == Values{'a', 'b', 'c'});
  CHECK(fetched(*data, {0}, "target") == Values{'b', 'c', '\n'});
  CHECK(fetched(*data, {1, 2}, "input") == Values{'d', 'e', 0, 0, 0, 'f', 'g', 'h', 'i', 'j'});
  CHECK(fetched(*data, {1, 2}, "target") == Values{'e', '\n', kPad, kPad, kPad, 'g', 'h', 'i', 'j', '\n'});
}

TEST_CASE("lines of a file from Windows have no carriage return", "[data][text_lines]") {
  const tests::Folder folder;
  folder.write("a.txt", "abc\r\n\r\nd\re\r\nf\r");
  const auto data = good_data("{type: text_lines, path: a.txt, max_seq_len: 8}");
  CHECK(data->size() == 3);
  CHECK(fetched(*data, {0}, "input") == Values{'a', 'b', 'c'});
  CHECK(fetched(*data, {0}, "target") == Values{'b', 'c', '\n'});
  CHECK(fetched(*data, {1}, "input") == Values{'d', '\r', 'e'});
  CHECK(fetched(*data, {2}, "target") == Values{'\n'});
}

TEST_CASE("padding has no part in the loss", "[data][text_lines]") {
  const tests::Folder folder;
  folder.write("a.txt", "abc\nd\nefghi\n");
  const auto data = good_data("{type: text_lines, path: a.txt, max_seq_len: 8}");
  const auto block = tests::block("loss", "cross_entropy");
  runner::core::Diagnostics diagnostics;
  const components::TensorSpec logits{
      components::kOutput, components::Dtype::kFloat32, {components::kBatch, components::kTime, 256}};
  const auto loss = components::loss::build(block, {{logits}, data->signature(), block, diagnostics});
  REQUIRE(loss != nullptr);
  components::TensorMap batch;
  data->fetch(std::vector<std::int64_t>{0, 1, 2}, batch);
  CHECK(batch.at(components::kTarget).size(1) == 5);
  CHECK(loss->count(batch) == 3 + 1 + 5);
  // Equal logits: each position that counts costs the logarithm of 256.
  batch.set(components::kOutput, at::zeros({3, 5, 256}));
  CHECK(loss->sum(batch).item<double>() == Approx(9 * std::log(256.0)).epsilon(1e-6));

  const auto other = tests::block("loss", "{type: cross_entropy, ignore_index: 0}");
  CHECK(components::loss::build(other, {{logits}, data->signature(), other, diagnostics}) == nullptr);
  CHECK(runner::core::render(diagnostics, {.color = false, .excerpts = false}) ==
        "loss.yaml:1:37: error: ignore_index is 0, but the data marks targets that have no part in the loss with -100\n"
        "  hint: remove ignore_index\n");
}

TEST_CASE("a line that is too long is cut, dropped or refused", "[data][text_lines]") {
  const tests::Folder folder;
  folder.write("a.txt", "abcdef\ngh\nijklmno\n");
  const auto with = [](const std::string& policy) {
    return "{type: text_lines, path: a.txt, max_seq_len: 3, too_long: " + policy + "}";
  };
  const auto cut = good_data(with("cut"));
  CHECK(cut->describe() == "1 file, 18 B, 3 lines of 2 to 3 bytes (2 cut)");
  CHECK(fetched(*cut, {0}, "input") == Values{'a', 'b', 'c'});
  CHECK(fetched(*cut, {0}, "target") == Values{'b', 'c', 'd'});  // not its end
  const auto dropped = good_data(with("drop"));
  CHECK(dropped->size() == 1);
  CHECK(fetched(*dropped, {0}, "target") == Values{'h', '\n'});
  CHECK(build_data(with("error")).messages ==
        "data.yaml:1:59: error: 2 lines of data.train are longer than max_seq_len 3, the longest has 7 bytes\n"
        "  hint: raise max_seq_len, or use too_long: cut\n");
}

TEST_CASE("shares of lines are disjoint and leave nothing out", "[data][text_lines]") {
  const tests::Folder folder;
  folder.write("a.txt", "1\n2\n3\n4\n");
  folder.write("b.txt", "5\n6\n7\n");
  Values seen;
  for (const std::string split : {":30%", "30%:85%", "85%:"}) {
    const auto data = good_data("{type: text_lines, path: '*.txt', max_seq_len: 4, split: '" + split + "'}");
    for (std::int64_t i = 0; i < data->size(); ++i) seen.push_back(fetched(*data, {i}, "input")[0]);
  }
  CHECK(seen == Values{'1', '2', '3', '4', '5', '6', '7'});
  const auto last = good_data("{type: text_lines, path: '*.txt', max_seq_len: 4, split: '85%:'}");
  CHECK(last->describe() == "1 file, 4 B, 2 lines of 1 to 1 byte");
  CHECK(last->files() == std::vector<std::string>{"b.txt"});
  CHECK(last->unigram_entropy() == Approx(1.5 * std::log(2.0)));  // 6, 7 and two ends
}

TEST_CASE("errors in lines of text are reported at their location", "[data][text_lines]") {
  const tests::Folder folder;
  folder.write("empty.txt", "\n\n\n");
  folder.write("two.txt", "ab\ncd\n");
  CHECK(build_data("{type: text_lines, max_seq_len: 4, path: empty.txt}").messages ==
        "data.yaml:1:42: error: data.train has no usable line, of 0 lines that are not empty\n"
        "  hint: use more text\n");
  CHECK(build_data("{type: text_lines, max_seq_len: 4, path: two.txt, split: ':10%'}").messages ==
        "data.yaml:1:58: error: data.train.split takes none of 2 lines\n"
        "  hint: use a larger part, or one that begins earlier\n");
}
