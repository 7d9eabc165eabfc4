#include "run_domains.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "bench.client.h"
#include "calls/procedures.h"
#include "core/store.h"
#include "fresh_run.h"
#include "load/hog.h"
#include "lrpc/server.h"
#include "nested.client.h"
#include "nested.server.h"

namespace lrpc::bench {
namespace {

constexpr unsigned kMostStarted = 8;

/// Null computes; Add is quick.
struct TimedProcedures : Procedures {
  std::uint64_t ticks = 0;
  void Null(CallContext& /*context*/) noexcept {
    if (ticks != 0) compute_for(ticks);
  }
};

struct NestedProcedures {
  std::optional<::Bench::Client> behind;
  ImportOptions back;
  Result<void> Pass(CallContext& /*context*/) { return behind->Null(); }
  Result<void> Ask(CallContext& context) {
    auto client = ::Nested::callback(context, back);
    if (!client) return client.error();
    return (*client)->Answer();
  }
  void Null(CallContext& /*context*/) noexcept {}
};

/// The procedures of a client that is called back.
struct Answering {
  ::Nested::Client& client;
  Result<void> Answer(CallContext& /*context*/) { return client.Null(); }
};

[[noreturn]] void serve_for_ever(RunDesk& desk) {
  desk.servers_ready.fetch_add(1);
  for (;;) ::pause();
}

/// The calls of one thread.
class Caller {
 public:
  Caller(const RunTerms& terms, RunDesk::Caller& book)
      : situation_(terms.situation),
        desk_(terms.desk),
        book_(book),
        length_(terms.clock.ticks(terms.length)),
        window_(terms.clock.ticks(FreshRun::kWindow)),
        think_(terms.clock.ticks(situation_.think)),
        burst_(terms.clock.ticks(situation_.burst)),
        overhead_(terms.clock.overhead()) {}

