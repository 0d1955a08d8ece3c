// Transforms of a set draw the same for a sample, whoever reads it; another epoch draws something else.

#include "runner/train/data/transformed_data.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/data/loader.h"
#include "tests/components/data/building.h"
#include "tests/support/blocks.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"

namespace runner::train {
namespace {

using components::TensorMap;
using components::data::Dataset;
using components::data::LabelKind;

constexpr std::int64_t kBatch = 3;

struct Texts {
  tests::Folder folder;
  Texts() {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", texts;
    for (char c = 'a'; c <= 'z'; ++c) vocabulary += std::string(1, c) + "\n##" + std::string(1, c) + "\n";
    folder.write("vocab.txt", vocabulary);
    for (int i = 0; i < 40; ++i) {
      texts += R"({"text": ")" +
               std::string(static_cast<std::size_t>(3 + i * 7 % 11), static_cast<char>('a' + i % 26)) +
               " and more\"}\n";
    }
    folder.write("texts.jsonl", texts);
    const char* words[] = {"one", "two", "three", "four", "five", "hundred", "and"};
    std::string records, lines;
    for (int i = 0; i < 40; ++i) {
      std::string line;
      for (int j = 0; j < 1 + i * 7 % 10; ++j) line += (j > 0 ? " " : "") + std::string(words[(i * 3 + j * 5) % 7]);
      records += R"({"text": ")" + line + "\"}\n";
      lines += line + "\n";
    }
    folder.write("numbers.jsonl", records);
    folder.write("numbers.txt", lines);
  }
};

/// The set of that block.
std::shared_ptr<Dataset> changed(const std::string& text) {
  const core::Node block = tests::block("data", text);
  core::Diagnostics diagnostics;
  components::data::Inputs inputs{.name = "train", .block = block, .diagnostics = diagnostics, .seed = 5};
  inputs.decoder = {.start = 7, .padding = 0};
  auto set = with_transforms(tests::good_data(text, {.labels = LabelKind::kUnmasked}), inputs);
  INFO(core::render(diagnostics));
  REQUIRE(set != nullptr);
  return set;
}

/// Texts of the words of numbers, of which spans are cut out.
std::shared_ptr<Dataset> cut(const std::string& type_and_path, const std::string& keys = "") {
  const std::string tokenizer = tests::source_dir() + "/recipes/examples/data/numbers";
  return changed("{" + type_and_path + ", tokenizer: {type: file, path: " + tokenizer + "}, max_seq_len: 12" + keys +
                 ", transforms: [{type: span_corruption, noise_density: 0.3, mean_noise_span_length: 2}]}");
}

std::shared_ptr<Dataset> masked(const std::string& keys = "",
                                const std::string& transforms = "[{type: mask_tokens, probability: 0.5}]") {
  const std::string text =
      "{type: jsonl, path: texts.jsonl, tokenizer: {type: file, path: vocab.txt}, max_seq_len: 32" + keys +
      ", transforms: " + transforms + "}";
  return changed(text);
}

Loader::Options options_of(int workers, int rank = 0, int ranks = 1) {
  return {.micro_batch_size = kBatch,
          .shuffle = true,
          .seed = 7,
          .num_workers = workers,
          .prefetch_factor = 3,
          .rank = rank,
          .ranks = ranks};
}

TensorMap read(Loader& loader, std::int64_t count) {
  TensorMap batch, copy;
  loader.next(count, batch);
  for (const auto& item : batch.items()) copy.set(item.name, item.tensor.clone());
  return copy;
}

std::vector<TensorMap> read_many(Loader& loader, std::size_t batches) {
  std::vector<TensorMap> all;
  while (all.size() < batches) all.push_back(read(loader, loader.batch_at(loader.position().sample)));
  return all;
}

bool same(const TensorMap& one, const TensorMap& other) {
  for (const auto& item : one.items()) {
    if (!at::equal(item.tensor, other.at(item.name))) return false;
  }
  return true;
}

/// The ids before anything was masked.
at::Tensor unmasked(const TensorMap& batch) {
  const at::Tensor& target = batch.at(components::kTarget);
  return at::where(target == components::kPadTarget, batch.at(components::kInput), target);
}

}  // namespace

TEST_CASE("transforms do not depend on workers, processes, batches or where a training resumes", "[train][transform]") {
  const Texts texts;
  const std::string records = "type: jsonl, path: numbers.jsonl";
  for (const auto& data :
       {masked(), masked(", packing: true"), masked(", streaming: true, shuffle_buffer: 10"), cut(records),
        cut(records, ", pad_to_multiple_of: 4"), cut(records, ", streaming: true, shuffle_buffer: 10"),
        cut("type: text_lines, path: numbers.txt"), cut("type: text, path: numbers.txt")}) {
    INFO(data->describe());
    Loader alone(*data, options_of(0));
    const std::vector<TensorMap> wanted = read_many(alone, 30);  // some epochs
    for (const int ranks : {1, 2}) {
      for (const int workers : {0, 3}) {
        for (int rank = 0; rank < ranks; ++rank) {
          Loader loader(*data, options_of(workers, rank, ranks));
          for (const TensorMap& batch : wanted) {
            const std::int64_t count = loader.batch_at(loader.position().sample);
            if (loader.is_mine()) {
              REQUIRE(same(read(loader, count), batch));
            } else {
              loader.skip(count);
            }
          }
        }
      }
    }
    Loader first(*data, options_of(2));
    read_many(first, 17);
    Loader resumed(*data, options_of(2));
    resumed.restore_stream(first.stream_state());
    resumed.seek(first.position());
    for (std::size_t i = 17; i < wanted.size(); ++i) {
      REQUIRE(same(read(resumed, resumed.batch_at(resumed.position().sample)), wanted[i]));
    }
  }
  // A batch of one sample, read alone.
  const auto data = masked();
  Loader batches(*data, options_of(0)), samples(*data, options_of(0));
  for (int i = 0; i < 40; ++i) {
    const TensorMap batch = read(batches, kBatch), one = read(samples, 1);
    const std::int64_t length = one.at(components::kInput).size(1);
    REQUIRE(at::equal(batch.at(components::kInput).narrow(0, 0, 1).narrow(1, 0, length), one.at(components::kInput)));
    if (samples.position().sample + kBatch > 39) break;
    samples.skip(kBatch - 1);
  }
}

