#include "runner/distributed/process_group.h"

#define USE_C10D_GLOO  // else the header below is empty
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/core/platform/own_address.h"
#include "runner/core/platform/port_process.h"
#include "runner/core/platform/run_async.h"
#include "runner/core/units.h"
#include "runner/distributed/collective_log.h"
#include "runner/distributed/exit_message.h"
#include "runner/distributed/gloo_declarations.h"
#include "runner/distributed/nccl_backend.h"
#include "runner/distributed/staged_group.h"
#include "runner/distributed/tensor_description.h"
// After the declarations that it needs.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace runner::distributed {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerPatience{1500};  // for all ranks together: a supervisor kills the rest soon after
constexpr milliseconds kForEver = std::chrono::hours(24 * 20);  // 31 bits, all of which it uses
constexpr int kFatal = 3;                                       // level of LibTorch's log
constexpr const char* kEnd = "end";
constexpr const char* kConnecting = "connecting the GPUs";
constexpr const char* kAlike = "make the same calls in the same order on all ranks, with tensors of equal shape";

milliseconds in_ms(double seconds) { return milliseconds(static_cast<std::int64_t>(seconds * 1e3)); }

std::string key(const char* what, int rank) { return std::string(what) + "/" + std::to_string(rank); }

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

/// The first line, without LibTorch's prefix.
std::string plain(const std::exception& error) {
  std::string text = error.what();
  if (const std::string line = nccl_error(text); !line.empty()) return line;
  text = text.substr(0, text.find('\n'));
  for (const char* begin : {"[", "Exception"}) {
    if (!text.starts_with(begin)) continue;
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  }
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

/// Another rank is not to blame for it.
bool is_of_own_gpu(const std::exception& error) {
  return dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr;
}

core::RunError peer_lost(const std::string& message, const std::string& hint) {
  return core::RunError(message, hint, core::kExitPeerLost);
}

/// LibTorch's client has a timeout for the connection, but none for the first response of the listener, which may be no
/// store, or one that hangs.
c10::intrusive_ptr<c10d::TCPStore> opened_within(milliseconds limit, const std::string& address,
                                                 const c10d::TCPStoreOptions& options) {
  auto opening = core::run_async([=] { return c10::make_intrusive<c10d::TCPStore>(address, options); });
  if (opening.wait_for(limit) != std::future_status::timeout) return opening.get();
  new auto(std::move(opening));  // its thread waits for ever; the process is about to exit
  throw std::runtime_error("the listener does not respond");
}

c10::intrusive_ptr<c10d::TCPStore> open_store(const core::RankInfo& info, milliseconds timeout, bool hosts) {
  c10d::TCPStoreOptions options;
  options.port = info.master_port;
  options.isServer = hosts;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    return opened_within(2 * timeout, info.master_addr, options);
  } catch (const std::exception& error) {
    const std::string where = info.master_addr + ":" + std::to_string(info.master_port);
    const std::string holder = hosts ? core::process_on_port(info.master_port) : "";
    if (!holder.empty()) {
      throw core::RunError(
          "rank 0 cannot host the rendezvous store: " + holder + " has port " + std::to_string(info.master_port),
          "stop that process, or use another MASTER_PORT on all ranks");
    }
    throw peer_lost(
        "rank " + std::to_string(info.rank) + " cannot reach the rendezvous store at " + where + ": " + plain(error),
        "MASTER_ADDR and MASTER_PORT must be those of rank 0, and the port must be free");
  }
}

core::RankInfo at_port(core::RankInfo info, std::uint16_t port) {
  info.master_port = port;
  return info;
}

/// What a rank tells the others about itself, and learns about them on a failure.
class Registry {
 public:
  Registry(const core::RankInfo& info, milliseconds timeout)
      : info_(info),
        store_(open_store(info, timeout, info.hosts_store)),
        answering_store_(open_store(at_port(info, store_->getPort()), timeout, false)),
        collective_log_(std::make_shared<CollectiveLog>()) {}

  const c10::intrusive_ptr<c10d::TCPStore>& store() const { return store_; }
  CollectiveLog& collective_log() { return *collective_log_; }
  bool is_abandoned() const { return abandoned_; }

