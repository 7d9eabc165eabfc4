#include "company.h"

#include <sched.h>

#include <thread>

#include "core/interrupt.h"
#include "core/process_usage.h"
#include "core/store.h"
#include "load/hog.h"

namespace lrpc::bench {
namespace {

using Where = Situation::Where;

/// Pins the process to one processor after another, as taskset -p does, until it has ended.
int move_about(pid_t process, const std::vector<Seat>& seats) {
  for (;;) {
    for (const Seat& seat : seats) {
      if (::sched_setaffinity(process, sizeof seat, &seat) != 0) return 0;
      std::this_thread::sleep_for(FreshRun::kWindow);
    }
  }
}

}  // namespace

RunSeats seats_of(const Situation& situation, const Cores& cores) {
  const Seat anywhere = situation.among != 0 ? cores.among(situation.among) : cores.seats(Placement::unpinned).client;
  const Seats one = cores.seats(Placement::one_core);
  const Seats two = cores.seats(Placement::two_cores);
  const auto seats = [&](const Seat& client, const Seat& server) {
    return RunSeats{server, std::vector<Seat>(situation.clients, client), anywhere};
  };
  switch (situation.where) {
    case Where::one_processor: return seats(one.client, one.server);
    case Where::apart: return seats(two.client, two.server);
    case Where::server_confined: return seats(anywhere, two.server);
    case Where::clients_apart: {
      RunSeats apart = seats(anywhere, anywhere);
      const std::vector<Seat> each = cores.each();
      for (std::size_t i = 0; i < apart.clients.size(); ++i) apart.clients[i] = each[i % each.size()];
      return apart;
    }
    case Where::anywhere:
    case Where::apart_later:
    case Where::moved:
    case Where::one_offline: break;
  }
  return seats(anywhere, anywhere);
}

Result<Company> Company::start(const Situation& situation, const Cores& cores) {
  Company company(situation);
  const Seat anywhere = seats_of(situation, cores).anywhere;
  if (situation.fifo)
    if (Status done = try_fifo(); !done) return done.error();  // each caller sets the policy itself
  if (situation.processors != 0 || situation.weight != 1)
    if (Status done = store(company.group_, ControlGroup::create("default", situation.weight)); !done)
      return done.error();
  if (situation.processors != 0)
    if (Status done = company.group_->limit(situation.processors); !done) return done.error();
  if (situation.where == Where::one_offline) {
    auto offline = OfflineProcessor::prepare(cores.second().value_or(0));
    if (!offline) return offline.error();
    company.offline_.emplace(std::move(*offline));
  }
  for (unsigned i = 0; i < situation.hogs; ++i)
    if (Status up = append(company.hogs_, start_hog(anywhere)); !up) return up.error();
  if (situation.third_party || situation.build) {
    auto third = situation.build ? ThirdParty::start_build(anywhere) : ThirdParty::start(anywhere);
    if (Status done = store(company.third_, std::move(third)); !done) return done.error();
  }
  return company;
}

Status Company::admit(const Child& process) const { return group_ ? group_->take(process.pid()) : Status{}; }

Status Company::follow(std::span<const Child> clients, const Cores& cores) {
  if (situation_->where != Where::moved) return {};
  const Seat anywhere = seats_of(*situation_, cores).anywhere;
  for (const Child& client : clients) {
    const auto move = [&] { return move_about(client.pid(), cores.each()); };
    if (Status up = append(movers_, Child::spawn("bench-mover", anywhere, move)); !up) return up;
  }
  return {};
}

void Company::open_books() {
  hogs_before_ = seconds_of(hogs_);
  if (third_) third_->open_book(0);
}

Status Company::disturb(std::chrono::milliseconds length, std::span<const Child> clients,
                        std::span<const Child> servers, const Cores& cores) {
  const auto third = std::chrono::nanoseconds(length) / 3;
  if (situation_->where == Where::apart_later) {
    interruptible_sleep(third);
    const Seats apart = cores.seats(Placement::two_cores);
    for (const Child& server : servers) seat_process(server.pid(), apart.server);
    for (const Child& client : clients) seat_process(client.pid(), apart.client);
  }
  if (offline_) {
    interruptible_sleep(third);
    if (Status taken = offline_->take(); !taken) return taken;
    interruptible_sleep(third);
    return offline_->bring_back();
  }
  return {};
}

void Company::close_books(FreshRun& run, std::chrono::milliseconds length) {
  run.hogs = (seconds_of(hogs_) - hogs_before_) / std::chrono::duration<double>(length).count();
  if (!third_) return;
  third_->open_book(ThirdParty::kBooks);
  run.third_party = third_->book(0);
}

double seconds_of(std::span<const Child> processes) {
  double all = 0;
  for (const Child& process : processes)
    if (const auto usage = cpu_usage(process.pid())) all += static_cast<double>(usage->ns) / 1e9;
  return all;
}

}  // namespace lrpc::bench