  /// Calls for the length of the run, at least once. False: `call` has returned false.
  template <class Call>
  bool run(Call&& call) {
    desk_.callers_ready.fetch_add(1);
    std::uint64_t begin = 0;
    while ((begin = desk_.begin.load(std::memory_order_acquire)) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::uint64_t burst_began = begin;
    for (;;) {
      const std::uint64_t before = ticks_begin();
      const std::uint64_t at = before > begin ? before - begin : 0;
      if (at / window_ != index_) end_window(at / window_);
      if (at >= length_ && book_.calls.count() != 0) return true;
      if (!call()) return false;
      const std::uint64_t after = ticks_end();
      const std::uint64_t took = std::max<std::uint64_t>(after - before, overhead_) - overhead_;
      book_.calls.add(took / std::max(1U, situation_.started));
      of_window_->add(took / std::max(1U, situation_.started));
      if (think_ != 0) compute_for(think_);
      if (situation_.sleep.count() != 0) std::this_thread::sleep_for(situation_.sleep);
      if (burst_ != 0 && after - burst_began > burst_) {
        std::this_thread::sleep_for(situation_.burst);
        burst_began = ticks_begin();
      }
    }
  }

 private:
  void end_window(std::uint64_t next) {
    if (index_ < RunDesk::kMostWindows) book_.medians[index_] = of_window_->quantile(0.5);
    for (std::uint64_t i = index_ + 1; i < std::min<std::uint64_t>(next, RunDesk::kMostWindows); ++i)
      book_.medians[i] = std::numeric_limits<double>::quiet_NaN();
    of_window_->clear();
    index_ = next;
  }

  const Situation& situation_;
  RunDesk& desk_;
  RunDesk::Caller& book_;
  const std::uint64_t length_, window_, think_, burst_, overhead_;
  std::uint64_t index_ = 0;
  std::unique_ptr<Histogram> of_window_ = std::make_unique<Histogram>();
};

/// Calls from as many threads as a client has, this one included, each with its own copy of `call`. Returns once all
/// have ended: 1 if one of them failed, otherwise 0.
template <class Call>
int call_from_threads(unsigned first, const RunTerms& terms, const Call& call) {
  std::atomic<bool> failed{false};
  const auto body = [&](unsigned index) {
    if (terms.situation.fifo && !become_fifo()) failed = true;
    if (!Caller(terms, terms.desk.callers[index]).run(Call(call))) failed = true;
  };
  const std::uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < terms.situation.threads; ++i) others.emplace_back(body, first + i);
  body(first);
  for (auto& other : others) other.join();
  terms.desk.clients_ns.fetch_add(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
  return failed ? 1 : 0;
}

bool call_started(::Bench::Client& client, unsigned at_once) {
  std::array<decltype(std::optional(client.start().Null())), kMostStarted> calls;
  for (unsigned i = 0; i < at_once; ++i) calls[i].emplace(client.start().Null());
  bool all = true;
  for (unsigned i = 0; i < at_once; ++i) all &= calls[i]->finish().has_value();
  return all;
}

int call_bench(std::vector<UniqueFd> ends, unsigned first, const RunTerms& terms, const ImportOptions& options) {
  const Situation& situation = terms.situation;
  std::vector<::Bench::Client> clients;
  for (UniqueFd& end : ends) {
    auto client = ::Bench::Client::import_over(std::move(end), options);
    if (!client) return 1;
    clients.push_back(std::move(*client));
  }
  ::Bench::Client& client = clients.front();
  if (situation.started != 0)
    return call_from_threads(first, terms, [&] { return call_started(client, situation.started); });
  if (situation.slow_each > 1) {
    return call_from_threads(first, terms, [&, call = 0U]() mutable {
      if (++call % situation.slow_each == 0) return client.Null().has_value();
      return client.Add(1, 2).has_value();
    });
  }
  if (clients.size() > 1)
    return call_from_threads(first, terms,
                             [&, call = 0U]() mutable { return clients[++call % clients.size()].Null().has_value(); });
  return call_from_threads(first, terms, [&] { return client.Null().has_value(); });
}

int call_nested(UniqueFd end, unsigned first, const RunTerms& terms, const ImportOptions& options) {
  auto client = ::Nested::Client::import_over(std::move(end), options);
  if (!client) return 1;
  if (terms.situation.shape == Situation::Shape::chain)
    return call_from_threads(first, terms, [&] { return client->Pass().has_value(); });
  Answering answering{*client};
  Server own_domain;
  if (!client->serve_callbacks(own_domain, answering)) return 1;
  return call_from_threads(first, terms, [&] { return client->Ask().has_value(); });
}

}  // namespace

int serve_bench(std::vector<UniqueFd> ends, const RunTerms& terms) {
  TimedProcedures procedures;
  procedures.ticks = terms.clock.ticks(terms.situation.procedure);
  Server server;
  for (UniqueFd& end : ends)
    if (!::Bench::serve_over(server, std::move(end), procedures)) return 1;
  serve_for_ever(terms.desk);
}

int serve_nested(std::vector<UniqueFd> ends, UniqueFd behind, const RunTerms& terms) {
  NestedProcedures procedures;
  procedures.back = {.timeout = kRunPatience, .gate = terms.gate, .call_timeout = kRunPatience};
  if (behind) {
    const ImportOptions options{.timeout = kRunPatience, .gate = terms.gate};
    if (!store(procedures.behind, ::Bench::Client::import_over(std::move(behind), options))) return 1;
  }
  Server server;
  for (UniqueFd& end : ends)
    if (!::Nested::serve_over(server, std::move(end), procedures)) return 1;
  serve_for_ever(terms.desk);
}

int call_in_run(std::vector<UniqueFd> ends, unsigned first, const RunTerms& terms) {
  ImportOptions options{.timeout = kRunPatience, .gate = terms.gate};
  // There are more calls in flight than the interface has A-stacks.
  if (terms.situation.started != 0) options.supply = AStackSupply::grow;
  if (terms.situation.shape == Situation::Shape::plain) return call_bench(std::move(ends), first, terms, options);
  return call_nested(std::move(ends.front()), first, terms, options);
}

}  // namespace lrpc::bench
