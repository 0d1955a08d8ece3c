// What a stream of jsonl files gives: the samples of the set in memory, shuffled or not, and the same again behind any
// mark.

#include "components/data/stream.h"

#include <ATen/ops/equal.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::TensorMap;
using components::data::Dataset;
using components::data::Stream;
using components::data::StreamOptions;
using tests::build_data;
using tests::good_data;
using Numbers = std::vector<std::int64_t>;

namespace {

/// Three files of texts that differ in length, one of them compressed, with blank lines; and a tokenizer.
struct Shards : tests::TokenizerFolder {
  Shards() {
    write("a.jsonl", records(0, 7) + "\n \n" + records(7, 9));
    const std::string text = records(9, 20);
    gzFile file = gzopen("b.jsonl.gz", "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    std::string last = records(20, 23);
    last.pop_back();  // without an end of line
    write("c.jsonl", "\n" + last);
  }

  static constexpr std::int64_t kRecords = 23;

  static std::string records(int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) {
      text += R"({"prompt": "record )" + std::to_string(i) + R"( ", "completion": ")" +
              std::string(static_cast<std::size_t>(1 + i * 7 % 19), static_cast<char>('a' + i)) + "\"}\n";
    }
    return text;
  }
};

std::string block(const std::string& more) {
  return "{type: jsonl, path: [\"?.jsonl\", \"?.jsonl.gz\"], tokenizer: {type: file, path: tokenizer.json}, "
         "max_seq_len: 24" +
         more + "}";
}

std::shared_ptr<Dataset> streamed(const std::string& more) { return good_data(block(", streaming: true" + more)); }

/// Records in which a sample begins: `10001` is line 1 of the second file.
std::int64_t name_of(const Stream::Sample& sample) {
  const auto record = sample.parts().front().record.value();
  return (record.file.front() - 'a') * 10'000 + record.number;
}

Numbers names(Stream& stream, std::int64_t count) {
  Numbers all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(name_of(*stream.next(true)));
  return all;
}

