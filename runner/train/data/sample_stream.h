#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "components/data/stream.h"
#include "runner/core/node.h"

namespace components {
class TensorMap;
}

namespace runner::train {

/// A stream that is read at any sample: it keeps marks on the way, returns to the latest one in front of a sample that
/// lies behind, and reads on from there. Safe to use from several threads.
class SampleStream {
 public:
  using Samples = std::vector<components::data::Stream::SamplePointer>;

  /// `data` is a stream, and outlives this.
  SampleStream(const components::data::Dataset& data, const components::data::StreamOptions& options);

  /// Samples [begin, begin + count). RunError names file and line of a record that is bad.
  Samples read(std::int64_t begin, std::int64_t count);
  /// Writes their tensors. May take long, and holds up no read().
  void collate(std::span<const Samples::value_type> samples, components::TensorMap& batch) const;

  /// What restore() needs to read from `sample` on: the latest mark in front of it, which depends on the stream and the
  /// sample only, not on what has been read ahead. Reads up to the sample if that was not done.
  core::Node state_at(std::int64_t sample);
  /// RunError when the files are other ones or have changed.
  void restore(const core::Node& state);
  /// What became of the records in front of `sample`, in this run and those that it resumes: Stream::account(). Reads
  /// up to the sample if that was not done.
  components::data::Account account_at(std::int64_t sample);
  std::string unread() const { return stream_->unread(); }
  /// Samples in front of this one are hardly read again: their marks may go.
  void keep_from(std::int64_t sample);

 private:
  using Mark = std::shared_ptr<const components::data::Stream::Mark>;

  void go_to(std::int64_t sample);
  components::data::Stream::SamplePointer next(bool wanted);
  const Mark& latest_mark(std::int64_t sample) const;

  std::mutex mutex_;
  std::unique_ptr<components::data::Stream> stream_;
  std::map<std::int64_t, Mark> marks_;                          // by their samples; always that of sample 0
  std::map<std::int64_t, components::data::Account> accounts_;  // by the samples in front of which they are
  std::int64_t next_mark_ = 0;                                  // the first sample that may have one
  bool is_whole_ = true;                                        // false after an error: it is somewhere
};

}  // namespace runner::train
