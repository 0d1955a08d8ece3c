// A mix of streams has the samples of the same mix in memory, and is the same again behind any mark.

#include <ATen/ops/equal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "components/data/stream.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "tests/components/data/building.h"
#include "tests/components/data/tokenizer_folder.h"

using components::TensorMap;
using components::data::Dataset;
using components::data::Stream;
using components::data::StreamOptions;
using tests::build_data;
using tests::good_data;

namespace {

constexpr const char* kTokenizer = "tokenizer: {type: file, path: tokenizer.json}";

/// Sets of 7, 3 and 12 records that differ in length and form.
struct Folder : tests::TokenizerFolder {
  Folder() {
    write("a.jsonl", texts(0, 7));
    std::string completions;
    for (int i = 0; i < 3; ++i)
      completions += R"({"question": "is )" + std::to_string(i) + R"( it? ", "answer": ")" + word(i * 5) + "\"}\n";
    write("b.jsonl", completions);
    write("c1.jsonl", texts(20, 25));
    write("c2.jsonl", texts(25, 32));
  }

  static std::string word(int i) {
    return std::string(static_cast<std::size_t>(1 + i * 7 % 19), static_cast<char>('a' + i % 26));
  }
  static std::string texts(int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) text += R"({"text": "record )" + std::to_string(i) + " " + word(i) + "\"}\n";
    return text;
  }
};

std::string set(const std::string& path, const std::string& more) {
  return "{type: jsonl, path: " + path + ", " + kTokenizer + ", max_seq_len: 24" + more + "}";
}

/// `more`: of each set.
std::string mix(const std::string& keys, const std::string& more) {
  const std::string b = more.find("loss_on") == std::string::npos ? ", loss_on: completion" : "";
  return "{type: concat, sets: [" + set("a.jsonl", more) + ", " +
         set("b.jsonl", more + b + ", columns: {prompt: question, completion: answer}") + ", " +
         set("\"c?.jsonl\"", more) + "]" + keys + "}";
}

constexpr const char* kMixes[] = {"",
                                  ", weights: [1, 1, 1]",
                                  ", weights: [3, 1, 2]",
                                  ", weights: [3, 1, 2], stopping: all",
                                  ", weights: [0.2, 0.7, 0.1], stopping: all",
                                  ", weights: [1, 100, 1]"};
constexpr const char* kForms[] = {"", ", packing: true", ", too_long: drop", ", pad_to_multiple_of: 8"};

std::string streaming(const std::string& more) { return ", streaming: true" + more; }

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

/// Reads batches of 5 over the ends of some passes of both.
void check_like_memory(const std::string& in_memory, const std::string& as_stream) {
  const auto data = good_data(in_memory), stream_data = good_data(as_stream);
  REQUIRE_FALSE(data->is_stream());
  REQUIRE(stream_data->is_stream());
  CHECK(stream_data->files() == data->files());
  const auto stream = stream_data->open_stream({});
  for (std::int64_t begin = 0; begin < 4 * data->size(); begin += 5) {
    std::vector<Stream::SamplePointer> samples;
    std::vector<std::int64_t> indices;
    for (std::int64_t i = begin; i < begin + 5; ++i) {
      CHECK((i % 3 != 0 || stream->pass_of_next() == i / data->size()));
      samples.push_back(stream->next(true));
      indices.push_back(i % data->size());
      CHECK(samples.back()->pass() == i / data->size());
      const auto parts = samples.back()->parts(), wanted = data->parts_of(indices.back());
      REQUIRE(parts.size() == wanted.size());
      for (std::size_t k = 0; k < parts.size(); ++k) {
        CHECK(parts[k].record->file == wanted[k].record->file);
        CHECK(parts[k].record->number == wanted[k].record->number);
        CHECK(parts[k].length == wanted[k].length);
      }
    }
    CHECK(stream->position() == begin + 5);
    TensorMap wanted;
    data->fetch(indices, wanted);
    check_same(*data, batch_of(*stream, samples), wanted);
  }
}

runner::core::Node reread(const runner::core::Node& node) {
  return runner::core::parse_json(runner::core::to_json(node, -1)).value();
}

std::string name_of(const Stream::Sample& sample) {
  const auto record = sample.parts().front().record.value();
  return record.file.substr(0, record.file.find('.')) + ":" + std::to_string(record.number);
}

std::string names(Stream& stream, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += name_of(*stream.next(true)) + " ";
  return all;
}

}  // namespace

TEST_CASE("an unshuffled mix of streams has the samples of the mix in memory", "[data][stream][mix]") {
  const Folder folder;
  for (const char* keys : kMixes) {
    for (const char* form : kForms) {
      INFO(keys << form);
      check_like_memory(mix(keys, form), mix(keys, streaming(form)));
    }
  }
}

