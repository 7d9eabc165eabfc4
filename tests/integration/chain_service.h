// A link of a chain of domains: the server of the previous link, and the client of the next one.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "chain.client.h"
#include "chain.server.h"
#include "eventually.h"

namespace testing_lrpc {

/// How the first caller of a chain handles reports: it returns the sum that the last link reported.
class ReportEnd {
 public:
  std::uint64_t Report(lrpc::CallContext&, std::uint64_t ticket, std::uint64_t sum) {
    last_ticket = ticket;
    return sum + 1;
  }
  std::atomic<std::uint64_t> last_ticket{0};
};

class ChainLink {
 public:
  /// `gate`: for its calls to the next link.
  ChainLink(std::string nameserver, std::uint32_t index, lrpc::Gate gate = lrpc::Gate::adaptive)
      : nameserver_(std::move(nameserver)), index_(index), gate_(gate) {}

  lrpc::Result<Chain::SumResults> Sum(lrpc::CallContext&, std::uint32_t depth) {
    if (depth == 0) return Chain::SumResults{.sum = index_, .hops = 0};
    const auto next = behind();
    if (!next) return next.error();
    const auto rest = (*next)->Sum(depth - 1);
    if (!rest) return rest.error();
    return Chain::SumResults{.sum = rest->sum + index_, .hops = rest->hops + 1};
  }
  lrpc::Result<void> Hold(lrpc::CallContext& context, std::uint32_t depth) {
    if (depth != 0) {
      const auto next = behind();
      if (!next) return next.error();
      ++passing_;
      auto held = (*next)->Hold(depth - 1);
      if (held) ++returned_;
      if (held.code() == lrpc::Errc::call_failed) ++failed_;
      --passing_;
      return held;
    }
    const std::uint32_t releases = releases_;
    ++waiting_;
    while (!context.abandoned() && releases_ == releases) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --waiting_;
    ++let_go_;
    return {};
  }
  Chain::HoldsResults Holds(lrpc::CallContext&) { return {.waiting = waiting_, .let_go = let_go_}; }
  void Release(lrpc::CallContext&) { ++releases_; }
  Chain::PassedResults Passed(lrpc::CallContext&) {
    return {.waiting = passing_, .failed = failed_, .returned = returned_};
  }
  lrpc::Result<std::uint64_t> SumByReports(lrpc::CallContext& context, std::uint32_t depth, std::uint64_t ticket) {
    auto back = Chain::callback(context, {.timeout = kPatience, .call_timeout = kPatience});
    if (!back) return back.error();
    if (depth == 0) return (*back)->Report(ticket, index_);
    const auto next = behind();
    if (!next) return next.error();
    {
      std::lock_guard lock(mutex_);
      callers_[ticket] = *back;
    }
    return (*next)->SumByReports(depth - 1, ticket);
  }
  /// Called by the next link while it serves a call of this one: passes the report on to this link's caller.
  lrpc::Result<std::uint64_t> Report(lrpc::CallContext&, std::uint64_t ticket, std::uint64_t sum) {
    std::shared_ptr<Chain::Callback::Client> caller;
    {
      std::lock_guard lock(mutex_);
      auto taken = callers_.extract(ticket);
      if (taken.empty()) return lrpc::Errc::invalid_argument;
      caller = std::move(taken.mapped());
    }
    return caller->Report(ticket, sum + index_);
  }

 private:
  /// A client of the next link, with this link's callbacks served over it; bound once.
  lrpc::Result<std::shared_ptr<Chain::Client>> behind() {
    std::lock_guard lock(mutex_);
    if (next_ == nullptr || next_->binding().revoked()) {
      auto bound =
          Chain::Client::import("link-" + std::to_string(index_ + 1), {.nameserver = nameserver_, .gate = gate_});
      if (!bound) return bound.error();
      if (auto served = bound->serve_callbacks(own_, *this); !served) return served.error();
      next_ = std::make_shared<Chain::Client>(*std::move(bound));
    }
    return next_;
  }

  const std::string nameserver_;
  const std::uint32_t index_;
  const lrpc::Gate gate_;
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint32_t> let_go_{0};
  std::atomic<std::uint32_t> releases_{0};
  std::atomic<std::uint32_t> passing_{0};
  std::atomic<std::uint32_t> failed_{0};
  std::atomic<std::uint32_t> returned_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Chain::Callback::Client>> callers_;
  lrpc::Server own_;
  std::shared_ptr<Chain::Client> next_;
};

}  // namespace testing_lrpc