/// Of the records of the shards in their order.
Numbers names_in_order() {
  Numbers all{1, 2, 3, 4, 5, 6, 7, 10, 11};
  for (std::int64_t i = 1; i <= 11; ++i) all.push_back(10'000 + i);
  for (std::int64_t i = 2; i <= 4; ++i) all.push_back(20'000 + i);
  return all;
}

TensorMap batch_of(const Stream& stream, const std::vector<Stream::SamplePointer>& samples) {
  TensorMap batch;
  stream.collate(samples, batch);
  return batch;
}

void check_same(const Dataset& data, const TensorMap& found, const TensorMap& wanted) {
  for (const auto& spec : data.signature().tensors) {
    INFO(spec.name);
    CHECK(at::equal(found.at(spec.name), wanted.at(spec.name)));
  }
}

std::uint64_t splitmix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// The order as the documentation describes it, with all records in memory.
Numbers model_of_pass(std::uint64_t seed, std::uint64_t pass, std::size_t buffer_size) {
  const auto random = [&](std::uint64_t stream, std::uint64_t number) {
    return splitmix(splitmix(splitmix(splitmix(seed) + pass) + stream) + number);
  };
  std::vector<Numbers> files(3);
  for (const std::int64_t name : names_in_order()) files[static_cast<std::size_t>(name / 10'000)].push_back(name);
  for (std::size_t left = files.size(); left > 1; --left) std::swap(files[left - 1], files[random(0, left) % left]);
  Numbers lines, buffer, order;
  for (const Numbers& file : files) lines.insert(lines.end(), file.begin(), file.end());
  auto next = lines.begin();
  for (std::uint64_t draw = 0; draw < lines.size(); ++draw) {
    while (buffer.size() < buffer_size && next != lines.end()) buffer.push_back(*next++);
    const std::size_t place = random(1, draw) % buffer.size();
    order.push_back(buffer[place]);
    buffer[place] = buffer.back();
    buffer.pop_back();
  }
  return order;
}

runner::core::Node reread(const runner::core::Node& node) {
  return runner::core::parse_json(runner::core::to_json(node, -1)).value();
}

}  // namespace

TEST_CASE("an unshuffled pass has the samples of the set in memory", "[data][stream]") {
  const Shards shards;
  for (const char* more : {"", ", packing: true", ", too_long: drop", ", too_long: drop, packing: true",
                           ", loss_on: all, pad_to_multiple_of: 8", ", columns: {text: completion}"}) {
    INFO(more);
    const auto data = good_data(block(more)), stream_data = streamed(more);
    CHECK_FALSE(data->is_stream());
    REQUIRE(stream_data->is_stream());
    REQUIRE(data->signature().tensors.size() == stream_data->signature().tensors.size());
    const auto stream = stream_data->open_stream({});
    for (std::int64_t begin = 0; begin < 2 * data->size(); begin += 3) {  // over the end of a pass
      std::vector<Stream::SamplePointer> samples;
      Numbers indices;
      for (std::int64_t i = begin; i < begin + 3; ++i) {
        samples.push_back(stream->next(true));
        indices.push_back(i % data->size());
        CHECK(samples.back()->pass() == i / data->size());
        const auto parts = samples.back()->parts(), wanted = data->parts_of(indices.back());
        REQUIRE(parts.size() == wanted.size());
        for (std::size_t k = 0; k < parts.size(); ++k) {
          CHECK(parts[k].record->number == wanted[k].record->number);
          CHECK(parts[k].record->file == wanted[k].record->file);
          CHECK(parts[k].length == wanted[k].length);
          CHECK(parts[k].cut == wanted[k].cut);
        }
      }
      TensorMap wanted;
      data->fetch(indices, wanted);
      check_same(*data, batch_of(*stream, samples), wanted);
    }
  }
}

TEST_CASE("records that are not valid are left out of a stream, too", "[data][stream]") {
  const Shards shards;
  shards.write("b.jsonl", "[1]\n" + Shards::records(0, 3) + "{}\n" + Shards::records(3, 5));
  for (const char* more : {", on_bad_record: skip", ", on_bad_record: skip, packing: true"}) {
    const auto data = build_data(block(more)).data;
    REQUIRE(data != nullptr);
    const auto stream = streamed(more)->open_stream({});
    for (std::int64_t i = 0; i < data->size(); ++i) {
      TensorMap wanted;
      data->fetch(std::vector{i}, wanted);
      check_same(*data, batch_of(*stream, {stream->next(true)}), wanted);
    }
    CHECK(stream->next(true)->pass() == 1);
  }
}

TEST_CASE("the order is that of a shuffled list of files and a buffer", "[data][stream]") {
  const Shards shards;
  for (const std::int64_t buffer : {1, 2, 5, 23, 1000}) {
    for (const std::uint64_t seed : {0U, 7U}) {
      DYNAMIC_SECTION("a buffer of " << buffer << ", seed " << seed) {
        const auto data = streamed(", shuffle_buffer: " + std::to_string(buffer));
        const auto stream = data->open_stream({.shuffle = true, .seed = seed});
        std::set<Numbers> orders;
        for (std::uint64_t pass = 0; pass < 3; ++pass) {
          const Numbers order = names(*stream, Shards::kRecords);
          CHECK(order == model_of_pass(seed, pass, static_cast<std::size_t>(buffer)));
          Numbers sorted = order, all = names_in_order();
          std::sort(sorted.begin(), sorted.end());
          CHECK(sorted == all);
          orders.insert(order);
        }
        CHECK(orders.size() >= (buffer == 1 ? 2 : 3));  // three files have few orders
      }
    }
  }
}

TEST_CASE("behind each mark a stream is what it was", "[data][stream]") {
  const Shards shards;
  for (const char* more :
       {", shuffle_buffer: 1", ", shuffle_buffer: 5", ", shuffle_buffer: 100", ", shuffle_buffer: 5, packing: true",
        ", shuffle_buffer: 5, too_long: drop", ", packing: true, too_long: drop, shuffle_buffer: 3"}) {
    for (const bool shuffle : {true, false}) {
      INFO(more << (shuffle ? ", shuffled" : ""));
      const auto data = streamed(more);
      const StreamOptions options{.shuffle = shuffle, .seed = 3};
      constexpr std::int64_t kSamples = 60;
      const auto whole = data->open_stream(options), other = data->open_stream(options);
      std::vector<Stream::SamplePointer> samples;
      std::vector<std::shared_ptr<const Stream::Mark>> marks;
      for (std::int64_t i = 0; i < kSamples; ++i) {
        if (auto mark = whole->mark()) marks.push_back(std::move(mark));
        samples.push_back(whole->next(true));
      }
      CHECK(marks.size() >= 10);
      std::rotate(marks.begin(), marks.begin() + 7, marks.end());  // forwards and back
      for (const auto& mark : marks) {
        const auto parsed = other->mark_of(reread(mark->to_node()));
        REQUIRE(parsed->sample() == mark->sample());
        other->go_to(*parsed);
        CHECK(other->position() == mark->sample());
        CHECK(runner::core::to_json(other->mark()->to_node()) == runner::core::to_json(mark->to_node()));
        for (auto i = static_cast<std::size_t>(mark->sample()); i < samples.size(); ++i) {
          const auto sample = other->next(i % 3 != 0);
          if (sample == nullptr) continue;
          REQUIRE(name_of(*sample) == name_of(*samples[i]));
          REQUIRE(sample->parts().size() == samples[i]->parts().size());
          REQUIRE(sample->pass() == samples[i]->pass());
        }
      }
    }
  }
}

TEST_CASE("files that have changed are refused by a mark", "[data][stream]") {
  const Shards shards;
  const std::string more = ", shuffle_buffer: 20, packing: true, exclude: c.jsonl";
  const auto stream = streamed(more)->open_stream({.shuffle = true, .seed = 3});
  while (stream->next(false), stream->mark() == nullptr) {
  }
  const auto saved = reread(stream->mark()->to_node());
  const auto resume = [&] {
    const auto other = streamed(more)->open_stream({.shuffle = true, .seed = 3});
    other->go_to(*other->mark_of(saved));
  };
  CHECK_NOTHROW(resume());
  const std::string text = runner::core::read_file("a.jsonl", 1 << 20).value();
  std::string other = text;
  other[other.find("record 4") + 7] = '5';  // of the same length
  shards.write("a.jsonl", other);
  CHECK_THROWS_WITH(resume(), "a.jsonl:5 has changed since the checkpoint was saved");
  shards.write("a.jsonl", text + "\n");
  CHECK_THROWS_WITH(resume(), "a.jsonl has changed since the checkpoint was saved: it had " +
                                  std::to_string(text.size()) + " bytes, and has " + std::to_string(text.size() + 1));
  shards.write("a.jsonl", text);
  shards.write("d.jsonl", text);
  CHECK_THROWS_WITH(resume(),
                    "data.train has 3 files, and had 2 when the checkpoint was saved: the order of a stream depends on "
                    "its files");
  std::remove("d.jsonl");
  std::remove("b.jsonl.gz");
  CHECK_THROWS_WITH(
      [&] {
        const auto one = good_data(
            "{type: jsonl, path: \"?.jsonl\", tokenizer: {type: file, path: tokenizer.json}, max_seq_len: "
            "24, streaming: true, exclude: c.jsonl}");
        one->open_stream({})->mark_of(saved);
      }(),
      Catch::Contains("had the file") && Catch::Contains("b.jsonl.gz when the checkpoint was saved"));
}

TEST_CASE("a damaged mark is an error that names what is wrong", "[data][stream]") {
  const Shards shards;
  const auto stream = streamed(", shuffle_buffer: 4")->open_stream({.shuffle = true});
  stream->next(false);
  const auto good = stream->mark()->to_node();
  using runner::core::Node;
  const std::pair<const char*, Node> cases[] = {
      {"sample", Node::integer(-1)},       {"file", Node::integer(4)},     {"buffer", Node::string("0 1 2")},
      {"buffer", Node::string("9 1 0 1")}, {"buffer", Node::integer(1)},   {"open_rows", Node::string("")},
      {"files", Node::string("a.jsonl")},  {"draws", Node::string("one")},
  };
  for (const auto& [key, value] : cases) {
    Node bad = good;
    bad.set(key, value);
    CHECK_THROWS_WITH(stream->mark_of(bad),
                      "the checkpoint's trainer.json has no valid \"data_stream." + std::string(key) + "\"");
  }
}

TEST_CASE("what cannot be read of a stream is an error with its place", "[data][stream]") {
  const Shards shards;
  const auto message = [](const std::string& more) -> std::string {
    const auto stream = streamed(", exclude: [\"a.jsonl\", \"b.*\"]" + more)->open_stream({});
    try {
      std::vector<Stream::SamplePointer> samples;
      for (int i = 0; i < 40; ++i) batch_of(*stream, {stream->next(true)});
    } catch (const runner::core::RunError& error) {
      return error.what();
    }
    return "";
  };
  const std::string good = Shards::records(0, 9);
  shards.write("c.jsonl", good + "{\"text\": 1}\n" + good);
  CHECK_THAT(message(""), Catch::StartsWith("c.jsonl:10: "));
  CHECK_THAT(message(", packing: true"), Catch::StartsWith("c.jsonl:10: "));
  CHECK(message(", on_bad_record: skip").empty());
  shards.write("c.jsonl", good + "{\"text\": \"" + std::string(300, 'a') + "\"}\n");
  CHECK(message(", too_long: error") == "c.jsonl:9: 26 tokens, longer than max_seq_len 24");
  CHECK(message(", too_long: drop").empty());
  shards.write("c.jsonl", good + std::string((33U << 20U), ' ') + "\n");
  CHECK(message("") == "c.jsonl:10: longer than 33.6 MB, the most that one record may have");
}

TEST_CASE("a compressed file of a stream that is cut short is an error", "[data][stream]") {
  const Shards shards;
  const std::string whole = runner::core::read_file("b.jsonl.gz", 1 << 20).value();
  shards.write("b.jsonl.gz", whole.substr(0, whole.size() - 20));
  const auto stream = streamed("")->open_stream({});
  CHECK_THROWS_WITH(names(*stream, 40),
                    Catch::StartsWith("b.jsonl.gz:") && Catch::EndsWith("the compressed file is cut short"));
}

TEST_CASE("a stream without a usable record is an error", "[data][stream]") {
  const Shards shards;
  const auto built = [](const std::string& more) {
    return build_data(block(", streaming: true, exclude: [\"a.jsonl\", \"b.*\"]" + more)).messages;
  };
  const std::string record = "{\"text\": \"" + std::string(300, 'a') + "\"}\n";
  shards.write("c.jsonl", record);
  CHECK_THAT(built(", too_long: drop"),
             Catch::EndsWith("error: data.train has no usable record: 1 record in 1 file, 1 too long, such as "
                             "c.jsonl:1: 39 tokens, longer than max_seq_len 24\n"
                             "  hint: raise max_seq_len, or use too_long: cut\n"));
  shards.write("c.jsonl", record + "{}\n");
  CHECK_THAT(built(", too_long: drop, on_bad_record: skip"),
             Catch::Contains("2 records in 1 file, 1 too long and 1 not valid, such as c.jsonl:1: 39 tokens"));
  shards.write("c.jsonl", "{}\n");
  CHECK_THAT(built(", on_bad_record: skip"),
             Catch::Contains("data.train has no usable record: 1 record in 1 file, 1 not valid, such as c.jsonl:1: ") &&
                 Catch::EndsWith("  hint: remove on_bad_record: skip to see what is wrong with each\n"));
  shards.write("c.jsonl", "\n\n");
  CHECK_THAT(built(""), Catch::EndsWith("error: data.train has no record in 1 file: all lines are blank\n"
                                        "  hint: name files with records in path\n"));

  // More than are looked at before: a warning, and an error where the first pass ends.
  std::string many;
  for (int i = 0; i < 30; ++i) many += record;
  shards.write("c.jsonl", many);
  for (const char* more : {", too_long: drop", ", too_long: drop, packing: true"}) {
    const auto late = build_data(block(", streaming: true, exclude: [\"a.jsonl\", \"b.*\"]" + std::string(more)));
    CHECK_THAT(late.messages,
               Catch::Contains("warning: data.train: of the first 8 lines none is used, such as c.jsonl:1: 39 tokens"));
    REQUIRE(late.data != nullptr);
    CHECK_THROWS_WITH(
        late.data->open_stream({})->next(true),
        "data.train has no usable record: 30 records in 1 file, 30 too long, such as c.jsonl:1: 39 tokens, "
        "longer than max_seq_len 24");
  }
}

TEST_CASE("a stream counts the records that it leaves out", "[data][stream]") {
  const Shards shards;
  const std::string record = "{\"text\": \"" + std::string(300, 'a') + "\"}\n";
  shards.write("a.jsonl", Shards::records(0, 7) + "[1]\n" + record + Shards::records(7, 9) + "{}\n");
  for (const char* packing : {"", ", packing: true"}) {
    INFO(packing);
    const auto data = streamed(std::string(", shuffle_buffer: 5, too_long: drop, on_bad_record: skip") + packing);
    const auto stream = data->open_stream({.shuffle = true, .seed = 3});
    while (stream->next(true)->pass() == 0) {
    }
    const auto account = stream->account();
    CHECK(account.records >= Shards::kRecords + 3);  // a sample of the next pass was read
    CHECK(account.dropped >= 1);
    CHECK(account.skipped >= 2);
    CHECK_THAT(stream->skipped_reasons(), Catch::Contains("a.jsonl:8: ") && Catch::Contains("a.jsonl:12: "));
    auto mark = stream->mark();
    for (; mark == nullptr; mark = stream->mark()) stream->next(false);
    const auto at_mark = stream->account();
    for (int i = 0; i < 40; ++i) stream->next(false);
    CHECK(stream->account().records > at_mark.records);
    stream->go_to(*stream->mark_of(reread(mark->to_node())));
    CHECK(stream->account().records == at_mark.records);
    CHECK(stream->account().dropped == at_mark.dropped);
    CHECK(stream->account().skipped == at_mark.skipped);
  }
}

TEST_CASE("what the first records show is said before training", "[data][stream]") {
  const Shards shards;
  shards.write("a.jsonl", "\n" + Shards::records(0, 1) + "{\"words\": \"\"}\n");
  const auto bad = build_data(block(", streaming: true"));
  CHECK(bad.data == nullptr);
  CHECK_THAT(bad.messages, Catch::Contains("a.jsonl:3: "));
  CHECK(streamed(", on_bad_record: skip") != nullptr);
}

// By name only: tests_torch "[.stream_memory]".
TEST_CASE("a stream of 500 MB takes no more memory than one of 50 MB", "[.stream_memory]") {
  const Shards shards;
  std::string text;
  while (text.size() < 10'000'000) text += Shards::records(0, 23) + R"({"text": ")" + std::string(900, 'a') + "\"}\n";
  const auto peak_after_a_pass = [&](int files) {
    for (int i = 0; i < files; ++i) shards.write("x" + std::to_string(i) + ".jsonl", text);
    const auto data = good_data(
        "{type: jsonl, path: \"x*.jsonl\", tokenizer: {type: file, path: tokenizer.json}, max_seq_len: 24, streaming: "
        "true, shuffle_buffer: 1000}");
    const auto stream = data->open_stream({.shuffle = true});
    for (std::int64_t i = 0;; ++i) {
      const auto sample = stream->next(true);
      if (i % 1000 == 0) batch_of(*stream, {sample});
      if (sample->pass() > 0) break;
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1000;  // MB
  };
  const auto small = peak_after_a_pass(5);
  CHECK(peak_after_a_pass(50) - small < 20);
}