  void describe_ranks(const std::vector<std::string>& places) {
    for (std::size_t rank = 0; rank < names_.size(); ++rank) names_[rank] = places.at(rank) + ", " + names_[rank];
  }

  void come_together(milliseconds timeout) {
    const std::string self = "process " + std::to_string(getpid()) + " on " + core::host_name();
    std::vector<std::string> keys;
    for (int rank = 0; rank < info_.size; ++rank) keys.push_back(key("here", rank));
    try {
      store_->set(key("here", info_.rank), bytes_of(self));
      store_->wait(keys, timeout);
      for (const auto& name : store_->multiGet(keys)) names_.push_back(text_of(name));
    } catch (const std::exception& error) {
      throw peer_lost(absent_text(keys, timeout, error),
                      "start each rank with the same MASTER_ADDR, "
                      "MASTER_PORT and WORLD_SIZE, and its own RANK");
    }
    begin_to_answer();
  }

  /// Why a collective did not finish, as far as the other ranks can tell.
  core::RunError lost(const std::string& what, double timeout_s, const std::exception& error) {
    const std::string reason = plain(error);
    const bool is_of_nccl = !nccl_error(error.what()).empty();
    const bool timed_out =
        !is_of_nccl && (reason.find("imed out") != std::string::npos || reason.find("imeout") != std::string::npos);
    std::string text = "rank " + std::to_string(info_.rank) + ": " + what +
                       (timed_out ? " waited " + core::format_duration(timeout_s) : " did not finish");
    text += where_others_are();
    if (!timed_out) text += " (" + reason + ")";
    const char* hint = "see the output of the rank that died for the reason";
    if (timed_out) hint = "if a rank is just slow, increase launch.timeout";
    if (is_of_nccl) {
      hint = "NCCL_DEBUG=WARN prints more; `launch.backend: gloo` exchanges through the memory of the CPU";
    }
    return peer_lost(text, hint);
  }

  /// Why other data arrived than this rank expects. Call on any thread.
  core::RunError mismatch(const std::exception& error) {
    return peer_lost("rank " + std::to_string(info_.rank) + " " + collective_log_->text() +
                         ", but another rank sends more" + where_others_are() + " (" + plain(error) + ")",
                     "the ranks call different collectives; set launch.debug: true to compare them before each");
  }

  /// The answering thread waits only for the store; the group is destroyed after it.
  void end_answering() {
    if (!answering_) return;
    try {
      store_->set(key("ask", info_.rank), bytes_of(kEnd));
    } catch (const std::exception&) {  // without a store it ended by itself
    }
    if (answering_) answering_->wait();
    answering_.reset();
  }

  /// After a lost peer threads of LibTorch may wait for ever; the process is about to exit anyway.
  void abandon() {
    if (std::exchange(abandoned_, true)) return;
    new std::optional<std::future<void>>(std::move(answering_));
    store_.release();
  }

 private:
  std::string absent_text(const std::vector<std::string>& keys, milliseconds timeout, const std::exception& error) {
    std::vector<int> absent;
    try {
      for (int rank = 0; rank < info_.size; ++rank) {
        if (!store_->check({keys[static_cast<std::size_t>(rank)]})) absent.push_back(rank);
      }
    } catch (const std::exception&) {
      absent.clear();
    }
    const std::string where = info_.master_addr + ":" + std::to_string(info_.master_port);
    if (absent.empty())
      return "rank " + std::to_string(info_.rank) + " lost the store at " + where + ": " + plain(error);
    return ranks_text(absent) + " of " + std::to_string(info_.size) + " did not connect to " + where + " within " +
           core::format_duration(static_cast<double>(timeout.count()) * 1e-3);
  }

  void begin_to_answer() {
    answering_ = core::try_run_async([store = answering_store_, collectives = collective_log_, rank = info_.rank] {
      try {
        store->wait({key("ask", rank)}, kForEver);
        if (text_of(store->get(key("ask", rank))) != kEnd)
          store->set(key("where", rank), bytes_of(collectives->text()));
      } catch (const std::exception&) {  // no rank is left to ask
      }
    });
  }

