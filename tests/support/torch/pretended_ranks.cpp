#include "tests/support/torch/pretended_ranks.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/torch_process_setup.h"

namespace tests {
namespace {

using runner::core::RunError;
using runner::distributed::Pending;
using runner::distributed::ProcessGroup;
using runner::distributed::ReduceOp;

// Before there is a rank, for ranks are threads of one process.
const bool prepared = (runner::core::prepare_for_torch(), true);

/// Which thread runs.
class Turns {
 public:
  using Ready = std::function<bool()>;

  explicit Turns(const PretendedRanks& how)
      : how_(how), generator_(how.seed), ranks_(static_cast<std::size_t>(how.size)) {}

  /// Of a rank's thread, before anything else.
  void enter(int rank) {
    std::unique_lock lock(mutex_);
    of(rank).waits = true;
    if (++entered_ == how_.size) pick();
    await(rank, lock);
  }

  /// Lets another rank run; returns when `ready` holds, or for a rank that nothing can wake, with false.
  bool pass_on(int rank, Ready ready) {
    std::unique_lock lock(mutex_);
    of(rank).ready = std::move(ready);
    of(rank).waits = true;
    pick();
    await(rank, lock);
    return !std::exchange(of(rank).is_stuck, false);
  }

  void leave() {
    const std::unique_lock lock(mutex_);
    pick();
  }

  std::size_t switches() const { return switches_; }

 private:
  struct Rank {
    std::condition_variable turn;
    Ready ready;  // none: it can go on
    bool waits = false, is_stuck = false;
  };

  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void await(int rank, std::unique_lock<std::mutex>& lock) {
    of(rank).turn.wait(lock, [&] { return running_ == rank; });
    of(rank).waits = false;
    of(rank).ready = nullptr;
  }

  void pick() {
    std::vector<int> able, waiting;
    for (int rank = 0; rank < how_.size; ++rank) {
      if (!of(rank).waits) continue;
      waiting.push_back(rank);
      if (!of(rank).ready || of(rank).ready()) able.push_back(rank);
    }
    if (able.size() > 1 && how_.slow) able.erase(std::remove(able.begin(), able.end(), *how_.slow), able.end());
    if (waiting.empty()) return;
    if (able.empty()) of(waiting.front()).is_stuck = true;
    const int next = able.empty() ? waiting.front() : able[generator_() % able.size()];
    switches_ += next != running_ ? 1 : 0;
    running_ = next;
    of(next).turn.notify_one();
  }

  const PretendedRanks& how_;
  std::mt19937_64 generator_;
  std::mutex mutex_;
  std::vector<Rank> ranks_;
  int entered_ = 0, running_ = -1;
  std::size_t switches_ = 0;
};

/// One exchange of a group.
struct Meeting {
  struct Part {
    at::Tensor in, out;
    std::vector<std::int64_t> to;  // elements for each member
  };
  std::string what;
  std::vector<std::optional<Part>> parts;  // by member
  std::size_t begun = 0;
  bool is_made = false;
  std::function<void(Meeting&)> make;
};

/// The exchanges of a group, as all of its members see them.
struct Channel {
  std::vector<int> ranks;
  std::map<std::int64_t, std::shared_ptr<Meeting>> meetings;  // that some have still to begin
};

/// What all ranks share. One thread at a time uses it.
struct Hub {
  explicit Hub(const PretendedRanks& options)
      : how(options),
        turns(options),
        on_their_way(static_cast<std::size_t>(options.size)),
        begun(on_their_way.size()),
        over(on_their_way.size()) {}

  bool is_over(int rank) const { return over[static_cast<std::size_t>(rank)]; }

  const PretendedRanks& how;
  Turns turns;
  std::map<std::string, std::shared_ptr<Channel>> channels;
  std::map<std::string, std::vector<at::Tensor>> mail;  // by "from, to"
  std::vector<std::vector<at::Tensor>> on_their_way;    // by rank
  std::vector<std::int64_t> begun;                      // exchanges, by rank
  std::vector<bool> over;                               // by rank: it has ended or failed
  RanksEnd end;
};

at::Tensor sum_or_maximum(const Meeting& meeting, ReduceOp op) {
  at::Tensor all = meeting.parts.front()->in.clone();
  for (std::size_t i = 1; i < meeting.parts.size(); ++i) {
    const at::Tensor& one = meeting.parts[i]->in;
    all = op == ReduceOp::kMax ? at::maximum(all, one) : all.add_(one);
  }
  return all;
}

/// To each member the parts that the others send it, by sender: `begin` says where the n-th one's begins in a part.
template <typename Begin>
void send_parts(Meeting& meeting, const Begin& begin) {
  for (std::size_t number = 0; number < meeting.parts.size(); ++number) {
    char* out = static_cast<char*>(meeting.parts[number]->out.mutable_data_ptr());
    for (const auto& sender : meeting.parts) {
      const std::size_t element = sender->in.element_size();
      const std::size_t bytes = static_cast<std::size_t>(sender->to[number]) * element;
      const auto* in = static_cast<const char*>(sender->in.const_data_ptr());
      std::memcpy(out, in + static_cast<std::size_t>(begin(*sender, number)) * element, bytes);
      out += bytes;
    }
  }
}

class Group final : public ProcessGroup {
 public:
  Group(Hub& hub, std::shared_ptr<Channel> channel, int rank) : hub_(hub), channel_(std::move(channel)), global_(rank) {
    const auto own = std::find(channel_->ranks.begin(), channel_->ranks.end(), rank);
    RUNNER_ASSERT(own != channel_->ranks.end(), "a rank makes groups that it belongs to");
    member_ = static_cast<std::size_t>(own - channel_->ranks.begin());
  }

