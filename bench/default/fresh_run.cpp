#include "fresh_run.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "company.h"
#include "core/child.h"
#include "core/interrupt.h"
#include "run_domains.h"

namespace lrpc::bench {
namespace {

/// The clients and servers of a run.
class Domains {
 public:
  Domains(const RunTerms& terms, const Cores& cores, const Company& company)
      : terms_(terms),
        company_(company),
        seats_(seats_of(terms.situation, cores)),
        client_ends_(terms.situation.clients),
        server_ends_(terms.situation.servers) {}

  /// Returns once all of them are ready for the run to begin.
  Status start() {
    if (Status done = connect(); !done) return done;
    if (Status done = start_servers(); !done) return done;
    return start_clients();
  }
  Status await_end() {
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(terms_.length) + kRunPatience;
    for (Child& client : clients_) {
      const auto ended = client.wait(limit);
      if (!ended) return ended.error();
      if (*ended != 0) return Error{Errc::call_failed, "a call failed"};
    }
    return {};
  }
  [[nodiscard]] std::span<const Child> clients() const { return clients_; }
  [[nodiscard]] std::span<const Child> servers() const { return servers_; }
  [[nodiscard]] unsigned callers() const { return terms_.situation.clients * terms_.situation.threads; }

 private:
  [[nodiscard]] bool is_chain() const { return terms_.situation.shape == Situation::Shape::chain; }
  /// Makes a socket pair for each client and each server that it calls, and one between the servers of a chain.
  Status connect() {
    const auto pair = [](UniqueFd& one, UniqueFd& other) -> Status {
      auto ends = shim::make_socket_pair();
      if (!ends) return ends.error();
      one = std::move(ends->first);
      other = std::move(ends->second);
      return {};
    };
    for (std::size_t i = 0; i < client_ends_.size(); ++i) {
      for (std::size_t s = 0; s < server_ends_.size(); ++s) {
        if (!terms_.situation.in_turn && i % server_ends_.size() != s) continue;
        if (Status done = pair(client_ends_[i].emplace_back(), server_ends_[s].emplace_back()); !done) return done;
      }
    }
    return is_chain() ? pair(front_end_, back_end_) : Status{};
  }
  Status start_servers() {
    if (is_chain()) {
      std::vector<UniqueFd> ends;
      ends.push_back(std::move(back_end_));
      Status done = add(servers_, "bench-server", seats_.server, [&] { return serve_bench(std::move(ends), terms_); });
      if (!done) return done;
    }
    const bool nested = terms_.situation.shape != Situation::Shape::plain;
    for (auto& ends : server_ends_) {
      Status done = add(servers_, "bench-server", seats_.server, [&] {
        client_ends_.clear();
        if (nested) return serve_nested(std::move(ends), std::move(front_end_), terms_);
        return serve_bench(std::move(ends), terms_);
      });
      if (!done) return done;
      ends.clear();
    }
    front_end_.reset();
    return await(terms_.desk.servers_ready, servers_.size(), "a server");
  }
  Status start_clients() {
    for (unsigned i = 0; i < client_ends_.size(); ++i) {
      Status done = add(clients_, "bench-client", seats_.clients[i], [&] {
        std::vector<UniqueFd> ends = std::move(client_ends_[i]);
        client_ends_.clear();
        return call_in_run(std::move(ends), i * terms_.situation.threads, terms_);
      });
      if (!done) return done;
      client_ends_[i].clear();
    }
    return await(terms_.desk.callers_ready, callers(), "a client");
  }
  Status add(std::vector<Child>& to, const char* name, const Seat& seat, const std::function<int()>& body) {
    auto process = Child::spawn(name, seat, body);
    if (!process) return process.error();
    to.push_back(std::move(*process));
    return company_.admit(to.back());
  }
  static Status await(const std::atomic<std::uint32_t>& count, std::size_t wanted, std::string_view whom) {
    for (const auto begun = std::chrono::steady_clock::now(); count.load() < wanted;) {
      if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
      if (std::chrono::steady_clock::now() - begun > kRunPatience)
        return Error{Errc::timed_out, std::string(whom) + " did not become ready"};
      interruptible_sleep(std::chrono::microseconds(500));
    }
    return {};
  }

  const RunTerms& terms_;
  const Company& company_;
  const RunSeats seats_;
  std::vector<std::vector<UniqueFd>> client_ends_;
  std::vector<std::vector<UniqueFd>> server_ends_;
  UniqueFd front_end_, back_end_;  ///< Of a chain: the ends between its servers.
  std::vector<Child> servers_;
  std::vector<Child> clients_;
};

/// Adds what the callers have recorded to `run`.
void read_books(const RunDesk& desk, unsigned callers, const TickClock& clock, FreshRun& run) {
  for (unsigned i = 0; i < callers; ++i) {
    const RunDesk::Caller& caller = desk.callers[i];
    run.calls.add(caller.calls);
    for (std::size_t w = 0; w < run.windows.size(); ++w) {
      const double median = clock.ns(1) * caller.medians[w];
      if (!std::isnan(median) && !(run.windows[w] >= median)) run.windows[w] = median;
    }
  }
}

}  // namespace

Result<FreshRun> run_fresh(const Situation& situation, shim::Gate gate, const Cores& cores, const TickClock& clock,
                           std::chrono::milliseconds length) {
  auto desk = Shared<RunDesk>::create();
  if (!desk) return desk.error();
  auto company = Company::start(situation, cores);
  if (!company) return company.error();
  const RunTerms terms{situation, gate, clock, length, **desk};
  Domains domains(terms, cores, *company);
  if (Status done = domains.start(); !done) return done.error();
  if (Status done = company->follow(domains.clients(), cores); !done) return done.error();

  const double servers_before = seconds_of(domains.servers());
  company->open_books();
  (*desk)->begin.store(ticks_begin(), std::memory_order_release);
  if (Status done = company->disturb(length, domains.clients(), domains.servers(), cores); !done) return done.error();
  if (Status done = domains.await_end(); !done) return done.error();
  FreshRun run;
  company->close_books(run, length);
  run.processor = (seconds_of(domains.servers()) - servers_before + static_cast<double>((*desk)->clients_ns) / 1e9) /
                  std::chrono::duration<double>(length).count();
  const auto windows = static_cast<std::size_t>(length / FreshRun::kWindow);
  run.windows.assign(std::min(windows, RunDesk::kMostWindows), std::numeric_limits<double>::quiet_NaN());
  read_books(**desk, domains.callers(), clock, run);
  return run;
}

}  // namespace lrpc::bench