  /// `: rank 2 (process 17 on a) does not respond; rank 1 is waiting in ...`
  std::string where_others_are() {
    std::vector<int> silent;
    std::string text, others;
    ask(silent, others);
    for (std::size_t i = 0; i < silent.size(); ++i) {
      text += (i == 0 ? ": " + ranks_text(silent) + " (" : ", ") + names_[static_cast<std::size_t>(silent[i])];
    }
    return text + (silent.empty() ? "" : ") does not respond") + others;
  }

  void ask(std::vector<int>& silent, std::string& others) {
    try {
      store_->set(key("where", info_.rank), bytes_of(collective_log_->text()));
      for (int rank = 0; rank < info_.size; ++rank) {
        if (rank != info_.rank) store_->set(key("ask", rank), bytes_of("where"));
      }
    } catch (const std::exception&) {
      return;
    }
    const auto deadline = std::chrono::steady_clock::now() + kAnswerPatience;
    for (int rank = 0; rank < info_.size; ++rank) {
      if (rank == info_.rank) continue;
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      try {
        store_->wait({key("where", rank)}, std::max(left, milliseconds(1)));
        others += "; rank " + std::to_string(rank) + " " + text_of(store_->get(key("where", rank)));
      } catch (const std::exception&) {
        silent.push_back(rank);
      }
    }
  }

  const core::RankInfo info_;
  c10::intrusive_ptr<c10d::TCPStore> store_, answering_store_;  // a store's client serves one caller at a time
  std::shared_ptr<CollectiveLog> collective_log_;
  std::vector<std::string> names_;
  std::optional<std::future<void>> answering_;
  bool abandoned_ = false;
};

std::shared_ptr<gloo::transport::Device> device_for(const core::RankInfo& info) {
  // As in PyTorch: the user can name the interface.
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr && *interface != '\0') {
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface, false);
  }
  const std::string own = core::own_address_towards(info.master_addr, info.master_port);
  // A name that resolves to loopback here is useless to other machines.
  const bool reachable = !own.empty() && (!own.starts_with("127.") || info.local_size == info.size);
  return reachable ? c10d::ProcessGroupGloo::createDeviceForHostname(own, false)
                   : c10d::ProcessGroupGloo::createDefaultDevice(false);
}

/// The texts of all ranks; `gather` takes a tensor of the same shape on each.
template <typename Gather>
std::vector<std::string> texts_of_ranks(const std::string& mine, Gather gather) {
  const at::Tensor size = at::empty({1}, at::kLong);
  *size.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& one : gather(size)) sizes.push_back(one.item<std::int64_t>());
  const at::Tensor bytes =
      at::empty({std::max<std::int64_t>(1, *std::max_element(sizes.begin(), sizes.end()))}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), mine.data(), mine.size());
  std::vector<std::string> all;
  for (const at::Tensor& one : gather(bytes)) {
    all.emplace_back(static_cast<const char*>(one.const_data_ptr()), static_cast<std::size_t>(sizes[all.size()]));
  }
  return all;
}