  int rank() const override { return static_cast<int>(member_); }
  int size() const override { return static_cast<int>(channel_->ranks.size()); }
  void connect_gpus(runner::core::ConnectNccl, int) override { throw RunError("pretended ranks have no GPU", ""); }
  void describe_ranks(const std::vector<std::string>&) override {}
  void verify_collective(const char*, const char*, const std::string&) override {}  // each exchange is compared

  std::unique_ptr<Pending> begin_all_reduce(const at::Tensor& flat, const char* site, ReduceOp op) override {
    return begin("all_reduce", site, {flat, flat, {}}, [op](Meeting& meeting) {
      const at::Tensor all = sum_or_maximum(meeting, op);
      for (const auto& part : meeting.parts) part->out.copy_(all);
    });
  }

  std::vector<at::Tensor> all_gather(const at::Tensor& mine, const char* site) override {
    const at::Tensor sent = mine.reshape({-1});
    const at::Tensor all = at::empty({sent.numel() * size()}, mine.options());
    begin_all_gather(all, sent, site)->wait();
    std::vector<at::Tensor> parts;
    for (int i = 0; i < size(); ++i) parts.push_back(all.narrow(0, i * sent.numel(), sent.numel()).view(mine.sizes()));
    return parts;
  }

  void broadcast(const at::Tensor& flat, int from, const char* site) override {
    begin("broadcast", site, {flat, flat, {}}, [from](Meeting& meeting) {
      for (const auto& part : meeting.parts) part->out.copy_(meeting.parts[static_cast<std::size_t>(from)]->in);
    })->wait();
  }

  std::unique_ptr<Pending> begin_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                            const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                            const char* site) override {
    RUNNER_ASSERT(std::accumulate(out_counts.begin(), out_counts.end(), std::int64_t{0}) == out.numel() &&
                      std::accumulate(in_counts.begin(), in_counts.end(), std::int64_t{0}) == in.numel(),
                  "the counts are those of the tensors");
    return begin("all_to_all", site, {in, out, in_counts}, [](Meeting& meeting) {
      send_parts(meeting, [](const Meeting::Part& part, std::size_t number) {
        return std::accumulate(part.to.begin(), part.to.begin() + static_cast<std::ptrdiff_t>(number), std::int64_t{0});
      });
    });
  }

  std::unique_ptr<Pending> begin_all_gather(const at::Tensor& out, const at::Tensor& mine, const char* site) override {
    return begin("all_gather", site, {mine, out, std::vector<std::int64_t>(channel_->ranks.size(), mine.numel())},
                 [](Meeting& meeting) { send_parts(meeting, [](const Meeting::Part&, std::size_t) { return 0; }); });
  }

  void send(const at::Tensor& tensor, int to, const char*) override {
    hub_.mail[key(rank(), to)].push_back(tensor.clone());
  }

  void receive(const at::Tensor& tensor, int from, const char* site) override {
    std::vector<at::Tensor>& box = hub_.mail[key(from, rank())];
    const int sender = channel_->ranks.at(static_cast<std::size_t>(from));
    await([&] { return box.empty() ? std::vector<int>{sender} : std::vector<int>(); },
          std::string("receive of ") + site);
    tensor.copy_(box.front());
    box.erase(box.begin());
  }

  std::unique_ptr<ProcessGroup> part(const std::vector<int>& ranks, const std::string& name) override {
    std::string key = name;
    std::vector<int> global;
    for (const int rank : ranks) {
      global.push_back(channel_->ranks.at(static_cast<std::size_t>(rank)));
      key += " " + std::to_string(global.back());
    }
    std::shared_ptr<Channel>& channel = hub_.channels[key];
    if (channel == nullptr) channel = std::make_shared<Channel>(Channel{global, {}});
    return std::make_unique<Group>(hub_, channel, global_);
  }

 private:
  class Exchange final : public Pending {
   public:
    Exchange(Group& group, std::shared_ptr<Meeting> meeting, const Meeting::Part& part)
        : group_(group), meeting_(std::move(meeting)), in_(part.in), out_(part.out) {
      on_their_way().push_back(in_);
      if (!out_.is_same(in_)) on_their_way().push_back(out_);
    }
    ~Exchange() override { end(); }
    void wait() override {
      group_.await(*meeting_);
      end();
    }