TEST_CASE("a mix of streams may be a part of another", "[data][stream][mix]") {
  const Folder folder;
  for (const char* keys : kMixes) {
    INFO(keys);
    const auto outer = [&](const std::string& more) {
      return "{type: concat, weights: [1, 2], stopping: all, sets: [" + set("c1.jsonl", more) + ", " + mix(keys, more) +
             "]}";
    };
    check_like_memory(outer(""), outer(streaming("")));
  }
}

TEST_CASE("pairs of several streams are those of the sets in memory", "[data][stream][mix]") {
  const Folder folder;
  const auto pair = [](int i) {
    return R"({"prompt": "is )" + std::to_string(i) + R"( even?", "chosen": ")" + Folder::word(i) +
           R"(", "rejected": ")" + Folder::word(i + 3) + "\"}\n";
  };
  folder.write("p.jsonl", pair(0) + pair(1) + pair(2));
  folder.write("q.jsonl", pair(9) + pair(8) + pair(7) + pair(6) + pair(5));
  const auto pairs = [](const std::string& keys, const std::string& more) {
    return "{type: concat, sets: [" + set("p.jsonl", more) + ", " + set("q.jsonl", more) + "]" + keys + "}";
  };
  for (const char* keys : {"", ", weights: [1, 2], stopping: all"})
    check_like_memory(pairs(keys, ""), pairs(keys, streaming("")));
  CHECK(
      build_data("{type: concat, sets: [" + set("a.jsonl", streaming("")) + ", " + set("p.jsonl", streaming("")) + "]}")
          .messages.ends_with("error: data.train: set 2 has pairs of chosen and rejected, and the first has texts\n"
                              "  hint: join sets of one kind\n"));
}

TEST_CASE("every beginning of a mix has the shares of its sets, shuffled or not", "[data][stream][mix]") {
  const Folder folder;
  const auto data = good_data(mix(", weights: [3, 1, 2], stopping: all", streaming(", shuffle_buffer: 4")));
  for (const bool shuffle : {false, true}) {
    const auto stream = data->open_stream({.shuffle = shuffle, .seed = 5});
    std::vector<double> taken(3);
    for (int count = 1; stream->pass_of_next() == 0; ++count) {
      taken[static_cast<std::size_t>(name_of(*stream->next(true)).front() - 'a')] += 1;
      for (std::size_t i = 0; i < taken.size(); ++i)
        CHECK(std::abs(taken[i] - count * std::vector<double>{3, 1, 2}[i] / 6) < 1);
    }
    CHECK(taken == std::vector<double>{17, 6, 12});  // it ends with the last of the 12 records of one set
  }
}

TEST_CASE("two sets of the same files are not shuffled alike, and each pass is another order", "[data][stream][mix]") {
  const Folder folder;
  const std::string one = set("\"c?.jsonl\"", streaming(", shuffle_buffer: 12"));
  const auto data = good_data("{type: concat, sets: [" + one + ", " + one + "]}");
  const auto stream = data->open_stream({.shuffle = true, .seed = 5});
  const auto alone = good_data(one)->open_stream({.shuffle = true, .seed = 5});
  const std::string first = names(*stream, 12), second = names(*stream, 12), again = names(*stream, 12);
  CHECK(first == names(*alone, 12));
  CHECK(again == names(*alone, 12));
  CHECK(first != second);
  CHECK(first != again);
}