/// RunError, the same on every rank, unless all are at the same collective. If most agree, the others are to blame.
/// `numbers`: of the ranks, for the message.
void refuse_unlike(const std::vector<std::string>& by_rank, const std::vector<int>& numbers) {
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) ranks[by_rank[rank]].push_back(numbers[rank]);
  if (ranks.size() == 1) return;
  std::vector<int> odd;
  for (const auto& [text, those] : ranks) {
    if (2 * those.size() < by_rank.size()) odd.insert(odd.end(), those.begin(), those.end());
  }
  std::sort(odd.begin(), odd.end());
  std::string message = "the ranks call different collectives";
  if (!odd.empty() && odd.size() < by_rank.size()) message = ranks_text(odd) + " differs from the others";
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    message += (rank == 0 ? ": rank " : "; rank ") + std::to_string(numbers[rank]) + ": " + by_rank[rank];
  }
  throw core::RunError(message, kAlike);
}

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Connects the CPUs over Gloo, and on demand the GPUs over NCCL.
class ConnectedGroup final : public ProcessGroup {
 public:
  ConnectedGroup(const core::RankInfo& info, const ProcessGroupOptions& meeting)
      : info_(info),
        timeout_s_(meeting.timeout_s),
        debug_(meeting.debug),
        numbers_(first_numbers(info.size)),
        registry_(std::make_shared<Registry>(info, in_ms(meeting.timeout_s))) {
    registry_->come_together(in_ms(timeout_s_));
    connect();
    exit_message_ =
        std::make_unique<ExitMessage>([this](const std::exception& error) { return registry_->mismatch(error); });
  }
  /// Some ranks of `whole`, by their numbers there.
  ConnectedGroup(const ConnectedGroup& whole, const std::vector<int>& ranks, const std::string& name)
      : info_(whole.info_),
        timeout_s_(whole.timeout_s_),
        debug_(whole.debug_),
        name_(name),
        registry_(whole.registry_),
        connect_nccl_(whole.connect_nccl_),
        gpu_(whole.gpu_) {
    for (const int rank : ranks) numbers_.push_back(whole.numbers_.at(static_cast<std::size_t>(rank)));
    const auto own = std::find(ranks.begin(), ranks.end(), whole.rank());
    RUNNER_ASSERT(own != ranks.end(), "a rank makes groups that it belongs to");
    info_.rank = static_cast<int>(own - ranks.begin());
    info_.size = static_cast<int>(ranks.size());
    connect();
    if (connect_nccl_ != nullptr) connect_gpus(connect_nccl_, gpu_);
  }
  ~ConnectedGroup() override {
    if (registry_->is_abandoned()) {
      abandon();
    } else if (is_whole() || std::uncaught_exceptions() > 0) {
      registry_->end_answering();  // a rank that fails is silent before the others see its connections close
    }
  }

  int rank() const override { return info_.rank; }
  int size() const override { return info_.size; }

  void connect_gpus(core::ConnectNccl connect, int gpu) override {
    const std::int64_t number = log().begin(kConnecting);
    log().begin_wait(number);
    try {
      nccl_ = std::make_unique<NcclBackend>(connect, own_store("nccl"),
                                            core::NcclRank{info_.rank, info_.size, gpu, in_ms(timeout_s_)});
    } catch (const std::exception& error) {
      fail(kConnecting, error);
    }
    connect_nccl_ = connect;
    gpu_ = gpu;
    log().end(number);
  }

  std::unique_ptr<ProcessGroup> part(const std::vector<int>& ranks, const std::string& name) override {
    return std::make_unique<ConnectedGroup>(*this, ranks, name);
  }

  void describe_ranks(const std::vector<std::string>& places) override {
    RUNNER_ASSERT(is_whole(), "the names are those of all ranks");
    registry_->describe_ranks(places);
  }

  std::unique_ptr<Pending> begin_all_reduce(const at::Tensor& flat, const char* site, ReduceOp op) override {
    std::vector<at::Tensor> tensors{flat};
    c10d::AllreduceOptions options;
    options.reduceOp = op == ReduceOp::kMax ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
    verify_collective("all_reduce", site, description_of(flat));
    return begin("all_reduce", site, flat, [&] { return Works{backend_of(flat).allreduce(tensors, options)}; });
  }

  std::vector<at::Tensor> all_gather(const at::Tensor& mine, const char* site) override {
    verify_collective("all_gather", site, description_of(mine));
    return gather(mine, "all_gather", site);
  }

  void broadcast(const at::Tensor& flat, int from, const char* site) override {
    std::vector<at::Tensor> tensors{flat};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    verify_collective("broadcast", site, description_of(flat) + " from rank " + std::to_string(from));
    check_length(flat, from, site);
    begin("broadcast", site, flat, [&] { return Works{backend_of(flat).broadcast(tensors, options)}; })->wait();
  }