   private:
    std::vector<at::Tensor>& on_their_way() {
      return group_.hub_.on_their_way[static_cast<std::size_t>(group_.global_)];
    }
    void end() {
      const auto is_own = [this](const at::Tensor& one) { return one.is_same(in_) || one.is_same(out_); };
      std::erase_if(on_their_way(), is_own);
      in_.reset();
      out_.reset();
    }

    Group& group_;
    std::shared_ptr<Meeting> meeting_;
    at::Tensor in_, out_;
  };

  std::unique_ptr<Pending> begin(const char* operation, const char* site, Meeting::Part part,
                                 std::function<void(Meeting&)> make) {
    const std::string what = std::string(operation) + " of " + site;
    const auto self = static_cast<std::size_t>(global_);
    if (hub_.is_over(global_)) violation(what + " with a group that is lost");
    if (global_ == hub_.how.lost && hub_.begun[self] == hub_.how.lost_at) {
      hub_.over[self] = true;
      throw RunError("rank " + std::to_string(global_) + " ends here", "");
    }
    ++hub_.begun[self];
    if (global_ == 0) hub_.end.exchanges.push_back(what);
    hub_.turns.pass_on(global_, nullptr);
    std::shared_ptr<Meeting>& there = channel_->meetings[next_];
    if (there == nullptr) {
      there = std::make_shared<Meeting>();
      there->what = what;
      there->make = std::move(make);
      there->parts.resize(channel_->ranks.size());
    }
    const std::shared_ptr<Meeting> meeting = there;
    if (meeting->what != what) {
      violation(what + ", where others make an " + meeting->what);
      throw RunError(hub_.end.violations.back(), "");
    }
    if (!part.out.is_same(part.in) && part.out.is_floating_point())
      part.out.fill_(std::numeric_limits<double>::quiet_NaN());
    auto exchange = std::make_unique<Exchange>(*this, meeting, part);
    meeting->parts[member_] = std::move(part);
    if (++meeting->begun == meeting->parts.size()) channel_->meetings.erase(next_);
    ++next_;
    if (hub_.how.on_exchange) hub_.how.on_exchange(global_, what, hub_.on_their_way[self]);
    return exchange;
  }

  void await(Meeting& meeting) {
    // What a rank has begun before it ended still arrives.
    const auto missing = [&] {
      std::vector<int> ranks;
      for (std::size_t i = 0; i < meeting.parts.size() && !meeting.is_made; ++i) {
        if (!meeting.parts[i]) ranks.push_back(channel_->ranks[i]);
      }
      return ranks;
    };
    await([&] { return missing(); }, meeting.what);
    if (std::exchange(meeting.is_made, true)) return;
    meeting.make(meeting);
    for (auto& part : meeting.parts) part.reset();
  }

  /// Until no rank is missing.
  void await(const std::function<std::vector<int>()>& missing, const std::string& what) {
    const bool goes_on = hub_.turns.pass_on(global_, [&] {
      const std::vector<int> ranks = missing();
      return ranks.empty() || std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return hub_.is_over(rank); });
    });
    const std::vector<int> ranks = missing();
    if (ranks.empty()) return;
    std::string why = "rank " + std::to_string(hub_.how.lost.value_or(-1)) + " does not respond";
    if (!goes_on) {
      why = "all wait, this one for";
      for (const int rank : ranks) why += " " + std::to_string(rank);
    }
    hub_.over[static_cast<std::size_t>(global_)] = true;
    throw RunError("rank " + std::to_string(global_) + ": " + what + " did not finish: " + why, "",
                   runner::core::kExitPeerLost);
  }

  void violation(const std::string& text) {
    hub_.end.violations.push_back("rank " + std::to_string(global_) + ": " + text);
  }
  std::string key(int from, int to) const {
    return std::to_string(channel_->ranks.at(static_cast<std::size_t>(from))) + ", " +
           std::to_string(channel_->ranks.at(static_cast<std::size_t>(to)));
  }

  Hub& hub_;
  std::shared_ptr<Channel> channel_;
  int global_;
  std::size_t member_ = 0;
  std::int64_t next_ = 0;
};

}  // namespace

RanksEnd run_pretended_ranks(const PretendedRanks& how, const std::function<void(ProcessGroup&)>& body) {
  Hub hub(how);
  const auto size = static_cast<std::size_t>(how.size);
  hub.end.errors.resize(size);
  const auto whole = std::make_shared<Channel>();
  whole->ranks.resize(size);
  std::iota(whole->ranks.begin(), whole->ranks.end(), 0);
  const int pool = at::get_num_threads();
  at::set_num_threads(1);  // each rank would have a pool of its own
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < how.size; ++rank) {
    threads.emplace_back([&, rank] {
      hub.turns.enter(rank);
      try {
        Group group(hub, whole, rank);
        body(group);
      } catch (const std::exception& error) {
        hub.end.errors[static_cast<std::size_t>(rank)] = error.what();
      }
      hub.over[static_cast<std::size_t>(rank)] = true;
      hub.turns.leave();
    });
  }
  threads.clear();
  at::set_num_threads(pool);
  hub.end.switches = hub.turns.switches();
  return std::move(hub.end);
}

}  // namespace tests