TEST_CASE("each epoch masks other ids, and what is read by index is the first epoch in order", "[train][transform]") {
  const Texts texts;
  const auto data = masked(", packing: true");
  Loader::Options in_order = options_of(0);
  in_order.shuffle = false;
  Loader loader(*data, in_order);
  const auto batches = static_cast<std::size_t>(loader.batches_per_epoch());
  const auto first = read_many(loader, batches), second = read_many(loader, batches);
  Loader evaluation(*data, in_order);
  const auto again = read_many(evaluation, batches);
  bool differ = false;
  for (std::size_t i = 0; i < batches; ++i) {
    CHECK(same(first[i], again[i]));
    CHECK(at::equal(unmasked(first[i]), unmasked(second[i])));
    differ = differ || !same(first[i], second[i]);
  }
  CHECK(differ);
  TensorMap by_index;
  data->fetch(std::vector<std::int64_t>{0, 1, 2}, by_index);
  CHECK(same(by_index, first[0]));
}

TEST_CASE("batches of texts with spans cut out have the lengths of what is left", "[train][transform]") {
  const Texts texts;
  const auto data = cut("type: jsonl, path: numbers.jsonl");
  const auto wide = cut("type: jsonl, path: numbers.jsonl", ", pad_to_multiple_of: 8");
  CHECK(wide->signature().at(components::kInput).max_length % 8 == 0);
  CHECK(data->tokens_per_sample() == 0);
  TensorMap all, aligned;
  std::vector<std::int64_t> indices(40);
  std::iota(indices.begin(), indices.end(), 0);
  data->fetch(indices, all);
  wide->fetch(indices, aligned);
  CHECK(aligned.at(components::kInput).size(1) % 8 == 0);
  CHECK(aligned.at(components::kTarget).size(1) % 8 == 0);
  std::int64_t longest = 0, longest_target = 0;
  for (const std::int64_t i : indices) {
    INFO(i);
    const at::Tensor source = all.at(components::kInput)[i], target = all.at(components::kTarget)[i];
    const std::int64_t own = all.at(components::kAttentionMask)[i].sum().item<std::int64_t>();
    const std::int64_t written = target.ne(components::kPadTarget).sum().item<std::int64_t>();
    longest = std::max(longest, own);
    longest_target = std::max(longest_target, written);
    CHECK(source[own - 1].item<std::int64_t>() == 1);      // </s>
    CHECK(target[written - 1].item<std::int64_t>() == 1);  // behind it nothing counts
    CHECK(all.at(components::kDecoderInput)[i][0].item<std::int64_t>() == 7);
    CHECK(data->length_of(i) >= std::max(own, written));
    CHECK(data->predicted_positions(i) == written);
    const auto parts = data->parts_of(i);
    REQUIRE(parts.size() == 1);
    CHECK(parts[0].length == own);
    CHECK(parts[0].record->number == i + 1);
  }
  CHECK(all.at(components::kInput).size(1) == longest);
  CHECK(all.at(components::kTarget).size(1) == longest_target);
  // Rows of one length stay of one length.
  const auto rows = cut("type: text, path: numbers.txt");
  CHECK_FALSE(rows->signature().padded());
  CHECK(rows->signature().find(components::kAttentionMask) == nullptr);
  TensorMap row;
  rows->fetch(std::vector<std::int64_t>{0, 3}, row);
  for (const components::TensorSpec& spec : rows->signature().tensors) {
    CHECK(row.at(spec.name).size(1) == spec.max_length);
  }
  CHECK(rows->tokens_per_sample() == row.at(components::kTarget).size(1));
}

TEST_CASE("transforms follow one another, and a sample that is read twice in an epoch is masked twice",
          "[train][transform]") {
  const Texts texts;
  const auto twice = masked("", "[{type: mask_tokens, probability: 0.5}, {type: mask_tokens, probability: 0.5}]");
  CHECK(twice->describe().ends_with(", 50 % of tokens masked, 50 % of tokens masked"));
  CHECK(twice->signature().at(components::kTarget).in_place);
  Loader::Options longer = options_of(0);
  longer.num_samples = 80;  // all samples, and all in another order
  longer.micro_batch_size = 40;
  const auto data = masked();
  Loader loader(*data, longer);
  const TensorMap first = read(loader, 40), second = read(loader, 40);
  const at::Tensor ids = unmasked(first), later_ids = unmasked(second);
  int found = 0, differ = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t k = 0; k < 40; ++k) {
      if (!at::equal(ids[i], later_ids[k])) continue;
      ++found;
      differ += at::equal(first.at(components::kTarget)[i], second.at(components::kTarget)[k]) ? 0 : 1;
    }
  }
  CHECK(found == 40);
  CHECK(differ > 30);
}

}  // namespace runner::train
