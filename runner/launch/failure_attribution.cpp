#include "runner/launch/failure_attribution.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runner/core/error.h"

namespace runner::launch {
namespace {

using core::Node;

constexpr const char *kRank = "rank", *kWho = "who", *kStatus = "status", *kSignal = "signal", *kHandedOn = "handed_on",
                     *kGivenUp = "given_up", *kOverdue = "overdue", *kWords = "words", *kText = "text";

constexpr int kExitAtOnce = 128 + SIGINT;  // after a second SIGINT, without saving

int integer(const Node& node, const char* key) { return static_cast<int>(node.find(key)->as_integer()); }

}  // namespace

bool RankEnd::interrupted_twice() const {
  if (forwarded_signal != SIGINT) return false;
  return killed_after_failure || (signal == 0 && status == kExitAtOnce);
}

bool RankEnd::is_regular() const { return status == core::kExitDone || status == core::kExitResumable; }

bool RankEnd::failed() const { return !killed_after_failure && !is_regular(); }

std::string RankEnd::message() const {
  if (!text.empty()) return text;
  // A rank that lost another names it in its own message.
  if (status == core::kExitPeerLost && !words.empty()) return words;
  const std::string after = words.empty() ? "" : ": " + words;
  if (signal == 0) return who + " failed with exit status " + std::to_string(status) + after;
  const char* name = sigabbrev_np(signal);
  return who + " was killed by " + (name != nullptr ? "SIG" + std::string(name) : std::to_string(signal)) + after;
}

Node to_node(const RankEnd& end) {
  Node node = Node::mapping();
  node.set(kRank, Node::integer(end.rank));
  node.set(kWho, Node::string(end.who));
  node.set(kStatus, Node::integer(end.status));
  node.set(kSignal, Node::integer(end.signal));
  node.set(kHandedOn, Node::integer(end.forwarded_signal));
  node.set(kGivenUp, Node::boolean(end.killed_after_failure));
  node.set(kOverdue, Node::boolean(end.overdue));
  node.set(kWords, Node::string(end.words));
  node.set(kText, Node::string(end.text));
  return node;
}

RankEnd rank_end_of(const Node& node) {
  RankEnd end;
  end.rank = integer(node, kRank);
  end.who = node.find(kWho)->as_string();
  end.status = integer(node, kStatus);
  end.signal = integer(node, kSignal);
  end.forwarded_signal = integer(node, kHandedOn);
  end.killed_after_failure = node.find(kGivenUp)->as_bool();
  end.overdue = node.find(kOverdue)->as_bool();
  end.words = node.find(kWords)->as_string();
  end.text = node.find(kText)->as_string();
  return end;
}

void FailureAttribution::add(RankEnd end) { ends_.push_back(std::move(end)); }

bool FailureAttribution::has_failure() const {
  return std::any_of(ends_.begin(), ends_.end(), [](const RankEnd& end) { return end.failed(); });
}

const RankEnd* FailureAttribution::culprit() const {
  const RankEnd* lost = nullptr;
  bool stopped = false;
  for (const RankEnd& end : ends_) {
    stopped = stopped || end.status == core::kExitResumable;
    if (!end.failed() || end.ended_by_forwarded_signal()) continue;
    if (end.status == core::kExitPeerLost) {
      if (lost == nullptr || end.rank == 0) lost = &end;  // the output of rank 0 was shown already
      continue;
    }
    const auto first = std::find_if(ends_.begin(), ends_.end(), [](const RankEnd& other) { return other.rank == 0; });
    const bool same = end.signal == 0 && first != ends_.end() && first->signal == 0 && first->status == end.status;
    return same ? &*first : &end;
  }
  // A rank is not to blame for losing one that stopped resumable, as on a full disk.
  return stopped ? nullptr : lost;
}

bool FailureAttribution::is_done() const {
  return std::all_of(ends_.begin(), ends_.end(), [](const RankEnd& end) { return end.status == core::kExitDone; });
}

int FailureAttribution::forwarded_signal() const {
  for (const RankEnd& end : ends_) {
    if (end.forwarded_signal != 0) return end.forwarded_signal;
  }
  return 0;
}

int FailureAttribution::status() const {
  if (const RankEnd* blamed = culprit(); blamed != nullptr) {
    const bool is_ours = blamed->status == core::kExitUsage || blamed->status == core::kExitInternalError;
    return is_ours ? blamed->status : core::kExitFailed;
  }
  int status = core::kExitDone;
  for (const RankEnd& end : ends_) {
    if (end.interrupted_twice()) return kExitAtOnce;
    if (end.ended_by_forwarded_signal() || end.killed_after_failure || end.status == core::kExitResumable)
      status = core::kExitResumable;
  }
  return status;
}

}  // namespace runner::launch