  std::unique_ptr<Pending> begin_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                            const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                            const char* site) override {
    at::Tensor target = out, source = in;
    std::vector<std::int64_t> to = out_counts, from = in_counts;
    // Not the shapes: those of the ranks may differ.
    verify_collective("all_to_all", site, c10::toString(in.scalar_type()));
    return begin("all_to_all", site, in, [&] { return Works{backend_of(in).alltoall_base(target, source, to, from)}; });
  }

  std::unique_ptr<Pending> begin_all_gather(const at::Tensor& out, const at::Tensor& mine, const char* site) override {
    at::Tensor target = out, source = mine;
    verify_collective("all_gather", site, description_of(mine));
    if (!mine.is_cpu()) {
      return begin("all_gather", site, mine, [&] { return Works{backend_of(mine)._allgather_base(target, source)}; });
    }
    // Gloo gathers into a buffer of its own; from each process in turn it receives where the numbers belong.
    return begin("all_gather", site, mine, [&] {
      Works works;
      for (int rank = 0; rank < info_.size; ++rank) {
        std::vector<at::Tensor> part{out.narrow(0, rank * mine.numel(), mine.numel())};
        if (rank == info_.rank) part.front().copy_(mine);
        c10d::BroadcastOptions options;
        options.rootRank = rank;
        works.push_back(gloo_->broadcast(part, options));
      }
      return works;
    });
  }

  void send(const at::Tensor& tensor, int to, const char* site) override {
    std::vector<at::Tensor> tensors{tensor};
    begin(toward("send to", to).c_str(), site, tensor, [&] {
      return Works{backend_of(tensor).send(tensors, to, kTag)};
    })->wait();
  }

  void receive(const at::Tensor& tensor, int from, const char* site) override {
    std::vector<at::Tensor> tensors{tensor};
    begin(toward("receive from", from).c_str(), site, tensor, [&] {
      return Works{backend_of(tensor).recv(tensors, from, kTag)};
    })->wait();
  }

  // Uses collectives that are not checked themselves; two gathers, as the texts differ in length.
  void verify_collective(const char* operation, const char* site, const std::string& shape) override {
    if (!debug_) return;
    const std::string mine = std::string(operation) + " of " + site + ", " + shape;
    const auto gathered = [&](const at::Tensor& tensor) { return gather(tensor, "comparison before", mine.c_str()); };
    refuse_unlike(texts_of_ranks(mine, gathered), numbers_);
  }

 private:
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  class Collective final : public Pending {
   public:
    struct Begun {
      std::string what;
      std::int64_t number = 0;
      bool on_gpu = false;
    };
    Collective(ConnectedGroup& group, Begun begun, Works works)
        : group_(group), begun_(std::move(begun)), works_(std::move(works)) {}
    ~Collective() override { group_.log().abandon(begun_.number); }
    void wait() override {
      group_.log().begin_wait(begun_.number);
      try {
        for (const auto& work : works_) {
          if (begun_.on_gpu) {
            wait_on_cpu(*work, in_ms(group_.timeout_s_));
          } else {
            work->wait();
          }
        }
      } catch (const std::exception& error) {
        group_.fail(begun_.what, error);
      }
      group_.log().end(begun_.number);
    }

   private:
    ConnectedGroup& group_;
    Begun begun_;
    Works works_;
  };

  template <typename Start>
  std::unique_ptr<Collective> begin(const char* operation, const char* site, const at::Tensor& mine, Start start) {
    const std::string what = std::string(operation) + " of " + site + (is_whole() ? "" : " along " + name_);
    const std::int64_t number = log().begin(what + ", " + description_of(mine));
    try {
      return std::make_unique<Collective>(*this, Collective::Begun{what, number, !mine.is_cpu()}, start());
    } catch (const std::exception& error) {
      fail(what, error);
    }
  }

  c10d::Backend& backend_of(const at::Tensor& tensor) {
    return tensor.is_cpu() ? static_cast<c10d::Backend&>(*gloo_) : **nccl_;
  }

  std::vector<at::Tensor> gather(const at::Tensor& mine, const char* operation, const char* site) {
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int rank = 0; rank < info_.size; ++rank) outputs.front().push_back(at::empty_like(mine));
    std::vector<at::Tensor> inputs{mine};
    begin(operation, site, mine, [&] { return Works{backend_of(mine).allgather(outputs, inputs)}; })->wait();
    return std::move(outputs.front());
  }

  /// If less arrives than a rank expects, Gloo leaves the rest unchanged; in a broadcast no rank gets more.
  void check_length(const at::Tensor& flat, int from, const char* site) {
    const at::Tensor bytes = at::scalar_tensor(static_cast<std::int64_t>(flat.nbytes()), at::kLong);
    std::vector<at::Tensor> tensors{bytes};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    const std::string length = std::string("the length of ") + site;
    begin("broadcast", length.c_str(), bytes, [&] { return Works{gloo_->broadcast(tensors, options)}; })->wait();
    if (const auto sent = bytes.item<std::int64_t>(); sent != static_cast<std::int64_t>(flat.nbytes())) {
      throw core::RunError("rank " + std::to_string(info_.rank) + ": broadcast of " + site + ": rank " +
                               std::to_string(from) + " sends " + std::to_string(sent) + " bytes, but the buffer has " +
                               std::to_string(flat.nbytes()) + ", " + description_of(flat),
                           kAlike);
    }
  }

  /// Call it where `error` was caught.
  [[noreturn]] void fail(const std::string& what, const std::exception& error) {
    if (is_of_own_gpu(error)) {
      abandon();
      throw;
    }
    const core::RunError lost = registry_->lost(what, timeout_s_, error);
    abandon();
    throw lost;
  }

  /// Of the whole once one of its groups has lost a rank, too.
  void abandon() {
    if (std::exchange(lost_, true)) return;  // another collective was in flight, too
    if (exit_message_ != nullptr) {
      exit_message_->keep_silent();
      static_cast<void>(exit_message_.release());
    }
    if (nccl_) nccl_->abandon();
    registry_->abandon();
    gloo_.release();
  }

  void connect() {
    auto options = c10d::ProcessGroupGloo::Options::create(in_ms(timeout_s_));
    options->threads = kExchangesAtOnce;
    try {
      options->devices.push_back(device_for(info_));
      gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(own_store("gloo"), info_.rank, info_.size, options);
      // A rank is connected before the others have accepted. One without work could exit meanwhile, and a slower one
      // would find its connection closed.
      gloo_->barrier()->wait();
    } catch (const std::exception& error) {
      fail(is_whole() ? "connecting with the others" : "connecting along " + name_, error);
    }
  }

  /// The keys of this group's ranks at the store: no other group of a name has the same first rank.
  c10::intrusive_ptr<c10d::PrefixStore> own_store(const char* backend) const {
    const std::string group = is_whole() ? "" : "/" + name_ + "/" + std::to_string(numbers_.front());
    return c10::make_intrusive<c10d::PrefixStore>(backend + group, registry_->store());
  }

  std::string toward(const char* operation, int rank) const {
    return std::string(operation) + " rank " + std::to_string(numbers_.at(static_cast<std::size_t>(rank)));
  }
  bool is_whole() const { return name_.empty(); }
  CollectiveLog& log() const { return registry_->collective_log(); }

  static constexpr int kTag = 0;
  /// Each has a thread of Gloo, which waits most of the time. The messages of one fill what the network would be idle
  /// while the other side answers another.
  static constexpr int kExchangesAtOnce = 8;

  core::RankInfo info_;  ///< rank and size are those of this group
  const double timeout_s_;
  const bool debug_;
  const std::string name_ = {};  ///< "": all ranks
  std::vector<int> numbers_;     ///< of its ranks among all
  bool lost_ = false;
  std::shared_ptr<Registry> registry_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  core::ConnectNccl connect_nccl_ = nullptr;
  int gpu_ = 0;
  std::unique_ptr<NcclBackend> nccl_;          ///< null: no GPUs are connected
  std::unique_ptr<ExitMessage> exit_message_;  ///< null for a part
};

}  // namespace

std::vector<std::string> ProcessGroup::all_gather(const std::string& mine, const char* site) {
  return texts_of_ranks(mine, [&](const at::Tensor& tensor) { return all_gather(tensor, site); });
}

std::string ProcessGroup::from_rank_0(const std::string& bytes, const char* site) {
  return all_gather(rank() == 0 ? bytes : "", site).front();
}

std::unique_ptr<ProcessGroup> init_process_group(const core::RankInfo& info, const ProcessGroupOptions& options) {
  FLAGS_caffe2_log_level = kFatal;  // c10d logs pages about each socket error that our own messages report
  return stage_on_cpu(std::make_unique<ConnectedGroup>(info, options));
}

}  // namespace runner::distributed
