#include "team.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "futex.h"
#include "interrupt.h"
#include "lrpc_call.h"
#include "lrpc_domains.h"
#include "naive.h"

namespace lrpc::bench {

struct Team::Desk {
  std::atomic<std::uint32_t> turn;  ///< The client sleeps on this word; each change is a slice to run.
  std::atomic<std::uint32_t> done;  ///< The last turn that is over; the first is to connect.
  std::atomic<bool> failed;
  char why[256];
  Slice slice;
  std::array<Histogram, 2> books;

  void fail(const Error& error) noexcept {
    std::snprintf(why, sizeof(why), "%s", error.message().c_str());
    failed.store(true, std::memory_order_release);
  }
};

struct Team::Client {
  explicit Client(Shared<Desk> shared) : desk(std::move(shared)) {}
  Shared<Desk> desk;
  std::unique_ptr<Contender> contender;
  Child process;
};

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
class Pause {
 public:
  Pause(Pace pace, const TickClock& clock) : pace_(pace), spin_ticks_(clock.ticks(std::chrono::microseconds(20))) {}
  void take() const noexcept {
    if (pace_ == Pace::apart_20us) {
      const std::uint64_t begun = ticks_begin();
      while (ticks_begin() - begun < spin_ticks_) relax();
    } else if (pace_ == Pace::apart_1ms) {
      const timespec time{0, 1'000'000};
      ::nanosleep(&time, nullptr);
    }
  }

 private:
  Pace pace_;
  std::uint64_t spin_ticks_;
};

void run_slice(Contender& contender, const Slice& slice, const Pause& pause, const TickClock& clock, Histogram* book) {
  std::uint64_t begun = ticks_begin();
  for (std::uint64_t i = 0; i < slice.most_untimed && ticks_begin() - begun < clock.ticks(slice.untimed); ++i) {
    contender.run(1);
    pause.take();
  }
  if (book == nullptr) return;
  const std::uint64_t limit = clock.ticks(slice.timed);
  begun = ticks_begin();
  do {
    std::uint64_t ticks = 0;
    contender.run_single({&ticks, 1});
    book->add(ticks - std::min(ticks, clock.overhead()));
    pause.take();
  } while (ticks_begin() - begun < limit);
}

}  // namespace

std::string_view name(Strategy strategy) noexcept {
  return strategy == Strategy::plain_futex ? "futex" : name(gate_of(strategy));
}

int Team::be_client(Contender& contender, const Cell& cell, const TickClock& clock, Desk& desk) {
  Status ready = contender.connect();
  if (ready && cell.load == Load::fifo_caller) ready = become_fifo();  // this thread only, not the library's
  if (!ready) desk.fail(ready.error());
  const Pause pause(cell.pace, clock);
  for (std::uint32_t turn = 1;; ++turn) {
    desk.done.store(turn, std::memory_order_release);
    while (desk.turn.load(std::memory_order_acquire) == turn) futex_wait(desk.turn, turn);
    const Slice slice = desk.slice;
    Histogram* const book = slice.book == Book::none ? nullptr : &desk.books[static_cast<std::size_t>(slice.book)];
    run_slice(contender, slice, pause, clock, book);
    contender.pause();
    if (const Status health = contender.health(); !health) desk.fail(health.error());
  }
}

Result<std::unique_ptr<Team>> Team::create(Strategy strategy, const Cell& cell, const Cores& cores,
                                           const Surroundings& around, const TickClock& clock) {
  const Seats seats = cores.seats(cell.placement);
  std::shared_ptr<LrpcDomains> domains;
  if (strategy != Strategy::plain_futex) {
    auto started = LrpcDomains::start(seats.server);
    if (!started) return started.error();
    domains = std::move(*started);
    if (auto admitted = around.admit_server(domains->server_pid()); !admitted) return admitted.error();
  }
  std::unique_ptr<Team> team(new Team(strategy));
  for (int i = 0; i < cell.clients; ++i) {
    auto contender = strategy == Strategy::plain_futex ? make_naive_futex(seats)
                                                       : make_lrpc_call(domains, gate_of(strategy), LrpcTest::null);
    if (!contender) return contender.error();
    auto desk = Shared<Desk>::create();
    if (!desk) return desk.error();
    (*desk)->turn.store(1, std::memory_order_relaxed);
    team->clients_.push_back(std::make_unique<Client>(std::move(*desk)));
    Client& client = *team->clients_.back();
    client.contender = std::move(*contender);
    auto process = Child::spawn("bench-client", seats.client,
                                [&] { return be_client(*client.contender, cell, clock, *client.desk); });
    if (!process) return process.error();
    client.process = std::move(*process);
    if (auto admitted = around.admit_client(client.process.pid()); !admitted) return admitted.error();
  }
  if (auto connected = team->await(1, {}); !connected) return connected.error();
  return team;
}

Team::Team(Strategy strategy) : strategy_(strategy) {}

Team::~Team() {
  for (auto& client : clients_) client->process.kill();  // before the servers, so that none sees its peer die
}

Status Team::run(const Slice& slice) {
  const std::uint32_t turn = clients_.front()->desk->turn.load(std::memory_order_relaxed) + 1;
  for (auto& client : clients_) client->desk->slice = slice;
  for (auto& client : clients_) {
    client->desk->turn.store(turn, std::memory_order_release);
    futex_wake(client->desk->turn);
  }
  // The first warm-up may end early, by its number of calls: there, look from the start.
  return await(turn, slice.book == Book::none ? slice.timed : slice.untimed + slice.timed);
}

/// Sleeps for as long as the slice is expected to take, so as not to be a third load; then looks again and again.
Status Team::await(std::uint32_t turn, std::chrono::nanoseconds at_least) {
  constexpr auto kLook = std::chrono::microseconds(500);
  constexpr auto kPatience = std::chrono::seconds(10);
  const auto begun = std::chrono::steady_clock::now();
  std::chrono::nanoseconds nap = at_least;
  for (auto& client : clients_) {
    Desk& desk = *client->desk;
    while (desk.done.load(std::memory_order_acquire) != turn) {
      interruptible_sleep(nap);
      nap = kLook;
      if (interrupted()) return Error{Errc::call_aborted, "was interrupted"};
      if (std::chrono::steady_clock::now() - begun > at_least + kPatience) {
        return Error{Errc::timed_out, "a client did not end its slice within 10 s"};
      }
    }
    if (desk.failed.load(std::memory_order_acquire)) return Error{Errc::call_failed, desk.why};
  }
  return {};
}

Histogram Team::counted(Book book) const {
  Histogram all;
  for (const auto& client : clients_) all.add(client->desk->books[static_cast<std::size_t>(book)]);
  return all;
}

}  // namespace lrpc::bench
