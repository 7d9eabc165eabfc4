#include "team.h"

#include <algorithm>
#include <thread>

#include "core/store.h"
#include "floors/naive.h"
#include "lrpc_call.h"
#include "lrpc_domains.h"

namespace lrpc::bench {

namespace {

shim::Gate gate_of(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::exchange: return shim::Gate::exchange;
    case Strategy::handoff: return shim::Gate::handoff;
    case Strategy::sleep: return shim::Gate::sleep;
    default: return shim::Gate::adaptive;
  }
}

/// What the caller does between two calls.
void pause(Pace pace, const TickClock& clock) {
  if (pace == Pace::apart_20us) compute_for(clock.ticks(std::chrono::microseconds(20)));
  if (pace == Pace::apart_1ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void run_slice(Contender& contender, const Slice& slice, Pace pace, const TickClock& clock, Histogram* book) {
  std::uint64_t begun = ticks_begin();
  for (std::uint64_t i = 0; i < slice.most_untimed && ticks_begin() - begun < clock.ticks(slice.untimed); ++i) {
    contender.run(1);
    pause(pace, clock);
  }
  if (book == nullptr) return;
  const std::uint64_t limit = clock.ticks(slice.timed);
  begun = ticks_begin();
  do {
    std::uint64_t ticks = 0;
    contender.run_single({&ticks, 1});
    book->add(ticks - std::min(ticks, clock.overhead()));
    pause(pace, clock);
  } while (ticks_begin() - begun < limit);
}

}  // namespace

std::string_view name(Strategy strategy) noexcept {
  return strategy == Strategy::plain_futex ? "futex" : name_of(gate_of(strategy));
}

Result<TurnTaker<Team::Desk>> Team::start_client(Contender& contender, const Seat& seat, const Cell& cell,
                                                 const TickClock& clock) {
  const auto connect = [&] {
    Status ready = contender.connect();
    if (ready && cell.load == Load::fifo_caller) ready = become_fifo();  // for this thread only, not for the library's
    return ready;
  };
  return TurnTaker<Desk>::start("bench-client", seat, connect, [&](Desk& desk) {
    const Slice slice = desk.slice;
    Histogram* const book = slice.book == Book::none ? nullptr : &desk.books[static_cast<std::size_t>(slice.book)];
    run_slice(contender, slice, cell.pace, clock, book);
    contender.pause();
    return contender.health();
  });
}

Result<std::unique_ptr<Team>> Team::create(Strategy strategy, const Cell& cell, const Cores& cores,
                                           const Surroundings& around, const TickClock& clock) {
  const Seats seats = cores.seats(cell.placement);
  std::shared_ptr<LrpcDomains> domains;
  if (strategy != Strategy::plain_futex) {
    if (Status up = store(domains, LrpcDomains::start(seats.server)); !up) return up.error();
    if (auto admitted = around.admit_server(domains->server_pid()); !admitted) return admitted.error();
  }
  std::unique_ptr<Team> team(new Team(strategy));
  team->domains_ = domains;
  for (int i = 0; i < cell.clients; ++i) {
    auto contender = strategy == Strategy::plain_futex ? make_naive_futex(seats)
                                                       : make_lrpc_call(domains, gate_of(strategy), LrpcTest::null);
    if (!contender) return contender.error();
    auto process = start_client(**contender, seats.client, cell, clock);
    if (!process) return process.error();
    if (auto admitted = around.admit_client(process->pid()); !admitted) return admitted.error();
    team->clients_.push_back({*std::move(contender), *std::move(process)});
  }
  if (auto connected = team->await({}); !connected) return connected.error();
  return team;
}

Status Team::run(const Slice& slice) {
  for (Client& client : clients_) client.process->slice = slice;
  for (Client& client : clients_) client.process->turns.begin();
  // The first warm-up (Book::none) may end early, after most_untimed calls: there, poll from the start.
  return await(slice.book == Book::none ? slice.timed : slice.untimed + slice.timed);
}

Status Team::await(std::chrono::nanoseconds at_least) {
  std::vector<TurnDesk*> desks;
  for (Client& client : clients_) desks.push_back(&client.process->turns);
  return await_turns(desks, at_least);
}

std::vector<TeamProcess> Team::processes() const {
  std::vector<TeamProcess> all;
  if (domains_) all = {{"nameserver", domains_->nameserver_pid()}, {"server", domains_->server_pid()}};
  for (const Client& client : clients_) all.push_back({"client", client.process.pid()});
  return all;
}

Histogram Team::counted(Book book) const {
  Histogram all;
  for (const Client& client : clients_) all.add(client.process->books[static_cast<std::size_t>(book)]);
  return all;
}

}  // namespace lrpc::bench