TEST_CASE("behind each mark a mix of streams is what it was", "[data][stream][mix]") {
  const Folder folder;
  for (const char* keys : kMixes) {
    for (const char* form : {"", ", packing: true", ", too_long: drop, on_bad_record: skip, packing: true"}) {
      for (const bool shuffle : {true, false}) {
        INFO(keys << form << (shuffle ? ", shuffled" : ""));
        const auto data = good_data(mix(keys, streaming(std::string(form) + ", shuffle_buffer: 3")));
        const StreamOptions options{.shuffle = shuffle, .seed = 3};
        const auto whole = data->open_stream(options), other = data->open_stream(options);
        std::vector<Stream::SamplePointer> samples;
        std::vector<std::shared_ptr<const Stream::Mark>> marks;
        std::vector<components::data::Account> accounts;
        for (int i = 0; i < 50; ++i) {
          marks.push_back(whole->mark());
          accounts.push_back(whole->account());
          samples.push_back(whole->next(true));
        }
        for (const std::size_t from : {31U, 2U, 0U, 44U, 17U, 9U, 23U}) {
          const auto parsed = other->mark_of(reread(marks[from]->to_node()));
          REQUIRE(parsed->sample() == static_cast<std::int64_t>(from));
          other->go_to(*parsed);
          CHECK(runner::core::to_json(other->mark()->to_node()) == runner::core::to_json(marks[from]->to_node()));
          for (std::size_t i = from; i < samples.size(); ++i) {
            REQUIRE(other->account().records == accounts[i].records);
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
}

TEST_CASE("a mix of streams counts what all of them leave out", "[data][stream][mix]") {
  const Folder folder;
  folder.write("a.jsonl", Folder::texts(0, 4) + "[1]\n" + Folder::texts(4, 9) + "[2]\n");
  folder.write("c2.jsonl", Folder::texts(25, 34) + "{}\n{\"text\": \"" + std::string(300, 'a') + "\"}\n");
  constexpr const char* kForm = ", on_bad_record: skip, too_long: drop";
  const auto in_memory = build_data(mix("", kForm)).data;
  const auto stream = good_data(mix("", streaming(kForm)))->open_stream({});
  while (stream->pass_of_next() == 0) {
    CHECK_FALSE(stream->first_pass());
    stream->next(true);
  }
  const auto account = stream->first_pass();
  REQUIRE(account);
  CHECK(account->records == 11 + 3 + 5 + 11);
  CHECK(account->skipped == 3);
  CHECK(account->dropped == in_memory->account().dropped);
  CHECK(account->dropped > 0);
  CHECK_THAT(account->reasons, Catch::Contains("a.jsonl:5: ") && Catch::Contains("c2.jsonl:10: "));
  CHECK(account->reasons == stream->skipped_reasons());
  CHECK(stream->account().records == account->records);
}

TEST_CASE("what cannot be a mix of streams is one error at its set", "[data][stream][mix]") {
  const Folder folder;
  // Another tokenizer of the same size: two of its tokens have changed places.
  auto swapped = runner::core::parse_json(tests::example_tokenizer()).value();
  runner::core::Node* vocabulary = swapped.find("model")->find("vocab");
  const runner::core::Node a = *vocabulary->find("a"), b = *vocabulary->find("b");
  vocabulary->set("a", b);
  vocabulary->set("b", a);
  folder.write("other.json", runner::core::to_json(swapped, -1));
  const std::string streamed = set("a.jsonl", ", streaming: true"), in_memory = set("c1.jsonl", "");
  const auto messages = [](const std::string& first, const std::string& second, const std::string& keys = "") {
    return build_data("{type: concat, sets: [" + first + ",\n" + second + "]" + keys + "}").messages;
  };
  CHECK(messages(streamed, in_memory) ==
        "data.yaml:2:1: error: data.train.sets[1] is read into memory, and data.train.sets[0] is a stream\n"
        "  hint: make all sets jsonl with streaming: true, or remove streaming from all\n");
  CHECK(messages(in_memory, streamed)
            .starts_with(
                "data.yaml:1:23: error: data.train.sets[0] is read into memory, and data.train.sets[1] is a stream\n"));
  CHECK(messages(streamed, set("c1.jsonl", ", streaming: true, packing: true")) ==
        "data.yaml:2:1: error: data.train: set 2 has position_ids, and the first has not\n"
        "  hint: give both packing: true, or none\n");
  std::string other = set("c1.jsonl", ", streaming: true");
  other.replace(other.find("tokenizer.json"), std::string("tokenizer.json").size(), "other.json");
  CHECK_THAT(messages(streamed, other),
             Catch::StartsWith("data.yaml:2:1: error: data.train: set 2 has another tokenizer: its id ") &&
                 Catch::EndsWith("  hint: use one tokenizer for both\n"));
  CHECK(messages(streamed, set("c1.jsonl", ", streaming: true"), ", weights: [1, 2, 3]")
            .find("data.train has 2 sets and 3 weights") != std::string::npos);
}

TEST_CASE("a damaged mark of a mix is an error that names what is wrong", "[data][stream][mix]") {
  const Folder folder;
  const auto stream = good_data(mix(", weights: [1, 1, 1]", streaming("")))->open_stream({});
  stream->next(false);
  const auto good = stream->mark()->to_node();
  CHECK_NOTHROW(stream->mark_of(good));
  using runner::core::Node;
  for (const auto& [key, value] : {std::pair{"sample", Node::integer(-1)},
                                   {"pass", Node::string("one")},
                                   {"taken", Node::sequence({Node::integer(1)})},
                                   {"begun", Node::integer(1)},
                                   {"sets", Node::sequence()}}) {
    Node bad = good;
    bad.set(key, value);
    CHECK_THROWS_WITH(stream->mark_of(bad),
                      "the checkpoint's trainer.json has no valid \"data_stream." + std::string(key) + "\"");
  }
}
