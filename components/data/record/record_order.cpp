#include "components/data/record/record_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/units.h"

namespace components::data {
namespace {

using runner::core::RunError;

constexpr std::uint64_t kOfFiles = 0, kOfBuffer = 1;  ///< streams of random numbers

/// splitmix64 (Steele, Lea, Flood 2014): its step and its finalizer.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::uint32_t checksum_of(std::string_view text) { return static_cast<std::uint32_t>(stable_hash(text)); }

[[noreturn]] void throw_changed(const std::string& path, std::int64_t line) {
  throw RunError(path + ":" + std::to_string(line) + " has changed since the checkpoint was saved",
                 "restore the file, or start a new run with --new");
}

}  // namespace

RecordTotals count_records(const std::vector<TextFile>& files, const RecordFormat& format) {
  RecordTotals totals;
  for (const TextFile& file : files) {
    const RecordTotals of_file = count_records(file.path, format);
    totals.records += of_file.records;
    totals.bytes += of_file.bytes;
  }
  return totals;
}

RecordOrder::RecordOrder(Options options) : options_(std::move(options)) { start_pass(0); }

std::uint64_t RecordOrder::random(std::uint64_t stream, std::uint64_t number) const {
  return mixed(mixed(mixed(mixed(options_.seed) + static_cast<std::uint64_t>(pass_)) + stream) + number);
}

void RecordOrder::start_pass(std::int64_t pass) {
  pass_ = pass;
  order_.resize(options_.files.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  for (std::size_t left = order_.size(); options_.shuffle && left > 1; --left) {
    std::swap(order_[left - 1], order_[random(kOfFiles, left) % left]);
  }
  file_ = 0;
  line_ = {};
  source_.reset();
  draws_ = 0;
  buffer_.clear();
  bytes_ = 0;
}

std::optional<RecordText> RecordOrder::read_line() {
  for (; file_ < order_.size(); ++file_, line_ = {}, source_.reset()) {
    const std::size_t file = order_[file_];
    const std::string& path = options_.files[file].path;
    if (source_ == nullptr) source_ = RecordSource::open(path, line_, options_.format);
    while (const std::optional<std::string_view> line = source_->next()) {
      const std::int64_t offset = std::exchange(line_, source_->end()).offset;
      if (is_blank(*line)) continue;
      return RecordText{{file, source_->number(), offset, checksum_of(*line)},
                        std::string(*line),
                        source_->is_text(),
                        source_->left_out()};
    }
  }
  return std::nullopt;
}

void RecordOrder::fill() {
  while (static_cast<std::int64_t>(buffer_.size()) < options_.buffer) {
    std::optional<RecordText> record = read_line();
    if (!record) return;
    bytes_ += static_cast<std::int64_t>(record->text.size());
    buffer_.push_back(std::move(*record));
    if (bytes_ <= options_.bytes_max) continue;
    throw RunError("the shuffle buffer of " + options_.set + " has " + runner::core::format_bytes(bytes_) +
                       " of text in " + with_commas(static_cast<std::int64_t>(buffer_.size())) +
                       " records, more than " + runner::core::format_bytes(options_.bytes_max) +
                       ", its part of half of the memory of this machine",
                   "use a smaller shuffle_buffer");
  }
}

std::optional<RecordText> RecordOrder::next() {
  if (!options_.shuffle) {
    std::optional<RecordText> record = read_line();
    if (!record) start_pass(pass_ + 1);
    return record;
  }
  fill();
  if (buffer_.empty()) {
    start_pass(pass_ + 1);
    return std::nullopt;
  }
  std::swap(buffer_[random(kOfBuffer, draws_++) % buffer_.size()], buffer_.back());
  RecordText record = std::move(buffer_.back());
  buffer_.pop_back();
  bytes_ -= static_cast<std::int64_t>(record.text.size());
  return record;
}

RecordOrder::State RecordOrder::state() const {
  State state{pass_, file_, line_, draws_, {}};
  state.buffer.reserve(buffer_.size());
  for (const RecordText& record : buffer_) state.buffer.push_back(record.place);
  return state;
}

void RecordOrder::restore(const State& state) {
  start_pass(state.pass);
  file_ = state.file;
  line_ = state.line;
  draws_ = state.draws;
  buffer_ = read(state.buffer);
  for (const RecordText& record : buffer_) bytes_ += static_cast<std::int64_t>(record.text.size());
}

std::vector<RecordText> RecordOrder::read(std::span<const RecordPlace> places) const {
  std::vector<std::size_t> in_files(places.size());
  std::iota(in_files.begin(), in_files.end(), std::size_t{0});
  std::sort(in_files.begin(), in_files.end(), [&places](std::size_t a, std::size_t b) {
    return std::pair(places[a].file, places[a].offset) < std::pair(places[b].file, places[b].offset);
  });
  std::vector<RecordText> records(places.size());
  std::unique_ptr<RecordSource> source;
  std::size_t opened = 0;
  for (const std::size_t index : in_files) {
    const RecordPlace& place = places[index];
    const std::string& path = options_.files.at(place.file).path;
    if (source == nullptr || opened != place.file || source->is_far(place.offset)) {
      source = RecordSource::open(path, {place.offset, place.number - 1}, options_.format);
      opened = place.file;
    }
    while (source->end().offset < place.offset && source->next()) {
    }
    const bool is_there = source->end().offset == place.offset;
    const std::optional<std::string_view> line = is_there ? source->next() : std::nullopt;
    if (!line || checksum_of(*line) != place.checksum) throw_changed(path, place.number);
    records[index] = {place, std::string(*line), source->is_text(), source->left_out()};
  }
  return records;
}

}  // namespace components::data
