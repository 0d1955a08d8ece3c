#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "runner/core/node.h"

namespace components {
class TensorMap;
}

namespace components::data {

/// Samples one after the other, pass after pass over the files without an end: a pure function of files, options and
/// seed. Its memory does not grow with the files. One thread at a time; collate() may be called from several.
class Stream {
 public:
  /// What was read of a sample; not changed any more.
  class Sample {
   public:
    virtual ~Sample();
    virtual std::int64_t pass() const = 0;  ///< over the files, from 0
    /// Where its positions come from: Dataset::parts_of(). RunError as collate().
    virtual std::vector<Part> parts() const = 0;
  };
  using SamplePointer = std::shared_ptr<const Sample>;

  /// A place between two samples, as references to records, not as their texts.
  class Mark {
   public:
    virtual ~Mark();
    virtual std::int64_t sample() const = 0;  ///< the number of the next one
    virtual runner::core::Node to_node() const = 0;
  };

  virtual ~Stream();
  virtual std::int64_t position() const = 0;  ///< number of the next sample, from 0
  /// What became of the records in front of position(), in all passes. Without `cut`, which parts() tells, and without
  /// reasons.
  virtual Account account() const = 0;
  /// The same of the first pass, with reasons; nothing before it has ended, and after go_to().
  virtual std::optional<Account> first_pass() const = 0;
  /// Of the records that this object skipped, wherever it is now: Account::reasons.
  virtual std::string skipped_reasons() const = 0;
  /// Of the records of its set that this process has encoded, the fields that mean something and are not read, with
  /// counts: `of 40 records not read are tools of 19 records, such as a.jsonl:22`; "" when there are none.
  virtual std::string unread() const = 0;
  /// The next sample. What is not `wanted` is skipped as cheaply as possible; then the result is null. RunError names
  /// file and line of a record that is bad; after one, go_to() is needed.
  virtual SamplePointer next(bool wanted) = 0;
  /// The pass of the next sample. Reads on as far as that takes; RunError as next().
  virtual std::int64_t pass_of_next() = 0;
  /// Leaves out what remains of the pass, so that the next sample begins one; nothing where it does already.
  virtual void leave_pass() = 0;
  /// Writes the tensors of Dataset::signature() for these samples. RunError names file and line of a bad record.
  virtual void collate(std::span<const SamplePointer> samples, TensorMap& batch) const = 0;

  /// The present place.
  virtual std::shared_ptr<const Mark> mark() const = 0;
  /// Before it is read: the most bytes of text that it may hold to shuffle. Unset: half of the memory.
  virtual void limit_buffer(std::int64_t bytes) = 0;
  /// Samples between marks, so that what they cost is small.
  virtual std::int64_t mark_interval() const = 0;
  /// The mark that to_node() wrote. RunError when the files are other ones or have changed.
  virtual std::shared_ptr<const Mark> mark_of(const runner::core::Node& node) const = 0;
  /// Reads the records of the mark again. RunError when one is not what it was.
  virtual void go_to(const Mark& mark) = 0;
};

}  // namespace components::data
